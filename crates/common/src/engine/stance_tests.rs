//! Who may write, under every combination of what an owner can carry.
use super::*;
use crate::ledger::Writer;

fn owner(n: u8) -> OwnerId {
    OwnerId::from_bits([n; 16])
}
fn here() -> Place {
    Place::of("here", "c", "K", "ns", "a")
}
fn there() -> Place {
    Place::of("there", "c", "K", "ns", "a")
}
fn ledger(uid: &str, place: &Place, seq: u64) -> Ledger {
    Ledger { seq, ..Ledger::empty(uid, place, Writer { process: 1, number: 1 }) }
}
fn facts() -> Facts {
    Facts {
        place: here(),
        uid: "u".into(),
        deleting: false,
        finalizer: true,
        owner: Some(owner(1)),
        ledger: Some(ledger("u", &here(), 5)),
        mirror: Some((owner(1), 5)),
        memory: (Some(owner(1)), 5),
        take_over: None,
    }
}
fn stance(facts: &Facts) -> Stance {
    facts.stance(true, true, true)
}
fn every(mut check: impl FnMut(&Facts, Stance)) {
    for finalizer in [true, false] {
        for deleting in [true, false] {
            for id in [None, Some(owner(1))] {
                for l in [
                    None,
                    Some(ledger("u", &here(), 5)),
                    Some(ledger("old", &here(), 5)),
                    Some(ledger("u", &there(), 5)),
                    Some(ledger("u", &here(), 2)),
                ] {
                    for mirror in [None, Some((owner(1), 5))] {
                        for memory in [(None, 0), (Some(owner(1)), 5)] {
                            for ask in [
                                None,
                                Some(TakeOver::None),
                                Some(TakeOver::Place(there())),
                                Some(TakeOver::Owner(owner(1))),
                                Some(TakeOver::Unclear),
                            ] {
                                let f = Facts {
                                    finalizer,
                                    deleting,
                                    owner: id,
                                    ledger: l.clone(),
                                    mirror,
                                    memory,
                                    take_over: ask,
                                    ..facts()
                                };
                                check(&f, stance(&f));
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn as_it_should_be() {
    assert!(matches!(stance(&facts()), Stance::Serve(id, _) if id == owner(1)));
    assert!(!facts().suspicious());
}
#[test]
fn an_owner_from_elsewhere_is_never_served_or_rebuilt() {
    every(|f, stance| {
        if f.ledger.as_ref().is_some_and(|l| l.place == there()) {
            let asked = matches!(stance, Stance::Take(..) | Stance::StartAnew) && f.take_over.is_some();
            assert!(asked || stance == Stance::Elsewhere(there()), "{f:?} {stance:?}");
        }
    });
}
#[test]
fn a_new_owner_id_is_drawn_only_where_nothing_remembers_an_old_one() {
    every(|f, stance| {
        if stance == Stance::Mint {
            assert!(f.owner.is_none() && f.memory.0.is_none() && f.mirror.is_none() && !f.finalizer && !f.deleting);
        }
    });
}
#[test]
fn a_ledger_older_than_anything_remembers_is_never_served() {
    every(|f, stance| {
        if let Stance::Serve(_, l) = stance {
            assert!(l.seq >= f.memory.1 && f.mirror.is_none_or(|(_, seq)| l.seq >= seq) && l.uid == f.uid);
            assert_ne!(f.take_over, Some(TakeOver::None), "a needless request is taken off first");
        }
    });
}
#[test]
fn requests_read_as_place_owner_id_or_none() {
    assert_eq!(TakeOver::parse(" none "), TakeOver::None);
    assert_eq!(TakeOver::parse(there().as_str()), TakeOver::Place(there()));
    assert_eq!(TakeOver::parse(&owner(1).to_string()), TakeOver::Owner(owner(1)));
    assert_eq!(TakeOver::parse("everything"), TakeOver::Unclear);
}

#[test]
fn an_owner_id_that_somebody_wrote_over_ours_is_not_served() {
    // given status that knows another owner id, and a ledger that is no newer than it
    let mut forged = Facts { owner: Some(owner(2)), ..facts() };
    assert_eq!(forged.overwritten(), Some(owner(1)));
    forged.ledger = None;
    assert_eq!(forged.overwritten(), Some(owner(1)));
    // then an owner id of our own making comes with a newer ledger, before status knows it
    forged.ledger = Some(ledger("u", &here(), 6));
    assert_eq!(forged.overwritten(), None);
    assert_eq!(facts().overwritten(), None);
    assert_eq!(Facts { owner: None, ..facts() }.overwritten(), None);
    assert_eq!(Facts { mirror: None, owner: Some(owner(2)), ..facts() }.overwritten(), None);
}
