//! Which namespaces a policy's selector takes in. Pure: the namespaces of the cluster are an argument.
use crate::api::NamespaceSelector;
use crate::dialect::Dialect;
use crate::text::glob;
use crate::text::selector::Selector;
use serde_json::Value;

/// What is known of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Name.
    pub name: String,
    /// Labels, as JSON.
    pub labels: Value,
    /// On its way out.
    pub terminating: bool,
}

/// Does the selector ask for namespaces at all?
pub fn selects(selector: Option<&NamespaceSelector>) -> bool {
    selector.is_some_and(|s| s.match_labels.is_some() || s.match_expressions.is_some() || !s.include.is_empty())
}

/// Namespaces, as far as they are known.
pub trait Atlas: Send + Sync {
    /// One of them; `None`: it is not known.
    fn find(&self, name: &str) -> Option<Namespace>;
}
impl Atlas for Vec<Namespace> {
    fn find(&self, name: &str) -> Option<Namespace> {
        self.iter().find(|namespace| namespace.name == name).cloned()
    }
}

/// May the selector take in a namespace of this name, whatever its labels are?
pub fn may_take(selector: Option<&NamespaceSelector>, name: &str) -> Result<bool, String> {
    let Some(wanted) = selector.filter(|_| selects(selector)) else { return Ok(false) };
    let included = wanted.include.is_empty() || any(&wanted.include, name, "include")?;
    Ok(included && !any(&wanted.exclude, name, "exclude")?)
}

/// Does the selector take in this namespace? An error says why that cannot be told.
pub fn takes_in(selector: Option<&NamespaceSelector>, name: &str, atlas: &dyn Atlas) -> Result<bool, String> {
    if !may_take(selector, name)? {
        return Ok(false);
    }
    let labels = |s: &NamespaceSelector| s.match_labels.as_ref().is_some_and(|labels| !labels.is_empty());
    let expressions = |s: &NamespaceSelector| s.match_expressions.as_ref().is_some_and(|all| !all.is_empty());
    if !selector.is_some_and(|s| labels(s) || expressions(s)) {
        return Ok(true);
    }
    let known = atlas.find(name).ok_or_else(|| format!("the labels of namespace {name} are not known yet"))?;
    Ok(!select(selector, &[known], true, Dialect::Current)?.is_empty())
}

