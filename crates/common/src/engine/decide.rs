//! The two tables: what a wanted piece needs, and what an unwanted one needs. Pure: record and sight in, step out.
use super::estate::{Draft, Kind, Markable, Phase, Sighting, Want, WhenFailed, WhenGone};
use super::rules::{Rule, Rulebook};
use super::sight::{Recorded, Sight, Whose};
use super::timing::Timing;
use crate::identity::{MarkSeen, Then};
use crate::ledger::{Id, Record};
use crate::names::reason;
use std::time::Duration;

/// The next step for a wanted piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Up {
    /// Store a new intent, then create.
    Intend,
    /// Store the same intent anew, then create with the same token.
    Renew,
    /// Record what carries our mark.
    Note {
        /// Its id.
        id: Id,
        /// What its mark says, if we did not make it.
        adopted: Option<Then>,
    },
    /// Record what must be ours though it carries no mark yet.
    NoteUnmarked(Id),
    /// Record as adopted, then mark.
    Claim {
        /// Its id.
        id: Id,
        /// What happens at the end.
        then: Then,
    },
    /// Record somebody else's thing.
    Reference(Id),
    /// Put the mark on.
    Mark(Id),
    /// Put on the list of removals.
    Remove(Id),
    /// Not now.
    Wait(&'static str),
    /// Not until somebody changes something.
    Refuse {
        /// One of [`crate::names::reason`].
        reason: &'static str,
        /// For people.
        message: String,
    },
    /// It is there, ready, ours.
    Done(Box<Sighting>),
}

/// The next step for a thing that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Down {
    /// Delete it.
    Delete(Id),
    /// Take the mark off.
    Unmark(Id),
    /// Put the mark on: it is deleted once it can be told.
    Mark(Id),
    /// Record what must be ours though it carries no mark.
    NoteUnmarked(Id),
    /// Drop the record; what is named stays in the cloud.
    Forget {
        /// Ids that stay.
        kept: Vec<Id>,
    },
    /// Not now.
    Wait(&'static str),
    /// Nothing of ours in this slot.
    Clear,
}

/// What both tables look at, beside record and sight.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// The kind of the slot.
    pub kind: &'a Kind,
    /// The times of the cloud.
    pub timing: &'a Timing,
    /// Which rules hold.
    pub rules: &'a Rulebook,
}

const SECOND: Duration = Duration::from_secs(1);

fn no(reason: &'static str, message: String) -> Up {
    Up::Refuse { reason, message }
}
/// Of several, the oldest that has not failed: whatever the order of a listing, it is the same one.
fn alive(things: &[Sighting]) -> Option<&Sighting> {
    let rank = |t: &Sighting| (matches!(t.phase, Phase::Failed(_)), t.born.is_none(), t.born);
    let living = things.iter().filter(|t| t.phase != Phase::Deleting);
    living.min_by(|a, b| (rank(a), &a.id).cmp(&(rank(b), &b.id)))
}

/// What an open intent may call its own among what carries no mark.
enum Inferred<'s> {
    /// Nothing fits.
    Nothing,
    /// Exactly this one.
    Own(&'s Sighting),
    /// One fits, but there may be another that is not shown yet.
    Early,
    /// More than one fits: nobody knows which.
    Several(Vec<Id>),
}

