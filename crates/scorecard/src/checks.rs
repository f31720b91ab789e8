//! What must hold when a world has come to rest, and after all its owners are gone.
use common::engine::report::Progress;
use common::identity::{MarkSeen, OwnerId, Then};
use common::ledger::{Ledger, Record};
use common::names::{self, reason};
use common::testing::evidence::{Claims, Harm};
use common::testing::wire::Target;
use common::testing::{Key, Object, State, Truth, World};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What a history came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Damage.
    pub violations: BTreeSet<String>,
    /// Damage the protocol's page lists as known.
    pub residue: BTreeSet<String>,
    /// Things made and deleted by controllers.
    pub creates: u64,
    /// Things deleted by controllers.
    pub deletes: u64,
    /// External calls.
    pub calls: u64,
    /// The history for people, if asked for.
    pub trace: String,
}

/// One owner, with what it can call its own.
struct Standing {
    server: usize,
    key: Key,
    object: Arc<Object>,
    ledger: Option<Ledger>,
    claims: Claims,
}

fn owners(s: &State) -> Vec<Standing> {
    let (controller, kind) = (s.evidence.controller, s.evidence.kind);
    let mut all = Vec::new();
    for (number, server) in s.servers.iter().enumerate() {
        for (key, object) in server.objects() {
            let text = object.view.annotations.get(&names::ledger(controller));
            all.push(Standing {
                server: number,
                key: key.clone(),
                object: Arc::clone(object),
                ledger: text.and_then(|t| Ledger::parse(t).ok()),
                claims: Claims::of(server, key, controller, kind),
            });
        }
    }
    all
}

/// Why a live thing that nobody has recorded may be there all the same, as the page lists it.
fn excuse(thing: &Truth, harm: Harm, s: &State, present: &BTreeSet<OwnerId>) -> Option<&'static str> {
    let marked = thing.marks_ever().next().is_some();
    // who lost the record of having made it, and adopts what is there, takes it for a stranger's
    let known_as_ours = thing.marks_ever().any(|m| m.adopted.is_none());
    if harm.given_up && thing.marks_ever().any(|m| !present.contains(&m.owner)) {
        return Some("given up by take-over none");
    }
    if harm.given_up && !marked {
        return Some("given up by take-over none before it was tagged");
    }
    if harm.owner {
        return Some("finalizer stripped and owner deleted before it was seen");
    }
    if harm.ledger && !known_as_ours {
        return Some("ledger hurt between create and tag of a kind not markable at create");
    }
    if !marked && s.cloud.truth().iter().any(|t| rival(thing, t)) {
        return Some("a stranger's equal thing was born beside it before it was tagged");
    }
    if s.evidence.touched.contains(&thing.id) && thing.mark().is_none_or(|m| !present.contains(&m.owner)) {
        return Some("mark taken off by hand");
    }
    None
}

/// A stranger's thing that nothing but its maker tells from this one.
fn rival(thing: &Truth, other: &Truth) -> bool {
    let near = Duration::from_secs(30).as_millis();
    !other.by_controller
        && (&other.kind, &other.key, &other.params) == (&thing.kind, &thing.key, &thing.params)
        && u128::from(thing.born.abs_diff(other.born)) < near
}

