//! Whole lives: killed again and again, a namespace that goes, and what people are told from the command line.
use crate::stage::{BINARY, PATIENCE, Stage};
use crate::{seen, tell};
use common::clock::{Clock, SystemClock};
use e2e::{Account, AuditLog, Error, Result, Seen, binaries, env, manifests, until};
use kube::api::ListParams;
use serde_json::{Value, json};
use std::process::Output;
use std::time::Duration;

const POLICIES: usize = 6;
const OBJECTS: usize = 10;

fn thing(namespace: &str, name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": namespace});
    json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": metadata, "spec": {"a": 1}})
}
fn spec(namespace: &str, policy: usize) -> Value {
    let templates: Vec<Value> = (0..OBJECTS)
        .map(|n| json!({"complianceType": "musthave", "objectDefinition": thing(namespace, &format!("p{policy}-{n}"))}))
        .collect();
    json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": templates})
}
async fn things(stage: &Stage) -> Result<usize> {
    let api = stage.api("test.custody.dev/v1", "Thing", stage.namespace()).await?;
    Ok(api.list(&ListParams::default()).await?.items.len())
}

#[tokio::test]
async fn killed_again_and_again_nothing_is_left_over() {
    tell("killed_again_and_again_nothing_is_left_over", kills()).await;
}

async fn kills() -> Result<()> {
    // given a stranger's object that one policy names, too
    let stage = Stage::set("lives").await?;
    let elder = stage.create(&thing(stage.namespace(), "p0-0")).await?;
    let mut controller = stage.start().await?;
    for policy in 0..POLICIES {
        stage.create(&stage.policy(&format!("p{policy}"), &spec(stage.namespace(), policy))).await?;
    }
    // when the controller is killed at odd moments, on the way up and on the way down
    let length = env::seconds(env::KILLS, 12);
    let mut kills = 0;
    for phase in ["up", "down"] {
        let ends = SystemClock.boot() + length / 2;
        while SystemClock.boot() < ends {
            let wait = Duration::from_millis(150 + 137 * (kills % 7));
            SystemClock.sleep_until(SystemClock.boot() + wait).await;
            controller.restart().await?;
            kills += 1;
        }
        if phase == "up" {
            until("all objects there", PATIENCE, || async {
                let there = things(&stage).await?;
                Ok(if there == POLICIES * OBJECTS { Seen::Yes(()) } else { Seen::NotYet(there.to_string()) })
            })
            .await?;
            for policy in 0..POLICIES {
                stage.delete(&stage.policy(&format!("p{policy}"), &json!({}))).await?;
            }
        }
    }
    // then all policies go, their objects with them, the stranger's stays, and no ledger is left
    until("all policies gone", PATIENCE, || async {
        let left = stage.policies().list(&ListParams::default()).await?.items.len();
        Ok(if left == 0 { Seen::Yes(()) } else { Seen::NotYet(left.to_string()) })
    })
    .await?;
    assert_eq!(things(&stage).await?, 1);
    let kept = stage.get(&thing(stage.namespace(), "p0-0")).await?.unwrap_or_default();
    assert_eq!(kept["metadata"]["uid"], elder["metadata"]["uid"]);
    let ledgers = stage.api("v1", "ConfigMap", stage.namespace()).await?;
    let labelled = ListParams::default().labels("custody.dev/policy-ledger=true");
    assert!(ledgers.list(&labelled).await?.items.is_empty());
    seen(&format!(
        "{kills} kills over {POLICIES} policies of {OBJECTS} objects: nothing left over, the stranger's object kept"
    ));
    stage.clear().await
}

#[tokio::test]
async fn a_namespace_that_goes_takes_the_children_of_its_policies_along() {
    tell("a_namespace_that_goes_takes_the_children_of_its_policies_along", namespace()).await;
}

