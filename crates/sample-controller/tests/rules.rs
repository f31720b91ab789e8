//! The definition's own rules, on a real API server: what a person gets wrong is refused, and says why.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use e2e::{Cluster, TemporaryNamespace, cluster, manifests};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use sample_controller::api::{SampleOwner, SampleOwnerSpec};
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(1);

async fn installed() -> (std::sync::Arc<Cluster>, TemporaryNamespace, Api<SampleOwner>) {
    let cluster = cluster().await.unwrap();
    manifests::apply_text(&cluster, "default", &sample_controller::crd::yaml().unwrap()).await.unwrap();
    let namespace = TemporaryNamespace::create(&cluster, "rules").await.unwrap();
    let api = Api::namespaced(cluster.client().await.unwrap(), namespace.name());
    (cluster, namespace, api)
}
fn network() -> Value {
    json!([{"name": "main", "cidr": "10.0.0.0/16"}])
}
fn disk() -> Value {
    json!([{"name": "d", "sizeGb": 1}])
}
fn full() -> Value {
    json!({
        "networks": network(),
        "disks": disk(),
        "addresses": [{"name": "a", "network": "main", "label": "api"}],
        "routes": [{"name": "r", "network": "main", "destination": "0.0.0.0/0", "nextHop": "10.0.0.1"}],
        "machines": [{"name": "m", "network": "main", "disk": "d", "flavor": "small"}],
    })
}

#[tokio::test]
#[ignore = "runs on a control plane: hack/e2e rules"]
async fn what_cannot_be_served_is_refused_at_the_door() {
    let (_cluster, namespace, api) = installed().await;
    let machine =
        |name: &str, network: &str, disk: Value| json!({"name": name, "network": network, "disk": disk, "flavor": "s"});
    let route = |name: &str, network: &str| json!({"name": name, "network": network, "destination": "0.0.0.0/0", "nextHop": "10.0.0.1"});
    let address = |name: &str, network: &str| json!({"name": name, "network": network, "label": "api"});
    let cases = [
        (json!({"networks": network(), "addresses": [address("a", "other")]}), "an address names a network"),
        (json!({"networks": network(), "routes": [route("r", "other")]}), "a route names a network"),
        (
            json!({"networks": network(), "machines": [{"name": "m", "network": "other", "flavor": "s"}]}),
            "a machine names a network",
        ),
        (json!({"networks": network(), "machines": [machine("m", "main", json!("other"))]}), "a machine names a disk"),
        (
            json!({"networks": network(), "disks": disk(),
                   "machines": [machine("m", "main", json!("d")), machine("n", "main", json!("d"))]}),
            "a disk serves at most one machine",
        ),
        (
            json!({"networks": network(), "addresses": [address("a", "main"), address("b", "main")]}),
            "a label is used once",
        ),
        (
            json!({"networks": network(), "routes": [route("a", "main"), route("b", "main")]}),
            "a destination is used once",
        ),
        (
            json!({"networks": [{"name": "a", "cidr": "10.0.0.0/16", "cloudName": "c"}, {"name": "b", "cidr": "10.0.0.0/16", "cloudName": "c"}]}),
            "a cloudName is used once",
        ),
        (json!({"disks": [{"name": "a", "sizeGb": 1}, {"name": "a", "sizeGb": 2}]}), "Duplicate value"),
        (json!({"networks": [{"name": "a"}]}), "either cidr"),
        (json!({"networks": [{"name": "a", "cidr": "10.0.0.0/16", "use": "network-0123abcd"}]}), "either cidr"),
        (json!({"disks": [{"name": "a"}]}), "either sizeGb"),
        (
            json!({"networks": [{"name": "a", "use": "network-0123abcd", "cloudName": "c"}]}),
            "neither adopted nor named",
        ),
        (json!({"disks": [{"name": "a", "sizeGb": 1, "adopt": "Delete"}]}), "adopt needs the cloudName"),
        (json!({"disks": [{"name": "a", "sizeGb": 1, "cloudName": "c", "adopt": "Keep"}]}), "Unsupported value"),
        (json!({"disks": [{"name": "a", "sizeGb": 0}]}), "sizeGb"),
        (json!({"networks": [{"name": "Upper", "cidr": "10.0.0.0/16"}]}), "should match"),
        (json!({"networks": [{"name": "a", "use": "no-id"}]}), "should match"),
    ];
    // Untyped, so that what the types could not even say reaches the API server too.
    let resource = ApiResource::erase::<SampleOwner>(&());
    let raw: Api<DynamicObject> = Api::namespaced_with(api.into_client(), namespace.name(), &resource);
    for (spec, said) in cases {
        let object = json!({"apiVersion": "sample.custody.dev/v1alpha1", "kind": "SampleOwner", "metadata": {"name": "x"}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let refused = raw.create(&params, &object).await.expect_err(said).to_string();
        assert!(refused.contains(said), "wanted {said:?}, got {refused}");
    }
    namespace.finish(PATIENCE).await.unwrap();
}

#[tokio::test]
#[ignore = "runs on a control plane: hack/e2e rules"]
async fn what_cannot_be_changed_in_the_cloud_cannot_be_changed_here() {
    let (_cluster, namespace, api) = installed().await;
    let spec: SampleOwnerSpec = serde_json::from_value(full()).unwrap();
    api.create(&PostParams::default(), &SampleOwner::new("o", spec)).await.unwrap();
    let cases = [
        ("networks", json!([{"name": "main", "cidr": "10.1.0.0/16"}]), "cidr cannot be changed"),
        ("networks", json!([{"name": "main", "use": "network-0123abcd"}]), "use cannot be added"),
        ("networks", json!([{"name": "main", "cidr": "10.0.0.0/16", "cloudName": "x"}]), "cloudName cannot be added"),
        ("disks", json!([{"name": "d", "sizeGb": 2}]), "sizeGb cannot be changed"),
        ("addresses", json!([{"name": "a", "network": "main", "label": "other"}]), "label cannot be changed"),
        (
            "routes",
            json!([{"name": "r", "network": "main", "destination": "0.0.0.0/0", "nextHop": "10.0.0.2"}]),
            "nextHop cannot be changed",
        ),
        (
            "machines",
            json!([{"name": "m", "network": "main", "flavor": "small"}]),
            "disk cannot be added or taken away",
        ),
    ];
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    for (list, value, said) in cases {
        let patch = Patch::Merge(json!({"spec": {list: value}}));
        let refused = api.patch("o", &dry, &patch).await.expect_err(said).to_string();
        assert!(refused.contains(said), "wanted {said:?}, got {refused}");
    }
    // The one thing that the cloud can change, and taking a whole item away.
    for allowed in [
        json!({"machines": [{"name": "m", "network": "main", "disk": "d", "flavor": "large"}]}),
        json!({"machines": []}),
    ] {
        api.patch("o", &dry, &Patch::Merge(json!({"spec": allowed}))).await.unwrap();
    }
    namespace.finish(PATIENCE).await.unwrap();
}
