//! Whole lives: killed again and again, a namespace that goes, and what people are told from the command line.
use crate::stage::{BINARY, PATIENCE, Stage};
use crate::{seen, tell};
use common::clock::{Clock, SystemClock};
use e2e::{Error, Result, Seen, binaries, env, until};
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

async fn command(stage: &Stage, args: &[&str]) -> Result<Output> {
    let kubeconfig = format!("--kubeconfig={}", stage.account.kubeconfig().display());
    let mut line = tokio::process::Command::new(binaries::ours(BINARY)?);
    line.args(args).arg(kubeconfig).output().await.map_err(Error::other)
}
fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn commands() -> Result<()> {
    // given a policy that created its object, and one that is not applied yet
    let stage = Stage::set("commands").await?;
    let mut controller = stage.start().await?;
    let child = thing(stage.namespace(), "child");
    let template = json!({"complianceType": "musthave", "objectDefinition": child});
    let spec = json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": [template]});
    let policy = stage.policy("told", &spec);
    stage.create(&policy).await?;
    until("the child to be there", PATIENCE, || async {
        Ok(stage.get(&child).await?.map_or(Seen::NotYet("missing".into()), |_| Seen::Yes(())))
    })
    .await?;
    let name = format!("{}/told", stage.namespace());
    // when people ask, then they are told, and nothing changes
    let rest = command(&stage, &["plan", &name]).await?;
    assert_eq!(rest.status.code(), Some(0), "{}", text(&rest));
    let going = command(&stage, &["plan", &name, "--delete"]).await?;
    assert_eq!(going.status.code(), Some(2), "{}", text(&going));
    assert!(text(&going).contains("delete") && text(&going).contains("created by this policy"), "{}", text(&going));
    let mut other = policy.clone();
    other["spec"]["object-templates"][0]["objectDefinition"]["metadata"]["name"] = "renamed".into();
    let file = stage.cluster.folder().write("renamed.json", other.to_string())?;
    let edit = command(&stage, &["plan", "-f", &file.display().to_string()]).await?;
    assert!(text(&edit).contains("create") && text(&edit).contains("delete"), "{}", text(&edit));
    assert!(stage.get(&child).await?.is_some());
    let healthy = command(&stage, &["doctor"]).await?;
    assert!(healthy.status.success(), "{}", text(&healthy));
    // when the policy is lost while nobody looks, then the audit finds its orphan
    controller.freeze()?;
    stage.merge(&policy, &json!({"metadata": {"finalizers": null}})).await?;
    stage.delete(&policy).await?;
    let namespace = format!("--namespace={}", stage.namespace());
    let audit = command(&stage, &["audit", &namespace]).await?;
    assert_eq!(audit.status.code(), Some(3), "{}", text(&audit));
    assert!(text(&audit).contains("Orphan") && text(&audit).contains("\"child\""), "{}", text(&audit));
    controller.unfreeze()?;
    stage.clear().await
}
