//! Bastions, machines through Cluster API's own core, addresses of pools and adoption, on a real OpenStack.
use crate::machine::{Core, objects};
use crate::real_stage::{PATIENCE, Real};
use crate::stage::{condition, is_ready, spec};
use crate::{seen, tell};
use e2e::patience::{dynamic_api, until};
use e2e::{ControlPlane, Error, Result, Seen, capi, env, manifests};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
const IPAM: &str = "ipam.cluster.x-k8s.io/v1beta2";

fn bastion(name: &str) -> Value {
    json!({"bastion": {"spec": {"flavor": {"filter": {"name": name}}, "image": {"filter": {"name": "tiny"}}, "sshKeyName": "key"}}})
}

#[tokio::test]
async fn a_bastion_on_a_real_cloud_is_made_replaced_and_removed() {
    tell("a_bastion_on_a_real_cloud_is_made_replaced_and_removed", bastions()).await;
}
async fn bastions() -> Result<()> {
    let Some(real) = Real::set("realbastion").await? else { return Ok(()) };
    let mut controller = real.start(&[]).await?;
    let client = real.cluster.client().await?;
    let clusters = dynamic_api(client, real.namespace(), INFRASTRUCTURE, "OpenStackCluster", "openstackclusters");
    let mut spec = json!({"identityRef": {"name": "creds", "cloudName": "c"}, "network": {"filter": {"name": "private"}}, "tags": ["cluster"]});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), bastion("m1.tiny").as_object()) {
        spec.extend(more.clone());
    }
    let object =
        json!({"apiVersion": INFRASTRUCTURE, "kind": "OpenStackCluster", "metadata": {"name": "c"}, "spec": spec});
    let object: DynamicObject = serde_json::from_value(object).map_err(Error::other)?;
    clusters.create(&PostParams::default(), &object).await?;
    let has = |object: &DynamicObject| {
        condition(object, "BastionReady").is_some_and(|it| it.0 == "True")
            && object.data["status"]["bastion"]["floatingIP"].is_string()
    };
    // when a bastion is made, then openstacksdk sees its server with the address of the cluster's status
    let first = e2e::wait_for_object(&clusters, "c", "c to have its bastion", PATIENCE, has).await?;
    let first = first.data["status"]["bastion"].clone();
    let look = real.look().await?;
    assert_eq!(
        (&look["servers"][0]["id"], &look["floatingips"][0]["floating_ip_address"]),
        (&first["id"], &first["floatingIP"])
    );
    assert_eq!(look["floatingips"][0]["port_id"], look["ports"][0]["id"]);
    // when its flavor changes, then another server has the same address
    clusters.patch("c", &PatchParams::default(), &Patch::Merge(json!({"spec": bastion("m1.small")}))).await?;
    let other = |object: &DynamicObject| has(object) && object.data["status"]["bastion"]["id"] != first["id"];
    let second = e2e::wait_for_object(&clusters, "c", "c to have another bastion", PATIENCE, other).await?;
    assert_eq!(second.data["status"]["bastion"]["floatingIP"], first["floatingIP"]);
    let look = real.look().await?;
    let count = |kind: &str| look[kind].as_array().map(Vec::len);
    assert_eq!((count("servers"), count("ports"), count("floatingips")), (Some(1), Some(1), Some(1)), "{look}");
    // when it is removed, without being disabled first, then nothing of it is left and the cluster stays ready
    clusters.patch("c", &PatchParams::default(), &Patch::Merge(json!({"spec": {"bastion": null}}))).await?;
    real.wait_empty().await?;
    let plain = clusters.get("c").await?;
    assert_eq!(condition(&plain, "Ready").map(|it| it.0), Some("True"));
    clusters.delete("c", &DeleteParams::default()).await?;
    e2e::wait_until_gone(&clusters, "c", PATIENCE).await?;
    seen("a real OpenStack: a bastion made, replaced with the same address, removed; nothing left");
    controller.kill().await?;
    real.clear().await
}

#[tokio::test]
async fn a_server_of_the_go_provider_on_a_real_cloud_is_adopted_with_its_ids() {
    tell("a_server_of_the_go_provider_on_a_real_cloud_is_adopted_with_its_ids", adopted()).await;
}
async fn adopted() -> Result<()> {
    let Some(real) = Real::set("realadopt").await? else { return Ok(()) };
    let legacy = real.script("legacy.py", &["old"]).await?;
    let mut controller = real.start(&[]).await?;
    let wanted =
        spec(&json!({"image": {"filter": {"name": "tiny"}}, "flavor": "m1.tiny", "rootVolume": {"sizeGiB": 1}}));
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer", "spec": wanted,
        "metadata": {"name": "old", "annotations": {"custody.dev/adopt-from": "capo"}, "finalizers": ["openstackserver.infrastructure.cluster.x-k8s.io"]}});
    let object: DynamicObject = serde_json::from_value(object).map_err(Error::other)?;
    real.servers.create(&PostParams::default(), &object).await?;
    let object = real.wait_ready("old").await?;
    // then nothing was made, and everything is as it was but for the marks
    assert_eq!(object.data["status"]["instanceID"], legacy["server"]);
    assert_eq!(object.data["status"]["resources"]["ports"], json!([{"id": legacy["port"]}]));
    assert_eq!(object.data["status"]["resources"]["volumes"], json!([{"id": legacy["volume"]}]));
    assert_eq!(object.metadata.finalizers.clone().unwrap_or_default(), ["custody.dev/openstack"]);
    let look = real.look().await?;
    assert_eq!(look["servers"].as_array().map(Vec::len), Some(1));
    let metadata = &look["servers"][0]["metadata"];
    assert_eq!((&metadata["team"], &metadata["custody-adopted"]), (&json!("x"), &json!("delete")));
    real.delete_all().await?;
    seen(
        "a real OpenStack: a server, port and volume of the Go provider's making adopted with their ids, and gone with their owner",
    );
    controller.kill().await?;
    real.clear().await
}

