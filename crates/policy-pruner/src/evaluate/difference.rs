//! What is shown of the difference between an object and what is asked for, and where.
use super::templates::Ready;
use crate::text::{diff, yaml};
use serde_json::Value;

/// Said instead of a difference that holds secrets.
pub const REDACTED: &str = "# The difference is redacted because it contains sensitive data. To override, the spec[\"object-templates\"][].recordDiff field must be set to \"InStatus\" for the difference to be recorded in the policy status. Consider existing access to the ConfigurationPolicy objects and the etcd encryption configuration before you proceed with an override.";

/// Where a difference goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into the status.
    Status,
    /// Into the log.
    Log,
    /// Nowhere.
    None,
    /// Not shown: it may hold secrets.
    Redacted,
}

/// Where the difference of this template's objects goes.
pub fn place(ready: &Ready) -> Place {
    match ready.template.record_diff.as_str() {
        "Log" => Place::Log,
        "InStatus" => Place::Status,
        "None" => Place::None,
        _ if ready.sensitive || is_sensitive(&ready.template.object_definition) => Place::Redacted,
        _ => Place::Status,
    }
}
fn is_sensitive(definition: &Value) -> bool {
    let text = |field: &str| definition[field].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    matches!(
        (group, text("kind")),
        ("", "ConfigMap" | "Secret")
            | ("oauth.openshift.io", "OAuthAccessToken" | "OAuthAuthorizeTokens" | "OAuthAuthorizeToken")
            | ("route.openshift.io", "Route")
    )
}

/// The difference as text. Both objects are stripped already.
pub fn text(existing: &Value, updated: &Value) -> String {
    let metadata = &existing["metadata"];
    let part = |field: &str| metadata[field].as_str().unwrap_or_default();
    let name = if part("namespace").is_empty() {
        part("name").to_owned()
    } else {
        format!("{}/{}", part("namespace"), part("name"))
    };
    diff::unified(&name, &yaml::to_yaml(existing), &yaml::to_yaml(updated))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ObjectTemplate;
    use serde_json::json;

    fn ready(definition: Value, record: &str, sensitive: bool) -> Ready {
        let template =
            ObjectTemplate { object_definition: definition, record_diff: record.into(), ..ObjectTemplate::default() };
        Ready { template, sensitive, unresolved: None }
    }

    #[test]
    fn secrets_are_not_shown_unless_asked_for() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret"});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"});
        assert_eq!(place(&ready(secret.clone(), "", false)), Place::Redacted);
        assert_eq!(place(&ready(secret, "InStatus", false)), Place::Status);
        assert_eq!(place(&ready(role.clone(), "", false)), Place::Status);
        assert_eq!(place(&ready(role.clone(), "", true)), Place::Redacted);
        assert_eq!(place(&ready(role.clone(), "Log", true)), Place::Log);
        assert_eq!(place(&ready(role, "None", false)), Place::None);
    }
    #[test]
    fn a_difference_is_headed_by_the_object() {
        let (a, b) = (
            json!({"metadata": {"name": "x", "namespace": "n"}, "s": 1}),
            json!({"metadata": {"name": "x", "namespace": "n"}, "s": 2}),
        );
        let shown = text(&a, &b);
        assert!(
            shown.starts_with("--- n/x : existing\n+++ n/x : updated\n") && shown.contains("-s: 1\n+s: 2\n"),
            "{shown}"
        );
    }
}
