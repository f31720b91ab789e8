//! Two generations of the peer word a few texts differently. The installed CRD tells which one a cluster's tools expect.
use serde_json::Value;

/// Which wording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The peer's releases before its namespace selector knew `terminatingInclusion`.
    Earlier,
    /// The peer today, and our own CRD.
    #[default]
    Current,
}
impl Dialect {
    /// From the installed CRD.
    pub fn of_crd(crd: &Value) -> Self {
        let versions = crd["spec"]["versions"].as_array();
        let current = versions.into_iter().flatten().any(|version| {
            let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
            spec["namespaceSelector"]["properties"].get("terminatingInclusion").is_some()
        });
        if current { Dialect::Current } else { Dialect::Earlier }
    }
    /// An empty list of strings inside an error.
    pub fn no_strings(self) -> &'static str {
        match self {
            Dialect::Earlier => "[]string(nil)",
            Dialect::Current => "null",
        }
    }
    /// A list of strings inside an error.
    pub fn strings(self, values: &[String]) -> String {
        let quoted: Vec<String> = values.iter().map(|v| format!("{v:?}")).collect();
        match self {
            Dialect::Earlier => format!("[]string{{{}}}", quoted.join(", ")),
            Dialect::Current => format!("[{}]", quoted.join(",")),
        }
    }
    /// Reason of the event on a policy whose status changed.
    pub fn update_reason(self) -> &'static str {
        match self {
            Dialect::Earlier => "Policy updated",
            Dialect::Current => "PolicyUpdate",
        }
    }
    /// Reason and action of the event about the policy as a whole.
    pub fn info(self, policy: &str) -> (String, String) {
        match self {
            Dialect::Earlier => (format!("policy: {policy}"), format!("policy: {policy}")),
            Dialect::Current => ("PolicyInfo".into(), format!("policy: {policy}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_crd_tells_the_generation() {
        let crd = |properties: Value| {
            let spec = json!({"namespaceSelector": {"properties": properties}});
            let schema = json!({"openAPIV3Schema": {"properties": {"spec": {"properties": spec}}}});
            json!({"spec": {"versions": [{"schema": schema}]}})
        };
        assert_eq!(Dialect::of_crd(&crd(json!({"include": {}}))), Dialect::Earlier);
        assert_eq!(Dialect::of_crd(&crd(json!({"terminatingInclusion": {}}))), Dialect::Current);
        assert_eq!(Dialect::of_crd(&Value::Null), Dialect::Earlier);
    }
}
