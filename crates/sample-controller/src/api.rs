//! The custom resource: what a person writes down, and what is shown back. Nothing else lives here.
//!
//! Rules that a webhook would check are CEL rules of the schema, so that the API server refuses what this controller
//! could not serve. `plan.rs` checks the same again, because an object may be older than the rules.
// The schema derive repeats each struct inside a function, where `pub` reaches nobody.
#![allow(unreachable_pub)]
// Several printer columns are not one attribute written twice.
#![allow(clippy::duplicated_attributes)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Names of items: they become slots, so they must fit into a tag value behind their kind.
const ITEM_NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// Names in the cloud.
const CLOUD_NAME: &str = "^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$";
/// Ids of the cloud.
const CLOUD_ID: &str = "^[a-z]+-[0-9a-f]{8}$";
/// IPv4 prefixes.
const PREFIX: &str = r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$";
/// IPv4 addresses.
const IPV4: &str = r"^([0-9]{1,3}\.){3}[0-9]{1,3}$";

/// What is wanted in the cloud, and where an API endpoint will be.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "sample.custody.dev",
    version = "v1alpha1",
    kind = "SampleOwner",
    plural = "sampleowners",
    shortname = "so",
    category = "custody",
    category = "cluster-api",
    namespaced,
    status = "SampleOwnerStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A SampleOwner owns networks, disks, addresses, routes and machines in the sample cloud.",
    label("cluster.x-k8s.io/v1beta2", "v1alpha1"),
    label("cluster.x-k8s.io/provider", "infrastructure-sample"),
    label("clusterctl.cluster.x-k8s.io", ""),
    printcolumn(
        name = "Ready",
        type_ = "string",
        description = "Is everything as wanted?",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        description = "Why it is ready or not",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(
        name = "Resources",
        type_ = "string",
        description = "Ready of all resources",
        json_path = ".status.summary"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Endpoint",
        type_ = "string",
        description = "Host of the control plane endpoint",
        json_path = ".spec.controlPlaneEndpoint.host",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        description = "What the Ready condition says",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.addresses.all(a, self.networks.exists(n, n.name == a.network))")
        .message("an address names a network of this list").field_path(".addresses"),
    validation = Rule::new("self.routes.all(r, self.networks.exists(n, n.name == r.network))")
        .message("a route names a network of this list").field_path(".routes"),
    validation = Rule::new("self.machines.all(m, self.networks.exists(n, n.name == m.network))")
        .message("a machine names a network of this list").field_path(".machines"),
    validation = Rule::new("self.machines.all(m, !has(m.disk) || self.disks.exists(d, d.name == m.disk))")
        .message("a machine names a disk of this list").field_path(".machines"),
    validation = Rule::new(
        "self.machines.all(m, !has(m.disk) || self.machines.exists_one(o, has(o.disk) && o.disk == m.disk))"
    ).message("a disk serves at most one machine").field_path(".machines"),
    validation = Rule::new(
        "self.addresses.all(a, self.addresses.exists_one(o, o.network == a.network && o.label == a.label))"
    ).message("a label is used once in a network").field_path(".addresses"),
    validation = Rule::new(
        "self.routes.all(r, self.routes.exists_one(o, o.network == r.network && o.destination == r.destination))"
    ).message("a destination is used once in a network").field_path(".routes"),
    validation = Rule::new(
        "self.networks.all(n, !has(n.cloudName) || self.networks.exists_one(o, has(o.cloudName) && o.cloudName == n.cloudName))"
    ).message("a cloudName is used once").field_path(".networks"),
    validation = Rule::new(
        "self.disks.all(d, !has(d.cloudName) || self.disks.exists_one(o, has(o.cloudName) && o.cloudName == d.cloudName))"
    ).message("a cloudName is used once").field_path(".disks"),
)]
pub struct SampleOwnerSpec {
    /// Where the API server of the cluster that is built on these resources can be reached. Read by Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// Networks.
    #[serde(default)]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub networks: Vec<NetworkSpec>,
    /// Disks.
    #[serde(default)]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub disks: Vec<DiskSpec>,
    /// Addresses in networks.
    #[serde(default)]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub addresses: Vec<AddressSpec>,
    /// Routes in networks.
    #[serde(default)]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub routes: Vec<RouteSpec>,
    /// Machines.
    #[serde(default)]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub machines: Vec<MachineSpec>,
}

/// A host and a port.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiEndpoint {
    /// Name or address.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// TCP port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

/// What happens at the end to a thing that somebody else made and this owner took over.
#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[schemars(inline, transform = without_description)]
pub enum Adopt {
    /// It is deleted with its owner.
    Delete,
    /// It loses the mark of its owner and stays.
    Release,
}

/// The fields say what adopting means for their kind; the enum's own words would take their place.
fn without_description(schema: &mut schemars::Schema) {
    schema.remove("description");
}

