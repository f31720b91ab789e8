//! The definitions' own rules, on a real API server: what a person gets wrong is refused at the door.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // that is how a test fails and tells

use e2e::{Cluster, TemporaryNamespace, cluster, manifests};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use openstack_server_controller::api::{OpenStackCluster, OpenStackMachine, OpenStackMachineTemplate, OpenStackServer};
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(1);
const UUID: &str = "7e700000-0000-4000-8000-000000000001";

async fn installed() -> (std::sync::Arc<Cluster>, TemporaryNamespace, Api<DynamicObject>) {
    let cluster = cluster().await.unwrap();
    manifests::apply_text(&cluster, "default", &openstack_server_controller::crd::yaml().unwrap()).await.unwrap();
    let namespace = TemporaryNamespace::create(&cluster, "rules").await.unwrap();
    let resource = ApiResource::erase::<OpenStackServer>(&());
    let api = Api::namespaced_with(cluster.client().await.unwrap(), namespace.name(), &resource);
    (cluster, namespace, api)
}
fn server(fields: &Value) -> DynamicObject {
    let mut spec = json!({
        "identityRef": {"name": "creds", "cloudName": "c"}, "sshKeyName": "", "flavor": "small",
        "image": {"filter": {"name": "i"}}, "ports": [{"network": {"filter": {"name": "n"}}}],
    });
    for (key, value) in fields.as_object().unwrap() {
        if value.is_null() {
            spec.as_object_mut().unwrap().remove(key);
        } else {
            spec[key] = value.clone();
        }
    }
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer", "metadata": {"name": "x"}, "spec": spec});
    serde_json::from_value(object).unwrap()
}
fn long(length: usize) -> String {
    "x".repeat(length)
}
/// Spec fields, and whether they are accepted.
fn cases() -> Vec<(Value, bool)> {
    let port = |fields: Value| json!({"ports": [fields]});
    let net = json!({"id": UUID});
    let in_net = |more: Value| {
        let mut port = json!({"network": net});
        port.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"ports": [port]})
    };
    let root = |zone: Value| json!({"rootVolume": {"sizeGiB": 1, "availabilityZone": zone}});
    let extra = |zone: Value| json!({"additionalBlockDevices": [{"name": "d", "sizeGiB": 1, "storage": {"type": "Volume", "volume": {"availabilityZone": zone}}}]});
    let device = |name: &str, size: i32| json!({"name": name, "sizeGiB": size, "storage": {"type": "Local"}});
    let hint = |value: Value| json!({"schedulerHintAdditionalProperties": [{"name": "h", "value": value}]});
    let mut all = vec![
        (json!({}), true),
        (json!({"flavor": null}), false),
        (json!({"flavor": null, "flavorID": "2"}), true),
        (json!({"sshKeyName": null}), false),
        (json!({"ports": []}), false),
        (port(json!({})), false),
        (port(json!({"fixedIPs": [{"subnet": {"filter": {"name": "s"}}}]})), true),
        (json!({"serverMetadata": [{"key": long(255), "value": long(255)}]}), true),
        (json!({"serverMetadata": [{"key": long(256), "value": "v"}]}), false),
        (json!({"serverMetadata": [{"key": "k", "value": long(256)}]}), false),
        (json!({"serverMetadata": [{"key": "", "value": "v"}]}), false),
        (json!({"serverMetadata": [{"key": "custody-owner", "value": "v"}]}), false),
        (json!({"rootVolume": {"sizeGiB": 0}}), false),
        (json!({"rootVolume": {"sizeGiB": 1}}), true),
        (json!({"rootVolume": {}}), false),
        (json!({"additionalBlockDevices": [device("d", 0)]}), false),
        (json!({"rootVolume": {"sizeGiB": 1}, "additionalBlockDevices": [device("user", 1)]}), true),
        (json!({"rootVolume": {"sizeGiB": 1}, "additionalBlockDevices": [device("root", 1)]}), false),
        (json!({"additionalBlockDevices": [device("d", 1), device("d", 2)]}), false),
        (json!({"additionalBlockDevices": [{"name": "d", "sizeGiB": 1, "storage": {"type": "Tape"}}]}), false),
        (in_net(json!({"enablePortSecurity": false, "securityGroups": [{"id": UUID}]})), false),
        (in_net(json!({"enablePortSecurity": true, "securityGroups": [{"id": UUID}]})), true),
        (in_net(json!({"allowedAddressPairs": [{"ipAddress": ""}]})), false),
        (in_net(json!({"valueSpecs": [{"name": "a", "key": "k", "value": ""}]})), false),
        (
            in_net(
                json!({"valueSpecs": [{"name": "a", "key": "k", "value": "v"}, {"name": "a", "key": "l", "value": "v"}]}),
            ),
            false,
        ),
        (json!({"identityRef": {"name": "", "cloudName": "c"}}), false),
        (json!({"identityRef": {"name": "n", "cloudName": ""}}), false),
        (json!({"identityRef": {"name": "n", "cloudName": "c", "type": "ClusterIdentity"}}), true),
        (json!({"identityRef": {"name": "n", "cloudName": "c", "type": "Other"}}), false),
        (json!({"identityRef": null}), false),
        (json!({"image": {}}), false),
        (json!({"image": {"filter": {}}}), false),
        (json!({"image": {"id": UUID, "filter": {"name": "x"}}}), false),
        (json!({"image": {"id": "no uuid"}}), false),
        (json!({"image": {"id": UUID}}), true),
        (json!({"image": {"filter": {"name": "x", "tags": ["a", "b"]}}}), true),
        (json!({"image": {"imageRef": {"name": "x"}}}), true),
        (json!({"image": {"imageRef": {"name": ""}}}), false),
        (json!({"serverGroup": {}}), false),
        (json!({"serverGroup": {"filter": {}}}), false),
        (json!({"serverGroup": {"id": "x"}}), false),
        (json!({"serverGroup": {"id": UUID, "filter": {"name": "x"}}}), false),
        (json!({"serverGroup": {"filter": {"name": "x"}}}), true),
        (json!({"tags": ["a", "a"]}), false),
        (hint(json!({"type": "Bool", "bool": true})), true),
        (hint(json!({"type": "Bool", "number": 1})), false),
        (hint(json!({"type": "Bool", "bool": true, "string": "x"})), false),
        (hint(json!({"type": "Number", "number": 1})), true),
        (hint(json!({"type": "Number", "bool": true})), false),
        (hint(json!({"type": "String", "string": "x"})), true),
        (hint(json!({"type": "String", "number": 1})), false),
        (hint(json!({"type": "Other"})), false),
        (json!({"schedulerHintAdditionalProperties": [{"name": "", "value": {"type": "Bool", "bool": true}}]}), false),
        (json!({"schedulerHintAdditionalProperties": [{"name": "x"}]}), false),
        (json!({"schedulerHintAdditionalProperties": []}), true),
    ];
    for zone in [root as fn(Value) -> Value, extra as fn(Value) -> Value] {
        all.extend([
            (zone(json!({"name": "z"})), true),
            (zone(json!({"from": "Machine"})), true),
            (zone(json!({"from": "Name", "name": "z"})), true),
            (zone(json!({"from": "invalid"})), false),
            (zone(json!({})), false),
            (zone(json!({"from": "Name"})), false),
            (zone(json!({"from": "Machine", "name": "z"})), false),
            (zone(json!({"from": "Name", "name": ""})), false),
            (zone(json!({"name": "with space"})), false),
        ]);
    }
    let params: [fn(Value) -> Value; 3] = [
        |param| json!({"ports": [{"network": param}]}),
        |param| json!({"ports": [{"fixedIPs": [{"subnet": param}]}]}),
        |param| json!({"securityGroups": [param]}),
    ];
    for param in params {
        all.extend([
            (param(json!({})), false),
            (param(json!({"filter": {}})), false),
            (param(json!({"id": "no uuid"})), false),
            (param(json!({"id": UUID, "filter": {"name": "x"}})), false),
            (param(json!({"id": UUID})), true),
            (param(json!({"filter": {"name": "x"}})), true),
        ]);
        for key in ["tags", "tagsAny", "notTags", "notTagsAny"] {
            for bad in [",foo", "foo,", "foo,bar", "foo,,bar", ""] {
                all.push((param(json!({"filter": {key: [bad]}})), false));
                all.push((param(json!({"filter": {key: ["good", bad]}})), false));
            }
            all.push((param(json!({"filter": {key: ["foo", "bar"]}})), true));
        }
    }
    all
}

