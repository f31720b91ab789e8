use super::*;
use crate::cluster::wire::{Call, Trouble, Verb, Wire};
use crate::prune::others::Others;
use crate::testing::clock::SimClock;
use crate::text::selector::Selector;
use async_trait::async_trait;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One object, `a` of a kind that is served in version `v1beta1` and, once that is over, in `v1`.
#[derive(Default)]
struct Served {
    moved: AtomicBool,
    deletes: Mutex<Vec<String>>,
}
fn missing() -> Trouble {
    Trouble { code: 404, message: "404 page not found".into(), ..Trouble::default() }
}
fn live() -> Value {
    json!({"metadata": {"name": "a", "namespace": "n", "uid": "1", "resourceVersion": "5"}})
}
#[async_trait]
impl Wire for Served {
    async fn call(&self, call: Call) -> Result<Value, Trouble> {
        let version = if self.moved.load(Ordering::SeqCst) { "v1" } else { "v1beta1" };
        if call.verb == Verb::Delete {
            self.deletes.lock().unwrap().push(call.path.clone());
        }
        let kind = json!({"name": "things", "kind": "Thing", "namespaced": true, "verbs": ["watch"]});
        let path = call.path.as_str();
        if path == "/apis/g" {
            return Ok(json!({"versions": [{"groupVersion": format!("g/{version}")}]}));
        }
        match path.strip_prefix(&format!("/apis/g/{version}")) {
            Some("") => Ok(json!({"resources": [kind]})),
            Some(rest) if !rest.starts_with('/') => Err(missing()),
            Some(_) if call.verb == Verb::Delete => Ok(json!({"apiVersion": "v1", "kind": "Status"})),
            Some(_) => Ok(live()),
            None => Err(missing()),
        }
    }
}
/// A watch that has not heard of anything.
struct Unaware;
#[async_trait]
impl Sight for Unaware {
    async fn get(&self, _: &Mapping, _: &str, _: &str) -> Result<Option<Value>, Trouble> {
        Ok(Some(live()))
    }
    async fn list(&self, _: &Mapping, _: &str, _: &Selector) -> Result<Vec<Value>, Trouble> {
        Ok(Vec::new())
    }
    fn follows(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn what_a_watch_shows_and_a_delete_does_not_find_is_looked_for() {
    // given an object on a watch of a version that is no longer served
    let (wire, clock) = (Arc::new(Served::default()), Arc::new(SimClock::default()));
    let (kinds, objects) = (Kinds::new(wire.clone(), clock.clone()), Objects(wire.clone()));
    kinds.find("g/v1beta1", "Thing").await.unwrap();
    wire.moved.store(true, Ordering::SeqCst);
    clock.pass(Duration::from_mins(1));
    // when it is swept
    let broom = Broom {
        objects: &objects,
        kinds: &kinds,
        prune: Prune::IfCreated,
        ledger: None,
        like_upstream: false,
        others: &Others::new(Arc::new(Vec::new())),
        policy: &Key::new("n", "policy"),
        sight: Some(&Unaware),
        dry_run: false,
    };
    let object = ObjectRef::new("g/v1beta1", "Thing", "n", "a");
    let candidate = Candidate { object, created: true, uids: vec!["1".into()], managed: true };
    let fates = sweep(broom, std::slice::from_ref(&candidate)).await;
    // then it is deleted in the version that it is served in now
    assert_eq!(fates, [(candidate, Fate::Deleted)]);
    assert_eq!(wire.deletes.lock().unwrap().last().unwrap(), "/apis/g/v1/namespaces/n/things/a");
}
#[test]
fn what_is_left_says_since_when() {
    let object = ObjectRef::new("v1", "Pod", "n", "a");
    let candidate = Candidate { object, created: true, uids: Vec::new(), managed: true };
    let ending = Fate::Ending { finalizers: vec!["x/y".into()], since: "then".into(), begun: false };
    for (fate, since, told) in [
        (ending.clone(), Some("before"), "(in progress since then, waiting for finalizers [x/y])"),
        (Fate::Waits, Some("before"), "(it waits until the objects before it are gone, since before)"),
        (Fate::Failed("no right".into()), Some("before"), "(no right, tried since before)"),
        (Fate::Failed("no right".into()), None, "(no right)"),
    ] {
        let text = describe(&[(candidate.clone(), fate)], since);
        assert_eq!(text, format!("Failed to delete objects: /v1, Kind=Pod \"a\" in namespace n {told}"));
    }
}
