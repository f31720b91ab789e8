//! Which other policies look at an object, and how. Pure.
use crate::api::{ConfigurationPolicy, ObjectRef, ObjectTemplate, PolicySpec, RelatedObject};
use crate::prune::decide::required;
use crate::prune::needs::listed;
use common::runtime::object::Key;

/// Every other policy that names, selects or matches the object; how, unless it simply requires it.
pub fn references(policies: &[ConfigurationPolicy], object: &ObjectRef, except: &Key) -> Vec<String> {
    let mut found = Vec::new();
    for policy in policies {
        let meta = &policy.metadata;
        let key = Key::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
        let related = policy.status.as_ref().map(|s| s.related_objects.as_slice()).unwrap_or_default();
        let spec = listed(policy);
        let Some(how) = looks_at(&spec, related, object).filter(|_| key != *except) else { continue };
        let going = meta.deletion_timestamp.is_some().then_some("being deleted");
        let notes: Vec<&str> = how.into_iter().chain(going).collect();
        found.push(if notes.is_empty() { key.to_string() } else { format!("{key} ({})", notes.join(", ")) });
    }
    found
}
/// `None`: not at all. `Some(None)`: it requires the object.
#[allow(clippy::option_option)] // not at all, just so, in some way
fn looks_at(spec: &PolicySpec, related: &[RelatedObject], object: &ObjectRef) -> Option<Option<&'static str>> {
    let asks = |spec: &PolicySpec| required(spec, related).iter().any(|wanted| wanted.same(object));
    let enforced = PolicySpec { remediation_action: "enforce".into(), ..spec.clone() };
    let has = |template: &ObjectTemplate| ObjectTemplate { compliance_type: "musthave".into(), ..template.clone() };
    let named = PolicySpec { object_templates: Some(spec.templates().iter().map(has).collect()), ..enforced.clone() };
    let wanted = asks(&enforced);
    let banned = !wanted && asks(&named);
    let listed = related.iter().any(|entry| entry.object.same(object));
    match (wanted, banned, spec.enforces()) {
        (false, false, _) if !listed => None,
        (true, _, true) => Some(None),
        (true, _, false) => Some(Some("inform")),
        (_, true, true) => Some(Some("must not have it")),
        (_, true, false) => Some(Some("inform, must not have it")),
        _ => Some(Some("only matches it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(name: &str, action: &str, kind: &str, child: &str) -> ConfigurationPolicy {
        let definition = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": child, "namespace": "n"}});
        let template = json!({"complianceType": kind, "objectDefinition": definition});
        serde_json::from_value(json!({
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": {"name": name, "namespace": "p"}, "spec": {"remediationAction": action, "object-templates": [template]},
        }))
        .unwrap()
    }

    #[test]
    fn every_policy_that_looks_at_it_is_named_with_how() {
        let mut going = policy("going", "enforce", "musthave", "a");
        going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-16T08:00:00Z")).unwrap();
        let mut matching = policy("matching", "inform", "musthave", "b");
        let related = json!({"relatedObjects": [{"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}}}]});
        matching.status = serde_json::from_value(related).unwrap();
        let all = [
            policy("self", "enforce", "musthave", "a"),
            policy("needs", "enforce", "mustonlyhave", "a"),
            policy("looks", "inform", "musthave", "a"),
            policy("bans", "enforce", "mustnothave", "a"),
            policy("other", "enforce", "musthave", "b"),
            going,
            matching,
        ];
        let found = references(&all, &ObjectRef::new("v1", "Pod", "n", "a"), &Key::new("p", "self"));
        assert_eq!(
            found,
            [
                "p/needs",
                "p/looks (inform)",
                "p/bans (must not have it)",
                "p/going (being deleted)",
                "p/matching (only matches it)"
            ]
        );
    }
}
