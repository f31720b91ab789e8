//! What this controller needs of the API server before any policy asks for more. The shipped roles say the same.
use common::operator::doctor::Grant;

const fn grant(group: &'static str, resource: &'static str, verb: &'static str) -> Grant {
    Grant { group, resource, subresource: "", verb, name: "", own_namespace: false }
}
const POLICIES: &str = crate::names::GROUP;

/// Everything.
pub const GRANTS: &[Grant] = &[
    grant(POLICIES, "configurationpolicies", "get"),
    grant(POLICIES, "configurationpolicies", "list"),
    grant(POLICIES, "configurationpolicies", "watch"),
    grant(POLICIES, "configurationpolicies", "patch"),
    Grant { subresource: "status", ..grant(POLICIES, "configurationpolicies", "patch") },
    grant("", "configmaps", "get"),
    grant("", "configmaps", "list"),
    grant("", "configmaps", "watch"),
    grant("", "configmaps", "create"),
    grant("", "configmaps", "update"),
    grant("", "configmaps", "patch"),
    grant("", "configmaps", "delete"),
    grant("", "namespaces", "get"),
    grant("", "namespaces", "list"),
    grant("", "namespaces", "watch"),
    Grant { name: crate::names::ENCRYPTION_SECRET, ..grant("", "secrets", "get") },
    Grant { name: crate::names::ENCRYPTION_SECRET, ..grant("", "secrets", "list") },
    Grant { name: crate::names::ENCRYPTION_SECRET, ..grant("", "secrets", "watch") },
    grant("", "events", "create"),
    Grant { name: crate::names::CRD, ..grant("apiextensions.k8s.io", "customresourcedefinitions", "list") },
    Grant::lease("create", ""),
    Grant::lease("get", crate::names::LEASE),
    Grant::lease("update", crate::names::LEASE),
    Grant::lease("watch", crate::names::LEASE),
    Grant { own_namespace: true, name: crate::names::CONTROLLER, ..grant("apps", "deployments", "list") },
];
