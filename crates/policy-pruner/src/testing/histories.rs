//! Histories: a policy over ten objects is enforced and deleted, and at every write something goes wrong. Then the judge.
use super::clock::SimClock;
use super::judge::{self, Judgement};
use super::peer;
use super::scene::{self, BETWEEN, Between, POLICIES, is_policy, key, policy_path};
use super::server::{LateEyes, Mishap, Shared, SimServer};
use crate::api::{ConfigurationPolicy, ObjectRef};
use crate::cluster::kinds::Kinds;
use crate::cluster::objects::Objects;
use crate::cluster::spaces::Asked;
use crate::desk::{Desk, Dirt, Memories, Settings};
use crate::prune::container::Container;
use crate::prune::ledgers::Ledgers;
use crate::prune::others::{Inside, Neighbours, Others, Requirer};
use crate::reconcile;
use crate::report::{Notices, Reporter};
use crate::surroundings::Surroundings;
use common::random::Random;
use common::runtime::gate::Gate;
use common::runtime::object::{Key, Version};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Rounds of passes after which a history must have come to rest.
const MOST_ROUNDS: usize = 60;

/// Who plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Player {
    /// The real pass.
    Ours,
    /// The peer's algorithm.
    Peer,
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
    /// One process for all of it, unless it dies; else each part is played by a new one.
    pub lives_on: bool,
}
impl History {
    /// Nothing goes wrong.
    pub fn calm(player: Player, between: Between, late: usize) -> Self {
        History { player, mishaps: [Mishap::None; 2], between, late, lives_on: false }
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
        History { player: Player::Ours, mishaps: [mishap(), mishap()], between, late, lives_on: pick(2) == 0 }
    }
}
/// After so many rounds a watch ends by itself, however busy everybody is; the next one begins with a list.
const WATCH_LASTS: usize = 25;
/// How late watches are.
pub const LATE: [usize; 3] = [0, 1, 3];

/// One life of our process.
pub fn desk(server: &SimServer, clock: &Arc<SimClock>, seed: u64, late: usize) -> Desk {
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
        others: Box::new(Seen { server: server.clone(), late }),
        memories: Memories::default(),
        objects,
    }
}
/// Policies as the watch shows them.
struct Seen {
    server: SimServer,
    late: usize,
}
impl Neighbours for Seen {
    fn requiring(&self, object: &ObjectRef, except: &Key) -> Result<Vec<Requirer>, String> {
        self.policies().requiring(object, except)
    }
    fn inside(&self, container: &Container, except: &Key) -> Result<Inside, String> {
        self.policies().inside(container, except)
    }
}
impl Seen {
    fn policies(&self) -> Others {
        let shown = POLICIES.iter().filter_map(|name| seen_policy(&self.server.lock(), name, self.late));
        let policies: Vec<ConfigurationPolicy> = shown.filter_map(|p| serde_json::from_value(p).ok()).collect();
        Others::of(&policies, Arc::new(Vec::new()))
    }
}

