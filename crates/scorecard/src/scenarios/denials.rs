//! S11: a permission is missing, for every mutating call, before and after creation. The finalizer stays, a condition names it.
use crate::acts::Act;
use crate::bench::Bench;
use crate::checks::{Verdict, at_rest, close, converged};
use crate::hands::Hands;
use crate::scenarios::lifetime::slow;
use crate::scenarios::storm::{end, rest};
use common::names;
use common::testing::{Chance, Edit, Key, Variety, World};

const PHASES: u64 = 3;
/// A refused call is tried again at every resync and every event, no oftener.
const MOST_TRIES: u64 = 60;

/// How many histories S11 has.
pub fn cases(bench: &Bench, _budget: u64) -> u64 {
    bench.subject.permissions().len() as u64 * PHASES
}
/// One history.
pub fn run(bench: &Bench, case: u64) -> Verdict {
    let permissions = bench.subject.permissions();
    let Some(permission) = usize::try_from(case / PHASES).ok().and_then(|n| permissions.get(n)) else {
        return Verdict::default();
    };
    let mut chance = Chance::new(case ^ 0x1111);
    let settle = bench.settle();
    let mut world = bench.world(case, false, slow(), 0);
    let key = world.create_owner(0, "a", bench.subject.spec("a", Variety::Fixed, &mut chance));
    let mut hands = Hands::new(key.clone(), bench.subject.controller());
    world.spawn(0);
    let mut verdict = Verdict::default();
    let phase = case % PHASES;
    if phase > 0 {
        rest(&mut world, &mut hands, settle, &mut chance);
    }
    world.sim.with(|s| {
        s.say(|| format!("WITHOUT {permission}"));
        s.evidence.harm.denied = true;
        s.cloud.deny(permission);
    });
    match phase {
        0 => {}
        1 => drop(hands.act(&mut world, Act::Edit(Edit::RemoveMost), &mut chance)),
        _ => drop(hands.delete(&world, 0, &key)),
    }
    rest(&mut world, &mut hands, settle, &mut chance);
    if world.sim.with(|s| s.cloud.refusals()) > MOST_TRIES {
        verdict.violations.insert("tries again and again without a pause".into());
    }
    named(&world, &key, permission, &mut verdict);
    at_rest(&world, "denied", &mut verdict);
    hands.act(&mut world, Act::Allow, &mut chance);
    world.wake_all();
    rest(&mut world, &mut hands, settle, &mut chance);
    at_rest(&world, "rest", &mut verdict);
    converged(&world, "rest", &mut verdict);
    end(&mut world, &mut hands, settle, &mut chance, &mut verdict);
    close(&world, verdict)
}

/// Whoever was refused says which permission is missing, and keeps the finalizer.
fn named(world: &World, key: &Key, permission: &str, verdict: &mut Verdict) {
    let refused = world.sim.with(|s| s.cloud.refusals());
    if refused == 0 {
        return;
    }
    world.sim.with(|s| {
        let Some(object) = s.servers[0].get(key) else {
            verdict.violations.insert("the owner went although a call was refused".into());
            return;
        };
        if !object.view.finalizers.contains(&names::finalizer(s.evidence.controller)) {
            verdict.violations.insert("the finalizer went although a call was refused".into());
        }
        if !object.view.conditions.iter().any(|c| c.message.contains(permission)) {
            verdict.violations.insert("no condition names the missing permission".into());
        }
    });
}
