//! Annotations that were damaged, cut, rolled back, or lost: no cloud write, a reason that says so, recovery after repair.
use crate::cloud::WRITES;
use crate::owners::{CONTROLLER, is_stalled, ledger, ledger_text, owner_id, small};
use crate::stage::Stage;
use crate::tell;
use common::names::{self, reason};
use e2e::Result;
use kube::api::DynamicObject;
use serde_json::json;

#[tokio::test]
async fn damaged_annotations_stop_every_cloud_write_until_they_are_repaired() {
    tell("damaged_annotations_stop_every_cloud_write_until_they_are_repaired", unreadable()).await;
}

/// An owner, which of its annotations is damaged, how, and the reason that its conditions then give.
type Damaged = (&'static str, String, fn(&DynamicObject) -> String, &'static str);

fn damages() -> Vec<Damaged> {
    let (ledger, owner) = (names::ledger(CONTROLLER), names::owner_id(CONTROLLER));
    vec![
        ("malformed", ledger.clone(), |_| "not a ledger".to_owned(), reason::LEDGER_UNREADABLE),
        (
            "truncated",
            ledger.clone(),
            |object| {
                let text = ledger_text(object).unwrap_or_default();
                text.chars().take(text.len() / 2).collect()
            },
            reason::LEDGER_UNREADABLE,
        ),
        (
            "newer",
            ledger,
            |object| ledger_text(object).unwrap_or_default().replacen("\"version\":1", "\"version\":2", 1),
            reason::LEDGER_TOO_NEW,
        ),
        ("nobody", owner.clone(), |_| "nobody".to_owned(), reason::OWNER_ID_INVALID),
        (
            "half",
            owner,
            |object| owner_id(object).unwrap_or_default().chars().take(20).collect(),
            reason::OWNER_ID_INVALID,
        ),
    ]
}

async fn unreadable() -> Result<()> {
    // given owners that are ready
    let stage = Stage::set("damaged").await?;
    let mut controller = stage.start().await?;
    let damages = damages();
    for (name, ..) in &damages {
        stage.create(name, &small()).await?;
    }
    let before = stage.wait_for_rest().await?;
    let mark = stage.cloud.mark().await?;
    // when an annotation of each is damaged
    for (name, key, damage, _) in &damages {
        let object = stage.owners.get(name).await?;
        stage.annotate(name, key, Some(&damage(&object))).await?;
    }
    // then each says what is wrong
    for (name, _, _, reason) in &damages {
        stage.wait(name, &format!("to be stalled by {reason}"), |object| is_stalled(object, reason)).await?;
    }
    // and when one of them is deleted like that, it waits
    stage.delete("truncated").await?;
    stage
        .wait("truncated", "to say that it is stuck", |object| {
            object.metadata.deletion_timestamp.is_some() && is_stalled(object, reason::LEDGER_UNREADABLE)
        })
        .await?;
    // when each gets back what it had, then all are served again, and the deleted one goes
    for object in &before {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        stage.annotate(name, &names::ledger(CONTROLLER), ledger_text(object)).await?;
        stage.annotate(name, &names::owner_id(CONTROLLER), owner_id(object)).await?;
        if name != "truncated" {
            stage.wait_ready(name).await?;
        }
    }
    stage.wait_gone("truncated").await?;
    stage.wait_for_rest().await?;
    // and nothing was written to the cloud but the two deletes of the one that was asked to go
    let calls = stage.cloud.calls_since(mark).await?;
    assert_eq!(crate::cloud::of_verbs(&calls, &["create", "tag", "update"]), 0, "{calls:?}");
    assert_eq!(crate::cloud::of_verbs(&calls, &["delete"]), 2, "{calls:?}");
    stage.delete_all().await?;
    controller.must_run()?;
    controller.kill().await?;
    stage.clear().await
}

#[tokio::test]
async fn lost_and_rolled_back_ledgers_are_rebuilt_from_the_cloud() {
    tell("lost_and_rolled_back_ledgers_are_rebuilt_from_the_cloud", rebuilt()).await;
}

async fn rebuilt() -> Result<()> {
    // given ready owners, and the ledger one of them had when it was new
    let stage = Stage::set("rebuilt").await?;
    let mut controller = stage.start().await?;
    stage.create("rolled-back", &small()).await?;
    let early = stage.wait("rolled-back", "to have a ledger", |object| ledger_text(object).is_some()).await?;
    for name in ["without-ledger", "without-owner", "without-anything", "without-finalizer"] {
        stage.create(name, &small()).await?;
    }
    let before = stage.wait_for_rest().await?;
    let mark = stage.cloud.mark().await?;
    // when ledger, owner id, both or the finalizer are taken away, and one ledger goes back to its beginning
    let (ledger_key, owner_key) = (names::ledger(CONTROLLER), names::owner_id(CONTROLLER));
    let no = json!(null);
    stage.annotate("rolled-back", &ledger_key, ledger_text(&early)).await?;
    stage.annotate("without-ledger", &ledger_key, None).await?;
    stage.annotate("without-owner", &owner_key, None).await?;
    let both = json!({"metadata": {"annotations": {ledger_key: no, owner_key: no}}});
    stage.patch("without-anything", &both).await?;
    stage.patch("without-finalizer", &json!({"metadata": {"finalizers": no}})).await?;
    // then each gets back what the cloud knows of it, with the same owner id and the same ids
    for old in &before {
        let name = old.metadata.name.as_deref().unwrap_or_default();
        let (was, id) = (ledger(old)?, owner_id(old).map(str::to_owned));
        stage
            .wait(name, "to have its ledger back", |object| {
                let ids = |ledger: &common::ledger::Ledger| {
                    ledger.records.iter().map(|(s, r)| (s.clone(), r.id().cloned())).collect::<Vec<_>>()
                };
                let finalizer = object.metadata.finalizers.as_ref().is_some_and(|list| !list.is_empty());
                finalizer
                    && owner_id(object).map(str::to_owned) == id
                    && ledger(object).is_ok_and(|now| ids(&now) == ids(&was) && now.seq >= was.seq)
            })
            .await?;
        stage.wait_ready(name).await?;
    }
    stage.wait_for_rest().await?;
    // and nothing was written to the cloud
    let calls = stage.cloud.calls_since(mark).await?;
    assert_eq!(crate::cloud::of_verbs(&calls, &WRITES), 0, "{calls:?}");
    stage.delete_all().await?;
    controller.must_run()?;
    controller.kill().await?;
    stage.clear().await
}
