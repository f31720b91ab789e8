//! Values as plain text, the way compliance rules compare them: `map[a:1 b:[x y]]`, `<nil>`, `1` for 1.0.
use serde_json::{Number, Value};
use std::fmt::Write as _;

/// A value as text.
pub fn sprint(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(b) => text.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => text.push_str(&number(n)),
        Value::String(s) => text.push_str(s),
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(' ');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            text.push_str("map[");
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            for (i, key) in keys.into_iter().enumerate() {
                let gap = if i > 0 { " " } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(text, "{gap}{key}:");
                write(&map[key], text);
            }
            text.push(']');
        }
    }
}

/// A number: whole ones as they are, others in the shortest form, with an exponent only far from one.
pub fn number(n: &Number) -> String {
    if n.is_i64() || n.is_u64() {
        return n.to_string();
    }
    n.as_f64().map_or_else(|| n.to_string(), float)
}

fn float(f: f64) -> String {
    if f == 0.0 {
        return if f.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{f:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let power: i32 = exponent.parse().unwrap_or(0);
    if (-4..21).contains(&power) {
        return format!("{f}");
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.abs())
}

/// As [`sprint`], with every list sorted: equal for lists that differ in order only.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let mut texts: Vec<String> = items.iter().map(canonical).collect();
            texts.sort_unstable();
            format!("[{}]", texts.join(" "))
        }
        Value::Object(map) => {
            let mut pairs: Vec<(&String, String)> = map.iter().map(|(k, v)| (k, canonical(v))).collect();
            pairs.sort_unstable();
            let texts: Vec<String> = pairs.into_iter().map(|(k, v)| format!("{k}:{v}")).collect();
            format!("map[{}]", texts.join(" "))
        }
        other => sprint(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_read_as_the_peer_prints_them() {
        let cases = [
            (json!(null), "<nil>"),
            (json!(true), "true"),
            (json!(80), "80"),
            (json!(-3), "-3"),
            (json!(1.0), "1"),
            (json!(1.5), "1.5"),
            (json!(0.00001), "1e-05"),
            (json!(0.0001), "0.0001"),
            (json!(1e20), "100000000000000000000"),
            (json!(1e21), "1e+21"),
            (json!(1.5e300), "1.5e+300"),
            (json!("text"), "text"),
            (json!(["a", 1, null]), "[a 1 <nil>]"),
            (json!({"b": [1], "a": {"c": true}}), "map[a:map[c:true] b:[1]]"),
            (json!([]), "[]"),
            (json!({}), "map[]"),
        ];
        for (value, text) in cases {
            assert_eq!(sprint(&value), text);
        }
    }
    #[test]
    fn order_of_lists_does_not_matter_in_canonical_text() {
        assert_eq!(canonical(&json!({"a": [2, [3, 1]]})), canonical(&json!({"a": [[1, 3], 2]})));
        assert_ne!(canonical(&json!([1, 2])), canonical(&json!([1, 3])));
    }
}
