//! What is asked for is what is granted: nothing is denied, and nothing is granted in vain.
use crate::machine::Core;
use crate::replay::{IMAGES, boot, cluster, machine, told};
use crate::stage::{PATIENCE, Stage, condition, spec};
use crate::{seen, tell};
use e2e::patience::dynamic_api;
use e2e::{AuditLog, ControlPlane, Error, Result, Seen, capi, manifests, rights, until};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test]
async fn what_is_asked_for_is_what_is_granted() {
    tell("what_is_asked_for_is_what_is_granted", story()).await;
}
async fn story() -> Result<()> {
    // given a controller with the shipped rights, elected, another that waits for its end, and every kind that it may meet
    let plane = ControlPlane::start().await?;
    capi::install(plane.cluster()).await?;
    manifests::apply_text(plane.cluster(), "default", IMAGES).await?;
    let stage = Stage::on(plane.cluster(), "rights").await?;
    let log = AuditLog::of(&stage.cluster)?;
    let before = log.moment().await?;
    let mut controller = stage.launch("controller")?.start()?;
    controller.wait_ready(PATIENCE).await?;
    let mut standby = stage.launch("standby")?.start()?;
    standby.wait_ready(PATIENCE).await?;
    // when a machine of lent credentials, with an Image and an address of a pool, a bastion, a server that is taken over and one that is
    // refused live and die
    live(&stage, &Core::of(plane.cluster(), stage.namespace()).await?).await?;
    for replica in [&mut standby, &mut controller] {
        let ended = replica.stop(Duration::from_secs(40)).await?;
        assert!(ended.success(), "{ended}\n{}", replica.log_tail(20));
    }
    // then nothing was denied, and everything that is granted was used
    let requests = log.requests(&stage.account.user(), before, log.moment().await?)?;
    let denied: Vec<_> = requests.keys().filter(|it| it.code == 403).map(ToString::to_string).collect();
    assert!(denied.is_empty(), "denied: {denied:?}");
    let used: BTreeSet<_> = requests.keys().map(rights::needed).collect();
    let granted = rights::granted(&stage.cluster, "openstack-server-controller").await?;
    let unused: Vec<_> = granted.difference(&used).collect();
    assert!(unused.is_empty(), "granted and not used: {unused:?}");
    seen(&format!("{} rights granted, each used, none denied", granted.len()));
    stage.clear().await?;
    plane.stop().await
}

/// As the parts that others play would write it.
async fn play(stage: &Stage, api_version: &str, kind: &str, plural: &str, name: &str, fields: Value) -> Result<()> {
    let api = dynamic_api(stage.cluster.client().await?, stage.namespace(), api_version, kind, plural);
    let mut object: DynamicObject =
        serde_json::from_value(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}))
            .map_err(Error::other)?;
    object.data = json!({"spec": fields["spec"]});
    if api.get_opt(name).await?.is_none() {
        api.create(&PostParams::default(), &object).await?;
    }
    let status = json!({"status": fields["status"]});
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

const IPAM: &str = "ipam.cluster.x-k8s.io/v1beta2";

/// The pool gives an address to a claim.
async fn give(stage: &Stage, claim: &str, address: &str, pool: &Value) -> Result<()> {
    let public = "7e700000-0000-4000-8000-00000000000e";
    let fields = json!({"floating_network_id": public, "floating_ip_address": address, "port_id": null});
    stage.emulator.plant(&json!({"kind": "fip", "fields": fields})).await?;
    let given = json!({"apiVersion": IPAM, "kind": "IPAddress", "metadata": {"name": claim},
        "spec": {"address": address, "prefix": 32, "claimRef": {"name": claim}, "poolRef": pool}});
    manifests::apply_text(&stage.cluster, stage.namespace(), &given.to_string()).await?;
    let claimed = json!({"status": {"addressRef": {"name": claim}}});
    play(stage, IPAM, "IPAddressClaim", "ipaddressclaims", claim, claimed).await
}

