//! Which watch serves what a policy looks at: the narrowest one that is not wasteful. Pure.
use super::kinds::Mapping;
use crate::text::selector::Selector;
use common::clock::Boot;
use std::collections::{HashMap, HashSet};

/// From so many watched objects of a kind in a namespace on, one watch serves all.
const OBJECTS: usize = 3;
/// From so many watched namespaces of a kind on, one watch serves all.
const NAMESPACES: usize = 8;
/// From so many listed namespaces of a kind on, one list serves all. More than above: such a watch keeps everything it sees.
const LISTED: usize = 16;

/// What one watch covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// The kind.
    pub mapping: Mapping,
    /// Empty: all.
    pub namespace: String,
    /// Empty: all.
    pub name: String,
    /// Empty: all.
    pub labels: String,
    /// Everything is kept.
    pub all: bool,
}
impl Scope {
    /// Is there something narrower that would do?
    pub(super) fn can_be_narrower(&self) -> bool {
        let wide = self.mapping.namespaced && self.namespace.is_empty();
        self.name.is_empty() && (wide || !self.all)
    }
}
/// What one policy looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Interest {
    /// Kind, namespace, name.
    Object(Mapping, String, String),
    /// Kind, namespace (empty: all), labels.
    List(Mapping, String, Selector),
}

/// The narrowest watch that is not wasteful.
pub(super) fn choose<W>(watched: &HashMap<Scope, W>, denied: &HashMap<Scope, Boot>, interest: &Interest) -> Scope {
    let (mapping, namespace, name) = match interest {
        Interest::List(mapping, namespace, selector) => {
            return choose_list(watched, denied, mapping, namespace, &selector.query());
        }
        Interest::Object(mapping, namespace, name) => (mapping, namespace, name),
    };
    let scope = |namespace: &str, name: &str, all: bool| Scope {
        mapping: mapping.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        labels: String::new(),
        all,
    };
    let allowed = |scope: &Scope| !denied.contains_key(scope);
    for wide in [scope("", "", true), scope("", "", false), scope(namespace, "", true), scope(namespace, "", false)] {
        if watched.contains_key(&wide) && allowed(&wide) {
            return wide;
        }
    }
    let same_kind = || watched.keys().filter(|s| s.mapping == *mapping && s.labels.is_empty());
    let objects = same_kind().filter(|s| s.namespace == *namespace && !s.name.is_empty()).count();
    let namespaces: HashSet<&str> = same_kind().map(|s| s.namespace.as_str()).collect();
    let (cluster_wide, namespace_wide) = (scope("", "", false), scope(namespace, "", false));
    if mapping.namespaced && namespaces.len() >= NAMESPACES && allowed(&cluster_wide) {
        return cluster_wide;
    }
    if objects >= OBJECTS && allowed(&namespace_wide) {
        return namespace_wide;
    }
    scope(namespace, name, false)
}

fn choose_list<W>(
    watched: &HashMap<Scope, W>,
    denied: &HashMap<Scope, Boot>,
    mapping: &Mapping,
    namespace: &str,
    labels: &str,
) -> Scope {
    let scope = |namespace: &str| Scope {
        mapping: mapping.clone(),
        namespace: namespace.to_owned(),
        name: String::new(),
        labels: labels.to_owned(),
        all: true,
    };
    let (wide, own) = (scope(""), scope(namespace));
    let listed = || watched.keys().filter(|s| s.all && s.mapping == *mapping && s.labels == labels).count();
    let widen = mapping.namespaced && !denied.contains_key(&wide) && !watched.contains_key(&own);
    if widen && (watched.contains_key(&wide) || listed() >= LISTED) { wide } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    fn pods() -> Mapping {
        Mapping::known("", "v1", "Pod", "pods", true)
    }
    fn object(namespace: &str, name: &str) -> Interest {
        Interest::Object(pods(), namespace.into(), name.into())
    }
    fn watching(watched: &mut HashMap<Scope, u8>, denied: &HashMap<Scope, Boot>, interest: &Interest) -> Scope {
        let scope = choose(watched, denied, interest);
        watched.insert(scope.clone(), 0);
        scope
    }

    #[test]
    fn few_objects_have_watches_of_their_own_and_many_share_one() {
        let (mut watched, denied) = (HashMap::new(), HashMap::new());
        for name in ["a", "b", "c"] {
            assert_eq!(watching(&mut watched, &denied, &object("n", name)).name, name);
        }
        let wide = watching(&mut watched, &denied, &object("n", "d"));
        assert_eq!((wide.namespace.as_str(), wide.name.as_str(), wide.all), ("n", "", false));
        assert_eq!(watching(&mut watched, &denied, &object("n", "e")), wide);
        assert_eq!(watching(&mut watched, &denied, &object("m", "a")).name, "a", "another namespace");
    }
    #[test]
    fn lists_of_many_namespaces_share_one_unless_that_is_denied() {
        let list = |namespace: &str, labels: &str| {
            let labels = labels.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
            let selector = Selector::parse(&labels.into_iter().collect(), &[], Dialect::Current).unwrap();
            Interest::List(pods(), namespace.into(), selector)
        };
        let (mut watched, mut denied) = (HashMap::new(), HashMap::new());
        for n in 0..LISTED {
            let own = watching(&mut watched, &denied, &list(&format!("n{n}"), ""));
            assert!(own.namespace == format!("n{n}") && own.all && !own.can_be_narrower());
        }
        assert_eq!(watching(&mut watched, &denied, &list("more", "a=b")).namespace, "more", "other labels");
        let wide = watching(&mut watched, &denied, &list("more", ""));
        assert!(wide.namespace.is_empty() && wide.all && wide.can_be_narrower());
        assert_eq!(watching(&mut watched, &denied, &list("still-more", "")), wide);
        assert_eq!(watching(&mut watched, &denied, &list("n0", "")).namespace, "n0", "watched already");
        denied.insert(wide.clone(), Boot::default());
        watched.remove(&wide);
        assert_eq!(watching(&mut watched, &denied, &list("more", "")).namespace, "more");
        let nodes = Mapping::known("", "v1", "Node", "nodes", false);
        let all = choose(&watched, &denied, &Interest::List(nodes, String::new(), Selector::default()));
        assert!(!all.can_be_narrower(), "there is nothing narrower for what has no namespace");
    }
    #[test]
    fn many_namespaces_share_one_unless_that_is_denied() {
        let (mut watched, mut denied) = (HashMap::new(), HashMap::new());
        for n in 0..8 {
            watching(&mut watched, &denied, &object(&format!("n{n}"), "a"));
        }
        let wide = watching(&mut watched, &denied, &object("n8", "a"));
        assert_eq!((wide.namespace.as_str(), wide.name.as_str()), ("", ""));
        denied.insert(wide.clone(), Boot::default());
        watched.remove(&wide);
        assert_eq!(watching(&mut watched, &denied, &object("n9", "a")).name, "a");
    }
}
