//! OpenStackServer: one server with its ports, trunks and volumes. Depends on no other object of Cluster API.
#![allow(unreachable_pub)] // the schema derive repeats each struct inside a function, where `pub` reaches nobody
#![allow(clippy::duplicated_attributes)] // several printer columns are not one attribute written twice

use super::device::{BlockDevice, RootVolume, SchedulerHint, ServerMetadata};
use super::params::{IdentityRef, ImageParam, LocalRef, SecurityGroupParam, ServerGroupParam, TypedRef};
use super::port::PortOpts;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What server is wanted.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "OpenStackServer",
    plural = "openstackservers",
    shortname = "oss",
    category = "cluster-api",
    namespaced,
    status = "OpenStackServerStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "An OpenStackServer owns a server with its ports, trunks and volumes in one OpenStack project.",
    label("cluster.x-k8s.io/v1beta1", "v1alpha1"),
    label("cluster.x-k8s.io/v1beta2", "v1alpha1"),
    label("cluster.x-k8s.io/provider", "infrastructure-openstack"),
    label("clusterctl.cluster.x-k8s.io", ""),
    printcolumn(
        name = "InstanceState",
        type_ = "string",
        description = "What the cloud calls the state of the server",
        json_path = ".status.instanceState"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        description = "Is the server active now?",
        json_path = ".status.ready"
    ),
    printcolumn(
        name = "InstanceID",
        type_ = "string",
        description = "Id of the server in the cloud",
        json_path = ".status.instanceID"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        description = "Why the server is not ready",
        json_path = ".status.conditions[?(@.type==\"InstanceReady\")].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.flavor) || has(self.flavorID)").message("at least one of flavor or flavorID must be set"),
    validation = Rule::new("self.ports.all(p, has(p.network) || (has(p.fixedIPs) && size(p.fixedIPs) > 0))")
        .message("a port names its network, or a subnet of it in fixedIPs").field_path(".ports"),
    validation = Rule::new("!has(self.rootVolume) || !has(self.additionalBlockDevices) || self.additionalBlockDevices.all(d, d.name != 'root')")
        .message("the name root is taken by the root volume").field_path(".additionalBlockDevices"),
    validation = Rule::new("!has(self.serverMetadata) || self.serverMetadata.all(m, !m.key.startsWith('custody-'))")
        .message("keys that begin with custody- mark whose a server is").field_path(".serverMetadata"),
    validation = Rule::new("has(self.additionalBlockDevices) == has(oldSelf.additionalBlockDevices) && has(self.availabilityZone) == has(oldSelf.availabilityZone) && has(self.configDrive) == has(oldSelf.configDrive) && has(self.flavor) == has(oldSelf.flavor) && has(self.flavorID) == has(oldSelf.flavorID) && has(self.floatingIPPoolRef) == has(oldSelf.floatingIPPoolRef) && has(self.rootVolume) == has(oldSelf.rootVolume) && has(self.schedulerHintAdditionalProperties) == has(oldSelf.schedulerHintAdditionalProperties) && has(self.securityGroups) == has(oldSelf.securityGroups) && has(self.serverGroup) == has(oldSelf.serverGroup) && has(self.serverMetadata) == has(oldSelf.serverMetadata) && has(self.tags) == has(oldSelf.tags) && has(self.trunk) == has(oldSelf.trunk) && has(self.userDataRef) == has(oldSelf.userDataRef)")
        .message("the spec is immutable, identityRef excepted: no field can be added or taken away"),
)]
pub struct OpenStackServerSpec {
    /// Disks beside the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]), validation = Rule::new("self == oldSelf").message("additionalBlockDevices are immutable"))]
    pub additional_block_devices: Vec<BlockDevice>,
    /// Availability zone of the server, and of volumes that ask for the zone of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("availabilityZone is immutable"))]
    pub availability_zone: Option<String>,
    /// Gives the guest its data on a drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("configDrive is immutable"))]
    pub config_drive: Option<bool>,
    /// Name of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("flavor is immutable"))]
    pub flavor: Option<String>,
    /// Id of the flavor; wins over its name.
    #[serde(default, rename = "flavorID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("flavorID is immutable"))]
    pub flavor_id: Option<String>,
    /// Pool that gives the server a floating address.
    #[serde(default, rename = "floatingIPPoolRef", skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("floatingIPPoolRef is immutable"))]
    pub floating_ip_pool_ref: Option<TypedRef>,
    /// Where the credentials are. May be changed to others of the same project and region.
    pub identity_ref: IdentityRef,
    /// The image that the server boots from.
    #[x_kube(validation = Rule::new("self == oldSelf").message("image is immutable"))]
    pub image: ImageParam,
    /// Ports, in the order of the guest's network cards.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("ports are immutable"))]
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
    /// Security groups of ports that name none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("securityGroups are immutable"))]
    pub security_groups: Vec<SecurityGroupParam>,
    /// The server group that the server joins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("serverGroup is immutable"))]
    pub server_group: Option<ServerGroupParam>,
    /// Metadata of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 124))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["key".into()]), validation = Rule::new("self == oldSelf").message("serverMetadata are immutable"))]
    pub server_metadata: Vec<ServerMetadata>,
    /// Name of the SSH key; empty for none.
    #[schemars(length(max = 255))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("sshKeyName is immutable"))]
    pub ssh_key_name: String,
    /// Tags of the server, its ports and trunks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 46), inner(length(max = 60)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self == oldSelf").message("tags are immutable"))]
    pub tags: Vec<String>,
    /// Makes every port the parent of a trunk, unless the port says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("trunk is immutable"))]
    pub trunk: Option<bool>,
    /// Secret whose key `value` is the user data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("userDataRef is immutable"))]
    pub user_data_ref: Option<LocalRef>,
}

