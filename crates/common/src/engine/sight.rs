//! What is seen of one slot: the listing and the recorded id, sorted by whose they are. Pure.
use super::estate::{Kind, Listing, Phase, Sighting};
use crate::identity::{MarkSeen, OwnerId, Place, Slot};
use crate::ledger::{Ledger, Record, Removal};

/// Whose a thing is, for one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Our owner id in our place.
    Ours,
    /// No mark, or a part of ours.
    Nobody,
    /// Somebody else's, or our owner id under another place.
    Foreign,
}

/// Who we are, for telling ours from others'.
#[derive(Clone, Debug)]
pub struct Identity<'a> {
    /// Our owner id.
    pub owner: OwnerId,
    /// Our place.
    pub place: &'a Place,
}
impl Identity<'_> {
    /// Whose is this thing?
    pub fn whose(&self, mark: &MarkSeen) -> Whose {
        match mark {
            MarkSeen::Nothing => Whose::Nobody,
            MarkSeen::Whole(m) if m.owner == self.owner && m.place == *self.place => Whose::Ours,
            MarkSeen::Part { owner, place, .. }
                if owner.is_none_or(|o| o == self.owner) && place.as_ref().is_none_or(|p| p == self.place) =>
            {
                Whose::Nobody
            }
            MarkSeen::Whole(_) | MarkSeen::Part { .. } | MarkSeen::Garbled(_) => Whose::Foreign,
        }
    }
    /// Does its mark name this slot, for our owner id, wherever it lives?
    fn names_slot(&self, mark: &MarkSeen, slot: &Slot) -> bool {
        matches!(mark, MarkSeen::Whole(m) if m.owner == self.owner && m.slot == *slot)
    }
}

/// What is known of the recorded id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// There is no record with an id.
    NoId,
    /// It is there.
    Here(Box<Sighting>, Whose),
    /// The cloud says there is none, and that counts.
    Gone,
    /// The cloud says there is none, but too early to count.
    TooEarly,
}

/// Everything seen of one slot.
#[allow(clippy::struct_excessive_bools)] // what a table of decisions looks at
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Marked ours for this slot, not on their way out by our own list.
    pub ours: Vec<Sighting>,
    /// On the natural key without a mark, alive.
    pub unmarked: Vec<Sighting>,
    /// Alive on the unique natural key with somebody else's mark, or marked for our slot from another place.
    pub foreign: Option<Sighting>,
    /// The recorded id.
    pub recorded: Recorded,
    /// Absence in this listing counts.
    pub trusted: bool,
    /// "Unmarked" in this listing counts.
    pub unmarked_counts: bool,
    /// "Unmarked" on the recorded id counts.
    pub settled: bool,
    /// Our mark went on or off the recorded id, and this answer is too early to show it.
    pub retagged: bool,
    /// The cloud refused the token of the open intent for good: it is left to settle.
    pub refused: bool,
}

/// Sorts a listing for one slot. `key` is the natural key the piece wants or has.
pub fn sort(
    me: &Identity<'_>,
    listing: &Listing,
    ledger: &Ledger,
    kind: &Kind,
    slot: &Slot,
    key: Option<&str>,
) -> Sight {
    let mut sight = Sight {
        ours: Vec::new(),
        unmarked: Vec::new(),
        foreign: None,
        recorded: Recorded::NoId,
        trusted: false,
        unmarked_counts: false,
        settled: false,
        retagged: false,
        refused: false,
    };
    let leaving = |id: &str| ledger.removing.iter().any(|r: &Removal| r.slot == *slot && r.id == id);
    let elsewhere = |id: &str| ledger.records.iter().any(|(s, r)| s != slot && r.id().is_some_and(|i| i == id));
    let recorded = ledger.records.get(slot).and_then(Record::id);
    for thing in listing.things.iter().filter(|t| t.kind == kind.name) {
        let on_key = key.is_some() && thing.key.as_deref() == key;
        let alive = thing.phase != Phase::Deleting;
        let named = me.names_slot(&thing.mark, slot);
        match me.whose(&thing.mark) {
            Whose::Ours if named && !leaving(&thing.id) => sight.ours.push(thing.clone()),
            // what another slot or the list of removals has recorded is nobody's find here
            Whose::Nobody if on_key && alive && !leaving(&thing.id) && !elsewhere(&thing.id) => {
                sight.unmarked.push(thing.clone());
            }
            Whose::Foreign if alive && (named || on_key && kind.unique_key) && recorded != Some(&thing.id) => {
                sight.foreign = Some(thing.clone());
            }
            Whose::Ours | Whose::Nobody | Whose::Foreign => {}
        }
    }
    sight
}
