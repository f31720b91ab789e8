use super::*;
use crate::conditions::{READY, find};
use crate::engine::owner::{ApiUnavailable, OwnerPatch};
use crate::engine::report::Mirror;
use crate::identity::OwnerId;
use async_trait::async_trait;
use std::sync::Mutex;

/// Conflicts the given number of times, then stores. Its uncached view is `stored`.
struct Server {
    conflicts: Mutex<u32>,
    stored: OwnerView,
    writes: Mutex<Vec<(OwnerView, Vec<Condition>, Value)>>,
}
impl Server {
    fn new(conflicts: u32, stored: OwnerView) -> Self {
        Server { conflicts: Mutex::new(conflicts), stored, writes: Mutex::default() }
    }
    fn writes(&self) -> Vec<(OwnerView, Vec<Condition>, Value)> {
        self.writes.lock().unwrap().clone()
    }
}
#[async_trait]
impl OwnerApi for Server {
    async fn get(&self, _: &str, _: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
        Ok(Some(self.stored.clone()))
    }
    async fn patch(&self, _: &OwnerView, _: &OwnerPatch) -> Patched {
        panic!("status never writes metadata")
    }
    async fn patch_status(&self, view: &OwnerView, conditions: &[Condition], fields: &Value) -> Patched {
        self.writes.lock().unwrap().push((view.clone(), conditions.to_vec(), fields.clone()));
        let mut left = self.conflicts.lock().unwrap();
        if *left > 0 {
            *left -= 1;
            return Patched::Conflict;
        }
        Patched::Stored(Box::new(OwnerView { conditions: conditions.to_vec(), ..view.clone() }))
    }
}

fn owner(resource_version: &str) -> OwnerView {
    OwnerView { uid: "u".into(), resource_version: resource_version.into(), ..OwnerView::default() }
}
fn report(view: OwnerView, progress: Progress) -> Report {
    let mirror =
        Some(Mirror { owner: OwnerId::from_bits([1; 16]), seq: 1, scope: String::new(), records: String::new() });
    Report {
        progress,
        view: Some(view),
        standing: vec![],
        notes: vec![],
        kept: vec![],
        mirror,
        ids: crate::engine::estate::Ids::new(),
    }
}
fn now() -> Timestamp {
    Timestamp::new(50, 0).unwrap()
}

#[tokio::test]
async fn the_second_identical_pass_writes_nothing() {
    let server = Server::new(0, owner("1"));
    let fields = json!({"network": "n-1"});
    let wish = Wish { current: Some(&Value::Null), ..Wish::new("sample", 4, &fields) };
    let Written::Stored(stored) = write(&server, &report(owner("1"), Progress::Done), &wish, now()).await else {
        panic!("not stored")
    };
    let current = server.writes()[0].2.clone();
    assert_eq!(current, json!({"network": "n-1", "observedGeneration": 4}));

    let again = Wish { current: Some(&current), ..wish };
    let later = now() + jiff::SignedDuration::from_secs(60);
    assert_eq!(write(&server, &report(*stored, Progress::Done), &again, later).await, Written::Unchanged);
    assert_eq!(server.writes().len(), 1);
}

#[tokio::test]
async fn a_conflict_is_composed_anew_on_the_newest_view() {
    let mut newest = owner("9");
    newest.conditions = conditions(&report(owner("1"), Progress::Done), &[], 1, "other", now());
    newest.conditions.retain(|c| c.type_.contains("other"));
    let server = Server::new(1, newest);
    let fields = json!({});
    let outcome = write(&server, &report(owner("1"), Progress::Done), &Wish::new("sample", 1, &fields), now()).await;

    assert!(matches!(outcome, Written::Stored(_)));
    let (view, list, _) = server.writes().pop().unwrap();
    assert_eq!(view.resource_version, "9");
    assert!(find(&list, "custody.dev/other-ledger").is_some(), "what somebody else wrote in between is kept");
    assert!(find(&list, READY).is_some());
}

#[tokio::test]
async fn a_second_conflict_is_left_to_the_next_pass() {
    let server = Server::new(2, owner("9"));
    let outcome = write(&server, &report(owner("1"), Progress::Done), &Wish::new("s", 1, &json!({})), now()).await;
    assert!(matches!(outcome, Written::Later(_)));
    assert_eq!(server.writes().len(), 2);
}

#[tokio::test]
async fn an_owner_that_got_another_id_meanwhile_is_not_told_of_the_old_one() {
    // given an owner whose id was stripped, and minted anew by another process, while this one writes status
    let mut newer = owner("2");
    newer.annotations.insert(names::owner_id("c"), OwnerId::from_bits([2; 16]).to_string());
    let (server, fields) = (Server::new(1, newer.clone()), json!({}));
    let wish = Wish::new("c", 1, &fields);
    let written = write(&server, &report(owner("1"), Progress::Done), &wish, now()).await;
    // then the next pass tells of it
    assert!(matches!(written, Written::Later(_)), "{written:?}");
    assert_eq!(server.writes().len(), 1);
    // and one that only lost its id is told which it had
    newer.annotations.clear();
    let server = Server::new(1, newer);
    let written = write(&server, &report(owner("1"), Progress::Done), &wish, now()).await;
    assert!(matches!(written, Written::Stored(_)), "{written:?}");
}

#[tokio::test]
async fn another_object_of_the_same_name_is_not_written_on() {
    let server = Server::new(1, OwnerView { uid: "other".into(), ..owner("9") });
    let outcome = write(&server, &report(owner("1"), Progress::Done), &Wish::new("s", 1, &json!({})), now()).await;
    assert_eq!(outcome, Written::Unchanged);
    assert_eq!(server.writes().len(), 1);
}

#[tokio::test]
async fn a_stale_or_finished_pass_writes_nothing() {
    let server = Server::new(0, owner("1"));
    for progress in [Progress::Stale("x".into()), Progress::Gone] {
        write(&server, &report(owner("1"), progress), &Wish::new("s", 1, &json!({})), now()).await;
    }
    assert!(server.writes().is_empty());
}

#[test]
fn a_merge_is_a_change_only_if_something_comes_out_different() {
    let current = json!({"a": {"b": 1, "c": [1, 2]}, "d": "x"});
    for same in [json!({}), json!({"a": {"b": 1}}), json!({"a": {"c": [1, 2]}, "e": null}), json!({"d": "x"})] {
        assert!(!merge_changes(&current, &same), "{same}");
    }
    for other in
        [json!({"a": {"b": 2}}), json!({"a": {"c": [2, 1]}}), json!({"d": null}), json!({"n": 0}), json!({"d": {}})]
    {
        assert!(merge_changes(&current, &other), "{other}");
    }
}
