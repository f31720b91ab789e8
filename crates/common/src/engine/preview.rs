//! What a pass would do, without doing it: the same engine on a rehearsal stage. Reads go to the real cloud, writes
//! stay here.
use super::estate::{
    CreateOrder, Estate, Fault, Freshness, Ids, Kind, Listing, Outcome, Phase, Piece, Sighting, Thing,
};
use super::fence::Open;
use super::owner::{ApiUnavailable, OwnerApi, OwnerPatch, OwnerView, Patched};
use super::report::{Progress, Report};
use super::{Engine, Settings};
use crate::clock::SharedClock;
use crate::conditions;
use crate::identity::{Mark, MarkSeen};
use crate::ledger::Id;
use crate::random::Random;
use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One thing that would be done.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Act {
    /// Something new.
    Create {
        /// Its slot.
        slot: String,
        /// What would be asked for; ids of things not made yet are in angle brackets.
        params: Value,
    },
    /// Our mark would be put on a thing that is there.
    Mark {
        /// Its slot.
        slot: String,
        /// Its id.
        id: Id,
        /// It is somebody else's and would be adopted.
        adopted: bool,
    },
    /// Our mark would be taken off.
    Release {
        /// Its slot.
        slot: String,
        /// Its id.
        id: Id,
    },
    /// A mutable attribute would change.
    Change {
        /// Its slot.
        slot: String,
        /// What, from what, to what.
        what: String,
    },
    /// A thing would go.
    Delete {
        /// Its slot.
        slot: String,
        /// Its id.
        id: Id,
    },
}

/// What would be done for one owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// In this order.
    pub acts: Vec<Act>,
    /// How the last rehearsed pass ended: done, blocked and why, or failed.
    pub end: Report,
}

/// More passes than any sensible owner needs.
const MOST_PASSES: usize = 64;

/// Rehearses passes for one owner until nothing new happens. Nothing is written anywhere.
///
/// Everything seen counts as settled: a preview says what would happen in the end, not what waits for a minute.
pub async fn preview(
    settings: &Settings,
    clock: &SharedClock,
    random: &Arc<Random>,
    view: &OwnerView,
    paused: Option<String>,
    estate: &dyn Estate,
) -> Preview {
    let rules = super::rules::Rulebook::production();
    let mut engine = Engine::new(settings.clone(), clock.clone(), random.clone(), Arc::new(Open), rules);
    engine.memory.settle_at_once();
    engine.settings.timing.window = Duration::from_hours(1);
    let stage = Stage { estate, state: Mutex::new(State { view: view.clone(), ..State::default() }) };
    let mut end = engine.pass(view, paused.clone(), &stage, &stage).await;
    for _ in 0..MOST_PASSES {
        let (before, now) = (stage.acts().len(), stage.mirrored(&end, settings.controller));
        if !matches!(end.progress, Progress::Waiting { .. }) {
            break;
        }
        end = engine.pass(&now, paused.clone(), &stage, &stage).await;
        let waits = matches!(&end.progress, Progress::Waiting { again, .. } if !again.is_zero());
        if waits && stage.acts().len() == before && stage.view() == now {
            break;
        }
    }
    Preview { acts: stage.acts(), end }
}

#[derive(Default)]
struct State {
    view: OwnerView,
    acts: Vec<Act>,
    made: BTreeMap<Id, Sighting>,
    /// New marks, or none, on things that are there.
    marks: BTreeMap<Id, MarkSeen>,
    gone: Vec<Id>,
}
struct Stage<'e> {
    estate: &'e dyn Estate,
    state: Mutex<State>,
}
impl Stage<'_> {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
    fn acts(&self) -> Vec<Act> {
        self.with(|s| s.acts.clone())
    }
    fn view(&self) -> OwnerView {
        self.with(|s| s.view.clone())
    }
    /// The owner after status was written: later passes look for the mirror there.
    fn mirrored(&self, report: &Report, controller: &str) -> OwnerView {
        self.with(|s| {
            if let Some(mirror) = &report.mirror {
                let type_ = crate::names::ledger_condition(controller);
                s.view.conditions.retain(|c| c.type_ != type_);
                s.view.conditions.push(Condition {
                    type_,
                    message: conditions::format_mirror(mirror),
                    status: "True".into(),
                    reason: crate::names::reason::PROGRESSING.into(),
                    observed_generation: None,
                    last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                        jiff::Timestamp::UNIX_EPOCH,
                    ),
                });
            }
            s.view.clone()
        })
    }
    /// A thing as it would look after what was rehearsed.
    fn changed(state: &State, mut seen: Sighting) -> Option<Sighting> {
        if state.gone.contains(&seen.id) {
            return None;
        }
        if let Some(mark) = state.marks.get(&seen.id) {
            seen.mark = mark.clone();
        }
        Some(seen)
    }
}

