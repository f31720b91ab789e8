//! Writing the ledger: guarded by resourceVersion and by the ledger itself, never by hope.
use super::Engine;
use super::owner::{OwnerApi, OwnerPatch, OwnerView, Patched};
use super::rules::Rule;
use crate::identity::OwnerId;
use crate::ledger::{Ledger, MOST_BYTES};
use crate::names;
use std::time::Duration;

/// What must be unchanged for a write to be tried again after a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Before a deed: uid, generation, deletion, pause, our ledger.
    Intent,
    /// After a deed: uid and our ledger.
    Id,
}

/// Why a pass ends at a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// The owner is gone.
    Gone,
    /// Something changed under us; the next pass starts from what is stored.
    Overtaken(&'static str),
    /// The API server said no.
    Refused(String),
    /// The API server cannot be reached.
    Unavailable(String),
    /// Our right to write ends too soon.
    Fenced,
    /// The ledger would be too large.
    Full(usize),
}

/// One write of the ledger.
pub(crate) struct Change<'c> {
    pub(crate) owner: OwnerId,
    /// The ledger the change was decided on.
    pub(crate) old: Option<&'c Ledger>,
    pub(crate) new: Ledger,
    pub(crate) guard: Guard,
    /// What else goes into the patch, built on the version it meets.
    pub(crate) more: &'c (dyn Fn(&OwnerView, &mut OwnerPatch) + Sync),
}

/// How often and how patiently an id is stored: it is the only memory of a deed.
const ID_TRIES: u32 = 24;
const INTENT_TRIES: u32 = 3;

impl Engine {
    /// Stores the new ledger in place of the old one.
    pub(crate) async fn store(
        &self,
        api: &dyn OwnerApi,
        base: &OwnerView,
        change: Change<'_>,
    ) -> Result<(OwnerView, Ledger), Ended> {
        let Change { owner, old, mut new, guard, more } = change;
        new.seq = old.map_or(new.seq, |l| l.seq.max(new.seq) + 1);
        new.writer = self.next_writer();
        let text = new.to_text();
        if guard == Guard::Intent && text.len() > MOST_BYTES {
            return Err(Ended::Full(text.len()));
        }
        let mut view = base.clone();
        let tries = if guard == Guard::Id { ID_TRIES } else { INTENT_TRIES };
        let mut last = String::new();
        for attempt in 0..tries {
            if attempt > 0 && guard == Guard::Id {
                let pause = Duration::from_millis(100 << attempt.min(5));
                self.clock.sleep_until(self.clock.boot() + self.random.jitter(pause, 50)).await;
            }
            if !self.in_lease() {
                return Err(Ended::Fenced);
            }
            let mut patch = OwnerPatch::default();
            patch.annotations.insert(names::ledger(self.settings.controller), Some(text.clone()));
            patch.annotations.insert(names::owner_id(self.settings.controller), Some(owner.to_string()));
            more(&view, &mut patch);
            match api.patch(&view, &patch).await {
                Patched::Stored(stored) => return Ok((self.stored(*stored, owner, &new), new)),
                Patched::Gone => return Err(Ended::Gone),
                Patched::Refused(why) => return Err(Ended::Refused(why)),
                Patched::Conflict => "conflict".clone_into(&mut last),
                Patched::Unknown(why) => last = why,
            }
            let now = match api.get(&view.namespace, &view.name).await {
                Ok(Some(now)) => now,
                Ok(None) => return Err(Ended::Gone),
                Err(e) if guard == Guard::Intent => return Err(Ended::Unavailable(e.to_string())),
                Err(_) => continue,
            };
            if now.uid != base.uid {
                return Err(Ended::Gone);
            }
            // a ledger that cannot be read is not an absent one
            let Ok(stored) = self.ledger_of(&now) else {
                return Err(Ended::Overtaken("the ledger cannot be read any more"));
            };
            if let Some(stored) = &stored
                && self.is_this_write(stored, &new)
            {
                return Ok((self.stored(now, owner, &new), new));
            }
            // a first ledger rests on there being none; whoever was frozen in between may find it stripped, not absent
            if old.is_none() {
                return Err(Ended::Overtaken("the owner changed before its first ledger was stored"));
            }
            if stored.as_ref().map(Ledger::stamp) != old.map(Ledger::stamp) && self.rules.apply(Rule::GuardLedger) {
                return Err(Ended::Overtaken("another write of the ledger came first"));
            }
            let edited = intent_differs(base, &now);
            if guard == Guard::Intent && edited && self.rules.apply(Rule::GuardIntent) {
                return Err(Ended::Overtaken("the owner changed meanwhile"));
            }
            if guard == Guard::Id && now.generation != base.generation && !self.rules.apply(Rule::IdPatchSurvivesEdit) {
                return Err(Ended::Overtaken("the owner changed meanwhile"));
            }
            view = now;
        }
        Err(Ended::Unavailable(last))
    }

    /// The reply to one of our own earlier writes must not pass for the reply to this one.
    fn is_this_write(&self, stored: &Ledger, new: &Ledger) -> bool {
        if stored.stamp() == new.stamp() {
            return true;
        }
        let like = stored.seq == new.seq && stored.writer.process == new.writer.process;
        like && !self.rules.apply(Rule::ExactWrite)
    }

    fn stored(&self, view: OwnerView, owner: OwnerId, ledger: &Ledger) -> OwnerView {
        self.memory.notice(&view.uid, owner, ledger, self.clock.boot());
        view
    }
}

/// Did anything change that an intent rests on?
pub(crate) fn intent_differs(base: &OwnerView, now: &OwnerView) -> bool {
    let held =
        |v: &OwnerView| (v.annotations.contains_key(names::PAUSED), v.annotations.contains_key(names::DELETE_FOR_MOVE));
    base.generation != now.generation || base.deleting != now.deleting || held(base) != held(now)
}
