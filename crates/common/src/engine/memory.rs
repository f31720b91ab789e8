//! What this process remembers of its owners: when it first saw each record, on its own boot-time clock. Lost with it.
use super::estate::Thing;
use super::rules::{Rule, Rulebook};
use crate::clock::Boot;
use crate::identity::{OwnerId, Slot};
use crate::ledger::{Ledger, Record, Removal};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnerMemory {
    /// Absence without a record counts in listings sent from then on.
    pub(crate) trusted_from: Boot,
    /// "Unmarked" without a record counts in listings sent from then on: a new owner id says nothing about whose it is.
    unmarked_from: Boot,
    /// First sight of each record now in the ledger.
    records: HashMap<(Slot, Record), Boot>,
    /// First sight of each removal now in the ledger.
    removals: HashMap<Removal, Boot>,
    /// Tokens that the cloud refused for good: sending them again is of no use.
    refused: HashMap<Slot, String>,
    /// When each slot's thing was last adjusted: what was read before that says nothing about it.
    adjusted: HashMap<Slot, Boot>,
    /// When the cloud last acknowledged that our mark went on or off: what it shows before that has settled says nothing.
    retagged: HashMap<Thing, Boot>,
    /// The process that wrote the ledger last seen.
    writer: Option<u64>,
    /// Highest seq seen.
    pub(crate) seq: u64,
    /// The owner id.
    pub(crate) owner: Option<OwnerId>,
    /// The scope its ledger was written for.
    pub(crate) scope: String,
}

/// All owners of this process.
#[derive(Debug)]
pub(crate) struct Memory {
    owners: Mutex<HashMap<String, OwnerMemory>>,
    /// None in a rehearsal, where everything counts from the beginning of time.
    settle: Option<Duration>,
    process: u64,
    rules: Rulebook,
}

