//! Finalizer and annotations are stripped, and every process dies, right after one of the calls of a life, in a cloud that
//! shows everything as late as it may. Or that call goes wrong, and the rest follows with the next thing that is made. What was
//! made so far must be found again.
use crate::acts::Act;
use crate::bench::Bench;
use crate::checks::Verdict;
use crate::hands::Hands;
use crate::scenarios::lifetime::{Life, reference};
use crate::scenarios::storm::to_the_end;
use common::testing::wire::{Fate, Spoiled};
use common::testing::{Chance, Lags, Variety};

/// How many histories there are: two for every call of a life.
pub fn cases(bench: &Bench, _budget: u64) -> u64 {
    2 * reference(bench, Life::Whole).calls.len() as u64
}
/// One history.
pub fn run(bench: &Bench, case: u64) -> Verdict {
    let mut chance = Chance::new(13);
    let settle = bench.settle();
    let mut world = bench.world(13, false, Lags { worst: true, ..bench.latest() }, 0);
    world.sim.with(|s| s.watches.lag = (5, 5));
    let key = world.create_owner(0, "a", bench.subject.spec("a", Variety::Fixed, &mut chance));
    let mut hands = Hands::new(key, bench.subject.controller());
    let number = usize::try_from(case / 2).unwrap_or(usize::MAX - 1);
    let lost = Fate::Spoiled { effect: None, answer: Spoiled::Status(500), reply: 40 };
    let goes_wrong = !case.is_multiple_of(2);
    world.sim.with(|s| s.wire.twists.extend(goes_wrong.then_some((number, lost))));
    world.spawn(0);
    world.run_while(12 * settle, |s| s.wire.total() > number);
    if goes_wrong {
        let (made, limit) = (world.sim.with(|s| s.evidence.creates), world.sim.now() + 3 * settle);
        world.run_while(limit, |s| s.evidence.creates > made);
    } else {
        // what the call does is done
        world.run_for(400);
    }
    hands.act(&mut world, Act::Strip, &mut chance);
    hands.act(&mut world, Act::CrashAll, &mut chance);
    to_the_end(&mut world, &mut hands, settle, &mut chance, Verdict::default())
}
