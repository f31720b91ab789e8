//! OpenStackMachine: what Cluster API asks for a node, as far as it is read and written here.
#![allow(unreachable_pub)] // the schema derive repeats each struct inside a function, where `pub` reaches nobody
#![allow(clippy::duplicated_attributes)] // several printer columns are not one attribute written twice

use super::device::{BlockDevice, RootVolume, SchedulerHint, ServerMetadata};
use super::params::{FlavorParam, IdentityRef, ImageParam, SecurityGroupParam, ServerGroupParam, TypedRef};
use super::port::PortOpts;
use super::server::NodeAddress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What machine is wanted.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "OpenStackMachine",
    plural = "openstackmachines",
    shortname = "osm",
    category = "cluster-api",
    namespaced,
    status = "OpenStackMachineStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "An OpenStackMachine is a node of a cluster: it has a server made for it, and tells Cluster API of it.",
    label("cluster.x-k8s.io/v1beta1", "v1beta2"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    label("cluster.x-k8s.io/provider", "infrastructure-openstack"),
    label("clusterctl.cluster.x-k8s.io", ""),
    printcolumn(
        name = "ProviderID",
        type_ = "string",
        description = "Id that nodes know it by",
        json_path = ".spec.providerID"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        description = "Is it ready?",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.rootVolume) || !has(self.additionalBlockDevices) || self.additionalBlockDevices.all(d, d.name != 'root')")
        .message("the name root is taken by the root volume").field_path(".additionalBlockDevices"),
    validation = Rule::new("!has(self.serverMetadata) || self.serverMetadata.all(m, !m.key.startsWith('custody-'))")
        .message("keys that begin with custody- mark whose a server is").field_path(".serverMetadata"),
    validation = Rule::new("has(self.additionalBlockDevices) == has(oldSelf.additionalBlockDevices) && has(self.configDrive) == has(oldSelf.configDrive) && has(self.floatingIPPoolRef) == has(oldSelf.floatingIPPoolRef) && has(self.ports) == has(oldSelf.ports) && has(self.rootVolume) == has(oldSelf.rootVolume) && has(self.schedulerHintAdditionalProperties) == has(oldSelf.schedulerHintAdditionalProperties) && has(self.securityGroups) == has(oldSelf.securityGroups) && has(self.serverGroup) == has(oldSelf.serverGroup) && has(self.serverMetadata) == has(oldSelf.serverMetadata) && has(self.sshKeyName) == has(oldSelf.sshKeyName) && has(self.tags) == has(oldSelf.tags)")
        .message("the spec is immutable, providerID and identityRef excepted: no other field can be added or taken away"),
)]
pub struct OpenStackMachineSpec {
    /// Id that nodes know it by: `openstack://<region>/<server id>`.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub provider_id: Option<String>,
    /// Disks beside the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]), validation = Rule::new("self == oldSelf").message("additionalBlockDevices are immutable"))]
    pub additional_block_devices: Vec<BlockDevice>,
    /// Gives the guest its data on a drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("configDrive is immutable"))]
    pub config_drive: Option<bool>,
    /// The flavor, by id or by name.
    #[x_kube(validation = Rule::new("self == oldSelf").message("flavor is immutable"))]
    pub flavor: FlavorParam,
    /// Pool that gives the server a floating address.
    #[serde(default, rename = "floatingIPPoolRef", skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("floatingIPPoolRef is immutable"))]
    pub floating_ip_pool_ref: Option<TypedRef>,
    /// Where the credentials are; left out, those of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<IdentityRef>,
    /// The image that the server boots from.
    #[x_kube(validation = Rule::new("self == oldSelf").message("image is immutable"))]
    pub image: ImageParam,
    /// Ports; left out, one in the network of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic, validation = Rule::new("self == oldSelf").message("ports are immutable"))]
    pub ports: Vec<PortOpts>,
    /// Boots from a volume of this size instead of the host's disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("rootVolume is immutable"))]
    pub root_volume: Option<RootVolume>,
    /// Hints to the scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]), validation = Rule::new("self == oldSelf").message("schedulerHintAdditionalProperties are immutable"))]
    pub scheduler_hint_additional_properties: Vec<SchedulerHint>,
    /// Security groups of every port, beside those of the port and of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic, validation = Rule::new("self == oldSelf").message("securityGroups are immutable"))]
    pub security_groups: Vec<SecurityGroupParam>,
    /// The server group that the server joins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("serverGroup is immutable"))]
    pub server_group: Option<ServerGroupParam>,
    /// Metadata of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 124))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["key".into()]), validation = Rule::new("self == oldSelf").message("serverMetadata is immutable"))]
    pub server_metadata: Vec<ServerMetadata>,
    /// Name of the SSH key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("sshKeyName is immutable"))]
    pub ssh_key_name: Option<String>,
    /// Tags of the server, its ports and trunks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 46), inner(length(max = 60)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self == oldSelf").message("tags are immutable"))]
    pub tags: Vec<String>,
    /// Makes every port the parent of a trunk, unless the port says otherwise.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("trunk is immutable"))]
    pub trunk: bool,
}

/// What is seen of the machine.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackMachineStatus {
    /// The generation that the last pass decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What Cluster API waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// The instance is active now; the older contract waits for it.
    #[serde(default)]
    pub ready: bool,
    /// Id of the server in the cloud.
    #[serde(default, rename = "instanceID", skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Addresses of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// Failure domain that the server is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// Ready, InstanceReady, kstatus and Paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
/// What Cluster API waits for.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Initialization {
    /// True from the moment that the infrastructure was there for the first time.
    #[serde(default)]
    pub provisioned: bool,
}
