//! Owners that came from elsewhere: taking their things over, or starting with nothing.
use super::estate::{Freshness, Listing, Outcome, Phase, Sighting, Thing};
use super::pass::{Over, Pass, blocked, hints};
use super::report::Progress;
use super::rules::Rule;
use super::stance::{Facts, TakeOver};
use super::write::{Ended, Guard};
use crate::identity::{Mark, MarkSeen, OwnerId, Place};
use crate::ledger::{Ledger, Record};
use crate::names::{self, reason};
use std::collections::BTreeSet;
use std::time::Duration;

impl Pass<'_> {
    /// Takes the place first, in one guarded patch; the marks follow in later passes.
    pub(crate) async fn take(&mut self, owner: OwnerId, old: Ledger) -> Result<Progress, Over> {
        self.check_scope(&old).await?;
        let engine = self.engine;
        let mut ledger = Ledger::empty(&self.view.uid, &self.place, engine.next_writer());
        ledger.seq = old.seq;
        ledger.scope.clone_from(&old.scope);
        (ledger.records, ledger.removing) = hints(&old, &engine.rules);
        ledger.from.clone_from(&old.from);
        if !ledger.from.contains(&old.place) {
            ledger.from.push(old.place.clone());
        }
        engine.memory.distrust(&self.view.uid, self.now());
        let done = self.write(owner, Some(&old), ledger, Guard::Intent, &|v, p| engine.finalize(v, p)).await?;
        self.note(false, "TakingOver", format!("takes over from place {}", old.place));
        self.mirror(owner, &done);
        Ok(self.waiting("takes over what was made elsewhere", Duration::ZERO))
    }

    /// There is no ledger, but things carry the place or owner id that the request names.
    pub(crate) async fn take_by_marks(
        &mut self,
        ask: &TakeOver,
        listing: &Listing,
        scope: String,
    ) -> Result<Progress, Over> {
        let alive = || listing.things.iter().filter(|t| t.phase != Phase::Deleting);
        let whole = |mark: &'_ MarkSeen| if let MarkSeen::Whole(mark) = mark { Some(mark.clone()) } else { None };
        let named = alive().filter(|t| ask.means(&t.mark)).filter_map(|t| whole(&t.mark));
        let owners: BTreeSet<OwnerId> = named.map(|mark| mark.owner).collect();
        let [owner] = owners.iter().collect::<Vec<_>>()[..] else {
            let message = format!("{} names {} owner ids; name one", names::TAKE_OVER, owners.len());
            return Ok(blocked(reason::TAKEOVER_REQUIRED, message));
        };
        let marks = alive().filter_map(|t| whole(&t.mark));
        let from: BTreeSet<Place> =
            marks.filter(|m| m.owner == *owner && m.place != self.place).map(|m| m.place).collect();
        let engine = self.engine;
        let old = engine.ledger_of(&self.view).ok().flatten();
        let mut ledger = Ledger::empty(&self.view.uid, &self.place, engine.next_writer());
        ledger.scope = scope;
        ledger.seq = ledger.seq.max(engine.mirror_of(&self.view).map_or(0, |(_, seq)| seq + 1));
        ledger.from = from.into_iter().collect();
        engine.memory.distrust(&self.view.uid, self.now());
        let keep = !ledger.from.is_empty();
        let done = self
            .write(*owner, old.as_ref(), ledger, Guard::Intent, &|v, p| {
                engine.finalize(v, p);
                if !keep {
                    p.annotations.insert(names::TAKE_OVER.to_owned(), None);
                }
            })
            .await?;
        self.mirror(*owner, &done);
        Ok(self.waiting("takes over what was made before", Duration::ZERO))
    }

    /// New marks on; no create and no delete until a fresh, settled listing shows nothing under the old places.
    pub(crate) async fn finish_take_over(&mut self, owner: OwnerId, ledger: Ledger) -> Result<Progress, Over> {
        let engine = self.engine;
        engine.memory.notice(&self.view.uid, owner, &ledger, self.now());
        let trusted = engine.memory.of(&self.view.uid, self.now()).trusted_from;
        let listing = self.list(Freshness::SentAfter(self.now())).await?;
        let counts =
            |m: &Mark| m.owner == owner && ledger.from.contains(&m.place) && engine.rules.apply(Rule::FromCounts);
        let old: Vec<(Thing, Mark)> = listing
            .things
            .iter()
            .filter(|t| t.phase != Phase::Deleting)
            .filter_map(|t| match &t.mark {
                MarkSeen::Whole(m) if counts(m) => Some((t, m)),
                _ => None,
            })
            .map(|(t, m)| {
                let mark = Mark { place: self.place.clone(), ..m.clone() };
                (Thing { slot: m.slot.clone(), id: t.id.clone() }, mark)
            })
            .collect();
        if old.is_empty() {
            if listing.sent < trusted {
                let left = trusted.since(self.now());
                return Ok(self.waiting("waits until nothing from elsewhere can still show up", left));
            }
            let mut new = ledger.clone();
            new.from.clear();
            let done = self
                .write(owner, Some(&ledger), new, Guard::Intent, &|v, p| {
                    if v.annotations.contains_key(names::TAKE_OVER) {
                        p.annotations.insert(names::TAKE_OVER.to_owned(), None);
                    }
                    engine.finalize(v, p);
                })
                .await?;
            self.note(false, "TakenOver", "everything carries this place now".to_owned());
            self.mirror(owner, &done);
            return Ok(self.waiting("taken over", Duration::ZERO));
        }
        // what was marked a moment ago shows its old mark until the cloud has caught up
        let shows_from = |thing: &Thing| engine.memory.mark_counts_from(&self.view.uid, thing, self.now());
        let due: Vec<&(Thing, Mark)> = old.iter().filter(|(thing, _)| listing.sent >= shows_from(thing)).collect();
        if due.is_empty() {
            return Ok(self.waiting(format!("{} things carry an old place", old.len()), engine.settings.timing.poll));
        }
        // a guarded write just before: a stale view must not mark anything
        let done = self.write(owner, Some(&ledger), ledger.clone(), Guard::Intent, &|_, _| {}).await?;
        self.mirror(owner, &done);
        let until = listing.sent + engine.settings.timing.window;
        for (thing, mark) in due {
            if engine.may_act(until).is_err() {
                break;
            }
            match self.estate.mark(thing, mark).await {
                Outcome::Done(()) => engine.memory.retag(&self.view.uid, thing, self.now()),
                Outcome::Unknown(_) => {}
                Outcome::Refused(fault) => return Err(Progress::Failed(fault)),
            }
        }
        Ok(self.waiting(format!("{} things carry an old place", old.len()), engine.settings.timing.poll))
    }

    /// `take-over: none`: a new owner id and an empty ledger; what the former one made, or may have made, is kept and named.
    pub(crate) async fn start_anew(&mut self, facts: &Facts) -> Result<Progress, Over> {
        let scope = self.estate.scope().await?;
        let listing = self.list(Freshness::SentAfter(self.now())).await?;
        let marked = |t: &Sighting| matches!(&t.mark, MarkSeen::Whole(mark) if Some(mark.owner) == facts.owner);
        let records = || facts.ledger.iter().flat_map(|ledger| &ledger.records);
        let recorded = |t: &Sighting| {
            let by_id = |record: &Record| record.id() == Some(&t.id);
            let by_key = |record: &Record| {
                t.mark == MarkSeen::Nothing && record.key().is_some() && record.key() == t.key.as_deref()
            };
            records().any(|(slot, record)| slot.kind() == t.kind && (by_id(record) || by_key(record)))
        };
        let alive = listing.things.iter().filter(|t| t.phase != Phase::Deleting);
        let left = alive.filter(|t| marked(t) || recorded(t)).map(|t| format!("{} {}", t.kind, t.id)).collect();
        self.keep_all(left);
        self.begin(scope, None).await
    }

    /// Names what an owner that starts with nothing leaves alone.
    pub(crate) fn keep_all(&mut self, left: Vec<String>) {
        for thing in left {
            self.note(true, "Kept", format!("{thing} stays: this owner starts with nothing"));
        }
    }

    /// `take-over: none` on an owner that needs none is taken off unread.
    pub(crate) async fn drop_request(&mut self) -> Result<Progress, Over> {
        let mut patch = super::owner::OwnerPatch::default();
        patch.annotations.insert(names::TAKE_OVER.to_owned(), None);
        if !self.engine.in_lease() {
            return Err(Ended::Fenced.into());
        }
        match self.api.patch(&self.view, &patch).await {
            super::owner::Patched::Stored(view) => self.view = *view,
            super::owner::Patched::Gone => return Ok(Progress::Gone),
            _ => return Ok(Progress::Stale("the owner changed meanwhile".to_owned())),
        }
        Ok(self.waiting("a needless request was taken off", Duration::ZERO))
    }
}
