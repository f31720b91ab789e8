//! The tables under every combination of record, kind, sight and trust: what must never come out of them, and what must.
use super::*;
use crate::engine::estate::hash_params;
use crate::identity::{Mark, OwnerId, Place};
use jiff::Timestamp;
use serde_json::json;

const LISTED: Timestamp = Timestamp::UNIX_EPOCH;

fn kind(markable: Markable, token: bool, unique_key: bool) -> Kind {
    Kind { name: "disk", rank: 0, markable, token, unique_key, gone: WhenGone::Recreate, failed: WhenFailed::Replace }
}
fn kinds() -> Vec<Kind> {
    let mut all = Vec::new();
    for markable in [Markable::AtCreate, Markable::Later, Markable::Never] {
        for token in [true, false] {
            for unique in [true, false] {
                all.push(kind(markable, token, unique));
            }
        }
    }
    all
}
fn draft() -> Draft {
    Draft { key: "k".into(), params: json!({"size": 1}) }
}
fn mark(adopted: Option<Then>) -> MarkSeen {
    let place = Place::of("here", "c", "K", "ns", "a");
    MarkSeen::Whole(Mark { owner: OwnerId::from_bits([1; 16]), place, slot: "disk".parse().unwrap(), adopted })
}
fn seen(id: &str, mark: MarkSeen, phase: Phase, born: i64) -> Sighting {
    Sighting {
        kind: "disk",
        id: id.into(),
        mark,
        readable: false,
        key: Some("k".into()),
        params: Some(hash_params("k", &json!({"size": 1}))),
        born: Timestamp::from_second(born).ok(),
        phase,
    }
}
fn phases() -> [Phase; 4] {
    [Phase::Building, Phase::Ready, Phase::Failed("x".into()), Phase::Deleting]
}
fn records() -> Vec<Option<Record>> {
    let intended = |token: Option<&str>, params: &str, attempt| Record::Intended {
        token: token.map(str::to_owned),
        params: params.into(),
        listed: LISTED,
        attempt,
        key: None,
    };
    let mut all = vec![None];
    for params in [draft().hash(), "other".into()] {
        for token in [None, Some("t")] {
            all.push(Some(intended(token, &params, 1)));
        }
    }
    for marked in [true, false] {
        all.push(Some(Record::Created { id: "x".into(), marked, key: Some("k".into()) }));
    }
    for then in [Then::Delete, Then::Release] {
        all.push(Some(Record::Adopted { id: "x".into(), then }));
    }
    all.push(Some(Record::Referenced { id: "x".into() }));
    all
}
/// Every listing that matters: ours alive or deleting, plain or adopted; unmarked in or out of the dates; foreign.
fn sights(record: Option<&Record>) -> Vec<Sight> {
    let mut recorded = vec![Recorded::NoId];
    if record.is_some_and(|r| r.id().is_some()) {
        recorded = vec![Recorded::Gone, Recorded::TooEarly];
        for phase in phases() {
            for adopted in [None, Some(Then::Delete), Some(Then::Release)] {
                let thing = seen("x", mark(adopted), phase.clone(), 5);
                recorded.push(Recorded::Here(Box::new(thing), Whose::Ours));
            }
            let bare = seen("x", MarkSeen::Nothing, phase.clone(), 5);
            recorded.push(Recorded::Here(Box::new(bare.clone()), Whose::Nobody));
            recorded.push(Recorded::Here(Box::new(bare), Whose::Foreign));
        }
    }
    let mut ours: Vec<Vec<Sighting>> = vec![vec![]];
    // the tables ask of a listed thing only whether it is on its way out
    for phase in [Phase::Ready, Phase::Deleting] {
        for adopted in [None, Some(Then::Delete), Some(Then::Release)] {
            ours.push(vec![seen("y", mark(adopted), phase.clone(), 5)]);
        }
    }
    let strangers = [
        vec![],
        vec![seen("u", MarkSeen::Nothing, Phase::Ready, 5)],
        vec![seen("u", MarkSeen::Nothing, Phase::Ready, 9_999)],
    ];
    let foreign = [None, Some(seen("f", MarkSeen::Garbled("?".into()), Phase::Ready, 5))];
    let mut all = Vec::new();
    for recorded in &recorded {
        for ours in &ours {
            for unmarked in &strangers {
                for foreign in &foreign {
                    for trust in 0..8 {
                        let (trusted, unmarked_counts, settled) = (trust & 1 == 0, trust & 2 == 0, trust & 4 == 0);
                        let (ours, unmarked) = (ours.clone(), unmarked.clone());
                        let (foreign, recorded) = (foreign.clone(), recorded.clone());
                        all.push(Sight {
                            ours,
                            unmarked,
                            foreign,
                            recorded,
                            trusted,
                            unmarked_counts,
                            settled,
                            retagged: false,
                            refused: false,
                        });
                    }
                }
            }
        }
    }
    all
}
fn every(mut check: impl FnMut(&Table<'_>, Option<&Record>, &Sight)) -> usize {
    let rules = Rulebook::production();
    let mut n = 0;
    for kind in kinds() {
        let table = Table { kind: &kind, timing: &Timing::DEFAULT, rules: &rules };
        for record in records() {
            // what can carry no mark cannot be adopted
            if kind.markable == Markable::Never && matches!(record, Some(Record::Adopted { .. })) {
                continue;
            }
            for sight in sights(record.as_ref()) {
                check(&table, record.as_ref(), &sight);
                n += 1;
            }
        }
    }
    n
}
fn adopted_of(thing: &Sighting) -> Option<Then> {
    match &thing.mark {
        MarkSeen::Whole(m) => m.adopted,
        _ => None,
    }
}

#[test]
fn nothing_is_deleted_that_is_not_ours() {
    let n = every(|table, record, sight| {
        let Down::Delete(id) = table.down(record, sight) else { return };
        let listed = sight.ours.iter().find(|t| t.id == id);
        let asked = match &sight.recorded {
            Recorded::Here(thing, whose) if thing.id == id => Some((thing, *whose)),
            _ => None,
        };
        let release = |t: &Sighting| adopted_of(t) == Some(Then::Release);
        let ours = listed.is_some_and(|t| !release(t)) || asked.is_some_and(|(t, w)| w == Whose::Ours && !release(t));
        let never = table.kind.markable == Markable::Never && asked.is_some_and(|(t, _)| t.key.as_deref() == Some("k"));
        assert!(ours || never, "{record:?} {sight:?}");
        assert!(!matches!(record, Some(Record::Adopted { then: Then::Release, .. } | Record::Referenced { .. })));
    });
    assert!(n > 50_000, "only {n} combinations");
}

#[test]
fn nothing_is_forgotten_that_may_still_be_ours() {
    every(|table, record, sight| {
        let Down::Forget { kept } = table.down(record, sight) else { return };
        match record {
            None => panic!("nothing to forget"),
            Some(Record::Referenced { .. }) => {}
            Some(Record::Intended { .. }) => {
                assert!(sight.trusted && sight.ours.is_empty(), "{sight:?}");
            }
            Some(Record::Created { marked, .. }) => match &sight.recorded {
                Recorded::Gone => {}
                Recorded::Here(_, Whose::Foreign) => assert_eq!(kept, ["x"]),
                Recorded::Here(_, Whose::Nobody) => {
                    assert_eq!(kept, ["x"]);
                    assert!(*marked && sight.settled, "an own untagged thing is marked first: {sight:?}");
                }
                other => panic!("{other:?}"),
            },
            Some(Record::Adopted { .. }) => assert!(!matches!(sight.recorded, Recorded::Here(_, Whose::Ours))),
        }
    });
}

#[test]
fn a_create_needs_absence_that_counts_or_the_same_token() {
    every(|table, record, sight| {
        let want = Want::Make { draft: Some(draft()), adopt: None };
        match table.up(record, &want, sight) {
            Up::Intend => {
                let gone = sight.recorded == Recorded::Gone;
                assert!(sight.trusted || gone, "{record:?} {sight:?}");
                assert!(gone || sight.ours.is_empty());
            }
            Up::Renew => {
                assert!(sight.ours.is_empty());
                let same = draft().hash();
                assert!(matches!(record, Some(Record::Intended { token: Some(_), params, .. }) if *params == same));
            }
            _ => {}
        }
    });
}

#[test]
fn what_is_ours_is_recorded_whether_or_not_another_could_be_made() {
    every(|table, record, sight| {
        let noted = |draft| matches!(table.up(record, &Want::Make { draft, adopt: None }, sight), Up::Note { .. });
        assert_eq!(noted(None), noted(Some(draft())), "{record:?} {sight:?}");
    });
}

#[test]
fn a_strangers_thing_is_taken_only_when_asked_and_settled() {
    every(|table, record, sight| {
        let refused = table.up(record, &Want::Make { draft: Some(draft()), adopt: None }, sight);
        assert!(!matches!(refused, Up::Claim { .. }));
        let asked = Want::Make { draft: Some(draft()), adopt: Some(Then::Release) };
        if let Up::Claim { id, then } = table.up(record, &asked, sight) {
            assert_eq!((id.as_str(), then), ("u", Then::Release));
            assert!(sight.unmarked_counts && sight.ours.is_empty() && sight.foreign.is_none());
        }
    });
}

#[test]
fn what_is_named_is_used_once_nothing_of_ours_is_left_in_the_slot() {
    every(|table, record, sight| {
        for named in ["x", "o", "s"] {
            let step = table.up(record, &Want::Use { id: named.into() }, sight);
            let says = format!("{named} {record:?} {sight:?} -> {step:?}");
            let own = matches!(record, Some(Record::Created { .. } | Record::Adopted { .. }));
            let intended = matches!(record, Some(Record::Intended { .. }));
            match &step {
                Up::Reference(id) => {
                    assert_eq!(id, named);
                    assert!(!own && alive(&sight.ours).is_none() && (!intended || sight.trusted), "{says}");
                }
                Up::Remove(id) => assert_ne!(id, named, "{says}"),
                // nothing waits for ever: once everything counts, there is a step
                Up::Wait(_) if intended && sight.trusted => assert!(!sight.ours.is_empty(), "{says}"),
                Up::Intend | Up::Renew | Up::Claim { .. } => panic!("{says}"),
                _ => {}
            }
        }
    });
}

#[test]
fn inference_holds_only_inside_the_dates_and_never_for_kinds_markable_at_create() {
    every(|table, record, sight| {
        let want = Want::Make { draft: Some(draft()), adopt: None };
        let inferred = [
            matches!(table.up(record, &want, sight), Up::NoteUnmarked(_)),
            matches!(table.down(record, sight), Down::NoteUnmarked(_)),
        ];
        if inferred.contains(&true) {
            assert_ne!(table.kind.markable, Markable::AtCreate);
            assert!(matches!(record, Some(Record::Intended { params, .. }) if *params == draft().hash()));
            assert!(sight.unmarked.iter().any(|u| u.born < Timestamp::from_second(60).ok()));
        }
    });
}

#[test]
fn a_piece_that_is_done_is_ours_and_ready() {
    every(|table, record, sight| {
        let want = Want::Make { draft: Some(draft()), adopt: None };
        if let Up::Done(thing) = table.up(record, &want, sight) {
            assert_eq!(thing.phase, Phase::Ready);
            let ours = matches!(&sight.recorded, Recorded::Here(_, Whose::Ours));
            let never =
                table.kind.markable == Markable::Never && matches!(sight.recorded, Recorded::Here(_, Whose::Nobody));
            assert!(ours || never);
        }
    });
}

#[test]
fn of_several_without_a_record_the_oldest_that_has_not_failed_is_kept_in_whatever_order_they_are_listed() {
    let failed = seen("a", mark(None), Phase::Failed("x".into()), 1);
    let going = seen("b", mark(None), Phase::Deleting, 2);
    let oldest = seen("z", mark(None), Phase::Building, 3);
    let newer = seen("c", mark(None), Phase::Ready, 4);
    let mut things = vec![failed, going, oldest, newer];
    for _ in 0..things.len() {
        things.rotate_left(1);
        assert_eq!(alive(&things).map(|it| it.id.as_str()), Some("z"));
    }
}
