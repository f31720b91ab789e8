//! The definitions of the custom resources, as they are applied to a cluster.
use crate::api::{
    OpenStackCluster, OpenStackClusterIdentity, OpenStackClusterTemplate, OpenStackMachine, OpenStackMachineTemplate,
    OpenStackServer,
};
use common::crd::{Unwritable, to_yaml};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

/// The definitions. An optional field is left out or has a value: `null` would be a third thing, which no rule expects.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        OpenStackServer::crd(),
        OpenStackCluster::crd(),
        OpenStackClusterTemplate::crd(),
        OpenStackMachine::crd(),
        OpenStackMachineTemplate::crd(),
        OpenStackClusterIdentity::crd(),
    ];
    for crd in &mut all {
        // A bastion is replaced when its spec changes. Templates are guarded by a policy, which knows a rehearsal of Cluster API.
        let changed: &[&str] = match crd.spec.names.kind.as_str() {
            "OpenStackCluster" => &["spec", "bastion", "spec"],
            "OpenStackClusterTemplate" | "OpenStackMachineTemplate" => &["spec", "template"],
            _ => &[],
        };
        for version in &mut crd.spec.versions {
            if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
                never_null(schema);
                if let Some(inner) = field(schema, changed).filter(|_| !changed.is_empty()) {
                    changeable(inner);
                }
            }
        }
    }
    all
}
fn field<'a>(schema: &'a mut JSONSchemaProps, path: &[&str]) -> Option<&'a mut JSONSchemaProps> {
    path.iter().try_fold(schema, |schema, name| schema.properties.as_mut()?.get_mut(*name))
}
/// What is immutable in a machine is not in a bastion or a template.
fn changeable(schema: &mut JSONSchemaProps) {
    if let Some(rules) = &mut schema.x_kubernetes_validations {
        rules.retain(|rule| !rule.rule.contains("oldSelf"));
        if rules.is_empty() {
            schema.x_kubernetes_validations = None;
        }
    }
    schema.properties.iter_mut().flatten().for_each(|(_, field)| changeable(field));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        changeable(items);
    }
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
    to_yaml(&definitions())
}