#[tokio::test]
#[ignore = "runs on a control plane: hack/e2e rules"]
async fn specs_are_accepted_and_refused_as_the_peer_does() {
    let (_cluster, namespace, api) = installed().await;
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let all = cases();
    let mut wrong = Vec::new();
    for (fields, accepted) in &all {
        let answer = api.create(&params, &server(fields)).await;
        if answer.is_ok() != *accepted {
            wrong.push(format!("{fields}: {}", answer.err().map_or("accepted".to_owned(), |it| it.to_string())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("SEEN: {} specs judged by the API server alone", all.len());
    namespace.finish(PATIENCE).await.unwrap();
}

#[tokio::test]
#[ignore = "runs on a control plane: hack/e2e rules"]
async fn a_spec_is_immutable_but_for_the_credentials() {
    let (_cluster, namespace, api) = installed().await;
    let stored = api
        .create(
            &PostParams::default(),
            &server(&json!({"rootVolume": {"sizeGiB": 1, "availabilityZone": {"name": "z"}}, "tags": ["a"]})),
        )
        .await
        .unwrap();
    assert_eq!(stored.data["spec"]["identityRef"]["type"], "Secret", "the default is stored");
    assert_eq!(stored.data["spec"]["rootVolume"]["availabilityZone"]["from"], "Name");
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let refused = [
        json!({"flavor": "large"}),
        json!({"flavorID": "3"}),
        json!({"image": {"filter": {"name": "j"}}}),
        json!({"ports": [{"network": {"filter": {"name": "m"}}}]}),
        json!({"sshKeyName": "k"}),
        json!({"tags": ["a", "b"]}),
        json!({"tags": null}),
        json!({"trunk": true}),
        json!({"rootVolume": {"sizeGiB": 2}}),
        json!({"serverMetadata": [{"key": "k", "value": "v"}]}),
        json!({"userDataRef": {"name": "x"}}),
        json!({"additionalBlockDevices": [{"name": "d", "sizeGiB": 1, "storage": {"type": "Local"}}]}),
        json!({"availabilityZone": "z"}),
        json!({"configDrive": true}),
        json!({"floatingIPPoolRef": {"kind": "Pool", "name": "p"}}),
        json!({"schedulerHintAdditionalProperties": [{"name": "h", "value": {"type": "Bool", "bool": true}}]}),
        json!({"securityGroups": [{"id": UUID}]}),
        json!({"serverGroup": {"id": UUID}}),
        json!({"identityRef": {"region": "two"}}),
    ];
    for spec in refused {
        let answer = api.patch("x", &dry, &Patch::Merge(json!({"spec": spec}))).await;
        assert!(answer.is_err(), "{spec}");
    }
    for allowed in [
        json!({"spec": {"identityRef": {"name": "other", "cloudName": "d"}}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
    ] {
        api.patch("x", &dry, &Patch::Merge(&allowed)).await.unwrap();
    }
    namespace.finish(PATIENCE).await.unwrap();
}

/// Judges specs of a kind by creating them in a rehearsal.
async fn judge(api: &Api<DynamicObject>, kind: &str, base: &Value, cases: &[(Value, bool)]) {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let mut wrong = Vec::new();
    for (fields, accepted) in cases {
        let answer = api.create(&params, &object(kind, base, fields)).await;
        if answer.is_ok() != *accepted {
            wrong.push(format!("{fields}: {}", answer.err().map_or("accepted".to_owned(), |it| it.to_string())));
        }
    }
    assert!(wrong.is_empty(), "{kind}: {}", wrong.join("\n"));
    println!("SEEN: {} specs of {kind} judged by the API server alone", cases.len());
}
fn object(kind: &str, base: &Value, fields: &Value) -> DynamicObject {
    let mut spec = base.clone();
    for (key, value) in fields.as_object().unwrap() {
        if value.is_null() {
            spec.as_object_mut().unwrap().remove(key);
        } else {
            spec[key] = value.clone();
        }
    }
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
#[ignore = "runs on a control plane: hack/e2e rules"]
async fn clusters_are_accepted_and_refused_as_the_peer_does() {
    let (cluster, namespace, _) = installed().await;
    let resource = ApiResource::erase::<OpenStackCluster>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client().await.unwrap(), namespace.name(), &resource);
    let base = json!({"identityRef": {"name": "creds", "cloudName": "c"}});
    let server = json!({"flavor": {"id": "1"}, "image": {"filter": {"name": "i"}}});
    let cases = [
        (json!({}), true),
        (json!({"bastion": {}}), false),
        (json!({"bastion": {"enabled": true}}), false),
        (json!({"bastion": {"enabled": false}}), true),
        (json!({"bastion": {"spec": server}}), true),
        (json!({"bastion": {"spec": server, "floatingIP": "foobar"}}), false),
        (json!({"bastion": {"spec": server, "floatingIP": "10.0.0.1"}}), true),
        (json!({"bastion": {"spec": server, "floatingIP": "10.0.0.1"}, "enableExternalNetwork": false}), false),
        (json!({"identityRef": null}), false),
        (json!({"identityRef": {"name": "", "cloudName": "c"}}), false),
        (json!({"identityRef": {"name": "n", "cloudName": ""}}), false),
        (json!({"identityRef": {"name": "n", "cloudName": "c", "type": "Other"}}), false),
        (json!({"managedSecurityGroups": {}}), true),
        (json!({"controlPlaneEndpoint": {"host": "h", "port": 65535}}), true),
        (json!({"controlPlaneEndpoint": {"host": "h", "port": 65536}}), false),
        (json!({"controlPlaneEndpoint": {"host": "h", "port": -1}}), false),
        (json!({"router": {"id": "no uuid"}}), false),
        (json!({"router": {"filter": {"name": "r"}}}), true),
        (json!({"network": {}}), false),
        (json!({"network": {"filter": {}}}), false),
        (json!({"subnets": [{"id": UUID}, {"id": UUID}, {"id": UUID}]}), false),
        (json!({"apiServer": {"port": 6443}}), true),
        (json!({"apiServer": {"port": 0}}), true),
        (json!({"apiServer": {"port": 65535}}), true),
        (json!({"apiServer": {"port": 65536}}), false),
        (json!({"apiServer": {"port": -1}}), false),
    ];
    judge(&api, "OpenStackCluster", &base, &cases).await;
    // given one with defaults
    let stored = api
        .create(&PostParams::default(), &object("OpenStackCluster", &base, &json!({"bastion": {"spec": server}})))
        .await
        .unwrap();
    assert_eq!(stored.data["spec"]["bastion"]["enabled"], true, "the default is stored");
    assert_eq!(stored.data["spec"]["identityRef"]["type"], "Secret");
    let patch = |spec: Value| {
        let api = api.clone();
        async move { api.patch("x", &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await }
    };
    // when the endpoint is set, then it stays; a bastion may change and go without being disabled
    patch(json!({"controlPlaneEndpoint": {"host": "a", "port": 1}})).await.unwrap();
    assert!(patch(json!({"controlPlaneEndpoint": {"host": "b", "port": 1}})).await.is_err());
    assert!(patch(json!({"identityRef": {"region": "r"}})).await.is_err());
    patch(json!({"bastion": {"spec": {"flavor": {"id": "2"}}}})).await.unwrap();
    patch(json!({"bastion": null})).await.unwrap();
    namespace.finish(PATIENCE).await.unwrap();
}

#[tokio::test]
#[ignore = "runs on a control plane: hack/e2e rules"]
async fn machines_are_accepted_and_refused_as_the_peer_does() {
    let (cluster, namespace, _) = installed().await;
    let client = cluster.client().await.unwrap();
    let machines: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace.name(), &ApiResource::erase::<OpenStackMachine>(&()));
    let base = json!({"flavor": {"filter": {"name": "small"}}, "image": {"filter": {"name": "i"}}});
    let device = |name: &str, size: i32| json!({"name": name, "sizeGiB": size, "storage": {"type": "Local"}});
    let cases = [
        (json!({}), true),
        (json!({"flavor": null}), false),
        (json!({"flavor": {}}), false),
        (json!({"flavor": {"filter": {}}}), false),
        (json!({"flavor": {"id": "1", "filter": {"name": "x"}}}), false),
        (json!({"flavor": {"id": "1"}}), true),
        (json!({"image": {}}), false),
        (json!({"ports": []}), true),
        (json!({"ports": [{}]}), true),
        (json!({"ports": [{"enablePortSecurity": false, "securityGroups": [{"id": UUID}]}]}), false),
        (json!({"rootVolume": {"sizeGiB": 0}}), false),
        (json!({"rootVolume": {"sizeGiB": 1}, "additionalBlockDevices": [device("root", 1)]}), false),
        (json!({"rootVolume": {"sizeGiB": 1}, "additionalBlockDevices": [device("user", 1)]}), true),
        (json!({"additionalBlockDevices": [device("d", 1), device("d", 1)]}), false),
        (json!({"serverMetadata": [{"key": "custody-owner", "value": "v"}]}), false),
        (json!({"serverMetadata": [{"key": long(256), "value": "v"}]}), false),
        (json!({"identityRef": {"name": "", "cloudName": "c"}}), false),
        (json!({"tags": ["a", "a"]}), false),
    ];
    judge(&machines, "OpenStackMachine", &base, &cases).await;
    machines.create(&PostParams::default(), &object("OpenStackMachine", &base, &json!({"tags": ["a"]}))).await.unwrap();
    let patch = |spec: Value| {
        let api = machines.clone();
        async move { api.patch("x", &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await }
    };
    for allowed in [
        json!({"providerID": "openstack:///a"}),
        json!({"providerID": "openstack:///b"}),
        json!({"identityRef": {"name": "n", "cloudName": "c"}}),
        json!({"identityRef": {"name": "m", "cloudName": "d"}}),
        json!({"identityRef": null}),
    ] {
        patch(allowed.clone()).await.unwrap_or_else(|why| panic!("{allowed}: {why}"));
    }
    patch(json!({"identityRef": {"name": "n", "cloudName": "c", "region": "r"}})).await.unwrap();
    for refused in [
        json!({"flavor": {"filter": {"name": "large"}}}),
        json!({"flavor": {"id": "1", "filter": null}}),
        json!({"image": {"filter": {"name": "j"}}}),
        json!({"tags": ["b"]}),
        json!({"tags": null}),
        json!({"ports": [{}]}),
        json!({"trunk": true}),
        json!({"sshKeyName": "k"}),
        json!({"identityRef": {"region": "s"}}),
    ] {
        assert!(patch(refused.clone()).await.is_err(), "{refused}");
    }
    // a template is replaced, not changed; Cluster API's rehearsal is let through
    manifests::apply_folder(&cluster, "deploy/openstack-server-controller").await.unwrap();
    let templates: Api<DynamicObject> =
        Api::namespaced_with(client, namespace.name(), &ApiResource::erase::<OpenStackMachineTemplate>(&()));
    let template = object("OpenStackMachineTemplate", &json!({"template": {"spec": base}}), &json!({}));
    templates.create(&PostParams::default(), &template).await.unwrap();
    let changed = json!({"spec": {"template": {"spec": {"sshKeyName": "k"}}}});
    // A policy takes a moment to be known to the API server.
    let refused =
        |answer: &kube::Result<DynamicObject>| answer.as_ref().is_err_and(|why| why.to_string().contains("immutable"));
    e2e::until("the policy to be in force", PATIENCE, || async {
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        let answer = templates.patch("x", &dry, &Patch::Merge(&changed)).await;
        Ok(if refused(&answer) { e2e::Seen::Yes(()) } else { e2e::Seen::NotYet(format!("{:?}", answer.err())) })
    })
    .await
    .unwrap();
    assert!(refused(&templates.patch("x", &PatchParams::default(), &Patch::Merge(&changed)).await));
    let mut rehearsal = changed.clone();
    rehearsal["metadata"] = json!({"annotations": {"topology.cluster.x-k8s.io/dry-run": ""}});
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    templates.patch("x", &dry, &Patch::Merge(&rehearsal)).await.unwrap();
    assert!(
        templates.patch("x", &PatchParams::default(), &Patch::Merge(&rehearsal)).await.is_err(),
        "only in a rehearsal"
    );
    namespace.finish(PATIENCE).await.unwrap();
}