async fn namespace() -> Result<()> {
    // given a policy with a child in another namespace
    let stage = Stage::set("leaving").await?;
    let _controller = stage.start().await?;
    let child = thing("default", &format!("of-{}", stage.namespace()));
    let template = json!({"complianceType": "musthave", "objectDefinition": child});
    let spec = json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": [template]});
    stage.create(&stage.policy("leaving", &spec)).await?;
    until("the child to be there", PATIENCE, || async {
        Ok(stage.get(&child).await?.map_or(Seen::NotYet("missing".into()), |_| Seen::Yes(())))
    })
    .await?;
    // when the policy's namespace is deleted, then it goes, and so does the child
    let client = stage.client.clone();
    stage.clear().await?;
    let resource = kube::api::ApiResource {
        group: "test.custody.dev".into(),
        version: "v1".into(),
        api_version: "test.custody.dev/v1".into(),
        kind: "Thing".into(),
        plural: "things".into(),
    };
    let api: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(client, "default", &resource);
    assert!(api.get_opt(child["metadata"]["name"].as_str().unwrap_or_default()).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn plan_audit_and_doctor_tell() {
    tell("plan_audit_and_doctor_tell", commands()).await;
}

async fn command(account: &Account, args: &[&str]) -> Result<Output> {
    let kubeconfig = format!("--kubeconfig={}", account.kubeconfig().display());
    let mut line = tokio::process::Command::new(binaries::ours(BINARY)?);
    line.args(args).arg(kubeconfig).output().await.map_err(Error::other)
}
fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
/// A person with the controller's rights and an account of his own: what he asks for is told apart in the audit log.
async fn person(stage: &Stage) -> Result<Account> {
    let namespace = stage.namespace();
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "person", "namespace": namespace}});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "custody-policy-pruner"});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": format!("person-{namespace}")},
        "roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": "person", "namespace": namespace}]});
    manifests::apply_text(&stage.cluster, namespace, &format!("{account}\n---\n{binding}\n")).await?;
    Account::of(&stage.cluster, namespace, "person").await
}

/// `raleigh`, by a key of thirty-two letters k and a vector of zeros.
const SEALED: &str = "$ocm_encrypted:Zdpu58XR9ACaSDqfatlwjQ==";
const KEY: &str = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";
/// An encrypted value is compared once its key can be read, and never shown.
async fn sealed(stage: &Stage, person: &Account) -> Result<()> {
    let mut town = thing(stage.namespace(), "town");
    town["spec"]["a"] = "raleigh".into();
    stage.create(&town).await?;
    let mut wanted = town.clone();
    wanted["spec"]["a"] = SEALED.into();
    let template = json!({"complianceType": "musthave", "objectDefinition": wanted});
    let mut policy = stage.policy("sealed", &json!({"remediationAction": "enforce", "object-templates": [template]}));
    policy["metadata"]["annotations"] =
        json!({"policy.open-cluster-management.io/encryption-iv": "AAAAAAAAAAAAAAAAAAAAAA=="});
    let file = stage.cluster.folder().write("sealed.json", policy.to_string())?.display().to_string();
    let expect = async |code: i32, part: &str| -> Result<()> {
        let told = command(person, &["plan", "-f", &file]).await?;
        assert_eq!(told.status.code(), Some(code), "{}", text(&told));
        assert!(text(&told).contains(part) && !text(&told).contains("raleigh"), "{part}\n{}", text(&told));
        Ok(())
    };
    expect(2, "failed to get the encryption key").await?;
    let metadata = json!({"name": "policy-encryption-key", "namespace": stage.namespace()});
    stage.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": KEY}})).await?;
    expect(0, "as specified").await?;
    stage.merge(&town, &json!({"spec": {"a": "cary"}})).await?;
    expect(2, "update").await
}

