//! What a template's objects came to, in one sentence: reasons in a fixed order, names that share namespaces together.
use crate::names::reason;
use std::collections::{BTreeMap, BTreeSet};

/// One thing that happened to, or was seen of, an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// As it should be?
    pub compliant: bool,
    /// Why.
    pub reason: String,
    /// Said as it is, for reasons that have no sentence of their own.
    pub message: String,
}
impl Happening {
    /// Something with a sentence of its own.
    pub fn plain(compliant: bool, reason: &str) -> Self {
        Happening { compliant, reason: reason.into(), message: String::new() }
    }
    /// Something to say in its own words.
    pub fn said(compliant: bool, reason: &str, message: impl Into<String>) -> Self {
        Happening { compliant, reason: reason.into(), message: message.into() }
    }
}

/// Everything that happened to one desired object, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The desired name, if there is one.
    pub name: String,
    /// Names of the objects found.
    pub names: Vec<String>,
    /// In order.
    pub happenings: Vec<Happening>,
}

/// A condition in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// All as it should be?
    pub compliant: bool,
    /// Reasons.
    pub reason: String,
    /// Sentences.
    pub message: String,
}

const ORDER: [&str; 8] = [
    reason::FOUND,
    reason::CREATED,
    reason::UPDATED,
    reason::DELETED,
    reason::MISSING,
    reason::NO_MATCH,
    reason::ABSENT,
    reason::UNWANTED,
];

/// The condition's reason and the phrase for a reason, if it has one.
fn phrase(of: &str) -> Option<(&'static str, &'static str)> {
    Some(match of {
        reason::FOUND => ("K8s `must have` object already exists", "found as specified"),
        reason::CREATED => (reason::CREATED, "was created successfully"),
        reason::UPDATED => (reason::UPDATED, "was updated successfully"),
        reason::DELETED => (reason::DELETED, "was deleted successfully"),
        reason::MISSING => ("K8s does not have a `must have` object", "not found"),
        reason::NO_MATCH => ("K8s does not have a `must have` object", "found but not as specified"),
        reason::UNWANTED => ("K8s has a `must not have` object", "found"),
        reason::ABSENT => ("K8s `must not have` object already missing", "missing as expected"),
        _ => return None,
    })
}

/// The states a template went through, oldest first: objects with fewer happenings join late.
pub fn batches(outcomes: &[Outcome]) -> Vec<Vec<(&Outcome, &Happening)>> {
    let most = outcomes.iter().map(|o| o.happenings.len()).max().unwrap_or(0);
    let mut batches = vec![Vec::new(); most];
    for outcome in outcomes {
        let late = most - outcome.happenings.len();
        for (n, happening) in outcome.happenings.iter().enumerate() {
            batches[late + n].push((outcome, happening));
        }
    }
    batches
}

