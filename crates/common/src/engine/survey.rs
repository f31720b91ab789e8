//! Looks at every slot of an owner: the listing for all, a read by id for what the listing does not show.
use super::decide::Table;
use super::estate::{Fault, Kind, Listing, Sighting, Thing};
use super::pass::{Over, Pass};
use super::report::Progress;
use super::rules::Rule;
use super::sight::{self, Identity, Recorded, Sight};
use crate::clock::Boot;
use crate::identity::{OwnerId, Slot};
use crate::ledger::{Ledger, Record, Removal};
use crate::names::reason;
use std::collections::HashMap;

/// A read by id: when it was sent, and what it said.
pub(crate) type Answers = HashMap<Thing, (Boot, Option<Sighting>)>;

impl Pass<'_> {
    /// The kind of a slot; a slot of no known kind comes from another version of this controller.
    pub(crate) fn kind(&self, slot: &Slot) -> Result<&'static Kind, Over> {
        let found = self.estate.kinds().iter().find(|k| k.name == slot.kind());
        found.ok_or_else(|| {
            let message = format!("the ledger names {slot}, a kind this version does not know");
            Progress::Failed(Fault::Terminal { reason: reason::LEDGER_TOO_NEW, message })
        })
    }
    pub(crate) fn table<'k>(&'k self, kind: &'k Kind) -> Table<'k> {
        Table { kind, timing: &self.engine.settings.timing, rules: &self.engine.rules }
    }
    pub(crate) fn identity(&self, owner: OwnerId) -> Identity<'_> {
        Identity { owner, place: &self.place }
    }

    /// Asks by id for everything recorded that the listing does not show; for everything if `afresh`.
    pub(crate) async fn ask(&self, ledger: &Ledger, listing: &Listing, afresh: bool) -> Result<Answers, Over> {
        let recorded = ledger.records.iter().filter_map(|(slot, r)| Some((slot, r.id()?)));
        let leaving = ledger.removing.iter().map(|r| (&r.slot, &r.id));
        let mut wanted: Vec<(Thing, bool)> = recorded
            .map(|(slot, id)| (slot, id, afresh))
            .chain(leaving.map(|(slot, id)| (slot, id, true)))
            .map(|(slot, id, fresh)| (Thing { slot: slot.clone(), id: id.clone() }, fresh))
            .collect();
        wanted.retain(|(thing, fresh)| *fresh || !listing.things.iter().any(|t| shows(t, thing)));
        let asked = wanted.into_iter().map(|(thing, _)| async move {
            let sent = self.now();
            let answer = self.estate.get(&thing).await;
            (thing, sent, answer)
        });
        let mut answers = Answers::new();
        for (thing, sent, answer) in futures::future::join_all(asked).await {
            answers.insert(thing, (sent, answer?));
        }
        Ok(answers)
    }

    /// Everything known of one slot.
    pub(crate) fn sight(
        &self,
        owner: OwnerId,
        ledger: &Ledger,
        listing: &Listing,
        answers: &Answers,
        slot: &Slot,
        key: Option<&str>,
    ) -> Result<Sight, Over> {
        let kind = self.kind(slot)?;
        let me = self.identity(owner);
        let record = ledger.records.get(slot);
        let mut sight = sight::sort(&me, listing, ledger, kind, slot, key);
        let trusted_from = self.engine.memory.trusted_from(&self.view.uid, slot, record, self.now());
        sight.trusted = listing.sent >= trusted_from;
        sight.unmarked_counts =
            listing.sent >= self.engine.memory.unmarked_from(&self.view.uid, slot, record, self.now());
        sight.refused = self.engine.memory.refused(&self.view.uid, slot, record, self.now());
        if let Some(id) = record.and_then(Record::id) {
            let thing = Thing { slot: slot.clone(), id: id.clone() };
            (sight.recorded, sight.settled, sight.retagged) =
                self.recorded(&me, listing, answers, &thing, trusted_from);
        }
        Ok(sight)
    }

    /// Everything known of a thing on its way out.
    pub(crate) fn sight_of_removal(
        &self,
        owner: OwnerId,
        listing: &Listing,
        answers: &Answers,
        removal: &Removal,
    ) -> Sight {
        let trusted_from = self.engine.memory.removal_trusted_from(&self.view.uid, removal, self.now());
        let thing = Thing { slot: removal.slot.clone(), id: removal.id.clone() };
        let me = self.identity(owner);
        let (recorded, settled, retagged) = self.recorded(&me, listing, answers, &thing, trusted_from);
        Sight {
            ours: Vec::new(),
            unmarked: Vec::new(),
            foreign: None,
            recorded,
            trusted: settled,
            unmarked_counts: settled,
            settled,
            retagged,
            refused: false,
        }
    }

    /// What is known of one thing; whether that has settled; whether its mark is too new to be seen.
    fn recorded(
        &self,
        me: &Identity<'_>,
        listing: &Listing,
        answers: &Answers,
        thing: &Thing,
        trusted_from: Boot,
    ) -> (Recorded, bool, bool) {
        let (sent, seen) = match answers.get(thing) {
            Some((sent, seen)) => (*sent, seen.as_ref()),
            None => (listing.sent, listing.things.iter().find(|t| shows(t, thing))),
        };
        let settled = sent >= trusted_from;
        let recorded = match seen {
            Some(seen) => Recorded::Here(Box::new(seen.clone()), me.whose(&seen.mark)),
            None if settled || !self.engine.rules.apply(Rule::SettleNotFound) => Recorded::Gone,
            None => Recorded::TooEarly,
        };
        let retagged = sent < self.engine.memory.mark_counts_from(&self.view.uid, thing, self.now());
        (recorded, settled, retagged)
    }
}

fn shows(seen: &Sighting, thing: &Thing) -> bool {
    seen.id == thing.id && seen.kind == thing.slot.kind()
}
