//! The mark: what a child carries from the very moment of its creation, so that ledger and child vouch for each other. Pure.
//!
//! It is the field manager of the create. An object without any field of its own (a bare ServiceAccount) has none: the API server lists
//! managers of fields only. Such an object gets the mark as its `generateName`, which is kept and has no effect beside a name.
use crate::names::CREATE_MANAGER;
use serde_json::Value;
use std::borrow::Cow;

/// The object to create: with a mark of its own if its field manager would not be kept.
pub fn marked<'a>(desired: &'a Value, manager: &str) -> Cow<'a, Value> {
    let taken = desired["metadata"]["generateName"].is_string();
    if taken || !manager.starts_with(CREATE_MANAGER) || !is_bare(desired) {
        return Cow::Borrowed(desired);
    }
    let mut object = desired.clone();
    object["metadata"]["generateName"] = prefix(manager).into();
    Cow::Owned(object)
}
/// Is the mark among the field managers? A watch shows none: where this is false, only an uncached read can tell.
pub fn is_manager(live: &Value, manager: &str) -> bool {
    let fields = live["metadata"]["managedFields"].as_array();
    fields.into_iter().flatten().any(|entry| entry["manager"] == *manager)
}
/// Is the mark where a bare object has it? It is copied with the object's text, so it counts only until the uid is known.
pub fn is_generated(live: &Value, manager: &str) -> bool {
    live["metadata"]["generateName"] == *prefix(manager)
}
fn prefix(manager: &str) -> String {
    format!("{manager}-")
}
/// Nothing in it is a field that somebody could manage.
fn is_bare(object: &Value) -> bool {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    let own = |(key, value): (&String, &Value)| match key.as_str() {
        "apiVersion" | "kind" => true,
        "metadata" => value.as_object().is_none_or(|map| {
            map.iter().all(|(key, value)| matches!(key.as_str(), "name" | "namespace") || empty(value))
        }),
        _ => empty(value),
    };
    object.as_object().is_some_and(|map| map.iter().all(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const OURS: &str = "policy-pruner-create-0123456789abcdef0123456789abcdef";

    #[test]
    fn what_has_no_fields_is_marked_by_its_name_to_be() {
        for bare in [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x", "namespace": "n"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {}}, "data": {}}),
        ] {
            let made = marked(&bare, OURS);
            assert!(is_generated(&made, OURS) && made["metadata"]["name"] == "x", "{made}");
            assert!(made["metadata"]["generateName"].as_str().unwrap().len() <= 63, "fits every kind of name");
            assert_eq!(*marked(&bare, "policy-pruner"), bare, "no ledger, no mark");
        }
    }
    #[test]
    fn what_has_fields_stays_as_it_is() {
        for full in [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"a": "b"}}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "generateName": "own-"}}),
        ] {
            assert_eq!(*marked(&full, OURS), full);
        }
        let live = json!({"metadata": {"managedFields": [{"manager": "kubectl"}, {"manager": OURS}]}});
        assert!(is_manager(&live, OURS) && !is_manager(&live, "policy-pruner-create-other"));
        assert!(!is_generated(&json!({"metadata": {"generateName": "web-"}}), OURS));
    }
}
