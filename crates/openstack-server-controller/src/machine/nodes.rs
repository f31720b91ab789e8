//! What a machine's pass reads from Cluster API's objects, and the one field it writes there. A trait, so that the simulator and
//! tests can play them.
use crate::api::OpenStackCluster;
use crate::inputs::Missing;
use async_trait::async_trait;
use common::engine::owner::OwnerView;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// Cluster API: the machine is part of the control plane.
pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";

/// What Cluster API says of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Secret with the data it boots with, once there is one.
    pub bootstrap: Option<String>,
    /// Where it shall be.
    pub failure_domain: Option<String>,
    /// Is it part of the control plane?
    pub control_plane: bool,
    /// Its cluster's infrastructure, if that is ours and can be found.
    pub cluster: Option<OpenStackCluster>,
}

/// Cluster API's objects.
#[async_trait]
pub trait Nodes: Send + Sync {
    /// What is said of this machine; none if no Machine owns it.
    async fn node(&self, view: &OwnerView, owners: &[OwnerReference]) -> Result<Option<Node>, Missing>;
    /// Writes what nodes know it by, under the guard of the version that was read.
    async fn set_provider_id(&self, view: &OwnerView, id: &str) -> Result<(), Missing>;
}
