//! `clusterctl move` of an owner that is the infrastructure of a Cluster, whole and broken off at every step: nothing is
//! created and nothing is deleted in the cloud.
use crate::breaks::{BREAKS, Break};
use crate::cloud::{BIRTH_AND_DEATH, Cloud, WRITES, of_verbs};
use crate::copies::copied_and_restored;
use crate::owners::{API_VERSION, annotation, is_ready, is_stalled, ledger, one_of_each, owner_id};
use crate::stage::{BINARY, GRACE, PATIENCE, launch, owners_in};
use crate::tell;
use common::clock::{Clock, SystemClock};
use common::names::{self, reason};
use e2e::patience::has_condition;
use e2e::{Account, Cluster, ControlPlane, ControllerProcess, Error, Result, capi, manifests, process};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

/// Every Cluster and its owner.
pub(crate) const NAME: &str = "it";

/// One management cluster: a control plane with Cluster API's definitions, and our controller.
pub(crate) struct Side {
    pub(crate) plane: ControlPlane,
    pub(crate) account: Account,
    pub(crate) controller: ControllerProcess,
}

impl Side {
    pub(crate) fn cluster(&self) -> &Cluster {
        self.plane.cluster()
    }
    /// Takes a prepared control plane into service, with an installation id of its own or a shared one.
    pub(crate) async fn serve(plane: ControlPlane, cloud: &Cloud, shared: Option<&str>) -> Result<Self> {
        let account = Account::shipped(plane.cluster(), BINARY).await?;
        let mut start = launch(plane.cluster(), &account, cloud, "controller")?.arg("--leader-elect=false");
        if let Some(id) = shared {
            start = start.arg(format!("--installation-id={id}"));
        }
        let mut controller = start.start()?;
        controller.wait_ready(PATIENCE).await?;
        Ok(Side { plane, account, controller })
    }
    pub(crate) async fn owner(
        &self,
        namespace: &str,
        what: &str,
        wanted: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        let owners = owners_in(self.cluster(), namespace).await?;
        e2e::wait_for_object(&owners, NAME, &format!("{namespace}/{NAME} {what}"), PATIENCE, wanted).await
    }
    pub(crate) async fn patch_owner(&self, namespace: &str, patch: &Value) -> Result<()> {
        let owners = owners_in(self.cluster(), namespace).await?;
        owners.patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
    pub(crate) async fn finish(mut self) -> Result<()> {
        self.controller.must_run()?;
        self.controller.stop(GRACE).await?;
        self.plane.stop().await
    }
}

/// A control plane with the definitions of Cluster API, and our provider in the inventory.
pub(crate) async fn prepared() -> Result<ControlPlane> {
    let plane = ControlPlane::start().await?;
    capi::install(plane.cluster()).await?;
    let provider = capi::Provider {
        name: "sample",
        role: capi::Role::Infrastructure,
        version: "v0.1.0",
        namespace: "custody-sample",
    };
    Account::shipped(plane.cluster(), BINARY).await?;
    capi::register(plane.cluster(), &provider).await?;
    Ok(plane)
}

/// A Cluster in a namespace of its own, with an owner as its infrastructure; written, not yet provisioned.
pub(crate) async fn write_cluster(cluster: &Cluster, namespace: &str) -> Result<()> {
    let mut spec = one_of_each();
    spec["controlPlaneEndpoint"] = json!({"host": "127.0.0.1", "port": 6443});
    let owner = json!({"apiVersion": API_VERSION, "kind": "SampleOwner",
        "metadata": {"name": NAME, "namespace": namespace}, "spec": spec});
    let reference = json!({"apiGroup": "sample.custody.dev", "kind": "SampleOwner", "name": NAME});
    let of_cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": NAME, "namespace": namespace}, "spec": {"infrastructureRef": reference}});
    let room = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let objects: std::result::Result<Vec<DynamicObject>, _> =
        [room, owner, of_cluster].into_iter().map(serde_json::from_value).collect();
    manifests::apply(cluster, namespace, objects.map_err(Error::other)?).await
}

/// Says that the Cluster's control plane works, and waits until the core manager, which may write what it saw before, lets it
/// stand.
async fn initialized(side: &Side, namespace: &str) -> Result<()> {
    let clusters = capi::clusters(side.cluster(), namespace).await?;
    let mut stood = 0;
    while stood < 3 {
        let cluster = clusters.get(NAME).await?;
        if has_condition(&cluster, "ControlPlaneInitialized", "True") {
            stood += 1;
        } else {
            stood = 0;
            capi::set_control_plane_initialized(side.cluster(), namespace, NAME).await?;
        }
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_millis(300)).await;
    }
    Ok(())
}

/// Waits until Cluster API's own manager sees it provisioned and holds its owner.
pub(crate) async fn wait_provisioned(side: &Side, namespace: &str) -> Result<()> {
    side.owner(namespace, "to be ready and held by its Cluster", |object| {
        is_ready(object) && object.metadata.owner_references.as_ref().is_some_and(|list| !list.is_empty())
    })
    .await?;
    let clusters = capi::clusters(side.cluster(), namespace).await?;
    let provisioned =
        |object: &DynamicObject| object.data["status"]["initialization"]["infrastructureProvisioned"] == true;
    e2e::wait_for_object(&clusters, NAME, "the Cluster to be provisioned", PATIENCE, provisioned).await?;
    initialized(side, namespace).await
}

#[tokio::test]
async fn move_with_a_shared_installation_id_writes_nothing_to_the_cloud() {
    tell("move_with_a_shared_installation_id_writes_nothing_to_the_cloud", moves(Some("shared-by-both"))).await;
}