#[async_trait]
impl OwnerApi for Stage<'_> {
    async fn get(&self, _namespace: &str, _name: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
        Ok(Some(self.view()))
    }
    async fn patch(&self, _view: &OwnerView, patch: &OwnerPatch) -> Patched {
        self.with(|s| {
            for (key, value) in &patch.annotations {
                match value {
                    Some(value) => s.view.annotations.insert(key.clone(), value.clone()),
                    None => s.view.annotations.remove(key),
                };
            }
            if let Some(finalizers) = &patch.finalizers {
                s.view.finalizers.clone_from(finalizers);
            }
            Patched::Stored(Box::new(s.view.clone()))
        })
    }
    async fn patch_status(&self, _view: &OwnerView, _conditions: &[Condition], _fields: &Value) -> Patched {
        Patched::Stored(Box::new(self.view()))
    }
}

#[async_trait]
impl Estate for Stage<'_> {
    fn kinds(&self) -> &'static [Kind] {
        self.estate.kinds()
    }
    fn pieces(&self, ids: &Ids) -> Vec<Piece> {
        self.estate.pieces(ids)
    }
    async fn scope(&self) -> Result<String, Fault> {
        self.estate.scope().await
    }
    async fn list(&self, freshness: Freshness) -> Result<Listing, Fault> {
        let mut listing = self.estate.list(freshness).await?;
        self.with(|s| {
            let things = std::mem::take(&mut listing.things);
            listing.things = things.into_iter().filter_map(|t| Stage::changed(s, t)).collect();
            listing.things.extend(s.made.values().filter_map(|t| Stage::changed(s, t.clone())));
        });
        Ok(listing)
    }
    async fn get(&self, thing: &Thing) -> Result<Option<Sighting>, Fault> {
        let made = self.with(|s| s.made.get(&thing.id).cloned());
        let seen = match made {
            Some(made) => Some(made),
            None => self.estate.get(thing).await?,
        };
        Ok(seen.and_then(|seen| self.with(|s| Stage::changed(s, seen))))
    }
    async fn create(&self, order: CreateOrder<'_>) -> Outcome<Id> {
        let Some(kind) = self.kinds().iter().find(|k| k.name == order.slot.kind()) else {
            return Outcome::Refused(Fault::Transient(format!("{} is of no known kind", order.slot)));
        };
        let id = format!("<new {}>", order.slot);
        self.with(|s| {
            s.acts.push(Act::Create { slot: order.slot.to_string(), params: order.draft.params.clone() });
            let mark = match kind.markable {
                super::estate::Markable::AtCreate => MarkSeen::Whole(order.mark.clone()),
                super::estate::Markable::Later | super::estate::Markable::Never => MarkSeen::Nothing,
            };
            let made = Sighting {
                kind: kind.name,
                id: id.clone(),
                mark,
                readable: false,
                key: Some(order.draft.key.clone()),
                params: Some(order.draft.hash()),
                born: None,
                phase: Phase::Ready,
            };
            s.made.insert(id.clone(), made);
        });
        Outcome::Done(id)
    }
    async fn mark(&self, thing: &Thing, mark: &Mark) -> Outcome<()> {
        self.with(|s| {
            if !s.made.contains_key(&thing.id) {
                let (slot, id) = (thing.slot.to_string(), thing.id.clone());
                s.acts.push(Act::Mark { slot, id, adopted: mark.adopted.is_some() });
            }
            s.marks.insert(thing.id.clone(), MarkSeen::Whole(mark.clone()));
        });
        Outcome::Done(())
    }
    async fn unmark(&self, thing: &Thing) -> Outcome<()> {
        self.with(|s| {
            s.acts.push(Act::Release { slot: thing.slot.to_string(), id: thing.id.clone() });
            s.marks.insert(thing.id.clone(), MarkSeen::Nothing);
        });
        Outcome::Done(())
    }
    async fn delete(&self, thing: &Thing) -> Outcome<()> {
        self.with(|s| {
            s.acts.push(Act::Delete { slot: thing.slot.to_string(), id: thing.id.clone() });
            s.gone.push(thing.id.clone());
        });
        Outcome::Done(())
    }
    fn drift(&self, piece: &Piece, seen: &Sighting) -> Option<String> {
        let done =
            |s: &State| s.acts.iter().any(|a| matches!(a, Act::Change { slot, .. } if *slot == piece.slot.as_str()));
        if self.with(|s| done(s)) { None } else { self.estate.drift(piece, seen) }
    }
    async fn adjust(&self, piece: &Piece, seen: &Sighting) -> Outcome<()> {
        let what = self.estate.drift(piece, seen).unwrap_or_default();
        self.with(|s| s.acts.push(Act::Change { slot: piece.slot.to_string(), what }));
        Outcome::Done(())
    }
}