/// A server that the Go provider made, with the claim that it left a finalizer on: both are taken over, and both can go.
async fn inherit(stage: &Stage, pool: &Value) -> Result<()> {
    let private = "7e700000-0000-4000-8000-000000000001";
    let planted = json!({"kind": "port", "fields": {"name": "old-0", "network_id": private, "fixed_ips": []}});
    let port = stage.emulator.plant(&planted).await?["id"].clone();
    stage.emulator.plant(&json!({"kind": "server", "fields": {"name": "old", "plugged": [port]}})).await?;
    let asked = json!({"custody.dev/adopt-from": "capo", "cluster.x-k8s.io/paused": ""});
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
        "metadata": {"name": "old", "annotations": asked, "finalizers": ["openstackserver.infrastructure.cluster.x-k8s.io"]},
        "spec": spec(&json!({"floatingIPPoolRef": pool}))});
    let object = serde_json::from_value(object).map_err(Error::other)?;
    let uid = stage.servers.create(&PostParams::default(), &object).await?.metadata.uid;
    let owner = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer", "name": "old", "uid": uid});
    let claim = json!({"apiVersion": IPAM, "kind": "IPAddressClaim", "spec": {"poolRef": pool}, "metadata": {"name": "old-floating-ip-address",
        "ownerReferences": [owner], "finalizers": ["openstackmachine.infrastructure.cluster.x-k8s.io/ip-claim"]}});
    manifests::apply_text(&stage.cluster, stage.namespace(), &claim.to_string()).await?;
    let claims =
        dynamic_api(stage.cluster.client().await?, stage.namespace(), IPAM, "IPAddressClaim", "ipaddressclaims");
    give(stage, "old-floating-ip-address", "203.0.113.78", pool).await?;
    let goes_on = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
    stage.servers.patch("old", &PatchParams::default(), &Patch::Merge(goes_on)).await?;
    let free = |it: &DynamicObject| it.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
    e2e::wait_for_object(&claims, "old-floating-ip-address", "the claim without a finalizer", PATIENCE, free).await?;
    stage.delete("old").await?;
    e2e::wait_until_gone(&stage.servers, "old", PATIENCE).await?;
    e2e::wait_until_gone(&claims, "old-floating-ip-address", PATIENCE).await
}

async fn live(stage: &Stage, core: &Core) -> Result<()> {
    stage.secret("boot", &[("value", "#cloud-config")]).await?;
    let namespace = stage.namespace();
    let lent = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackClusterIdentity", "metadata": {"name": "lent"},
        "spec": {"secretRef": {"name": "creds", "namespace": namespace}, "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}});
    let infrastructure = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster", "metadata": {"name": "c"},
        "spec": {"identityRef": {"name": "creds", "cloudName": "c"}, "network": {"filter": {"name": "private"}},
            "bastion": {"spec": {"flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "cirros"}}, "sshKeyName": "key"}}}});
    let all = format!("{}\n---\n{lent}\n---\n{infrastructure}", cluster("c", false));
    manifests::apply_text(&stage.cluster, namespace, &all).await?;
    let pool =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackFloatingIPPool", "name": "pool"});
    let fields = json!({"identityRef": {"type": "ClusterIdentity", "name": "lent", "cloudName": "c"}, "image": {"imageRef": {"name": "img"}}, "floatingIPPoolRef": pool});
    machine(stage, core, "m", fields).await?;
    boot(core, "m").await?;
    // the Image comes
    told(core, "m", "InstanceReady", "img is not there").await?;
    let available = json!({"type": "Available", "status": "True", "reason": "Success", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let image =
        json!({"spec": {}, "status": {"id": "1a600000-0000-4000-8000-000000000001", "conditions": [available]}});
    play(stage, "openstack.k-orc.cloud/v1alpha1", "Image", "images", "img", image).await?;
    // the pool gives an address
    told(core, "m", "InstanceReady", "WaitingForIPAddressClaim").await?;
    give(stage, "m-floating-ip-address", "203.0.113.77", &pool).await?;
    told(core, "m", "Ready", "True/").await?;
    let bastion = |it: &DynamicObject| condition(it, "BastionReady").is_some_and(|it| it.0 == "True");
    e2e::wait_for_object(&core.infrastructure, "c", "the bastion", PATIENCE, bastion).await?;
    inherit(stage, &pool).await?;
    // what is refused again and again is one event that is counted up
    stage.behave(&json!({"quotas": {"servers": 2}})).await?;
    stage.create("refused", &spec(&json!({}))).await?;
    stage.wait_said("refused", "InstanceReady", "QuotaExceeded").await?;
    let events: Api<Event> = Api::namespaced(stage.cluster.client().await?, namespace);
    until("an event that is counted up", PATIENCE, || async {
        stage.touch("refused").await?;
        let all = events.list(&ListParams::default()).await?.items;
        let about = |it: &&Event| {
            let owner = it.regarding.as_ref().and_then(|it| it.name.as_deref());
            owner == Some("refused") && it.reason.as_deref() == Some("QuotaExceeded")
        };
        let refused: Vec<&Event> = all.iter().filter(about).collect();
        let counted = matches!(refused.as_slice(), [one] if one.series.as_ref().is_some_and(|it| it.count >= 2));
        let told = || all.iter().map(|it| format!("{:?} {:?}", it.reason, it.note)).collect::<Vec<_>>();
        Ok(if counted { Seen::Yes(()) } else { Seen::NotYet(format!("{:#?}", told())) })
    })
    .await?;
    stage.delete("refused").await?;
    core.ours.delete("m", &DeleteParams::default()).await?;
    e2e::wait_until_gone(&core.ours, "m", PATIENCE).await?;
    core.infrastructure.delete("c", &DeleteParams::default()).await?;
    e2e::wait_until_gone(&core.infrastructure, "c", PATIENCE).await?;
    stage.delete_all().await
}
