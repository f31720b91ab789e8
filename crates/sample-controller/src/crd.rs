//! The definition of the custom resource, as it is applied to a cluster.
use crate::api::SampleOwner;
use common::crd::{Unwritable, to_yaml};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

/// The definition. An optional field is left out or has a value: `null` would be a third thing, which no rule expects.
pub fn definition() -> CustomResourceDefinition {
    let mut crd = SampleOwner::crd();
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            never_null(schema);
        }
    }
    crd
}
fn never_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.properties.iter_mut().flatten().for_each(|(_, field)| never_null(field));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        never_null(items);
    }
}

/// As YAML; the same text every time.
pub fn yaml() -> Result<String, Unwritable> {
    to_yaml(&[definition()])
}
