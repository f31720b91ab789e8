//! Label selectors: what they match, how they are written in a query, and how a wrong one is told.
use crate::dialect::Dialect;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One expression as a person writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Expression {
    /// The label key that the selector applies to.
    #[serde(default)]
    pub key: String,
    /// The key's relationship to the values: In, NotIn, Exists or DoesNotExist.
    #[serde(default)]
    pub operator: String,
    /// Strings; not empty for In and NotIn, empty for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// A selector that makes sense.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    DoesNotExist(String),
}

impl Selector {
    /// Reads one. The error is what the API machinery says.
    pub fn parse(
        labels: &BTreeMap<String, String>,
        expressions: &[Expression],
        dialect: Dialect,
    ) -> Result<Self, String> {
        let mut requirements = Vec::with_capacity(labels.len() + expressions.len());
        for (key, value) in labels {
            check_key(key)?;
            check_value(key, 0, value)?;
            requirements.push(Requirement::In(key.clone(), vec![value.clone()]));
        }
        for Expression { key, operator, values } in expressions {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let listing = matches!(operator.as_str(), "In" | "NotIn");
            if !listing && !matches!(operator.as_str(), "Exists" | "DoesNotExist") {
                return Err(format!("{operator:?} is not a valid label selector operator"));
            }
            check_key(key)?;
            if listing && values.is_empty() {
                let none = dialect.no_strings();
                return Err(format!(
                    "values: Invalid value: {none}: for 'in', 'notin' operators, values set can't be empty"
                ));
            }
            if !listing && !values.is_empty() {
                let shown = dialect.strings(values);
                return Err(format!(
                    "values: Invalid value: {shown}: values set must be empty for exists and does not exist"
                ));
            }
            for (at, value) in values.iter().enumerate() {
                check_value(key, at, value)?;
            }
            requirements.push(match operator.as_str() {
                "In" => Requirement::In(key.clone(), sorted),
                "NotIn" => Requirement::NotIn(key.clone(), sorted),
                "Exists" => Requirement::Exists(key.clone()),
                _ => Requirement::DoesNotExist(key.clone()),
            });
        }
        requirements.sort();
        Ok(Selector(requirements))
    }
    /// Do these labels (a JSON map, or nothing) fit?
    pub fn matches(&self, labels: &Value) -> bool {
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|v| values.iter().any(|x| x == v)),
            Requirement::NotIn(key, values) => label(key).is_none_or(|v| values.iter().all(|x| x != v)),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::DoesNotExist(key) => label(key).is_none(),
        })
    }
    /// As a query parameter; empty if everything matches.
    pub fn query(&self) -> String {
        let texts: Vec<String> = self
            .0
            .iter()
            .map(|requirement| match requirement {
                Requirement::In(key, values) => format!("{key} in ({})", values.join(",")),
                Requirement::NotIn(key, values) => format!("{key} notin ({})", values.join(",")),
                Requirement::Exists(key) => key.clone(),
                Requirement::DoesNotExist(key) => format!("!{key}"),
            })
            .collect();
        texts.join(",")
    }
}

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const PREFIX: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn check_key(key: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("key: Invalid value: {key:?}: {why}"));
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix {
        let part = |p: &str| {
            let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
            let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            edge(p.chars().next()) && edge(p.chars().last()) && p.chars().all(inside)
        };
        if prefix.is_empty() {
            return wrong("prefix part must be non-empty");
        }
        if prefix.len() > 253 || !prefix.split('.').all(part) {
            return wrong(PREFIX);
        }
    }
    if name.is_empty() {
        return wrong("name part must be non-empty");
    }
    if name.len() > 63 {
        return wrong("name part must be no more than 63 bytes");
    }
    if plain(name) { Ok(()) } else { wrong(NAME_PART) }
}
fn check_value(key: &str, at: usize, value: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("values[{at}][{key}]: Invalid value: {value:?}: {why}"));
    if value.len() > 63 {
        return wrong("must be no more than 63 bytes");
    }
    if value.is_empty() || plain(value) { Ok(()) } else { wrong(VALUE) }
}
fn plain(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    edge(text.chars().next()) && edge(text.chars().last()) && text.chars().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn expression(key: &str, operator: &str, values: &[&str]) -> Expression {
        Expression {
            key: key.into(),
            operator: operator.into(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        }
    }
    fn parse(labels: &[(&str, &str)], expressions: &[Expression]) -> Result<Selector, String> {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Selector::parse(&labels, expressions, Dialect::Current)
    }

    #[test]
    fn every_operator_selects() {
        let labels = json!({"a": "1", "b": "2"});
        for (e, hit) in [
            (expression("a", "In", &["1", "x"]), true),
            (expression("a", "In", &["x"]), false),
            (expression("a", "NotIn", &["1"]), false),
            (expression("c", "NotIn", &["1"]), true),
            (expression("b", "Exists", &[]), true),
            (expression("c", "Exists", &[]), false),
            (expression("c", "DoesNotExist", &[]), true),
        ] {
            assert_eq!(parse(&[], std::slice::from_ref(&e)).unwrap().matches(&labels), hit, "{e:?}");
        }
        assert!(parse(&[("a", "1")], &[]).unwrap().matches(&labels));
        assert!(parse(&[], &[]).unwrap().matches(&Value::Null), "an empty selector matches everything");
    }
    #[test]
    fn a_query_says_the_same() {
        let selector = parse(
            &[("a", "1")],
            &[
                expression("b", "NotIn", &["y", "x"]),
                expression("c", "Exists", &[]),
                expression("d", "DoesNotExist", &[]),
            ],
        );
        assert_eq!(selector.unwrap().query(), "a in (1),b notin (x,y),c,!d");
    }
    #[test]
    fn what_is_wrong_is_told_in_the_words_of_the_api() {
        let text = parse(&[], &[expression("a", "Seriously", &[])]).unwrap_err();
        assert_eq!(text, "\"Seriously\" is not a valid label selector operator");
        let text = parse(&[], &[expression("a", "In", &[])]).unwrap_err();
        assert_eq!(text, "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty");
        let older = Selector::parse(&BTreeMap::new(), &[expression("a", "In", &[])], Dialect::Earlier).unwrap_err();
        assert!(older.contains("[]string(nil)"), "{older}");
        let text = parse(&[], &[expression("a", "Exists", &["x"])]).unwrap_err();
        assert!(text.ends_with("values set must be empty for exists and does not exist"), "{text}");
        assert!(parse(&[("a b", "1")], &[]).unwrap_err().starts_with("key: Invalid value: \"a b\": name part"));
        assert!(parse(&[("a", "not ok")], &[]).unwrap_err().starts_with("values[0][a]: Invalid value: \"not ok\""));
        assert!(parse(&[("/a", "")], &[]).is_err() && parse(&[("UP.x/a", "")], &[]).is_err());
    }
}
