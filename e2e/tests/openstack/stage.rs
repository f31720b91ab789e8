//! One namespace, one emulated OpenStack with credentials in a Secret, and controllers on them.
use common::clock::{Clock, SystemClock};
use e2e::patience::{Seen, dynamic_api, until};
use e2e::{Account, Cluster, ControllerProcess, EmulatorProcess, Error, Launch, Result, TemporaryNamespace};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const BINARY: &str = "openstack-server-controller";
const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);
pub(crate) const PRINCIPAL: &str = "openstack-controller";
pub(crate) const SECRET: &str = "the-controllers-own-secret";
/// The times of a quick cloud.
const QUICK: [&str; 5] = [
    "--start-window-seconds=3",
    "--call-timeout-seconds=3",
    "--list-lag-seconds=2",
    "--poll-seconds=1",
    "--list-interval-seconds=2",
];

/// One thing as it truly is.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Thing {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) created_by: String,
    #[serde(default)]
    pub(crate) tags: Option<BTreeMap<String, String>>,
    pub(crate) phase: String,
    pub(crate) fields: Value,
}
impl Thing {
    pub(crate) fn exists(&self) -> bool {
        self.phase != "gone"
    }
    pub(crate) fn is_ours(&self) -> bool {
        self.created_by == PRINCIPAL
    }
    fn slot(&self) -> Option<(&str, &str)> {
        let tags = self.tags.as_ref()?;
        Some((tags.get("custody-owner")?, tags.get("custody-slot")?))
    }
}

pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) account: Account,
    pub(crate) emulator: EmulatorProcess,
    pub(crate) servers: Api<DynamicObject>,
    namespace: TemporaryNamespace,
    name: String,
}

/// A spec with these fields beside the least that is needed.
pub(crate) fn spec(fields: &Value) -> Value {
    let mut whole = json!({
        "identityRef": {"name": "creds", "cloudName": "c"}, "sshKeyName": "", "flavor": "m1.small",
        "image": {"filter": {"name": "cirros"}}, "ports": [{"network": {"filter": {"name": "private"}}}],
    });
    if let (Some(whole), Some(fields)) = (whole.as_object_mut(), fields.as_object()) {
        whole.extend(fields.clone());
    }
    whole
}
/// Two ports, one of them under a trunk, a root volume and another.
pub(crate) fn full() -> Value {
    spec(&json!({
        "ports": [
            {"network": {"filter": {"name": "private"}}, "trunk": true, "tags": ["first"]},
            {"network": {"filter": {"name": "other"}}}],
        "rootVolume": {"sizeGiB": 10}, "tags": ["blue"],
        "additionalBlockDevices": [{"name": "data", "sizeGiB": 5, "storage": {"type": "Volume"}}],
    }))
}

pub(crate) fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let all = object.data["status"]["conditions"].as_array()?;
    let found = all.iter().find(|it| it["type"] == kind)?;
    Some((found["status"].as_str()?, found["reason"].as_str()?, found["message"].as_str()?))
}
pub(crate) fn is_ready(object: &DynamicObject) -> bool {
    condition(object, "Ready").is_some_and(|it| it.0 == "True") && object.data["status"]["ready"] == true
}

