//! The custom resource: what a person writes down, and what is shown back. Nothing else lives here.
//!
//! Enumerations are kept as text: an object may be older than the schema, and one odd word must not hide the rest.
// The schema derive repeats each struct inside a function, where `pub` reaches nobody.
#![allow(unreachable_pub)]
use crate::compare::Compliance;
use crate::text::duration::Interval;
use crate::text::selector::Expression;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What the objects of a cluster should look like, and what to do when they do not.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "policy.open-cluster-management.io",
    version = "v1",
    kind = "ConfigurationPolicy",
    plural = "configurationpolicies",
    singular = "configurationpolicy",
    namespaced,
    status = "PolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A ConfigurationPolicy says which objects a cluster must have, must exactly have, or must not have.",
    label("policy.open-cluster-management.io/policy-type", "template"),
    printcolumn(name = "Compliance state", type_ = "string", json_path = ".status.compliant")
)]
#[serde(rename_all = "camelCase")]
pub struct PolicySpec {
    /// Go templates for messages about this policy; the default message is used where one is empty.
    #[serde(default, skip_serializing_if = "CustomMessage::is_empty")]
    pub custom_message: CustomMessage,
    /// How often the policy is evaluated in each of its states.
    #[serde(default, skip_serializing_if = "EvaluationInterval::is_empty")]
    pub evaluation_interval: EvaluationInterval,
    /// Namespaces for namespaced objects whose definition names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// Object definitions and how they are compared. Exactly one of object-templates and object-templates-raw is set.
    #[serde(default, rename = "object-templates", skip_serializing_if = "Option::is_none")]
    pub object_templates: Option<Vec<ObjectTemplate>>,
    /// The same list as one text, for templates that produce several entries.
    #[serde(default, rename = "object-templates-raw", skip_serializing_if = "Option::is_none")]
    pub object_templates_raw: Option<String>,
    /// What happens to objects of this policy when it is deleted or no longer asks for them. Only with enforce.
    #[serde(default = "none", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["DeleteAll", "DeleteIfCreated", "None"]))]
    pub prune_object_behavior: String,
    /// Only report (inform), or also mend (enforce).
    #[serde(default = "inform")]
    #[schemars(extend("enum" = ["Inform", "inform", "Enforce", "enforce"]))]
    pub remediation_action: String,
    /// How bad a violation is. Shown, never acted on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["low", "Low", "medium", "Medium", "high", "High", "critical", "Critical"]))]
    pub severity: String,
}
fn none() -> String {
    "None".into()
}
fn inform() -> String {
    "inform".into()
}
/// What becomes of a policy's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// They stay.
    None,
    /// Those it created go.
    IfCreated,
    /// All go.
    All,
}
impl PolicySpec {
    /// Mend, not only report.
    pub fn enforces(&self) -> bool {
        self.remediation_action.eq_ignore_ascii_case("enforce")
    }
    /// What becomes of the objects.
    pub fn prune(&self) -> Prune {
        match self.prune_object_behavior.as_str() {
            "DeleteAll" => Prune::All,
            "DeleteIfCreated" => Prune::IfCreated,
            _ => Prune::None,
        }
    }
    /// How often this policy is evaluated in a state.
    pub fn interval(&self, compliant: bool) -> Interval {
        let EvaluationInterval { compliant: yes, noncompliant: no } = &self.evaluation_interval;
        Interval::parse(if compliant { yes } else { no })
    }
    /// The templates, where they are not one text.
    pub fn templates(&self) -> &[ObjectTemplate] {
        self.object_templates.as_deref().unwrap_or_default()
    }
}

/// Messages in a person's own words.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomMessage {
    /// Used when the policy is compliant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// Used when the policy is not compliant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub noncompliant: String,
}
impl CustomMessage {
    fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// How often a policy is evaluated.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct EvaluationInterval {
    /// While compliant: a duration, `watch` (the default) or `never`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = INTERVAL))]
    pub compliant: String,
    /// While not compliant: a duration, `watch` (the default) or `never`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = INTERVAL))]
    pub noncompliant: String,
}
const INTERVAL: &str = "^(?:(?:(?:[0-9]+(?:.[0-9])?)(?:h|m|s|(?:ms)|(?:us)|(?:ns)))|never|watch)+$";
impl EvaluationInterval {
    fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// Which namespaces.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Patterns of names to leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1)))]
    pub exclude: Vec<String>,
    /// Patterns of names to take in; without any, and with labels or expressions, every name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1)))]
    pub include: Vec<String>,
    /// Requirements on labels of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_expressions: Option<Vec<Expression>>,
    /// Labels the namespace must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Whether terminating namespaces count: IfMatch, Never, or Default for what the controller was told.
    #[serde(default = "default_word")]
    #[schemars(extend("enum" = ["IfMatch", "Never", "Default"]))]
    pub terminating_inclusion: String,
}
fn default_word() -> String {
    "Default".into()
}

