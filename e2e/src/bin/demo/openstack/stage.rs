//! What the story plays on: control plane, cloud, controller, and the objects as a user sees them.
use crate::telling::Teller;
use e2e::account::Account;
use e2e::controller::{ControllerProcess, Launch};
use e2e::emulator::EmulatorProcess;
use e2e::namespace::TemporaryNamespace;
use e2e::patience::dynamic_api;
use e2e::{Cluster, Error, Result, binaries, manifests};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const CONTROLLER: &str = "openstack-server-controller";
const PRINCIPAL: &str = "controller";
const SECRET: &str = "the-controllers-own-secret";
/// Nothing in the demo takes longer, unless something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// One thing that is or was in the cloud.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) ours: bool,
    phase: String,
}
impl Thing {
    pub(crate) fn exists(&self) -> bool {
        self.phase != "gone"
    }
}
/// A table of things.
pub(crate) fn show<'a>(things: impl IntoIterator<Item = &'a Thing>) {
    println!("      {:<38} {:<8} {:<18} state", "id", "kind", "name");
    for thing in things {
        println!("      {:<38} {:<8} {:<18} {}", thing.id, thing.kind, thing.name, thing.phase);
    }
}

pub(crate) struct Stage {
    cluster: Arc<Cluster>,
    pub(crate) cloud: EmulatorProcess,
    pub(crate) controller: ControllerProcess,
    pub(crate) servers: Api<DynamicObject>,
    pub(crate) clusters: Api<DynamicObject>,
    namespace: TemporaryNamespace,
    teller: Teller,
}

impl Stage {
    pub(crate) async fn set() -> Result<Self> {
        let teller = Teller::new();
        let shared = e2e::cluster().await?;
        let cluster = &*shared;
        teller.say("starting the emulated OpenStack");
        let cloud = EmulatorProcess::start(cluster, "openstack", "openstack", &[(PRINCIPAL, SECRET)]).await?;
        cloud.set(&json!({"build": {"servers": {"fixed_ms": 2000}, "volumes": {"fixed_ms": 1000}}})).await?;
        teller.say("installing the CRDs and the controller's own service account with its shipped roles");
        let account = Account::shipped(cluster, CONTROLLER).await?;
        let namespace = TemporaryNamespace::create(cluster, "demo-openstack").await?;
        teller.say("starting the controller under that account");
        let launch = Launch::controller(cluster, &account, CONTROLLER, "demo-openstack")?;
        // The emulated cloud is quick and shows everything at once: shorter times make a shorter story.
        let launch = [
            "--start-window-seconds=5",
            "--call-timeout-seconds=5",
            "--list-lag-seconds=2",
            "--poll-seconds=1",
            "--list-interval-seconds=2",
            "--leader-elect=false",
        ]
        .into_iter()
        .fold(launch, Launch::arg);
        let mut controller = launch.arg(format!("--namespace={}", namespace.name())).start()?;
        controller.wait_ready(PATIENCE).await?;
        let client = cluster.client().await?;
        let group = "infrastructure.cluster.x-k8s.io";
        let api = |version: &str, kind: &str, plural: &str| {
            dynamic_api(client.clone(), namespace.name(), &format!("{group}/{version}"), kind, plural)
        };
        let servers = api("v1alpha1", "OpenStackServer", "openstackservers");
        let clusters = api("v1beta2", "OpenStackCluster", "openstackclusters");
        let stage = Stage { cluster: shared, cloud, controller, servers, clusters, namespace, teller };
        let auth = json!({"auth_url": format!("{}/identity/v3", stage.cloud.url()), "application_credential_id": PRINCIPAL, "application_credential_secret": SECRET});
        let clouds = json!({"clouds": {"demo": {"auth_type": "v3applicationcredential", "auth": auth}}}).to_string();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds"}, "stringData": {"clouds.yaml": clouds}});
        manifests::apply_text(&stage.cluster, stage.namespace.name(), &secret.to_string()).await?;
        Ok(stage)
    }
    /// A line with the time since the start.
    pub(crate) fn say(&self, line: &str) {
        self.teller.say(line);
    }
    /// Applies `hack/demo.d/openstack/<name>.yaml`.
    pub(crate) async fn apply(&self, name: &str) -> Result<()> {
        let path = binaries::root().join(format!("hack/demo.d/openstack/{name}.yaml"));
        let text =
            std::fs::read_to_string(&path).map_err(|error| Error::other(format!("{}: {error}", path.display())))?;
        manifests::apply_text(&self.cluster, self.namespace.name(), &text).await
    }
    pub(crate) async fn patch_cluster(&self, patch: &Value) -> Result<()> {
        self.clusters.patch("shop", &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
    pub(crate) async fn wait(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        what: &str,
        wanted: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        e2e::wait_for_object(api, name, what, PATIENCE, wanted).await
    }
    pub(crate) async fn delete(&self, api: &Api<DynamicObject>, name: &str) -> Result<()> {
        api.delete(name, &DeleteParams::default()).await?;
        e2e::wait_until_gone(api, name, PATIENCE).await
    }
    /// Everything that is or ever was in the cloud.
    pub(crate) async fn things(&self) -> Result<Vec<Thing>> {
        let all = self.cloud.things().await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let read = |it: &Value| {
            let name = [&it["fields"]["name"], &it["fields"]["floating_ip_address"]]
                .into_iter()
                .map(text)
                .find(|name| !name.is_empty());
            let name = name.unwrap_or_default();
            Thing {
                id: text(&it["id"]),
                kind: text(&it["kind"]),
                name,
                ours: it["created_by"] == PRINCIPAL,
                phase: text(&it["phase"]),
            }
        };
        Ok(all.as_array().into_iter().flatten().map(read).collect())
    }
    /// What the controller made and what is still there.
    pub(crate) async fn living(&self) -> Result<Vec<Thing>> {
        Ok(self.things().await?.into_iter().filter(|thing| thing.exists() && thing.ours).collect())
    }
    /// Ends everything; nothing is left behind.
    pub(crate) async fn clear(mut self) -> Result<()> {
        self.say("cleaning up");
        self.namespace.finish(PATIENCE).await?;
        self.controller.stop(Duration::from_secs(10)).await?;
        self.cloud.stop().await
    }
}
