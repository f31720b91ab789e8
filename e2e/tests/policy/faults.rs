//! What goes wrong around the controller: it is told, retried, harms nobody else, and nothing is pruned because of it.
use crate::stage::{PATIENCE, Stage};
use crate::{seen, tell};
use common::clock::{Clock, SystemClock};
use e2e::fault_proxy::FaultProxy;
use e2e::{ControlPlane, Result, Seen, env, until};
use futures::future::try_join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

fn thing(stage: &Stage, name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": stage.namespace()});
    json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": metadata, "spec": {"a": 1}})
}
fn musthave(definition: &Value) -> Value {
    json!({"complianceType": "musthave", "objectDefinition": definition})
}
fn spec(templates: &[Value]) -> Value {
    json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteAll", "object-templates": templates})
}
async fn uid(stage: &Stage, name: &str) -> Result<String> {
    let found = stage.get(&thing(stage, name)).await?;
    Ok(found.unwrap_or_default()["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
}
async fn wait_there(stage: &Stage, name: &str, there: bool) -> Result<()> {
    until(&format!("{name} to be there: {there}"), PATIENCE, || async {
        let found = !uid(stage, name).await?.is_empty();
        Ok(if found == there { Seen::Yes(()) } else { Seen::NotYet(format!("there: {found}")) })
    })
    .await
}
async fn pause(seconds: u64) {
    SystemClock.sleep_until(SystemClock.boot() + Duration::from_secs(seconds)).await;
}

#[tokio::test]
async fn wrong_answers_of_the_api_server_prune_nothing() {
    tell("wrong_answers_of_the_api_server_prune_nothing", wrong_answers()).await;
}

async fn wrong_answers() -> Result<()> {
    // given a controller that reaches the API server through a proxy that strikes one request in four and every other watch
    const POLICIES: usize = 8;
    let mut stage = Stage::set("struck").await?;
    let proxy = FaultProxy::start(&stage.account, env::number(env::SEED, 1)).await?;
    stage.account = stage.account.through(proxy.address())?;
    let mut controller = stage.start().await?;
    stage.create(&thing(&stage, "t0")).await?;
    let elder = uid(&stage, "t0").await?;
    proxy.rage();
    // when policies come meanwhile, and are edited
    let names: Vec<String> = (0..POLICIES).map(|n| format!("t{n}")).collect();
    for name in &names {
        let behaviour = json!({"pruneObjectBehavior": "DeleteIfCreated"});
        let mut spec = spec(&[musthave(&thing(&stage, name)), musthave(&thing(&stage, &format!("{name}-too")))]);
        spec["pruneObjectBehavior"] = behaviour["pruneObjectBehavior"].clone();
        stage.create(&stage.policy(name, &spec)).await?;
    }
    try_join_all(names.iter().map(|name| stage.settled(name, "Compliant"))).await?;
    let mut uids = BTreeMap::new();
    for name in &names {
        uids.insert(name, uid(&stage, name).await?);
        stage.merge(&stage.policy(name, &json!({})), &json!({"spec": {"severity": "high"}})).await?;
    }
    try_join_all(names.iter().map(|name| stage.settled(name, "Compliant"))).await?;
    pause(10).await;
    // then every object is the one it was: nothing was deleted, not even for a moment
    for (name, before) in &uids {
        assert_eq!(uid(&stage, name).await?, **before, "{name}");
    }
    // and when the policies go, their objects go, and what was there before stays
    for name in &names {
        stage.delete(&stage.policy(name, &json!({}))).await?;
    }
    // A pass over a policy that goes needs many answers in a row: whether it has them all before the proxy lets off is chance.
    pause(20).await;
    proxy.calm();
    try_join_all(names.iter().map(|name| stage.gone(name))).await?;
    controller.must_run()?;
    let struck = proxy.struck();
    assert!(struck.values().sum::<u64>() > 30, "too little happened: {struck:?}");
    for name in &names {
        let kept = name == "t0";
        assert_eq!(uid(&stage, name).await?, if kept { elder.clone() } else { String::new() }, "{name}");
        assert!(uid(&stage, &format!("{name}-too")).await?.is_empty(), "{name}-too");
    }
    seen(&format!("{} requests struck, nothing pruned by them, nothing left over", struck.values().sum::<u64>()));
    stage.clear().await
}

#[tokio::test]
async fn an_api_server_that_goes_away_is_waited_for() {
    tell("an_api_server_that_goes_away_is_waited_for", away()).await;
}

async fn away() -> Result<()> {
    // given a control plane that this test may take away, and a policy with its object
    let mut plane = ControlPlane::start().await?;
    let stage = Stage::set_on(plane.cluster().clone(), "away").await?;
    let mut controller = stage.start().await?;
    stage.create(&stage.policy("before", &spec(&[musthave(&thing(&stage, "kept"))]))).await?;
    stage.settled("before", "Compliant").await?;
    let before = uid(&stage, "kept").await?;
    // when the API server is away for a while
    plane.take_api_server_away().await?;
    SystemClock.sleep_until(SystemClock.boot() + env::seconds(env::OUTAGE, 15)).await;
    controller.must_run()?;
    plane.bring_api_server_back().await?;
    // then nothing was pruned because of it, and work goes on
    stage.create(&stage.policy("after", &spec(&[musthave(&thing(&stage, "new"))]))).await?;
    stage.settled("after", "Compliant").await?;
    assert_eq!(uid(&stage, "kept").await?, before);
    stage.delete(&stage.policy("before", &json!({}))).await?;
    stage.gone("before").await?;
    wait_there(&stage, "kept", false).await?;
    controller.must_run()?;
    controller.kill().await?;
    plane.stop().await
}

#[tokio::test]
async fn an_aggregated_api_that_is_down_holds_pruning_and_harms_nobody() {
    tell("an_aggregated_api_that_is_down_holds_pruning_and_harms_nobody", aggregated()).await;
}

async fn aggregated() -> Result<()> {
    // given an aggregated API without a server, and a policy with a child
    let stage = Stage::set("aggregated").await?;
    let mut controller = stage.start().await?;
    let group = format!("down-{}.custody.dev", stage.namespace());
    let service = json!({"name": "nobody", "namespace": stage.namespace()});
    let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{group}")},
        "spec": {"group": group, "version": "v1", "service": service, "groupPriorityMinimum": 10, "versionPriority": 10, "insecureSkipTLSVerify": true}});
    stage.create(&api).await?;
    stage.create(&stage.policy("half", &spec(&[musthave(&thing(&stage, "child"))]))).await?;
    stage.settled("half", "Compliant").await?;
    // when the policy is edited: the child drops out, and what takes its place cannot be looked up
    let lost = json!({"apiVersion": format!("{group}/v1"), "kind": "Lost", "metadata": {"name": "x", "namespace": stage.namespace()}});
    let edit = |templates: Value| json!({"spec": {"object-templates": templates}});
    let policy = stage.policy("half", &json!({}));
    stage.merge(&policy, &edit(json!([musthave(&lost)]))).await?;
    stage.settled("half", "NonCompliant").await?;
    // then others are not touched by it, and the child stays
    stage.create(&stage.policy("other", &spec(&[musthave(&thing(&stage, "other"))]))).await?;
    stage.settled("other", "Compliant").await?;
    pause(5).await;
    assert!(!uid(&stage, "child").await?.is_empty(), "pruned in doubt");
    // nor is it pruned while a selector cannot be read
    let anywhere = json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": {"name": "anywhere"}});
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "Seriously"}]});
    let unreadable = json!({"spec": {"namespaceSelector": selector, "object-templates": [musthave(&anywhere)]}});
    stage.merge(&policy, &unreadable).await?;
    stage.says("half", "\"Seriously\" is not a valid label selector operator").await?;
    pause(5).await;
    assert!(!uid(&stage, "child").await?.is_empty(), "pruned in doubt");
    // and when the doubt is over, it goes
    stage.merge(&policy, &edit(json!([musthave(&thing(&stage, "next"))]))).await?;
    stage.settled("half", "Compliant").await?;
    wait_there(&stage, "child", false).await?;
    controller.must_run()?;
    stage.delete(&api).await?;
    stage.clear().await
}

