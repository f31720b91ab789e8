//! Keeps credentials from going before the objects that need them: a namespace that is deleted takes its Secrets first, and
//! without them nothing in the cloud could be taken down. Elsewhere a Secret that somebody deletes goes at once, and one that
//! nobody uses any more is not held.
use crate::inputs::Missing;
use crate::secrets::Users;
use common::clock::SharedClock;
use common::runtime::object::{Arrived, Key};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::{info, warn};

/// On credentials that somebody uses.
pub const FINALIZER: &str = "custody.dev/openstack-credentials";
/// How often to look whether Secrets on their way out are still needed.
const LOOK: Duration = Duration::from_secs(3);

/// Holds on to credentials, and lets them go.
pub struct Keeper {
    client: Client,
    held: Mutex<HashSet<Key>>,
    leaving: Mutex<BTreeSet<Key>>,
}
impl Keeper {
    /// Nothing is held yet.
    pub fn new(client: Client) -> Self {
        Keeper { client, held: Mutex::new(HashSet::new()), leaving: Mutex::new(BTreeSet::new()) }
    }
    fn held(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn leaving(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The watch shows this Secret.
    pub fn saw(&self, arrived: &Arrived) {
        let metadata = &arrived.value["metadata"];
        let ours = metadata["finalizers"].as_array().into_iter().flatten().any(|it| it == FINALIZER);
        let key = arrived.key();
        if ours {
            self.held().insert(key.clone());
        } else {
            self.held().remove(&key);
        }
        if ours && !metadata["deletionTimestamp"].is_null() {
            self.leaving().insert(key);
        }
    }
    /// This Secret is gone.
    pub fn gone(&self, key: &Key) {
        self.held().remove(key);
        self.leaving().remove(key);
    }
    /// Somebody with things in the cloud uses this Secret.
    pub async fn hold(&self, namespace: &str, name: &str) {
        let key = Key::new(namespace, name);
        if self.held().contains(&key) {
            return;
        }
        match self.change(&key, true).await {
            Ok(()) => drop(self.held().insert(key)),
            Err(why) => warn!(secret = %key, %why, "credentials are not held"),
        }
    }
    /// Adds or takes off our finalizer, under the version that was read.
    async fn change(&self, key: &Key, on: bool) -> Result<(), Missing> {
        let unavailable = |error: kube::Error| Missing::Unavailable(error.to_string());
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        let Some(secret) = api.get_metadata_opt(&key.name).await.map_err(unavailable)? else { return Ok(()) };
        let has = secret.finalizers().iter().any(|it| it == FINALIZER);
        if has == on || on && secret.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let mut finalizers: Vec<String> = secret.finalizers().iter().filter(|it| *it != FINALIZER).cloned().collect();
        if on {
            finalizers.push(FINALIZER.to_owned());
        }
        let version = secret.metadata.resource_version.clone();
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
        api.patch_metadata(&key.name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .map(drop)
            .map_err(unavailable)
    }
    /// Every Secret that is held, read afresh.
    pub async fn all_held(&self, namespace: Option<&str>) -> Result<Vec<Key>, kube::Error> {
        let api: Api<Secret> = match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let all = api.list_metadata(&ListParams::default()).await?.items;
        let held = all.iter().filter(|it| it.finalizers().iter().any(|it| it == FINALIZER));
        Ok(held.map(|it| Key::new(&it.namespace().unwrap_or_default(), &it.name_any())).collect())
    }
    /// Takes our finalizer off.
    pub async fn let_go(&self, key: &Key) -> Result<(), Missing> {
        self.change(key, false).await
    }
    /// Lets go of what nobody needs, for as long as the process lives.
    pub async fn run(&self, clock: &SharedClock, users: &[Users]) {
        loop {
            clock.sleep_until(clock.boot() + LOOK).await;
            let leaving = self.leaving().clone();
            let held: BTreeSet<Key> = self.held().iter().cloned().collect();
            for key in held.union(&leaving) {
                let needed = users.iter().any(|it| it.need(key));
                let stays = if leaving.contains(key) { needed && self.is_ending(&key.namespace).await } else { needed };
                if stays {
                    continue;
                }
                match self.change(key, false).await {
                    Ok(()) => {
                        info!(secret = %key, "credentials are let go");
                        self.gone(key);
                    }
                    Err(why) => warn!(secret = %key, %why, "credentials are not let go"),
                }
            }
        }
    }
    /// Is the namespace on its way out? One that cannot be read may be.
    async fn is_ending(&self, namespace: &str) -> bool {
        let api: Api<Namespace> = Api::all(self.client.clone());
        match api.get_metadata_opt(namespace).await {
            Ok(found) => found.is_some_and(|it| it.metadata.deletion_timestamp.is_some()),
            Err(_) => true,
        }
    }
}
