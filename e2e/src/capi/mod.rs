//! Cluster API, the real one: its definitions, its core manager with its webhooks, and `clusterctl move`.
//!
//! One manager at a time serves a control plane, because webhooks are the whole cluster's: a test that needs it starts a
//! [`crate::ControlPlane`] of its own.
mod clusterctl;
mod definitions;
mod manager;

pub use clusterctl::{clusterctl_move, move_from_directory, move_to_directory};
pub use definitions::{Provider, Role, install, register};
pub use manager::{Manager, start_manager};

use crate::cluster::Cluster;
use crate::error::Result;
use crate::patience::dynamic_api;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;

/// The API of Clusters.
pub async fn clusters(cluster: &Cluster, namespace: &str) -> Result<Api<DynamicObject>> {
    let client = cluster.client().await?;
    Ok(dynamic_api(client, namespace, "cluster.x-k8s.io/v1beta2", "Cluster", "clusters"))
}

/// Says that the control plane of a Cluster works, as its machines would. `clusterctl move` refuses a Cluster before that,
/// and the core manager never takes it back.
pub async fn set_control_plane_initialized(cluster: &Cluster, namespace: &str, name: &str) -> Result<()> {
    let now = common::clock::Clock::wall(&common::clock::SystemClock).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({
        "type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": "",
        "lastTransitionTime": now,
    });
    let patch = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "status": {"conditions": [condition], "initialization": {"controlPlaneInitialized": true}},
    });
    let params = PatchParams::apply("custody-e2e").force();
    clusters(cluster, namespace).await?.patch_status(name, &params, &Patch::Apply(patch)).await?;
    Ok(())
}
