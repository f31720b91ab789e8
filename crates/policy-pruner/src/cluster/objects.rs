//! Reading and writing objects of any kind.
use super::kinds::Mapping;
use super::wire::{Call, SharedWire, Trouble, Verb, Wanted};
use crate::text::selector::Selector;
use serde_json::{Value, json};

/// Objects per page.
const PAGE: &str = "250";
/// Pages of one list: a bound, not a wish.
const MOST_PAGES: usize = 4000;

/// What a delete came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted {
    /// It is no longer there.
    Gone,
    /// It is on its way out: this is what is left.
    Ending(Value),
}

/// Objects of the cluster.
#[derive(Clone)]
pub struct Objects(pub SharedWire);
impl Objects {
    /// One object, from the API server itself. `None` if there is none, or no such kind any more.
    pub async fn get(&self, mapping: &Mapping, namespace: &str, name: &str) -> Result<Option<Value>, Trouble> {
        match self.0.call(Call::new(Verb::Get, mapping.path_of(namespace, name))).await {
            Ok(object) => Ok(Some(object)),
            Err(trouble) if trouble.is_missing() => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }
    /// All that match.
    pub async fn list(&self, mapping: &Mapping, namespace: &str, selector: &Selector) -> Result<Vec<Value>, Trouble> {
        let mut all = Vec::new();
        let mut more = String::new();
        for _ in 0..MOST_PAGES {
            let mut call = Call::new(Verb::Get, mapping.path(namespace)).with("limit", PAGE);
            let labels = selector.query();
            if !labels.is_empty() {
                call = call.with("labelSelector", labels);
            }
            if !more.is_empty() {
                call = call.with("continue", more.clone());
            }
            let mut reply = self.0.call(call).await?;
            let items = reply["items"].take();
            if let Value::Array(items) = items {
                all.extend(items.into_iter().map(|item| dressed(item, mapping)));
            }
            reply["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut more);
            if more.is_empty() {
                return Ok(all);
            }
        }
        Err(Trouble::silent("the list does not end"))
    }
    /// Creates; the server refuses unknown fields.
    pub async fn create(
        &self,
        mapping: &Mapping,
        namespace: &str,
        object: &Value,
        manager: &str,
    ) -> Result<Value, Trouble> {
        let call = Call::new(Verb::Post, mapping.path(namespace))
            .with("fieldValidation", "Strict")
            .with("fieldManager", manager)
            .sending(object.clone());
        // Whole: whether the mark was kept shows in the managers of its fields.
        self.0.call(call.hearing(Wanted::Whole)).await
    }
    /// Replaces, or asks what replacing would come to.
    pub async fn update(
        &self,
        mapping: &Mapping,
        (namespace, name): (&str, &str),
        object: &Value,
        dry_run: bool,
    ) -> Result<Value, Trouble> {
        let mut call = Call::new(Verb::Put, mapping.path_of(namespace, name))
            .with("fieldValidation", "Strict")
            .with("fieldManager", crate::names::MANAGER);
        if dry_run {
            call = call.with("dryRun", "All");
        }
        self.0.call(call.sending(object.clone())).await
    }
    /// Changes by a JSON patch.
    pub async fn patch(&self, path: String, operations: Value) -> Result<Value, Trouble> {
        let call = Call::new(Verb::Patch, path).with("fieldManager", crate::names::MANAGER).sending(operations);
        self.0.call(call).await
    }
    /// Deletes; with a uid only that very object.
    pub async fn delete(&self, mapping: &Mapping, place: (&str, &str), uid: Option<&str>) -> Result<Deleted, Trouble> {
        let preconditions = uid.map(|uid| json!({ "uid": uid }));
        match self.delete_if(mapping, place, preconditions).await {
            Err(trouble) if trouble.is_missing() => Ok(Deleted::Gone),
            other => other,
        }
    }
    /// Deletes only that very object, and only if it is still this very version of it. One that is not found is an error: whoever
    /// has not read it does not know that it was there.
    pub async fn delete_version(
        &self,
        mapping: &Mapping,
        place: (&str, &str),
        uid: &str,
        version: &str,
    ) -> Result<Deleted, Trouble> {
        self.delete_if(mapping, place, Some(json!({"uid": uid, "resourceVersion": version}))).await
    }
    async fn delete_if(
        &self,
        mapping: &Mapping,
        (namespace, name): (&str, &str),
        preconditions: Option<Value>,
    ) -> Result<Deleted, Trouble> {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let Some(preconditions) = preconditions {
            options["preconditions"] = preconditions;
        }
        let call = Call::new(Verb::Delete, mapping.path_of(namespace, name)).sending(options);
        match self.0.call(call).await {
            Ok(reply) if reply["kind"] == "Status" && reply["apiVersion"] == "v1" => Ok(Deleted::Gone),
            Ok(left) => Ok(Deleted::Ending(left)),
            Err(trouble) => Err(trouble),
        }
    }
}

/// Items of a list do not say what they are.
fn dressed(mut item: Value, mapping: &Mapping) -> Value {
    if let Value::Object(map) = &mut item {
        map.entry("apiVersion").or_insert_with(|| mapping.api_version().into());
        map.entry("kind").or_insert_with(|| mapping.kind.clone().into());
    }
    item
}
