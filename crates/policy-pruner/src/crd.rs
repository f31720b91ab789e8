//! The definition of the custom resource as it is shipped. Its schema says the same as the peer's, so that either works.
use crate::api::ConfigurationPolicy;
use common::crd::{Unwritable, to_yaml};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use kube::CustomResourceExt;
use std::collections::BTreeMap;

/// The definition.
pub fn definition() -> CustomResourceDefinition {
    let mut crd = ConfigurationPolicy::crd();
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().and_then(|s| s.open_api_v3_schema.as_mut());
        let Some(properties) = schema.and_then(|s| s.properties.as_mut()) else { continue };
        if let Some(spec) = properties.get_mut("spec") {
            exactly_one(spec, &["object-templates", "object-templates-raw"]);
            spec.required = Some(vec!["remediationAction".into()]);
            tidy(spec);
            mark_atomic(spec);
        }
        if let Some(status) = properties.get_mut("status") {
            tidy(status);
        }
    }
    crd
}

/// Exactly one of these fields is set.
fn exactly_one(schema: &mut JSONSchemaProps, fields: &[&str]) {
    let required =
        |field: &&str| JSONSchemaProps { required: Some(vec![(*field).to_owned()]), ..JSONSchemaProps::default() };
    schema.one_of = Some(fields.iter().map(required).collect());
}

/// Selectors are replaced as a whole by server-side apply.
fn mark_atomic(spec: &mut JSONSchemaProps) {
    let atomic = |schema: Option<&mut JSONSchemaProps>| {
        if let Some(schema) = schema {
            schema.x_kubernetes_map_type = Some("atomic".into());
        }
    };
    let Some(properties) = spec.properties.as_mut() else { return };
    atomic(properties.get_mut("namespaceSelector"));
    if let Some(k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaPropsOrArray::Schema(
        item,
    )) = properties.get_mut("object-templates").and_then(|t| t.items.as_mut())
    {
        atomic(item.properties.as_mut().and_then(|p| p.get_mut("objectSelector")));
    }
}

/// Null and absent would be two things; defaults belong to three enumerations only; integers have no lower bound here.
fn tidy(schema: &mut JSONSchemaProps) {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    };
    schema.nullable = None;
    let keep =
        schema.enum_.is_some() && schema.default.as_ref().is_some_and(|d| d.0.as_str().is_some_and(|t| !t.is_empty()));
    if !keep {
        schema.default = None;
    }
    // Read leniently, written strictly: an expression has a key and an operator.
    if schema.properties.as_ref().is_some_and(|p| p.contains_key("key") && p.contains_key("operator")) {
        schema.required = Some(vec!["key".into(), "operator".into()]);
    }
    let each = |properties: &mut BTreeMap<String, JSONSchemaProps>| properties.values_mut().for_each(tidy);
    schema.properties.iter_mut().for_each(each);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        tidy(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(more)) = &mut schema.additional_properties {
        tidy(more);
    }
}

/// As YAML.
pub fn yaml() -> Result<String, Unwritable> {
    to_yaml(&[definition()])
}
