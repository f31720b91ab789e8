//! The shipped manifests: pod security, least privilege, and what clusterctl expects. Read as files, so no cluster is needed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use common::operator::doctor::Grant;
use sample_controller::grants::GRANTS;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/sample-controller")
}
fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    all.into_iter().filter(|document| !document.is_null()).collect()
}
/// Everything that the kustomization lists, the definition included.
fn shipped() -> Vec<Value> {
    let kustomization = documents(&folder().join("kustomization.yaml")).remove(0);
    let listed = kustomization["resources"].as_array().unwrap().iter().map(|file| file.as_str().unwrap().to_owned());
    let mut all: Vec<Value> = listed.flat_map(|file| documents(&folder().join(file))).collect();
    all.extend(documents(&folder().join("../crds/sample-controller.yaml")));
    all
}
fn of_kind(kind: &str) -> Vec<Value> {
    shipped().into_iter().filter(|object| object["kind"] == kind).collect()
}
fn one(kind: &str) -> Value {
    let mut all = of_kind(kind);
    assert_eq!(all.len(), 1, "exactly one {kind}");
    all.remove(0)
}

#[test]
fn every_file_of_the_folder_is_shipped() {
    let kustomization = documents(&folder().join("kustomization.yaml")).remove(0);
    let listed: BTreeSet<&str> =
        kustomization["resources"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "kustomization.yaml" || listed.contains(name.as_str()), "{name} is not listed");
    }
    assert_eq!(kustomization["components"][0], "../crds");
}

#[test]
fn the_pod_meets_the_restricted_standard_and_more() {
    let deployment = one("Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let security = &pod["securityContext"];
    assert_eq!(security["runAsNonRoot"], true);
    assert!(security["runAsUser"].as_u64().is_some_and(|user| user != 0));
    assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault");
    for forbidden in ["hostNetwork", "hostPID", "hostIPC", "initContainers"] {
        assert!(pod[forbidden].is_null(), "{forbidden}");
    }
    let allowed =
        ["secret", "configMap", "emptyDir", "projected", "downwardAPI", "csi", "persistentVolumeClaim", "ephemeral"];
    for volume in pod["volumes"].as_array().unwrap() {
        let kinds: Vec<&String> = volume.as_object().unwrap().keys().filter(|key| *key != "name").collect();
        assert!(kinds.iter().all(|kind| allowed.contains(&kind.as_str())), "{kinds:?}");
    }
    let containers = pod["containers"].as_array().unwrap();
    assert!(!containers.is_empty());
    for container in containers {
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["privileged"], false);
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["capabilities"]["drop"], serde_json::json!(["ALL"]));
        assert!(security["capabilities"]["add"].is_null());
        for side in ["requests", "limits"] {
            for resource in ["cpu", "memory"] {
                assert!(container["resources"][side][resource].is_string(), "{side} of {resource}");
            }
        }
        assert!(container["livenessProbe"].is_object() && container["readinessProbe"].is_object());
        for port in container["ports"].as_array().unwrap() {
            assert!(port["hostPort"].is_null());
        }
    }
    for mode in ["enforce", "audit", "warn"] {
        assert_eq!(one("Namespace")["metadata"]["labels"][format!("pod-security.kubernetes.io/{mode}")], "restricted");
    }
}

#[test]
fn the_token_of_the_api_server_is_mounted_where_it_is_needed_and_nowhere_else() {
    assert_eq!(one("ServiceAccount")["automountServiceAccountToken"], false);
    assert_eq!(one("Deployment")["spec"]["template"]["spec"]["automountServiceAccountToken"], true);
}

#[test]
fn the_process_has_time_to_end() {
    let pod = &one("Deployment")["spec"]["template"]["spec"];
    let drain = common_drain_seconds();
    assert!(pod["terminationGracePeriodSeconds"].as_u64().is_some_and(|grace| grace >= drain + 10));
}
/// The default of --drain-timeout, as the command line has it.
fn common_drain_seconds() -> u64 {
    use clap::CommandFactory;
    let command = common::process::cli::Cli::<sample_controller::args::SampleArgs>::command();
    let run = command.find_subcommand("run").unwrap();
    let drain = run.get_arguments().find(|it| it.get_id() == "drain_timeout").unwrap();
    let text = drain.get_default_values()[0].to_str().unwrap();
    text.trim_end_matches('s').parse().unwrap()
}

