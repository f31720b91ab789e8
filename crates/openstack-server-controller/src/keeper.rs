//! Keeps credentials from going before the objects that need them: a namespace that is deleted takes its Secrets first, and
//! without them nothing in the cloud could be taken down. Elsewhere a Secret that somebody deletes goes at once, and one that
//! nobody uses any more is not held.
use crate::inputs::Missing;
use crate::secrets::{Users, named};
use common::clock::{Boot, SharedClock};
use common::runtime::object::{Arrived, Key};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::{info, warn};

/// On credentials that somebody uses.
pub const FINALIZER: &str = "custody.dev/openstack-credentials";
/// How often to look whether Secrets on their way out are still needed.
const LOOK: Duration = Duration::from_secs(3);
/// How often to ask whether a Secret that another process needs is still needed, while it is on its way out...
const ASK_SOON: Duration = Duration::from_secs(10);
/// ...and while it is not: then nobody waits for it.
const ASK_LATER: Duration = Duration::from_mins(5);

/// Holds on to credentials, and lets them go.
pub struct Keeper {
    client: Client,
    held: Mutex<HashSet<Key>>,
    leaving: Mutex<BTreeSet<Key>>,
    /// Secrets that only objects of other processes need, and when that was asked.
    elsewhere: Mutex<HashMap<Key, Boot>>,
}
impl Keeper {
    /// Nothing is held yet.
    pub fn new(client: Client) -> Self {
        Keeper { client, held: Mutex::default(), leaving: Mutex::default(), elsewhere: Mutex::default() }
    }
    fn held(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn leaving(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn elsewhere(&self) -> MutexGuard<'_, HashMap<Key, Boot>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.elsewhere().remove(key);
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
            self.look(clock, users).await;
        }
    }
    async fn look(&self, clock: &SharedClock, users: &[Users]) {
        // Before the first lists are complete, who needs what is not known.
        if !users.iter().all(Users::are_listed) {
            return;
        }
        let leaving = self.leaving().clone();
        let held: BTreeSet<Key> = self.held().iter().cloned().collect();
        for key in held.union(&leaving) {
            let leaves = leaving.contains(key);
            let needed = users.iter().any(|it| it.need(key)) || self.needed_elsewhere(key, leaves, clock).await;
            if needed && (!leaves || self.is_ending(&key.namespace).await) {
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
    /// Do objects need it that this process does not serve: of another filter, or of a part that runs elsewhere? All processes
    /// share one finalizer, and the last one takes it off. What cannot be told may be needed.
    async fn needed_elsewhere(&self, key: &Key, leaves: bool, clock: &SharedClock) -> bool {
        let (now, patience) = (clock.boot(), if leaves { ASK_SOON } else { ASK_LATER });
        if self.elsewhere().get(key).is_some_and(|asked| now.since(*asked) < patience) {
            return true;
        }
        let needed = named(&self.client, key, |_| true).await.unwrap_or_else(|why| {
            warn!(secret = %key, %why, "whether credentials are needed cannot be told");
            true
        });
        if needed {
            self.elsewhere().insert(key.clone(), now);
        }
        needed
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

#[cfg(test)]
mod tests {
    use super::*;
    use common::testing::one_owner::ToldClock;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::Value;
    use std::sync::Arc;

    /// An API server with one held Secret, and what it answers to lists of each kind; it writes down what it is asked.
    fn server(ending: bool, lists: fn(&str) -> (u16, Value)) -> (Client, Arc<Mutex<Vec<String>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let asked = log.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let what = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            asked.lock().unwrap().push(format!("{} {what}", request.method()));
            let on_its_way_out = ending.then_some("2026-01-01T00:00:00Z");
            let (code, body) = match what.as_str() {
                "creds" => (
                    200,
                    json!({"apiVersion": "v1", "kind": "Secret",
                    "metadata": {"name": "creds", "namespace": "ns", "resourceVersion": "1", "finalizers": [FINALIZER]}}),
                ),
                "ns" => (
                    200,
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "deletionTimestamp": on_its_way_out}}),
                ),
                kind => lists(kind),
            };
            let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap();
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        });
        (Client::new(service, "default"), log)
    }
    fn list(names: &[&str]) -> (u16, Value) {
        let object = |name: &&str| {
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachine",
            "metadata": {"name": "m", "namespace": "ns"},
            "spec": {"identityRef": {"name": name, "cloudName": "c"}, "flavor": {"id": "1"}, "image": {"id": "i"}}})
        };
        let items: Vec<Value> = names.iter().map(object).collect();
        (200, json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))
    }
    fn refused(code: u16) -> (u16, Value) {
        (
            code,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "m", "reason": "r", "code": code}),
        )
    }
    fn arrived(leaving: bool) -> Arrived {
        let mut metadata = json!({"name": "creds", "namespace": "ns", "uid": "u", "finalizers": [FINALIZER]});
        if leaving {
            metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})).unwrap()
    }
    /// How often the finalizer is taken off in three looks, and how often machines are listed.
    async fn looks(ending: bool, leaving: bool, lists: fn(&str) -> (u16, Value)) -> (usize, usize) {
        looks_of(&[], ending, leaving, lists).await
    }
    async fn looks_of(users: &[Users], ending: bool, leaving: bool, lists: fn(&str) -> (u16, Value)) -> (usize, usize) {
        let (client, log) = server(ending, lists);
        let keeper = Keeper::new(client);
        keeper.saw(&arrived(leaving));
        let clock: SharedClock = Arc::new(ToldClock::default());
        for _ in 0..3 {
            keeper.look(&clock, users).await;
        }
        let count = |what: &str| log.lock().unwrap().iter().filter(|it| *it == what).count();
        (count("PATCH creds"), count("GET openstackmachines"))
    }

    #[tokio::test]
    async fn what_an_object_of_another_process_names_is_kept() {
        let named = |kind: &str| if kind == "openstackmachines" { list(&["creds"]) } else { list(&[]) };
        assert_eq!(looks(false, false, named).await, (0, 1), "kept, and not asked again at once");
        assert_eq!(looks(true, true, named).await, (0, 1), "also in a namespace that is deleted");
        assert_eq!(looks(false, true, named).await.0, 1, "but not against somebody who deletes just the Secret");
        let other = |kind: &str| if kind == "openstackmachines" { list(&["other"]) } else { list(&[]) };
        assert_eq!(looks(false, false, other).await.0, 1, "nobody names it");
        assert_eq!(looks(true, true, |_| list(&[])).await.0, 1, "nobody is left");
    }
    #[tokio::test]
    async fn nothing_is_let_go_before_all_objects_are_known() {
        assert_eq!(looks_of(&[Users::unknown()], true, true, |_| list(&[])).await, (0, 0));
    }
    #[tokio::test]
    async fn what_cannot_be_told_is_kept_and_what_is_not_installed_needs_nothing() {
        assert_eq!(looks(true, true, |_| refused(500)).await.0, 0);
        assert_eq!(looks(true, true, |_| refused(404)).await.0, 1);
    }
}
