//! "The live value with the template merged in": what an update would send.
use super::Compliance;
use super::equal::equivalent;
use crate::text::sprint::sprint;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// How a merge is done, and what it noticed.
#[derive(Debug)]
pub struct Merge {
    /// At least, or exactly.
    pub compliance: Compliance,
    /// Does a zero value equal a missing one? Only where no dry run can tell.
    pub zero_is_nil: bool,
    /// The template has a key that the live object lacks: defaults may explain it, a dry run tells.
    pub missing_key: bool,
}
impl Merge {
    /// A merge.
    pub fn new(compliance: Compliance, zero_is_nil: bool) -> Self {
        Merge { compliance, zero_is_nil, missing_key: false }
    }
    fn only(&self) -> bool {
        self.compliance == Compliance::MustOnlyHave
    }
    /// Two maps.
    pub fn maps(&mut self, template: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
        if self.only() {
            return template.clone();
        }
        let mut merged = template.clone();
        for key in template.keys() {
            self.missing_key |= !live.contains_key(key);
        }
        for (key, value) in live {
            let together = match template.get(key) {
                Some(wanted) => self.values(wanted, value),
                None => value.clone(),
            };
            merged.insert(key.clone(), together);
        }
        merged
    }
    fn values(&mut self, template: &Value, live: &Value) -> Value {
        match (template, live) {
            (Value::Object(template), Value::Object(live)) => Value::Object(self.maps(template, live)),
            (Value::Array(template), Value::Array(live)) if !live.is_empty() => {
                Value::Array(self.lists(template, live))
            }
            // A null asks for nothing in particular where there is a map.
            (Value::Null, Value::Object(_)) => live.clone(),
            _ => template.clone(),
        }
    }
    /// Two lists: the template's items in their order, each merged with the live item it fits, then what is left over.
    /// An item fits if it bears the same name, or if merging it changes nothing.
    pub fn lists(&mut self, template: &[Value], live: &[Value]) -> Vec<Value> {
        if self.only() {
            return template.to_vec();
        }
        let texts: Vec<String> = live.iter().map(sprint).collect();
        let mut copies: HashMap<&str, usize> = HashMap::new();
        for text in &texts {
            *copies.entry(text).or_default() += 1;
        }
        let mut merged = template.to_vec();
        let mut taken = vec![false; template.len()];
        for (item, text) in live.iter().zip(&texts) {
            // Equal items are handled together, at the first of them.
            let Some(count) = copies.remove(text.as_str()) else { continue };
            let mut found = 0;
            for (slot, wanted) in template.iter().enumerate() {
                if taken[slot] {
                    continue;
                }
                let before = self.missing_key;
                let (together, same_name) = match (wanted, item) {
                    (Value::Object(wanted), Value::Object(item)) => {
                        (Value::Object(self.maps(wanted, item)), same_name(wanted, item))
                    }
                    _ => (wanted.clone(), false),
                };
                let mut ignored = false;
                if same_name || equivalent(&together, item, self.zero_is_nil, &mut ignored) {
                    self.missing_key |= ignored;
                    found += 1;
                    merged[slot] = together;
                    taken[slot] = true;
                } else {
                    self.missing_key = before;
                }
                if found == count {
                    break;
                }
            }
            merged.extend(std::iter::repeat_n(item.clone(), count - found));
        }
        merged
    }
}

fn same_name(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let name = |map: &Map<String, Value>| map.get("name").and_then(Value::as_str).map(str::to_owned);
    name(b).is_some_and(|n| !n.is_empty() && name(a) == Some(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lists(template: &Value, live: &Value) -> Value {
        let mut merge = Merge::new(Compliance::MustHave, false);
        Value::Array(merge.lists(template.as_array().unwrap(), live.as_array().unwrap()))
    }
    fn maps(template: &Value, live: &Value) -> (Value, bool) {
        let mut merge = Merge::new(Compliance::MustHave, false);
        let merged = merge.maps(template.as_object().unwrap(), live.as_object().unwrap());
        (Value::Object(merged), merge.missing_key)
    }

    #[test]
    fn lists_are_merged_by_name_or_by_subset() {
        for (template, live, merged) in [
            (json!(["a"]), json!(["b"]), json!(["a", "b"])),
            (json!(["a", "b"]), json!(["b", "a"]), json!(["a", "b"])),
            (json!(["a"]), json!(["a", "a"]), json!(["a", "a"])),
            (json!(["a", "a"]), json!(["a"]), json!(["a", "a"])),
            (json!([1]), json!(["1"]), json!([1])),
            (json!([]), json!(["x"]), json!(["x"])),
            (
                json!([{"name": "c", "image": "new"}]),
                json!([{"name": "c", "image": "old", "tty": true}]),
                json!([{"name": "c", "image": "new", "tty": true}]),
            ),
            (
                json!([{"containerPort": 80}]),
                json!([{"containerPort": 80, "protocol": "TCP"}]),
                json!([{"containerPort": 80, "protocol": "TCP"}]),
            ),
            (
                json!([{"containerPort": 81}]),
                json!([{"containerPort": 80}]),
                json!([{"containerPort": 81}, {"containerPort": 80}]),
            ),
            (json!([{"name": ""}]), json!([{"name": "", "x": 1}]), json!([{"name": "", "x": 1}])),
            (json!(["x", {"a": 1}]), json!([{"a": 1, "b": 2}]), json!(["x", {"a": 1, "b": 2}])),
        ] {
            assert_eq!(lists(&template, &live), merged, "{template} into {live}");
        }
    }
    #[test]
    fn maps_are_united_and_missing_keys_noticed() {
        assert_eq!(maps(&json!({"a": 1}), &json!({"b": 2})), (json!({"a": 1, "b": 2}), true));
        assert_eq!(
            maps(&json!({"a": {"x": 1}}), &json!({"a": {"x": 2, "y": 3}})),
            (json!({"a": {"x": 1, "y": 3}}), false)
        );
        assert_eq!(maps(&json!({"a": null}), &json!({"a": {"y": 3}})), (json!({"a": {"y": 3}}), false));
        assert_eq!(maps(&json!({"a": null}), &json!({"a": 4})), (json!({"a": null}), false));
        assert_eq!(maps(&json!({"a": "text"}), &json!({"a": {"y": 3}})), (json!({"a": "text"}), false));
        assert_eq!(maps(&json!({"a": [1]}), &json!({"a": []})), (json!({"a": [1]}), false));
    }
    #[test]
    fn a_key_missing_in_an_item_that_does_not_fit_is_no_missing_key() {
        assert!(!maps(&json!({"l": [{"a": 1, "z": 0}, {"a": 2}]}), &json!({"l": [{"a": 2, "b": 1}]})).1);
    }
    #[test]
    fn mustonlyhave_takes_the_template() {
        let mut merge = Merge::new(Compliance::MustOnlyHave, false);
        assert_eq!(merge.lists(&[json!(1)], &[json!(2)]), [json!(1)]);
        let (a, b) = (json!({"a": 1}), json!({"b": 1}));
        assert_eq!(Value::Object(merge.maps(a.as_object().unwrap(), b.as_object().unwrap())), a);
    }
}
