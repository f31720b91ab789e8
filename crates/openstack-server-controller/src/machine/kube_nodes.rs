//! Cluster API's objects over a kube client, in whichever of its versions is served.
use super::nodes::{CONTROL_PLANE, Node, Nodes};
use crate::api::{GROUP, OpenStackCluster, OpenStackMachine};
use crate::inputs::Missing;
use crate::watching::served;
use async_trait::async_trait;
use common::engine::owner::OwnerView;
use common::names::CLUSTER_NAME;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// Cluster API's group.
pub const CAPI: &str = "cluster.x-k8s.io";
/// Its versions, the newest first; the fields that are read here are the same in all.
pub const CAPI_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// Reads with one client.
pub struct KubeNodes {
    client: Client,
    version: Mutex<Option<String>>,
}
impl KubeNodes {
    /// Nothing is read yet.
    pub fn new(client: Client) -> Self {
        KubeNodes { client, version: Mutex::new(None) }
    }
    async fn resource(&self, kind: &str, plural: &str) -> Result<ApiResource, Missing> {
        let mut held = self.version.lock().await;
        if held.is_none() {
            let found = served(&self.client, CAPI, &CAPI_VERSIONS).await;
            *held = found.map_err(|why| Missing::Unavailable(format!("{CAPI}: {why}")))?;
        }
        let version = held.as_ref().ok_or_else(|| Missing::Pending("Cluster API is not installed".into()))?;
        let (group, kind, plural) = (CAPI.to_owned(), kind.to_owned(), plural.to_owned());
        let api_version = format!("{CAPI}/{version}");
        Ok(ApiResource { group, version: version.clone(), api_version, kind, plural })
    }
    async fn read(&self, kind: &str, plural: &str, namespace: &str, name: &str) -> Result<Option<Value>, Missing> {
        let resource = self.resource(kind, plural).await?;
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let found = api.get_opt(name).await.map_err(|e| sorted(kind, e))?;
        Ok(found.map(|it| json!({"metadata": it.metadata, "spec": it.data["spec"]})))
    }
    async fn cluster(&self, namespace: &str, name: &str) -> Result<Option<OpenStackCluster>, Missing> {
        let Some(cluster) = self.read("Cluster", "clusters", namespace, name).await? else { return Ok(None) };
        let reference = &cluster["spec"]["infrastructureRef"];
        let group = reference["apiGroup"].as_str().or_else(|| reference["apiVersion"].as_str()?.split('/').next());
        if reference["kind"] != "OpenStackCluster" || group != Some(GROUP) {
            return Ok(None);
        }
        let Some(infrastructure) = reference["name"].as_str() else { return Ok(None) };
        let api: Api<OpenStackCluster> = Api::namespaced(self.client.clone(), namespace);
        api.get_opt(infrastructure).await.map_err(|e| sorted("OpenStackCluster", e))
    }
}
fn sorted(kind: &str, error: kube::Error) -> Missing {
    match error {
        kube::Error::Api(status) if status.code == 403 => Missing::Unusable(format!("{kind}: {}", status.message)),
        other => Missing::Unavailable(format!("{kind}: {other}")),
    }
}

#[async_trait]
impl Nodes for KubeNodes {
    async fn node(&self, view: &OwnerView, owners: &[OwnerReference]) -> Result<Option<Node>, Missing> {
        let is_machine = |it: &&OwnerReference| it.kind == "Machine" && it.api_version.starts_with("cluster.x-k8s.io/");
        let Some(owner) = owners.iter().find(is_machine) else { return Ok(None) };
        let Some(machine) = self.read("Machine", "machines", &view.namespace, &owner.name).await? else {
            return Ok(None);
        };
        let text = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(str::to_owned);
        let cluster = text(&machine["spec"]["clusterName"]).or_else(|| view.labels.get(CLUSTER_NAME).cloned());
        let cluster = match cluster {
            Some(name) => self.cluster(&view.namespace, &name).await?,
            None => None,
        };
        Ok(Some(Node {
            bootstrap: text(&machine["spec"]["bootstrap"]["dataSecretName"]),
            failure_domain: text(&machine["spec"]["failureDomain"]),
            control_plane: !machine["metadata"]["labels"][CONTROL_PLANE].is_null()
                || view.labels.contains_key(CONTROL_PLANE),
            cluster,
        }))
    }
    async fn set_provider_id(&self, view: &OwnerView, id: &str) -> Result<(), Missing> {
        let api: Api<OpenStackMachine> = Api::namespaced(self.client.clone(), &view.namespace);
        let guard = json!({"uid": view.uid, "resourceVersion": view.resource_version});
        let patch = json!({"metadata": guard, "spec": {"providerID": id}});
        let stored = api.patch(&view.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        stored.map(drop).map_err(|e| sorted("OpenStackMachine", e))
    }
}
