//! Everything at once, by chance: a bad wire, lagging watches and listings, crashes, freezes, users and strangers.
use crate::acts::Act;
use crate::bench::Bench;
use crate::checks::{Verdict, all_gone, at_rest, close, converged, silent};
use crate::hands::Hands;
use common::testing::wire::Target;
use common::testing::{Chance, Edit, Lags, Millis, Variety, World};
use std::time::Duration;

/// How far a storm goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// One process, no users but one who may delete.
    Core,
    /// Two processes without any lease, freezes.
    TwoLeaders,
    /// Users, strangers, hands in the cloud.
    Users,
    /// Moves, copies, backups.
    Moves,
}

/// A plan of acts, and how the history ends.
struct Script {
    acts: Vec<Act>,
    calm: Vec<Act>,
    later: Vec<Act>,
}

/// One history.
pub fn history(bench: &Bench, seed: u64, force: Force) -> Verdict {
    let mut chance = Chance::new(seed ^ 0x5702);
    let settle = bench.settle();
    let lags = draw_lags(bench, &mut chance);
    let shared = force == Force::Moves && chance.one_in(3);
    let haste = if chance.one_in(3) { 0 } else { settle / 8 };
    let mut world = bench.world(seed, shared, lags, haste);
    draw_weather(&world, force, &mut chance);
    let variety = if force == Force::Users { Variety::Everything } else { Variety::Plain };
    let key = world.create_owner(0, "a", bench.subject.spec("a", variety, &mut chance));
    let mut hands = Hands::new(key.clone(), bench.subject.controller());
    if chance.one_in(3) {
        world.create_owner(0, "b", bench.subject.spec("b", Variety::Plain, &mut chance));
    }
    if force == Force::Users {
        plant_before(&mut world, &mut hands, &mut chance);
    }
    let two = force != Force::Core && chance.one_in(2);
    let servers: &[usize] = if force == Force::Moves { &[0, 1] } else { &[0] };
    for server in servers {
        for _ in 0..if two { 2 } else { 1 } {
            world.spawn(*server);
        }
    }
    let script = draw_script(force, shared, &mut chance);
    storm(&mut world, &mut hands, &script.acts, settle, &mut chance);
    let mut verdict = Verdict::default();
    calm(&mut world, &mut hands, &script, settle, &mut chance);
    at_rest(&world, "rest", &mut verdict);
    converged(&world, "rest", &mut verdict);
    if seed.is_multiple_of(4) {
        silent(&mut world, "rest", &mut verdict);
    }
    end(&mut world, &mut hands, settle, &mut chance, &mut verdict);
    close(&world, verdict)
}

fn draw_lags(bench: &Bench, chance: &mut Chance) -> Lags {
    let latest = bench.latest();
    match chance.below(4) {
        0 => Lags { build: 2000, ..Lags::default() },
        1 => Lags { worst: true, ..latest },
        _ => latest,
    }
}

fn draw_weather(world: &World, force: Force, chance: &mut Chance) {
    world.sim.with(|s| {
        s.wire.latency = (10, 300);
        s.listing_interval = chance.one_in(3).then_some(Duration::from_mins(5));
        s.wire.trouble = [3, 5, 8, 20][chance.index(4)];
        s.wire.trouble_writes = if chance.one_in(3) { 2 } else { 0 };
        s.wire.crashes = [0, 15, 40, 100][chance.index(4)];
        s.wire.freezes = if force == Force::Core { 0 } else { [0, 15, 60][chance.index(3)] };
        s.watches.lag = [(5, 50), (5, 3_000), (1_000, 30_000)][chance.index(3)];
        s.watches.trouble = [0, 0, 10][chance.index(3)];
    });
}

fn plant_before(world: &mut World, hands: &mut Hands, chance: &mut Chance) {
    for _ in 0..chance.below(3) {
        hands.act(world, Act::Stranger, chance);
    }
    if chance.one_in(3) {
        hands.act(world, Act::Reference, chance);
    }
    world.sim.with(|s| s.evidence.harm.stranger = true);
}

