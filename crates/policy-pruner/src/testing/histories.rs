//! Histories: a policy over ten objects is enforced and deleted, and at every write something goes wrong. Then the judge.
use super::clock::SimClock;
use super::peer;
use super::server::{LateEyes, Mishap, SimServer};
use crate::api::ConfigurationPolicy;
use crate::cluster::kinds::Kinds;
use crate::cluster::objects::Objects;
use crate::cluster::spaces::Asked;
use crate::desk::{Desk, Memories, Settings};
use crate::prune::ledgers::Ledgers;
use crate::report::{Notices, Reporter};
use crate::surroundings::Surroundings;
use crate::{names, reconcile, report};
use common::random::Random;
use common::runtime::gate::Gate;
use common::runtime::object::{Key, Version};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Objects of the policy that are not there before.
pub const OBJECTS: usize = 10;
/// Passes after which a history must have come to rest.
const MOST_PASSES: usize = 60;
const NAMESPACE: &str = "n";
const BARE: [&str; 3] = ["child-1", "child-3", "child-8"];
/// Named by the policy, there before it: never ours.
const ELDER: &str = "elder";

/// Who plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Player {
    /// The real pass.
    Ours,
    /// The peer's algorithm.
    Peer,
}
/// What happens between enforcing and deleting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Between {
    /// Nothing.
    Nothing,
    /// The status is wiped.
    StatusWiped,
    /// The policy comes back under another uid, without its status.
    Restored,
    /// A stranger deletes one child and creates his own.
    Replaced,
    /// Half of the objects drop out of the policy.
    EditedOut,
}
/// One history.
#[derive(Clone, Copy, Debug)]
pub struct History {
    /// Who plays.
    pub player: Player,
    /// What goes wrong at writes.
    pub mishaps: [Mishap; 2],
    /// What happens between.
    pub between: Between,
    /// How many writes the watch is late.
    pub late: usize,
}
impl History {
    /// Nothing goes wrong.
    pub fn calm(player: Player, between: Between, late: usize) -> Self {
        History { player, mishaps: [Mishap::None; 2], between, late }
    }
    /// Two mishaps anywhere in a life of so many writes; the seed says which.
    pub fn of_seed(seed: u64, writes: impl Fn(Between, usize) -> usize) -> Self {
        let random = Random::seeded(seed);
        let pick = |n: usize| usize::try_from(random.bits64() % n as u64).unwrap_or_default();
        let (between, late) = (BETWEEN[pick(BETWEEN.len())], LATE[pick(LATE.len())]);
        let most = writes(between, late) + 2;
        let mishap = || {
            let at = 1 + pick(most);
            [
                Mishap::DieBefore(at),
                Mishap::DieAfter(at),
                Mishap::LoseReply(at),
                Mishap::Stranger(at),
                Mishap::DropEvent(at),
            ][pick(5)]
        };
        History { player: Player::Ours, mishaps: [mishap(), mishap()], between, late }
    }
}
/// Everything that may happen between.
pub const BETWEEN: [Between; 5] =
    [Between::Nothing, Between::StatusWiped, Between::Restored, Between::Replaced, Between::EditedOut];
/// How late watches are.
pub const LATE: [usize; 3] = [0, 1, 3];

/// What the judge found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Children of the policy that outlived it.
    pub left: usize,
    /// Deleted, and not created by the policy.
    pub foreign: usize,
    /// The policy, or its ledger, never went.
    pub stuck: bool,
    /// Writes in all.
    pub writes: usize,
    /// Requests in all.
    pub requests: usize,
}
impl Judgement {
    /// Nothing is wrong.
    pub fn is_clean(self) -> bool {
        self.left == 0 && self.foreign == 0 && !self.stuck
    }
}

