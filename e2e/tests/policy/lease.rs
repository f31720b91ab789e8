//! One Lease for two: with the shipped overlay, whoever holds the Lease under the peer's name keeps us from acting.
use crate::stage::{PATIENCE, Stage};
use crate::tell;
use common::clock::{Clock, SystemClock};
use e2e::{Account, AuditLog, ControllerProcess, Error, Result, Seen, binaries, manifests, until};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::time::Duration;

const OVERLAY: &str = "deploy/overlays/policy-pruner-beside-peer";
const PEERS: &str = "open-cluster-management-agent-addon";
const LEASE: &str = "config-policy-controller.open-cluster-management.io";
/// How long the Lease lasts without a renewal, and how many times half a second it is held: longer than that.
const SECONDS: u64 = 3;
const RENEWALS: usize = 16;

#[tokio::test]
async fn nothing_is_done_while_the_peer_holds_the_lease() {
    tell("nothing_is_done_while_the_peer_holds_the_lease", story()).await;
}

/// The account of the overlay. Everything else of it is the base's, which other tests stand on: its binding bears another name here.
async fn beside_the_peer(stage: &Stage) -> Result<Account> {
    let mut objects = manifests::render(&stage.cluster, &binaries::root().join(OVERLAY)).await?;
    let kind = |object: &DynamicObject| object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
    let of_peer = |object: &DynamicObject| matches!(kind(object).as_str(), "Namespace" | "CustomResourceDefinition");
    assert!(!objects.iter().any(of_peer), "namespace and definition are the peer's");
    let stray = objects.iter().filter(|object| object.metadata.namespace.as_deref().is_some_and(|n| n != PEERS));
    assert_eq!(stray.count(), 0, "everything is in the peer's namespace");
    objects.retain(|object| {
        matches!(kind(object).as_str(), "ServiceAccount" | "Role" | "RoleBinding" | "ClusterRoleBinding")
    });
    for binding in objects.iter_mut().filter(|object| kind(object) == "ClusterRoleBinding") {
        binding.metadata.name = Some("custody-policy-pruner-beside-peer".into());
    }
    let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {PEERS}}}}}");
    manifests::apply_text(&stage.cluster, PEERS, &namespace).await?;
    manifests::apply(&stage.cluster, PEERS, objects).await?;
    Account::of(&stage.cluster, PEERS, "policy-pruner").await
}
/// Somebody takes the Lease, renews it, or lets go of it.
async fn hold(stage: &Stage, holder: &str) -> Result<()> {
    let now = SystemClock.wall().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": SECONDS, "acquireTime": now, "renewTime": now});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE, "namespace": PEERS}, "spec": spec});
    manifests::apply_text(&stage.cluster, PEERS, &lease.to_string()).await
}
fn candidate(stage: &Stage, instance: &str) -> Result<ControllerProcess> {
    stage.launch(instance)?.arg("--leader-elect=true").arg("--retry-period=1s").start()
}
fn pruning(stage: &Stage, child: &str) -> (Value, Value) {
    let metadata = json!({"name": child, "namespace": stage.namespace()});
    let child = json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": metadata, "spec": {"a": 1}});
    let template = json!({"complianceType": "musthave", "objectDefinition": child});
    (
        child,
        json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": [template]}),
    )
}

async fn story() -> Result<()> {
    // given a policy that we served while nobody else did
    let mut stage = Stage::set("lease").await?;
    stage.account = beside_the_peer(&stage).await?;
    let mut first = candidate(&stage, "first")?;
    let (old, old_spec) = pruning(&stage, "old");
    let old_policy = stage.policy("old", &old_spec);
    stage.create(&old_policy).await?;
    stage.settled("old", "Compliant").await?;
    let ended = first.stop(Duration::from_secs(40)).await?;
    assert!(ended.success(), "{ended}");
    // when somebody holds the Lease and renews it, one policy is deleted and another one is created
    let peer = "config-policy-controller-7d9f_0b1c";
    hold(&stage, peer).await?;
    let log = AuditLog::of(&stage.cluster)?;
    let before = log.moment().await?;
    let mut second = candidate(&stage, "second")?;
    let (new, new_spec) = pruning(&stage, "new");
    stage.delete(&old_policy).await?;
    stage.create(&stage.policy("new", &new_spec)).await?;
    let user = stage.account.user();
    until("a candidate that follows the Lease", PATIENCE, || async {
        hold(&stage, peer).await?;
        let requests = log.requests(&user, before, log.moment().await?)?;
        let follows = requests.keys().any(|r| r.resource.starts_with("leases.") && r.verb == "watch" && r.code == 200);
        Ok(if follows { Seen::Yes(()) } else { Seen::NotYet(format!("{requests:?}")) })
    })
    .await?;
    for _ in 0..RENEWALS {
        hold(&stage, peer).await?;
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_millis(500)).await;
    }
    // then nothing is evaluated, nothing is pruned, nothing is written at all
    second.must_run()?;
    let changes = log.changes(&user, before, log.moment().await?)?;
    assert!(changes.is_empty(), "{changes:?}");
    let held = stage.get(&old_policy).await?.ok_or_else(|| Error::other("the policy went"))?;
    assert!(held["metadata"]["deletionTimestamp"].is_string() && held["status"]["compliant"] == "Compliant", "{held}");
    assert!(stage.get(&old).await?.is_some() && stage.get(&new).await?.is_none());
    let waiting = stage.policies().get("new").await?;
    assert!(waiting.data["status"].is_null(), "{waiting:?}");
    // and when it lets go, we take over and work
    hold(&stage, "").await?;
    stage.settled("new", "Compliant").await?;
    stage.gone("old").await?;
    assert!(stage.get(&old).await?.is_none() && stage.get(&new).await?.is_some());
    second.must_run()?;
    stage.delete(&stage.policy("new", &json!({}))).await?;
    stage.gone("new").await?;
    stage.clear().await
}
