//! What is asked for is what is granted: on the default base, with one kind given by its user.
use crate::stage::Stage;
use crate::tell;
use e2e::{AuditLog, Result};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test]
async fn nothing_is_asked_for_that_is_not_granted() {
    tell("nothing_is_asked_for_that_is_not_granted", rights()).await;
}

async fn rights() -> Result<()> {
    // given a controller with the shipped rights, and a user's rights on things
    let stage = Stage::set("rights").await?;
    let log = AuditLog::of(&stage.cluster)?;
    let before = log.moment().await?;
    let mut controller = stage.start().await?;
    // when a policy lives and dies
    let metadata = json!({"name": "child", "namespace": stage.namespace()});
    let thing = json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": metadata, "spec": {"a": 1}});
    let spec = json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated",
        "object-templates": [{"complianceType": "musthave", "objectDefinition": thing}]});
    let policy = stage.policy("life", &spec);
    stage.create(&policy).await?;
    let compliant = |found: Option<&serde_json::Value>| match found {
        Some(found) if found["status"]["compliant"] == "Compliant" => Ok(()),
        _ => Err("not compliant".to_owned()),
    };
    stage.wait("life", "compliant", compliant).await?;
    stage.delete(&policy).await?;
    stage.wait("life", "gone", |found| if found.is_none() { Ok(()) } else { Err("there".into()) }).await?;
    assert!(stage.get(&thing).await?.is_none());
    // then nothing was denied
    let ended = controller.stop(Duration::from_secs(40)).await?;
    assert!(ended.success(), "{ended}\n{}", controller.log_tail(20));
    let requests = log.requests(&stage.account.user(), before, log.moment().await?)?;
    let ours: BTreeSet<String> = requests.keys().filter(|r| r.code == 403).map(ToString::to_string).collect();
    // Other suites of this controller share its account, and one of their cases asks for a right that is missing on purpose.
    let denied: Vec<_> =
        ours.iter().filter(|r| !r.contains("limitranges") && !r.contains("later.custody.dev")).collect();
    assert!(denied.is_empty(), "{denied:?}");
    stage.clear().await
}
