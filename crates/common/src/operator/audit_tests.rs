use super::*;
use crate::identity::{OwnerId, Slot};
use crate::ledger::{Ledger, Removal, Writer};
use crate::operator::render;
use crate::process::cli::Output;

fn place(installation: &str, name: &str) -> Place {
    Place::of(installation, "sample", "SampleOwner", "ns", name)
}
fn id(n: u8) -> OwnerId {
    OwnerId::from_bits([n; 16])
}
fn mark(owner: u8, place: Place, slot: &str) -> MarkSeen {
    MarkSeen::Whole(Mark { owner: id(owner), place, slot: slot.parse().unwrap(), adopted: None })
}
fn thing(kind: &'static str, thing: &str, mark: MarkSeen) -> Found {
    Found { kind, id: thing.into(), mark, name: "n".into(), parent: None }
}
/// An owner `a` with owner id 1 whose ledger has these ids.
fn owner(records: &[(&str, &str)]) -> Owner {
    let mut ledger = Ledger::empty("uid", &place("here", "a"), Writer { process: 1, number: 1 });
    for (slot, id) in records {
        let record = Record::Created { id: (*id).into(), marked: true, key: None };
        ledger.records.insert(slot.parse::<Slot>().unwrap(), record);
    }
    Owner { name: "ns/a".into(), place: place("here", "a"), id: Some(id(1)), mirrored: None, ledger: Some(ledger) }
}
fn verdicts(found: &[Found], owners: &[Owner]) -> Vec<(Verdict, String)> {
    judge(found, owners, "here").into_iter().map(|it| (it.verdict, it.id)).collect()
}

#[test]
fn what_a_living_owner_recorded_or_marked_is_owned() {
    let owners = [owner(&[("disk-a", "disk-1"), ("route-r", "route-1")])];
    let found = [
        thing("disk", "disk-1", mark(1, place("here", "a"), "disk-a")),
        thing("route", "route-1", MarkSeen::Nothing),
        thing("disk", "disk-2", mark(1, place("here", "a"), "disk-b")),
        thing("disk", "disk-9", MarkSeen::Nothing),
    ];
    let owned = |id: &str| (Verdict::Owned, id.to_owned());
    assert_eq!(verdicts(&found, &owners), [owned("disk-1"), owned("disk-2"), owned("route-1")]);
}

#[test]
fn every_planted_orphan_is_found_and_nothing_else_is_called_one() {
    // given k orphans of each kind beside owned, foreign and unmarked things
    let kinds = ["network", "disk", "address", "machine"];
    for k in 1..=50 {
        let mut found = vec![
            thing("disk", "owned", mark(1, place("here", "a"), "disk-a")),
            thing("disk", "theirs", mark(7, place("there", "x"), "disk-a")),
            thing("disk", "nobodys", MarkSeen::Nothing),
        ];
        for kind in kinds {
            found.extend((0..k).map(|n| thing(kind, &format!("{kind}-{n}"), mark(9, place("here", "dead"), kind))));
        }
        // when
        let findings = judge(&found, &[owner(&[("disk-a", "owned")])], "here");
        // then
        let orphans: Vec<_> = findings.iter().filter(|it| it.verdict.is_orphan()).collect();
        assert_eq!(orphans.len(), k * kinds.len());
        assert!(orphans.iter().all(|it| !["owned", "theirs", "nobodys"].contains(&it.id.as_str())));
    }
}

#[test]
fn a_name_that_lives_again_under_another_owner_id_does_not_make_its_predecessors_things_owned() {
    let found = [thing("disk", "disk-1", mark(2, place("here", "a"), "disk-a"))];
    let findings = judge(&found, &[owner(&[])], "here");
    assert_eq!(findings[0].verdict, Verdict::Orphan);
    assert!(findings[0].note.contains("ns/a lives in its place"), "{}", findings[0].note);
}

#[test]
fn things_of_a_moved_owner_await_its_takeover_until_their_place_counts() {
    let found = [thing("disk", "disk-1", mark(1, place("there", "a"), "disk-a"))];
    assert_eq!(verdicts(&found, &[owner(&[])])[0].0, Verdict::AwaitsTakeover);
    let mut taking = owner(&[]);
    taking.ledger.as_mut().unwrap().from.push(place("there", "a"));
    assert_eq!(verdicts(&found, &[taking])[0].0, Verdict::Owned);
}

