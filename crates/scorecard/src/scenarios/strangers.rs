//! S9: strangers' things of every kind, in the way of an owner: unmarked, another owner's, ours from another place.
use crate::acts::Act;
use crate::bench::Bench;
use crate::checks::{Verdict, at_rest, close, converged};
use crate::hands::Hands;
use crate::scenarios::lifetime::slow;
use crate::scenarios::storm::{end, rest};
use common::identity::{Mark, OwnerId, Place};
use common::ledger::{Ledger, Record};
use common::names;
use common::testing::{Chance, Edit, Key, State, Truth, Twin, Variety, World};

const MARKS: u64 = 4;
const MOMENTS: u64 = 7;
/// What a stranger makes just before the owner comes: it is listed, its tags are late.
const JUST_BEFORE: u64 = 6;

/// How many histories S9 has.
pub fn cases(_bench: &Bench, budget: u64) -> u64 {
    (MARKS * MOMENTS * 12).max(budget)
}
/// One history: a stranger's thing appears before, during or after creation, or while the owner is deleted and made anew.
pub fn run(bench: &Bench, case: u64) -> Verdict {
    let mut chance = Chance::new(case ^ 0x0909);
    let (marking, moment) = (case % MARKS, case / MARKS % MOMENTS);
    let settle = bench.settle();
    let mut world = bench.world(case, false, slow(), 0);
    world.sim.with(|s| s.watches.lag = (5, 500));
    let variety = if moment != JUST_BEFORE && chance.one_in(2) { Variety::Fixed } else { Variety::Everything };
    let spec = bench.subject.spec("a", variety, &mut chance);
    let key = world.create_owner(0, "a", spec.clone());
    let mut hands = Hands::new(key.clone(), bench.subject.controller());
    let mut verdict = Verdict::default();
    let mut planted = Vec::new();
    match moment {
        0 | JUST_BEFORE => {}
        1 => {
            world.spawn(0);
            world.run_for(chance.below(20_000));
        }
        4 | 5 => {
            world.spawn(0);
            planted.extend(between_intent_and_id(&mut world, bench, &key, &spec, &mut chance));
            if moment == 5 {
                // the id is lost with the process: two equal things are there, one of them ours
                hands.act(&mut world, Act::CrashAll, &mut chance);
            }
        }
        _ => {
            world.spawn(0);
            rest(&mut world, &mut hands, settle, &mut chance);
        }
    }
    if moment < 4 || moment == JUST_BEFORE {
        for _ in 0..=chance.below(3) {
            planted.extend(plant(&world, bench, &key, &spec, marking, &|_| true, &mut chance));
        }
    }
    if moment == JUST_BEFORE {
        let lags = slow();
        world.run_for(lags.list - 1_000 + chance.below(lags.tag - lags.list + 1_000));
    }
    if moment == 0 || moment == JUST_BEFORE {
        world.spawn(0);
    }
    if moment == 3 {
        // the owner goes and comes back under the same name while its things are being deleted
        hands.delete(&world, 0, &key);
        world.run_for(chance.below(15_000));
        hands.act(&mut world, Act::StripFinalizer, &mut chance);
        world.run_for(settle);
        world.create_owner(0, "a", spec.clone());
    } else {
        hands.act(&mut world, Act::Edit(Edit::Change), &mut chance);
    }
    rest(&mut world, &mut hands, settle, &mut chance);
    at_rest(&world, "rest", &mut verdict);
    converged(&world, "rest", &mut verdict);
    end(&mut world, &mut hands, settle, &mut chance, &mut verdict);
    for id in planted {
        let thing = world.sim.with(|s| s.cloud.thing(&id).filter(|_| !s.evidence.mistaken.contains(&id)));
        judge(thing.as_ref(), &mut verdict);
    }
    close(&world, verdict)
}

/// An equal thing is born right after the intent for a piece that cannot be marked at create, and just before the piece
/// itself; what follows is an edit before its id is stored.
fn between_intent_and_id(
    world: &mut World,
    bench: &Bench,
    key: &Key,
    spec: &serde_json::Value,
    chance: &mut Chance,
) -> Option<String> {
    let name = names::ledger(bench.subject.controller());
    let intended = |s: &State| -> Vec<String> {
        let text = s.servers[0].get(key).and_then(|o| o.view.annotations.get(&name).cloned());
        let Some(Ok(ledger)) = text.map(|t| Ledger::parse(&t)) else { return Vec::new() };
        let open = ledger.records.iter().filter(|(_, r)| matches!(r, Record::Intended { key: Some(_), .. }));
        open.map(|(slot, _)| slot.kind().to_owned()).collect()
    };
    world.run_while(3 * bench.settle(), |s| !intended(s).is_empty());
    let kinds = world.sim.with(|s| intended(s));
    let planted = plant(world, bench, key, spec, 0, &|twin| kinds.contains(&twin.kind), chance);
    let limit = world.sim.now() + bench.settle();
    world.run_while(limit, |s| s.cloud.truth().iter().any(|t| t.by_controller && !t.marked_at_create));
    planted
}

fn plant(
    world: &World,
    bench: &Bench,
    key: &Key,
    spec: &serde_json::Value,
    marking: u64,
    fits: &dyn Fn(&Twin) -> bool,
    chance: &mut Chance,
) -> Option<String> {
    let place_of = |installation: &str, name: &str| {
        Place::of(installation, bench.subject.controller(), bench.subject.kind(), &key.0, name)
    };
    world.sim.with(|s| {
        let mut twins = bench.subject.twins(&key.1, spec, s.cloud.as_ref());
        twins.retain(|twin| fits(twin));
        let twin = chance.pick(&twins)?;
        let slot = chance.pick(&bench.subject.wanted(spec))?.parse().ok()?;
        let ours = common::testing::evidence::Claims::of(&s.servers[0], key, s.evidence.controller, s.evidence.kind);
        let stranger = OwnerId::from_bits([7; 16]);
        let mark = |owner, place| Some(Mark { owner, place, slot, adopted: None });
        let mark = match marking {
            0 => None,
            1 => mark(stranger, place_of("elsewhere", "z")),
            // another owner of this very installation
            2 => mark(stranger, place_of("one", "z")),
            _ => mark(ours.ids.iter().next().copied().unwrap_or(stranger), place_of("elsewhere", "a")),
        };
        s.evidence.harm.stranger = true;
        let now = s.now();
        let made = s.cloud.plant(now, &twin, mark.as_ref());
        s.say(|| format!("STRANGER {made:?} {mark:?}"));
        made
    })
}

/// A stranger's thing lives on, unless it was adopted with `delete` when nobody had marked it.
fn judge(thing: Option<&Truth>, verdict: &mut Verdict) {
    let Some(thing) = thing else { return };
    let adopted = thing.marks_ever().next().is_some_and(|m| m.adopted == Some(common::identity::Then::Delete));
    if !thing.live && !adopted {
        verdict.violations.insert(format!("a stranger's {} is gone", thing.kind));
    }
}
