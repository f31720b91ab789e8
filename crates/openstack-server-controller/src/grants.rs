//! What this controller must be allowed to do at the API server: `doctor` asks for it, a test compares it with the shipped roles.
use crate::names::CONTROLLER;
use common::operator::doctor::Grant;

const fn grant(group: &'static str, resource: &'static str, subresource: &'static str, verb: &'static str) -> Grant {
    Grant { group, resource, subresource, verb, name: "", own_namespace: false }
}

const OURS: &str = "infrastructure.cluster.x-k8s.io";

/// Every verb that is used, and no other.
pub const GRANTS: &[Grant] = &[
    grant(OURS, "openstackservers", "", "get"),
    grant(OURS, "openstackservers", "", "list"),
    grant(OURS, "openstackservers", "", "watch"),
    grant(OURS, "openstackservers", "", "patch"),
    grant(OURS, "openstackservers", "status", "patch"),
    // The server of a bastion or machine.
    grant(OURS, "openstackservers", "", "create"),
    grant(OURS, "openstackservers", "", "delete"),
    grant(OURS, "openstackclusters", "", "get"),
    grant(OURS, "openstackclusters", "", "list"),
    grant(OURS, "openstackclusters", "", "watch"),
    grant(OURS, "openstackclusters", "", "patch"),
    grant(OURS, "openstackclusters", "status", "patch"),
    grant(OURS, "openstackmachines", "", "get"),
    grant(OURS, "openstackmachines", "", "list"),
    grant(OURS, "openstackmachines", "", "watch"),
    grant(OURS, "openstackmachines", "", "patch"),
    grant(OURS, "openstackmachines", "status", "patch"),
    // Credentials of other namespaces, and who may use them.
    grant(OURS, "openstackclusteridentities", "", "get"),
    grant("", "namespaces", "", "get"),
    // Credentials and user data.
    grant("", "secrets", "", "get"),
    grant("", "secrets", "", "list"),
    grant("", "secrets", "", "watch"),
    // The finalizer that keeps credentials in a namespace that is deleted.
    grant("", "secrets", "", "patch"),
    // Addresses of pools.
    grant("ipam.cluster.x-k8s.io", "ipaddressclaims", "", "get"),
    grant("ipam.cluster.x-k8s.io", "ipaddressclaims", "", "list"),
    grant("ipam.cluster.x-k8s.io", "ipaddressclaims", "", "watch"),
    grant("ipam.cluster.x-k8s.io", "ipaddressclaims", "", "create"),
    // The finalizer that the Go provider leaves on them.
    grant("ipam.cluster.x-k8s.io", "ipaddressclaims", "", "patch"),
    grant("ipam.cluster.x-k8s.io", "ipaddresses", "", "get"),
    // Images of the OpenStack resource controller.
    grant("openstack.k-orc.cloud", "images", "", "get"),
    grant("openstack.k-orc.cloud", "images", "", "list"),
    grant("openstack.k-orc.cloud", "images", "", "watch"),
    // What a machine is to be, and in which cluster.
    grant("cluster.x-k8s.io", "machines", "", "get"),
    grant("cluster.x-k8s.io", "machines", "", "list"),
    grant("cluster.x-k8s.io", "machines", "", "watch"),
    grant("cluster.x-k8s.io", "clusters", "", "get"),
    // Pause of a Cluster.
    grant("cluster.x-k8s.io", "clusters", "", "list"),
    grant("cluster.x-k8s.io", "clusters", "", "watch"),
    grant("events.k8s.io", "events", "", "create"),
    grant("events.k8s.io", "events", "", "patch"),
    Grant::lease("get", CONTROLLER),
    Grant::lease("update", CONTROLLER),
    Grant::lease("watch", CONTROLLER),
    Grant::lease("create", ""),
];