#[test]
fn duplicates_missing_and_unreadable_things_are_said_so() {
    let mut owner = owner(&[("disk-a", "disk-1"), ("disk-b", "disk-gone")]);
    let removal = Removal { slot: "disk-c".parse().unwrap(), id: "disk-leaving".into(), key: None };
    owner.ledger.as_mut().unwrap().removing.push(removal);
    let found = [
        thing("disk", "disk-1", mark(1, place("here", "a"), "disk-a")),
        thing("disk", "disk-2", mark(1, place("here", "a"), "disk-a")),
        thing("disk", "disk-3", MarkSeen::Part { owner: None, place: None, slot: None }),
        thing("disk", "disk-4", MarkSeen::Garbled("odd".into())),
        thing("disk", "disk-leaving", MarkSeen::Nothing),
    ];
    let expected = [
        (Verdict::Duplicate, "disk-2"),
        (Verdict::Unreadable, "disk-3"),
        (Verdict::Unreadable, "disk-4"),
        (Verdict::Missing, "disk-gone"),
        (Verdict::Owned, "disk-1"),
        (Verdict::Owned, "disk-leaving"),
    ];
    assert_eq!(verdicts(&found, &[owner]), expected.map(|(verdict, id)| (verdict, id.to_owned())));
}

#[test]
fn what_cannot_carry_a_mark_is_judged_by_what_it_stands_on() {
    let on = |id: &str, parent: &str| Found { parent: Some(parent.into()), ..thing("route", id, MarkSeen::Nothing) };
    let found = [
        thing("network", "network-1", mark(1, place("here", "a"), "network-a")),
        thing("network", "network-2", mark(9, place("here", "dead"), "network-a")),
        on("route-1", "network-1"),
        on("route-2", "network-2"),
        on("route-3", "network-of-strangers"),
    ];
    let judged = verdicts(&found, &[owner(&[("network-a", "network-1")])]);
    assert!(judged.contains(&(Verdict::Unclaimed, "route-1".into())));
    assert!(judged.contains(&(Verdict::OrphanPart, "route-2".into())));
    assert!(!judged.iter().any(|(_, id)| id == "route-3"));
}

#[test]
fn what_stands_on_something_only_used_is_no_business_of_ours() {
    let mut owner = owner(&[]);
    let record = Record::Referenced { id: "network-1".into() };
    owner.ledger.as_mut().unwrap().records.insert("network-a".parse().unwrap(), record);
    let route = Found { parent: Some("network-1".into()), ..thing("route", "route-1", MarkSeen::Nothing) };
    let judged = verdicts(&[thing("network", "network-1", MarkSeen::Nothing), route], &[owner]);
    assert_eq!(judged, [(Verdict::Used, "network-1".to_owned())]);
}

#[test]
fn a_table_has_a_head_and_json_has_fields() {
    let found = [thing("disk", "disk-1", mark(9, place("here", "dead"), "disk-a"))];
    let findings = judge(&found, &[], "here");
    let table = render(&findings, Output::Table).unwrap();
    assert!(table.starts_with("VERDICT  KIND  ID") && table.contains("Orphan   disk  disk-1"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&render(&findings, Output::Json).unwrap()).unwrap();
    assert_eq!((json[0]["verdict"].as_str(), json[0]["id"].as_str()), (Some("Orphan"), Some("disk-1")));
}

#[test]
fn things_of_an_owner_whose_id_was_spoiled_are_no_orphans() {
    let found = [thing("disk", "disk-1", mark(1, place("here", "a"), "disk-a"))];
    let living = || owner(&[("disk-a", "disk-1")]);
    // given an annotation that cannot be read, or that somebody wrote over, and a status that knows better
    for spoiled in [None, Some(id(7))] {
        let known = Owner { id: spoiled, mirrored: Some(id(1)), ..living() };
        assert_eq!(verdicts(&found, &[known]), [(Verdict::Owned, "disk-1".to_owned())]);
    }
    // given nothing that knows it, then nobody can say whose they are
    let lost = Owner { id: None, ..living() };
    assert_eq!(verdicts(&found, &[lost]), [(Verdict::Unreadable, "disk-1".to_owned())]);
    // given another owner id for good, then nobody looks after them, and the mark's id is told for a take-over
    let heir = Owner { id: Some(id(7)), mirrored: Some(id(7)), ledger: None, ..living() };
    let findings = judge(&found, &[heir], "here");
    assert_eq!(findings[0].verdict, Verdict::Orphan);
    assert!(findings[0].note.contains(&id(1).to_string()), "{}", findings[0].note);
}

#[test]
fn a_copy_with_the_same_owner_id_is_not_taken_for_the_original() {
    // given a copy that is listed before its original
    let copy = Owner { name: "ns/0-copy".into(), place: place("here", "0-copy"), ..owner(&[]) };
    let found = [thing("disk", "disk-1", mark(1, place("here", "a"), "disk-a"))];
    let findings = judge(&found, &[copy, owner(&[("disk-a", "disk-1")])], "here");
    assert_eq!((findings[0].verdict, findings[0].owner.as_str()), (Verdict::Owned, "ns/a"));
}
