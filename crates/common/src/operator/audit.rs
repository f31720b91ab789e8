//! Every thing that carries our kind of mark, its owner, and whether that owner lives. Pure.
use super::{Found, Owner, Row};
use crate::identity::{Mark, MarkSeen, Place};
use crate::ledger::{Id, Record};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is to be said of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// Its owner does not live any more.
    Orphan,
    /// Unmarked, unrecorded, and it stands on something whose owner is gone.
    OrphanPart,
    /// A second thing in a slot; the controller will remove it.
    Duplicate,
    /// Its owner lives, but has not taken this place over yet.
    AwaitsTakeover,
    /// Its mark cannot be read whole, or whose it is: the owner in its place has lost its owner id.
    Unreadable,
    /// Unmarked, unrecorded, and it stands on something of ours: somebody made it there.
    Unclaimed,
    /// A living owner's ledger says it is there, and it is not.
    Missing,
    /// Of another installation.
    Elsewhere,
    /// Somebody else's, used by an owner of ours and never touched.
    Used,
    /// As it should be.
    Owned,
}
impl Verdict {
    /// Does anybody still look after it?
    pub fn is_orphan(self) -> bool {
        matches!(self, Verdict::Orphan | Verdict::OrphanPart)
    }
}

/// One line of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is to be said.
    pub verdict: Verdict,
    /// Kind of the thing.
    pub kind: String,
    /// Id of the thing.
    pub id: Id,
    /// What it is called.
    pub name: String,
    /// Its slot, if it says.
    pub slot: String,
    /// Namespace and name of its owner, if that is known.
    pub owner: String,
    /// More for people.
    pub note: String,
}
impl Row for Finding {
    const HEADS: &'static [&'static str] = &["VERDICT", "KIND", "ID", "NAME", "SLOT", "OWNER", "NOTE"];
    fn cells(&self) -> Vec<String> {
        let verdict = format!("{:?}", self.verdict);
        [&verdict, &self.kind, &self.id, &self.name, &self.slot, &self.owner, &self.note].map(Clone::clone).into()
    }
}

/// Judges everything an account shows against all owners of this installation. Strangers' things are not mentioned.
pub fn judge(found: &[Found], owners: &[Owner], installation: &str) -> Vec<Finding> {
    let recorded = recorded(owners);
    let mut findings: Vec<Finding> = found
        .iter()
        .filter_map(|thing| {
            let known = recorded.get(&(thing.kind, thing.id.as_str()));
            by_mark(thing, owners, installation).or_else(|| known.map(|(owner, slot)| by_record(thing, owner, slot)))
        })
        .collect();
    findings.extend(parts(found, &findings));
    findings.extend(missing(found, owners));
    findings.sort_by(|a, b| (a.verdict, &a.kind, &a.id).cmp(&(b.verdict, &b.kind, &b.id)));
    findings
}

fn finding(verdict: Verdict, thing: &Found, slot: &str, owner: &str, note: impl Into<String>) -> Finding {
    Finding {
        verdict,
        kind: thing.kind.to_owned(),
        id: thing.id.clone(),
        name: thing.name.clone(),
        slot: slot.to_owned(),
        owner: owner.to_owned(),
        note: note.into(),
    }
}

/// Ids in ledgers, by kind and id.
fn recorded(owners: &[Owner]) -> BTreeMap<(&str, &str), (&Owner, &str)> {
    let of = |owner| ledger_ids(owner).map(move |(slot, id)| ((slot.kind(), id.as_str()), (owner, slot.as_str())));
    owners.iter().flat_map(of).collect()
}
fn ledger_ids(owner: &Owner) -> impl Iterator<Item = (&crate::identity::Slot, &Id)> {
    let ledger = owner.ledger.iter();
    ledger.flat_map(|ledger| {
        let records = ledger.records.iter().filter_map(|(slot, record)| Some((slot, record.id()?)));
        records.chain(ledger.removing.iter().map(|removal| (&removal.slot, &removal.id)))
    })
}

fn by_mark(thing: &Found, owners: &[Owner], installation: &str) -> Option<Finding> {
    match &thing.mark {
        MarkSeen::Nothing => None,
        MarkSeen::Whole(mark) => Some(by_whole_mark(thing, mark, owners, installation)),
        MarkSeen::Part { slot, .. } => {
            let slot = slot.as_ref().map(ToString::to_string).unwrap_or_default();
            Some(finding(Verdict::Unreadable, thing, &slot, "", "half a mark"))
        }
        MarkSeen::Garbled(why) => Some(finding(Verdict::Unreadable, thing, "", "", why.clone())),
    }
}

