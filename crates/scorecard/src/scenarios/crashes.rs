//! S1 to S3: every external call of a life, with a crash around it or an answer that says nothing.
use crate::bench::Bench;
use crate::checks::Verdict;
use crate::scenarios::lifetime::{LIVES, Life, judged, live, reference, slow};
use common::testing::Chance;
use common::testing::wire::{Fate, Spoiled};

const POINTS: [Fate; 3] = [Fate::CrashBefore, Fate::CrashAfterEffect, Fate::CrashAfterReply];
const ANSWERS: [Spoiled; 6] = [
    Spoiled::Silence,
    Spoiled::Cut,
    Spoiled::Status(500),
    Spoiled::Status(503),
    Spoiled::Status(429),
    Spoiled::Garbage,
];

/// Fates by call number.
type Plan = Vec<(usize, Fate)>;

/// S1: three crash points per call, and every subset of every wave.
fn single(bench: &Bench) -> Vec<(Life, Plan)> {
    let mut plans = Vec::new();
    for life in LIVES {
        let reference = reference(bench, life);
        for number in 0..reference.calls.len() {
            plans.extend(POINTS.map(|point| (life, vec![(number, point)])));
        }
        for wave in &reference.waves {
            for subset in 0..1_u32 << wave.len().min(16) {
                let fate = |(n, number): (usize, &usize)| {
                    (*number, Fate::CrashInWave { effect: subset >> n & 1 == 1, last: n + 1 == wave.len() })
                };
                plans.push((life, wave.iter().enumerate().map(fate).collect()));
            }
        }
    }
    plans
}

/// How many histories S1 has.
pub fn single_cases(bench: &Bench, _budget: u64) -> u64 {
    single(bench).len() as u64
}
/// One history of S1.
pub fn single_run(bench: &Bench, case: u64) -> Verdict {
    let plans = single(bench);
    usize::try_from(case)
        .ok()
        .and_then(|n| plans.get(n))
        .map_or_else(Verdict::default, |(life, plan)| run(bench, *life, plan))
}

/// One history of S2: two crashes, the second one perhaps while recovering from the first.
pub fn double_run(bench: &Bench, seed: u64) -> Verdict {
    let mut chance = Chance::new(seed ^ 0xD0B1);
    let life = chance.pick(&LIVES).unwrap_or(Life::Whole);
    let calls = reference(bench, life).calls.len();
    let first = chance.index(calls);
    let near = chance.one_in(2);
    let second = first + 1 + chance.index(if near { 12 } else { calls });
    let mut point = || chance.pick(&POINTS).unwrap_or(Fate::CrashBefore);
    let plan = vec![(first, point()), (second, point())];
    run(bench, life, &plan)
}

/// How many histories S3 has: six answers, with and without effect, for every call.
pub fn ambiguous_cases(bench: &Bench, _budget: u64) -> u64 {
    LIVES.iter().map(|life| reference(bench, *life).calls.len() as u64 * 12).sum()
}
/// One history of S3.
pub fn ambiguous_run(bench: &Bench, case: u64) -> Verdict {
    let mut case = usize::try_from(case).unwrap_or(0);
    for life in LIVES {
        let calls = reference(bench, life).calls.len();
        if case < calls * 12 {
            let (number, variant) = (case / 12, case % 12);
            let effect = (variant >= 6).then_some(20);
            let fate = Fate::Spoiled { effect, answer: ANSWERS[variant % 6], reply: 40 };
            return run(bench, life, &vec![(number, fate)]);
        }
        case -= calls * 12;
    }
    Verdict::default()
}

fn run(bench: &Bench, life: Life, plan: &Plan) -> Verdict {
    let known = reference(bench, life);
    let (world, verdict) = live(bench, life, slow(), |s| {
        s.say(|| format!("{life:?} with {plan:?}"));
        s.wire.twists.extend(plan.iter().copied());
    });
    judged(&world, verdict, life, &known)
}
