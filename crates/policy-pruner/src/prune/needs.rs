//! What a policy requires to be there, as far as that can be told without evaluating it. Pure.
use super::container::Container;
use super::decide::required;
use crate::api::{ConfigurationPolicy, NamespaceSelector, ObjectRef, PolicySpec};
use crate::compare::Compliance;
use crate::evaluate::templates;
use crate::namespaces::{self, Atlas};

/// What a policy requires.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// These, for certain. Those without a namespace are in every one that the selector takes in, unless their kind lives in none.
    pub objects: Vec<ObjectRef>,
    selector: Option<NamespaceSelector>,
    vague: Vec<Vague>,
    /// Namespaces that the status mentions, if it requires more than it names.
    spaces: Vec<String>,
}
/// Objects that only a Go template names.
#[derive(Clone, Debug)]
enum Vague {
    /// Any of this kind, in the namespace that is written there.
    Kind(String, String),
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
        let related = policy.status.as_ref().map(|s| s.related_objects.as_slice()).unwrap_or_default();
        let spaces = || related.iter().map(|entry| entry.object.metadata.namespace.clone()).collect();
        let selector = policy.spec.namespace_selector.clone();
        let Some(spec) = spelled_out(policy) else {
            let text = policy.spec.object_templates_raw.clone().unwrap_or_default();
            return Needs { objects: Vec::new(), selector, vague: vec![Vague::Text(text)], spaces: spaces() };
        };
        let vague = if templates::disabled(policy) { Vec::new() } else { unnamed(&spec) };
        let spaces = if vague.is_empty() { Vec::new() } else { spaces() };
        Needs { objects: required(&spec, related), selector, vague, spaces }
    }
    /// Does the policy's selector take in this namespace? An error says why that cannot be told.
    pub fn takes_in(&self, namespace: &str, atlas: &dyn Atlas) -> Result<bool, String> {
        namespaces::takes_in(self.selector.as_ref(), namespace, atlas)
    }
    /// Does it require more than it names?
    pub fn is_vague(&self) -> bool {
        !self.vague.is_empty()
    }
    /// May it require this object, too? Only a template could tell.
    pub fn may_mean(&self, object: &ObjectRef) -> bool {
        self.may_mean_kind(&object.kind)
    }
    fn may_mean_kind(&self, wanted: &str) -> bool {
        self.vague.iter().any(|vague| match vague {
            Vague::Kind(kind, _) => is_template(kind) || kind == wanted,
            Vague::Text(text) => {
                let open = text.lines().any(|line| line.contains("kind:") && is_template(line));
                open || text.split(|c: char| !c.is_alphanumeric()).any(|word| word == wanted)
            }
        })
    }
    /// May something that it requires be in there? A namespace is held only if there is a sign of it: its name, the status, a
    /// namespace that a template names, or the selector. Else one policy would hold every namespace of the cluster.
    pub fn may_be_in(&self, container: &Container, atlas: &dyn Atlas) -> bool {
        let name = match container {
            Container::Kind { kind, .. } => return self.may_mean_kind(kind),
            Container::Namespace(name) => name,
        };
        let selected = || self.takes_in(name, atlas).unwrap_or(true);
        let told = self.vague.iter().any(|vague| match vague {
            Vague::Kind(_, namespace) if namespace.is_empty() => selected(),
            Vague::Kind(_, namespace) => is_template(namespace) || namespace == name,
            Vague::Text(text) => {
                let mut written = text.lines().flat_map(|line| line.split("namespace:").skip(1));
                // In `{namespace: n, name: {{ x }}}` only the name is a template.
                let open = written.any(|value| value.split(',').next().is_some_and(is_template));
                let word = |word: &str| word == name;
                open || text.split(|c: char| !c.is_alphanumeric() && c != '-').any(word) || selected()
            }
        });
        told || self.spaces.contains(name)
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
        let [name, namespace] =
            ["name", "namespace"].map(|part| definition["metadata"][part].as_str().unwrap_or_default());
        if [kind, name, namespace].into_iter().any(is_template) {
            vague.push(Vague::Kind(kind.to_owned(), namespace.to_owned()));
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
    #[test]
    fn what_only_a_template_names_may_be_in_what_there_is_a_sign_of() {
        let shop = Container::Namespace("shop".into());
        let pods = Container::Kind { group: String::new(), kind: "Pod".into() };
        let raw = |place: &str| {
            let text = format!(
                "{{{{ range list }}}}\n- objectDefinition: {{kind: Pod, metadata: {{{place}}}}}\n{{{{ end }}}}\n"
            );
            policy(&json!({ "object-templates-raw": text }))
        };
        for (place, held) in [
            ("namespace: shop, name: {{ x }}", true),
            ("namespace: '{{ x }}'", true),
            ("namespace: shop-{{ x }}", true),
            ("namespace: other, name: {{ x }}", false),
            ("namespace: shop-2, name: {{ x }}", false),
            ("name: {{ x }}", false),
        ] {
            let needs = Needs::of(&raw(place));
            assert_eq!(needs.may_be_in(&shop, &Vec::new()), held, "{place}");
            assert!(needs.may_be_in(&pods, &Vec::new()), "its kind is mentioned");
        }
        // The status tells where a selector of namespaces led to.
        let mut policy = raw("name: {{ x }}");
        let related =
            json!([{"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}}}]);
        policy.status = serde_json::from_value(json!({ "relatedObjects": related })).unwrap();
        assert!(Needs::of(&policy).may_be_in(&shop, &Vec::new()));
        let definition = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "{{ x }}"}});
        let listed = json!({"object-templates": [{"complianceType": "musthave", "objectDefinition": definition}]});
        assert!(Needs::of(&self::policy(&listed)).may_be_in(&shop, &Vec::new()));
        // So does the selector itself, before there is a status.
        for (include, held) in [("sho*", true), ("other", false)] {
            let mut policy = raw("name: {{ x }}");
            policy.spec.namespace_selector = serde_json::from_value(json!({ "include": [include] })).unwrap();
            assert_eq!(Needs::of(&policy).may_be_in(&shop, &Vec::new()), held, "{include}");
        }
    }
}