/// A network: made, adopted by its name in the cloud, or used by its id.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.use) != has(self.cidr)").message("either cidr, to make a network, or use, of an existing one"),
    validation = Rule::new("!has(self.use) || (!has(self.adopt) && !has(self.cloudName))")
        .message("what is only used is neither adopted nor named"),
    validation = Rule::new("!has(self.adopt) || has(self.cloudName)").message("adopt needs the cloudName of what is to be adopted"),
    validation = Rule::new("has(self.use) == has(oldSelf.use)").message("use cannot be added or taken away"),
    validation = Rule::new("has(self.cloudName) == has(oldSelf.cloudName)").message("cloudName cannot be added or taken away"),
)]
pub struct NetworkSpec {
    /// Name of the item, unique in the list.
    #[schemars(length(min = 1, max = 32), regex(pattern = ITEM_NAME))]
    pub name: String,
    /// Address range, for a network to be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 18), regex(pattern = PREFIX))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("cidr cannot be changed"))]
    pub cidr: Option<String>,
    /// Name in the cloud; made of namespace, owner and item if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = CLOUD_NAME))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("cloudName cannot be changed"))]
    pub cloud_name: Option<String>,
    /// Take a network of that cloudName that nobody owns instead of making one, and say what happens to it at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adopt>,
    /// Id of an existing network that is used and never touched.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40), regex(pattern = CLOUD_ID))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("use cannot be changed"))]
    pub use_id: Option<String>,
}

/// A disk: made, adopted by its name in the cloud, or used by its id.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.use) != has(self.sizeGb)").message("either sizeGb, to make a disk, or use, of an existing one"),
    validation = Rule::new("!has(self.use) || (!has(self.adopt) && !has(self.cloudName))")
        .message("what is only used is neither adopted nor named"),
    validation = Rule::new("!has(self.adopt) || has(self.cloudName)").message("adopt needs the cloudName of what is to be adopted"),
    validation = Rule::new("has(self.use) == has(oldSelf.use)").message("use cannot be added or taken away"),
    validation = Rule::new("has(self.cloudName) == has(oldSelf.cloudName)").message("cloudName cannot be added or taken away"),
)]
pub struct DiskSpec {
    /// Name of the item, unique in the list.
    #[schemars(length(min = 1, max = 32), regex(pattern = ITEM_NAME))]
    pub name: String,
    /// Size in GB, for a disk to be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16384))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("sizeGb cannot be changed"))]
    pub size_gb: Option<i32>,
    /// Name in the cloud; made of namespace, owner and item if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = CLOUD_NAME))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("cloudName cannot be changed"))]
    pub cloud_name: Option<String>,
    /// Take a disk of that cloudName that nobody owns instead of making one, and say what happens to it at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adopt>,
    /// Id of an existing disk that is used and never touched.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40), regex(pattern = CLOUD_ID))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("use cannot be changed"))]
    pub use_id: Option<String>,
}

/// An address in a network, known there by its label.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AddressSpec {
    /// Name of the item, unique in the list.
    #[schemars(length(min = 1, max = 32), regex(pattern = ITEM_NAME))]
    pub name: String,
    /// Name of the network item.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("network cannot be changed"))]
    pub network: String,
    /// Label in the cloud, unique in the network.
    #[schemars(length(min = 1, max = 64), regex(pattern = CLOUD_NAME))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("label cannot be changed"))]
    pub label: String,
    /// Take an address of that label that nobody owns instead of making one, and say what happens to it at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adopt>,
}

/// A route in a network, known there by its destination. Routes carry no tags: one that this owner did not make is left alone.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RouteSpec {
    /// Name of the item, unique in the list.
    #[schemars(length(min = 1, max = 32), regex(pattern = ITEM_NAME))]
    pub name: String,
    /// Name of the network item.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("network cannot be changed"))]
    pub network: String,
    /// Address range the route leads to, unique in the network.
    #[schemars(length(max = 18), regex(pattern = PREFIX))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("destination cannot be changed"))]
    pub destination: String,
    /// Address the route goes through.
    #[schemars(length(max = 15), regex(pattern = IPV4))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("nextHop cannot be changed"))]
    pub next_hop: String,
}

/// A machine.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.disk) == has(oldSelf.disk)").message("disk cannot be added or taken away"))]
pub struct MachineSpec {
    /// Name of the item, unique in the list.
    #[schemars(length(min = 1, max = 32), regex(pattern = ITEM_NAME))]
    pub name: String,
    /// Name of the network item.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("network cannot be changed"))]
    pub network: String,
    /// Name of the disk item, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("disk cannot be changed"))]
    pub disk: Option<String>,
    /// Size class. May be changed at any time.
    #[schemars(length(min = 1, max = 64), regex(pattern = CLOUD_NAME))]
    pub flavor: String,
}

/// What was seen of it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SampleOwnerStatus {
    /// The generation that the rest of the status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Reconciling, Stalled, Paused, and the mirror of the ledger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// What Cluster API waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// Ready of all resources, for people: `3/5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Every wanted or recorded resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["slot".into()]))]
    pub resources: Vec<ResourceStatus>,
}

/// What Cluster API waits for.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Initialization {
    /// True from the moment that everything was as wanted for the first time.
    #[serde(default)]
    pub provisioned: bool,
}

/// One resource.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceStatus {
    /// Kind and item name: `machine-web`.
    pub slot: String,
    /// Id in the cloud, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// One word: `ready`, `creating`, `building`, `deleting`, `refused`.
    pub state: String,
    /// More about the state, if there is anything to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