/// Names in order. `take_terminating` is what the controller was told for `Default`.
pub fn select(
    selector: Option<&NamespaceSelector>,
    all: &[Namespace],
    take_terminating: bool,
    dialect: Dialect,
) -> Result<Vec<String>, String> {
    let Some(wanted) = selector.filter(|_| selects(selector)) else { return Ok(Vec::new()) };
    let labels = wanted.match_labels.clone().unwrap_or_default();
    let expressions = wanted.match_expressions.as_deref().unwrap_or_default();
    let by_label = Selector::parse(&labels, expressions, dialect)
        .map_err(|why| format!("error parsing namespace LabelSelector: {why}"))?;
    let everything = ["*".to_owned()];
    let include = if wanted.include.is_empty() { &everything[..] } else { &wanted.include };
    let take_terminating = match wanted.terminating_inclusion.as_str() {
        "IfMatch" => true,
        "Never" => false,
        _ => take_terminating,
    };
    // A bad pattern is told even where there is nothing to match it with.
    any(include, "", "include")?;
    any(&wanted.exclude, "", "exclude")?;
    let mut names = Vec::new();
    for namespace in all {
        let fits = by_label.matches(&namespace.labels)
            && (take_terminating || !namespace.terminating)
            && any(include, &namespace.name, "include")?
            && !any(&wanted.exclude, &namespace.name, "exclude")?;
        if fits {
            names.push(namespace.name.clone());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn any(patterns: &[String], name: &str, field: &str) -> Result<bool, String> {
    let mut hit = false;
    for pattern in patterns {
        hit |= glob::matches(pattern, name)
            .map_err(|why| format!("error parsing '{field}' pattern '{pattern}': {why}"))?;
    }
    Ok(hit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn all() -> Vec<Namespace> {
        let ns = |name: &str, labels: Value, terminating: bool| Namespace { name: name.into(), labels, terminating };
        vec![
            ns("kube-system", json!({}), false),
            ns("b", json!({"team": "x"}), false),
            ns("a", json!({"team": "x"}), false),
            ns("gone", json!({"team": "x"}), true),
            ns("default", json!(null), false),
        ]
    }
    fn selector(value: Value) -> NamespaceSelector {
        serde_json::from_value(value).unwrap()
    }
    fn names(value: Value) -> Result<Vec<String>, String> {
        select(Some(&selector(value)), &all(), true, Dialect::Current)
    }

    #[test]
    fn selectors_take_in_what_they_say() {
        for (wanted, found) in [
            (json!({}), vec![]),
            (json!({"exclude": ["kube-*"]}), vec![]),
            (json!({"include": ["*"], "exclude": ["kube-*", "gone"]}), vec!["a", "b", "default"]),
            (json!({"matchLabels": {"team": "x"}}), vec!["a", "b", "gone"]),
            (json!({"matchLabels": {}}), vec!["a", "b", "default", "gone", "kube-system"]),
            (json!({"matchLabels": {"team": "x"}, "include": ["a*"]}), vec!["a"]),
            (
                json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}], "exclude": ["kube-*"]}),
                vec!["default"],
            ),
            (json!({"matchLabels": {"team": "x"}, "terminatingInclusion": "Never"}), vec!["a", "b"]),
        ] {
            assert_eq!(names(wanted.clone()).unwrap(), found, "{wanted}");
        }
        assert!(select(None, &all(), true, Dialect::Current).unwrap().is_empty());
        let default = selector(json!({"matchLabels": {"team": "x"}}));
        assert_eq!(select(Some(&default), &all(), false, Dialect::Current).unwrap(), ["a", "b"]);
    }
    #[test]
    fn whether_one_namespace_is_taken_in_is_told_or_why_not() {
        let unknown = Err("the labels of namespace new are not known yet".to_owned());
        for (wanted, name, taken) in [
            (json!({"include": ["a*"]}), "new", Ok(false)),
            (json!({"include": ["n*"]}), "new", Ok(true)),
            (json!({"include": ["n*"], "exclude": ["new"]}), "new", Ok(false)),
            (json!({"matchLabels": {}}), "new", Ok(true)),
            (json!({"exclude": ["x"]}), "new", Ok(false)),
            (json!({"matchLabels": {"team": "x"}}), "a", Ok(true)),
            (json!({"matchLabels": {"team": "x"}}), "default", Ok(false)),
            (json!({"matchLabels": {"team": "x"}}), "new", unknown),
            (json!({"matchLabels": {"team": "x"}, "include": ["b"]}), "new", Ok(false)),
        ] {
            assert_eq!(takes_in(Some(&selector(wanted.clone())), name, &all()), taken, "{wanted} {name}");
        }
        assert_eq!(takes_in(None, "a", &all()), Ok(false));
        assert!(takes_in(Some(&selector(json!({"include": ["[x"]}))), "a", &all()).is_err());
    }
    #[test]
    fn what_is_wrong_is_told() {
        assert_eq!(
            names(json!({"include": ["[x"]})).unwrap_err(),
            "error parsing 'include' pattern '[x': syntax error in pattern"
        );
        assert!(names(json!({"include": ["a"], "exclude": ["[-"]})).unwrap_err().contains("'exclude' pattern '[-'"));
        assert_eq!(
            names(json!({"matchExpressions": [{"key": "a", "operator": "Seriously"}]})).unwrap_err(),
            "error parsing namespace LabelSelector: \"Seriously\" is not a valid label selector operator"
        );
    }
}
