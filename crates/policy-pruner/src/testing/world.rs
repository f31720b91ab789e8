//! Objects as an API server keeps them: uids, versions, finalizers, field managers, preconditions. Pure.
use crate::cluster::wire::{Call, Trouble, Verb};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Everything there is.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// By path.
    pub objects: BTreeMap<String, Value>,
    version: u64,
    uids: u64,
    /// Uids of objects that were deleted, and the path each had.
    pub deleted: Vec<(String, String)>,
}
fn trouble(code: u16, reason: &str, message: String) -> Trouble {
    Trouble { code, reason: reason.into(), message, details: Value::Null }
}
fn missing(path: &str) -> Trouble {
    trouble(404, "NotFound", format!("{path} not found"))
}

impl World {
    fn next(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }
    /// A stranger creates an object, or anybody does by a request.
    pub fn create(&mut self, path: &str, mut object: Value, manager: &str) -> Result<Value, Trouble> {
        if self.objects.contains_key(path) {
            return Err(trouble(409, "AlreadyExists", format!("{path} already exists")));
        }
        self.uids += 1;
        // Managers of fields are listed only where there are fields.
        let bare = object
            .as_object()
            .is_some_and(|map| map.keys().all(|k| matches!(k.as_str(), "apiVersion" | "kind" | "metadata")));
        let metadata = &mut object["metadata"];
        metadata["uid"] = format!("uid-{}", self.uids).into();
        metadata["generation"] = 1.into();
        metadata["managedFields"] = if bare { json!([]) } else { json!([{ "manager": manager }]) };
        object["metadata"]["resourceVersion"] = self.next().into();
        self.objects.insert(path.to_owned(), object.clone());
        Ok(object)
    }
    /// Somebody deletes an object.
    pub fn delete(&mut self, path: &str, uid: Option<&str>) -> Result<Value, Trouble> {
        let Some(object) = self.objects.get_mut(path) else { return Err(missing(path)) };
        let own = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        if uid.is_some_and(|uid| uid != own) {
            return Err(trouble(409, "Conflict", "the UID in the precondition does not match".into()));
        }
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        if !held {
            self.objects.remove(path);
            self.deleted.push((path.to_owned(), own));
            self.next();
            return Ok(json!({"apiVersion": "v1", "kind": "Status", "status": "Success"}));
        }
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = "2026-11-16T08:00:00Z".into();
            self.version += 1;
            object["metadata"]["resourceVersion"] = self.version.to_string().into();
        }
        Ok(object.clone())
    }
    fn stored(&mut self, path: &str, mut object: Value) -> Value {
        object["metadata"]["resourceVersion"] = self.next().into();
        let ending = object["metadata"]["deletionTimestamp"].is_string();
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        if ending && !held {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            self.objects.remove(path);
            self.deleted.push((path.to_owned(), uid));
        } else {
            self.objects.insert(path.to_owned(), object.clone());
        }
        object
    }
    /// Changes the spec of an object; its generation grows.
    pub fn edit(&mut self, path: &str, change: impl FnOnce(&mut Value)) {
        let Some(mut object) = self.objects.get(path).cloned() else { return };
        change(&mut object);
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        object["metadata"]["generation"] = generation.into();
        self.stored(path, object);
    }
    /// Changes an object without a new generation: its status, its metadata.
    pub fn touch(&mut self, path: &str, change: impl FnOnce(&mut Value)) {
        let Some(mut object) = self.objects.get(path).cloned() else { return };
        change(&mut object);
        self.stored(path, object);
    }

    /// Answers a request.
    pub fn answer(&mut self, call: &Call) -> Result<Value, Trouble> {
        let query = |key: &str| call.query.iter().find(|(k, _)| *k == key).map(|(_, v)| v.as_str());
        match call.verb {
            Verb::Get => self.get(&call.path, query("fieldSelector")),
            Verb::Post => {
                let body = call.body.clone().unwrap_or_default();
                let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                self.create(&format!("{}/{name}", call.path), body, query("fieldManager").unwrap_or_default())
            }
            Verb::Put => {
                let Some(before) = self.objects.get(&call.path).cloned() else { return Err(missing(&call.path)) };
                let mut body = call.body.clone().unwrap_or_default();
                let version = body["metadata"]["resourceVersion"].as_str();
                if version.is_some() && version != before["metadata"]["resourceVersion"].as_str() {
                    return Err(trouble(409, "Conflict", "the object has been modified".into()));
                }
                for kept in ["uid", "generation", "managedFields", "deletionTimestamp"] {
                    body["metadata"][kept] = before["metadata"][kept].clone();
                }
                if query("dryRun").is_some() {
                    return Ok(body);
                }
                Ok(self.stored(&call.path, body))
            }
            Verb::Patch => {
                let path = call.path.strip_suffix("/status").unwrap_or(&call.path).to_owned();
                let Some(mut object) = self.objects.get(&path).cloned() else { return Err(missing(&path)) };
                for operation in call.body.as_ref().and_then(Value::as_array).into_iter().flatten() {
                    operate(&mut object, operation).map_err(|why| trouble(422, "Invalid", why))?;
                }
                Ok(self.stored(&path, object))
            }
            Verb::Delete => {
                let wanted = call.body.as_ref().map(|b| b["preconditions"].clone()).unwrap_or_default();
                let version = self.objects.get(&call.path).map(|o| o["metadata"]["resourceVersion"].clone());
                if wanted["resourceVersion"].is_string() && version.is_some_and(|v| v != wanted["resourceVersion"]) {
                    return Err(trouble(409, "Conflict", "the version in the precondition does not match".into()));
                }
                self.delete(&call.path, wanted["uid"].as_str())
            }
        }
    }
    fn get(&self, path: &str, fields: Option<&str>) -> Result<Value, Trouble> {
        let kinds =
            |kind: &str, plural: &str| json!({"name": plural, "kind": kind, "namespaced": true, "verbs": ["watch"]});
        match path {
            "/api/v1" => {
                let spaces =
                    json!({"name": "namespaces", "kind": "Namespace", "namespaced": false, "verbs": ["watch"]});
                return Ok(json!({"resources": [kinds("ConfigMap", "configmaps"), spaces]}));
            }
            "/apis/test/v1" => return Ok(json!({"resources": [kinds("Thing", "things")]})),
            _ => {}
        }
        if let Some(object) = self.objects.get(path) {
            return Ok(object.clone());
        }
        let plural = path.rsplit('/').next().unwrap_or_default();
        if !matches!(
            plural,
            "things" | "configmaps" | "customresourcedefinitions" | "configurationpolicies" | "namespaces"
        ) {
            return Err(missing(path));
        }
        let prefix = format!("{path}/");
        let named = fields.and_then(|f| f.strip_prefix("metadata.name="));
        let inside =
            self.objects.iter().filter(|(p, _)| p.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/')));
        let items: Vec<&Value> =
            inside.map(|(_, o)| o).filter(|o| named.is_none_or(|name| o["metadata"]["name"] == *name)).collect();
        Ok(json!({"metadata": {"resourceVersion": self.version.to_string()}, "items": items}))
    }
}

