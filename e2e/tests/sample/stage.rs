//! What a test plays on: a namespace, a cloud, the controller's account, and the owners.
use crate::cloud::Cloud;
use crate::judge::{Damage, judge};
use crate::owners::{self, API_VERSION, is_ready, ledger};
use e2e::patience::dynamic_api;
use e2e::{Account, Cluster, ControllerProcess, Launch, Result, Seen, TemporaryNamespace, until};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const BINARY: &str = "sample-controller";
/// Nothing takes longer unless something is broken: several settle times on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);
/// A controller that is told to end does so in less.
pub(crate) const GRACE: Duration = Duration::from_secs(40);

/// Times for a cloud that is quick, so that tests are: settle is the sum and five seconds.
pub(crate) const QUICK: [&str; 5] = [
    "--start-window-seconds=3",
    "--call-timeout-seconds=3",
    "--list-lag-seconds=2",
    "--poll-seconds=1",
    "--list-interval-seconds=2",
];

pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) account: Account,
    pub(crate) cloud: Cloud,
    pub(crate) owners: Api<DynamicObject>,
    namespace: TemporaryNamespace,
    name: String,
}

impl Stage {
    /// On the control plane that all tests share.
    pub(crate) async fn set(name: &str) -> Result<Self> {
        Self::set_on(&*e2e::cluster().await?, name).await
    }
    /// On this control plane.
    pub(crate) async fn set_on(cluster: &Cluster, name: &str) -> Result<Self> {
        let account = Account::shipped(cluster, BINARY).await?;
        let cloud = Cloud::open(cluster, name).await?;
        let namespace = TemporaryNamespace::create(cluster, name).await?;
        let owners = owners_in(cluster, namespace.name()).await?;
        Ok(Stage { cluster: cluster.clone(), account, cloud, owners, namespace, name: name.to_owned() })
    }
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.name()
    }
    /// How to start a controller that serves this stage's namespace, and no other. `instance` tells two apart.
    pub(crate) fn launch(&self, instance: &str) -> Result<Launch> {
        let launch = launch(&self.cluster, &self.account, &self.cloud, &format!("{}-{instance}", self.name))?;
        Ok(launch.arg(format!("--namespace={}", self.namespace())))
    }
    /// Starts one controller that needs no election.
    pub(crate) async fn start(&self) -> Result<ControllerProcess> {
        let mut controller = self.launch("controller")?.arg("--leader-elect=false").start()?;
        controller.wait_ready(PATIENCE).await?;
        Ok(controller)
    }
    pub(crate) async fn create(&self, name: &str, spec: &Value) -> Result<DynamicObject> {
        Ok(self.owners.create(&PostParams::default(), &owners::owner(name, spec)?).await?)
    }
    /// Changes an owner by a merge patch.
    pub(crate) async fn patch(&self, name: &str, patch: &Value) -> Result<DynamicObject> {
        Ok(self.owners.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }
    /// Sets an annotation, or takes it away.
    pub(crate) async fn annotate(&self, name: &str, key: &str, value: Option<&str>) -> Result<DynamicObject> {
        self.patch(name, &serde_json::json!({"metadata": {"annotations": {key: value}}})).await
    }
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        match self.owners.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }
    /// Waits until an owner is as wanted.
    pub(crate) async fn wait(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        e2e::wait_for_object(&self.owners, name, &format!("{name} {what}"), PATIENCE, wanted).await
    }
    pub(crate) async fn wait_ready(&self, name: &str) -> Result<DynamicObject> {
        self.wait(name, "to be ready", is_ready).await
    }
    pub(crate) async fn wait_gone(&self, name: &str) -> Result<()> {
        e2e::wait_until_gone(&self.owners, name, PATIENCE).await
    }
    /// Waits until every owner is ready and none is on its way out, and the judge finds no damage.
    pub(crate) async fn wait_for_rest(&self) -> Result<Vec<DynamicObject>> {
        until("all owners at rest and nothing wrong in the cloud", PATIENCE, || async {
            let all = self.owners.list(&ListParams::default()).await?.items;
            let restless = |object: &&DynamicObject| !is_ready(object) || object.metadata.deletion_timestamp.is_some();
            if let Some(one) = all.iter().find(restless) {
                let said = serde_json::to_string_pretty(&one.data["status"]["conditions"]).unwrap_or_default();
                return Ok(Seen::NotYet(format!("{:?}: {said}", one.metadata.name)));
            }
            let damage = self.damage(&all).await?;
            Ok(if damage.is_none() { Seen::Yes(all) } else { Seen::NotYet(damage.to_string()) })
        })
        .await
    }
    /// What is wrong in the cloud, judged by its truth.
    pub(crate) async fn damage(&self, living: &[DynamicObject]) -> Result<Damage> {
        let mut ledgers = BTreeMap::new();
        for object in living {
            ledgers.insert(object.metadata.name.clone().unwrap_or_default(), ledger(object)?);
        }
        Ok(judge(&self.cloud.things().await?, &ledgers))
    }
    /// Deletes all owners, waits until they are gone, and until nothing of ours is left in the cloud.
    pub(crate) async fn delete_all(&self) -> Result<()> {
        for object in self.owners.list(&ListParams::default()).await?.items {
            self.delete(&object.metadata.name.unwrap_or_default()).await?;
        }
        until("all owners gone", PATIENCE, || async {
            let left = self.owners.list(&ListParams::default()).await?.items;
            let said = |o: &DynamicObject| format!("{:?}: {}", o.metadata.name, o.data["status"]["conditions"]);
            Ok(left.first().map_or(Seen::Yes(()), |one| Seen::NotYet(said(one))))
        })
        .await?;
        let left = self.cloud.ours().await?;
        assert!(left.is_empty(), "all owners are gone, and these are left: {left:?}");
        Ok(())
    }
    /// Ends everything; nothing is left behind.
    pub(crate) async fn clear(self) -> Result<()> {
        self.namespace.finish(PATIENCE).await?;
        self.cloud.close().await
    }
}

/// The controller with its shipped rights and the times of a quick cloud.
pub(crate) fn launch(cluster: &Cluster, account: &Account, cloud: &Cloud, instance: &str) -> Result<Launch> {
    let launch = Launch::controller(cluster, account, BINARY, instance)?
        .arg(format!("--cloud-url={}", cloud.emulator.url()))
        .arg(format!("--token-file={}", cloud.token_file.display()));
    Ok(QUICK.into_iter().fold(launch, Launch::arg))
}

/// The owners of a namespace, as its administrator sees them.
pub(crate) async fn owners_in(cluster: &Cluster, namespace: &str) -> Result<Api<DynamicObject>> {
    Ok(dynamic_api(cluster.client().await?, namespace, API_VERSION, "SampleOwner", "sampleowners"))
}
