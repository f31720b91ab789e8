//! Cluster API's own core and clusterctl on our control planes, with an infrastructure object that nobody serves.
use e2e::patience::{dynamic_api, has_condition};
use e2e::{
    Cluster, ControlPlane, Result, TemporaryNamespace, capi, enabled, manifests, wait_for_object, wait_until_gone,
};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(4);
const NAMESPACE: &str = "moving";

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: plainclusters.infrastructure.cluster.x-k8s.io
  labels: {cluster.x-k8s.io/v1beta2: v1, clusterctl.cluster.x-k8s.io: "", cluster.x-k8s.io/provider: infrastructure-plain}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: PlainCluster, plural: plainclusters, singular: plaincluster, listKind: PlainClusterList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"#;

const OBJECTS: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: moving}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: PlainCluster
metadata: {name: it, namespace: moving, annotations: {custody.dev/kept: as it was}}
spec: {controlPlaneEndpoint: {host: 127.0.0.1, port: 6443}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: it, namespace: moving}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: PlainCluster, name: it}}
";

async fn plain_clusters(cluster: &Cluster) -> Result<Api<DynamicObject>> {
    let client = cluster.client().await?;
    Ok(dynamic_api(client, NAMESPACE, "infrastructure.cluster.x-k8s.io/v1", "PlainCluster", "plainclusters"))
}

/// A control plane with Cluster API's definitions and the plain provider's.
async fn prepared() -> Result<ControlPlane> {
    let plane = ControlPlane::start().await?;
    let cluster = plane.cluster();
    capi::install(cluster).await?;
    manifests::apply_text(cluster, NAMESPACE, DEFINITION).await?;
    let plain = capi::Provider {
        name: "plain",
        role: capi::Role::Infrastructure,
        version: "v0.1.0",
        namespace: "plain-system",
    };
    capi::register(cluster, &plain).await?;
    Ok(plane)
}

/// A Cluster that the core manager sees as provisioned.
async fn provisioned(cluster: &Cluster) -> Result<()> {
    manifests::apply_text(cluster, NAMESPACE, OBJECTS).await?;
    let provisioned = json!({"status": {"initialization": {"provisioned": true}}});
    let plain = plain_clusters(cluster).await?;
    plain.patch_status("it", &PatchParams::default(), &Patch::Merge(provisioned)).await?;
    capi::set_control_plane_initialized(cluster, NAMESPACE, "it").await?;
    let clusters = capi::clusters(cluster, NAMESPACE).await?;
    let ready = |object: &DynamicObject| {
        object.data["status"]["initialization"]["infrastructureProvisioned"] == true
            && has_condition(object, "ControlPlaneInitialized", "True")
    };
    wait_for_object(&clusters, "it", "the Cluster to be provisioned", PATIENCE, ready).await?;
    let owned = |object: &DynamicObject| !object.metadata.owner_references.clone().unwrap_or_default().is_empty();
    wait_for_object(&plain, "it", "the infrastructure to be owned", PATIENCE, owned).await?;
    Ok(())
}

async fn arrived(cluster: &Cluster) -> Result<()> {
    let moved = plain_clusters(cluster).await?.get("it").await?;
    assert_eq!(
        moved.metadata.annotations.unwrap_or_default().get("custody.dev/kept").map(String::as_str),
        Some("as it was")
    );
    assert!(moved.data["status"].is_null(), "clusterctl moves no status: {}", moved.data["status"]);
    Ok(())
}

#[tokio::test]
async fn a_cluster_moves_between_control_planes_and_is_unpaused_at_the_end() -> Result<()> {
    if !enabled("a_cluster_moves_between_control_planes_and_is_unpaused_at_the_end") {
        return Ok(());
    }
    // given a provisioned Cluster on one control plane with the real core manager, and another control plane
    let (source, target) = (prepared().await?, prepared().await?);
    let (from, to) = (source.cluster(), target.cluster());
    let manager = capi::start_manager(from).await?;
    provisioned(from).await?;
    // when it is moved
    capi::clusterctl_move(from, to, NAMESPACE).await?;
    // then it is on the target with its infrastructure, not paused, and gone from the source
    arrived(to).await?;
    let clusters = capi::clusters(to, NAMESPACE).await?;
    let unpaused = |object: &DynamicObject| object.data["spec"]["paused"] != true;
    wait_for_object(&clusters, "it", "the Cluster to go on", PATIENCE, unpaused).await?;
    wait_until_gone(&capi::clusters(from, NAMESPACE).await?, "it", PATIENCE).await?;
    wait_until_gone(&plain_clusters(from).await?, "it", PATIENCE).await?;
    manager.stop().await?;
    source.stop().await?;
    target.stop().await
}

#[tokio::test]
async fn a_cluster_is_written_to_a_folder_and_restored_from_it() -> Result<()> {
    if !enabled("a_cluster_is_written_to_a_folder_and_restored_from_it") {
        return Ok(());
    }
    // given a provisioned Cluster, and an empty folder
    let (source, target) = (prepared().await?, prepared().await?);
    let (from, to) = (source.cluster(), target.cluster());
    let manager = capi::start_manager(from).await?;
    provisioned(from).await?;
    let backup = e2e::folder::Folder::create("backup")?;
    // when it is written there, and restored on another control plane
    capi::move_to_directory(from, backup.path(), NAMESPACE).await?;
    capi::move_from_directory(to, backup.path()).await?;
    // then it is on both
    arrived(to).await?;
    plain_clusters(from).await?.get("it").await?;
    backup.remove()?;
    manager.stop().await?;
    source.stop().await?;
    target.stop().await
}

#[tokio::test]
async fn older_versions_are_converted_and_invalid_clusters_are_refused() -> Result<()> {
    if !enabled("older_versions_are_converted_and_invalid_clusters_are_refused") {
        return Ok(());
    }
    // given the real core manager with its webhooks
    let plane = prepared().await?;
    let cluster = plane.cluster();
    let manager = capi::start_manager(cluster).await?;
    let namespace = TemporaryNamespace::create(cluster, "webhooks").await?;
    // when a Cluster is written in an older version, then the newer one has its fields where they belong
    let old = r"{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: old}, spec: {paused: true, infrastructureRef:
        {apiVersion: infrastructure.cluster.x-k8s.io/v1, kind: PlainCluster, name: it}}}";
    manifests::apply_text(cluster, namespace.name(), old).await?;
    let clusters = capi::clusters(cluster, namespace.name()).await?;
    let new = clusters.get("old").await?;
    assert_eq!(new.data["spec"]["infrastructureRef"]["apiGroup"], "infrastructure.cluster.x-k8s.io");
    // when a Cluster makes no sense, then it is refused by the webhook
    let bad = r"{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: bad}, spec: {clusterNetwork:
        {pods: {cidrBlocks: [not-a-network]}}}}";
    let refused = manifests::apply_text(cluster, namespace.name(), bad).await.expect_err("refused").to_string();
    assert!(refused.contains("admission webhook"), "{refused}");
    clusters.delete("old", &kube::api::DeleteParams::default()).await?;
    namespace.finish(PATIENCE).await?;
    manager.stop().await?;
    plane.stop().await
}
