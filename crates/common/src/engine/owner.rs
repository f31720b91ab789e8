//! The owner as the engine sees it, and the three calls it makes to the API server.
use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use std::collections::BTreeMap;

/// One version of an owner: its metadata and conditions. The spec has become an [`super::estate::Estate`] already.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnerView {
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Guards every write.
    pub resource_version: String,
    /// Changes with the spec, and when deletion starts.
    pub generation: i64,
    /// Being deleted.
    pub deleting: bool,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// `.status.conditions`.
    pub conditions: Vec<Condition>,
}

/// A guarded change of metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerPatch {
    /// Annotations to set, or (`None`) to take off.
    pub annotations: BTreeMap<String, Option<String>>,
    /// The whole list of finalizers, if it changes.
    pub finalizers: Option<Vec<String>>,
}

/// What came of a write to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Patched {
    /// Stored; this is the owner now.
    Stored(Box<OwnerView>),
    /// The resourceVersion was not the newest: nothing happened.
    Conflict,
    /// There is no such object any more.
    Gone,
    /// The API server said no (forbidden, invalid): nothing happened.
    Refused(String),
    /// Nobody can say whether it was stored.
    Unknown(String),
}

/// The API server cannot answer a read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("API server: {0}")]
pub struct ApiUnavailable(pub String);

/// The API server, for the owners of one kind. Every write is guarded by the view's resourceVersion and uid.
#[async_trait]
pub trait OwnerApi: Send + Sync {
    /// The newest version, not from a cache.
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<OwnerView>, ApiUnavailable>;
    /// Changes metadata.
    async fn patch(&self, view: &OwnerView, patch: &OwnerPatch) -> Patched;
    /// Changes status: the whole list of conditions, and other fields by merge.
    async fn patch_status(&self, view: &OwnerView, conditions: &[Condition], fields: &Value) -> Patched;
}
