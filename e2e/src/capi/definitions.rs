//! What `clusterctl init` would leave on a cluster, less the pods: definitions, webhooks, the inventory of providers.
use crate::binaries::Tools;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::manifests;
use k8s_openapi::ByteString;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::net::SocketAddr;

const NAMESPACE: &str = "capi-system";

/// What a provider is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Cluster API itself.
    Core,
    /// One that makes machines and networks.
    Infrastructure,
}

/// One line of clusterctl's inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider<'a> {
    /// Such as `cluster-api` or `sample`.
    pub name: &'a str,
    /// What it is for.
    pub role: Role,
    /// Such as `v1.2.3`.
    pub version: &'a str,
    /// Where it is installed.
    pub namespace: &'a str,
}

/// Installs the definitions of Cluster API and of clusterctl, and enters the core provider in the inventory.
/// Enough for `clusterctl move`; see [`super::start_manager`] for the rest.
pub async fn install(cluster: &Cluster) -> Result<()> {
    let tools = cluster.tools().await?;
    manifests::apply(cluster, NAMESPACE, definitions(&tools, None)?).await?;
    let version = tools.cluster_api("version");
    let version = std::fs::read_to_string(&version).map_err(Error::io("cannot read", &version))?;
    let core = Provider { name: "cluster-api", role: Role::Core, version: version.trim(), namespace: NAMESPACE };
    register(cluster, &core).await
}

/// Enters a provider in the inventory. `clusterctl move` wants every provider of the source on the target, too.
pub async fn register(cluster: &Cluster, provider: &Provider<'_>) -> Result<()> {
    let (label, kind) = match provider.role {
        Role::Core => (provider.name.to_owned(), "CoreProvider"),
        Role::Infrastructure => (format!("infrastructure-{}", provider.name), "InfrastructureProvider"),
    };
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": provider.namespace}}),
        json!({
            "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Provider",
            "metadata": {"name": label, "namespace": provider.namespace, "labels": {
                "clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": label,
                "clusterctl.cluster.x-k8s.io/core": "inventory",
            }},
            "providerName": provider.name, "type": kind, "version": provider.version,
        }),
    ];
    let objects: Result<Vec<_>> = objects.into_iter().map(object).collect();
    manifests::apply(cluster, provider.namespace, objects?).await
}

/// Where the manager's webhooks are, and whose certificate they show.
#[derive(Clone, Debug)]
pub(super) struct Webhooks {
    pub(super) address: SocketAddr,
    pub(super) authority: Vec<u8>,
}

impl Webhooks {
    fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": ByteString(self.authority.clone())})
    }
}

/// The definitions, with conversion by webhook once somebody serves it.
pub(super) fn definitions(tools: &Tools, webhooks: Option<&Webhooks>) -> Result<Vec<DynamicObject>> {
    let folder = tools.cluster_api("crds");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(Error::io("cannot read", &folder))? {
        files.push(entry.map_err(Error::io("cannot read", &folder))?.path());
    }
    files.sort();
    let mut definitions = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(Error::io("cannot read", &file))?;
        definitions.extend(manifests::parse(&text)?);
    }
    for definition in &mut definitions {
        let labels = definition.metadata.labels.get_or_insert_default();
        labels.insert("cluster.x-k8s.io/provider".to_owned(), "cluster-api".to_owned());
        labels.insert("clusterctl.cluster.x-k8s.io".to_owned(), String::new());
        let is_clusterctls = definition.data["spec"]["group"] == "clusterctl.cluster.x-k8s.io";
        definition.data["spec"]["conversion"] = match webhooks {
            Some(webhooks) if !is_clusterctls => json!({"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": webhooks.client_config("/convert"),
            }}),
            _ => json!({"strategy": "None"}),
        };
    }
    Ok(definitions)
}

/// The webhook configurations, pointed at the manager on loopback.
pub(super) fn webhook_configurations(tools: &Tools, webhooks: &Webhooks) -> Result<Vec<DynamicObject>> {
    let file = tools.cluster_api("webhooks.yaml");
    let text = std::fs::read_to_string(&file).map_err(Error::io("cannot read", &file))?;
    let mut configurations = manifests::parse(&text)?;
    for configuration in &mut configurations {
        configuration.metadata.name = configuration.metadata.name.take().map(|name| format!("capi-{name}"));
        for webhook in configuration.data["webhooks"].as_array_mut().into_iter().flatten() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default().to_owned();
            webhook["clientConfig"] = webhooks.client_config(&path);
        }
    }
    Ok(configurations)
}

fn object(value: Value) -> Result<DynamicObject> {
    serde_json::from_value(value).map_err(Error::other)
}