/// The API server takes a moment to hear of a webhook.
async fn wait_until_refused(stage: &Stage, object: &Value) -> Result<()> {
    let mut probe = object.clone();
    probe["metadata"]["name"] = "probe".into();
    until("the webhook to refuse", PATIENCE, || async {
        // It may begin to refuse between the two.
        let refused = stage.create(&probe).await.is_err() || stage.delete(&probe).await.is_err();
        Ok(if refused { Seen::Yes(()) } else { Seen::NotYet("not asked yet".into()) })
    })
    .await
}

#[tokio::test]
async fn a_webhook_that_refuses_is_told_and_waited_for() {
    tell("a_webhook_that_refuses_is_told_and_waited_for", webhook()).await;
}

async fn webhook() -> Result<()> {
    // given a webhook that nobody answers for
    let stage = Stage::set("webhook").await?;
    let mut controller = stage.start().await?;
    let name = format!("{}.custody.dev", stage.namespace());
    let rule = json!({"apiGroups": ["test.custody.dev"], "apiVersions": ["v1"], "operations": ["CREATE", "DELETE"], "resources": ["things"]});
    let selector = json!({"matchLabels": {"guarded": stage.namespace()}});
    let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
        "webhooks": [{"name": name, "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": [rule], "objectSelector": selector,
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1}]});
    stage.create(&hook).await?;
    let mut child = thing(&stage, "guarded");
    child["metadata"]["labels"] = json!({"guarded": stage.namespace()});
    wait_until_refused(&stage, &child).await?;
    // when a policy wants the object
    let policy = stage.policy("guarded", &spec(&[musthave(&child)]));
    stage.create(&policy).await?;
    // then it says who refuses, and creates it once nobody does
    stage.says("guarded", "failed calling webhook").await?;
    stage.delete(&hook).await?;
    stage.settled("guarded", "Compliant").await?;
    // and the same when it is pruned
    stage.create(&hook).await?;
    wait_until_refused(&stage, &child).await?;
    stage.delete(&policy).await?;
    stage.says("guarded", "failed calling webhook").await?;
    stage.delete(&hook).await?;
    stage.gone("guarded").await?;
    wait_there(&stage, "guarded", false).await?;
    controller.must_run()?;
    stage.clear().await
}

