//! One owner's whole life, the same every time: born, edited, deleted. Plans that address calls by number rest on it.
use crate::acts::Act;
use crate::bench::Bench;
use crate::checks::{Verdict, all_gone, at_rest, close, converged};
use crate::hands::Hands;
use crate::scenarios::storm::rest;
use common::engine::rules::Rulebook;
use common::testing::wire::{Made, Target};
use common::testing::{Chance, Edit, Lags, State, Variety, World};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Which life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Life {
    /// Comes to rest, loses a piece, comes to rest, is deleted.
    Whole,
    /// Deleted in the middle of its creation.
    Short,
    /// Its parameters change in the middle of its creation; deleted later.
    Edited,
}
/// All of them.
pub const LIVES: [Life; 3] = [Life::Whole, Life::Short, Life::Edited];

/// A run without faults.
#[derive(Debug)]
pub struct Reference {
    /// Every external call.
    pub calls: Vec<Made>,
    /// Numbers of mutating cloud calls that were sent at the same moment.
    pub waves: Vec<Vec<usize>>,
    /// Things made.
    pub creates: u64,
    /// Changes of the owner on its server.
    pub events: usize,
}

/// Slow enough that nothing is visible at once, the same every time.
pub fn slow() -> Lags {
    Lags { list: 8_000, tag: 10_000, get: 1_500, ghost: 5_000, delete: 3_000, build: 5_000, worst: true }
}

/// Lives one life. `prepare` sets the fates.
pub fn live(bench: &Bench, life: Life, lags: Lags, prepare: impl FnOnce(&mut State)) -> (World, Verdict) {
    let mut chance = Chance::new(11);
    let settle = bench.settle();
    let mut world = bench.world(11, false, lags, 0);
    world.sim.with(|s| {
        s.watches.lag = (5, 5);
        prepare(s);
    });
    let key = world.create_owner(0, "a", bench.subject.spec("a", Variety::Fixed, &mut chance));
    let mut hands = Hands::new(key, bench.subject.controller());
    world.spawn(0);
    let mut verdict = Verdict::default();
    match life {
        Life::Whole => {
            rest(&mut world, &mut hands, settle, &mut chance);
            at_rest(&world, "up", &mut verdict);
            converged(&world, "up", &mut verdict);
            hands.act(&mut world, Act::Edit(Edit::Remove), &mut chance);
            rest(&mut world, &mut hands, settle, &mut chance);
            at_rest(&world, "edited", &mut verdict);
            converged(&world, "edited", &mut verdict);
        }
        Life::Short => world.run_for(1_500),
        Life::Edited => {
            world.run_for(1_000);
            hands.act(&mut world, Act::Edit(Edit::Change), &mut chance);
            rest(&mut world, &mut hands, settle, &mut chance);
            converged(&world, "edited", &mut verdict);
        }
    }
    hands.act(&mut world, Act::Delete, &mut chance);
    world.run_for(12 * settle);
    // what a dropped event hides, the next list shows
    world.calm();
    world.run_for(12 * settle);
    all_gone(&world, "end", &mut verdict);
    at_rest(&world, "end", &mut verdict);
    (world, verdict)
}

/// Undisturbed lives by subject, number and kind of life: run once, compared with often.
type Known = BTreeMap<(&'static str, u64, Life), Arc<Reference>>;

/// The run without faults, computed once per subject and life.
pub fn reference(bench: &Bench, life: Life) -> Arc<Reference> {
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let known = (bench.subject.name(), bench.settle(), life);
    if let Some(found) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&known) {
        return Arc::clone(found);
    }
    let plain = Bench { rules: Rulebook::production(), trace: false, ..bench.clone() };
    let (world, _) = live(&plain, life, slow(), |s| s.wire.recording = true);
    let found = world.sim.with(|s| {
        let calls = std::mem::take(&mut s.wire.made);
        Arc::new(Reference {
            waves: waves(&calls),
            calls,
            creates: s.evidence.creates,
            events: s.servers.first().map_or(0, |x| x.log.len()),
        })
    });
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(known, Arc::clone(&found));
    found
}

fn waves(calls: &[Made]) -> Vec<Vec<usize>> {
    let mut by_moment: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for call in calls.iter().filter(|c| c.writes && c.target == Target::Cloud) {
        by_moment.entry(call.sent).or_default().push(call.number);
    }
    by_moment.into_values().filter(|wave| wave.len() > 1).collect()
}

/// The verdict of a life, held against the run without faults: nothing may be made twice.
pub fn judged(world: &World, mut verdict: Verdict, life: Life, reference: &Reference) -> Verdict {
    let creates = world.sim.with(|s| s.evidence.creates);
    if life == Life::Whole && creates != reference.creates {
        verdict.violations.insert(format!("{creates} creates instead of {}", reference.creates));
    }
    close(world, verdict)
}