fn draw_script(force: Force, shared: bool, chance: &mut Chance) -> Script {
    let mut script = Script { acts: Vec::new(), calm: vec![Act::Unpause], later: Vec::new() };
    match force {
        Force::Core | Force::TwoLeaders => {
            let menu = [Act::Edit(Edit::Change), Act::Edit(Edit::Remove), Act::Edit(Edit::Add), Act::CrashAll];
            for _ in 0..chance.below(3) {
                script.acts.extend(chance.pick(&menu));
            }
        }
        Force::Users => {
            for _ in 0..=chance.below(4) {
                script.acts.extend(chance.pick(USERS));
            }
            script.calm.extend([
                Act::Allow,
                Act::RightAccount,
                Act::NoQuota,
                Act::FixBuilds,
                Act::RestoreBackup,
                Act::PeerOff,
                Act::Repair,
            ]);
        }
        Force::Moves => moves(&mut script, shared, chance),
    }
    if force != Force::Moves && chance.one_in(2) {
        script.acts.push(Act::Delete);
        // under the same name, while a frozen process may still be busy with the one before
        if force == Force::TwoLeaders && chance.one_in(2) {
            script.acts.extend([Act::CreateAgain; 3]);
        }
    }
    script
}

const USERS: &[Act] = &[
    Act::Edit(Edit::Change),
    Act::Edit(Edit::Remove),
    Act::Edit(Edit::Add),
    Act::Edit(Edit::RemoveMost),
    Act::Confirm,
    Act::Strip,
    Act::StripFinalizer,
    Act::StripLedger,
    Act::StripOwnerId,
    Act::WipeStatus,
    Act::Rollback,
    Act::Rollback,
    Act::CutLedger,
    Act::NewerLedger,
    Act::SpoilOwnerId,
    Act::Repair,
    Act::Pause,
    Act::Unpause,
    Act::Stranger,
    Act::ForeignTwin,
    Act::OtherPlaceTwin,
    Act::Reference,
    Act::HandDeleteStranger,
    Act::HandDelete,
    Act::HandUntag,
    Act::HandRetag,
    Act::Deny,
    Act::Allow,
    Act::OtherAccount,
    Act::RightAccount,
    Act::Quota,
    Act::NoQuota,
    Act::FailBuilds,
    Act::FixBuilds,
    Act::PeerOn,
    Act::PeerOff,
    Act::ClockJump,
    Act::Outage(Target::Api),
    Act::Outage(Target::Cloud),
    Act::CrashAll,
];

fn moves(script: &mut Script, shared: bool, chance: &mut Chance) {
    let steps = [Act::MovePause, Act::MoveCopy, Act::MoveMark, Act::MoveRemove, Act::MoveUnpause, Act::TakePlace];
    match chance.below(if shared { 4 } else { 8 }) {
        0 | 1 => {
            // a move, perhaps broken off and finished later
            let stop = chance.index(steps.len() + 1);
            script.acts.extend(&steps[..stop]);
            script.calm.clear();
            script.later.extend(&steps[stop..]);
        }
        2 => {
            // broken off and given up: the copy goes, the source goes on
            let stop = 1 + chance.index(2);
            script.acts.extend(&steps[..stop]);
            let unpause: &[Act] = if shared { &[] } else { &[Act::MoveUnpause] };
            script.calm = [&[Act::Unpause], unpause, &[Act::TakeNone]].concat();
        }
        3 => {
            script.acts.extend([Act::Lose, Act::RestoreBackup]);
            script.calm.push(Act::RestoreBackup);
        }
        4 => {
            script.acts.push(Act::CopyManifest);
            script.calm.push(Act::TakeNone);
        }
        5 => {
            script.acts.push(Act::CopyName);
            script.calm.push(Act::TakeNone);
        }
        6 => {
            script.acts.extend([Act::CopyManifest, Act::TakeOwner]);
            script.calm.push(Act::TakeOwner);
            script.later.extend([Act::SourceTakeNone, Act::Delete]);
        }
        _ => {
            script.acts.extend([Act::CopyManifest, Act::TakePlace]);
            script.calm.push(Act::TakePlace);
            script.later.extend([Act::SourceTakeNone, Act::Delete]);
        }
    }
    if chance.one_in(4) && script.later.is_empty() {
        script.acts.push(Act::Delete);
    }
}