async fn commands() -> Result<()> {
    // given a policy that created its object, another one that only looks at it, and somebody who holds it
    let stage = Stage::set("commands").await?;
    let mut controller = stage.start().await?;
    let person = person(&stage).await?;
    let child = thing(stage.namespace(), "child");
    let template = json!({"complianceType": "musthave", "objectDefinition": child});
    let spec = json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": [template]});
    let policy = stage.policy("told", &spec);
    stage.create(&policy).await?;
    stage.settled("told", "Compliant").await?;
    let looks = json!({"remediationAction": "inform", "object-templates": [template]});
    stage.create(&stage.policy("looks", &looks)).await?;
    stage.settled("looks", "Compliant").await?;
    stage.merge(&child, &json!({"metadata": {"finalizers": ["e2e.custody.dev/hold"]}})).await?;
    let name = format!("{}/told", stage.namespace());
    let log = AuditLog::of(&stage.cluster)?;
    let before = log.moment().await?;
    // when people ask, then they are told: what would be done, what holds it, who else looks at it
    let rest = command(&person, &["plan", &name]).await?;
    assert_eq!(rest.status.code(), Some(0), "{}", text(&rest));
    let going = command(&person, &["plan", &name, "--delete"]).await?;
    assert_eq!(going.status.code(), Some(2), "{}", text(&going));
    let looking = format!("{}/looks (inform)", stage.namespace());
    for part in ["delete", "created by this policy", "finalizer e2e.custody.dev/hold", looking.as_str()] {
        assert!(text(&going).contains(part), "{part}\n{}", text(&going));
    }
    let mut other = policy.clone();
    other["spec"]["object-templates"][0]["objectDefinition"]["metadata"]["name"] = "renamed".into();
    let file = stage.cluster.folder().write("renamed.json", other.to_string())?;
    let edit = command(&person, &["plan", "-f", &file.display().to_string()]).await?;
    assert!(text(&edit).contains("create") && text(&edit).contains("delete"), "{}", text(&edit));
    other["spec"]["object-templates"][0]["objectDefinition"] = child.clone();
    other["spec"]["object-templates"][0]["objectDefinition"]["spec"]["a"] = 2.into();
    let file = stage.cluster.folder().write("changed.json", other.to_string())?;
    let edit = command(&person, &["plan", "-f", &file.display().to_string()]).await?;
    assert!(text(&edit).contains("update"), "{}", text(&edit));
    sealed(&stage, &person).await?;
    // and nothing changes: whoever asks sends no write at all
    let after = log.moment().await?;
    let asked: u64 = log.requests(&person.user(), before, after)?.values().sum();
    let changes = log.changes(&person.user(), before, after)?;
    assert!(asked > 0 && changes.is_empty(), "{asked} requests, {changes:?}");
    assert!(stage.get(&child).await?.is_some_and(|found| found["metadata"]["deletionTimestamp"].is_null()));
    seen(&format!("plan, seven times: {asked} requests, none of them a write"));
    let healthy = command(&stage.account, &["doctor"]).await?;
    assert!(healthy.status.success(), "{}", text(&healthy));
    // when the policy is lost while nobody looks, then the audit finds its orphan, and a ledger that does not tell
    stage.merge(&child, &json!({"metadata": {"finalizers": null}})).await?;
    controller.freeze()?;
    stage.merge(&policy, &json!({"metadata": {"finalizers": null}})).await?;
    stage.delete(&policy).await?;
    let labels = json!({"custody.dev/policy-ledger": "true"});
    let torn = json!({"name": "torn", "namespace": stage.namespace(), "labels": labels});
    stage
        .create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": torn, "data": {"ledger.json": "{"}}))
        .await?;
    let namespace = format!("--namespace={}", stage.namespace());
    let audit = command(&person, &["audit", &namespace]).await?;
    assert_eq!(audit.status.code(), Some(3), "{}", text(&audit));
    for part in ["Orphan", "\"child\"", "Unreadable", "\"torn\""] {
        assert!(text(&audit).contains(part), "{part}\n{}", text(&audit));
    }
    controller.unfreeze()?;
    let binding = format!("person-{}", stage.namespace());
    stage.delete(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": binding}})).await?;
    stage.clear().await
}
