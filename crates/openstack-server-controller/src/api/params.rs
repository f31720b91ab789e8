//! Types that several kinds share: how a network, a subnet, an image is named; what a port and a volume are.
#![allow(unreachable_pub)] // the schema derive repeats each struct inside a function, where `pub` reaches nobody

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A tag of Neutron cannot hold a comma: lists of tags are joined by it.
const NEUTRON_TAG: &str = "^[^,]+$";
const NO_SPACE: &str = "^[^ ]+$";

/// Where the credentials are.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(!has(self.region) && !has(oldSelf.region)) || (has(self.region) && has(oldSelf.region) && self.region == oldSelf.region)").message("region is immutable"))]
pub struct IdentityRef {
    /// `Secret` in the namespace of the object, or a cluster-wide `ClusterIdentity`.
    #[serde(rename = "type", default)]
    pub type_: IdentityType,
    /// Name of the Secret or of the OpenStackClusterIdentity.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Entry of clouds.yaml that is used.
    #[schemars(length(min = 1, max = 253))]
    pub cloud_name: String,
    /// Region, in place of the one that clouds.yaml names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub region: Option<String>,
}
/// Kinds of credentials.
#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline, transform = super::without_description)]
pub enum IdentityType {
    /// A Secret in the namespace of the object.
    #[default]
    Secret,
    /// An OpenStackClusterIdentity.
    ClusterIdentity,
}

/// An image: by id, by a filter that fits exactly one, or by an Image object of the same namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct ImageParam {
    /// Id of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 36), extend("format" = "uuid"))]
    pub id: Option<String>,
    /// What the one image must look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<ImageFilter>,
    /// An Image object of the OpenStack resource controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_ref: Option<ObjectRef>,
}
/// What an image must look like.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[schemars(extend("minProperties" = 1))]
pub struct ImageFilter {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub name: Option<String>,
    /// Tags that it has, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 255)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub tags: Vec<String>,
}
/// An object of the same namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}
/// A Secret of the same namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalRef {
    /// Its name.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub name: String,
}
/// An object of any kind in the same namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TypedRef {
    /// API group of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub api_group: Option<String>,
    /// Its kind.
    #[schemars(length(max = 253))]
    pub kind: String,
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
}

/// A flavor of a machine or bastion: by id, or by name.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct FlavorParam {
    /// Id of the flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub id: Option<String>,
    /// What the one flavor must look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<NameFilter>,
}
/// By name.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[schemars(extend("minProperties" = 1))]
pub struct NameFilter {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
}
/// A server group: by id, or by name.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct ServerGroupParam {
    /// Id of the server group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 36), extend("format" = "uuid"))]
    pub id: Option<String>,
    /// What the one server group must look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<NameFilter>,
}

/// Tags of networks, subnets and security groups, as Neutron filters by them.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NeutronTags {
    /// Tags that it has, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 255), regex(pattern = NEUTRON_TAG)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub tags: Vec<String>,
    /// Tags of which it has at least one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 255), regex(pattern = NEUTRON_TAG)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub tags_any: Vec<String>,
    /// Tags that it does not have all of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 255), regex(pattern = NEUTRON_TAG)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub not_tags: Vec<String>,
    /// Tags of which it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 255), regex(pattern = NEUTRON_TAG)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub not_tags_any: Vec<String>,
}
/// A network: by id, or by a filter that fits exactly one.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct NetworkParam {
    /// Id of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 36), extend("format" = "uuid"))]
    pub id: Option<String>,
    /// What the one network must look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<NeutronFilter>,
}
/// A security group: by id, or by a filter that fits exactly one.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct SecurityGroupParam {
    /// Id of the security group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 36), extend("format" = "uuid"))]
    pub id: Option<String>,
    /// What the one security group must look like. Without a projectID, only groups of the own project count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<NeutronFilter>,
}
/// A router: by id, or by a filter that fits exactly one.
pub type RouterParam = NetworkParam;
/// What a network or security group must look like.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct NeutronFilter {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub name: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub description: Option<String>,
    /// The project it belongs to.
    #[serde(default, rename = "projectID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub project_id: Option<String>,
    /// Its tags.
    #[serde(flatten)]
    pub by_tags: NeutronTags,
}
/// A subnet: by id, or by a filter that fits exactly one.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct SubnetParam {
    /// Id of the subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 36), extend("format" = "uuid"))]
    pub id: Option<String>,
    /// What the one subnet must look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<SubnetFilter>,
}
/// What a subnet must look like.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct SubnetFilter {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub name: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub description: Option<String>,
    /// The project it belongs to.
    #[serde(default, rename = "projectID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub project_id: Option<String>,
    /// 4 or 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_version: Option<i32>,
    /// Address of its gateway.
    #[serde(default, rename = "gatewayIP", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub gateway_ip: Option<String>,
    /// Its address range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub cidr: Option<String>,
    /// How addresses are given, in IPv6.
    #[serde(default, rename = "ipv6AddressMode", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub ipv6_address_mode: Option<String>,
    /// How routers are announced, in IPv6.
    #[serde(default, rename = "ipv6RAMode", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub ipv6_ra_mode: Option<String>,
    /// Its tags.
    #[serde(flatten)]
    pub by_tags: NeutronTags,
}

/// A port of a server.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.enablePortSecurity) || self.enablePortSecurity || !has(self.securityGroups) || size(self.securityGroups) == 0")
    .message("security groups cannot be set on a port with port security disabled").field_path(".securityGroups"))]