impl Table<'_> {
    /// What the mark says of adoption; it outlives every ledger.
    fn adopted(&self, thing: &Sighting) -> Option<Then> {
        match &thing.mark {
            MarkSeen::Whole(mark) => mark.adopted.filter(|_| self.rules.apply(Rule::AdoptedMarkOnRebuild)),
            MarkSeen::Nothing | MarkSeen::Part { .. } | MarkSeen::Garbled(_) => None,
        }
    }

    /// The unmarked things that an open intent may call its own: equal attributes, born after the intent's listing and
    /// before the start window and the call were over.
    fn inferred<'s>(&self, record: Option<&Record>, sight: &'s Sight) -> Inferred<'s> {
        let Some(Record::Intended { params, listed, .. }) = record else { return Inferred::Nothing };
        if self.kind.markable == Markable::AtCreate {
            return Inferred::Nothing;
        }
        // dates of the cloud come in whole seconds: one second either way
        let (from, until) = (*listed - SECOND, *listed + self.timing.window + self.timing.call + SECOND);
        let fits = |t: &&Sighting| {
            let fits = t.params.as_ref() == Some(params) && t.born.is_some_and(|born| from <= born && born <= until);
            fits || !self.rules.apply(Rule::InferenceBounds)
        };
        let fit: Vec<&Sighting> = sight.unmarked.iter().filter(fits).collect();
        let complete = self.kind.unique_key || sight.trusted || !self.rules.apply(Rule::InferOnlyOne);
        match fit[..] {
            [] => Inferred::Nothing,
            [own] if complete => Inferred::Own(own),
            [first, ..] if !self.rules.on(Rule::InferOnlyOne) => Inferred::Own(first),
            _ if !complete => Inferred::Early,
            _ => Inferred::Several(fit.iter().map(|t| t.id.clone()).collect()),
        }
    }

    /// What a wanted piece needs.
    pub fn up(&self, record: Option<&Record>, want: &Want, sight: &Sight) -> Up {
        let (draft, adopt) = match want {
            Want::Use { id } => return self.reference(record, id, sight),
            Want::Make { draft, adopt } => (draft.as_ref(), *adopt),
        };
        match record {
            None | Some(Record::Intended { .. }) => self.make(record, draft, adopt, sight),
            Some(Record::Created { id, .. } | Record::Adopted { id, .. }) => self.keep(record, id, sight),
            // a piece that used somebody else's thing and now wants its own
            Some(Record::Referenced { .. }) => self.make(None, draft, adopt, sight),
        }
    }

    /// Up, without an id.
    fn make(&self, record: Option<&Record>, draft: Option<&Draft>, adopt: Option<Then>, sight: &Sight) -> Up {
        // What is ours is recorded even where another could not be made now.
        if let Some(ours) = alive(&sight.ours) {
            self.rules.apply(Rule::UpNote);
            return Up::Note { id: ours.id.clone(), adopted: self.adopted(ours) };
        }
        if !sight.ours.is_empty() {
            return Up::Wait("the previous one is being deleted");
        }
        let Some(draft) = draft else { return Up::Wait("waits for what it needs") };
        if let Some(other) = &sight.foreign {
            self.rules.apply(Rule::UpConflict);
            return no(reason::OWNERSHIP_CONFLICT, format!("{} {} belongs to another owner", other.kind, other.id));
        }
        match self.inferred(record, sight) {
            Inferred::Nothing => {}
            Inferred::Own(own) => {
                self.rules.apply(Rule::UpInfer);
                return Up::NoteUnmarked(own.id.clone());
            }
            Inferred::Early => return Up::Wait("another one like it may still show up"),
            Inferred::Several(ids) => {
                let message =
                    format!("one of {} was made here, nobody can say which: delete all but one", ids.join(", "));
                return no(reason::EXISTS_UNOWNED, message);
            }
        }
        if let Some(unmarked) = sight.unmarked.first()
            && (self.kind.unique_key || adopt.is_some())
        {
            if !sight.unmarked_counts && self.rules.apply(Rule::LateTag) {
                return Up::Wait("its tags may still come");
            }
            let id = unmarked.id.clone();
            return match adopt {
                Some(then) if self.kind.markable != Markable::Never => {
                    self.rules.apply(Rule::UpClaim);
                    Up::Claim { id, then }
                }
                _ => {
                    self.rules.apply(Rule::UpExistsUnowned);
                    no(reason::EXISTS_UNOWNED, format!("{} {id} exists and carries no mark", self.kind.name))
                }
            };
        }
        match record {
            None if sight.trusted => {
                self.rules.apply(Rule::UpIntend);
                Up::Intend
            }
            Some(Record::Intended { token: Some(_), params, .. }) if *params == draft.hash() && !sight.refused => {
                self.rules.apply(Rule::UpRenew);
                Up::Renew
            }
            Some(_) if sight.trusted || !self.rules.apply(Rule::SettleUp) => {
                self.rules.apply(Rule::UpIntendAnew);
                Up::Intend
            }
            None if !self.rules.apply(Rule::SettleUp) => Up::Intend,
            None | Some(_) => Up::Wait("an earlier create may still show up"),
        }
    }

    /// Up, with an id.
    fn keep(&self, record: Option<&Record>, id: &Id, sight: &Sight) -> Up {
        let release = matches!(record, Some(Record::Adopted { then: Then::Release, .. }));
        let other = sight.ours.iter().find(|t| t.id != *id && t.phase != Phase::Deleting);
        let (seen, whose) = match &sight.recorded {
            Recorded::Gone => {
                if let Some(other) = other {
                    self.rules.apply(Rule::UpNote);
                    return Up::Note { id: other.id.clone(), adopted: self.adopted(other) };
                }
                if release {
                    self.rules.apply(Rule::UpReferenceLost);
                    return no(reason::REFERENCE_LOST, format!("adopted {} {id} is gone", self.kind.name));
                }
                self.rules.apply(Rule::UpGone);
                return match self.kind.gone {
                    WhenGone::Recreate => Up::Intend,
                    WhenGone::Fail => no(reason::RESOURCE_LOST, format!("{} {id} is gone", self.kind.name)),
                };
            }
            Recorded::TooEarly | Recorded::NoId => return Up::Wait("not visible yet"),
            Recorded::Here(seen, whose) => (seen, *whose),
        };
        if let Some(other) = other {
            self.rules.apply(Rule::UpDuplicate);
            return Up::Remove(other.id.clone());
        }
        if whose == Whose::Foreign {
            self.rules.apply(Rule::UpConflict);
            return no(reason::OWNERSHIP_CONFLICT, format!("{} {id} carries another owner's mark", self.kind.name));
        }
        if seen.phase == Phase::Deleting {
            self.rules.apply(Rule::UpBuilding);
            return Up::Wait("it is being deleted");
        }
        if whose == Whose::Nobody && self.kind.markable != Markable::Never {
            let unacknowledged = matches!(record, Some(Record::Created { marked: false, .. }));
            return if (unacknowledged || sight.settled) && !sight.retagged {
                self.rules.apply(Rule::UpMarkAgain);
                Up::Mark(id.clone())
            } else {
                Up::Wait("its mark may still come")
            };
        }
        if let (Markable::Never, Some(Record::Created { key: Some(key), .. })) = (self.kind.markable, record)
            && seen.key.as_ref() != Some(key)
        {
            self.rules.apply(Rule::UpConflict);
            return no(reason::OWNERSHIP_CONFLICT, format!("{} {id} is not on its key any more", self.kind.name));
        }
        match &seen.phase {
            Phase::Building | Phase::Deleting => {
                self.rules.apply(Rule::UpBuilding);
                Up::Wait("it is being built")
            }
            Phase::Failed(why) => {
                self.rules.apply(Rule::UpFailed);
                match self.kind.failed {
                    WhenFailed::Replace if !release => Up::Remove(id.clone()),
                    WhenFailed::Replace | WhenFailed::Refuse => {
                        no(reason::RESOURCE_FAILED, format!("{} {id} failed: {why}", self.kind.name))
                    }
                }
            }
            Phase::Ready => {
                self.rules.apply(Rule::UpDone);
                Up::Done(seen.clone())
            }
        }
    }

    /// Up, for a thing that is named. Whatever else of ours stands in the slot goes first.
    fn reference(&self, record: Option<&Record>, id: &Id, sight: &Sight) -> Up {
        let ours = alive(&sight.ours);
        match record {
            // told to use what is its own
            Some(Record::Created { id: own, .. } | Record::Adopted { id: own, .. }) if own == id => {
                match self.keep(record, own, sight) {
                    // what somebody named is not replaced by another
                    Up::Intend => no(reason::REFERENCE_LOST, format!("{} {id} is gone", self.kind.name)),
                    Up::Remove(failed) if failed == *id => {
                        no(reason::RESOURCE_FAILED, format!("{} {id} failed", self.kind.name))
                    }
                    step => step,
                }
            }
            Some(Record::Created { id: own, .. } | Record::Adopted { id: own, .. }) => match self.down(record, sight) {
                Down::Mark(own) => Up::Mark(own),
                _ => Up::Remove(own.clone()),
            },
            Some(Record::Referenced { .. }) if ours.is_some_and(|t| t.id != *id) => {
                self.rules.apply(Rule::UpDuplicate);
                Up::Remove(ours.map(|t| t.id.clone()).unwrap_or_default())
            }
            None | Some(Record::Intended { .. }) if ours.is_some() => self.make(record, None, None, sight),
            Some(Record::Intended { .. }) => match self.clear(record, sight) {
                Down::NoteUnmarked(own) if own != *id => Up::NoteUnmarked(own),
                Down::Wait(why) => Up::Wait(why),
                _ => {
                    self.rules.apply(Rule::UpReference);
                    Up::Reference(id.clone())
                }
            },
            Some(Record::Referenced { id: known }) if known == id => match &sight.recorded {
                Recorded::Gone => {
                    self.rules.apply(Rule::UpReferenceLost);
                    no(reason::REFERENCE_LOST, format!("{} {id} is gone", self.kind.name))
                }
                Recorded::Here(seen, _) if seen.phase == Phase::Ready => {
                    self.rules.apply(Rule::UpDone);
                    Up::Done(seen.clone())
                }
                Recorded::Here(..) => Up::Wait("it is not ready"),
                Recorded::NoId | Recorded::TooEarly => Up::Wait("not visible yet"),
            },
            None | Some(Record::Referenced { .. }) => {
                self.rules.apply(Rule::UpReference);
                Up::Reference(id.clone())
            }
        }
    }

    /// What an unwanted slot, or an owner on its way out, needs.
    pub fn down(&self, record: Option<&Record>, sight: &Sight) -> Down {
        match record {
            None | Some(Record::Intended { .. }) => self.clear(record, sight),
            Some(Record::Referenced { .. }) => {
                self.rules.apply(Rule::DownReference);
                Down::Forget { kept: Vec::new() }
            }
            Some(Record::Created { id, marked, key }) => self.take(id, *marked, None, key.as_deref(), sight),
            Some(Record::Adopted { id, then }) => self.take(id, true, Some(*then), None, sight),
        }
    }

    /// Down, without an id.
    fn clear(&self, record: Option<&Record>, sight: &Sight) -> Down {
        if let Some(ours) = alive(&sight.ours) {
            return if self.adopted(ours) == Some(Then::Release) {
                self.rules.apply(Rule::DownRelease);
                Down::Unmark(ours.id.clone())
            } else {
                self.rules.apply(Rule::DownDeleteFound);
                Down::Delete(ours.id.clone())
            };
        }
        if !sight.ours.is_empty() {
            return Down::Wait("it is being deleted");
        }
        if let Inferred::Own(own) = self.inferred(record, sight) {
            self.rules.apply(Rule::DownInfer);
            return Down::NoteUnmarked(own.id.clone());
        }
        if !sight.trusted && self.rules.apply(Rule::SettleDown) {
            return Down::Wait("an earlier create may still show up");
        }
        if record.is_none() {
            return Down::Clear;
        }
        let strangers = sight.unmarked.iter().chain(&sight.foreign).map(|t| t.id.clone()).collect::<Vec<_>>();
        self.rules.apply(if strangers.is_empty() { Rule::DownForgetAbsent } else { Rule::DownKeepStranger });
        Down::Forget { kept: strangers }
    }

    /// Down, with an id. Also for the list of removals, whose things are known to have carried our mark.
    pub fn take(&self, id: &Id, marked: bool, then: Option<Then>, key: Option<&str>, sight: &Sight) -> Down {
        let (seen, whose) = match &sight.recorded {
            Recorded::Gone => {
                self.rules.apply(Rule::DownGone);
                return Down::Forget { kept: Vec::new() };
            }
            Recorded::TooEarly | Recorded::NoId => return Down::Wait("not visible yet"),
            Recorded::Here(seen, whose) => (seen, *whose),
        };
        let release = then == Some(Then::Release) || self.adopted(seen) == Some(Then::Release);
        if self.kind.markable == Markable::Never {
            return if seen.phase == Phase::Deleting {
                Down::Wait("it is being deleted")
            } else if key.is_some() && seen.key.as_deref() == key {
                self.rules.apply(Rule::DownNeverMarked);
                Down::Delete(id.clone())
            } else {
                self.rules.apply(Rule::DownKeepLost);
                Down::Forget { kept: vec![id.clone()] }
            };
        }
        match whose {
            Whose::Ours if release && sight.retagged => Down::Wait("its mark may still show"),
            Whose::Ours if release => {
                self.rules.apply(Rule::DownRelease);
                Down::Unmark(id.clone())
            }
            _ if seen.phase == Phase::Deleting => Down::Wait("it is being deleted"),
            Whose::Ours => {
                self.rules.apply(Rule::DownDelete);
                Down::Delete(id.clone())
            }
            Whose::Nobody if sight.retagged && !release => Down::Wait("its mark may still come"),
            Whose::Nobody if !marked && then.is_none() && self.rules.apply(Rule::MarkOwnUntagged) => {
                Down::Mark(id.clone())
            }
            Whose::Nobody | Whose::Foreign if !release && !self.rules.apply(Rule::MarkCheckBeforeDelete) => {
                Down::Delete(id.clone())
            }
            Whose::Nobody if !sight.settled && marked && self.rules.apply(Rule::LateTag) => {
                Down::Wait("its mark may still come")
            }
            Whose::Nobody | Whose::Foreign => {
                self.rules.apply(Rule::DownKeepLost);
                Down::Forget { kept: vec![id.clone()] }
            }
        }
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
