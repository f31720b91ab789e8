//! Is a policy, is a cluster as a case expects it? The text says what is not.
use crate::case::Then;
use serde_json::Value;

/// At least these fields; a field that is `null` must not be there.
pub(crate) fn includes(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| includes(there.get(key).unwrap_or(&Value::Null), value))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(a, b)| includes(a, b))
        }
        (there, wanted) => there == wanted,
    }
}

fn fits(text: &str, wanted: &str) -> bool {
    match wanted.strip_prefix('~') {
        Some(part) => text.contains(part),
        None => text == wanted,
    }
}

/// The policy's own part of what is expected.
pub(crate) fn policy(found: Option<&Value>, then: &Then) -> Result<(), String> {
    let Some(found) = found else {
        return if then.gone { Ok(()) } else { Err("the policy is gone".into()) };
    };
    if then.gone {
        return Err("the policy is still there".into());
    }
    let status = &found["status"];
    let generation = found["metadata"]["generation"].as_i64();
    if status["lastEvaluatedGeneration"].as_i64() != generation {
        return Err("not evaluated yet".into());
    }
    if let Some(state) = &then.state
        && status["compliant"] != **state
    {
        return Err(format!("state {} is not {state}", status["compliant"]));
    }
    let details = status["compliancyDetails"].as_array().cloned().unwrap_or_default();
    for (lists, field) in [(&then.messages, "message"), (&then.reasons, "reason")] {
        for (n, wanted) in lists.iter().enumerate() {
            let condition = details.get(n).map(|d| d["conditions"][0].clone()).unwrap_or_default();
            let text = condition[field].as_str().unwrap_or_default();
            if !fits(text, wanted) {
                return Err(format!("{field} {n}: {text:?} is not {wanted:?}"));
            }
        }
    }
    if let Some(wanted) = &then.told {
        let text = status["history"][0]["message"].as_str().unwrap_or_default();
        if !fits(text, wanted) {
            return Err(format!("told: {text:?} is not {wanted:?}"));
        }
    }
    let related = status["relatedObjects"].as_array().cloned().unwrap_or_default();
    if let Some(wanted) = &then.related {
        let names: Vec<String> = related
            .iter()
            .map(|r| {
                let created = r["properties"]["createdByPolicy"] == true;
                let name = r["object"]["metadata"]["name"].as_str().unwrap_or_default();
                format!("{name}{}", if created { "*" } else { "" })
            })
            .collect();
        if names != *wanted {
            return Err(format!("related {names:?} are not {wanted:?}"));
        }
    }
    let diff = related.iter().find_map(|r| r["properties"]["diff"].as_str()).unwrap_or_default();
    if then.diff.as_ref().is_some_and(Vec::is_empty) && !diff.is_empty() {
        return Err(format!("a difference is shown:\n{diff}"));
    }
    for part in then.diff.iter().flatten() {
        if !diff.contains(part.as_str()) {
            return Err(format!("{part:?} is not in the difference:\n{diff}"));
        }
    }
    Ok(())
}

#[test]
fn a_case_can_say_what_must_not_be_there() {
    let there = serde_json::json!({"labels": {"a": "1", "b": "2"}, "list": [{"x": 1, "y": 1}]});
    for (wanted, fits) in [
        (serde_json::json!({"labels": {"a": "1"}}), true),
        (serde_json::json!({"labels": {"a": "1", "b": null}}), false),
        (serde_json::json!({"labels": {"a": "1", "c": null}, "other": null}), true),
        (serde_json::json!({"list": null}), false),
        (serde_json::json!({"list": [{"x": 1}]}), true),
        (serde_json::json!({"list": [{"x": 1, "y": null}]}), false),
        (serde_json::json!({"missing": {"a": null}}), false),
    ] {
        assert_eq!(includes(&there, &wanted), fits, "{wanted}");
    }
}
