//! Who may write at all: what an owner's metadata, our memory and its status together say. Pure.
use crate::identity::{MarkSeen, OwnerId, Place};
use crate::ledger::Ledger;

/// What the annotation `take-over` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TakeOver {
    /// Start with nothing: a new owner id.
    None,
    /// Take what lives under this place.
    Place(Place),
    /// Take what carries this owner id.
    Owner(OwnerId),
    /// Not a place, not an owner id, not `none`.
    Unclear,
}
impl TakeOver {
    pub(crate) fn parse(text: &str) -> Self {
        match text.trim() {
            "none" => TakeOver::None,
            text => match (text.parse(), text.parse()) {
                (Ok(place), _) => TakeOver::Place(place),
                (_, Ok(owner)) => TakeOver::Owner(owner),
                _ => TakeOver::Unclear,
            },
        }
    }
    fn names(&self, place: &Place, owner: Option<OwnerId>) -> bool {
        match self {
            TakeOver::Place(p) => p == place,
            TakeOver::Owner(o) => Some(*o) == owner,
            TakeOver::None | TakeOver::Unclear => false,
        }
    }
    /// Is this the mark of something that the request names?
    pub(crate) fn means(&self, mark: &MarkSeen) -> bool {
        matches!(mark, MarkSeen::Whole(mark) if self.names(&mark.place, Some(mark.owner)))
    }
}

/// Everything the decision rests on.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) place: Place,
    pub(crate) uid: String,
    pub(crate) deleting: bool,
    /// Our finalizer is on it.
    pub(crate) finalizer: bool,
    pub(crate) owner: Option<OwnerId>,
    pub(crate) ledger: Option<Ledger>,
    /// Owner id and seq in status.
    pub(crate) mirror: Option<(OwnerId, u64)>,
    /// Owner id and seq in this process's memory.
    pub(crate) memory: (Option<OwnerId>, u64),
    pub(crate) take_over: Option<TakeOver>,
}

/// What to do with the owner.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stance {
    /// On its way out and never ours.
    NotOurs,
    /// Never seen: give it an owner id, if nothing in the cloud speaks against it.
    Mint,
    /// It had an owner id; the marks may know it.
    AskMarks,
    /// The ledger is gone, rolled back, or of another object: begin an empty one, keep ids as hints.
    Rebuild(OwnerId),
    /// Moved, restored or copied here: never written.
    Elsewhere(Place),
    /// As `Elsewhere`, and the take-over was asked for.
    Take(OwnerId, Ledger),
    /// As `Elsewhere`, and a new start was asked for.
    StartAnew,
    /// A new start was asked for by an owner that needs none.
    DropRequest,
    /// A take-over is under way.
    Finish(OwnerId, Ledger),
    /// Only our finalizer is missing.
    Refinalize(OwnerId, Ledger),
    /// As it should be.
    Serve(OwnerId, Ledger),
}

impl Facts {
    /// Something speaks against acting on a cached version.
    pub(crate) fn suspicious(&self) -> bool {
        match (&self.owner, &self.ledger) {
            (Some(_), Some(l)) => l.uid != self.uid || l.place != self.place || self.rolled_back(l) || !self.finalizer,
            _ => true,
        }
    }
    fn rolled_back(&self, ledger: &Ledger) -> bool {
        let of_status = self.mirror.filter(|(owner, _)| Some(*owner) == self.owner).map_or(0, |(_, seq)| seq);
        ledger.seq < of_status.max(self.memory.1)
    }
    /// The owner id that status knows, where somebody has written another one over it: ours come with a newer ledger.
    pub(crate) fn overwritten(&self) -> Option<OwnerId> {
        let ledger = self.ledger.as_ref().map_or(0, |l| l.seq);
        let (known, seq) = self.mirror?;
        (self.owner? != known && ledger <= seq).then_some(known)
    }
    /// What to do, and for `DropRequest` what would be done without the request.
    pub(crate) fn stance(&self, may_rebuild: bool, none_only_blocked: bool, check_place: bool) -> Stance {
        let none = self.take_over == Some(TakeOver::None);
        if let Some(ledger) = &self.ledger
            && ledger.place != self.place
            && check_place
        {
            return match (&self.take_over, self.owner) {
                (Some(TakeOver::None), _) => Stance::StartAnew,
                (Some(ask), Some(owner)) if ask.names(&ledger.place, self.owner) => Stance::Take(owner, ledger.clone()),
                _ => Stance::Elsewhere(ledger.place.clone()),
            };
        }
        let known = self.owner.or(self.memory.0).or(self.mirror.map(|(owner, _)| owner));
        if none && !none_only_blocked {
            return Stance::StartAnew;
        }
        match (known, &self.ledger) {
            (None, _) if self.finalizer || self.ledger.is_some() => Stance::AskMarks,
            (None, _) if self.deleting => Stance::NotOurs,
            (None, _) => Stance::Mint,
            (Some(_), _) if none => Stance::DropRequest,
            (Some(_), None) if self.deleting && !self.finalizer => Stance::NotOurs,
            (Some(owner), None) => Stance::Rebuild(owner),
            (Some(owner), Some(l)) if l.uid != self.uid || self.owner.is_none() => Stance::Rebuild(owner),
            (Some(owner), Some(l)) if may_rebuild && self.rolled_back(l) => Stance::Rebuild(owner),
            (Some(owner), Some(l)) if !l.from.is_empty() => Stance::Finish(owner, l.clone()),
            (Some(owner), Some(l)) if !self.finalizer && !self.deleting => Stance::Refinalize(owner, l.clone()),
            (Some(owner), Some(l)) => Stance::Serve(owner, l.clone()),
        }
    }
}

#[cfg(test)]
#[path = "stance_tests.rs"]
mod tests;