/// No orphan, no duplicate, no finalizer missing, no mark of ours left on a stranger's thing.
pub fn at_rest(world: &World, when: &str, verdict: &mut Verdict) {
    world.sim.with(|s| {
        let owners = owners(s);
        let harm = s.evidence.harm;
        let present: BTreeSet<OwnerId> = owners.iter().flat_map(|o| o.claims.ids.iter().copied()).collect();
        let paused = owners.iter().any(|o| held(&o.object));
        let things: Vec<Truth> = s.cloud.truth().into_iter().filter(|t| t.live).collect();
        // an owner on its way out finds its things by their marks
        let leaves = |thing: &Truth| {
            let covers = |o: &Standing| thing.marks.last().is_some_and(|(_, mark)| o.claims.cover(mark));
            owners.iter().any(|o| o.object.view.deleting && covers(o))
        };
        for thing in things.iter().filter(|t| t.by_controller) {
            let recorded = owners.iter().filter_map(|o| o.ledger.as_ref()).any(|l| records(l, &thing.id));
            if recorded || paused || leaves(thing) {
                continue;
            }
            match excuse(thing, harm, s, &present) {
                Some(why) => drop(verdict.residue.insert(format!("{when}: {} left, {why}", thing.kind))),
                None => drop(verdict.violations.insert(format!("{when}: orphan {}", thing.kind))),
            }
        }
        for (n, thing) in things.iter().enumerate().filter(|(_, t)| t.by_controller) {
            let Some(mark) = thing.mark() else { continue };
            let same =
                |t: &&Truth| t.by_controller && t.mark().is_some_and(|m| m.owner == mark.owner && m.slot == mark.slot);
            let before: Vec<&Truth> = things.iter().take(n).filter(same).collect();
            if !before.is_empty() && !paused && !harm.owner && present.contains(&mark.owner) {
                // of two that were both served, one may be on its way out, and the cloud in its way
                let apart = |t: &&Truth| t.mark().is_some_and(|m| m.place != mark.place);
                if harm.copied && before.iter().all(apart) && before.iter().copied().chain([thing]).any(leaves) {
                    verdict.residue.insert(format!("{when}: {} of a copy that is on its way out", thing.kind));
                } else if harm.ledger && owners.iter().any(stuck_removal) {
                    verdict.residue.insert(format!("{when}: second {} stays while something stands on it", thing.kind));
                } else {
                    verdict.violations.insert(format!("{when}: duplicate {}", thing.kind));
                }
            }
        }
        for thing in things.iter().filter(|t| !t.by_controller && !paused) {
            let ours = |m: &common::identity::Mark| m.adopted.is_some() && !present.contains(&m.owner);
            if thing.mark().is_some_and(ours) && !harm.owner && !harm.given_up {
                verdict.violations.insert(format!("{when}: our mark left on a stranger's {}", thing.kind));
            }
        }
        let damage = world.subject.damage(s.cloud.as_ref());
        verdict.violations.extend(damage.into_iter().map(|what| format!("{when}: {what}")));
        let finalizer = names::finalizer(s.evidence.controller);
        for o in owners.iter().filter(|o| o.ledger.as_ref().is_some_and(|l| !l.records.is_empty())) {
            if !o.object.view.finalizers.contains(&finalizer) && !held(&o.object) {
                verdict.violations.insert(format!("{when}: finalizer missing"));
            }
        }
    });
}

fn records(ledger: &Ledger, id: &str) -> bool {
    ledger.records.values().any(|r| r.id().is_some_and(|i| i == id)) || ledger.removing.iter().any(|r| r.id == id)
}
fn held(object: &Object) -> bool {
    let has = |name| object.view.annotations.contains_key(name);
    has(names::PAUSED) || has(names::DELETE_FOR_MOVE) || object.view.finalizers.iter().any(|f| f == crate::hands::PEER)
}

/// Every owner that may be served has what it wants, or a good reason not to.
pub fn converged(world: &World, when: &str, verdict: &mut Verdict) {
    let owners = world.sim.with(|s| owners(s));
    for o in owners {
        if held(&o.object) || o.object.view.deleting {
            continue;
        }
        for process in &world.processes {
            let serves = world.sim.with(|s| s.processes[process.id].server) == o.server;
            if !serves {
                continue;
            }
            let Some(report) = process.reports.get(&o.key) else {
                verdict.violations.insert(format!("{when}: never visited"));
                continue;
            };
            let line = match &report.progress {
                Progress::Done => world.sim.with(|s| whole(world, s, &o)),
                Progress::Blocked { reason, .. } if world.sim.with(|s| justified(s, &o, reason)) => None,
                Progress::Blocked { reason, .. } => Some(format!("stuck with {reason}")),
                // between two tries
                Progress::Waiting { .. }
                    if process.faults.get(&o.key).is_some_and(|why| world.sim.with(|s| in_the_way(s, why))) =>
                {
                    None
                }
                Progress::Waiting { message, .. } => Some(format!("still waiting: {message}")),
                Progress::Failed(fault) if world.sim.with(|s| in_the_way(s, &fault.to_string())) => None,
                // what was made twice after its ledger was hurt, and is stood on, stays until its owner goes
                Progress::Failed(_) if world.sim.with(|s| s.evidence.harm.ledger) && stuck_removal(&o) => None,
                Progress::Failed(fault) => Some(format!("still failing: {fault}")),
                Progress::Stale(_) => Some("still stale".into()),
                Progress::Gone => Some("said to be gone".into()),
            };
            if let Some(line) = line {
                verdict.violations.insert(format!("{when}: {line}"));
            }
        }
    }
}

/// `Done` is true: everything wanted is recorded and alive, nothing else is under way.
fn whole(world: &World, s: &State, o: &Standing) -> Option<String> {
    let Some(ledger) = &o.ledger else { return Some("done without a ledger".into()) };
    for slot in world.subject.wanted(&o.object.spec) {
        let record = ledger.records.iter().find(|(s, _)| s.as_str() == slot).map(|(_, r)| r);
        let alive = match record {
            Some(Record::Created { id, .. } | Record::Adopted { id, .. } | Record::Referenced { id }) => {
                s.cloud.thing(id).is_some_and(|t| t.live)
            }
            _ => false,
        };
        if !alive {
            return Some("done, but a wanted piece is missing".into());
        }
    }
    if !ledger.removing.is_empty() {
        return Some("done, but something is still to be removed".into());
    }
    world.subject.flaw(&o.object, ledger, s.cloud.as_ref()).map(|flaw| format!("done, but {flaw}"))
}

