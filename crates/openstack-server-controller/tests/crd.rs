//! The generated definitions are those in deploy/crds, and keep the promises made to people and to clusterctl.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use common::crd::{compare, each_field};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use openstack_server_controller::crd::{definitions, yaml};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds/openstack-server-controller.yaml");

fn schema(crd: &CustomResourceDefinition) -> &JSONSchemaProps {
    crd.spec.versions[0].schema.as_ref().and_then(|s| s.open_api_v3_schema.as_ref()).unwrap()
}

#[test]
fn the_file_in_deploy_is_what_the_types_say() {
    let stored = std::fs::read_to_string(PATH).unwrap();
    compare(&stored, &yaml().unwrap(), "make generate").unwrap();
}

#[test]
fn every_field_is_described_and_every_list_and_string_of_a_server_is_bounded() {
    for crd in definitions() {
        let mut fields = 0;
        each_field(&crd, &mut |path, field| {
            fields += 1;
            assert_eq!(field.nullable, None, "{path}: null and absent would be two things");
            assert!(field.description.as_ref().is_some_and(|text| text.len() > 5), "{path} has no description");
            // Equality of old and new is only cheap to judge where everything is bounded.
            if path.starts_with("OpenStackServer.spec") {
                match field.type_.as_deref() {
                    Some("array") => assert!(field.max_items.is_some(), "{path} has no maxItems"),
                    Some("string") if field.enum_.is_none() => {
                        assert!(field.max_length.is_some(), "{path} has no maxLength");
                    }
                    _ => {}
                }
            }
        });
        let least = if crd.spec.names.kind == "OpenStackClusterIdentity" { 8 } else { 60 };
        assert!(fields > least, "only {fields} fields of {} were seen", crd.spec.names.kind);
    }
}

#[test]
fn people_find_a_server_by_its_short_name_and_see_its_state() {
    let all = definitions();
    let crd = all.iter().find(|crd| crd.spec.names.kind == "OpenStackServer").unwrap();
    assert_eq!(crd.spec.names.short_names.as_deref(), Some(&["oss".to_owned()][..]));
    let version = &crd.spec.versions[0];
    let columns = version.additional_printer_columns.as_deref().unwrap_or_default();
    let shown: Vec<&str> = columns.iter().filter(|c| c.priority.unwrap_or(0) == 0).map(|c| c.name.as_str()).collect();
    assert_eq!(shown, ["InstanceState", "Ready", "InstanceID", "Age"]);
    assert!(version.subresources.as_ref().is_some_and(|s| s.status.is_some()));
    let conditions = &schema(crd).properties.as_ref().unwrap()["status"].properties.as_ref().unwrap()["conditions"];
    assert_eq!(conditions.x_kubernetes_list_map_keys.as_deref(), Some(&["type".to_owned()][..]));
    assert!(crd.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key("clusterctl.cluster.x-k8s.io")));
}
