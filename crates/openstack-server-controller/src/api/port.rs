//! What a port of a server is.
#![allow(unreachable_pub)] // the schema derive repeats each struct inside a function, where `pub` reaches nobody

use super::params::{NetworkParam, SecurityGroupParam, SubnetParam};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

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
