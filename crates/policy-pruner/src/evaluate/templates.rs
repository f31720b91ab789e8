//! The object templates of a policy, ready to be evaluated: raw text parsed, encrypted values opened, what cannot be
//! resolved here told.
use crate::api::{ConfigurationPolicy, ObjectTemplate};
use crate::encryption;
use crate::message::Verdict;
use crate::names::{self, reason};
use serde_json::Value;

/// A template, and whether it has something to hide.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// The template.
    pub template: ObjectTemplate,
    /// It was decrypted: its differences are not shown.
    pub sensitive: bool,
    /// It cannot be resolved here, and why.
    pub unresolved: Option<String>,
}

/// The policy as a whole cannot be evaluated.
pub fn refused(reason: &str, message: impl Into<String>) -> Verdict {
    Verdict { compliant: false, reason: reason.into(), message: message.into() }
}

/// `{{` asks for a template language that is not served here.
const GO_TEMPLATES: &str = "Go templates are not supported by this controller; resolve them before, or set the annotation policy.open-cluster-management.io/disable-templates if the text is meant as it is";

/// Are templates switched off?
pub fn disabled(policy: &ConfigurationPolicy) -> bool {
    let annotation = policy.metadata.annotations.as_ref().and_then(|a| a.get(names::DISABLE_TEMPLATES));
    annotation.is_some_and(|text| matches!(text.as_str(), "1" | "t" | "T" | "TRUE" | "true" | "True"))
}

/// Does the spec ask for values of the hub?
pub fn has_hub_templates(policy: &ConfigurationPolicy) -> bool {
    serde_json::to_value(&policy.spec).is_ok_and(|spec| contains(&spec, "{{hub"))
}
/// Is anything encrypted?
pub fn is_encrypted(policy: &ConfigurationPolicy) -> bool {
    let raw = policy.spec.object_templates_raw.as_deref().is_some_and(|raw| raw.contains(encryption::PREFIX));
    raw || policy.spec.templates().iter().any(|t| encryption::is_encrypted(&t.object_definition))
}

fn contains(value: &Value, what: &str) -> bool {
    match value {
        Value::String(text) => text.contains(what),
        Value::Array(items) => items.iter().any(|item| contains(item, what)),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains(what) || contains(value, what)),
        _ => false,
    }
}

/// All templates. The error concerns the whole policy.
pub fn ready(policy: &ConfigurationPolicy, keys: Option<&encryption::Keys>) -> Result<Vec<Ready>, Verdict> {
    let plain = disabled(policy);
    let listed: Vec<ObjectTemplate> = match policy.spec.object_templates_raw.as_deref() {
        None => policy.spec.templates().to_vec(),
        Some(raw) => {
            if !plain && raw.contains("{{") {
                return Err(refused(reason::TEMPLATE, GO_TEMPLATES));
            }
            parse_raw(raw, if plain { None } else { keys })?
        }
    };
    listed.into_iter().map(|template| Ok(resolve(template, plain, keys))).collect()
}

fn parse_raw(raw: &str, keys: Option<&encryption::Keys>) -> Result<Vec<ObjectTemplate>, Verdict> {
    let wrong = |why: String| refused(reason::TEMPLATE, format!("Error parsing object-templates-raw YAML: {why}"));
    let mut value: Value = serde_saphyr::from_str(raw).map_err(|e| wrong(e.to_string()))?;
    if let Some(keys) = keys {
        keys.decrypt(&mut value).map_err(wrong)?;
    }
    if value.is_null() {
        return Ok(Vec::new());
    }
    serde_json::from_value(value).map_err(|e| wrong(e.to_string()))
}

fn resolve(mut template: ObjectTemplate, plain: bool, keys: Option<&encryption::Keys>) -> Ready {
    if plain {
        return Ready { template, sensitive: false, unresolved: None };
    }
    let mut sensitive = false;
    let mut unresolved = None;
    if encryption::is_encrypted(&template.object_definition) {
        sensitive = true;
        match keys {
            Some(keys) => unresolved = keys.decrypt(&mut template.object_definition).err(),
            None => unresolved = Some("the encryption key is not known".into()),
        }
    }
    if contains(&template.object_definition, "{{") {
        unresolved = Some(GO_TEMPLATES.into());
    }
    Ready { template, sensitive, unresolved }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PolicySpec;
    use serde_json::json;

    fn policy(spec: Value) -> ConfigurationPolicy {
        ConfigurationPolicy::new("p", serde_json::from_value::<PolicySpec>(spec).unwrap())
    }
    fn template(definition: &Value) -> Value {
        json!({"complianceType": "musthave", "objectDefinition": definition})
    }

    #[test]
    fn raw_text_is_a_list_of_templates() {
        let raw = "- complianceType: musthave\n  objectDefinition:\n    kind: Pod\n    apiVersion: v1\n";
        let found = ready(&policy(json!({"object-templates-raw": raw})), None).unwrap();
        assert_eq!((found.len(), &found[0].template.object_definition["kind"]), (1, &json!("Pod")));
        assert!(ready(&policy(json!({"object-templates-raw": "[]"})), None).unwrap().is_empty());
        assert!(ready(&policy(json!({"object-templates-raw": ""})), None).unwrap().is_empty());
        let wrong = ready(&policy(json!({"object-templates-raw": "a: [b"})), None).unwrap_err();
        assert!(wrong.message.starts_with("Error parsing object-templates-raw YAML: "), "{wrong:?}");
        assert!(ready(&policy(json!({"object-templates-raw": "{{ range }}"})), None).is_err());
    }
    #[test]
    fn go_templates_are_told_and_can_be_switched_off() {
        let mut asked =
            policy(json!({"object-templates": [template(&json!({"a": "{{ x }}"})), template(&json!({"a": "b"}))]}));
        let found = ready(&asked, None).unwrap();
        assert!(found[0].unresolved.is_some() && found[1].unresolved.is_none());
        asked.metadata.annotations = Some([(names::DISABLE_TEMPLATES.to_owned(), "true".to_owned())].into());
        assert!(ready(&asked, None).unwrap()[0].unresolved.is_none());
        asked.metadata.annotations = Some([(names::DISABLE_TEMPLATES.to_owned(), "maybe".to_owned())].into());
        assert!(ready(&asked, None).unwrap()[0].unresolved.is_some());
    }
    #[test]
    fn hub_templates_are_noticed_anywhere() {
        assert!(has_hub_templates(&policy(json!({"object-templates": [template(&json!({"a": ["{{hub x hub}}"]}))]}))));
        assert!(has_hub_templates(&policy(
            json!({"object-templates": [], "namespaceSelector": {"include": ["{{hub x hub}}"]}})
        )));
        assert!(!has_hub_templates(&policy(json!({"object-templates": [template(&json!({"a": "{{ x }}"}))]}))));
    }
}