#[tokio::test]
async fn cluster_api_makes_machines_on_a_real_cloud() {
    tell("cluster_api_makes_machines_on_a_real_cloud", machines()).await;
}
async fn machines() -> Result<()> {
    if env::openstack_root().is_none() {
        println!("no real OpenStack here: CUSTODY_OPENSTACK_ROOT is not set");
        return Ok(());
    }
    let plane = ControlPlane::start().await?;
    let cluster = plane.cluster();
    capi::install(cluster).await?;
    let Some(real) = Real::on(cluster, "realmachine").await? else { return Ok(()) };
    let manager = capi::start_manager(cluster).await?;
    let mut controller = real.start(&[]).await?;
    let core = Core::of(cluster, real.namespace()).await?;
    // when core makes machines from a template, then each is an instance that openstacksdk sees
    let text = objects("{flavor: {filter: {name: m1.tiny}}, image: {filter: {name: tiny}}, tags: [node]}")
        .replace("dataSecretName: boot", "dataSecretName: data");
    manifests::apply_text(cluster, real.namespace(), &text).await?;
    let machines = core.wait_provisioned(3, PATIENCE).await?;
    let look = real.look().await?;
    let servers = look["servers"].as_array().cloned().unwrap_or_default();
    assert_eq!(servers.len(), 3, "{look}");
    for machine in &machines {
        let provider = machine.data["spec"]["providerID"].as_str().unwrap_or_default();
        let known =
            servers.iter().filter_map(|it| it["id"].as_str()).any(|id| provider == format!("openstack:///{id}"));
        assert!(known, "{provider}");
    }
    // and a server with a pool has its address once the pool has given one
    pooled(&real).await?;
    // when the cluster goes, then so does everything
    core.clusters.delete("c", &DeleteParams::default()).await?;
    e2e::wait_until_gone(&core.clusters, "c", PATIENCE).await?;
    let left = real.look().await?;
    assert_eq!((&left["servers"], &left["ports"]), (&json!([]), &json!([])), "{left}");
    seen(
        "a real OpenStack: Cluster API's core made 3 machines with providerID and addresses; a server got its pool's floating IP; nothing left",
    );
    controller.must_run()?;
    controller.kill().await?;
    real.clear().await?;
    manager.stop().await?;
    plane.stop().await
}

/// Plays the pool: a floating IP that somebody made, given to the claim.
async fn pooled(real: &Real) -> Result<()> {
    let given = real.script("float.py", &[]).await?;
    let client = real.cluster.client().await?;
    let api = |kind: &str, plural: &str| dynamic_api(client.clone(), real.namespace(), IPAM, kind, plural);
    let (claims, addresses): (Api<DynamicObject>, Api<DynamicObject>) =
        (api("IPAddressClaim", "ipaddressclaims"), api("IPAddress", "ipaddresses"));
    let pool =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackFloatingIPPool", "name": "pool"});
    let wanted = spec(&json!({"image": {"filter": {"name": "tiny"}}, "flavor": "m1.tiny", "floatingIPPoolRef": pool}));
    real.create("pooled", &wanted).await?;
    let claim = "pooled-floating-ip-address";
    e2e::wait_for_object(&claims, claim, "the claim to be made", PATIENCE, |_| true).await?;
    let address = json!({"apiVersion": IPAM, "kind": "IPAddress", "metadata": {"name": "given"},
        "spec": {"claimRef": {"name": claim}, "poolRef": pool, "address": given["address"], "prefix": 32}});
    let address: DynamicObject = serde_json::from_value(address).map_err(Error::other)?;
    addresses.create(&PostParams::default(), &address).await?;
    let status = json!({"status": {"addressRef": {"name": "given"}}});
    claims.patch_status(claim, &PatchParams::default(), &Patch::Merge(status)).await?;
    let object = real.wait_ready("pooled").await?;
    assert!(is_ready(&object));
    let led = until("the address to lead to the server", PATIENCE, || async {
        let look = real.look().await?;
        let port = look["floatingips"][0]["port_id"].clone();
        Ok(if port.is_string() { Seen::Yes(port) } else { Seen::NotYet(look["floatingips"].to_string()) })
    })
    .await?;
    assert_eq!(json!([{"id": led}]), object.data["status"]["resources"]["ports"]);
    real.servers.delete("pooled", &DeleteParams::default()).await?;
    e2e::wait_until_gone(&real.servers, "pooled", PATIENCE).await?;
    // The address is the pool's: it stays, and leads nowhere.
    let look = real.look().await?;
    assert_eq!(
        (look["floatingips"].as_array().map(Vec::len), &look["floatingips"][0]["port_id"]),
        (Some(1), &json!(null))
    );
    Ok(())
}
