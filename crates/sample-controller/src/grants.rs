//! What this controller must be allowed to do at the API server: `doctor` asks for it, a test compares it with the shipped roles.
use crate::names::CONTROLLER;
use common::operator::doctor::Grant;

const fn grant(group: &'static str, resource: &'static str, subresource: &'static str, verb: &'static str) -> Grant {
    Grant { group, resource, subresource, verb, name: "", own_namespace: false }
}

const OURS: &str = "sample.custody.dev";

/// Every verb that is used, and no other.
pub const GRANTS: &[Grant] = &[
    grant(OURS, "sampleowners", "", "get"),
    grant(OURS, "sampleowners", "", "list"),
    grant(OURS, "sampleowners", "", "watch"),
    grant(OURS, "sampleowners", "", "patch"),
    grant(OURS, "sampleowners", "status", "patch"),
    // Pause of a Cluster.
    grant("cluster.x-k8s.io", "clusters", "", "list"),
    grant("cluster.x-k8s.io", "clusters", "", "watch"),
    grant("events.k8s.io", "events", "", "create"),
    grant("events.k8s.io", "events", "", "patch"),
    // The UID of kube-system is the default installation id.
    Grant { name: "kube-system", ..grant("", "namespaces", "", "get") },
    Grant::lease("get", CONTROLLER),
    Grant::lease("update", CONTROLLER),
    Grant::lease("watch", CONTROLLER),
    Grant::lease("create", ""),
];
