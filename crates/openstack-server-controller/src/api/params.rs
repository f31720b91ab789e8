//! Types that several kinds share: how credentials, a network, a subnet, an image are named.
#![allow(unreachable_pub)] // the schema derive repeats each struct inside a function, where `pub` reaches nobody

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A tag of Neutron cannot hold a comma: lists of tags are joined by it.
const NEUTRON_TAG: &str = "^[^,]+$";

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
