//! Names that are part of this controller's API. Documented in docs/operations.md.
//!
//! The peer's own names are kept: its finalizer and its Lease, so that both never act at once.
use sha2::{Digest, Sha256};

/// The controller, in metrics and events.
pub const CONTROLLER: &str = "policy-pruner";
/// What compliance events name as their source; tools of the framework look for it.
pub const EVENT_SOURCE: &str = "configuration-policy-controller";
/// API group of policies.
pub const GROUP: &str = "policy.open-cluster-management.io";
/// Version served.
pub const VERSION: &str = "v1";
/// The kind served.
pub const KIND: &str = "ConfigurationPolicy";
/// Its plural.
pub const PLURAL: &str = "configurationpolicies";
/// The CRD of the kind.
pub const CRD: &str = "configurationpolicies.policy.open-cluster-management.io";
/// Keeps a policy until its children are pruned.
pub const FINALIZER: &str = "policy.open-cluster-management.io/delete-related-objects";
/// Lease shared with the peer; one and the same only in the peer's namespace (`deploy/overlays/policy-pruner-beside-peer`).
pub const LEASE: &str = "config-policy-controller.open-cluster-management.io";
/// On a policy: do not resolve templates.
pub const DISABLE_TEMPLATES: &str = "policy.open-cluster-management.io/disable-templates";
/// On a policy: initialisation vector of encrypted values, base64.
pub const ENCRYPTION_IV: &str = "policy.open-cluster-management.io/encryption-iv";
/// On the Deployment: let go of every policy, prune nothing. On a policy: look again.
pub const UNINSTALLING: &str = "policy.open-cluster-management.io/uninstalling";
/// Secret with the encryption keys, beside the policies.
pub const ENCRYPTION_SECRET: &str = "policy-encryption-key";
/// Namespace that is served beside the one named by WATCH_NAMESPACE.
pub const OCM_NAMESPACE: &str = "open-cluster-management-policies";

/// Label of ledgers.
pub const LEDGER_LABEL: &str = "custody.dev/policy-ledger";
/// Keeps a ledger as long as its policy needs it, also in a terminating namespace.
pub const LEDGER_FINALIZER: &str = "custody.dev/policy-ledger";
/// Key of a ledger's data.
pub const LEDGER_DATA: &str = "ledger.json";
/// Field manager of updates.
pub const MANAGER: &str = "policy-pruner";
/// Field manager of creates, with the ledger's id behind it: the mark of what this controller made.
pub const CREATE_MANAGER: &str = "policy-pruner-create-";

/// The ledger of a policy: named by hash, since a policy's name may be as long as any name can be.
pub fn ledger_name(policy: &str) -> String {
    let digest = Sha256::digest(policy.as_bytes());
    format!("policy-ledger-{}", hex::encode(digest.get(..10).unwrap_or_default()))
}

/// Reasons of `relatedObjects` and conditions.
pub mod reason {
    /// Is as it should be.
    pub const FOUND: &str = "Resource found as expected";
    /// Was created.
    pub const CREATED: &str = "K8s creation success";
    /// Was updated.
    pub const UPDATED: &str = "K8s update success";
    /// Was deleted.
    pub const DELETED: &str = "K8s deletion success";
    /// Is missing.
    pub const MISSING: &str = "Resource not found but should exist";
    /// Is different.
    pub const NO_MATCH: &str = "Resource found but does not match";
    /// Is there.
    pub const UNWANTED: &str = "Resource found but should not exist";
    /// Is not there, as it should be.
    pub const ABSENT: &str = "Resource not found as expected";
    /// A template, or what it came to, makes no sense.
    pub const TEMPLATE: &str = "Error processing template";
    /// Children are still there.
    pub const CLEANUP: &str = "Error cleaning up child objects";
    /// The API server refused a change.
    pub const UPDATE_ERROR: &str = "K8s update template error";
    /// The API server refused a create.
    pub const CREATE_ERROR: &str = "K8s creation error";
    /// The API server refused a delete.
    pub const DELETE_ERROR: &str = "K8s deletion error";
    /// An object definition that is none.
    pub const DECODE: &str = "K8s decode object definition error";
    /// No such kind.
    pub const MAPPING: &str = "K8s error";
    /// A namespaced object without a namespace.
    pub const NO_NAMESPACE: &str = "K8s missing namespace";
    /// Bad namespaceSelector.
    pub const NAMESPACE_SELECTOR: &str = "namespaceSelector error";
    /// Bad objectSelector.
    pub const OBJECT_SELECTOR: &str = "objectSelector error";
    /// A kind that cannot be watched.
    pub const UNWATCHABLE: &str = "unwatchable resource";
    /// A read failed.
    pub const API_ERROR: &str = "api error";
    /// Bad encryption key or vector.
    pub const ENCRYPTION: &str = "Template encryption configuration error";
    /// Nothing to check.
    pub const NO_TEMPLATES: &str = "No object templates";
    /// The spec does not fit.
    pub const INVALID: &str = "Invalid spec";
    /// Hub templates cannot be resolved here.
    pub const HUB_TEMPLATE: &str = "Hub template resolution failure";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_has_a_short_name_of_its_own() {
        let long = "p".repeat(253);
        assert!(ledger_name(&long).len() < 63);
        assert_ne!(ledger_name("a"), ledger_name("b"));
    }
}
