//! The judge: the cloud's truth against the owners' ledgers. Pure.
use crate::cloud::Thing;
use common::identity::MarkKeys;
use common::ledger::Ledger;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What must never be seen at rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Slots of one owner that hold more than one thing.
    pub(crate) doubled: Vec<String>,
    /// Things of ours that no living owner records.
    pub(crate) orphaned: Vec<String>,
    /// Recorded ids that do not exist.
    pub(crate) lost: Vec<String>,
    /// Things of others that were deleted or lost a tag.
    pub(crate) harmed: Vec<String>,
}

impl Damage {
    pub(crate) fn is_none(&self) -> bool {
        *self == Damage::default()
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { doubled, orphaned, lost, harmed } = self;
        write!(f, "doubled: {doubled:?}, orphaned: {orphaned:?}, lost: {lost:?}, strangers harmed: {harmed:?}")
    }
}

/// Judges a cloud at rest. `ledgers` are those of all living owners, by name.
pub(crate) fn judge(things: &[Thing], ledgers: &BTreeMap<String, Ledger>) -> Damage {
    let recorded: BTreeSet<&str> = ledgers
        .values()
        .flat_map(|ledger| ledger.records.values())
        .filter_map(|r| r.id().map(String::as_str))
        .collect();
    let living: Vec<&Thing> = things.iter().filter(|thing| thing.exists()).collect();
    let ours = || living.iter().filter(|thing| thing.is_ours());
    let mut slots: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for thing in ours() {
        if let (Some(owner), Some(slot)) = (thing.tag(MarkKeys::DOTTED.owner), thing.tag(MarkKeys::DOTTED.slot)) {
            slots.entry((owner, slot)).or_default().push(&thing.id);
        }
    }
    let ids: BTreeSet<&str> = living.iter().map(|thing| thing.id.as_str()).collect();
    Damage {
        doubled: slots
            .iter()
            .filter(|(_, ids)| ids.len() > 1)
            .map(|((o, s), ids)| format!("{o} {s}: {ids:?}"))
            .collect(),
        orphaned: ours()
            .filter(|t| !recorded.contains(t.id.as_str()))
            .map(|t| format!("{} {}", t.kind, t.id))
            .collect(),
        lost: recorded.iter().filter(|id| !ids.contains(*id)).map(|id| (*id).to_owned()).collect(),
        harmed: things.iter().filter(|t| !t.is_ours() && !t.exists()).map(|t| t.id.clone()).collect(),
    }
}

#[test]
fn the_judge_sees_every_kind_of_damage() {
    let thing = |id: &str, by: &str, owner: &str, phase: &str| -> Thing {
        let tags = serde_json::json!({"custody.dev/owner": owner, "custody.dev/slot": "disk-a"});
        let thing = serde_json::json!({"id": id, "kind": "disk", "created_by": by, "tags": tags, "phase": phase});
        serde_json::from_value(thing).expect("a thing")
    };
    let us = crate::cloud::PRINCIPAL;
    let ledger = |id: &str| {
        let text = r#"{"version": 1, "seq": 1, "writer": {"process": 1, "number": 1}, "uid": "u",
            "place": "000000000000-0000000000000000", "records": {"disk-a": {"is": "created", "id": "ID", "marked": true}}}"#;
        Ledger::parse(&text.replace("ID", id)).expect("a ledger")
    };
    // given one owner that records one disk, when that is what there is, then nothing is wrong
    let ledgers = BTreeMap::from([("a".to_owned(), ledger("d-1"))]);
    let fine = [thing("d-1", us, "x", "ready"), thing("d-9", "stranger", "", "ready")];
    assert!(judge(&fine, &ledgers).is_none());
    // when there is another in the same slot, then it is a double and an orphan
    let damage = judge(&[thing("d-1", us, "x", "ready"), thing("d-2", us, "x", "ready")], &ledgers);
    assert_eq!((damage.doubled.len(), damage.orphaned.len(), damage.lost.len()), (1, 1, 0));
    // when the recorded one is gone, then it is lost; when a stranger's is gone, then it was harmed
    let damage = judge(&[thing("d-1", us, "x", "gone"), thing("d-9", "stranger", "", "gone")], &ledgers);
    assert_eq!((damage.lost.len(), damage.harmed.len()), (1, 1));
}
