//! Manifests: rendered by kustomize, applied by server-side apply with the administrator's rights.
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::patience::{Seen, until, wait_for_object};
use crate::process::output;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, Scope, oneshot};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Field manager of everything the harness applies.
const MANAGER: &str = "custody-e2e";
const PATIENCE: Duration = Duration::from_secs(30);

/// The objects of a YAML text, empty documents left out.
pub fn parse(text: &str) -> Result<Vec<DynamicObject>> {
    // As in YAML 1.2: an object named `n` or `on` has a name, not a truth value.
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options).map_err(Error::other)?;
    let objects = documents.into_iter().filter(|document| !document.is_null());
    objects.map(|document| serde_json::from_value(document).map_err(Error::other)).collect()
}

/// What `kubectl kustomize` makes of a folder.
pub async fn render(cluster: &Cluster, folder: &Path) -> Result<Vec<DynamicObject>> {
    let kubectl = cluster.tools().await?.path("kubectl")?;
    parse(&output(&kubectl, ["kustomize".as_ref(), folder.as_os_str()]).await?)
}

/// Applies objects in an order that works: definitions and namespaces before what needs them.
/// Objects of namespaced kinds without a namespace go to `namespace`.
pub async fn apply(cluster: &Cluster, namespace: &str, mut objects: Vec<DynamicObject>) -> Result<()> {
    objects.sort_by_key(|object| rank(&kind(object)));
    let client = cluster.client().await?;
    for object in &objects {
        apply_one(client.clone(), namespace, object).await?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    for object in objects.iter().filter(|object| kind(object) == "CustomResourceDefinition") {
        wait_until_established(&definitions, &name(object)?).await?;
    }
    Ok(())
}

/// Applies a YAML text. See [`apply`].
pub async fn apply_text(cluster: &Cluster, namespace: &str, text: &str) -> Result<()> {
    apply(cluster, namespace, parse(text)?).await
}

/// Applies a kustomize folder and hands back what was in it. A path that is not absolute begins at the top of the repository.
pub async fn apply_folder(cluster: &Cluster, folder: impl AsRef<Path>) -> Result<Vec<DynamicObject>> {
    let objects = render(cluster, &crate::binaries::root().join(folder)).await?;
    apply(cluster, "default", objects.clone()).await?;
    Ok(objects)
}

/// Waits until a definition is served.
pub async fn wait_until_established(definitions: &Api<CustomResourceDefinition>, name: &str) -> Result<()> {
    let established = |definition: &CustomResourceDefinition| {
        let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|list| list.iter().any(|entry| entry.type_ == "Established" && entry.status == "True"))
    };
    wait_for_object(definitions, name, &format!("{name} to be established"), PATIENCE, established).await.map(drop)
}

async fn apply_one(client: kube::Client, namespace: &str, object: &DynamicObject) -> Result<()> {
    let types = object.types.as_ref().ok_or_else(|| Error::other("a manifest without apiVersion and kind"))?;
    let gvk = GroupVersionKind::try_from(types).map_err(Error::other)?;
    // A kind whose definition was applied a moment ago takes a while to be served.
    let (resource, capabilities): (_, ApiCapabilities) = until(&format!("kind {}", gvk.kind), PATIENCE, || async {
        Ok(oneshot::pinned_kind(&client, &gvk).await.map_or_else(|error| Seen::NotYet(error.to_string()), Seen::Yes))
    })
    .await?;
    let api: Api<DynamicObject> = match (capabilities.scope, object.metadata.namespace.as_deref()) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, own) => Api::namespaced_with(client.clone(), own.unwrap_or(namespace), &resource),
    };
    api.patch(&name(object)?, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object)).await?;
    Ok(())
}

fn kind(object: &DynamicObject) -> String {
    object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default()
}

fn name(object: &DynamicObject) -> Result<String> {
    object.metadata.name.clone().ok_or_else(|| Error::other(format!("a {} without a name", kind(object))))
}

fn rank(kind: &str) -> u8 {
    match kind {
        "Namespace" | "CustomResourceDefinition" => 0,
        "ServiceAccount" | "ClusterRole" | "Role" | "ConfigMap" | "Secret" => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_and_namespaces_come_before_what_needs_them() {
        let text = "{apiVersion: v1, kind: Pod, metadata: {name: p}}\n---\n---\n\
            {apiVersion: v1, kind: Secret, metadata: {name: s}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: n}}\n";
        let mut objects = parse(text).expect("valid YAML");
        objects.sort_by_key(|object| rank(&kind(object)));
        let kinds: Vec<_> = objects.iter().map(kind).collect();
        assert_eq!(kinds, ["Namespace", "Secret", "Pod"]);
    }
}