/// Users strike at times drawn beforehand, or right after the n-th write, where it hurts most.
fn storm(world: &mut World, hands: &mut Hands, acts: &[Act], settle: Millis, chance: &mut Chance) {
    let near = chance.one_in(2);
    for act in acts {
        if near {
            let writes =
                |s: &common::testing::State| s.wire.count(Target::Cloud, true) + s.wire.count(Target::Api, true);
            let wanted = world.sim.with(|s| writes(s)) + 1 + chance.below(6);
            let limit = world.sim.now() + 3 * settle;
            world.run_while(limit, |s| writes(s) >= wanted);
            world.run_for([0, 20, 400, settle / 4][chance.index(4)]);
        } else {
            world.run_for(chance.below(2 * settle));
        }
        hands.act(world, *act, chance);
    }
    world.run_for(chance.below(2 * settle));
}

fn calm(world: &mut World, hands: &mut Hands, script: &Script, settle: Millis, chance: &mut Chance) {
    world.calm();
    for act in &script.calm {
        hands.act(world, *act, chance);
        world.run_for(2_000);
    }
    rest(world, hands, settle, chance);
    for act in &script.later {
        hands.act(world, *act, chance);
        world.run_for(5_000);
    }
    if !script.later.is_empty() {
        rest(world, hands, settle, chance);
    }
}

/// Longer than a resync, with a cache before and after it that an old event has set back and that takes half a minute to heal: every
/// owner is looked at once more, on lists that show what hands have done in the cloud.
const LOOKED_AT_AGAIN: Millis = 13 * 60 * 1000;

/// Long enough for everything that is under way, with large removals confirmed.
pub fn rest(world: &mut World, hands: &mut Hands, settle: Millis, chance: &mut Chance) {
    world.run_for(6 * settle);
    hands.act(world, Act::Confirm, chance);
    world.wake_all();
    world.run_for((12 * settle).max(LOOKED_AT_AGAIN));
}

/// The rest of a history in which nothing more happens: it comes to rest, is judged, and its owners are deleted.
pub fn to_the_end(
    world: &mut World,
    hands: &mut Hands,
    settle: Millis,
    chance: &mut Chance,
    mut verdict: Verdict,
) -> Verdict {
    rest(world, hands, settle, chance);
    at_rest(world, "rest", &mut verdict);
    converged(world, "rest", &mut verdict);
    end(world, hands, settle, chance, &mut verdict);
    close(world, verdict)
}

/// All owners are deleted; those that were copied and never taken over are told to start with nothing.
pub fn end(world: &mut World, hands: &mut Hands, settle: Millis, chance: &mut Chance, verdict: &mut Verdict) {
    for act in [Act::Unpause, Act::MoveUnpause] {
        hands.act(world, act, chance);
    }
    world.run_for(1_000);
    let owners: Vec<(usize, common::testing::Key)> = world.sim.with(|s| {
        let all = s.servers.iter().enumerate();
        all.flat_map(|(n, x)| x.objects().map(move |(key, _)| (n, key.clone()))).collect()
    });
    for (server, key) in owners {
        hands.delete(world, server, &key);
    }
    world.run_for(14 * settle);
    if hands.copy.is_some() && world.sim.with(|s| s.servers.iter().any(|x| x.objects().next().is_some())) {
        hands.act(world, Act::TakeNone, chance);
        world.wake_all();
        world.run_for(14 * settle);
    }
    all_gone(world, "end", verdict);
    at_rest(world, "end", verdict);
}
