//! Of metadata only labels and annotations are compared, and of those only what the template mentions.
use super::merge::Merge;
use serde_json::{Map, Value};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// OpenShift writes these on every namespace.
const KEPT_PREFIX: &str = "openshift.io/sa.scc.";

/// Labels and annotations of a metadata map.
pub fn slim(metadata: &Value) -> Map<String, Value> {
    let mut slim = Map::new();
    if let Some(labels) = metadata.get("labels") {
        slim.insert("labels".into(), labels.clone());
    }
    if let Some(annotations) = metadata.get("annotations") {
        let mut annotations = annotations.clone();
        if let Value::Object(map) = &mut annotations {
            map.remove(LAST_APPLIED);
        }
        slim.insert("annotations".into(), annotations);
    }
    slim
}

/// Merged and live metadata, both reduced to what is compared.
pub fn compared(
    template: &Value,
    live: &Value,
    merge: &mut Merge,
    is_namespace: bool,
) -> (Map<String, Value>, Map<String, Value>) {
    let wanted = slim(template);
    let mut there = slim(live);
    let mut merged = merge.maps(&wanted, &there);
    // Only what the template mentions counts; the rest stays as it is.
    for part in ["labels", "annotations"] {
        if !wanted.contains_key(part) {
            merged.remove(part);
            there.remove(part);
        }
    }
    if is_namespace
        && let (Some(Value::Object(merged)), Some(Value::Object(there))) =
            (merged.get_mut("annotations"), there.get("annotations"))
    {
        for (key, value) in there.iter().filter(|(key, _)| key.starts_with(KEPT_PREFIX)) {
            merged.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    (merged, there)
}

/// Labels and annotations must be text; what is not is named.
pub fn check(metadata: &Map<String, Value>) -> Result<(), String> {
    for (part, name) in [("annotations", "annotation"), ("labels", "label")] {
        let fail = |why: String| Err(format!("invalid {name}, error: {why}"));
        match metadata.get(part) {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                if let Some((key, value)) = map.iter().find(|(_, v)| !v.is_string()) {
                    let shown = crate::text::sprint::sprint(value);
                    let kind = type_name(value);
                    return fail(format!(
                        "contains non-string value in the map under key {key:?}: {shown} is of the type {kind}, expected string"
                    ));
                }
            }
            Some(other) => {
                let shown = crate::text::sprint::sprint(other);
                let kind = type_name(other);
                return fail(format!("{shown} is of the type {kind}, expected map[string]interface{{}}"));
            }
        }
    }
    Ok(())
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() || n.is_u64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Compliance;
    use super::*;
    use serde_json::json;

    fn compare(template: &Value, live: &Value, compliance: Compliance, ns: bool) -> (Value, Value) {
        let (a, b) = compared(template, live, &mut Merge::new(compliance, false), ns);
        (Value::Object(a), Value::Object(b))
    }

    #[test]
    fn only_what_the_template_mentions_counts() {
        let live = json!({"name": "x", "labels": {"a": "1", "b": "2"}, "annotations": {"n": "1", LAST_APPLIED: "{}"}, "uid": "u"});
        let (merged, there) = compare(&json!({"labels": {"a": "1"}}), &live, Compliance::MustHave, false);
        assert_eq!(
            (&merged, &there),
            (&json!({"labels": {"a": "1", "b": "2"}}), &json!({"labels": {"a": "1", "b": "2"}}))
        );
        let (merged, there) = compare(&json!({"labels": {"a": "1"}}), &live, Compliance::MustOnlyHave, false);
        assert_ne!(merged, there);
        let (merged, there) = compare(&json!({"name": "x"}), &live, Compliance::MustOnlyHave, false);
        assert_eq!((merged, there), (json!({}), json!({})));
    }
    #[test]
    fn namespaces_keep_what_openshift_wrote() {
        let live = json!({"annotations": {"openshift.io/sa.scc.mcs": "s0", "x": "1"}});
        let template = json!({"annotations": {"y": "2"}});
        let (merged, _) = compare(&template, &live, Compliance::MustOnlyHave, true);
        assert_eq!(merged, json!({"annotations": {"y": "2", "openshift.io/sa.scc.mcs": "s0"}}));
        let (merged, _) = compare(&template, &live, Compliance::MustOnlyHave, false);
        assert_eq!(merged, json!({"annotations": {"y": "2"}}));
    }
    #[test]
    fn values_that_are_no_text_are_named() {
        let bad = slim(&json!({"annotations": {"case": 10}}));
        assert_eq!(
            check(&bad).unwrap_err(),
            "invalid annotation, error: contains non-string value in the map under key \"case\": 10 is of the type int64, expected string"
        );
        assert!(check(&slim(&json!({"labels": {"x": true}}))).unwrap_err().contains("invalid label, error"));
        assert!(check(&slim(&json!({"labels": null, "annotations": {"a": "b"}}))).is_ok());
        assert!(check(&slim(&json!({"labels": ["a"]}))).is_err());
    }
}