fn by_whole_mark(thing: &Found, mark: &Mark, owners: &[Owner], installation: &str) -> Finding {
    let slot = mark.slot.as_str();
    let say = |verdict, owner: &str, note: String| finding(verdict, thing, slot, owner, note);
    let named = || owners.iter().filter(|owner| owner.has(mark.owner));
    // A copied manifest has the same owner id: it is the original whose place this is.
    if let Some(owner) = named().find(|owner| owner.covers(&mark.place)).or_else(|| named().next()) {
        if !owner.covers(&mark.place) {
            return say(Verdict::AwaitsTakeover, &owner.name, format!("marked for place {}", mark.place));
        }
        let ledger = owner.ledger.as_ref();
        let recorded = ledger.and_then(|ledger| ledger.records.get(&mark.slot)).and_then(Record::id);
        return match recorded {
            Some(id) if *id != thing.id => say(Verdict::Duplicate, &owner.name, format!("{id} stands in this slot")),
            Some(_) => say(Verdict::Owned, &owner.name, String::new()),
            None => say(Verdict::Owned, &owner.name, "not in the ledger yet".into()),
        };
    }
    if mark.place.installation() != Place::installation_part(installation) {
        return say(Verdict::Elsewhere, "", format!("place {}", mark.place));
    }
    let known = format!("owner id {}, place {}", mark.owner, mark.place);
    match owners.iter().find(|owner| owner.place == mark.place) {
        Some(heir) if heir.id.is_none() && heir.mirrored.is_none() => say(
            Verdict::Unreadable,
            &heir.name,
            format!("{} lives in its place and has lost its owner id; {known}", heir.name),
        ),
        Some(heir) => {
            say(Verdict::Orphan, "", format!("{} lives in its place under another owner id; {known}", heir.name))
        }
        None => say(Verdict::Orphan, "", known),
    }
}

fn by_record(thing: &Found, owner: &Owner, slot: &str) -> Finding {
    let record = owner.ledger.iter().flat_map(|ledger| ledger.records.iter()).find(|(s, _)| s.as_str() == slot);
    match record {
        Some((_, Record::Referenced { .. })) => finding(Verdict::Used, thing, slot, &owner.name, ""),
        _ => finding(Verdict::Owned, thing, slot, &owner.name, "by the ledger alone"),
    }
}

/// Unmarked things that nobody recorded, on something of ours.
fn parts(found: &[Found], findings: &[Finding]) -> Vec<Finding> {
    let known: BTreeSet<(&str, &str)> = findings.iter().map(|it| (it.kind.as_str(), it.id.as_str())).collect();
    let by_id: BTreeMap<&str, &Finding> = findings.iter().map(|it| (it.id.as_str(), it)).collect();
    let unknown = found.iter().filter(|thing| !known.contains(&(thing.kind, thing.id.as_str())));
    unknown
        .filter_map(|thing| {
            let parent = by_id.get(thing.parent.as_deref()?)?;
            let verdict = match parent.verdict {
                Verdict::Orphan => Verdict::OrphanPart,
                Verdict::Owned => Verdict::Unclaimed,
                _ => return None,
            };
            Some(finding(verdict, thing, "", &parent.owner, format!("on {} {}", parent.kind, parent.id)))
        })
        .collect()
}

fn missing(found: &[Found], owners: &[Owner]) -> Vec<Finding> {
    let there: BTreeSet<(&str, &str)> = found.iter().map(|thing| (thing.kind, thing.id.as_str())).collect();
    let of = |owner: &'_ Owner| -> Vec<Finding> {
        let absent = ledger_ids(owner).filter(|(slot, id)| !there.contains(&(slot.kind(), id.as_str())));
        absent
            .map(|(slot, id)| Finding {
                verdict: Verdict::Missing,
                kind: slot.kind().to_owned(),
                id: id.clone(),
                name: String::new(),
                slot: slot.to_string(),
                owner: owner.name.clone(),
                note: "in the ledger, not in the cloud".to_owned(),
            })
            .collect()
    };
    owners.iter().flat_map(of).collect()
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