/// One operation of a JSON patch, as far as this controller uses them.
fn operate(object: &mut Value, operation: &Value) -> Result<(), String> {
    let path = operation["path"].as_str().unwrap_or_default();
    let value = operation["value"].clone();
    match operation["op"].as_str() {
        Some("test") => {
            let there = object.pointer(path).cloned().unwrap_or_default();
            if there == value { Ok(()) } else { Err(format!("test of {path} failed")) }
        }
        Some("add") => {
            if let Some(list) = path.strip_suffix("/-") {
                let Some(Value::Array(items)) = object.pointer_mut(list) else { return Err("no list".into()) };
                items.push(value);
                return Ok(());
            }
            let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
            let Some(parent) = object.pointer_mut(parent) else { return Err("no parent".into()) };
            parent[key] = value;
            Ok(())
        }
        Some("remove") => {
            let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
            match object.pointer_mut(parent) {
                Some(Value::Array(items)) => {
                    let at: usize = key.parse().map_err(|_| "no index")?;
                    if at < items.len() {
                        items.remove(at);
                    }
                    Ok(())
                }
                Some(Value::Object(map)) => {
                    map.remove(key);
                    Ok(())
                }
                _ => Err("nothing to remove".into()),
            }
        }
        other => Err(format!("operation {other:?}")),
    }
}