/// Is there a good reason for being stuck?
fn justified(s: &State, o: &Standing, why: &str) -> bool {
    let harm = s.evidence.harm;
    let live = || s.cloud.truth().into_iter().filter(|t| t.live);
    match why {
        reason::EXISTS_UNOWNED => live().any(|t| {
            t.mark().is_none() && (!t.by_controller || harm.ledger || harm.given_up || harm.copied || harm.hand)
        }),
        reason::OWNERSHIP_CONFLICT => live()
            .any(|t| matches!(t.marks.last(), Some((_, mark)) if *mark != MarkSeen::Nothing && !o.claims.cover(mark))),
        reason::REFERENCE_LOST => harm.hand || adopted_gone(s, o),
        // by hand, or before the backup was restored
        reason::RESOURCE_LOST => harm.hand || harm.ledger,
        reason::RESOURCE_FAILED => true,
        // nothing but the ledger knew which account was the right one
        reason::IDENTITY_MISMATCH => harm.ledger && harm.denied,
        reason::TAKEOVER_REQUIRED => harm.copied || harm.ledger || harm.owner,
        _ => false,
    }
}

/// Does the cloud refuse because of a thing that nobody here may delete?
fn in_the_way(s: &State, why: &str) -> bool {
    let in_use = why.contains("in use") || why.contains("InUse");
    let holds = |t: &Truth| in_use && why.contains(&t.id);
    let owners = owners(s);
    let ours = |t: &Truth| t.marks.last().is_some_and(|(_, mark)| owners.iter().any(|o| o.claims.cover(mark)));
    s.cloud.truth().iter().any(|t| t.live && holds(t) && !ours(t))
}

/// Is there something to be removed?
fn stuck_removal(o: &Standing) -> bool {
    o.ledger.as_ref().is_some_and(|l| !l.removing.is_empty())
}

/// Somebody else made it, and it is gone.
fn adopted_gone(s: &State, o: &Standing) -> bool {
    let Some(ledger) = &o.ledger else { return false };
    ledger.records.values().any(|r| match r {
        Record::Adopted { id, then: Then::Release } | Record::Referenced { id } => {
            s.cloud.thing(id).is_none_or(|t| !t.live)
        }
        _ => false,
    })
}

/// All owners are gone.
pub fn all_gone(world: &World, when: &str, verdict: &mut Verdict) {
    for o in world.sim.with(|s| owners(s)) {
        let mut why = world.processes.iter().filter_map(|p| p.reports.get(&o.key)).map(|r| match &r.progress {
            Progress::Waiting { message, .. } => message.clone(),
            Progress::Blocked { reason, .. } => (*reason).to_owned(),
            other => format!("{other:?}"),
        });
        let why = why.next_back().unwrap_or_default();
        let harm = world.sim.with(|s| s.evidence.harm);
        if world.sim.with(|s| in_the_way(s, &why)) {
            verdict.residue.insert(format!("{when}: owner waits for a stranger's thing that stands on its own"));
            continue;
        }
        if why == reason::IDENTITY_MISMATCH && harm.ledger && harm.denied {
            verdict.residue.insert(format!("{when}: ledger lost under another account's credentials"));
            continue;
        }
        verdict.violations.insert(format!("{when}: owner never goes away ({why})"));
    }
}

/// Nobody writes and nobody changes anything for half an hour.
pub fn silent(world: &mut World, when: &str, verdict: &mut Verdict) {
    let count = |world: &World| {
        world.sim.with(|s| {
            let writes: u64 = s.servers.iter().map(|x| x.writes).sum();
            (writes, s.wire.count(Target::Cloud, true), s.wire.count(Target::Api, true))
        })
    };
    // an owner that cannot have what it wants keeps trying, slowly
    let settled = |p: &Progress| matches!(p, Progress::Done | Progress::Blocked { .. });
    if world.processes.iter().any(|p| p.reports.values().any(|r| !settled(&r.progress))) {
        return;
    }
    let before = count(world);
    world.run_for(30 * 60 * 1000);
    let after = count(world);
    if before != after {
        verdict.violations.insert(format!("{when}: not silent"));
        world.sim.with(|s| s.say(|| format!("NOT SILENT {before:?} -> {after:?}")));
    }
}

/// Takes what was judged on the way into the verdict.
pub fn close(world: &World, mut verdict: Verdict) -> Verdict {
    world.sim.with(|s| {
        verdict.violations.append(&mut s.evidence.violations);
        verdict.residue.append(&mut s.evidence.residue);
        verdict.creates = s.evidence.creates;
        verdict.deletes = s.evidence.deletes;
        verdict.calls = s.wire.total() as u64;
        verdict.trace = s.take_trace();
    });
    verdict
}
