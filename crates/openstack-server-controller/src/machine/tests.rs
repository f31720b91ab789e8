//! Rows of the decisions about a machine's server.
use super::*;
use crate::api::OpenStackCluster;
use serde_json::{Value, json};

const ASKING: Asking<'_> = Asking { uid: "u", name: "m", deleting: false, had_instance: false };

fn server(conditions: Value, more: Value) -> OpenStackServer {
    let mut metadata = json!({"name": "m", "namespace": "n",
        "ownerReferences": [{"apiVersion": "v", "kind": "OpenStackMachine", "name": "m", "uid": "u"}]});
    metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let spec =
        json!({"identityRef": {"name": "c", "cloudName": "c"}, "sshKeyName": "", "image": {"id": "i"}, "ports": []});
    serde_json::from_value(json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
        "metadata": metadata, "spec": spec, "status": {"conditions": conditions}}))
    .unwrap()
}
fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!([{"type": type_, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}

#[test]
fn a_server_is_made_waited_for_used_and_removed() {
    assert_eq!(decide(ASKING, None), Step::Create);
    let building = server(condition("InstanceReady", "False", "QuotaExceeded"), json!({}));
    assert_eq!(decide(ASKING, Some(&building)), Step::Wait { reason: "QuotaExceeded".into(), message: "m".into() });
    let ready = server(condition("Ready", "True", "Reconciled"), json!({}));
    assert_eq!(decide(ASKING, Some(&ready)), Step::Use);
    let leaving = Asking { deleting: true, ..ASKING };
    assert_eq!(decide(leaving, Some(&ready)), Step::Delete);
    let going = server(json!([]), json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
    assert!(matches!(decide(leaving, Some(&going)), Step::Wait { .. }));
    assert_eq!(decide(leaving, None), Step::Nothing);
    assert!(matches!(decide(ASKING, Some(&going)), Step::Wait { .. }), "one that is going is never used");
}
#[test]
fn a_lost_server_is_never_made_again_and_a_strangers_is_left_alone() {
    let had = Asking { had_instance: true, ..ASKING };
    assert!(matches!(decide(had, None), Step::Refuse { stalled: shared::RESOURCE_LOST, .. }));
    let failed = server(condition("Failed", "True", "InstanceNotFound"), json!({}));
    assert!(matches!(decide(had, Some(&failed)), Step::Refuse { stalled: shared::RESOURCE_LOST, .. }));
    let broken = server(condition("Failed", "True", "NoValidHost"), json!({}));
    assert!(matches!(decide(had, Some(&broken)), Step::Refuse { stalled: shared::RESOURCE_FAILED, .. }));
    let stranger = server(condition("Ready", "True", "Reconciled"), json!({"ownerReferences": []}));
    assert!(matches!(decide(ASKING, Some(&stranger)), Step::Refuse { .. }));
    assert_eq!(decide(Asking { deleting: true, ..ASKING }, Some(&stranger)), Step::Nothing);
}

fn cluster(spec: &Value, status: Value) -> OpenStackCluster {
    let mut whole = json!({"identityRef": {"name": "creds", "cloudName": "c"}, "tags": ["cluster"], "subnets": [{"id": "s1"}, {"id": "s2"}]});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
        "metadata": {"name": "c"}, "spec": whole, "status": status}))
    .unwrap()
}
fn node(spec: Value, status: Value, control_plane: bool) -> Node {
    Node {
        bootstrap: Some("data".into()),
        failure_domain: Some("az1".into()),
        control_plane,
        cluster: Some(cluster(&spec, status)),
    }
}

#[test]
fn defaults_come_from_the_cluster_once_it_is_provisioned() {
    let status = json!({"initialization": {"provisioned": true}, "network": {"id": "net"},
        "controlPlaneSecurityGroup": {"id": "cp"}, "workerSecurityGroup": {"id": "worker"}});
    assert!(defaults(&node(json!({}), json!({}), false)).is_none());
    let worker = defaults(&node(json!({}), status.clone(), false)).unwrap();
    assert_eq!((worker.network.as_deref(), worker.security_group.as_deref()), (Some("net"), Some("worker")));
    assert_eq!((worker.zone.as_deref(), worker.user_data.as_deref()), (Some("az1"), Some("data")));
    assert_eq!(worker.subnets.len(), 2);
    let plane = defaults(&node(json!({"primarySubnet": {"id": "s1"}}), status, true)).unwrap();
    assert_eq!((plane.security_group.as_deref(), plane.subnets.len()), (Some("cp"), 1));
}
#[test]
fn only_the_control_plane_stands_behind_the_balancer_on_its_ports() {
    let status = json!({"apiServerLoadBalancer": {"id": "lb", "name": "n"}});
    assert_eq!(balancer(&node(json!({}), status.clone(), true)).as_deref(), Some("lb"));
    assert_eq!(balancer(&node(json!({}), status, false)), None);
    assert_eq!(balancer(&node(json!({}), json!({}), true)), None);
    let ports = |spec: Value| balanced_ports(&cluster(&spec, json!({})).spec).into_iter().collect::<Vec<_>>();
    assert_eq!(ports(json!({})), [6443]);
    assert_eq!(ports(json!({"controlPlaneEndpoint": {"host": "h", "port": 443}})), [443]);
    assert_eq!(
        ports(json!({"apiServer": {"port": 8443, "managedLoadBalancer": {"additionalPorts": [22, 0, 70000]}}})),
        [22, 8443]
    );
    assert_eq!(ports(json!({"apiServer": {"port": 0, "managedLoadBalancer": {"additionalPorts": "what"}}})), [6443]);
}
#[test]
fn a_provider_id_has_the_region_of_the_machine_alone() {
    let spec = |identity: Value| -> OpenStackMachineSpec {
        serde_json::from_value(json!({"flavor": {"id": "1"}, "image": {"id": "i"}, "identityRef": identity})).unwrap()
    };
    assert_eq!(provider_id(&spec(json!({"name": "n", "cloudName": "c", "region": "r1"})), "id"), "openstack://r1/id");
    assert_eq!(provider_id(&spec(json!({"name": "n", "cloudName": "c"})), "id"), "openstack:///id");
}