/// (group, resource with subresource, verb, name of the one object, in its own namespace only)
type Right = (String, String, String, String, bool);
fn granted() -> BTreeSet<Right> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    let mut rights = BTreeSet::new();
    let controller = |object: &&Value| object["metadata"]["labels"]["cluster.x-k8s.io/aggregate-to-manager"].is_null();
    for (kind, own) in [("ClusterRole", false), ("Role", true)] {
        for role in of_kind(kind).iter().filter(controller) {
            for rule in role["rules"].as_array().unwrap() {
                let name = texts(&rule["resourceNames"]).join(",");
                for group in texts(&rule["apiGroups"]) {
                    for resource in texts(&rule["resources"]) {
                        for verb in texts(&rule["verbs"]) {
                            rights.insert((group.clone(), resource.clone(), verb, name.clone(), own));
                        }
                    }
                }
            }
        }
    }
    rights
}

#[test]
fn what_is_granted_is_what_is_used_without_wildcards_and_without_secrets() {
    let needed = GRANTS.iter().map(|Grant { group, resource, subresource, verb, name, own_namespace }| {
        let slash = if subresource.is_empty() { "" } else { "/" };
        let resource = format!("{resource}{slash}{subresource}");
        ((*group).to_owned(), resource, (*verb).to_owned(), (*name).to_owned(), *own_namespace)
    });
    assert_eq!(granted(), needed.collect());
    for (group, resource, verb, ..) in granted() {
        assert!(![&group, &resource, &verb].iter().any(|text| text.contains('*')), "{group} {resource} {verb}");
        assert_ne!(resource, "secrets");
    }
}

#[test]
fn every_binding_gives_its_role_to_the_one_account() {
    for (kind, role) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        for binding in of_kind(kind) {
            assert_eq!(binding["roleRef"]["kind"], role);
            assert!(of_kind(role).iter().any(|it| it["metadata"]["name"] == binding["roleRef"]["name"]));
            let subject = &binding["subjects"][0];
            assert_eq!(subject["name"], one("ServiceAccount")["metadata"]["name"]);
            assert_eq!(subject["namespace"], one("Namespace")["metadata"]["name"]);
        }
    }
}

#[test]
fn network_and_service_reach_the_pods_that_are_deployed() {
    let labels = one("Deployment")["spec"]["template"]["metadata"]["labels"].clone();
    assert_eq!(one("Service")["spec"]["selector"], labels);
    let policy = one("NetworkPolicy");
    assert_eq!(policy["spec"]["podSelector"]["matchLabels"], labels);
    assert_eq!(policy["spec"]["policyTypes"], serde_json::json!(["Ingress", "Egress"]));
    for rule in policy["spec"]["egress"].as_array().unwrap() {
        assert!(rule["ports"].as_array().is_some_and(|ports| !ports.is_empty()), "every way out names its ports");
    }
}

#[test]
fn clusterctl_finds_one_namespace_a_container_called_manager_and_the_provider_label() {
    let kustomization = documents(&folder().join("kustomization.yaml")).remove(0);
    assert_eq!(kustomization["labels"][0]["pairs"]["cluster.x-k8s.io/provider"], "infrastructure-sample");
    let namespace = one("Namespace")["metadata"]["name"].clone();
    assert_eq!(kustomization["namespace"], namespace);
    for object in shipped() {
        let own = &object["metadata"]["namespace"];
        assert!(own.is_null() || *own == namespace, "{object}");
    }
    assert_eq!(one("Deployment")["spec"]["template"]["spec"]["containers"][0]["name"], "manager");
    let metadata = documents(&folder().join("../overlays/clusterctl/metadata.yaml")).remove(0);
    assert_eq!(metadata["kind"], "Metadata");
    assert_eq!(metadata["releaseSeries"][0]["contract"], "v1beta2");
    let aggregated = of_kind("ClusterRole");
    let label = "cluster.x-k8s.io/aggregate-to-manager";
    assert!(aggregated.iter().any(|role| role["metadata"]["labels"][label] == "true"));
}
