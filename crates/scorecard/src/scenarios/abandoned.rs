//! S10 and S12: owners that are lost without us, and planted orphans. An audit names every orphan and nothing else.
use crate::acts::Act;
use crate::bench::Bench;
use crate::checks::{Verdict, close};
use crate::hands::Hands;
use crate::scenarios::lifetime::slow;
use crate::scenarios::storm::rest;
use common::engine::{Settings, Timing};
use common::identity::{Mark, OwnerId, Place};
use common::operator::Owner;
use common::operator::audit::judge;
use common::testing::{Chance, Variety, World};
use std::collections::BTreeSet;

/// Ids that an audit of server 0 calls orphans.
fn orphans(world: &World, bench: &Bench) -> BTreeSet<String> {
    world.sim.with(|s| {
        let settings = Settings {
            controller: bench.subject.controller(),
            kind: bench.subject.kind().into(),
            installation: s.servers[0].installation.clone(),
            timing: Timing::DEFAULT,
            peers: common::peer::Guard::NONE,
        };
        let owners: Vec<Owner> = s.servers[0].objects().map(|(_, o)| Owner::of(&o.view, &settings)).collect();
        let found = bench.subject.found(s.cloud.as_ref());
        let findings = judge(&found, &owners, &settings.installation);
        findings.into_iter().filter(|f| f.verdict.is_orphan()).map(|f| f.id).collect()
    })
}
fn compare(expected: &BTreeSet<String>, seen: &BTreeSet<String>, verdict: &mut Verdict) {
    if !expected.is_subset(seen) {
        verdict.violations.insert("an orphan that audit does not report".into());
    }
    if !seen.is_subset(expected) {
        verdict.violations.insert("audit calls something an orphan that is none".into());
    }
}

const WAYS: u64 = 4;
/// How many histories S10 has.
pub fn lost_cases(_bench: &Bench, budget: u64) -> u64 {
    (WAYS * 16).max(budget)
}
/// One history of S10: two owners, one of them lost in one of four ways.
pub fn lost_run(bench: &Bench, case: u64) -> Verdict {
    let mut chance = Chance::new(case ^ 0x1010);
    let settle = bench.settle();
    let mut world = bench.world(case, false, slow(), 0);
    let key = world.create_owner(0, "a", bench.subject.spec("a", Variety::Plain, &mut chance));
    let other = world.create_owner(0, "b", bench.subject.spec("b", Variety::Plain, &mut chance));
    let mut hands = Hands::new(key.clone(), bench.subject.controller());
    let process = world.spawn(0);
    let mut verdict = Verdict::default();
    rest(&mut world, &mut hands, settle, &mut chance);
    world.sim.with(|s| s.evidence.harm.owner = true);
    match case % WAYS {
        0 => {
            // uninstalled, then the finalizer is stripped and the owner deleted
            world.stop(process);
            hands.act(&mut world, Act::StripFinalizer, &mut chance);
            hands.delete(&world, 0, &key);
        }
        1 => {
            // stripped and deleted faster than anybody looks
            world.freeze(process, 5_000);
            hands.act(&mut world, Act::StripFinalizer, &mut chance);
            hands.delete(&world, 0, &key);
        }
        // the definition is deleted with all its objects, finalizers or not
        2 => drop(hands.act(&mut world, Act::Lose, &mut chance)),
        _ => {
            // the namespace is deleted: finalizers hold, everything is cleaned up
            hands.delete(&world, 0, &key);
            hands.delete(&world, 0, &other);
        }
    }
    world.run_for(14 * settle);
    let lost = case % WAYS != 3;
    let expected: BTreeSet<String> = world.sim.with(|s| {
        let held = common::testing::evidence::Claims::of(&s.servers[0], &other, s.evidence.controller, s.evidence.kind);
        let left = s.cloud.truth().into_iter().filter(|t| t.live && t.by_controller);
        left.filter(|t| !held.recorded.contains(&t.id)).map(|t| t.id).collect()
    });
    if !lost && !expected.is_empty() {
        verdict.violations.insert("things left after their namespace was deleted".into());
    }
    compare(&expected, &orphans(&world, bench), &mut verdict);
    close(&world, verdict)
}

/// How many histories S12 has.
pub fn planted_cases(_bench: &Bench, _budget: u64) -> u64 {
    50
}
/// One history of S12: a living owner, strangers, and so many orphans of each kind.
pub fn planted_run(bench: &Bench, case: u64) -> Verdict {
    let mut chance = Chance::new(case ^ 0x1212);
    let settle = bench.settle();
    let mut world = bench.world(case, false, slow(), 0);
    let key = world.create_owner(0, "a", bench.subject.spec("a", Variety::Fixed, &mut chance));
    let mut hands = Hands::new(key, bench.subject.controller());
    world.spawn(0);
    let mut verdict = Verdict::default();
    rest(&mut world, &mut hands, settle, &mut chance);
    for _ in 0..=case {
        hands.act(&mut world, Act::Stranger, &mut chance);
        hands.act(&mut world, Act::ForeignTwin, &mut chance);
    }
    let expected: BTreeSet<String> = world.sim.with(|s| {
        let place = Place::of("one", bench.subject.controller(), bench.subject.kind(), "ns", "dead");
        let Ok(slot) = "dead".parse() else { return BTreeSet::new() };
        let mark = Mark { owner: OwnerId::from_bits([13; 16]), place, slot, adopted: None };
        let now = s.now();
        bench.subject.plant_orphans(s.cloud.as_mut(), now, &mark, case + 1).into_iter().collect()
    });
    if expected.len() < usize::try_from(case + 1).unwrap_or(0) {
        verdict.violations.insert("the orphans could not be planted".into());
    }
    compare(&expected, &orphans(&world, bench), &mut verdict);
    close(&world, verdict)
}
