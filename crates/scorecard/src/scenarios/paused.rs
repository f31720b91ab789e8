//! Nothing happens in the cloud while an owner is paused, whatever is asked of it; all of it happens afterwards.
use crate::acts::Act;
use crate::bench::Bench;
use crate::checks::Verdict;
use crate::hands::Hands;
use crate::scenarios::lifetime::slow;
use crate::scenarios::storm::{rest, to_the_end};
use common::testing::wire::Target;
use common::testing::{Chance, Edit, Variety};

/// What is asked of a paused owner.
const WISHES: &[&[Act]] = &[
    &[Act::Edit(Edit::Add)],
    &[Act::Edit(Edit::Change)],
    &[Act::Edit(Edit::Remove)],
    &[Act::HandDelete],
    &[Act::HandUntag],
    &[Act::Strip, Act::CrashAll],
    &[Act::Edit(Edit::Add), Act::CrashAll],
    &[Act::Delete],
    &[Act::Delete, Act::CrashAll],
];

/// How many histories there are: each wish at rest, and in the middle of the first creation.
pub fn cases(_bench: &Bench, budget: u64) -> u64 {
    (WISHES.len() as u64 * 2 * 4).max(budget)
}
/// One history.
pub fn run(bench: &Bench, case: u64) -> Verdict {
    let mut chance = Chance::new(case ^ 0x0a5e);
    let wishes = WISHES[usize::try_from(case).unwrap_or(0) % WISHES.len()];
    let early = case / WISHES.len() as u64 % 2 == 1;
    let settle = bench.settle();
    let mut world = bench.world(case, false, slow(), 0);
    world.sim.with(|s| s.watches.lag = (5, 500));
    let key = world.create_owner(0, "a", bench.subject.spec("a", Variety::Plain, &mut chance));
    let mut hands = Hands::new(key, bench.subject.controller());
    world.spawn(0);
    let mut verdict = Verdict::default();
    if early {
        world.run_for(chance.below(settle));
    } else {
        rest(&mut world, &mut hands, settle, &mut chance);
    }
    hands.act(&mut world, Act::Pause, &mut chance);
    // what was sent before the pause was heard of is let through
    world.run_for(settle);
    let before = world.sim.with(|s| s.wire.count(Target::Cloud, true));
    for act in wishes {
        hands.act(&mut world, *act, &mut chance);
        world.run_for([20, 3_000, settle / 2][chance.index(3)]);
    }
    world.wake_all();
    world.run_for(4 * settle);
    let after = world.sim.with(|s| s.wire.count(Target::Cloud, true));
    if before != after {
        verdict.violations.insert(format!("{} cloud writes while paused", after - before));
    }
    hands.act(&mut world, Act::Unpause, &mut chance);
    to_the_end(&mut world, &mut hands, settle, &mut chance, verdict)
}