#[tokio::test]
async fn move_between_installations_takes_one_command_and_creates_and_deletes_nothing() {
    tell("move_between_installations_takes_one_command_and_creates_and_deletes_nothing", moves(None)).await;
}

async fn moves(shared: Option<&str>) -> Result<()> {
    // given two management clusters and one cloud; the source has the real core manager and provisioned Clusters
    let (source, target) = tokio::try_join!(prepared(), prepared())?;
    let cloud = Cloud::open(source.cluster(), "moving").await?;
    let source = Side::serve(source, &cloud, shared).await?;
    let target = Side::serve(target, &cloud, shared).await?;
    let manager = capi::start_manager(source.cluster()).await?;
    let whole = "whole";
    for namespace in BREAKS.iter().map(|it| it.name).chain([whole]) {
        write_cluster(source.cluster(), namespace).await?;
    }
    for namespace in BREAKS.iter().map(|it| it.name).chain([whole]) {
        wait_provisioned(&source, namespace).await?;
    }
    if shared.is_none() {
        copied_and_restored(&source, &target, &cloud).await?;
    }
    let mark = cloud.mark().await?;
    let mut ids = Vec::new();
    // when one is moved in one go, and the others are broken off, each at another step, and moved again
    for namespace in BREAKS.iter().map(|it| it.name).chain([whole]) {
        let before = source.owner(namespace, "to be there", |_| true).await?;
        ids.push((namespace, owner_id(&before).map(str::to_owned), recorded(&before)?));
    }
    for it in &BREAKS {
        broken_off(it, &source, &target).await?;
        move_again(it, &source, &target).await?;
    }
    capi::clusterctl_move(source.cluster(), target.cluster(), whole).await?;
    // then without a shared id each waits for the one command that takes them all over
    if shared.is_none() {
        for (namespace, ..) in &ids {
            let required = |object: &DynamicObject| is_stalled(object, reason::TAKEOVER_REQUIRED);
            target.owner(namespace, "to wait for the take-over", required).await?;
        }
        let calls = cloud.calls_since(mark).await?;
        assert_eq!(of_verbs(&calls, &WRITES), 0, "before the take-over: {calls:?}");
        take_over(&source, &target, &cloud).await?;
    }
    // and each is ready on the target, with the same owner id and the very same things
    for (namespace, id, things) in &ids {
        let object = target.owner(namespace, "to be ready on the target", is_ready).await?;
        assert_eq!(owner_id(&object).map(str::to_owned), *id, "{namespace}");
        assert_eq!(recorded(&object)?, *things, "{namespace}");
        assert!(annotation(&object, names::TAKE_OVER).is_none(), "{namespace}");
        let owners = owners_in(source.cluster(), namespace).await?;
        e2e::wait_until_gone(&owners, NAME, PATIENCE).await?;
    }
    let calls = cloud.calls_since(mark).await?;
    assert_eq!(of_verbs(&calls, &BIRTH_AND_DEATH), 0, "{calls:?}");
    if shared.is_some() {
        assert_eq!(of_verbs(&calls, &WRITES), 0, "{calls:?}");
    }
    let how = if shared.is_some() { "a shared installation id" } else { "two installations and one take-over command" };
    println!(
        "\nSEEN: {} Clusters moved with {how}, one whole, {} broken off and run again: 0 creates, 0 deletes, {} marks",
        ids.len(),
        BREAKS.len(),
        of_verbs(&calls, &["tag"])
    );
    manager.stop().await?;
    source.finish().await?;
    target.finish().await?;
    cloud.close().await
}

fn recorded(object: &DynamicObject) -> Result<Vec<(String, Option<String>)>> {
    Ok(ledger(object)?.records.iter().map(|(slot, record)| (slot.to_string(), record.id().cloned())).collect())
}

/// Begins a move and kills clusterctl at the step that the break names.
async fn broken_off(it: &Break, source: &Side, target: &Side) -> Result<()> {
    let wall = it.raise(source.cluster(), target.cluster()).await?;
    tokio::select! {
        // Dropped by the other branch: a dropped clusterctl is killed.
        ended = capi::clusterctl_move(source.cluster(), target.cluster(), it.name) => {
            return Err(Error::other(format!("{}: clusterctl came to an end: {ended:?}", it.name)));
        }
        reached = it.reached(source.cluster(), target.cluster()) => reached?,
    }
    // Both controllers see what is left of it, and say so.
    it.said(source, target).await?;
    wall.lower().await
}

/// What an operator does then: unpause the source, and run the same command again.
async fn move_again(it: &Break, source: &Side, target: &Side) -> Result<()> {
    it.tidy(source).await?;
    let clusters = capi::clusters(source.cluster(), it.name).await?;
    clusters.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({"spec": {"paused": false}}))).await?;
    initialized(source, it.name).await?;
    capi::clusterctl_move(source.cluster(), target.cluster(), it.name).await.map(drop)
}

/// `sample-controller takeover --from <installation>`, once, for all.
async fn take_over(source: &Side, target: &Side, cloud: &Cloud) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(source.cluster().client().await?);
    let from = namespaces.get("kube-system").await?.metadata.uid.unwrap_or_default();
    let binary = e2e::binaries::ours(BINARY)?;
    let args = [
        "takeover".to_owned(),
        format!("--from={from}"),
        format!("--kubeconfig={}", target.account.kubeconfig().display()),
        format!("--cloud-url={}", cloud.emulator.url()),
        format!("--token-file={}", cloud.token_file.display()),
    ];
    process::output(&binary, &args).await.map(drop)
}