/// One object definition and how it is compared.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ObjectTemplate {
    /// Must have, must only have, or must not have.
    #[schemars(extend("enum" = ["MustHave", "Musthave", "musthave", "MustOnlyHave", "Mustonlyhave", "mustonlyhave", "MustNotHave", "Mustnothave", "mustnothave"]))]
    pub compliance_type: String,
    /// How labels and annotations are compared, if not as the rest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["MustHave", "Musthave", "musthave", "MustOnlyHave", "Mustonlyhave", "mustonlyhave"]))]
    pub metadata_compliance_type: String,
    /// The object, whole or in part.
    #[schemars(schema_with = "any_object")]
    pub object_definition: Value,
    /// Objects by label, for definitions that name none. Each becomes one object of this template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<ObjectSelector>,
    /// Where the difference of an object that is not as specified is shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Log", "InStatus", "None"]))]
    pub record_diff: String,
    /// Whether an object that cannot be changed is deleted and created anew.
    #[serde(default = "none")]
    #[schemars(extend("enum" = ["None", "IfRequired", "Always"]))]
    pub recreate_option: String,
}
fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
/// Labels of objects.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSelector {
    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
    /// Labels the object must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}
impl ObjectTemplate {
    /// How it is compared; what cannot be read asks for the least.
    pub fn compliance(&self) -> Compliance {
        Compliance::parse(&self.compliance_type).unwrap_or(Compliance::MustHave)
    }
    /// How its metadata is compared, if not alike.
    pub fn metadata_compliance(&self) -> Option<Compliance> {
        Compliance::parse(&self.metadata_compliance_type)
    }
}

/// What a policy came to.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// One entry per object template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compliancy_details: Vec<TemplateStatus>,
    /// Compliant, NonCompliant, Pending or Terminating.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Compliant", "Pending", "NonCompliant", "Terminating"]))]
    pub compliant: String,
    /// The last messages, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// When the policy was last evaluated, UTC.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_evaluated: String,
    /// Which generation was evaluated then.
    #[serde(default)]
    pub last_evaluated_generation: i64,
    /// The objects this policy looks at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<RelatedObject>,
}
/// What one object template came to.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateStatus {
    /// Compliant, NonCompliant, Pending or Terminating.
    #[serde(default, rename = "Compliant", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Compliant", "Pending", "NonCompliant", "Terminating"]))]
    pub compliant: String,
    /// Not used.
    #[serde(default, rename = "Validity")]
    pub validity: Validity,
    /// Exactly one.
    #[serde(default)]
    pub conditions: Vec<TemplateCondition>,
}
/// Not used; older tools read it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// Not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
}
/// A condition of a template.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TemplateCondition {
    /// When type, reason or message changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Always True.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// notification or violation.
    #[serde(rename = "type")]
    pub kind: String,
}
/// One message.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_timestamp: Option<String>,
    /// What.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
/// An object that a policy looks at.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct RelatedObject {
    /// Whether it is as it should be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// Which object.
    #[serde(default)]
    pub object: ObjectRef,
    /// What is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<Properties>,
    /// Why it is as it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
/// Names one object.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name and namespace.
    #[serde(default)]
    pub metadata: ObjectName,
}
/// Name and namespace.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Name; a dash where none was found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace; empty for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}
impl ObjectRef {
    /// An object.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let metadata = ObjectName { name: name.into(), namespace: namespace.into() };
        ObjectRef { api_version: api_version.into(), kind: kind.into(), metadata }
    }
    /// The group, without its version.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
    /// The same object, whatever version it is read in?
    pub fn same(&self, other: &ObjectRef) -> bool {
        self.group() == other.group() && self.kind == other.kind && self.metadata == other.metadata
    }
    /// `/v1, Kind=Pod "x" in namespace n`.
    pub fn describe(&self) -> String {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", &self.api_version));
        let ObjectName { name, namespace } = &self.metadata;
        format!("{group}/{version}, Kind={} {name:?} in namespace {namespace}", self.kind)
    }
}
/// What is known of an object.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Properties {
    /// Whether this policy created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by_policy: Option<bool>,
    /// How it differs from what is asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// It differed at first sight, and a dry run showed that it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub matches_after_dry_run: bool,
    /// Its uid when it was created, or first seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_seeds_example_reads() {
        let spec: PolicySpec = serde_json::from_value(json!({
            "namespaceSelector": {"exclude": ["kube-*"], "include": ["default"]},
            "object-templates": [{"complianceType": "musthave", "objectDefinition": {"apiVersion": "v1", "kind": "Pod"}}],
            "remediationAction": "enforce", "severity": "low", "pruneObjectBehavior": "DeleteIfCreated"
        }))
        .unwrap();
        assert!(spec.enforces() && spec.prune() == Prune::IfCreated);
        assert_eq!(spec.templates()[0].compliance(), Compliance::MustHave);
        assert_eq!(spec.templates()[0].recreate_option, "None");
        assert_eq!(spec.interval(true), Interval::Watch);
    }
    #[test]
    fn pruning_is_opt_in() {
        let spec: PolicySpec = serde_json::from_value(json!({"object-templates": []})).unwrap();
        assert!(!spec.enforces() && spec.prune() == Prune::None);
        let odd = PolicySpec { prune_object_behavior: "deleteall".into(), ..spec };
        assert_eq!(odd.prune(), Prune::None, "an odd word never deletes");
    }
    #[test]
    fn objects_are_the_same_in_every_version() {
        let (a, b) = (ObjectRef::new("apps/v1", "X", "n", "x"), ObjectRef::new("apps/v1beta1", "X", "n", "x"));
        assert!(a.same(&b) && !a.same(&ObjectRef::new("v1", "X", "n", "x")));
        assert_eq!(ObjectRef::new("v1", "Pod", "n", "x").describe(), "/v1, Kind=Pod \"x\" in namespace n");
        assert_eq!(a.describe(), "apps/v1, Kind=X \"x\" in namespace n");
    }
}
