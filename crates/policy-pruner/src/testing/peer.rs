//! The peer's algorithm, as little of it as ownership needs: created and uid live in status only, status is written after
//! the creates, and a delete has no precondition.
use super::server::SimServer;
use crate::cluster::kinds::Mapping;
use crate::cluster::objects::{Deleted, Objects};
use crate::cluster::wire::Trouble;
use crate::names::FINALIZER;
use crate::report;
use common::runtime::object::Key;
use serde_json::{Value, json};
use std::sync::Arc;

/// One pass. True if there is nothing left to do.
pub async fn pass(server: &SimServer, key: &Key) -> Result<bool, Trouble> {
    let objects = Objects(Arc::new(server.clone()));
    let things = Mapping::known("test", "v1", "Thing", "things", true);
    let policies = report::mapping();
    let Some(policy) = objects.get(&policies, &key.namespace, &key.name).await? else { return Ok(true) };
    let path = policies.path_of(&key.namespace, &key.name);
    let finalizers = policy["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let known = policy["status"]["relatedObjects"].as_array().cloned().unwrap_or_default();
    if policy["metadata"]["deletionTimestamp"].is_string() {
        for entry in &known {
            let name = entry["object"]["metadata"]["name"].as_str().unwrap_or_default();
            let Some(live) = objects.get(&things, &key.namespace, name).await? else { continue };
            let ours =
                entry["properties"]["createdByPolicy"] == true && entry["properties"]["uid"] == live["metadata"]["uid"];
            if ours && let Deleted::Ending(_) = objects.delete(&things, (&key.namespace, name), None).await? {
                return Ok(false);
            }
        }
        let at = finalizers.iter().position(|f| f == FINALIZER);
        if let Some(at) = at {
            let remove = json!([{"op": "remove", "path": format!("/metadata/finalizers/{at}")}]);
            objects.patch(path, remove).await?;
        }
        return Ok(true);
    }
    if !finalizers.iter().any(|f| f == FINALIZER) {
        objects
            .patch(path.clone(), json!([{"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]}]))
            .await?;
    }
    let mut related = Vec::new();
    for template in policy["spec"]["object-templates"].as_array().into_iter().flatten() {
        let definition = &template["objectDefinition"];
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let live = objects.get(&things, &key.namespace, name).await?;
        let before = known.iter().find(|entry| entry["object"]["metadata"]["name"] == *name);
        let properties = match (live, before) {
            (None, _) => {
                let made = objects.create(&things, &key.namespace, definition, "peer").await?;
                json!({"createdByPolicy": true, "uid": made["metadata"]["uid"]})
            }
            (Some(_), Some(before)) => before["properties"].clone(),
            (Some(live), None) => json!({"createdByPolicy": false, "uid": live["metadata"]["uid"]}),
        };
        related.push(json!({"object": {"metadata": {"name": name}}, "properties": properties}));
    }
    for entry in &known {
        let name = entry["object"]["metadata"]["name"].as_str().unwrap_or_default();
        if related.iter().any(|r| r["object"]["metadata"]["name"] == *name) {
            continue;
        }
        let live = objects.get(&things, &key.namespace, name).await?;
        let ours = entry["properties"]["createdByPolicy"] == true
            && live.is_some_and(|live| entry["properties"]["uid"] == live["metadata"]["uid"]);
        if ours {
            objects.delete(&things, (&key.namespace, name), None).await?;
        }
    }
    if Value::Array(related.clone()) != policy["status"]["relatedObjects"] {
        let status = json!([{"op": "add", "path": "/status", "value": {"relatedObjects": related}}]);
        objects.patch(format!("{path}/status"), status).await?;
    }
    Ok(true)
}
