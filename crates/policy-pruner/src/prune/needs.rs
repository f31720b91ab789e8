//! What a policy requires to be there, as far as that can be told without evaluating it. Pure.
use super::decide::required;
use crate::api::{ConfigurationPolicy, ObjectRef, PolicySpec};
use crate::compare::Compliance;
use crate::evaluate::templates;

/// What a policy requires.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// These, for certain.
    pub objects: Vec<ObjectRef>,
    vague: Vec<Vague>,
}
/// Objects that only a Go template names.
#[derive(Clone, Debug)]
enum Vague {
    /// Any of this kind.
    Kind(String),
    /// Any of a kind that is mentioned in this text.
    Text(String),
}

/// The spec as if the text of `object-templates-raw` stood in `object-templates`; `None` if it cannot be read.
fn spelled_out(policy: &ConfigurationPolicy) -> Option<PolicySpec> {
    if policy.spec.object_templates_raw.is_none() {
        return Some(policy.spec.clone());
    }
    // Encrypted values are left as they are: they name nothing.
    let ready = templates::ready(policy, None).ok()?;
    let listed = ready.into_iter().map(|ready| ready.template).collect();
    Some(PolicySpec { object_templates: Some(listed), object_templates_raw: None, ..policy.spec.clone() })
}

/// The spec with its templates in a list, as far as they can be read: pruning judges by it.
pub fn listed(policy: &ConfigurationPolicy) -> PolicySpec {
    spelled_out(policy).unwrap_or_else(|| policy.spec.clone())
}

impl Needs {
    /// Of a policy. One that is not enforced requires nothing.
    pub fn of(policy: &ConfigurationPolicy) -> Self {
        if !policy.spec.enforces() {
            return Needs::default();
        }
        let Some(spec) = spelled_out(policy) else {
            let text = policy.spec.object_templates_raw.clone().unwrap_or_default();
            return Needs { objects: Vec::new(), vague: vec![Vague::Text(text)] };
        };
        let related = policy.status.as_ref().map(|s| s.related_objects.as_slice()).unwrap_or_default();
        let vague = if templates::disabled(policy) { Vec::new() } else { unnamed(&spec) };
        Needs { objects: required(&spec, related), vague }
    }
    /// Does it require more than it names?
    pub fn is_vague(&self) -> bool {
        !self.vague.is_empty()
    }
    /// May it require this object, too? Only a template could tell.
    pub fn may_mean(&self, object: &ObjectRef) -> bool {
        self.vague.iter().any(|vague| match vague {
            Vague::Kind(kind) => is_template(kind) || *kind == object.kind,
            Vague::Text(text) => {
                let open = text.lines().any(|line| line.contains("kind:") && is_template(line));
                open || text.split(|c: char| !c.is_alphanumeric()).any(|word| word == object.kind)
            }
        })
    }
}
fn is_template(text: &str) -> bool {
    text.contains("{{")
}
fn unnamed(spec: &PolicySpec) -> Vec<Vague> {
    let wanted = spec.templates().iter().filter(|template| template.compliance() != Compliance::MustNotHave);
    let mut vague = Vec::new();
    for definition in wanted.map(|template| &template.object_definition) {
        let kind = definition["kind"].as_str().unwrap_or_default();
        let place = [&definition["metadata"]["name"], &definition["metadata"]["namespace"]];
        if is_template(kind) || place.into_iter().any(|part| part.as_str().is_some_and(is_template)) {
            vague.push(Vague::Kind(kind.to_owned()));
        }
    }
    vague
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn policy(spec: &Value) -> ConfigurationPolicy {
        let mut policy = ConfigurationPolicy::new("p", serde_json::from_value(spec.clone()).unwrap());
        policy.spec.remediation_action = "enforce".into();
        policy
    }
    fn pod(name: &str) -> ObjectRef {
        ObjectRef::new("v1", "Pod", "n", name)
    }
    fn requires(needs: &Needs, object: &ObjectRef) -> bool {
        needs.objects.iter().any(|wanted| wanted.same(object))
    }

    #[test]
    fn raw_text_requires_as_a_list_does() {
        let raw = "- complianceType: musthave\n  objectDefinition:\n    kind: Pod\n    apiVersion: v1\n    metadata: {name: a, namespace: 'n'}\n";
        let mut policy = policy(&json!({"object-templates-raw": raw}));
        let needs = Needs::of(&policy);
        assert!(requires(&needs, &pod("a")) && !requires(&needs, &pod("b")) && !needs.may_mean(&pod("b")));
        policy.spec.remediation_action = "inform".into();
        assert!(Needs::of(&policy).objects.is_empty());
    }
    #[test]
    fn what_only_a_template_names_may_be_anything_of_its_kind() {
        let raw = "{{ range $x := list }}\n- objectDefinition:\n    kind: Pod\n{{ end }}\n";
        let needs = Needs::of(&policy(&json!({"object-templates-raw": raw})));
        let role = ObjectRef::new("rbac.authorization.k8s.io/v1", "Role", "n", "a");
        assert!(needs.may_mean(&pod("a")) && !needs.may_mean(&role));
        let open = Needs::of(&policy(&json!({"object-templates-raw": "- objectDefinition: {kind: {{ k }}"})));
        assert!(open.may_mean(&role));
        let listed = |name: &str, data: &str| {
            let definition =
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"a": data}});
            Needs::of(&policy(
                &json!({"object-templates": [{"complianceType": "musthave", "objectDefinition": definition}]}),
            ))
        };
        assert!(listed("{{ x }}", "1").may_mean(&pod("a")) && !listed("{{ x }}", "1").may_mean(&role));
        assert!(!listed("b", "{{ x }}").may_mean(&pod("a")), "its name is known");
    }
}
