//! How policies end, beyond the matrix: an object handed over, what is inside before what holds it, deletions that are stuck and reported,
//! an installation that leaves.
use crate::stage::{BINARY, PATIENCE, Stage};
use crate::tell;
use e2e::{Error, Result, Seen, binaries, until};
use kube::api::ListParams;
use serde_json::{Value, json};

fn thing(stage: &Stage, name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": stage.namespace()});
    json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": metadata, "spec": {"a": 1}})
}
fn pruning(behaviour: &str, child: &Value) -> Value {
    json!({"remediationAction": "enforce", "pruneObjectBehavior": behaviour,
        "object-templates": [{"complianceType": "musthave", "objectDefinition": child}]})
}
async fn wait_gone(stage: &Stage, object: &Value) -> Result<()> {
    until(&format!("{object} to be gone"), PATIENCE, || async {
        Ok(stage.get(object).await?.map_or(Seen::Yes(()), |_| Seen::NotYet("still there".into())))
    })
    .await
}

#[tokio::test]
async fn a_child_is_handed_over_to_the_policy_that_still_requires_it() {
    tell("a_child_is_handed_over_to_the_policy_that_still_requires_it", heir()).await;
}

async fn heir() -> Result<()> {
    // given a child that one policy created, and another one requires
    let stage = Stage::set("heir").await?;
    let mut controller = stage.start().await?;
    let child = thing(&stage, "shared");
    for name in ["first", "second"] {
        stage.create(&stage.policy(name, &pruning("DeleteIfCreated", &child))).await?;
        stage.settled(name, "Compliant").await?;
    }
    let before = stage.get(&child).await?.unwrap_or_default();
    // when the one that created it goes, then it stays, and people are told
    stage.delete(&stage.policy("first", &json!({}))).await?;
    stage.gone("first").await?;
    let kept = stage.get(&child).await?.unwrap_or_default();
    assert_eq!(kept["metadata"]["uid"], before["metadata"]["uid"]);
    let events = stage.api("v1", "Event", stage.namespace()).await?;
    until("an event that says so", PATIENCE, || async {
        let all = events.list(&ListParams::default()).await?.items;
        let told = all.iter().any(|event| event.data["reason"] == "PruneKept");
        Ok(if told { Seen::Yes(()) } else { Seen::NotYet(format!("{} events", all.len())) })
    })
    .await?;
    // and when the last one goes that requires it, it goes too: somebody of us created it
    stage.delete(&stage.policy("second", &json!({}))).await?;
    stage.gone("second").await?;
    wait_gone(&stage, &child).await?;
    controller.must_run()?;
    stage.clear().await
}

#[tokio::test]
async fn what_is_inside_goes_before_what_holds_it() {
    tell("what_is_inside_goes_before_what_holds_it", order()).await;
}

