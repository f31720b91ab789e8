//! Templates that Cluster API copies machines and clusters from. Nobody serves them; they must only be there and be well formed.
#![allow(unreachable_pub)] // the schema derive repeats each struct inside a function, where `pub` reaches nobody

use super::cluster::OpenStackClusterSpec;
use super::machine::OpenStackMachineSpec;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What machines are copied from.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "OpenStackMachineTemplate",
    plural = "openstackmachinetemplates",
    shortname = "osmt",
    category = "cluster-api",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "An OpenStackMachineTemplate is what Cluster API copies OpenStackMachines from.",
    label("cluster.x-k8s.io/v1beta1", "v1beta2"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    label("cluster.x-k8s.io/provider", "infrastructure-openstack"),
    label("clusterctl.cluster.x-k8s.io", ""),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct OpenStackMachineTemplateSpec {
    /// The machine to be.
    pub template: MachineTemplate,
}
/// A machine to be.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineTemplate {
    /// Labels and annotations of the copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Its spec.
    pub spec: OpenStackMachineSpec,
}
/// What clusters are copied from.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "OpenStackClusterTemplate",
    plural = "openstackclustertemplates",
    shortname = "osct",
    category = "cluster-api",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "An OpenStackClusterTemplate is what Cluster API copies OpenStackClusters from.",
    label("cluster.x-k8s.io/v1beta1", "v1beta2"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    label("cluster.x-k8s.io/provider", "infrastructure-openstack"),
    label("clusterctl.cluster.x-k8s.io", ""),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct OpenStackClusterTemplateSpec {
    /// The cluster to be.
    pub template: ClusterTemplate,
}
/// A cluster to be.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterTemplate {
    /// Labels and annotations of the copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Its spec.
    pub spec: OpenStackClusterSpec,
}
/// Labels and annotations of copies.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
