//! One case as it is written down.
use serde::Deserialize;
use serde_json::Value;

/// Given, when, then.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// What it shows.
    pub(crate) name: String,
    /// Objects that are there before.
    #[serde(default)]
    pub(crate) given: Vec<Value>,
    /// The spec of the policy.
    pub(crate) policy: Value,
    /// Annotations of the policy.
    #[serde(default)]
    pub(crate) annotations: Option<Value>,
    /// What is expected then.
    pub(crate) then: Then,
    /// And so on.
    #[serde(default)]
    pub(crate) next: Vec<Step>,
}
/// Something is done, something is expected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) when: When,
    pub(crate) then: Then,
}
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct When {
    pub(crate) create: Vec<Value>,
    pub(crate) delete: Vec<Value>,
    /// Merge patches: objects with the changed fields only.
    pub(crate) change: Vec<Value>,
    /// A merge patch of the policy's spec.
    pub(crate) edit: Option<Value>,
    pub(crate) delete_policy: bool,
}
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Then {
    /// Overall state.
    pub(crate) state: Option<String>,
    /// Message of each template; a leading `~` asks for a part of it only.
    pub(crate) messages: Vec<String>,
    /// Reason of each template's condition.
    pub(crate) reasons: Vec<String>,
    /// What was told last of the policy as a whole, in the newest entry of its history; a leading `~` asks for a part of it only.
    pub(crate) told: Option<String>,
    /// Names of related objects, exactly; `name*` if created by the policy.
    pub(crate) related: Option<Vec<String>>,
    /// Parts of the difference of the first related object that has one; an empty list says that none is shown.
    pub(crate) diff: Option<Vec<String>>,
    /// Objects that must be there, with at least these fields, and without those that are `null`.
    pub(crate) there: Vec<Value>,
    /// Objects that must not be there.
    pub(crate) absent: Vec<Value>,
    /// The policy itself is gone.
    pub(crate) gone: bool,
}

/// One row of a table: a template against a live object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// `spec` of the live object.
    pub(crate) live: Value,
    /// `spec` of the template.
    pub(crate) want: Value,
    /// Compared exactly?
    #[serde(default)]
    pub(crate) only: bool,
    /// Is that compliant?
    pub(crate) fits: bool,
    /// `spec` after it was enforced, where that is not the live one.
    #[serde(default)]
    pub(crate) after: Option<Value>,
}

/// Puts names in: `$N` is the case's own, `$NS` the namespace.
pub(crate) fn named(text: &str, number: usize, namespace: &str) -> String {
    text.replace("$NS", namespace).replace("$N", &format!("c{number:03}"))
}
