//! The shipped manifests: pod security and least privilege. Read as files, so no cluster is needed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use openstack_server_controller::grants::GRANTS;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/openstack-server-controller")
}
fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    all.into_iter().filter(|document| !document.is_null()).collect()
}
fn kustomization() -> Value {
    documents(&folder().join("kustomization.yaml")).remove(0)
}
fn shipped() -> Vec<Value> {
    let listed = kustomization()["resources"].as_array().unwrap().clone();
    listed.iter().flat_map(|file| documents(&folder().join(file.as_str().unwrap()))).collect()
}
fn words(rule: &Value, field: &str) -> Vec<String> {
    rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
/// Group, resource, verb and name of everything that a role of ours allows.
fn allowed() -> BTreeSet<(String, String, String, String)> {
    let roles = shipped().into_iter().filter(|it| it["kind"].as_str().is_some_and(|kind| kind.ends_with("Role")));
    let ours = roles.filter(|it| !it["metadata"]["name"].as_str().unwrap().contains("aggregate"));
    let mut all = BTreeSet::new();
    for rule in ours.flat_map(|role| role["rules"].as_array().unwrap().clone()) {
        let names = words(&rule, "resourceNames");
        let names = if names.is_empty() { vec![String::new()] } else { names };
        for group in words(&rule, "apiGroups") {
            for resource in words(&rule, "resources") {
                for verb in words(&rule, "verbs") {
                    all.extend(names.iter().map(|name| (group.clone(), resource.clone(), verb.clone(), name.clone())));
                }
            }
        }
    }
    all
}

#[test]
fn every_file_of_the_folder_is_shipped() {
    let listed = words(&kustomization(), "resources");
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "kustomization.yaml" || listed.contains(&name), "{name} is not listed");
    }
}

#[test]
fn the_roles_allow_what_is_used_and_nothing_else() {
    let used: BTreeSet<_> = GRANTS
        .iter()
        .map(|grant| {
            let resource = if grant.subresource.is_empty() {
                grant.resource.to_owned()
            } else {
                format!("{}/{}", grant.resource, grant.subresource)
            };
            (grant.group.to_owned(), resource, grant.verb.to_owned(), grant.name.to_owned())
        })
        .collect();
    assert_eq!(allowed(), used);
    assert!(
        allowed().iter().all(|(group, resource, verb, _)| ![group, resource, verb].iter().any(|it| it.contains('*')))
    );
}

#[test]
fn the_pod_meets_the_restricted_standard() {
    let deployment = shipped().into_iter().find(|it| it["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for container in pod["containers"].as_array().unwrap() {
        let security = &container["securityContext"];
        assert_eq!(
            (&security["allowPrivilegeEscalation"], &security["readOnlyRootFilesystem"]),
            (&Value::Bool(false), &Value::Bool(true))
        );
        assert_eq!(security["capabilities"]["drop"][0], "ALL");
        assert!(container["resources"]["limits"]["memory"].is_string());
    }
}

#[test]
fn the_pod_may_reach_every_service_at_its_usual_port() {
    let policy = shipped().into_iter().find(|it| it["kind"] == "NetworkPolicy").unwrap();
    let rules = policy["spec"]["egress"].as_array().unwrap();
    let open: Vec<(u64, u64)> = rules
        .iter()
        .flat_map(|rule| rule["ports"].as_array().unwrap())
        .map(|it| (it["port"].as_u64().unwrap(), it["endPort"].as_u64().or(it["port"].as_u64()).unwrap()))
        .collect();
    // Keystone, Nova, Neutron, Glance, Cinder, Octavia
    for port in [5000, 8774, 9696, 9292, 8776, 9876] {
        assert!(open.iter().any(|(first, last)| (*first..=*last).contains(&port)), "{port}");
    }
}
