//! What a quiet life costs: writes while twelve pieces come up in four waves, and nothing at all afterwards.
use crate::bench::Bench;
use crate::checks::{Verdict, at_rest, close, converged};
use crate::hands::Hands;
use crate::scenarios::storm::rest;
use common::testing::{Chance, Lags, Variety};

/// One history: the only chance in it is the spec's.
pub fn run(bench: &Bench, case: u64) -> Verdict {
    let mut chance = Chance::new(case);
    let settle = bench.settle();
    let lags = Lags { build: 3_000, ..Lags::default() };
    let mut world = bench.world(case, false, lags, 0);
    world.sim.with(|s| {
        s.watches.lag = (5, 5);
        s.wire.recording = true;
    });
    let spec = bench.subject.spec("a", Variety::Twelve, &mut chance);
    let pieces = bench.subject.wanted(&spec).len() as u64;
    let marked_later = bench.subject.marked_later(&spec) as u64;
    let key = world.create_owner(0, "a", spec);
    let mut hands = Hands::new(key, bench.subject.controller());
    world.spawn(0);
    let mut verdict = Verdict::default();
    rest(&mut world, &mut hands, settle, &mut chance);
    at_rest(&world, "rest", &mut verdict);
    converged(&world, "rest", &mut verdict);
    // the confirmation that `rest` gives is not ours
    let (writes, status) = world.sim.with(|s| (s.servers[0].writes, s.servers[0].status_writes));
    let (metadata, most) = (writes - status, 2 * bench.subject.waves() + 1 + marked_later);
    world.sim.with(|s| s.say(|| format!("{pieces} pieces: {metadata} metadata writes of {most}, {status} of status")));
    // one that makes everything at once has not so many
    if pieces != 12 && bench.subject.waves() > 1 {
        verdict.violations.insert(format!("{pieces} pieces instead of 12"));
    }
    if metadata > most {
        verdict.violations.insert(format!("{metadata} writes of metadata where {most} are enough"));
    }
    let made = world.sim.with(|s| {
        s.wire.made.clear();
        s.servers[0].writes
    });
    world.run_for(30 * 60 * 1000);
    world.sim.with(|s| {
        let own = s.wire.made.iter().filter(|c| !bench.subject.is_shared_list(&c.label));
        let own: Vec<String> = own.map(|c| c.label.clone()).collect();
        if !own.is_empty() || s.servers[0].writes != made {
            s.say(|| format!("NOT SILENT {own:?}"));
            verdict.violations.insert("a converged owner costs calls or writes".into());
        }
    });
    close(&world, verdict)
}