/// Sums a batch up. `resource` is the plural of the kind.
pub fn verdict(resource: &str, batch: &[(&Outcome, &Happening)]) -> Verdict {
    let compliant = batch.iter().all(|(_, h)| h.compliant);
    let mut by_reason: BTreeMap<&str, Vec<(&Outcome, &Happening)>> = BTreeMap::new();
    for (outcome, happening) in batch.iter().filter(|(_, h)| h.compliant == compliant) {
        by_reason.entry(&happening.reason).or_default().push((outcome, happening));
    }
    let others: Vec<&str> = by_reason.keys().copied().filter(|r| !ORDER.contains(r)).collect();
    let (mut reasons, mut sentences): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for of in ORDER.iter().copied().chain(others) {
        let Some(group) = by_reason.get_mut(of) else { continue };
        group.sort_by(|(a, _), (b, _)| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let mut by_names: BTreeMap<String, Vec<(&Outcome, &Happening)>> = BTreeMap::new();
        for (outcome, happening) in group.iter() {
            let names = if outcome.names.is_empty() { outcome.name.clone() } else { outcome.names.join(", ") };
            by_names.entry(names).or_default().push((outcome, happening));
        }
        if let Some((condition, phrase)) = phrase(of) {
            reasons.push(condition.into());
            sentences.extend(sentence(resource, phrase, &by_names));
        } else {
            reasons.push(of.into());
            sentences.extend(by_names.values().flatten().map(|(_, h)| h.message.clone()));
        }
    }
    Verdict { compliant, reason: reasons.join("; "), message: sentences.join("; ") }
}

fn sentence(resource: &str, phrase: &str, by_names: &BTreeMap<String, Vec<(&Outcome, &Happening)>>) -> Vec<String> {
    // Names that were seen in the same namespaces share a sentence.
    let mut shared: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (names, seen) in by_names {
        let namespaces: BTreeSet<&str> =
            seen.iter().map(|(o, _)| o.namespace.as_str()).filter(|ns| !ns.is_empty()).collect();
        let list: Vec<&str> = namespaces.into_iter().collect();
        let place = match list.as_slice() {
            [] => String::new(),
            [one] => format!(" in namespace {one}"),
            many => format!(" in namespaces: {}", many.join(", ")),
        };
        shared.entry(format!("{phrase}{place}")).or_default().push(names);
    }
    shared
        .into_iter()
        .map(|(ending, names)| {
            let joined = names.join(", ");
            let names = if joined.is_empty() { String::new() } else { format!(" [{joined}]") };
            format!("{resource}{names} {ending}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(namespace: &str, name: &str, happenings: &[(bool, &str)]) -> Outcome {
        Outcome {
            namespace: namespace.into(),
            name: name.into(),
            names: vec![name.into()],
            happenings: happenings.iter().map(|(c, r)| Happening::plain(*c, r)).collect(),
        }
    }
    fn last(outcomes: &[Outcome]) -> Verdict {
        verdict("pods", batches(outcomes).last().unwrap())
    }

    #[test]
    fn one_object() {
        let seen = last(&[outcome("default", "demo", &[(true, reason::FOUND)])]);
        assert_eq!(seen.message, "pods [demo] found as specified in namespace default");
        assert_eq!(seen.reason, "K8s `must have` object already exists");
        let seen = last(&[outcome("", "demo", &[(false, reason::UNWANTED)])]);
        assert_eq!((seen.message.as_str(), seen.compliant), ("pods [demo] found", false));
    }
    #[test]
    fn names_that_share_namespaces_are_one_sentence() {
        let seen = last(&[
            outcome("a", "x", &[(true, reason::FOUND)]),
            outcome("b", "x", &[(true, reason::FOUND)]),
            outcome("a", "y", &[(true, reason::FOUND)]),
            outcome("b", "y", &[(true, reason::FOUND)]),
            outcome("b", "z", &[(true, reason::FOUND)]),
        ]);
        assert_eq!(
            seen.message,
            "pods [z] found as specified in namespace b; pods [x, y] found as specified in namespaces: a, b"
        );
    }
    #[test]
    fn only_violations_are_told_if_there_are_any() {
        let seen = last(&[
            outcome("a", "x", &[(true, reason::FOUND)]),
            outcome("b", "x", &[(false, reason::MISSING)]),
            outcome("c", "x", &[(false, reason::NO_MATCH)]),
        ]);
        assert_eq!(
            seen.message,
            "pods [x] not found in namespace b; pods [x] found but not as specified in namespace c"
        );
        assert_eq!(seen.reason, "K8s does not have a `must have` object; K8s does not have a `must have` object");
    }
    #[test]
    fn errors_speak_for_themselves() {
        let mut bad = outcome("a", "x", &[]);
        bad.happenings = vec![Happening::said(false, reason::CREATE_ERROR, "pods [x] cannot be created")];
        let seen = last(&[bad]);
        assert_eq!((seen.reason.as_str(), seen.message.as_str()), (reason::CREATE_ERROR, "pods [x] cannot be created"));
    }
    #[test]
    fn objects_with_less_to_tell_join_late() {
        let outcomes = [
            outcome("a", "x", &[(false, reason::MISSING), (true, reason::CREATED)]),
            outcome("b", "x", &[(true, reason::FOUND)]),
        ];
        let batches = batches(&outcomes);
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            verdict("pods", &batches[1]).message,
            "pods [x] found as specified in namespace b; pods [x] was created successfully in namespace a"
        );
    }
    #[test]
    fn unnamed_templates_have_no_brackets() {
        let mut none = outcome("a", "", &[(false, reason::MISSING)]);
        none.names = vec![];
        assert_eq!(last(&[none]).message, "pods not found in namespace a");
    }
}
