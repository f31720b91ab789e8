//! Credentials for more than one namespace.
#![allow(unreachable_pub)] // the schema derive repeats each struct inside a function, where `pub` reaches nobody

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Credentials that objects of several namespaces use by name.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "OpenStackClusterIdentity",
    plural = "openstackclusteridentities",
    shortname = "osci",
    category = "cluster-api",
    derive = "PartialEq",
    derive = "Default",
    doc = "An OpenStackClusterIdentity lends the credentials of one Secret to the namespaces that it selects.",
    label("cluster.x-k8s.io/v1beta1", "v1alpha1"),
    label("cluster.x-k8s.io/v1beta2", "v1alpha1"),
    label("cluster.x-k8s.io/provider", "infrastructure-openstack"),
    label("clusterctl.cluster.x-k8s.io", ""),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterIdentitySpec {
    /// The Secret with clouds.yaml.
    pub secret_ref: IdentitySecret,
    /// Which namespaces may use it, by their labels. Without one, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}
/// A Secret in a namespace of its own.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentitySecret {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
}
