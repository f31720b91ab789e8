//! One live object against one template, key by key.
use super::Compliance;
use super::equal::equivalent;
use super::merge::Merge;
use super::metadata;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// What the comparison came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Something other than status differs.
    pub differs: bool,
    /// Nothing differs, but the template has keys that the live object lacks: only a dry run can tell.
    pub doubtful: bool,
    /// The status differs, which no update can mend.
    pub status_differs: bool,
    /// The live object with the template merged in.
    pub merged: Value,
}

enum Key {
    Skipped,
    Compared { differs: bool, doubtful: bool, merged: Value },
}

fn kind_of(object: &Value) -> (&str, &str) {
    (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default())
}

fn key(key: &str, template: &Value, live: &Value, compliance: Compliance, zero_is_nil: bool) -> Result<Key, String> {
    if matches!(key, "apiVersion" | "kind") {
        return Ok(Key::Skipped);
    }
    let mut merge = Merge::new(compliance, zero_is_nil);
    if key == "metadata" {
        let is_namespace = kind_of(template) == ("v1", "Namespace");
        let (merged, there) = metadata::compared(&template[key], &live[key], &mut merge, is_namespace);
        metadata::check(&merged)?;
        let (merged, there) = (Value::Object(merged), Value::Object(there));
        let mut doubtful = false;
        let differs = !equivalent(&merged, &there, zero_is_nil, &mut doubtful);
        return Ok(Key::Compared { differs, doubtful: false, merged });
    }
    let wanted = &template[key];
    let there = live.get(key).unwrap_or(&Value::Null);
    let mismatch =
        || format!("Error merging changes into key {key:?}: object type of template and existing do not match");
    let mut doubtful = there.is_null() && !wanted.is_null();
    let merged = match (wanted, there) {
        (Value::Array(wanted), Value::Array(there)) => Value::Array(merge.lists(wanted, there)),
        (Value::Object(wanted), Value::Object(there)) => Value::Object(merge.maps(wanted, there)),
        (Value::Array(_) | Value::Object(_), Value::Null) => wanted.clone(),
        (Value::Array(_) | Value::Object(_), _) => return Err(mismatch()),
        _ => wanted.clone(),
    };
    doubtful |= merge.missing_key;
    let decoded;
    let against = if key == "stringData" && live["kind"] == "Secret" {
        decoded = decoded_data(live)?;
        &decoded
    } else {
        there
    };
    let differs = !equivalent(&merged, against, zero_is_nil, &mut doubtful);
    Ok(Key::Compared { differs, doubtful, merged })
}

