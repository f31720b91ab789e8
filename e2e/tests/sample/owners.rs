//! Owners as people write them, and what can be read off them.
use common::ledger::Ledger;
use common::names;
use e2e::{Error, Result};
use kube::api::DynamicObject;
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "sample.custody.dev/v1alpha1";
/// The controller's name in annotations and finalizer.
pub(crate) const CONTROLLER: &str = "sample";

/// One of every kind: a network, a disk, an address, a route, a machine.
pub(crate) fn one_of_each() -> Value {
    json!({
        "networks": [{"name": "net", "cidr": "10.0.0.0/16"}],
        "disks": [{"name": "data", "sizeGb": 10}],
        "addresses": [{"name": "front", "network": "net", "label": "front"}],
        "routes": [{"name": "out", "network": "net", "destination": "0.0.0.0/0", "nextHop": "10.0.0.1"}],
        "machines": [{"name": "web", "network": "net", "disk": "data", "flavor": "small"}],
    })
}

/// A network and a disk: done in one wave.
pub(crate) fn small() -> Value {
    json!({"networks": [{"name": "net", "cidr": "10.0.0.0/16"}], "disks": [{"name": "data", "sizeGb": 10}]})
}

pub(crate) fn owner(name: &str, spec: &Value) -> Result<DynamicObject> {
    let object = json!({"apiVersion": API_VERSION, "kind": "SampleOwner", "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).map_err(Error::other)
}

/// How many things a spec asks for.
pub(crate) fn wishes(object: &DynamicObject) -> usize {
    let lists = ["networks", "disks", "addresses", "routes", "machines"];
    lists.iter().filter_map(|list| object.data["spec"][list].as_array()).map(Vec::len).sum()
}

fn find<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let list = object.data.pointer("/status/conditions")?.as_array()?;
    list.iter().find(|condition| condition["type"] == kind)
}

/// A condition's (status, reason).
pub(crate) fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<(&'a str, &'a str)> {
    let found = find(object, kind)?;
    Some((found["status"].as_str()?, found["reason"].as_str()?))
}

/// A condition's message; empty without one.
pub(crate) fn message<'a>(object: &'a DynamicObject, kind: &str) -> &'a str {
    find(object, kind).and_then(|found| found["message"].as_str()).unwrap_or_default()
}

/// Ready as its spec is now.
pub(crate) fn is_ready(object: &DynamicObject) -> bool {
    let observed = object.data.pointer("/status/observedGeneration").and_then(Value::as_i64);
    condition(object, "Ready").is_some_and(|(status, _)| status == "True")
        && observed == object.metadata.generation
        && condition(object, "Reconciling").is_none()
}

/// Stuck for this reason.
pub(crate) fn is_stalled(object: &DynamicObject, reason: &str) -> bool {
    condition(object, "Stalled") == Some(("True", reason))
}

pub(crate) fn annotation<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    object.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(crate) fn ledger_text(object: &DynamicObject) -> Option<&str> {
    annotation(object, &names::ledger(CONTROLLER))
}

pub(crate) fn ledger(object: &DynamicObject) -> Result<Ledger> {
    let text = ledger_text(object).ok_or_else(|| Error::other(format!("no ledger on {:?}", object.metadata.name)))?;
    Ledger::parse(text).map_err(Error::other)
}

pub(crate) fn owner_id(object: &DynamicObject) -> Option<&str> {
    annotation(object, &names::owner_id(CONTROLLER))
}
