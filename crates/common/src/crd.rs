//! CRDs as YAML: for the `crd` subcommand, and for the test that the stored files say the same.
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use serde_json::Value;

/// A CRD cannot be written down.
#[derive(Debug, thiserror::Error)]
#[error("CRD as YAML: {0}")]
pub struct Unwritable(String);

/// All of them in one YAML stream, without the empty status that nobody should apply.
pub fn to_yaml(crds: &[CustomResourceDefinition]) -> Result<String, Unwritable> {
    let mut text = String::new();
    for crd in crds {
        let mut value = serde_json::to_value(crd).map_err(|e| Unwritable(e.to_string()))?;
        if let Value::Object(fields) = &mut value {
            fields.remove("status");
        }
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&value).map_err(|e| Unwritable(e.to_string()))?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

/// For golden tests: the first line in which the stored text differs, and how to bring it up to date.
pub fn compare(stored: &str, generated: &str, command: &str) -> Result<(), String> {
    if stored == generated {
        return Ok(());
    }
    let pairs = stored.lines().zip(generated.lines()).enumerate();
    let (number, old, new) = pairs
        .into_iter()
        .find(|(_, (old, new))| old != new)
        .map_or((0, "one text is longer", ""), |(n, (old, new))| (n + 1, old, new));
    Err(format!("line {number}: stored {old:?}, generated {new:?}; bring it up to date with: {command}"))
}

/// For tests: calls back with every field of every version and its path, such as `Kind.spec.list[].name`.
pub fn each_field(crd: &CustomResourceDefinition, seen: &mut dyn FnMut(&str, &JSONSchemaProps)) {
    for version in &crd.spec.versions {
        let schema = version.schema.as_ref().and_then(|it| it.open_api_v3_schema.as_ref());
        if let Some(schema) = schema {
            walk(schema, &crd.spec.names.kind, seen);
        }
    }
}
fn walk(schema: &JSONSchemaProps, path: &str, seen: &mut dyn FnMut(&str, &JSONSchemaProps)) {
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        seen(&path, field);
        walk(field, &path, seen);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        walk(items, &format!("{path}[]"), seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::{CustomResource, CustomResourceExt};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// For the test alone.
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "test.custody.dev", version = "v1", kind = "Probe", namespaced)]
    struct ProbeSpec {
        /// One of: yes, no, 1e3.
        answer: String,
    }

    #[test]
    fn the_yaml_reads_back_as_the_crd_it_came_from() {
        let crd = Probe::crd();
        let yaml = to_yaml(std::slice::from_ref(&crd)).unwrap();
        assert!(yaml.starts_with("---\n") && !yaml.contains("\nstatus:"));
        let back: CustomResourceDefinition = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(back.spec, crd.spec);
    }
    #[test]
    fn a_difference_is_named_with_its_line() {
        assert!(compare("a\nb\n", "a\nb\n", "x").is_ok());
        assert!(compare("a\nb\n", "a\nc\n", "x").unwrap_err().starts_with("line 2:"));
        assert!(compare("a\n", "a\nc\n", "x").is_err());
    }
}
