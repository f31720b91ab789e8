//! A process falls asleep at one of its calls. Another one takes the owner down, and its name is used again: when the sleeper
//! wakes up, it must leave the new owner alone.
use crate::acts::Act;
use crate::bench::Bench;
use crate::checks::Verdict;
use crate::hands::Hands;
use crate::scenarios::lifetime::{Life, reference, slow};
use crate::scenarios::storm::to_the_end;
use common::testing::{Chance, Variety};

/// How many histories there are: one for every call of a life.
pub fn cases(bench: &Bench, _budget: u64) -> u64 {
    reference(bench, Life::Whole).calls.len() as u64
}
/// One history.
pub fn run(bench: &Bench, case: u64) -> Verdict {
    // the same world every time: cases differ only in the call
    let mut chance = Chance::new(11);
    let settle = bench.settle();
    let mut world = bench.world(11, false, slow(), 0);
    world.sim.with(|s| s.watches.lag = (5, 5));
    let key = world.create_owner(0, "a", bench.subject.spec("a", Variety::Fixed, &mut chance));
    let mut hands = Hands::new(key, bench.subject.controller());
    let sleeper = world.spawn(0);
    let calls = usize::try_from(case).unwrap_or(usize::MAX) + 1;
    if !world.run_while(12 * settle, |s| s.wire.total() >= calls) {
        hands.act(&mut world, Act::Delete, &mut chance);
        let limit = world.sim.now() + 12 * settle;
        world.run_while(limit, |s| s.wire.total() >= calls);
    }
    world.freeze(sleeper, 30 * settle);
    world.spawn(0);
    hands.act(&mut world, Act::Delete, &mut chance);
    world.run_for(12 * settle);
    hands.act(&mut world, Act::CreateAgain, &mut chance);
    world.run_for(12 * settle);
    to_the_end(&mut world, &mut hands, settle, &mut chance, Verdict::default())
}
