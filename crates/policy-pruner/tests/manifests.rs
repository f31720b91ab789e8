//! The shipped manifests grant what is used and no more, and run as they should.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use common::operator::doctor::Grant;
use policy_pruner::grants::GRANTS;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/policy-pruner")
}
fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}
fn shipped() -> Vec<Value> {
    let kustomization = documents(&folder().join("kustomization.yaml")).remove(0);
    let files: Vec<String> =
        kustomization["resources"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_owned()).collect();
    files.iter().flat_map(|file| documents(&folder().join(file))).collect()
}
fn of_kind(kind: &str) -> Vec<Value> {
    shipped().into_iter().filter(|object| object["kind"] == kind).collect()
}
fn one(kind: &str) -> Value {
    let mut all = of_kind(kind);
    assert_eq!(all.len(), 1, "{kind}");
    all.remove(0)
}
fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|it| it.as_str().unwrap().to_owned()).collect()
}

type Right = (String, String, String, String, bool);
fn granted() -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for (kind, own) in [("ClusterRole", false), ("Role", true)] {
        for rule in of_kind(kind).iter().flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()) {
            let names = texts(&rule["resourceNames"]);
            let name = names.join(",");
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        rights.insert((group.clone(), resource.clone(), verb, name.clone(), own));
                    }
                }
            }
        }
    }
    rights
}

#[test]
fn what_is_granted_is_what_is_used_without_wildcards() {
    let needed = GRANTS.iter().map(|Grant { group, resource, subresource, verb, name, own_namespace }| {
        let slash = if subresource.is_empty() { "" } else { "/" };
        let resource = format!("{resource}{slash}{subresource}");
        ((*group).to_owned(), resource, (*verb).to_owned(), (*name).to_owned(), *own_namespace)
    });
    assert_eq!(granted(), needed.collect());
    for (group, resource, verb, name, _) in granted() {
        assert!(![&group, &resource, &verb].iter().any(|text| text.contains('*')), "{group} {resource} {verb}");
        assert!(resource != "secrets" || !name.is_empty(), "Secrets only by name");
    }
}

#[test]
fn rights_on_more_kinds_are_aggregated() {
    let roles = of_kind("ClusterRole");
    let collects = roles.iter().find(|role| !role["aggregationRule"].is_null()).unwrap();
    let label = &collects["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"];
    assert_eq!(*label, json!({"custody.dev/aggregate-to-policy-pruner": "true"}));
    assert!(collects["rules"].is_null(), "whoever applies empty rules takes away what was collected");
    assert_eq!(one("ClusterRoleBinding")["roleRef"]["name"], collects["metadata"]["name"]);
    let overlay = documents(&folder().join("../overlays/policy-pruner-all-kinds/all-kinds.yaml")).remove(0);
    assert_eq!(overlay["metadata"]["labels"]["custody.dev/aggregate-to-policy-pruner"], "true");
    assert_eq!(overlay["rules"][0]["verbs"], json!(["*"]));
}

#[test]
fn beside_the_peer_the_lease_is_one_and_the_same() {
    let overlay = documents(&folder().join("../overlays/policy-pruner-beside-peer/kustomization.yaml")).remove(0);
    assert_eq!(overlay["namespace"], "open-cluster-management-agent-addon");
    assert_eq!(overlay["resources"], json!(["../../policy-pruner"]));
    // Namespace and definition are the peer's: neither created nor changed, nor removed with the overlay.
    for (n, kind) in ["Namespace", "CustomResourceDefinition"].into_iter().enumerate() {
        let patch = overlay["patches"][n]["patch"].as_str().unwrap();
        assert!(patch.contains(&format!("kind: {kind}")) && patch.contains("$patch: delete"), "{patch}");
    }
    // The Lease is looked for in the namespace of the pod, under the peer's name.
    let container = one("Deployment")["spec"]["template"]["spec"]["containers"][0].clone();
    let text = container.to_string();
    assert!(!text.contains("lease") && !text.contains("LEASE"), "{text}");
    let lease = one("Role")["rules"][0]["resourceNames"][0].clone();
    assert_eq!(lease, policy_pruner::names::LEASE);
}

#[test]
fn the_pod_meets_the_restricted_standard() {
    let pod = one("Deployment")["spec"]["template"]["spec"].clone();
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() >= 30);
    for container in pod["containers"].as_array().unwrap() {
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
        assert!(container["livenessProbe"].is_object() && container["readinessProbe"].is_object());
        assert!(container["resources"]["limits"]["memory"].is_string());
    }
    assert_eq!(one("ServiceAccount")["automountServiceAccountToken"], false);
    assert_eq!(pod["automountServiceAccountToken"], true);
}

#[test]
fn the_sample_policy_asks_for_policies_stuck_in_deletion() {
    let policy = documents(&folder().join("samples/stuck-deletions.yaml")).remove(0);
    let parsed: policy_pruner::api::ConfigurationPolicy = serde_json::from_value(policy).unwrap();
    let template = &parsed.spec.templates()[0];
    assert_eq!(template.compliance(), policy_pruner::compare::Compliance::MustNotHave);
    assert_eq!(template.object_definition["status"]["compliant"], "Terminating");
    assert!(!parsed.spec.enforces());
}