/// Plays passes over all policies until nothing changes any more; a dead process is started again.
async fn rest(history: History, server: &SimServer, clock: &Arc<SimClock>, life: &mut Option<Desk>, seed: &mut u64) {
    if !history.lives_on {
        *life = None;
    }
    let mut quiet = 0;
    for round in 1..=MOST_ROUNDS {
        let before = server.lock().writes;
        let mut alone = true;
        for name in POLICIES {
            if server.lock().dead {
                let mut shared = server.lock();
                shared.dead = false;
                // A new process lists everything anew.
                shared.unheard.clear();
                drop(shared);
                *life = None;
            }
            let shown = seen_policy(&server.lock(), name, history.late.saturating_sub(quiet));
            let Some(object) = shown else {
                if let Some(desk) = &*life {
                    desk.forget(&key(name));
                }
                continue;
            };
            alone = false;
            match history.player {
                Player::Peer => {
                    // A failed pass is played again.
                    let _ = peer::pass(server, &key(name)).await;
                }
                Player::Ours => {
                    if life.is_none() {
                        *seed += 1;
                        *life = Some(desk(server, clock, *seed, history.late));
                    }
                    let Some(desk) = &*life else { return };
                    let Ok(policy) = serde_json::from_value::<ConfigurationPolicy>(object) else { return };
                    let version = Version::parse(policy.metadata.resource_version.as_deref().unwrap_or_default());
                    // As the runner does: nothing is done about a policy that is older than our own write.
                    if !desk.gate.is_stale(policy.metadata.uid.as_deref().unwrap_or_default(), version) {
                        desk.memories.soil(&key(name), Dirt::Always);
                        reconcile::pass(desk, &key(name), &policy).await;
                    }
                }
            }
        }
        if alone {
            return;
        }
        // Longer than the pause between evaluations, shorter than what rewrites `lastEvaluated`.
        clock.pass(Duration::from_millis(1500));
        let mut shared = server.lock();
        quiet = if shared.writes == before { quiet + 1 } else { 0 };
        if round % WATCH_LASTS == 0 {
            shared.unheard.retain(|path, _| !is_policy(path));
        }
        if quiet >= 2 + history.late && !shared.dead {
            // A watch does not last for ever; the next one begins with a list.
            let missed = shared.unheard.len();
            shared.unheard.retain(|path, _| !is_policy(path));
            if shared.unheard.len() == missed {
                return;
            }
            quiet = 0;
        }
    }
}
/// A policy as a watch shows it that is so many writes late, and may have missed one. One that is gone is gone, unless that was missed.
fn seen_policy(shared: &Shared, name: &str, late: usize) -> Option<Value> {
    let path = policy_path(name);
    if let Some(before) = shared.unheard.get(&path) {
        return before.clone();
    }
    let now = shared.world.objects.get(&path)?;
    let past = shared.past.len().checked_sub(late + 1).and_then(|at| shared.past.get(at));
    let seen = past.filter(|_| late > 0).and_then(|world| world.objects.get(&path)).unwrap_or(now);
    Some(seen.clone())
}

/// Plays one history and judges it.
pub async fn play(history: History) -> Judgement {
    let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
    let (mut life, mut seed) = (None, 0);
    {
        let mut shared = server.lock();
        scene::begin(&mut shared);
        shared.mishaps = history.mishaps.to_vec();
    }
    rest(history, &server, &clock, &mut life, &mut seed).await;
    scene::happen(history.between, &mut server.lock());
    rest(history, &server, &clock, &mut life, &mut seed).await;
    let mut taken = 0;
    for name in POLICIES {
        let deletes = server.lock().world.deleted.len();
        // Deleting is the user's; it cannot fail.
        let _ = server.lock().world.delete(&policy_path(name), None);
        rest(history, &server, &clock, &mut life, &mut seed).await;
        if name == POLICIES[0] && history.between.has_heir() {
            taken = judge::taken_from_heir(&server.lock(), deletes);
        }
    }
    let found = judge::judge(&server.lock(), history.between);
    Judgement { foreign: found.foreign + taken, ..found }
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
                Mishap::Stranger(4),
                Mishap::Stranger(20),
                Mishap::DropEvent(1),
                Mishap::DropEvent(6),
            ] {
                let mishaps = [mishap, Mishap::None];
                for lives_on in [false, true] {
                    let found = play(History { player: Player::Ours, mishaps, between, late: 1, lives_on }).await;
                    assert!(found.is_clean(), "{between:?} {mishap:?} {lives_on}: {found:?}");
                }
            }
        }
    }
    #[tokio::test]
    async fn the_judge_sees_what_the_peers_algorithm_loses() {
        let history =
            |mishap, between| History { mishaps: [mishap, Mishap::None], ..History::calm(Player::Peer, between, 0) };
        assert!(play(history(Mishap::None, Between::Nothing)).await.is_clean());
        assert!(
            play(history(Mishap::DieAfter(5), Between::Nothing)).await.left > 0,
            "created, and status never written"
        );
        assert!(play(history(Mishap::None, Between::StatusWiped)).await.left > 0);
        assert!(play(history(Mishap::Stranger(13), Between::Nothing)).await.foreign > 0, "no precondition");
        assert!(play(history(Mishap::None, Between::RestoredWhole)).await.left > 0);
        assert!(play(history(Mishap::None, Between::Inherited)).await.foreign > 0, "deleted under its heir's eyes");
    }
    #[tokio::test]
    async fn a_life_of_ten_objects_is_cheap() {
        let found = play(History::calm(Player::Ours, Between::Nothing, 0)).await;
        assert!(found.writes <= 30, "{found:?}");
    }
}
