//! S4 to S6: old caches, lost and repeated events, listings and tags that come late.
use crate::bench::Bench;
use crate::checks::Verdict;
use crate::scenarios::lifetime::{Life, judged, live, reference, slow};
use common::testing::watch::{EventFate, StaleStart};
use common::testing::wire::Fate;
use common::testing::{Chance, Lags};
use std::time::Duration;

/// Moments at which a process with an old cache takes over, as event numbers of the run without faults.
fn prefixes(bench: &Bench) -> Vec<(usize, usize)> {
    let events = reference(bench, Life::Whole).events;
    (1..=events).flat_map(|now| (0..=now).map(move |seen| (now, seen))).collect()
}
/// How many histories S4 has.
pub fn stale_cases(bench: &Bench, _budget: u64) -> u64 {
    prefixes(bench).len() as u64
}
/// One history of S4: after `now` events a second process starts whose first list is `seen` events old, and the watch brings
/// the rest only after two settles.
pub fn stale_run(bench: &Bench, case: u64) -> Verdict {
    let all = prefixes(bench);
    let Some((now, seen)) = usize::try_from(case).ok().and_then(|n| all.get(n)).copied() else {
        return Verdict::default();
    };
    let late = 2 * bench.settle();
    let known = reference(bench, Life::Whole);
    let (world, verdict) = live(bench, Life::Whole, slow(), |s| {
        s.say(|| format!("at event {now} a process starts that has seen {seen}, the rest {late} ms later"));
        s.watches.stale_start = Some(StaleStart { at: now, seen, late });
    });
    judged(&world, verdict, Life::Whole, &known)
}

/// How many histories S5 has: every event dropped, late or repeated, and pairs.
pub fn events_cases(bench: &Bench, budget: u64) -> u64 {
    (reference(bench, Life::Whole).events as u64 * 3).max(budget)
}
/// One history of S5.
pub fn events_run(bench: &Bench, case: u64) -> Verdict {
    let known = reference(bench, Life::Whole);
    let fate = |n: u64, late: u64| match n % 3 {
        0 => EventFate::Dropped,
        1 => EventFate::Alone(late),
        _ => EventFate::Twice(5, late),
    };
    let singles = known.events as u64 * 3;
    let mut chance = Chance::new(case ^ 0x57A1);
    let mut twists = Vec::new();
    if case < singles {
        twists.push((usize::try_from(case / 3).unwrap_or(0), fate(case, 3_000)));
    } else {
        for _ in 0..2 + chance.below(3) {
            let late = chance.below(2 * bench.settle());
            twists.push((chance.index(known.events + 5), fate(chance.bits(), late)));
        }
    }
    let (world, verdict) = live(bench, Life::Whole, slow(), |s| {
        s.say(|| format!("{twists:?}"));
        s.watches.twists.extend(twists.iter().copied());
    });
    judged(&world, verdict, Life::Whole, &known)
}

const SHAPES: u64 = 4;
const LATEST: u64 = 60_000;
/// The controller knows how late its cloud may be.
fn slower(bench: &Bench) -> Bench {
    Bench { subject: bench.subject.told(Duration::from_millis(LATEST)), ..bench.clone() }
}
/// How many histories S6 has: twelve lags, four shapes, a crash after the effect of every mutating call, or none.
pub fn lag_cases(bench: &Bench, _budget: u64) -> u64 {
    12 * SHAPES * (writes(bench).len() as u64 + 1)
}
fn writes(bench: &Bench) -> Vec<usize> {
    reference(bench, Life::Whole).calls.iter().filter(|c| c.writes).map(|c| c.number).collect()
}
/// One history of S6.
pub fn lag_run(bench: &Bench, case: u64) -> Verdict {
    let (lag, rest) = (case % 12, case / 12);
    let (shape, crash) = (rest % SHAPES, rest / SHAPES);
    let lag = lag * LATEST / 11;
    let base = Lags { build: 2_000, delete: 500, worst: true, ..Lags::default() };
    let lags = match shape {
        0 => Lags { list: lag, ..base },
        1 => Lags { tag: lag, ..base },
        2 => Lags { list: lag / 2, tag: lag, ghost: lag, ..base },
        _ => Lags { list: lag, tag: lag, get: lag / 8, ghost: lag, worst: false, ..base },
    };
    let bench = &slower(bench);
    let twist = usize::try_from(crash).ok().and_then(|n| writes(bench).get(n).copied());
    let known = reference(bench, Life::Whole);
    let (world, verdict) = live(bench, Life::Whole, lags, |s| {
        s.say(|| format!("lags {lags:?}, crash at {twist:?}"));
        s.wire.twists.extend(twist.map(|n| (n, Fate::CrashAfterEffect)));
    });
    judged(&world, verdict, Life::Whole, &known)
}
