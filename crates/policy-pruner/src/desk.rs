//! Everything a pass works with, and the small writes every pass needs.
use crate::api::ConfigurationPolicy;
use crate::cluster::kinds::Kinds;
use crate::cluster::objects::Objects;
use crate::cluster::sight::{Direct, Eyes, Sight};
use crate::cluster::spaces::Spaces;
use crate::cluster::wire::Trouble;
use crate::memory::Memory;
use crate::metrics::PolicyMetrics;
use crate::names::FINALIZER;
use crate::prune::ledgers::Ledgers;
use crate::prune::others::Neighbours;
use crate::report::{self, Reporter};
use crate::surroundings::Surroundings;
use common::clock::SharedClock;
use common::runtime::gate::Gate;
use common::runtime::object::{Key, Version};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How this process behaves.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// One evaluation of a policy per this time.
    pub backoff: Duration,
    /// Terminating namespaces count, unless a policy says otherwise.
    pub take_terminating: bool,
    /// Prune as the peer does: also what was only matched, also what others require.
    pub like_upstream: bool,
}
impl Default for Settings {
    fn default() -> Self {
        Settings { backoff: Duration::from_secs(5), take_terminating: true, like_upstream: false }
    }
}

/// Everything a pass works with.
pub struct Desk {
    /// Reads and writes.
    pub objects: Objects,
    /// Kinds.
    pub kinds: Arc<Kinds>,
    /// Watches; without them everything is read directly.
    pub eyes: Option<Arc<dyn Eyes>>,
    /// Namespaces.
    pub spaces: Arc<dyn Spaces>,
    /// Ledgers.
    pub ledgers: Arc<Ledgers>,
    /// Is this installation on its way out?
    pub surroundings: Arc<Surroundings>,
    /// Status and events.
    pub reporter: Reporter,
    /// Time.
    pub clock: SharedClock,
    /// How to behave.
    pub settings: Settings,
    /// Series per policy.
    pub metrics: Option<Arc<PolicyMetrics>>,
    /// Keeps passes off caches older than our own writes.
    pub gate: Arc<Gate>,
    /// What other policies need.
    pub others: Box<dyn Neighbours>,
    /// Memories of policies.
    pub memories: Memories,
}
impl Desk {
    /// What a policy sees in this pass.
    pub fn sight(&self, policy: &Key, follow: bool) -> Arc<dyn Sight> {
        match &self.eyes {
            Some(eyes) if follow => eyes.look(policy),
            _ => Arc::new(Direct(self.objects.clone())),
        }
    }
    /// The policy no longer follows anything.
    pub fn unfollow(&self, policy: &Key) {
        if let Some(eyes) = &self.eyes {
            eyes.forget(policy);
        }
    }
    /// A policy is gone.
    pub fn forget(&self, policy: &Key) {
        self.unfollow(policy);
        self.spaces.forget(policy);
        self.memories.forget(policy);
        if let Some(metrics) = &self.metrics {
            metrics.forget(policy);
        }
    }
    /// A policy as the API server answered: older versions of it are not believed any more.
    pub fn stored(&self, object: &Value) {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        self.gate.note(text("uid"), Version::parse(text("resourceVersion")));
    }
    /// Is the policy gone, or another one of its name there? Looked at, not guessed from how a write was refused.
    pub async fn is_gone(&self, policy: &ConfigurationPolicy) -> bool {
        let meta = &policy.metadata;
        let (namespace, name) =
            (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
        match self.objects.get(&report::mapping(), namespace, name).await {
            Ok(found) => found.is_none_or(|now| now["metadata"]["uid"].as_str() != meta.uid.as_deref()),
            Err(_) => false,
        }
    }
    /// Puts our finalizer on. Never on something that is being deleted.
    pub async fn add_finalizer(&self, policy: &ConfigurationPolicy) -> Result<ConfigurationPolicy, Trouble> {
        let none = policy.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
        let add = if none {
            json!({"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]})
        } else {
            json!({"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER})
        };
        // Whoever changed the policy meanwhile may have deleted it, or changed its finalizers.
        let test =
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": policy.metadata.resource_version});
        let stored = self.objects.patch(path(policy), json!([test, add])).await?;
        self.stored(&stored);
        serde_json::from_value(stored).map_err(|e| Trouble::silent(e.to_string()))
    }
    /// Takes our finalizer off, and no other.
    pub async fn remove_finalizer(&self, policy: &ConfigurationPolicy) -> Result<(), Trouble> {
        let finalizers = policy.metadata.finalizers.iter().flatten();
        let Some(at) = finalizers.into_iter().position(|f| f == FINALIZER) else { return Ok(()) };
        let pointer = format!("/metadata/finalizers/{at}");
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": policy.metadata.uid},
            {"op": "test", "path": pointer, "value": FINALIZER},
            {"op": "remove", "path": pointer},
        ]);
        match self.objects.patch(path(policy), patch).await {
            Ok(stored) => {
                self.stored(&stored);
                Ok(())
            }
            Err(trouble) if trouble.is_missing() => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}
fn path(policy: &ConfigurationPolicy) -> String {
    let meta = &policy.metadata;
    report::mapping().path_of(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}
/// Does the policy carry our finalizer?
pub fn has_finalizer(policy: &ConfigurationPolicy) -> bool {
    policy.metadata.finalizers.iter().flatten().any(|f| f == FINALIZER)
}

/// Memories of all policies, and which of them must be looked at again.
#[derive(Default)]
pub struct Memories {
    all: Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Memory>>>>,
    dirty: Mutex<HashMap<Key, Dirt>>,
}
/// Why a policy must be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dirt {
    /// An object that it follows changed. A policy that follows nothing any more, by its own word, does not care.
    Followed,
    /// Something that counts whatever it follows: its namespaces, its ledger, an object handed to it.
    Always,
}
impl Memories {
    /// The memory of a policy.
    pub fn of(&self, policy: &Key) -> Arc<tokio::sync::Mutex<Memory>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).entry(policy.clone()).or_default().clone()
    }
    fn dirty(&self) -> MutexGuard<'_, HashMap<Key, Dirt>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Something a policy looks at changed.
    pub fn soil(&self, policy: &Key, dirt: Dirt) {
        let mut dirty = self.dirty();
        let known = dirty.entry(policy.clone()).or_insert(dirt);
        if dirt == Dirt::Always {
            *known = dirt;
        }
    }
    /// What changed since the last time this was asked.
    pub fn take_dirt(&self, policy: &Key) -> Option<Dirt> {
        self.dirty().remove(policy)
    }
    fn forget(&self, policy: &Key) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(policy);
        self.dirty().remove(policy);
    }
}
