//! Is the merged value the live value, as far as compliance goes? Order of lists does not matter, `1024Mi` is `1Gi`, and
//! scalars are compared by their text.
use crate::text::quantity::Quantity;
use crate::text::sprint::{canonical, sprint};
use serde_json::{Map, Value};

/// `missing` is set when a zero value was taken for a missing one.
pub fn equivalent(merged: &Value, live: &Value, zero_is_nil: bool, missing: &mut bool) -> bool {
    match merged {
        Value::Object(merged) => match live {
            Value::Object(live) => fields(merged, live, zero_is_nil, missing),
            _ => false,
        },
        Value::Array(merged) => match live {
            Value::Null => merged.is_empty(),
            // Merged items take the place of live ones here: an extra key in them is a difference.
            Value::Array(live) => lists(merged, live, missing),
            _ => false,
        },
        scalar => {
            if zero_is_nil {
                if live.is_null() && !scalar.is_null() {
                    return sprint(&zero(scalar)) == sprint(scalar);
                }
                if scalar.is_null() && !live.is_null() {
                    return sprint(&zero(live)) == sprint(live);
                }
            }
            sprint(scalar) == sprint(live)
        }
    }
}

fn zero(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) => Value::Bool(false),
        Value::Number(_) => Value::from(0),
        Value::String(_) => Value::String(String::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(Map::new()),
    }
}

fn fields(merged: &Map<String, Value>, live: &Map<String, Value>, zero_is_nil: bool, missing: &mut bool) -> bool {
    if merged.len() < live.len() {
        return false;
    }
    merged.iter().all(|(key, wanted)| {
        let there = live.get(key);
        match wanted {
            Value::Object(wanted) => match there {
                Some(Value::Object(there)) => fields(wanted, there, zero_is_nil, missing),
                _ => zero_is_nil && wanted.is_empty(),
            },
            Value::Array(wanted) => match there {
                Some(Value::Array(there)) => lists(there, wanted, missing),
                _ => wanted.is_empty(),
            },
            Value::String(text) => string(text, there),
            scalar => {
                let there = there.filter(|v| !v.is_null());
                match there {
                    Some(there) => sprint(there) == sprint(scalar),
                    None if scalar.is_null() => true,
                    None => {
                        *missing = true;
                        sprint(&zero(scalar)) == sprint(scalar)
                    }
                }
            }
        }
    })
}

fn string(text: &str, there: Option<&Value>) -> bool {
    match Quantity::parse(text) {
        Some(amount) => match there {
            Some(Value::String(there)) => Quantity::parse(there) == Some(amount),
            _ => false,
        },
        None => there.is_some_and(|there| sprint(there) == text),
    }
}

/// Lists in any order. `first` gives the items to walk over, `second` those that must cover them.
fn lists(first: &[Value], second: &[Value], missing: &mut bool) -> bool {
    if first.len() != second.len() {
        return false;
    }
    let (a, b) = (sorted(first), sorted(second));
    a.into_iter().zip(b).all(|(a, b)| match (a, b) {
        (Value::Object(a), Value::Object(b)) => fields(b, a, true, missing),
        (Value::Object(_), _) => false,
        (a, b) => sprint(a) == sprint(b),
    })
}
fn sorted(list: &[Value]) -> Vec<&Value> {
    let mut keyed: Vec<(String, &Value)> = list.iter().map(|v| (canonical(v), v)).collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.into_iter().map(|(_, v)| v).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn equal(merged: &Value, live: &Value) -> bool {
        equivalent(merged, live, false, &mut false)
    }

    #[test]
    fn the_table_of_equivalence() {
        for (merged, live, expected) in [
            (json!({"a": 1}), json!({"a": 1}), true),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
            (json!({"a": 1}), json!({"a": "1"}), true),
            (json!({"a": "true"}), json!({"a": true}), true),
            (json!({"m": "1024Mi"}), json!({"m": "1Gi"}), true),
            (json!({"m": "080"}), json!({"m": "80"}), true),
            (json!({"m": "80"}), json!({"m": 80}), false),
            (json!({"m": 80}), json!({"m": "80"}), true),
            (json!({"a": ""}), json!({}), false),
            (json!({"a": false}), json!({}), true),
            (json!({"a": 0}), json!({}), true),
            (json!({"a": true}), json!({}), false),
            (json!({"a": null}), json!({}), true),
            (json!({"a": null}), json!({"a": 5}), false),
            (json!({"a": {}}), json!({}), false),
            (json!({"a": []}), json!({}), true),
            (json!({"a": [1]}), json!({}), false),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]}), true),
            (json!({"a": [{"x": [1, 2]}]}), json!({"a": [{"x": [2, 1]}]}), true),
            (json!({"a": [1]}), json!({"a": [1, 1]}), false),
            (json!({"a": [{"x": 1, "y": false}]}), json!({"a": [{"x": 1}]}), true),
            (json!({"a": [{"x": 1, "y": true}]}), json!({"a": [{"x": 1}]}), false),
            (json!([{"x": 1}]), json!([{"x": 1}]), true),
            (json!([{"x": 1, "y": false}]), json!([{"x": 1}]), false),
            (json!([]), json!(null), true),
            (json!("x"), json!("x"), true),
            (json!(null), json!(null), true),
            (json!("<nil>"), json!(null), true),
            (json!("x"), json!(["x"]), false),
            (json!({"a": 1}), json!(null), false),
        ] {
            assert_eq!(equal(&merged, &live), expected, "{merged} and {live}");
        }
    }
    #[test]
    fn zero_counts_as_missing_only_where_asked() {
        assert!(!equivalent(&json!(""), &json!(null), false, &mut false));
        assert!(equivalent(&json!(""), &json!(null), true, &mut false));
        assert!(equivalent(&json!(null), &json!(0), true, &mut false));
        assert!(equivalent(&json!({"a": {}}), &json!({}), true, &mut false));
    }
    #[test]
    fn a_zero_taken_for_missing_is_told() {
        let mut missing = false;
        assert!(equivalent(&json!({"a": false}), &json!({}), false, &mut missing) && missing);
        let mut missing = false;
        assert!(equivalent(&json!({"a": false}), &json!({"a": false}), false, &mut missing) && !missing);
    }
}