pub struct PortOpts {
    /// The network it is in; may be left out where fixedIPs name a subnet of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkParam>,
    /// Description in Neutron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub description: Option<String>,
    /// The port is called `<server>-<nameSuffix>`; without it, `<server>-<index>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub name_suffix: Option<String>,
    /// Subnets and addresses.
    #[serde(default, rename = "fixedIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub fixed_ips: Vec<FixedIp>,
    /// Security groups of this port, in place of those of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub security_groups: Vec<SecurityGroupParam>,
    /// Tags of this port, beside those of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(max = 255)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub tags: Vec<String>,
    /// Makes the port the parent of a trunk, or not, whatever the server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trunk: Option<bool>,
    /// Administrative state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    /// MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub mac_address: Option<String>,
    /// Addresses that the port may also use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Host that the port is bound to; for administrators.
    #[serde(default, rename = "hostID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub host_id: Option<String>,
    /// Kind of virtual network card, in the words of the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub vnic_type: Option<String>,
    /// Binding profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<BindingProfile>,
    /// Port security on or off; left out, it is what the network says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_port_security: Option<bool>,
    /// Tells the guest when the uplink is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagate_uplink_status: Option<bool>,
    /// Further keys of the port, as the cloud takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub value_specs: Vec<ValueSpec>,
}
/// A subnet and an address in it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FixedIp {
    /// The subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<SubnetParam>,
    /// The address; left out, the cloud picks one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub ip_address: Option<String>,
}
/// An address that a port may also use.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AddressPair {
    /// Address or address range.
    #[schemars(length(min = 1, max = 64))]
    pub ip_address: String,
    /// MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub mac_address: Option<String>,
}
/// Binding profile.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingProfile {
    /// The card does the work of the virtual switch.
    #[serde(default, rename = "ovsHWOffload", skip_serializing_if = "Option::is_none")]
    pub ovs_hw_offload: Option<bool>,
    /// The virtual function is trusted.
    #[serde(default, rename = "trustedVF", skip_serializing_if = "Option::is_none")]
    pub trusted_vf: Option<bool>,
}
/// A further key of a port.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueSpec {
    /// Name of the entry, unique in the list.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// The key.
    #[schemars(length(min = 1, max = 255))]
    pub key: String,
    /// Its value.
    #[schemars(length(min = 1, max = 1024))]
    pub value: String,
}

/// A root volume: the server boots from it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RootVolume {
    /// Size in GiB.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1))]
    pub size_gib: i32,
    /// Volume type; left out, the cloud's default.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub type_: Option<String>,
    /// Availability zone of the volume; left out, the cloud's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<VolumeZone>,
}
/// A further disk.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockDevice {
    /// Name of the disk, unique in the list; the guest sees it as a device tag.
    #[schemars(length(min = 1, max = 60))]
    pub name: String,
    /// Size in GiB.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1))]
    pub size_gib: i32,
    /// What it lies on.
    pub storage: BlockDeviceStorage,
}
/// What a disk lies on.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockDeviceStorage {
    /// `Local`: the host's disk. `Volume`: a volume.
    #[serde(rename = "type")]
    pub type_: StorageType,
    /// Of a volume: its type and zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<BlockDeviceVolume>,
}
/// What a disk can lie on.
#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline, transform = super::without_description)]
pub enum StorageType {
    /// The host's disk.
    #[default]
    Local,
    /// A volume.
    Volume,
}
/// Type and zone of a volume.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceVolume {
    /// Volume type; left out, the cloud's default.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub type_: Option<String>,
    /// Availability zone of the volume; left out, the cloud's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<VolumeZone>,
}
/// Availability zone of a volume.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(validation = Rule::new("!has(self.from) || self.from == 'Name' ? has(self.name) : !has(self.name)")
    .message("name is required if from is 'Name' or default"))]
pub struct VolumeZone {
    /// `Name`: the zone named here. `Machine`: the zone of the server.
    #[serde(default)]
    pub from: ZoneSource,
    /// Name of the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = NO_SPACE))]
    pub name: Option<String>,
}
/// Where the zone of a volume comes from.
#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline, transform = super::without_description)]
pub enum ZoneSource {
    /// The zone is named.
    #[default]
    Name,
    /// The zone of the server.
    Machine,
}

/// One entry of the server's metadata.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerMetadata {
    /// The key.
    #[schemars(length(min = 1, max = 255))]
    pub key: String,
    /// Its value.
    #[schemars(length(min = 1, max = 255))]
    pub value: String,
}
/// A hint to the scheduler.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerHint {
    /// Its name.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Its value.
    pub value: HintValue,
}
/// The value of a hint.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(
    validation = Rule::new("self.type == 'Bool' ? has(self.bool) : !has(self.bool)").message("bool is required when type is Bool, and forbidden otherwise"),
    validation = Rule::new("self.type == 'Number' ? has(self.number) : !has(self.number)").message("number is required when type is Number, and forbidden otherwise"),
    validation = Rule::new("self.type == 'String' ? has(self.string) : !has(self.string)").message("string is required when type is String, and forbidden otherwise"),
)]
pub struct HintValue {
    /// Which of the others is set.
    #[serde(rename = "type")]
    pub type_: HintType,
    /// A truth value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bool: Option<bool>,
    /// A number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i32>,
    /// Text of any sort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub string: Option<String>,
}
/// Types of hints.
#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline, transform = super::without_description)]
pub enum HintType {
    /// A truth value.
    #[default]
    Bool,
    /// Text of any sort.
    String,
    /// A number.
    Number,
}