impl Memory {
    pub(crate) fn new(settle: Duration, process: u64, rules: Rulebook) -> Self {
        Memory { owners: Mutex::new(HashMap::new()), settle: Some(settle), process, rules }
    }
    /// For a rehearsal: everything seen counts at once, also what a listing shows that others have asked for before.
    pub(crate) fn settle_at_once(&mut self) {
        self.settle = None;
    }
    /// From when on that which began at this moment is settled.
    fn settled(&self, since: Boot) -> Boot {
        self.settle.map_or(Boot::default(), |settle| since + settle)
    }
    fn with<T>(&self, uid: &str, now: Boot, f: impl FnOnce(&mut OwnerMemory) -> T) -> T {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        f(owners.entry(uid.to_owned()).or_insert_with(|| self.fresh(now)))
    }
    fn fresh(&self, now: Boot) -> OwnerMemory {
        let settled = self.settled(now);
        OwnerMemory { trusted_from: settled, unmarked_from: settled, ..OwnerMemory::default() }
    }
    /// What is known of this owner; from now on it is known.
    pub(crate) fn of(&self, uid: &str, now: Boot) -> OwnerMemory {
        self.with(uid, now, |m| m.clone())
    }
    /// This process has just minted the owner id: nothing can carry it yet.
    pub(crate) fn minted(&self, uid: &str, now: Boot) {
        self.with(uid, now, |m| m.trusted_from = Boot::default());
    }
    /// Nothing that was known of this owner counts any more.
    pub(crate) fn distrust(&self, uid: &str, now: Boot) {
        self.with(uid, now, |m| *m = self.fresh(now));
    }
    pub(crate) fn forget(&self, uid: &str) {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
    /// Sees a ledger: notes what is new in it, drops what is no longer in it.
    pub(crate) fn notice(&self, uid: &str, owner: OwnerId, ledger: &Ledger, now: Boot) {
        self.with(uid, now, |m| {
            // a ledger rebuilt elsewhere may lack what this process has intended and made
            let before = m.writer.replace(ledger.writer.process);
            let another = ledger.writer.process != self.process && before.is_some_and(|p| p != ledger.writer.process);
            if another && self.rules.apply(Rule::UnsettledByOthers) {
                m.trusted_from = m.trusted_from.max(self.settled(now));
                m.unmarked_from = m.unmarked_from.max(m.trusted_from);
            }
            m.owner = Some(owner);
            m.scope.clone_from(&ledger.scope);
            m.seq = m.seq.max(ledger.seq);
            let old = std::mem::take(&mut m.records);
            for (slot, record) in &ledger.records {
                let key = (slot.clone(), self.sameness(record));
                let first = old.get(&key).copied().unwrap_or(now);
                m.records.insert(key, first);
            }
            let old = std::mem::take(&mut m.removals);
            for removal in &ledger.removing {
                m.removals.insert(removal.clone(), old.get(removal).copied().unwrap_or(now));
            }
        });
    }
    /// The slot's thing is adjusted now.
    pub(crate) fn adjust(&self, uid: &str, slot: &Slot, now: Boot) {
        self.with(uid, now, |m| m.adjusted.insert(slot.clone(), now));
    }
    /// Was the slot's thing adjusted at or after this moment?
    pub(crate) fn adjusted_since(&self, uid: &str, slot: &Slot, moment: Boot, now: Boot) -> bool {
        self.with(uid, now, |m| m.adjusted.get(slot).is_some_and(|at| *at >= moment))
    }
    /// The cloud has acknowledged that our mark went on or off this thing.
    pub(crate) fn retag(&self, uid: &str, thing: &Thing, now: Boot) {
        self.with(uid, now, |m| {
            m.retagged.retain(|_, at| now < self.settled(*at));
            m.retagged.insert(thing.clone(), now);
        });
    }
    /// From when on the mark shown on this thing counts again.
    pub(crate) fn mark_counts_from(&self, uid: &str, thing: &Thing, now: Boot) -> Boot {
        self.with(uid, now, |m| m.retagged.get(thing).map_or(Boot::default(), |at| self.settled(*at)))
    }
    /// The cloud refused this token for good.
    pub(crate) fn refuse(&self, uid: &str, slot: &Slot, token: String, now: Boot) {
        self.with(uid, now, |m| drop(m.refused.insert(slot.clone(), token)));
    }
    /// Did the cloud refuse the token of this record for good?
    pub(crate) fn refused(&self, uid: &str, slot: &Slot, record: Option<&Record>, now: Boot) -> bool {
        let Some(Record::Intended { token: Some(token), .. }) = record else { return false };
        self.with(uid, now, |m| m.refused.get(slot) == Some(token))
    }
    /// What makes two records the same: everything.
    fn sameness(&self, record: &Record) -> Record {
        let mut same = record.clone();
        if let Record::Intended { listed, attempt, .. } = &mut same {
            if *attempt > 1 {
                self.rules.apply(Rule::RenewalIsNewRecord);
            }
            if !self.rules.on(Rule::RenewalIsNewRecord) {
                (*listed, *attempt) = (jiff::Timestamp::UNIX_EPOCH, 0);
            }
        }
        same
    }
    /// From when on absence counts for this record, or for none.
    pub(crate) fn trusted_from(&self, uid: &str, slot: &Slot, record: Option<&Record>, now: Boot) -> Boot {
        self.with(uid, now, |m| match record {
            None => m.trusted_from,
            Some(record) => self.settled(m.records.get(&(slot.clone(), self.sameness(record))).copied().unwrap_or(now)),
        })
    }
    /// From when on "unmarked" counts for this record, or for none.
    pub(crate) fn unmarked_from(&self, uid: &str, slot: &Slot, record: Option<&Record>, now: Boot) -> Boot {
        match record {
            None => self.with(uid, now, |m| {
                let minted = m.trusted_from < m.unmarked_from;
                if minted && !self.rules.apply(Rule::UnmarkedSettlesForNew) { m.trusted_from } else { m.unmarked_from }
            }),
            Some(_) => self.trusted_from(uid, slot, record, now),
        }
    }
    /// From when on NotFound counts for this removal.
    pub(crate) fn removal_trusted_from(&self, uid: &str, removal: &Removal, now: Boot) -> Boot {
        self.with(uid, now, |m| self.settled(m.removals.get(removal).copied().unwrap_or(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rehearsal_believes_a_listing_that_is_older_than_its_first_look_at_the_owner() {
        let at = |seconds| Boot(Duration::from_secs(seconds));
        let slot = Slot::new("disk", Some("a")).unwrap();
        let mut memory = Memory::new(Duration::from_mins(5), 1, Rulebook::production());
        // given an owner first seen, and its id minted, after a shared listing was sent
        memory.minted("u", at(100));
        assert_eq!(memory.unmarked_from("u", &slot, None, at(100)), at(400));
        memory.forget("u");
        memory.settle_at_once();
        memory.minted("u", at(100));
        let counts_from =
            [memory.trusted_from("u", &slot, None, at(100)), memory.unmarked_from("u", &slot, None, at(100))];
        assert!(counts_from.iter().all(|from| *from <= at(99)), "{counts_from:?}");
    }
}
