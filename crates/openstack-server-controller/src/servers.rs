//! OpenStackServer objects, made and removed for bastions and machines. A trait, so that tests can play the API server.
use crate::api::{OpenStackServer, OpenStackServerSpec};
use crate::inputs::Missing;
use async_trait::async_trait;
use common::conditions::find;
use common::engine::owner::OwnerView;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// OpenStackServer objects.
#[async_trait]
pub trait Servers: Send + Sync {
    /// One, not from a cache.
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<OpenStackServer>, Missing>;
    /// Makes one.
    async fn create(&self, server: &OpenStackServer) -> Result<(), Missing>;
    /// Deletes this very one.
    async fn delete(&self, server: &OpenStackServer) -> Result<(), Missing>;
    /// Changes this very one.
    async fn patch(&self, server: &OpenStackServer, patch: &Value) -> Result<(), Missing>;
}

/// Over a kube client.
pub struct KubeServers(pub Client);

fn sorted(error: kube::Error) -> Missing {
    match error {
        kube::Error::Api(status) if status.code == 422 || status.code == 403 || status.code == 400 => {
            Missing::Unusable(format!("OpenStackServer: {}", status.message))
        }
        other => Missing::Unavailable(format!("OpenStackServer: {other}")),
    }
}

#[async_trait]
impl Servers for KubeServers {
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<OpenStackServer>, Missing> {
        let api: Api<OpenStackServer> = Api::namespaced(self.0.clone(), namespace);
        api.get_opt(name).await.map_err(sorted)
    }
    async fn create(&self, server: &OpenStackServer) -> Result<(), Missing> {
        let api: Api<OpenStackServer> = Api::namespaced(self.0.clone(), &server.namespace().unwrap_or_default());
        match api.create(&PostParams::default(), server).await {
            Ok(_) => Ok(()),
            // Made by an earlier pass whose reply was lost; the next pass looks at it.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(sorted(error)),
        }
    }
    async fn delete(&self, server: &OpenStackServer) -> Result<(), Missing> {
        let api: Api<OpenStackServer> = Api::namespaced(self.0.clone(), &server.namespace().unwrap_or_default());
        let this = Preconditions { uid: server.uid(), resource_version: None };
        let params = DeleteParams { preconditions: Some(this), ..DeleteParams::default() };
        match api.delete(&server.name_any(), &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(sorted(error)),
        }
    }
    async fn patch(&self, server: &OpenStackServer, patch: &Value) -> Result<(), Missing> {
        let api: Api<OpenStackServer> = Api::namespaced(self.0.clone(), &server.namespace().unwrap_or_default());
        let mut patch = patch.clone();
        patch["metadata"]["uid"] = json!(server.uid());
        api.patch(&server.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop).map_err(sorted)
    }
}

/// Who a server is made for.
#[derive(Clone, Copy, Debug)]
pub struct Parent<'a> {
    /// Its metadata.
    pub view: &'a OwnerView,
    /// Its API version and kind.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// The Cluster it belongs to.
    pub cluster: &'a str,
}
/// A server object owned by its parent.
pub fn server(
    parent: Parent<'_>,
    name: &str,
    spec: OpenStackServerSpec,
    annotations: BTreeMap<String, String>,
) -> OpenStackServer {
    let Parent { view, api_version, kind, cluster } = parent;
    let mut server = OpenStackServer::new(name, spec);
    server.metadata.namespace = Some(view.namespace.clone());
    server.metadata.labels = Some(BTreeMap::from([(common::names::CLUSTER_NAME.to_owned(), cluster.to_owned())]));
    server.metadata.annotations = Some(annotations);
    server.metadata.owner_references = Some(vec![OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: view.name.clone(),
        uid: view.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }]);
    server
}
/// Does it belong to this object?
pub fn is_owned(server: &OpenStackServer, uid: &str) -> bool {
    server.owner_references().iter().any(|it| it.uid == uid)
}
/// Was it ready once, and is it still meant to be there?
pub fn was_ready(server: &OpenStackServer) -> bool {
    server.metadata.deletion_timestamp.is_none()
        && said(server, common::conditions::READY).is_some_and(|it| it.0 == "True")
}
/// Status, reason and message of a condition.
pub fn said<'a>(server: &'a OpenStackServer, type_: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let conditions = &server.status.as_ref()?.conditions;
    find(conditions, type_).map(|it| (it.status.as_str(), it.reason.as_str(), it.message.as_str()))
}
