//! The generated definition is the one in deploy/crds, and keeps the promises made to people and to clusterctl.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use common::crd::{compare, each_field};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
};
use sample_controller::crd::{definition, yaml};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds/sample-controller.yaml");

fn version(crd: &CustomResourceDefinition) -> &CustomResourceDefinitionVersion {
    &crd.spec.versions[0]
}
fn schema(crd: &CustomResourceDefinition) -> &JSONSchemaProps {
    version(crd).schema.as_ref().and_then(|s| s.open_api_v3_schema.as_ref()).unwrap()
}

#[test]
fn the_file_in_deploy_is_what_the_types_say() {
    let stored = std::fs::read_to_string(PATH).unwrap();
    compare(&stored, &yaml().unwrap(), "make generate").unwrap();
}

#[test]
fn every_field_is_described_and_every_list_and_string_of_the_spec_is_bounded() {
    let crd = definition();
    let mut fields = 0;
    each_field(&crd, &mut |path, field| {
        fields += 1;
        assert_eq!(field.nullable, None, "{path}: null and absent would be two things");
        assert!(field.description.as_ref().is_some_and(|text| text.len() > 5), "{path} has no description");
        if path.starts_with("SampleOwner.spec") {
            match field.type_.as_deref() {
                Some("array") => {
                    assert!(field.max_items.is_some(), "{path} has no maxItems");
                    assert_eq!(field.x_kubernetes_list_type.as_deref(), Some("map"), "{path}: names are unique");
                }
                Some("string") if field.enum_.is_none() => {
                    assert!(field.max_length.is_some(), "{path} has no maxLength");
                }
                _ => {}
            }
        }
    });
    assert!(fields > 45, "only {fields} fields were seen");
}

#[test]
fn people_find_it_by_short_name_and_category_and_see_why_it_is_not_ready() {
    let crd = definition();
    assert_eq!(crd.spec.names.short_names.as_deref(), Some(&["so".to_owned()][..]));
    assert!(crd.spec.names.categories.as_ref().is_some_and(|c| c.contains(&"custody".to_owned())));
    let columns = version(&crd).additional_printer_columns.as_deref().unwrap_or_default();
    let shown: Vec<&str> = columns.iter().filter(|c| c.priority.unwrap_or(0) == 0).map(|c| c.name.as_str()).collect();
    assert_eq!(shown, ["Ready", "Reason", "Resources", "Age"]);
    let conditions = &schema(&crd).properties.as_ref().unwrap()["status"].properties.as_ref().unwrap()["conditions"];
    assert_eq!(conditions.x_kubernetes_list_map_keys.as_deref(), Some(&["type".to_owned()][..]));
    assert!(version(&crd).subresources.as_ref().is_some_and(|s| s.status.is_some()));
}

#[test]
fn clusterctl_knows_it_as_an_infrastructure_kind_that_can_be_moved() {
    let labels = definition().metadata.labels.unwrap_or_default();
    assert_eq!(labels.get("cluster.x-k8s.io/v1beta2").map(String::as_str), Some("v1alpha1"));
    assert_eq!(labels.get("clusterctl.cluster.x-k8s.io").map(String::as_str), Some(""));
    assert_eq!(labels.get("cluster.x-k8s.io/provider").map(String::as_str), Some("infrastructure-sample"));
}