fn key() -> Key {
    Key::new(NAMESPACE, "policy")
}
fn policy_path() -> String {
    report::mapping().path_of(NAMESPACE, "policy")
}
fn thing_path(name: &str) -> String {
    format!("/apis/test/v1/namespaces/{NAMESPACE}/things/{name}")
}
/// Some have no field of their own, and so no field manager.
fn thing(name: &str) -> Value {
    let mut thing = json!({"apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"a": 1}});
    if let Some(fields) = thing.as_object_mut().filter(|_| BARE.contains(&name)) {
        fields.remove("spec");
    }
    thing
}
fn templates(names: &[String]) -> Value {
    let all = names.iter().map(|name| json!({"complianceType": "musthave", "objectDefinition": thing(name)}));
    Value::Array(all.collect())
}
fn children() -> Vec<String> {
    (0..OBJECTS).map(|n| format!("child-{n}")).collect()
}
fn policy() -> Value {
    let mut names = children();
    names.push(ELDER.into());
    json!({"apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "metadata": {"name": "policy", "namespace": NAMESPACE},
        "spec": {"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": templates(&names)}})
}

/// One life of our process.
fn desk(server: &SimServer, clock: &Arc<SimClock>, seed: u64, late: usize) -> Desk {
    let wire = Arc::new(server.clone());
    let objects = Objects(wire.clone());
    let random = Arc::new(Random::seeded(seed));
    let reporter = Reporter {
        objects: objects.clone(),
        notices: Notices::silent(),
        clock: clock.clone(),
        random: random.clone(),
        instance: "sim".into(),
    };
    Desk {
        kinds: Arc::new(Kinds::new(wire, clock.clone())),
        eyes: Some(Arc::new(LateEyes { server: server.clone(), late })),
        spaces: Arc::new(Asked(objects.clone())),
        ledgers: Arc::new(Ledgers::new(objects.clone(), random)),
        surroundings: Arc::new(Surroundings::new(objects.clone(), None)),
        reporter,
        clock: clock.clone(),
        settings: Settings { backoff: Duration::from_secs(1), ..Settings::default() },
        metrics: None,
        gate: Arc::new(Gate::new("none")),
        requiring: Box::new(|_, _| Vec::new()),
        memories: Memories::default(),
        objects,
    }
}

/// Plays passes until nothing changes any more; a dead process is started again.
async fn rest(history: History, server: &SimServer, clock: &Arc<SimClock>, seed: &mut u64) {
    let mut life: Option<Desk> = None;
    let mut quiet = 0;
    for _ in 0..MOST_PASSES {
        if server.lock().dead {
            let mut shared = server.lock();
            shared.dead = false;
            // A new process lists everything anew.
            shared.unheard.clear();
            drop(shared);
            life = None;
        }
        let before = server.lock().writes;
        let Some(object) = seen_policy(server, history.late.saturating_sub(quiet)) else { return };
        match history.player {
            Player::Peer => {
                // A failed pass is played again.
                let _ = peer::pass(server, &key()).await;
            }
            Player::Ours => {
                if life.is_none() {
                    *seed += 1;
                    life = Some(desk(server, clock, *seed, history.late));
                }
                let Some(desk) = &life else { return };
                let Ok(policy) = serde_json::from_value::<ConfigurationPolicy>(object) else { return };
                let version = Version::parse(policy.metadata.resource_version.as_deref().unwrap_or_default());
                // As the runner does: nothing is done about a policy that is older than our own write.
                if !desk.gate.is_stale(policy.metadata.uid.as_deref().unwrap_or_default(), version) {
                    desk.memories.soil(&key());
                    reconcile::pass(desk, &key(), &policy).await;
                }
            }
        }
        // Longer than the pause between evaluations, shorter than what rewrites `lastEvaluated`.
        clock.pass(Duration::from_millis(1500));
        quiet = if server.lock().writes == before { quiet + 1 } else { 0 };
        if quiet >= 2 + history.late && !server.lock().dead {
            return;
        }
    }
}
/// The policy as a watch shows it that is so many writes late. One that is gone is gone: its end is always heard of.
fn seen_policy(server: &SimServer, late: usize) -> Option<Value> {
    let shared = server.lock();
    let now = shared.world.objects.get(&policy_path())?;
    let past = shared.past.len().checked_sub(late + 1).and_then(|at| shared.past.get(at));
    let seen = past.filter(|_| late > 0).and_then(|world| world.objects.get(&policy_path())).unwrap_or(now);
    Some(seen.clone())
}

/// Plays one history and judges it.
pub async fn play(history: History) -> Judgement {
    let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
    let mut seed = 0;
    {
        let mut shared = server.lock();
        let crd = json!({"metadata": {"name": names::CRD}});
        let crd_path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", names::CRD);
        // The beginning of every history: nothing here can fail.
        let _ = shared.world.create(&crd_path, crd, "setup");
        let _ = shared.world.create(&thing_path(ELDER), thing(ELDER), "somebody");
        let _ = shared.world.create(&policy_path(), policy(), "user");
        let begun = shared.world.clone();
        shared.past = vec![begun; 4];
        shared.mishaps = history.mishaps.to_vec();
    }
    rest(history, &server, &clock, &mut seed).await;
    happen(history.between, &server);
    rest(history, &server, &clock, &mut seed).await;
    // Deleting is the user's; it cannot fail.
    let _ = server.lock().world.delete(&policy_path(), None);
    rest(history, &server, &clock, &mut seed).await;
    judge(&server)
}

fn happen(between: Between, server: &SimServer) {
    let mut shared = server.lock();
    match between {
        Between::Nothing => {}
        Between::StatusWiped => shared.world.touch(&policy_path(), |policy| policy["status"] = json!({})),
        Between::Restored => {
            shared.world.touch(&policy_path(), |policy| policy["metadata"]["finalizers"] = json!([]));
            // A backup brings it back without its status.
            let _ = shared.world.delete(&policy_path(), None);
            let _ = shared.world.create(&policy_path(), policy(), "backup");
        }
        Between::Replaced => {
            let path = thing_path("child-3");
            if shared.world.delete(&path, None).is_ok() {
                shared.world.deleted.pop();
            }
            if let Ok(made) = shared.world.create(&path, thing("child-3"), "a-stranger") {
                shared.foreign.push(made["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
            }
        }
        Between::EditedOut => {
            let names: Vec<String> = children().into_iter().take(OBJECTS / 2).collect();
            shared.world.edit(&policy_path(), |policy| policy["spec"]["object-templates"] = templates(&names));
        }
    }
    shared.remember();
}

fn judge(server: &SimServer) -> Judgement {
    let shared = server.lock();
    let ours = |path: &str| path.contains("/things/") && !path.ends_with(ELDER);
    let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let living = shared.world.objects.iter().filter(|(path, _)| ours(path));
    let left = living.filter(|(_, object)| !shared.foreign.contains(&uid(object))).count();
    let foreign = shared
        .world
        .deleted
        .iter()
        .filter(|(path, uid)| path.contains("/things/") && (path.ends_with(ELDER) || shared.foreign.contains(uid)));
    let policy_there = shared.world.objects.contains_key(&policy_path());
    let ledger_there = shared.world.objects.keys().any(|path| path.contains("/configmaps/"));
    Judgement {
        left,
        foreign: foreign.count(),
        stuck: policy_there || ledger_there,
        writes: shared.writes,
        requests: shared.requests,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_left_over_and_nothing_foreign_deleted() {
        // A few of the histories that `hack/scorecard` plays in full.
        for between in BETWEEN {
            for mishap in [
                Mishap::None,
                Mishap::DieAfter(3),
                Mishap::DieBefore(9),
                Mishap::LoseReply(4),
                Mishap::Stranger(20),
                Mishap::DropEvent(6),
            ] {
                let mishaps = [mishap, Mishap::None];
                let found = play(History { player: Player::Ours, mishaps, between, late: 1 }).await;
                assert!(found.is_clean(), "{between:?} {mishap:?}: {found:?}");
            }
        }
    }
    #[tokio::test]
    async fn the_judge_sees_what_the_peers_algorithm_loses() {
        let history =
            |mishap, between| History { player: Player::Peer, mishaps: [mishap, Mishap::None], between, late: 0 };
        assert!(play(history(Mishap::None, Between::Nothing)).await.is_clean());
        assert!(
            play(history(Mishap::DieAfter(5), Between::Nothing)).await.left > 0,
            "created, and status never written"
        );
        assert!(play(history(Mishap::None, Between::StatusWiped)).await.left > 0);
        assert!(play(history(Mishap::Stranger(13), Between::Nothing)).await.foreign > 0, "no precondition");
    }
    #[tokio::test]
    async fn a_life_of_ten_objects_is_cheap() {
        let found = play(History::calm(Player::Ours, Between::Nothing, 0)).await;
        assert!(found.writes <= 30, "{found:?}");
    }
}