/// What `stringData` would be, were it kept.
fn decoded_data(secret: &Value) -> Result<Value, String> {
    let mut decoded = Map::new();
    for (key, value) in secret["data"].as_object().into_iter().flatten() {
        let text = value.as_str().ok_or("Error accessing encoded data")?;
        let name = || secret["metadata"]["name"].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(text).map_err(|_| format!("Error decoding secret: {}", name()))?;
        decoded.insert(key.clone(), Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    }
    Ok(Value::Object(decoded))
}

/// Does an object fit a template that names none? Zero values count as missing, as no dry run will tell.
pub fn fits(template: &Value, live: &Value, compliance: Compliance) -> bool {
    template.as_object().into_iter().flatten().all(|(name, _)| match key(name, template, live, compliance, true) {
        Ok(Key::Skipped) => true,
        Ok(Key::Compared { differs, .. }) => !differs,
        Err(_) => false,
    })
}

/// Compares a named object. The error is a message for the status.
pub fn compare(
    template: &Value,
    live: &Value,
    compliance: Compliance,
    metadata_compliance: Option<Compliance>,
) -> Result<Outcome, String> {
    let mut outcome = Outcome { merged: live.clone(), ..Outcome::default() };
    let Some(wanted) = template.as_object().filter(|_| live.is_object()) else { return Ok(outcome) };
    for name in wanted.keys() {
        let rule = match metadata_compliance {
            Some(own) if name == "metadata" => own,
            _ => compliance,
        };
        let Key::Compared { differs, doubtful, merged } = key(name, template, live, rule, false)? else { continue };
        if name == "metadata" {
            for part in ["labels", "annotations"] {
                if let Some(value) = merged.get(part) {
                    put_metadata(&mut outcome.merged, live, part, value);
                }
            }
        } else {
            outcome.merged[name.as_str()] = merged;
        }
        if name == "status" {
            outcome.status_differs |= differs;
        } else {
            outcome.differs |= differs;
            outcome.doubtful |= doubtful;
        }
    }
    if compliance == Compliance::MustOnlyHave {
        outcome.differs |= drop_others(&mut outcome.merged, wanted);
    }
    Ok(outcome)
}

/// The annotation that kubectl keeps is not ours to drop.
fn put_metadata(merged: &mut Value, live: &Value, part: &str, value: &Value) {
    const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut value = value.clone();
    if part == "annotations"
        && let (Value::Object(map), Some(kept)) = (&mut value, live["metadata"]["annotations"].get(LAST_APPLIED))
    {
        map.insert(LAST_APPLIED.into(), kept.clone());
    }
    merged["metadata"][part] = value;
}

fn drop_others(merged: &mut Value, wanted: &Map<String, Value>) -> bool {
    let service_account = kind_of(merged) == ("v1", "ServiceAccount");
    let Value::Object(map) = merged else { return false };
    let before = map.len();
    map.retain(|key, _| {
        wanted.contains_key(key)
            || matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status")
            || (service_account && matches!(key.as_str(), "secrets" | "imagePullSecrets"))
    });
    map.len() != before
}

/// Takes out what no comparison of whole objects should see.
pub fn strip(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("managedFields");
    metadata.remove("generation");
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome(template: &Value, live: &Value, compliance: Compliance) -> Outcome {
        compare(template, live, compliance, None).unwrap()
    }

    #[test]
    fn a_subset_is_enough_for_musthave() {
        let live = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1, "y": [1, 2]}});
        let same = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"y": [2]}});
        assert!(!outcome(&same, &live, Compliance::MustHave).differs);
        let other = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"x": 2}});
        let found = outcome(&other, &live, Compliance::MustHave);
        assert!(found.differs && found.merged["spec"] == json!({"x": 2, "y": [1, 2]}));
        assert!(outcome(&same, &live, Compliance::MustOnlyHave).differs);
    }
    #[test]
    fn keys_the_template_lacks_go_with_mustonlyhave_but_not_all() {
        let live = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}, "secrets": [], "extra": 1});
        let template = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}});
        let found = outcome(&template, &live, Compliance::MustOnlyHave);
        assert!(found.differs && found.merged.get("extra").is_none() && found.merged.get("secrets").is_some());
    }
    #[test]
    fn a_status_differs_by_itself() {
        let live = json!({"status": {"phase": "Pending"}, "spec": {"a": 1}});
        let found = outcome(&json!({"status": {"phase": "Running"}}), &live, Compliance::MustHave);
        assert!(found.status_differs && !found.differs);
    }
    #[test]
    fn secrets_are_compared_decoded() {
        let live = json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "eA=="}});
        let found = outcome(&json!({"stringData": {"a": "x"}}), &live, Compliance::MustHave);
        assert!(!found.differs && found.doubtful, "{found:?}");
        assert!(outcome(&json!({"stringData": {"a": "y"}}), &live, Compliance::MustHave).differs);
        let broken = json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "%"}});
        let text = compare(&json!({"stringData": {}}), &broken, Compliance::MustHave, None).unwrap_err();
        assert_eq!(text, "Error decoding secret: s");
    }
    #[test]
    fn containers_of_different_kinds_cannot_be_merged() {
        let text = compare(&json!({"spec": {}}), &json!({"spec": [1]}), Compliance::MustHave, None).unwrap_err();
        assert_eq!(text, "Error merging changes into key \"spec\": object type of template and existing do not match");
    }
    #[test]
    fn metadata_may_have_a_rule_of_its_own() {
        let live = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"x": 1, "y": 2}});
        let template = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"x": 1}});
        let exact = compare(&template, &live, Compliance::MustHave, Some(Compliance::MustOnlyHave)).unwrap();
        assert!(exact.differs && exact.merged["metadata"]["labels"] == json!({"a": "1"}));
        let loose = compare(&template, &live, Compliance::MustOnlyHave, Some(Compliance::MustHave)).unwrap();
        assert_eq!(loose.merged["metadata"]["labels"], json!({"a": "1", "b": "2"}));
    }
    #[test]
    fn a_key_the_server_may_have_dropped_is_doubtful() {
        let live = json!({"spec": {"x": 1}});
        let found = outcome(&json!({"spec": {"x": 1, "flag": false}}), &live, Compliance::MustHave);
        assert!(!found.differs && found.doubtful);
    }
    #[test]
    fn unnamed_templates_take_zero_for_missing() {
        assert!(fits(&json!({"spec": {"flag": false, "m": {}}}), &json!({"spec": {}}), Compliance::MustHave));
        assert!(!fits(&json!({"spec": {"flag": true}}), &json!({"spec": {}}), Compliance::MustHave));
    }
    #[test]
    fn what_is_never_compared_is_stripped() {
        let mut object = json!({"metadata": {"managedFields": [], "generation": 3, "annotations": {"kubectl.kubernetes.io/last-applied-configuration": ""}, "name": "x"}});
        strip(&mut object);
        assert_eq!(object, json!({"metadata": {"name": "x"}}));
    }
}
