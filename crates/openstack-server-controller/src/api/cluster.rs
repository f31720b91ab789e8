//! OpenStackCluster: the network that a cluster lives in, and its bastion, as far as they are read and written here.
#![allow(unreachable_pub)] // the schema derive repeats each struct inside a function, where `pub` reaches nobody
#![allow(clippy::duplicated_attributes)] // several printer columns are not one attribute written twice

use super::machine::{Initialization, OpenStackMachineSpec};
use super::params::{IdentityRef, NetworkParam, RouterParam, SubnetParam};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a cluster is to live in.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "OpenStackCluster",
    plural = "openstackclusters",
    shortname = "osc",
    category = "cluster-api",
    namespaced,
    status = "OpenStackClusterStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "An OpenStackCluster names the network that a cluster lives in, and can have a bastion.",
    label("cluster.x-k8s.io/v1beta1", "v1beta2"),
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    label("cluster.x-k8s.io/provider", "infrastructure-openstack"),
    label("clusterctl.cluster.x-k8s.io", ""),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        description = "Cluster it belongs to",
        json_path = ".metadata.labels.cluster\\.x-k8s\\.io/cluster-name"
    ),
    printcolumn(
        name = "Network",
        type_ = "string",
        description = "Network it lives in",
        json_path = ".status.network.id"
    ),
    printcolumn(
        name = "Endpoint",
        type_ = "string",
        description = "Host of the control plane endpoint",
        json_path = ".spec.controlPlaneEndpoint.host",
        priority = 1
    ),
    printcolumn(
        name = "Bastion IP",
        type_ = "string",
        description = "Floating address of the bastion",
        json_path = ".status.bastion.floatingIP"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.enableExternalNetwork) || self.enableExternalNetwork || !has(self.bastion) || !has(self.bastion.floatingIP)")
        .message("bastion floating IP cannot be set when the external network is disabled").field_path(".bastion.floatingIP"),
)]
pub struct OpenStackClusterSpec {
    /// Where the credentials are.
    pub identity_ref: IdentityRef,
    /// A server to reach the others by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bastion: Option<Bastion>,
    /// The network, which exists already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkParam>,
    /// Subnets of the network, which exist already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub subnets: Vec<SubnetParam>,
    /// The subnet that ports of servers stand in; left out, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_subnet: Option<SubnetParam>,
    /// The network that floating addresses come from; left out, the only external one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_network: Option<NetworkParam>,
    /// False: no floating address is ever used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_external_network: Option<bool>,
    /// Tags of everything that is made for the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 46), inner(length(max = 60)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub tags: Vec<String>,
    /// Where the API server of the cluster can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("!has(oldSelf.host) || size(oldSelf.host) == 0 || self == oldSelf || (self.host == oldSelf.host && oldSelf.port == 0)").message("controlPlaneEndpoint is immutable once it is set"))]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// The API server of the cluster. A managed load balancer is refused unless the status already names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("!has(self.port) || (self.port >= 0 && self.port <= 65535)").message("port is between 0 and 65535"))]
    pub api_server: Option<ApiServerSpec>,
    /// The router of the cluster; left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterParam>,
    /// Subnets to be made; refused, networks must exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub managed_subnets: Vec<Opaque>,
    /// A network to be made; refused, networks must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_network: Option<Opaque>,
    /// A router to be made; refused, routers must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_router: Option<Opaque>,
    /// Security groups to be made; refused unless the status already names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_security_groups: Option<Opaque>,
    /// Availability zones of the control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 255)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub control_plane_availability_zones: Vec<String>,
    /// True: no zone is named for machines of the control plane, Nova picks one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_omit_availability_zone: Option<bool>,
}
/// Something of which only little is read.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(transparent)]
pub struct Opaque(pub Value);
impl Opaque {
    /// What of it is read here; none if it does not fit.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_value(self.0.clone()).ok()
    }
}
/// The API server of a cluster. Fields that are not read here are kept.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ApiServerSpec {
    /// The port that it answers on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// Its load balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_load_balancer: Option<Opaque>,
    /// Its load balancer, in older words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<Opaque>,
}
/// What is read of a load balancer.
#[derive(Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct BalancerSpec {
    /// False: there is none.
    pub enabled: Option<bool>,
    /// Ports that it answers on beside that of the API server.
    pub additional_ports: Vec<i64>,
}
impl ApiServerSpec {
    fn balancer(&self) -> Option<BalancerSpec> {
        self.managed_load_balancer.as_ref().or(self.load_balancer.as_ref()).map(|it| it.read().unwrap_or_default())
    }
    /// Is a load balancer to be made?
    pub fn wants_balancer(&self) -> bool {
        self.balancer().is_some_and(|it| it.enabled != Some(false))
    }
    /// Ports that the load balancer answers on beside that of the API server.
    pub fn additional_ports(&self) -> Vec<i64> {
        self.balancer().map(|it| it.additional_ports).unwrap_or_default()
    }
}
impl schemars::JsonSchema for Opaque {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Opaque".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}
/// A host and a port.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiEndpoint {
    /// Name or address.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub host: String,
    /// TCP port.
    #[serde(default)]
    #[schemars(range(min = 0, max = 65535))]
    pub port: i32,
}
/// A server to reach the others by.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!self.enabled || has(self.spec)").message("spec is required if bastion is enabled"))]
pub struct Bastion {
    /// False: there is no bastion. Deprecated: leave the bastion out instead.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// What server it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<OpenStackMachineSpec>,
    /// Availability zone of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub availability_zone: Option<String>,
    /// A floating address that exists already; left out, one is made.
    #[serde(default, rename = "floatingIP", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), extend("format" = "ipv4"))]
    pub floating_ip: Option<String>,
}
fn yes() -> bool {
    true
}