async fn order() -> Result<()> {
    // given a policy that created a namespace and a thing inside it, a kind and an object of it
    let stage = Stage::set("order").await?;
    let mut controller = stage.start().await?;
    let inner = format!("{}-inner", stage.namespace());
    let house = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}});
    let mut guest = thing(&stage, "guest");
    guest["metadata"]["namespace"] = inner.as_str().into();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let kind = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "parcels.order.custody.dev"},
        "spec": {"group": "order.custody.dev", "scope": "Namespaced", "names": {"kind": "Parcel", "plural": "parcels", "singular": "parcel"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    let parcel = json!({"apiVersion": "order.custody.dev/v1", "kind": "Parcel", "metadata": {"name": "parcel", "namespace": stage.namespace()}, "spec": {"a": 1}});
    let templates: Vec<Value> = [&house, &kind, &guest, &parcel]
        .map(|object| json!({"complianceType": "musthave", "objectDefinition": object}))
        .to_vec();
    let spec = json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": templates});
    let policy = stage.policy("order", &spec);
    stage.create(&policy).await?;
    stage.settled("order", "Compliant").await?;
    // when it is deleted while somebody holds what is inside
    let hold = json!({"metadata": {"finalizers": ["e2e.custody.dev/hold"]}});
    let release = json!({"metadata": {"finalizers": null}});
    for inside in [&guest, &parcel] {
        stage.merge(inside, &hold).await?;
    }
    stage.delete(&policy).await?;
    // then namespace and kind wait for both, and for each
    stage.says("order", "it waits until the objects before it are gone").await?;
    untouched(&stage, &[&house, &kind]).await?;
    stage.merge(&guest, &release).await?;
    stage
        .wait("order", "to wait for the parcel only", |found| {
            let text = found.ok_or("gone")?["status"]["compliancyDetails"][0]["conditions"][0]["message"].to_string();
            if text.contains("parcel") && !text.contains("guest") { Ok(()) } else { Err(text) }
        })
        .await?;
    untouched(&stage, &[&house, &kind]).await?;
    // and go when all of it is gone
    stage.merge(&parcel, &release).await?;
    stage.gone("order").await?;
    wait_gone(&stage, &house).await?;
    wait_gone(&stage, &kind).await?;
    controller.must_run()?;
    stage.clear().await
}
async fn untouched(stage: &Stage, objects: &[&Value]) -> Result<()> {
    for object in objects {
        let found = stage.get(object).await?.unwrap_or_default();
        assert!(found["metadata"]["uid"].is_string() && found["metadata"]["deletionTimestamp"].is_null(), "{found}");
    }
    Ok(())
}

#[tokio::test]
async fn the_shipped_sample_reports_what_is_stuck() {
    tell("the_shipped_sample_reports_what_is_stuck", stuck()).await;
}

async fn stuck() -> Result<()> {
    // given the shipped sample, and a policy that is deleted while its child is held
    let stage = Stage::set("stuck").await?;
    let mut controller = stage.start().await?;
    let path = binaries::root().join("deploy/policy-pruner/samples/stuck-deletions.yaml");
    let text = std::fs::read_to_string(path).map_err(Error::other)?;
    let sample: Value = serde_saphyr::from_str(&text).map_err(Error::other)?;
    let sample_name = sample["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut spec = sample["spec"].clone();
    // Other suites have policies, too.
    spec["namespaceSelector"] = json!({"include": [stage.namespace()]});
    stage.create(&stage.policy(&sample_name, &spec)).await?;
    stage.settled(&sample_name, "Compliant").await?;
    let child = thing(&stage, "held");
    let policy = stage.policy("stuck", &pruning("DeleteAll", &child));
    stage.create(&policy).await?;
    stage.settled("stuck", "Compliant").await?;
    stage.merge(&child, &json!({"metadata": {"finalizers": ["e2e.custody.dev/hold"]}})).await?;
    stage.delete(&policy).await?;
    // then the sample names it, until it is gone
    stage.says(&sample_name, "configurationpolicies [stuck] found in namespace").await?;
    stage.merge(&child, &json!({"metadata": {"finalizers": null}})).await?;
    stage.gone("stuck").await?;
    stage.settled(&sample_name, "Compliant").await?;
    controller.must_run()?;
    stage.clear().await
}

#[tokio::test]
async fn an_installation_that_leaves_lets_go_and_prunes_nothing() {
    tell("an_installation_that_leaves_lets_go_and_prunes_nothing", uninstall()).await;
}

async fn uninstall() -> Result<()> {
    // given a controller that knows its own Deployment, and a policy that would prune
    let stage = Stage::set("uninstall").await?;
    let labels = json!({"app": "pruner"});
    let container = json!({"name": "pruner", "image": "none"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "pruner", "namespace": stage.namespace()},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}});
    stage.create(&deployment).await?;
    let launch = stage.launch("controller")?.arg("--leader-elect=false").env("OPERATOR_NAME", "pruner");
    let mut controller = launch.arg(format!("--operator-namespace={}", stage.namespace())).start()?;
    controller.wait_ready(PATIENCE).await?;
    let child = thing(&stage, "stays");
    let policy = stage.policy("pruning", &pruning("DeleteAll", &child));
    stage.create(&policy).await?;
    stage.settled("pruning", "Compliant").await?;
    // and a ledger whose policy is gone
    let metadata = json!({"name": "policy-ledger-of-nobody", "namespace": stage.namespace(),
        "labels": {"custody.dev/policy-ledger": "true"}, "finalizers": ["custody.dev/policy-ledger"]});
    let text = json!({"version": 1, "policy": "nobody", "uid": "u", "id": "x"}).to_string();
    let ledger = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ledger.json": text}});
    stage.create(&ledger).await?;
    // when an administrator uninstalls
    let args = [
        "trigger-uninstall".to_owned(),
        "--deployment-name=pruner".to_owned(),
        format!("--deployment-namespace={}", stage.namespace()),
        format!("--policy-namespace={}", stage.namespace()),
        "--timeout-seconds=90".to_owned(),
        format!("--kubeconfig={}", stage.cluster.kubeconfig().display()),
    ];
    let ended =
        tokio::process::Command::new(binaries::ours(BINARY)?).args(args).output().await.map_err(Error::other)?;
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    // then the policy is let go of, and goes without its child
    let found = stage.get(&policy).await?.unwrap_or_default();
    assert_eq!(found["metadata"]["finalizers"], Value::Null, "{found}");
    let found = stage.get(&ledger).await?.unwrap_or_default();
    assert!(found["metadata"]["finalizers"].is_null() && found["data"] == ledger["data"], "{found}");
    stage.delete(&policy).await?;
    stage.gone("pruning").await?;
    let kept = stage.get(&child).await?.unwrap_or_default();
    assert!(kept["metadata"]["uid"].is_string() && kept["metadata"]["deletionTimestamp"].is_null(), "{kept}");
    controller.must_run()?;
    stage.clear().await
}