/// A controller that was killed holds on to credentials; nobody is left to let them go.
pub(crate) async fn let_go(cluster: &Cluster, namespace: &str) -> Result<()> {
    let api: Api<Secret> = Api::namespaced(cluster.client().await?, namespace);
    for secret in api.list(&ListParams::default()).await?.items {
        let patch = json!({"metadata": {"finalizers": null}});
        api.patch(&secret.metadata.name.unwrap_or_default(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    Ok(())
}

impl Stage {
    pub(crate) async fn set(name: &str) -> Result<Self> {
        Self::on(&*e2e::cluster().await?, name).await
    }
    /// On a control plane of its own.
    pub(crate) async fn on(cluster: &Cluster, name: &str) -> Result<Self> {
        let account = Account::shipped(cluster, BINARY).await?;
        let emulator =
            EmulatorProcess::start(cluster, "openstack", &format!("{name}-cloud"), &[(PRINCIPAL, SECRET)]).await?;
        let namespace = TemporaryNamespace::create(cluster, name).await?;
        let servers =
            dynamic_api(cluster.client().await?, namespace.name(), API_VERSION, "OpenStackServer", "openstackservers");
        let stage = Stage { cluster: cluster.clone(), account, emulator, servers, namespace, name: name.to_owned() };
        stage.behave(&json!({})).await?;
        stage.secret("creds", &[("clouds.yaml", &stage.clouds(SECRET))]).await?;
        Ok(stage)
    }
    /// clouds.yaml with this secret.
    pub(crate) fn clouds(&self, secret: &str) -> String {
        let url = format!("{}/identity/v3", self.emulator.url());
        let auth =
            json!({"auth_url": url, "application_credential_id": PRINCIPAL, "application_credential_secret": secret});
        json!({"clouds": {"c": {"auth_type": "v3applicationcredential", "auth": auth}}}).to_string()
    }
    /// Writes a Secret.
    pub(crate) async fn secret(&self, name: &str, data: &[(&str, &str)]) -> Result<()> {
        let api: Api<Secret> = Api::namespaced(self.cluster.client().await?, self.namespace());
        let data: BTreeMap<&str, &str> = data.iter().copied().collect();
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        api.patch(name, &PatchParams::apply("e2e").force(), &Patch::Apply(&body)).await?;
        Ok(())
    }
    /// Sets lag and the like; things build quickly and the whole call log is kept unless said otherwise.
    pub(crate) async fn behave(&self, settings: &Value) -> Result<()> {
        let mut whole =
            json!({"build": {"servers": {"fixed_ms": 500}, "volumes": {"fixed_ms": 300}}, "call_log": 500_000});
        if let (Some(whole), Some(more)) = (whole.as_object_mut(), settings.as_object()) {
            whole.extend(more.clone());
        }
        self.emulator.admin(reqwest::Method::PUT, "settings", &[], Some(&whole)).await.map(drop)
    }
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.name()
    }
    /// How to start a controller that serves this stage's namespace, and no other.
    pub(crate) fn launch(&self, instance: &str) -> Result<Launch> {
        let launch = Launch::controller(&self.cluster, &self.account, BINARY, &format!("{}-{instance}", self.name))?;
        Ok(QUICK.into_iter().fold(launch, Launch::arg).arg(format!("--namespace={}", self.namespace())))
    }
    /// Starts one controller that needs no election.
    pub(crate) async fn start(&self) -> Result<ControllerProcess> {
        let mut controller = self.launch("controller")?.arg("--leader-elect=false").start()?;
        controller.wait_ready(PATIENCE).await?;
        Ok(controller)
    }
    pub(crate) async fn create(&self, name: &str, spec: &Value) -> Result<DynamicObject> {
        let object =
            json!({"apiVersion": API_VERSION, "kind": "OpenStackServer", "metadata": {"name": name}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).map_err(Error::other)?;
        Ok(self.servers.create(&PostParams::default(), &object).await?)
    }
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        match self.servers.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }
    /// Has a server looked at again, as the resync would.
    pub(crate) async fn touch(&self, name: &str) -> Result<()> {
        // Lists are shared for two seconds.
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_secs(3)).await;
        let patch = json!({"metadata": {"annotations": {"e2e/touched": format!("{:?}", SystemClock.boot())}}});
        self.servers.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }
    /// Waits until a server is as wanted.
    pub(crate) async fn wait(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        e2e::wait_for_object(&self.servers, name, &format!("{name} {what}"), PATIENCE, wanted).await
    }
    pub(crate) async fn wait_ready(&self, name: &str) -> Result<DynamicObject> {
        self.wait(name, "to be ready", is_ready).await
    }
    pub(crate) async fn wait_said(&self, name: &str, kind: &str, text: &str) -> Result<DynamicObject> {
        let what = format!("to say {text:?} in {kind}");
        self.wait(name, &what, |object| {
            condition(object, kind).is_some_and(|it| format!("{}/{}: {}", it.0, it.1, it.2).contains(text))
        })
        .await
    }
    /// Waits until a Secret has these finalizers.
    pub(crate) async fn wait_finalizers(&self, name: &str, wanted: &[&str]) -> Result<()> {
        let api: Api<Secret> = Api::namespaced(self.cluster.client().await?, self.namespace());
        until(&format!("Secret {name} to be held by {wanted:?}"), PATIENCE, || async {
            let is = api.get(name).await?.metadata.finalizers.unwrap_or_default();
            Ok(if is == wanted { Seen::Yes(()) } else { Seen::NotYet(format!("{is:?}")) })
        })
        .await
    }
    /// Puts sub-ports on a trunk, as a guest's network plugin would.
    pub(crate) async fn ride(&self, trunk: &str, sub_ports: &[Value]) -> Result<()> {
        let path = format!("networking/v2.0/trunks/{trunk}/add_subports");
        self.send(reqwest::Method::PUT, &path, &json!({ "sub_ports": sub_ports })).await
    }
    /// Asks the cloud for something with the controller's own credentials, as a person of the project could.
    pub(crate) async fn send(&self, method: reqwest::Method, path: &str, body: &Value) -> Result<()> {
        let http = reqwest::Client::new();
        let proof = json!({"id": PRINCIPAL, "secret": SECRET});
        let identity = json!({"methods": ["application_credential"], "application_credential": proof});
        let url = format!("{}/identity/v3/auth/tokens", self.emulator.url());
        let reply = http.post(url).json(&json!({"auth": {"identity": identity}})).send().await?;
        let token = reply.headers().get("x-subject-token").cloned().ok_or_else(|| Error::other("no token"))?;
        let url = format!("{}/{path}", self.emulator.url());
        http.request(method, url).header("x-auth-token", token).json(body).send().await?.error_for_status()?;
        Ok(())
    }
    /// Everything that is or ever was.
    pub(crate) async fn things(&self) -> Result<Vec<Thing>> {
        serde_json::from_value(self.emulator.things().await?).map_err(Error::other)
    }
    /// What is there of a kind.
    pub(crate) async fn living(&self, kind: &str) -> Result<Vec<Thing>> {
        Ok(self.things().await?.into_iter().filter(|it| it.exists() && it.kind == kind).collect())
    }
    /// What the controller made and what is still there.
    pub(crate) async fn ours(&self) -> Result<Vec<Thing>> {
        Ok(self.things().await?.into_iter().filter(|it| it.exists() && it.is_ours()).collect())
    }
    /// Two living things in one slot of one owner.
    pub(crate) async fn doubles(&self) -> Result<Vec<String>> {
        let mut seen: BTreeMap<(String, String), String> = BTreeMap::new();
        let mut doubles = Vec::new();
        for thing in self.ours().await?.into_iter().filter(|it| it.phase != "deleting") {
            let Some((owner, slot)) = thing.slot().map(|(owner, slot)| (owner.to_owned(), slot.to_owned())) else {
                doubles.push(format!("{} {} carries no mark", thing.kind, thing.id));
                continue;
            };
            if let Some(other) = seen.insert((owner, slot.clone()), thing.id.clone()) {
                doubles.push(format!("{slot}: {other} and {}", thing.id));
            }
        }
        Ok(doubles)
    }
    /// Waits until every server is ready and nothing is doubled or left over.
    pub(crate) async fn wait_for_rest(&self, things_of_each: usize) -> Result<usize> {
        until("all servers at rest and nothing wrong in the cloud", PATIENCE, || async {
            let all = self.servers.list(&ListParams::default()).await?.items;
            let restless = |object: &&DynamicObject| !is_ready(object) || object.metadata.deletion_timestamp.is_some();
            if let Some(one) = all.iter().find(restless) {
                return Ok(Seen::NotYet(format!("{:?}: {}", one.metadata.name, one.data["status"]["conditions"])));
            }
            let (doubles, ours) = (self.doubles().await?, self.ours().await?.len());
            let right = doubles.is_empty() && ours == all.len() * things_of_each;
            let seen = || format!("{} servers, {ours} things, doubled: {doubles:?}", all.len());
            Ok(if right { Seen::Yes(all.len()) } else { Seen::NotYet(seen()) })
        })
        .await
    }
    /// Deletes all servers, waits until they are gone, and until nothing of ours is left in the cloud.
    pub(crate) async fn delete_all(&self) -> Result<()> {
        for object in self.servers.list(&ListParams::default()).await?.items {
            self.delete(&object.metadata.name.unwrap_or_default()).await?;
        }
        until("all servers gone", PATIENCE, || async {
            let left = self.servers.list(&ListParams::default()).await?.items;
            let said = |o: &DynamicObject| format!("{:?}: {}", o.metadata.name, o.data["status"]["conditions"]);
            Ok(left.first().map_or(Seen::Yes(()), |one| Seen::NotYet(said(one))))
        })
        .await?;
        let left = self.ours().await?;
        assert!(left.is_empty(), "all servers are gone, and these are left: {left:?}");
        Ok(())
    }
    /// Deletes the namespace with everything in it; says what of ours is left in the cloud once it is gone.
    pub(crate) async fn end_namespace(self) -> Result<Vec<Thing>> {
        self.namespace.finish(PATIENCE).await?;
        let left: Vec<Thing> = serde_json::from_value(self.emulator.things().await?).map_err(Error::other)?;
        self.emulator.stop().await?;
        Ok(left.into_iter().filter(|it| it.exists() && it.is_ours()).collect())
    }
    /// Ends everything; nothing is left behind.
    pub(crate) async fn clear(self) -> Result<()> {
        let_go(&self.cluster, self.namespace.name()).await?;
        self.namespace.finish(PATIENCE).await?;
        self.emulator.stop().await
    }
}