/// What is seen of the cluster.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterStatus {
    /// The generation that the last pass decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What Cluster API waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// The same, in the words of the older contract.
    #[serde(default)]
    pub ready: bool,
    /// The network that the cluster lives in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkStatus>,
    /// The network that floating addresses come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_network: Option<NetworkStatus>,
    /// Availability zones that take servers, and whether the control plane may stand in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub failure_domains: Vec<FailureDomain>,
    /// The bastion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bastion: Option<BastionStatus>,
    /// Load balancer of the API server, if somebody made one: machines of the control plane become members of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server_load_balancer: Option<LoadBalancerStatus>,
    /// Security group of the bastion, if somebody made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bastion_security_group: Option<SecurityGroupStatus>,
    /// Security group of the control plane, if somebody made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_security_group: Option<SecurityGroupStatus>,
    /// Security group of the workers, if somebody made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_security_group: Option<SecurityGroupStatus>,
    /// Ready, BastionReady, kstatus, Paused, and the mirror of the ledger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
/// An availability zone, as Cluster API is told of it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Its name.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// May machines of the control plane stand in it?
    #[serde(default)]
    pub control_plane: bool,
}
/// A network.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkStatus {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Id in the cloud.
    #[serde(default)]
    pub id: String,
    /// Its tags, if known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its subnets that count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<SubnetStatus>,
}
/// A subnet.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetStatus {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Id in the cloud.
    #[serde(default)]
    pub id: String,
    /// Its address range.
    #[serde(default)]
    pub cidr: String,
    /// Its tags, if known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}
/// A security group.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityGroupStatus {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Id in the cloud.
    #[serde(default)]
    pub id: String,
}
/// A load balancer.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerStatus {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Id in the cloud.
    #[serde(default)]
    pub id: String,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// Its address in the network of the cluster.
    #[serde(default, rename = "internalIP", skip_serializing_if = "Option::is_none")]
    pub internal_ip: Option<String>,
}
/// The bastion.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BastionStatus {
    /// Id of the server in the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of its SSH key.
    #[serde(default, rename = "sshKeyName", skip_serializing_if = "Option::is_none")]
    pub ssh_key_name: Option<String>,
    /// What the cloud calls its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Its address in the network of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// Its floating address.
    #[serde(default, rename = "floatingIP", skip_serializing_if = "Option::is_none")]
    pub floating_ip: Option<String>,
    /// No longer filled; kept as it is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Opaque>,
    /// No longer filled; kept as it is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Opaque>,
}