#[tokio::test]
async fn templates_that_contradict_each_other_change_nothing() {
    tell("templates_that_contradict_each_other_change_nothing", rivals()).await;
}

async fn rivals() -> Result<()> {
    // given objects that two templates of a policy want differently, or one of them not at all
    let stage = Stage::set("rivals").await?;
    let mut controller = stage.start().await?;
    let (one, mut two) = (thing(&stage, "torn"), thing(&stage, "torn"));
    two["spec"]["a"] = 2.into();
    let forbidden = json!({"complianceType": "mustnothave", "objectDefinition": thing(&stage, "wanted-and-not")});
    stage.create(&thing(&stage, "wanted-and-not")).await?;
    let before = uid(&stage, "wanted-and-not").await?;
    // when they are enforced
    stage.create(&stage.policy("torn", &spec(&[musthave(&one), musthave(&two)]))).await?;
    let undecided = spec(&[musthave(&thing(&stage, "wanted-and-not")), forbidden]);
    stage.create(&stage.policy("undecided", &undecided)).await?;
    // then the policy says which templates, and nothing changes back and forth
    for (name, index) in [("torn", 1), ("undecided", 0)] {
        stage
            .wait(name, "to say what to fix", |found| {
                let details = &found.ok_or("gone")?["status"]["compliancyDetails"];
                let text = details[index]["conditions"][0]["message"].as_str().unwrap_or_default();
                let told =
                    text.contains("the object-templates at index [0] and [1] contradict each other, make them agree");
                if told { Ok(()) } else { Err(details.to_string()) }
            })
            .await?;
    }
    let version = |found: Option<Value>| found.unwrap_or_default()["metadata"]["resourceVersion"].to_string();
    let first = version(stage.get(&one).await?);
    pause(6).await;
    assert_eq!(version(stage.get(&one).await?), first, "it is changed again and again");
    assert_eq!(uid(&stage, "wanted-and-not").await?, before);
    controller.must_run()?;
    stage.clear().await
}

#[tokio::test]
async fn the_longest_name_has_a_ledger_and_events_too() {
    tell("the_longest_name_has_a_ledger_and_events_too", long_name()).await;
}

async fn long_name() -> Result<()> {
    let stage = Stage::set("long").await?;
    let mut controller = stage.start().await?;
    let name = "n".repeat(253);
    let child = "c".repeat(253);
    stage.create(&stage.policy(&name, &spec(&[musthave(&thing(&stage, &child))]))).await?;
    stage.settled(&name, "Compliant").await?;
    stage.delete(&stage.policy(&name, &json!({}))).await?;
    stage.gone(&name).await?;
    wait_there(&stage, &child, false).await?;
    controller.must_run()?;
    // And a key that is no key is told, once and for all.
    let key = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "policy-encryption-key", "namespace": stage.namespace()},
        "stringData": {"key": "too short"}});
    stage.create(&key).await?;
    let mut sealed = thing(&stage, "sealed");
    sealed["spec"]["a"] = "$ocm_encrypted:AAAA".into();
    let mut policy = stage.policy("sealed", &spec(&[musthave(&sealed)]));
    policy["metadata"]["annotations"] =
        json!({"policy.open-cluster-management.io/encryption-iv": "AAAAAAAAAAAAAAAAAAAAAA=="});
    stage.create(&policy).await?;
    stage.says("sealed", "contains an invalid AES key").await?;
    stage.clear().await
}
