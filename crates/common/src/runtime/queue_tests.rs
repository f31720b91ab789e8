use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn key(name: &str) -> Key {
    Key::new("n", name)
}
fn at(seconds: u64) -> Boot {
    Boot(Duration::from_secs(seconds))
}
fn taken(queue: &mut Queue, now: Boot) -> Option<String> {
    match queue.take(now) {
        Taken::Next(key, _) => Some(key.name.to_string()),
        _ => None,
    }
}

#[test]
fn a_key_added_twice_is_taken_once() {
    let mut queue = Queue::new(4);
    assert!(queue.add(&key("a"), Why::Changed, at(0)));
    assert!(!queue.add(&key("a"), Why::Changed, at(1)));
    assert_eq!(queue.take(at(3)), Taken::Next(key("a"), Duration::from_secs(3)));
    assert_eq!(queue.take(at(3)), Taken::Nothing(None));
}

#[test]
fn a_change_during_a_pass_brings_one_more_pass_and_never_a_second_worker() {
    let mut queue = Queue::new(4);
    queue.add(&key("a"), Why::Changed, at(0));
    queue.take(at(0));
    queue.add(&key("a"), Why::Changed, at(1));
    assert_eq!(queue.take(at(1)), Taken::Nothing(None));
    assert_eq!(queue.done(&key("a"), Some(at(100)), at(2)), Duration::from_secs(2));
    assert_eq!(taken(&mut queue, at(2)).as_deref(), Some("a"));
    queue.done(&key("a"), None, at(3));
    assert!(queue.is_empty());
}

#[test]
fn a_change_pulls_a_delayed_key_forward() {
    let mut queue = Queue::new(4);
    queue.add_at(&key("a"), at(60));
    assert_eq!(queue.take(at(1)), Taken::Nothing(Some(at(60))));
    queue.add(&key("a"), Why::Changed, at(1));
    assert_eq!(taken(&mut queue, at(1)).as_deref(), Some("a"));
    queue.done(&key("a"), None, at(1));
    assert_eq!(queue.take(at(99)), Taken::Nothing(None), "the delay is gone with it");
}

#[test]
fn of_two_delays_the_earlier_counts() {
    let mut queue = Queue::new(4);
    queue.add_at(&key("a"), at(60));
    queue.add_at(&key("a"), at(10));
    queue.add_at(&key("a"), at(90));
    assert_eq!(queue.take(at(5)), Taken::Nothing(Some(at(10))));
    assert_eq!(queue.take(at(12)), Taken::Next(key("a"), Duration::from_secs(2)));
}

#[test]
fn no_more_keys_than_workers() {
    let mut queue = Queue::new(2);
    for name in ["a", "b", "c"] {
        queue.add(&key(name), Why::Changed, at(0));
    }
    queue.take(at(0));
    queue.take(at(0));
    assert_eq!(queue.take(at(0)), Taken::Full);
    queue.done(&key("a"), None, at(1));
    assert_eq!(taken(&mut queue, at(1)).as_deref(), Some("c"));
}

#[test]
fn what_changed_goes_before_what_is_due() {
    let mut queue = Queue::new(9);
    queue.add(&key("due"), Why::Due, at(0));
    queue.add(&key("both"), Why::Due, at(0));
    queue.add(&key("changed"), Why::Changed, at(1));
    queue.add(&key("both"), Why::Changed, at(2));
    let order: Vec<_> = std::iter::from_fn(|| taken(&mut queue, at(3))).collect();
    assert_eq!(order, ["changed", "both", "due"]);
    assert_eq!(queue.depth(), 0);
}

#[test]
fn a_due_key_is_not_starved_by_changes() {
    let mut queue = Queue::new(1);
    queue.add(&key("due"), Why::Due, at(0));
    for round in 1..=20 {
        queue.add(&key(&format!("c{round}")), Why::Changed, at(round));
        let name = taken(&mut queue, at(round)).unwrap();
        queue.done(&key(&name), None, at(round));
        if name == "due" {
            assert!(round <= u64::from(CHANGED_IN_A_ROW) + 1);
            return;
        }
    }
    panic!("starved");
}

#[test]
fn a_forgotten_key_is_not_taken() {
    let mut queue = Queue::new(1);
    queue.add(&key("ready"), Why::Changed, at(0));
    queue.add_at(&key("late"), at(5));
    queue.forget(&key("ready"));
    queue.forget(&key("late"));
    assert_eq!(queue.take(at(9)), Taken::Nothing(None));
    assert_eq!((queue.len(), queue.depth()), (0, 0));
}

#[test]
fn lanes_stay_bounded_while_no_worker_is_free() {
    let mut queue = Queue::new(1);
    for _ in 0..10_000 {
        queue.add(&key("a"), Why::Changed, at(0));
        queue.forget(&key("a"));
    }
    assert!(queue.changed.len() < 100, "{}", queue.changed.len());
}

proptest! {
    /// Whatever happens, no key runs twice at once, no added key is lost, and the counts are right.
    #[test]
    fn nothing_is_lost_and_nothing_doubled(steps in prop::collection::vec((0_u8..6, 0_u8..5), 1..200)) {
        let mut queue = Queue::new(3);
        let mut running: BTreeSet<String> = BTreeSet::new();
        let mut owed: BTreeSet<String> = BTreeSet::new();
        let mut now = 0;
        for (what, which) in steps {
            now += 1;
            let k = key(&which.to_string());
            match what {
                0 => { queue.add(&k, Why::Changed, at(now)); owed.insert(k.name.to_string()); }
                1 => { queue.add(&k, Why::Due, at(now)); owed.insert(k.name.to_string()); }
                2 => { if !running.contains(&*k.name) { queue.add_at(&k, at(now + 3)); owed.insert(k.name.to_string()); } }
                3 | 4 => if let Taken::Next(k, _) = queue.take(at(now)) {
                    owed.remove(&*k.name);
                    prop_assert!(running.insert(k.name.to_string()), "two workers on one key");
                },
                _ => if let Some(name) = running.pop_first() { queue.done(&key(&name), None, at(now)); },
            }
            prop_assert_eq!(queue.running(), running.len());
            prop_assert!(queue.running() <= 3);
        }
        for _ in 0..50 {
            now += 5;
            while let Some(name) = running.pop_first() { queue.done(&key(&name), None, at(now)); }
            while let Taken::Next(k, _) = queue.take(at(now)) { owed.remove(&*k.name); running.insert(k.name.to_string()); }
        }
        prop_assert!(owed.is_empty(), "lost: {:?}", owed);
        while let Some(name) = running.pop_first() { queue.done(&key(&name), None, at(now)); }
        prop_assert_eq!((queue.len(), queue.depth(), queue.running()), (0, 0, 0));
    }
}
