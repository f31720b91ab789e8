//! S8: status wiped, backups restored, owners moved, each step. Nothing may be made or deleted by any of it.
use crate::acts::Act;
use crate::bench::Bench;
use crate::checks::{Verdict, at_rest, close, converged};
use crate::hands::Hands;
use crate::scenarios::lifetime::slow;
use crate::scenarios::storm::{end, rest};
use common::testing::{Chance, Edit, Variety};

const MOVE: [Act; 5] = [Act::MovePause, Act::MoveCopy, Act::MoveMark, Act::MoveRemove, Act::MoveUnpause];

/// What happens, and whether both servers share an installation id.
fn scripts() -> Vec<(Vec<Act>, bool)> {
    let mut all: Vec<(Vec<Act>, bool)> = [
        vec![Act::WipeStatus],
        vec![Act::WipeStatus, Act::CrashAll],
        vec![Act::StripFinalizer],
        vec![Act::StripFinalizer, Act::CrashAll],
        vec![Act::Strip],
        vec![Act::Strip, Act::CrashAll],
        vec![Act::StripLedger],
        vec![Act::StripOwnerId],
        vec![Act::StripOwnerId, Act::WipeStatus, Act::CrashAll],
        vec![Act::StripLedger, Act::StripOwnerId, Act::WipeStatus, Act::CrashAll],
        vec![Act::Lose, Act::RestoreNewest],
        vec![Act::Lose, Act::CrashAll, Act::RestoreNewest],
        vec![Act::Lose, Act::CreateAgain, Act::TakeBack],
        vec![Act::Lose, Act::CrashAll, Act::CreateAgain, Act::TakeBack],
        vec![Act::Lose, Act::ApplyElsewhere],
        vec![Act::Lose, Act::ApplyElsewhere, Act::CrashAll],
        vec![Act::CutLedger, Act::Repair],
        vec![Act::NewerLedger, Act::CrashAll, Act::Repair],
        vec![Act::SpoilOwnerId, Act::Repair],
        vec![Act::ForgeOwnerId, Act::Repair],
        vec![Act::ForgeOwnerId, Act::CrashAll, Act::Edit(Edit::Add), Act::CrashAll, Act::Repair],
        vec![Act::ForgeOwnerId, Act::Delete, Act::CrashAll, Act::Repair],
        vec![Act::Rollback],
        vec![Act::Rollback, Act::CrashAll],
        // the edit wakes whoever would believe the ledger, while lists do not show yet what was made
        [Act::Edit(Edit::Add), Act::RollbackThatShows, Act::Edit(Edit::Change)].repeat(3),
        vec![Act::OtherAccount, Act::CrashAll, Act::RightAccount, Act::CrashAll],
        vec![Act::PeerOn, Act::PeerOff],
        vec![Act::Pause, Act::Strip, Act::Unpause],
    ]
    .into_iter()
    .map(|acts| (acts, false))
    .collect();
    for shared in [false, true] {
        for broken in 0..=MOVE.len() {
            // broken off after so many steps, everybody restarts, then resumed
            let mut acts = MOVE[..broken].to_vec();
            acts.push(Act::CrashAll);
            acts.extend(&MOVE[broken..]);
            if !shared {
                acts.push(if broken % 2 == 0 { Act::TakePlace } else { Act::TakeOwner });
            }
            all.push((acts.clone(), shared));
            // the same while something is being removed
            acts.insert(0, Act::Edit(Edit::Remove));
            all.push((acts, shared));
        }
    }
    all
}

/// How many histories S8 has: each script with different pauses between its steps and different specs.
pub fn cases(_bench: &Bench, budget: u64) -> u64 {
    (scripts().len() as u64 * 8).max(budget)
}
/// One history.
pub fn run(bench: &Bench, case: u64) -> Verdict {
    let scripts = scripts();
    let number = usize::try_from(case).unwrap_or(0) % scripts.len();
    let (acts, shared) = &scripts[number];
    let round = case / scripts.len() as u64;
    let mut chance = Chance::new(case ^ 0x0805);
    let settle = bench.settle();
    let mut world = bench.world(case, *shared, slow(), 0);
    world.sim.with(|s| s.watches.lag = [(5, 5), (5, 4_000)][chance.index(2)]);
    let variety = if round == 0 { Variety::Fixed } else { Variety::Plain };
    let key = world.create_owner(0, "a", bench.subject.spec("a", variety, &mut chance));
    let mut hands = Hands::new(key, bench.subject.controller());
    world.spawn(0);
    world.spawn(1);
    let mut verdict = Verdict::default();
    rest(&mut world, &mut hands, settle, &mut chance);
    converged(&world, "before", &mut verdict);
    let count = |s: &mut common::testing::State| (s.evidence.creates, s.evidence.deletes);
    let before = world.sim.with(count);
    for act in acts {
        hands.act(&mut world, *act, &mut chance);
        world.run_for([20, 3_000, settle / 2, 2 * settle][chance.index(4)]);
    }
    rest(&mut world, &mut hands, settle, &mut chance);
    let after = world.sim.with(count);
    let asked = acts.iter().any(|act| matches!(act, Act::Edit(_) | Act::Delete));
    if before != after && !asked {
        verdict.violations.insert(format!("{before:?} creates and deletes became {after:?}"));
    }
    at_rest(&world, "rest", &mut verdict);
    converged(&world, "rest", &mut verdict);
    end(&mut world, &mut hands, settle, &mut chance, &mut verdict);
    close(&world, verdict)
}
