//! The API server for the owners of one kind. Decides nothing: it sends one request and sorts the reply.
//!
//! Every write carries the view's resourceVersion and uid in the body, so that a changed or recreated object answers 409.
//! Nothing is repeated here and the client must not repeat either (`process::client` switches kube's own retries off):
//! a second try after a lost reply meets its own first write as a 409, and only the ledger's writer number can tell.
use crate::engine::owner::{ApiUnavailable, OwnerApi, OwnerPatch, OwnerView, Patched};
use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::Status;
use kube::{Api, Client, Resource};
use serde_json::{Map, Value, json};
use std::future::Future;
use std::time::Duration;

/// Longest wait for one reply, unless told otherwise.
pub const CALL: Duration = Duration::from_secs(10);

/// [`OwnerApi`] over a kube client.
#[derive(Clone)]
pub struct KubeOwnerApi {
    client: Client,
    resource: ApiResource,
    manager: String,
    call: Duration,
}
impl KubeOwnerApi {
    /// For a kind known at compile time. `manager` names us in managedFields.
    pub fn new<K: Resource<DynamicType = ()>>(client: Client, manager: &str) -> Self {
        Self::dynamic(client, ApiResource::erase::<K>(&()), manager)
    }
    /// For a kind known by name only.
    pub fn dynamic(client: Client, resource: ApiResource, manager: &str) -> Self {
        KubeOwnerApi { client, resource, manager: manager.into(), call: CALL }
    }
    /// Another bound on each call.
    #[must_use]
    pub fn with_call_timeout(mut self, call: Duration) -> Self {
        self.call = call;
        self
    }
    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &self.resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &self.resource)
        }
    }
    fn params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() }
    }
    async fn bounded<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
        match tokio::time::timeout(self.call, call).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(Failed::of(error)),
            Err(_) => Err(Failed::Silent(format!("no reply within {:?}", self.call))),
        }
    }
}

#[async_trait]
impl OwnerApi for KubeOwnerApi {
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
        let api = self.api(namespace);
        match self.bounded(api.get(name)).await {
            Ok(object) => Ok(Some(view(&object))),
            Err(Failed::Answered(status)) if is_gone(&status, name) => Ok(None),
            Err(failed) => Err(ApiUnavailable(failed.text())),
        }
    }
    async fn patch(&self, view: &OwnerView, patch: &OwnerPatch) -> Patched {
        let body = metadata_patch(view, patch);
        let (api, params) = (self.api(&view.namespace), self.params());
        let sent = self.bounded(api.patch(&view.name, &params, &Patch::Merge(&body))).await;
        sorted(sent, &view.name)
    }
    async fn patch_status(&self, view: &OwnerView, conditions: &[Condition], fields: &Value) -> Patched {
        let body = status_patch(view, conditions, fields);
        let (api, params) = (self.api(&view.namespace), self.params());
        let sent = self.bounded(api.patch_status(&view.name, &params, &Patch::Merge(&body))).await;
        sorted(sent, &view.name)
    }
}

/// A call that did not end well.
enum Failed {
    /// The API server said so.
    Answered(Box<Status>),
    /// Nobody said anything we can trust.
    Silent(String),
}
impl Failed {
    fn of(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Failed::Answered(status),
            other => Failed::Silent(other.to_string()),
        }
    }
    fn text(self) -> String {
        match self {
            Failed::Answered(status) => format!("{} {}: {}", status.code, status.reason, status.message),
            Failed::Silent(text) => text,
        }
    }
}

/// A 404 that names the object. One that does not (the kind is not served, a proxy speaks) says nothing about the object.
fn is_gone(status: &Status, name: &str) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|d| d.name == name)
}

/// Same name and version, other uid: not the object that was meant.
fn is_another(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|d| &d.causes);
    status.code == 422 && causes.into_iter().any(|cause| cause.field == "metadata.uid")
}

fn sorted(sent: Result<DynamicObject, Failed>, name: &str) -> Patched {
    match sent {
        Ok(object) => Patched::Stored(Box::new(view(&object))),
        Err(Failed::Answered(status)) if is_gone(&status, name) => Patched::Gone,
        Err(failed) => match &failed {
            Failed::Answered(status) if status.code == 409 || is_another(status) => Patched::Conflict,
            // 401 passes: tokens rotate. 404 of an unknown path passes: the CRD is being served anew.
            Failed::Answered(status) if matches!(status.code, 400 | 403 | 405 | 413 | 415 | 422) => {
                Patched::Refused(failed.text())
            }
            _ => Patched::Unknown(failed.text()),
        },
    }
}

fn guard(view: &OwnerView) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), json!(view.resource_version));
    metadata.insert("uid".into(), json!(view.uid));
    metadata
}
fn metadata_patch(view: &OwnerView, patch: &OwnerPatch) -> Value {
    let mut metadata = guard(view);
    if !patch.annotations.is_empty() {
        metadata.insert("annotations".into(), json!(patch.annotations));
    }
    if let Some(finalizers) = &patch.finalizers {
        metadata.insert("finalizers".into(), json!(finalizers));
    }
    json!({ "metadata": metadata })
}
fn status_patch(view: &OwnerView, conditions: &[Condition], fields: &Value) -> Value {
    let mut status = fields.as_object().cloned().unwrap_or_default();
    status.insert("conditions".into(), json!(conditions));
    json!({ "metadata": guard(view), "status": status })
}

/// The engine's view of a dynamic object.
pub fn view(object: &DynamicObject) -> OwnerView {
    view_of(&object.metadata, object.data.get("status"))
}

/// The engine's view of an object's metadata and status. A condition that is none is left out; it stays in the stored
/// object only until the list is next written.
pub fn view_of(metadata: &ObjectMeta, status: Option<&Value>) -> OwnerView {
    let conditions = status.and_then(|s| s.get("conditions")).and_then(Value::as_array);
    OwnerView {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        labels: metadata.labels.clone().unwrap_or_default(),
        annotations: metadata.annotations.clone().unwrap_or_default(),
        finalizers: metadata.finalizers.clone().unwrap_or_default(),
        conditions: conditions.into_iter().flatten().filter_map(|c| serde_json::from_value(c.clone()).ok()).collect(),
    }
}

#[cfg(test)]
#[path = "owner_api_tests.rs"]
mod tests;
