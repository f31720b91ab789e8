//! The generated definition is the one in deploy/, and says what the peer's says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use common::crd::compare;
use policy_pruner::crd::{definition, yaml};
use serde_json::{Value, json};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/policy-pruner/crd/policy-pruner.yaml");

fn schema() -> Value {
    let crd = serde_json::to_value(definition()).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clone()
}
fn walk(schema: &Value, path: &str, seen: &mut dyn FnMut(&str, &Value)) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        seen(&path, field);
        walk(field, &path, seen);
        walk(&field["items"], &format!("{path}[]"), seen);
    }
}

#[test]
fn the_file_in_deploy_is_what_the_types_say() {
    let stored = std::fs::read_to_string(PATH).unwrap();
    compare(&stored, &yaml().unwrap(), "make generate").unwrap();
}

#[test]
fn every_field_is_described_and_none_is_nullable() {
    let mut fields = 0;
    for part in ["spec", "status"] {
        walk(&schema()[part], part, &mut |path, field| {
            fields += 1;
            assert!(field["description"].as_str().is_some_and(|text| text.len() > 4), "{path} has no description");
            assert!(field["nullable"].is_null(), "{path}: null and absent would be two things");
        });
    }
    assert!(fields > 50, "only {fields} fields were seen");
}

#[test]
fn pruning_is_opt_in_and_values_are_checked_by_the_api_server() {
    let spec = &schema()["spec"];
    assert_eq!(spec["properties"]["pruneObjectBehavior"]["default"], "None");
    assert_eq!(spec["properties"]["pruneObjectBehavior"]["enum"], json!(["DeleteAll", "DeleteIfCreated", "None"]));
    assert_eq!(spec["properties"]["remediationAction"]["default"], "inform");
    assert_eq!(spec["required"], json!(["remediationAction"]));
    let one_of: Vec<&Value> = spec["oneOf"].as_array().unwrap().iter().map(|s| &s["required"][0]).collect();
    assert_eq!(one_of, ["object-templates", "object-templates-raw"]);
    let template = &spec["properties"]["object-templates"]["items"];
    assert_eq!(template["required"], json!(["complianceType", "objectDefinition"]));
    assert_eq!(template["properties"]["objectDefinition"]["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(template["properties"]["recreateOption"]["default"], "None");
    let selector = &spec["properties"]["namespaceSelector"];
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
    assert_eq!(selector["properties"]["matchExpressions"]["items"]["required"], json!(["key", "operator"]));
    assert_eq!(selector["properties"]["include"]["items"]["minLength"], 1);
}

#[test]
fn only_three_enumerations_and_one_word_have_defaults() {
    let mut defaults = Vec::new();
    walk(&schema()["spec"], "", &mut |path, field| {
        if !field["default"].is_null() {
            defaults.push(path.to_owned());
        }
    });
    defaults.sort_unstable();
    let expected = [
        ".namespaceSelector.terminatingInclusion",
        ".object-templates[].recreateOption",
        ".pruneObjectBehavior",
        ".remediationAction",
    ];
    assert_eq!(defaults, expected);
}

#[test]
fn tools_of_the_framework_find_the_kind() {
    let crd = serde_json::to_value(definition()).unwrap();
    assert_eq!(crd["metadata"]["labels"]["policy.open-cluster-management.io/policy-type"], "template");
    assert_eq!(crd["metadata"]["name"], policy_pruner::names::CRD);
    assert_eq!(crd["spec"]["versions"][0]["additionalPrinterColumns"][0]["jsonPath"], ".status.compliant");
    assert!(crd["spec"]["versions"][0]["subresources"]["status"].is_object());
}
