//! What is asked for is what is granted, on the default base with one kind given by its user: nothing is denied, and nothing of the
//! base is granted in vain.
use crate::stage::{PATIENCE, Stage};
use crate::tell;
use e2e::{AuditLog, ControllerProcess, Error, Result, Seen, rights, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test]
async fn what_is_asked_for_is_what_is_granted() {
    tell("what_is_asked_for_is_what_is_granted", story()).await;
}

async fn story() -> Result<()> {
    // given a controller with the shipped rights, elected, as the pod of its Deployment, and another that waits for its end
    let stage = Stage::set("rights").await?;
    let log = AuditLog::of(&stage.cluster)?;
    let before = log.moment().await?;
    let replica = |name: &str| -> Result<ControllerProcess> {
        let launch = stage.launch(name)?.arg("--leader-elect=true").arg("--operator-namespace=custody-policy");
        launch.env("OPERATOR_NAME", "policy-pruner").start()
    };
    let mut controller = replica("controller")?;
    controller.wait_ready(PATIENCE).await?;
    let mut standby = replica("standby")?;
    standby.wait_ready(PATIENCE).await?;
    // when a policy lives, is edited, meets a foreign hand in its ledger, and dies
    live(&stage).await?;
    blocked(&stage).await?;
    for (name, interval) in [("sealed", json!({})), ("sealed-timed", json!({"compliant": "1s", "noncompliant": "1s"}))]
    {
        encrypted(&stage, name, &interval).await?;
    }
    // then nothing was denied
    stop(&mut standby).await?;
    stop(&mut controller).await?;
    let requests = log.requests(&stage.account.user(), before, log.moment().await?)?;
    // A create that is granted and refused all the same is refused by admission: the namespace of another test is going, and nothing
    // can be made in there. That refuses nothing else, so every other one counts: what is granted for a few names only is not created.
    let granted = rights::granted(&stage.cluster, "policy-pruner").await?;
    let by_admission = |r: &e2e::audit::Request| r.verb == "create" && granted.contains(&rights::needed(r));
    let denied = requests.keys().filter(|r| r.code == 403 && !by_admission(r));
    let denied: Vec<String> = denied.map(ToString::to_string).collect();
    // Other tests share the account: some ask for a right that is missing on purpose, or that was given a moment ago.
    let others = ["limitranges", "later.custody.dev", "fleetings."];
    let denied: Vec<_> = denied.into_iter().filter(|r| !others.iter().any(|other| r.contains(other))).collect();
    assert!(denied.is_empty(), "{denied:?}");
    // and everything that the base grants was used
    let used: BTreeSet<_> = requests.keys().map(rights::needed).collect();
    let unused: Vec<_> = granted.into_iter().filter(|right| !used.contains(right)).collect();
    assert!(unused.is_empty(), "granted and not used: {unused:?}");
    stage.clear().await
}
async fn stop(controller: &mut ControllerProcess) -> Result<()> {
    let ended = controller.stop(Duration::from_secs(40)).await?;
    assert!(ended.success(), "{ended}\n{}", controller.log_tail(20));
    Ok(())
}
fn thing(stage: &Stage, name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": stage.namespace()});
    json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": metadata, "spec": {"a": 1}})
}
fn spec(stage: &Stage, names: &[&str]) -> Value {
    let templates: Vec<Value> = names
        .iter()
        .map(|name| json!({"complianceType": "musthave", "objectDefinition": thing(stage, name)}))
        .collect();
    json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": templates})
}
async fn compliant(stage: &Stage, name: &str) -> Result<()> {
    let wanted = |found: Option<&Value>| match found {
        Some(found)
            if found["status"]["compliant"] == "Compliant"
                && found["status"]["lastEvaluatedGeneration"] == found["metadata"]["generation"] =>
        {
            Ok(())
        }
        _ => Err("not compliant".to_owned()),
    };
    stage.wait(name, "compliant", wanted).await.map(drop)
}
async fn live(stage: &Stage) -> Result<()> {
    let policy = stage.policy("life", &spec(stage, &["one"]));
    stage.create(&policy).await?;
    compliant(stage, "life").await?;
    // The ledger grows, after somebody touched it: a conflict, and one read.
    let ledgers = stage.api("v1", "ConfigMap", stage.namespace()).await?;
    let labelled = kube::api::ListParams::default().labels("custody.dev/policy-ledger=true");
    let ledger = ledgers.list(&labelled).await?.items.into_iter().next().ok_or_else(|| Error::other("no ledger"))?;
    let name = ledger.metadata.name.unwrap_or_default();
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": stage.namespace()}});
    stage.merge(&policy, &json!({"spec": spec(stage, &["one", "two"])})).await?;
    compliant(stage, "life").await?;
    // Somebody deletes the ledger: the policy is asked for, and writes it anew when it has something to write.
    stage.delete(&map).await?;
    stage.merge(&policy, &json!({"spec": spec(stage, &["one", "two", "three"])})).await?;
    compliant(stage, "life").await?;
    // An object somebody else holds on to is read, and waited for.
    stage.merge(&thing(stage, "two"), &json!({"metadata": {"finalizers": ["e2e.custody.dev/hold"]}})).await?;
    stage.delete(&policy).await?;
    stage
        .wait("life", "stuck", |found| {
            let shown = found.map(|f| f["status"]["compliant"].clone()).unwrap_or_default();
            if shown == "Terminating" { Ok(()) } else { Err("not yet".into()) }
        })
        .await?;
    stage.merge(&thing(stage, "two"), &json!({"metadata": {"finalizers": null}})).await?;
    stage.wait("life", "gone", |found| if found.is_none() { Ok(()) } else { Err("there".into()) }).await?;
    for name in ["one", "two", "three"] {
        assert!(stage.get(&thing(stage, name)).await?.is_none(), "{name}");
    }
    Ok(())
}
/// The name of its ledger, which is a hash of the policy's name.
const BLOCKED: &str = "policy-ledger-6973dddd3ef9cb6a2932";
/// Something else bears the name of a policy's ledger: nothing is created, and the message says what to move.
async fn blocked(stage: &Stage) -> Result<()> {
    let metadata = json!({"name": BLOCKED, "namespace": stage.namespace()});
    let stranger = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    stage.create(&stranger).await?;
    let policy = stage.policy("blocked", &spec(stage, &["behind"]));
    stage.create(&policy).await?;
    stage
        .wait("blocked", "told", |found| {
            let text = found.map(|f| f["status"]["compliancyDetails"][0]["conditions"][0]["message"].to_string());
            if text.is_some_and(|t| t.contains("the ledger cannot be")) { Ok(()) } else { Err("not yet".into()) }
        })
        .await?;
    assert!(stage.get(&thing(stage, "behind")).await?.is_none(), "nothing is created without a ledger");
    stage.delete(&stranger).await?;
    compliant(stage, "blocked").await?;
    stage.delete(&policy).await?;
    stage.wait("blocked", "gone", |found| if found.is_none() { Ok(()) } else { Err("there".into()) }).await.map(drop)
}
/// A policy with an encrypted value reads the one Secret that it may read; it cannot be decrypted, and says so.
async fn encrypted(stage: &Stage, name: &str, interval: &Value) -> Result<()> {
    let mut wanted = spec(stage, &["sealed"]);
    wanted["pruneObjectBehavior"] = "None".into();
    wanted["evaluationInterval"] = interval.clone();
    wanted["object-templates"][0]["objectDefinition"]["spec"]["a"] = "$ocm_encrypted:AAAA".into();
    let mut policy = stage.policy(name, &wanted);
    policy["metadata"]["annotations"] =
        json!({"policy.open-cluster-management.io/encryption-iv": "AAAAAAAAAAAAAAAAAAAAAA=="});
    stage.create(&policy).await?;
    let metadata = json!({"name": "policy-encryption-key", "namespace": stage.namespace()});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": "AAAAAAAAAAAAAAAAAAAAAA=="}});
    if stage.get(&secret).await?.is_none() {
        stage.create(&secret).await?;
    }
    stage
        .wait(name, "told", |found| {
            let text = found.map(|f| f["status"]["compliancyDetails"][0]["conditions"][0]["message"].to_string());
            if text.is_some_and(|t| t.contains("decryption of")) { Ok(()) } else { Err("not yet".into()) }
        })
        .await?;
    until("the sealed policy to go", PATIENCE, || async {
        stage.delete(&policy).await?;
        Ok(stage.policies().get_opt(name).await?.map_or(Seen::Yes(()), |_| Seen::NotYet("there".into())))
    })
    .await
}
