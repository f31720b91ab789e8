//! The object templates of a policy, ready to be evaluated: raw text parsed, encrypted values opened, what cannot be
//! resolved here told.
use crate::api::{ConfigurationPolicy, ObjectTemplate};
use crate::cluster::wire::Trouble;
use crate::encryption;
use crate::message::Verdict;
use crate::names::{self, reason};
use serde_json::Value;

/// A template, and whether it has something to hide.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// The template.
    pub template: ObjectTemplate,
    /// It was decrypted: its differences are not shown, nor texts that may quote it.
    pub sensitive: bool,
    /// It cannot be resolved here, and why.
    pub unresolved: Option<String>,
}
/// Said instead of a text that may quote decrypted values.
const HIDDEN: &str =
    "not shown, it may quote decrypted values; set spec[\"object-templates\"][].recordDiff to \"InStatus\" to see it";
impl Ready {
    /// A text about an object of this template, as far as people may see it.
    pub fn shown(&self, text: String) -> String {
        // Whoever wants differences in the status has accepted that they may hold secrets.
        if self.sensitive && self.template.record_diff != "InStatus" { HIDDEN.to_owned() } else { text }
    }
    /// What the API server says about such an object, as far as people may see it: it quotes what it refuses.
    pub fn told(&self, trouble: &Trouble) -> String {
        let Trouble { code, reason, message, .. } = trouble;
        // Our own words, or a right that is missing: found out before anybody looks at values.
        let harmless = *code == 0 || (*code == 403 && message.contains(" is forbidden: User \""));
        let shown = self.shown(message.clone());
        if harmless || shown == *message { message.clone() } else { format!("{code} {reason}: {shown}") }
    }
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
    let Some(raw) = policy.spec.object_templates_raw.as_deref() else {
        return Ok(policy.spec.templates().iter().map(|template| resolve(template.clone(), plain, keys)).collect());
    };
    if !plain && raw.contains("{{") {
        return Err(refused(reason::TEMPLATE, GO_TEMPLATES));
    }
    let wrong = |why: String| refused(reason::TEMPLATE, format!("Error parsing object-templates-raw YAML: {why}"));
    let mut value: Value = serde_saphyr::from_str(raw).map_err(|e| wrong(e.to_string()))?;
    if value.is_null() {
        return Ok(Vec::new());
    }
    // Before anything is opened: this error may quote values.
    let listed: Vec<ObjectTemplate> = serde_json::from_value(value.clone()).map_err(|e| wrong(e.to_string()))?;
    let Some(keys) = keys.filter(|_| !plain && raw.contains(encryption::PREFIX)) else {
        return Ok(listed.into_iter().map(|template| resolve(template, plain, keys)).collect());
    };
    keys.decrypt(&mut value).map_err(wrong)?;
    let opened: Vec<ObjectTemplate> = serde_json::from_value(value)
        .map_err(|_| wrong("once decrypted, it is not a list of object templates".to_owned()))?;
    // One text: where in it the secrets were is not told apart.
    Ok(opened.into_iter().map(|template| checked(template, true)).collect())
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
    let checked = checked(template, sensitive);
    Ready { unresolved: checked.unresolved.or(unresolved), ..checked }
}
/// Nothing is left to open.
fn checked(template: ObjectTemplate, sensitive: bool) -> Ready {
    let unresolved = contains(&template.object_definition, "{{").then(|| GO_TEMPLATES.to_owned());
    Ready { template, sensitive, unresolved }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PolicySpec;
    use crate::encryption::Keys;
    use crate::encryption::tests::{seal, secret, vector};
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
    fn decrypted_raw_text_is_as_secret_as_a_decrypted_definition() {
        let seal = |text: &str| seal(&[1; 32], text);
        let keys = Keys::read(&secret(&[1; 32], None), &vector()).unwrap();
        let read = |raw: String| ready(&policy(json!({ "object-templates-raw": raw })), Some(&keys));
        let one = |kind: &str, a: String| {
            format!("- {{complianceType: musthave, objectDefinition: {{apiVersion: v1, kind: {kind}, a: '{a}'}}}}\n")
        };
        let found = read(one("Pod", seal("raleigh")) + &one("Role", "plain".into())).unwrap();
        assert_eq!(found[0].template.object_definition["a"], "raleigh");
        assert!(found.iter().all(|ready| ready.sensitive && ready.unresolved.is_none()), "{found:?}");
        assert!(!read(one("Pod", "plain".into())).unwrap()[0].sensitive);
        // What is encrypted inside of what is encrypted stays as it is.
        let twice = read(one("Pod", seal(&format!("{}cary", encryption::PREFIX)))).unwrap();
        assert_eq!((twice[0].sensitive, &twice[0].unresolved), (true, &None));
        for raw in [seal("raleigh"), format!("- {}", seal("raleigh")), format!("{{a: '{}'}}", seal("raleigh"))] {
            let wrong = read(raw).unwrap_err();
            assert!(!wrong.message.contains("raleigh"), "{wrong:?}");
        }
    }
    #[test]
    fn what_the_api_server_says_of_decrypted_values_is_not_repeated() {
        let trouble = Trouble {
            code: 422,
            reason: "Invalid".into(),
            message: "spec.a: Invalid value: \"raleigh\"".into(),
            ..Trouble::default()
        };
        let mut ready = checked(ObjectTemplate::default(), true);
        assert!(ready.told(&trouble).starts_with("422 Invalid: not shown"), "{}", ready.told(&trouble));
        assert_eq!(ready.told(&Trouble::silent("no reply in time")), "no reply in time");
        let right = "pods is forbidden: User \"u\" cannot create resource \"pods\"";
        let denied = |message: &str| Trouble { code: 403, message: message.into(), ..trouble.clone() };
        assert_eq!(ready.told(&denied(right)), right, "a missing right is named");
        assert!(!ready.told(&denied("admission webhook \"w\" denied the request: raleigh")).contains("raleigh"));
        ready.template.record_diff = "InStatus".into();
        assert!(ready.told(&trouble).contains("raleigh"), "as asked for");
        assert!(checked(ObjectTemplate::default(), false).told(&trouble).contains("raleigh"));
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