/// What is seen of the server.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackServerStatus {
    /// The generation that the last pass decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The server is active now. Goes back to false; the condition `Ready` does not.
    #[serde(default)]
    pub ready: bool,
    /// Id of the server in the cloud.
    #[serde(default, rename = "instanceID", skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// What the cloud calls the state of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_state: Option<String>,
    /// Addresses of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// What the names and filters of the spec led to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<ResolvedServer>,
    /// What was made in the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ServerResources>,
    /// Ready (never lowered), Failed, InstanceReady, kstatus, Paused, and the mirror of the ledger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
/// An address of a server.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeAddress {
    /// `InternalIP`, `ExternalIP` or `InternalDNS`.
    #[serde(rename = "type")]
    pub type_: String,
    /// The address.
    pub address: String,
}
/// What the names and filters of a spec led to.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedServer {
    /// Id of the server group.
    #[serde(default, rename = "serverGroupID", skip_serializing_if = "Option::is_none")]
    pub server_group_id: Option<String>,
    /// Id of the image.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Id of the flavor.
    #[serde(default, rename = "flavorID", skip_serializing_if = "Option::is_none")]
    pub flavor_id: Option<String>,
    /// Ports, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ResolvedPort>,
}
/// One port as it is asked for.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedPort {
    /// Its name in the cloud.
    pub name: String,
    /// Its description in the cloud.
    #[serde(default)]
    pub description: String,
    /// Id of its network.
    #[serde(rename = "networkID")]
    pub network_id: String,
    /// It is the parent of a trunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    /// Ids of subnets, and addresses.
    #[serde(default, rename = "fixedIPs", skip_serializing_if = "Vec::is_empty")]
    pub fixed_ips: Vec<ResolvedFixedIp>,
    /// Ids of security groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    /// Tags, each once, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub tags: Vec<String>,
}
/// A subnet by id, and an address.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedFixedIp {
    /// Id of the subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
    /// The address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}
/// What was made in the cloud.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerResources {
    /// Ports, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ResourceStatus>,
    /// Trunks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trunks: Vec<ResourceStatus>,
    /// Volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<ResourceStatus>,
}
/// One resource.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceStatus {
    /// Its id in the cloud.
    #[schemars(length(min = 1))]
    pub id: String,
}
