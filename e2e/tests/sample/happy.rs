//! The main road: apply, ready, delete, gone; with the shipped rights and no more.
use crate::cloud::of_verbs;
use crate::owners::{condition, ledger, one_of_each, owner_id, wishes};
use crate::stage::{GRACE, Stage};
use crate::tell;
use common::names;
use e2e::{AuditLog, Result, binaries, manifests, process};
use kube::api::DynamicObject;
use serde_json::{Value, json};

#[tokio::test]
async fn owners_become_ready_and_go_and_a_strangers_thing_stays() {
    tell("owners_become_ready_and_go_and_a_strangers_thing_stays", road()).await;
}

async fn road() -> Result<()> {
    // given a running controller, and a stranger's network that bears the very name our owner's would get
    let stage = Stage::set("happy").await?;
    let log = AuditLog::of(&stage.cluster)?;
    let before = log.moment().await?;
    let mut controller = stage.start().await?;
    let stranger = stage.cloud.plant_network(&format!("{}.shop.net", stage.namespace()), &json!({"team": "x"})).await?;
    // when two owners are applied
    for name in ["shop", "blog"] {
        stage.create(name, &one_of_each()).await?;
    }
    // then they become ready: conditions, observed generation, ids, finalizer, owner id, ledger
    for name in ["shop", "blog"] {
        let object = stage.wait_ready(name).await?;
        let at_rest = |kind| condition(&object, kind).is_none();
        assert!(at_rest("Reconciling") && at_rest("Stalled"), "{}", object.data["status"]);
        assert_eq!(condition(&object, "Paused").map(|(status, _)| status), Some("False"));
        assert_eq!(object.data["status"]["initialization"]["provisioned"], true);
        assert_eq!(object.data["status"]["summary"], "5/5");
        assert_eq!(ledger(&object)?.records.len(), wishes(&object));
        assert!(owner_id(&object).is_some());
        let finalizers = object.metadata.finalizers.clone().unwrap_or_default();
        assert_eq!(finalizers, [names::finalizer("sample")]);
    }
    let all = stage.wait_for_rest().await?;
    assert_eq!(stage.cloud.ours().await?.len(), all.iter().map(wishes).sum::<usize>());
    // and people see it in columns
    let shown = columns(&stage).await?;
    assert!(shown.lines().next().is_some_and(|line| line.starts_with("NAME") && line.contains("READY")), "{shown}");
    assert!(shown.contains("True") && shown.contains("Reconciled") && shown.contains("5/5"), "{shown}");
    // when a flavor is edited, then the machine is adjusted in place
    let mark = stage.cloud.mark().await?;
    let mut spec = one_of_each();
    spec["machines"][0]["flavor"] = json!("large");
    stage.patch("shop", &json!({"spec": spec})).await?;
    stage.wait_for_rest().await?;
    let calls = stage.cloud.calls_since(mark).await?;
    assert_eq!(of_verbs(&calls, &["update"]), 1, "{calls:?}");
    assert_eq!(of_verbs(&calls, &["create", "delete", "tag"]), 0, "{calls:?}");
    // when they are deleted, then everything of theirs goes, and the stranger's network stays
    stage.delete_all().await?;
    let left: Vec<_> = stage.cloud.things().await?.into_iter().filter(crate::cloud::Thing::exists).collect();
    assert_eq!(left.iter().map(|thing| thing.id.as_str()).collect::<Vec<_>>(), [stranger.as_str()]);
    // and in all that time nothing was asked for that the shipped role does not allow
    let ended = controller.stop(GRACE).await?;
    assert!(ended.success(), "{ended}\n{}", controller.log_tail(20));
    let forbidden = log.forbidden(&stage.account.user(), before, log.moment().await?)?;
    assert!(forbidden.is_empty(), "{forbidden:?}");
    stage.clear().await
}

async fn columns(stage: &Stage) -> Result<String> {
    let kubectl = stage.cluster.tools().await?.path("kubectl")?;
    let kubeconfig = format!("--kubeconfig={}", stage.cluster.kubeconfig().display());
    process::output(&kubectl, [kubeconfig.as_str(), "get", "sampleowners", "-n", stage.namespace()]).await
}

#[tokio::test]
async fn the_shipped_roles_name_everything_they_allow() {
    tell("the_shipped_roles_name_everything_they_allow", roles()).await;
}

async fn roles() -> Result<()> {
    // given the shipped manifests
    let cluster = e2e::cluster().await?;
    let objects = manifests::render(&cluster, &binaries::root().join("deploy/sample-controller")).await?;
    let kind = |object: &&DynamicObject| object.types.as_ref().is_some_and(|types| types.kind.ends_with("Role"));
    let roles: Vec<_> = objects.iter().filter(kind).collect();
    // when their rules are read, then none has a star, and Secrets are not for everybody
    assert!(!roles.is_empty());
    for rule in roles.iter().flat_map(|role| role.data["rules"].as_array().cloned().unwrap_or_default()) {
        let words = |field: &str| rule[field].as_array().cloned().unwrap_or_default();
        let all: Vec<Value> =
            ["apiGroups", "resources", "verbs", "nonResourceURLs"].into_iter().flat_map(words).collect();
        assert!(!all.iter().any(|word| word.as_str().is_some_and(|word| word.contains('*'))), "{rule}");
    }
    Ok(())
}
