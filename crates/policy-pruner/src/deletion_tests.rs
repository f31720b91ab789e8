use super::*;
use crate::cluster::objects::Objects;
use crate::cluster::sight::{Eyes, Sight};
use crate::cluster::wire::{Call, Wire};
use crate::prune::container::Container;
use crate::prune::ledgers::Ledgers;
use crate::prune::others::{Inside, Lodger, Neighbours, Requirer};
use crate::testing::clock::SimClock;
use crate::testing::histories::desk;
use crate::testing::scene;
use crate::testing::server::{LateEyes, SimServer};
use common::random::Random;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An API server whose user deletes the heir just before the first write.
struct Meanwhile(SimServer);
#[async_trait::async_trait]
impl Wire for Meanwhile {
    async fn call(&self, call: Call) -> Result<Value, Trouble> {
        if call.mutates() {
            leave(&self.0);
        }
        self.0.call(call).await
    }
}
fn leave(server: &SimServer) {
    if let Some(heir) = server.lock().world.objects.get_mut(&scene::policy_path("heir")) {
        heir["metadata"]["deletionTimestamp"] = "2026-11-16T08:00:00Z".into();
    }
}
#[tokio::test]
async fn nothing_is_written_anew_to_take_it_back_and_nothing_else_is_taken() {
    let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
    let (desk, heir) = (desk(&server, &clock, 1, 0), scene::key("heir"));
    let [handed, own] = ["a", "b"].map(|name| ObjectRef::new("test/v1", "Thing", "n", name));
    // given an heir that has closed its ledger, then nothing is written
    take_back(&desk, &heir, &handed, None).await.unwrap();
    assert_eq!(server.lock().writes, 0);
    // given one that wrote something of its own beside what was handed over, then only that leaves
    let mut ledger = desk.ledgers.begin(&heir, "uid-1");
    ledger.put(&handed, true, "7");
    ledger.put(&own, true, "8");
    desk.ledgers.save(&heir, &mut ledger).await.unwrap();
    take_back(&desk, &heir, &handed, None).await.unwrap();
    let left = desk.ledgers.fetch(&heir).await.unwrap().unwrap();
    assert!(left.find(&handed).is_none() && left.find(&own).is_some());
}

/// A policy over one object, being deleted and held by our finalizer.
fn going(server: &SimServer) -> ConfigurationPolicy {
    let definition = json!({"apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "n"}});
    let metadata = json!({"name": "policy", "namespace": "n", "finalizers": [crate::names::FINALIZER],
        "deletionTimestamp": "2026-11-16T08:00:00Z"});
    let spec = json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated",
        "object-templates": [{"complianceType": "musthave", "objectDefinition": definition}]});
    let path = scene::policy_path("policy");
    let made = server.lock().world.create(&path, json!({"metadata": metadata, "spec": spec}), "user").unwrap();
    serde_json::from_value(made).unwrap()
}
const CHILD: &str = "/apis/test/v1/namespaces/n/things/a";
/// The object of that policy; its uid.
fn child(server: &SimServer, finalizers: &[&str]) -> String {
    let metadata = json!({"name": "a", "namespace": "n", "finalizers": finalizers});
    let made = server.lock().world.create(CHILD, json!({ "metadata": metadata }), "user").unwrap();
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}
/// A status that says the policy created it.
fn created(uid: &str) -> PolicyStatus {
    let object = json!({"apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "n"}});
    let related = json!([{"object": object, "properties": {"createdByPolicy": true, "uid": uid}}]);
    serde_json::from_value(json!({ "relatedObjects": related })).unwrap()
}
#[tokio::test]
async fn a_deletion_that_fails_says_why() {
    let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
    let (desk, policy) = (desk(&server, &clock, 1, 0), going(&server));
    // given a ledger that cannot be read
    let name = crate::names::ledger_name("policy");
    let path = crate::prune::ledgers::mapping().path_of("n", &name);
    let broken = json!({"metadata": {"name": name, "namespace": "n"}});
    server.lock().world.create(&path, broken, "user").unwrap();
    // when the policy is deleted
    let (key, mut memory) = (scene::key("policy"), Memory::default());
    delete(&desk, &key, &policy, &mut memory, Dialect::Current).await;
    // then it stays, and its status names the ledger
    let status = server.lock().world.objects[&scene::policy_path("policy")]["status"].clone();
    let message = status["compliancyDetails"][0]["conditions"][0]["message"].as_str().unwrap_or_default();
    assert!(status["compliant"] == "Terminating" && message.contains(&name), "{status}");
    assert!(message.ends_with("(tried since 2026-11-16T08:00:00Z)"), "{status}");
}

#[tokio::test]
async fn what_a_former_policy_wrote_down_goes_only_where_the_object_agrees() {
    // given a policy that deletes all, and the ledger of a former one of its name: one object bears that one's mark, the other does not
    let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
    let (desk, mut policy, key) = (desk(&server, &clock, 1, 0), going(&server), scene::key("policy"));
    policy.spec.prune_object_behavior = "DeleteAll".into();
    let mut ledger = desk.ledgers.begin(&key, "a former uid");
    let path = |name: &str| format!("/apis/test/v1/namespaces/n/things/{name}");
    for (name, manager) in [("own", ledger.manager()), ("elder", "somebody".to_owned())] {
        let thing = json!({"metadata": {"name": name, "namespace": "n"}, "spec": {"a": 1}});
        server.lock().world.create(&path(name), thing, &manager).unwrap();
        ledger.put(&ObjectRef::new("test/v1", "Thing", "n", name), name == "own", "");
    }
    desk.ledgers.save(&key, &mut ledger).await.unwrap();
    // when it is deleted before it was ever evaluated
    assert_eq!(delete(&desk, &key, &policy, &mut Memory::default(), Dialect::Current).await, Next::Done);
    // then only what ledger and object agree on goes
    let objects = server.lock().world.objects.clone();
    assert!(!objects.contains_key(&path("own")) && objects.contains_key(&path("elder")));
}

/// Counts whether a policy is still followed.
struct Following(Arc<AtomicUsize>);
impl Eyes for Following {
    fn look(&self, policy: &Key) -> Arc<dyn Sight> {
        LateEyes { server: SimServer::default(), late: 0 }.look(policy)
    }
    fn forget(&self, _: &Key) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
#[tokio::test]
async fn children_are_followed_until_the_last_is_gone_and_not_asked_for_without_pause() {
    let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
    let (mut desk, mut policy) = (desk(&server, &clock, 1, 0), going(&server));
    let forgotten = Arc::new(AtomicUsize::new(0));
    desk.eyes = Some(Arc::new(Following(forgotten.clone())));
    // given a child that somebody's finalizer holds
    let uid = child(&server, &["x/y"]);
    policy.status = Some(created(&uid));
    let (key, mut memory) = (scene::key("policy"), Memory::default());
    delete(&desk, &key, &policy, &mut memory, Dialect::Current).await;
    assert_eq!(forgotten.load(Ordering::SeqCst), 0, "its end is waited for");
    // when it wakes the policy by every change
    let asked = server.lock().requests;
    let next = delete(&desk, &key, &policy, &mut memory, Dialect::Current).await;
    // then the next look waits for the pause between attempts
    assert_eq!((server.lock().requests, next), (asked, Next::Again(desk.settings.backoff)));
    // when it goes, then so does the policy, and follows nothing
    server.lock().world.touch(CHILD, |child| child["metadata"]["finalizers"] = json!([]));
    clock.pass(desk.settings.backoff);
    assert_eq!(delete(&desk, &key, &policy, &mut memory, Dialect::Current).await, Next::Done);
    assert_eq!(forgotten.load(Ordering::SeqCst), 1);
}

/// Nobody can tell who needs what.
struct Unlisted;
impl Neighbours for Unlisted {
    fn requiring(&self, _: &ObjectRef, _: &Key) -> Result<Vec<Requirer>, String> {
        Err("not all policies are listed yet".into())
    }
    fn inside(&self, _: &Container, _: &Key) -> Result<Inside, String> {
        Ok(Inside::default())
    }
}
#[tokio::test]
async fn nothing_is_pruned_while_nobody_can_tell_who_needs_it() {
    let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
    let (mut desk, mut policy) = (desk(&server, &clock, 1, 0), going(&server));
    desk.others = Box::new(Unlisted);
    let uid = child(&server, &[]);
    policy.status = Some(created(&uid));
    delete(&desk, &scene::key("policy"), &policy, &mut Memory::default(), Dialect::Current).await;
    let objects = server.lock().world.objects.clone();
    let status = objects[&scene::policy_path("policy")]["status"].to_string();
    assert!(objects.contains_key(CHILD) && status.contains("not all policies are listed yet"), "{status}");
}

/// Somebody requires an object in namespace `n`, or nobody does.
struct Tenant(bool);
impl Neighbours for Tenant {
    fn requiring(&self, _: &ObjectRef, _: &Key) -> Result<Vec<Requirer>, String> {
        Ok(Vec::new())
    }
    fn inside(&self, container: &Container, _: &Key) -> Result<Inside, String> {
        let object = ObjectRef::new("test/v1", "Thing", "n", "b");
        let tenant = Requirer { key: scene::key("tenant"), uid: "uid-1".into(), prune: Prune::None };
        let lodger = Lodger { object, requirer: tenant, if_namespaced: false };
        let lodgers = Some(lodger).filter(|lodger| self.0 && container.holds(&lodger.object)).into_iter().collect();
        Ok(Inside { lodgers, doubt: None })
    }
}
#[tokio::test]
async fn a_namespace_stays_for_what_is_kept_in_it() {
    let thing = ObjectRef::new("test/v1", "Thing", "n", "a");
    let space = ObjectRef::new("v1", "Namespace", "", "n");
    for (tenant, replaced, created, like_upstream, stays) in [
        (false, false, true, false, None),
        (true, false, true, false, Some("which n/tenant requires")),
        (false, true, true, false, Some("which is kept")),
        // What the namespace came with, and what the policy only changed, goes with it.
        (false, false, false, false, None),
        (true, true, true, true, None),
    ] {
        let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
        let (mut desk, mut policy) = (desk(&server, &clock, 1, 0), going(&server));
        desk.others = Box::new(Tenant(tenant));
        desk.settings.like_upstream = like_upstream;
        policy.spec.prune_object_behavior = "DeleteIfCreated".into();
        let uid = child(&server, &[]);
        let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        let made = server.lock().world.create("/api/v1/namespaces/n", own, "user").unwrap();
        let known = |object: &ObjectRef, created: bool, uid: &str| Candidate {
            object: object.clone(),
            created,
            uids: vec![uid.to_owned()],
            managed: true,
        };
        let victims = [
            known(&space, true, made["metadata"]["uid"].as_str().unwrap()),
            known(&thing, created, if replaced { "another" } else { &uid }),
        ];
        let fates = clean(&desk, &scene::key("policy"), &policy, None, &victims).await;
        let fate = &fates.iter().find(|(candidate, _)| candidate.object == space).unwrap().1;
        match (fate, stays) {
            (Fate::Deleted, None) => {}
            (Fate::Stays(why), Some(told)) => {
                assert!(why.to_string().ends_with(told), "{why}");
                assert_eq!(fate.requirers().len(), usize::from(tenant), "who may be going is asked");
            }
            other => panic!("{tenant} {replaced} {created} {like_upstream}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_namespace_stays_for_what_an_earlier_attempt_kept() {
    // given a ledger that knows of a namespace and two things in it: one that a stranger made anew, one that is held
    let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
    let (desk, policy, key) = (desk(&server, &clock, 1, 0), going(&server), scene::key("policy"));
    let held = child(&server, &["x/y"]);
    let make = |path: &str, object: Value| {
        let made = server.lock().world.create(path, object, "user").unwrap();
        made["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    make("/apis/test/v1/namespaces/n/things/b", json!({"metadata": {"name": "b", "namespace": "n"}, "spec": {}}));
    let space = make("/api/v1/namespaces/n", json!({"metadata": {"name": "n"}}));
    let mut ledger = desk.ledgers.begin(&key, policy.metadata.uid.as_deref().unwrap());
    ledger.put(&ObjectRef::new("v1", "Namespace", "", "n"), true, &space);
    ledger.put(&ObjectRef::new("test/v1", "Thing", "n", "a"), true, &held);
    ledger.put(&ObjectRef::new("test/v1", "Thing", "n", "b"), true, "before");
    desk.ledgers.save(&key, &mut ledger).await.unwrap();
    // when the policy goes in two attempts, because one thing is held at first
    let mut memory = Memory::default();
    assert!(matches!(delete(&desk, &key, &policy, &mut memory, Dialect::Current).await, Next::Again(_)));
    server.lock().world.touch(CHILD, |child| child["metadata"]["finalizers"] = json!([]));
    clock.pass(desk.settings.backoff);
    assert_eq!(delete(&desk, &key, &policy, &mut memory, Dialect::Current).await, Next::Done);
    // then what the stranger made is still there, and so is the namespace around it
    let objects = server.lock().world.objects.clone();
    assert!(
        objects.contains_key("/api/v1/namespaces/n") && objects.contains_key("/apis/test/v1/namespaces/n/things/b")
    );
    assert!(!objects.contains_key(CHILD));
}

#[tokio::test]
async fn nothing_is_over_while_whoever_keeps_it_is_going() {
    let tenant = Requirer { key: scene::key("heir"), uid: "uid-1".into(), prune: Prune::None };
    let object = ObjectRef::new("v1", "Namespace", "", "n");
    let candidate = Candidate { object, created: true, uids: vec!["7".into()], managed: true };
    for fate in [
        Fate::Stays(Why::Holds("it holds something".into(), Some(tenant.clone()))),
        Fate::Required(vec![tenant.clone()], Some("7".into())),
        Fate::Required(vec![tenant], None),
    ] {
        // given a policy that keeps something of ours, and inherits nothing
        let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
        let desk = desk(&server, &clock, 1, 0);
        let metadata = json!({"name": "heir", "namespace": "n", "finalizers": ["x"]});
        server.lock().world.create(&scene::policy_path("heir"), json!({ "metadata": metadata }), "user").unwrap();
        let fates = [(candidate.clone(), fate)];
        assert!(hand_over(&desk, &fates).await.is_ok());
        // when it goes and the watch does not know yet, then it is decided anew
        leave(&server);
        let trouble = hand_over(&desk, &fates).await.unwrap_err();
        assert!(trouble.to_string().contains("n/heir required an object and is being deleted"), "{trouble}");
    }
}

/// A policy names this kind without a namespace and selects namespace `n`; and whether another one may mean something there.
struct Selecting(&'static str, bool);
impl Neighbours for Selecting {
    fn requiring(&self, _: &ObjectRef, _: &Key) -> Result<Vec<Requirer>, String> {
        Ok(Vec::new())
    }
    fn inside(&self, _: &Container, _: &Key) -> Result<Inside, String> {
        let (api_version, kind) = self.0.rsplit_once('/').unwrap();
        let requirer = Requirer { key: scene::key("tenant"), uid: "uid-1".into(), prune: Prune::None };
        let object = ObjectRef::new(api_version, kind, "n", "b");
        let doubt = self.1.then(|| "n/other may require something in it".to_owned());
        Ok(Inside { lodgers: vec![Lodger { object, requirer, if_namespaced: true }], doubt })
    }
}
#[tokio::test]
async fn a_namespace_stays_for_what_a_selector_leads_to_if_that_lives_in_namespaces() {
    for (kind, doubt, fate) in [
        ("test/v1/Thing", false, "it holds test/v1, Kind=Thing \"b\" in namespace n, which n/tenant requires"),
        ("test/v1/Thing", true, "it holds test/v1, Kind=Thing \"b\" in namespace n, which n/tenant requires"),
        ("v1/Namespace", false, ""),
        ("v1/Namespace", true, "n/other may require something in it"),
        ("v1/Nothing", false, ""),
    ] {
        let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
        let (mut desk, policy) = (desk(&server, &clock, 1, 0), going(&server));
        desk.others = Box::new(Selecting(kind, doubt));
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        let made = server.lock().world.create("/api/v1/namespaces/n", space, "user").unwrap();
        let uids = vec![made["metadata"]["uid"].as_str().unwrap().to_owned()];
        let object = ObjectRef::new("v1", "Namespace", "", "n");
        let victim = Candidate { object, created: true, uids, managed: true };
        let fates = clean(&desk, &scene::key("policy"), &policy, None, &[victim]).await;
        let told = match &fates[0].1 {
            Fate::Stays(why) => why.to_string(),
            Fate::Failed(why) => why.clone(),
            Fate::Deleted => String::new(),
            other => panic!("{other:?}"),
        };
        assert_eq!(told, fate, "{kind} {doubt}");
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Heir {
    Stays,
    Going,
    LeavesMeanwhile,
}

#[tokio::test]
async fn who_is_going_inherits_nothing() {
    for (heir_is, writes) in [(Heir::Stays, 1), (Heir::Going, 0), (Heir::LeavesMeanwhile, 3)] {
        let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
        let metadata = json!({"name": "heir", "namespace": "n", "finalizers": ["x"]});
        server.lock().world.create(&scene::policy_path("heir"), json!({ "metadata": metadata }), "user").unwrap();
        let mut desk = desk(&server, &clock, 1, 0);
        match heir_is {
            Heir::Stays => {}
            Heir::Going => leave(&server),
            Heir::LeavesMeanwhile => {
                desk.objects = Objects(Arc::new(Meanwhile(server.clone())));
                desk.ledgers = Arc::new(Ledgers::new(desk.objects.clone(), Arc::new(Random::seeded(1))));
            }
        }
        let heir = Requirer { key: scene::key("heir"), uid: "uid-1".into(), prune: Prune::IfCreated };
        let object = ObjectRef::new("test/v1", "Thing", "n", "a");
        let candidate = Candidate { object: object.clone(), created: true, uids: vec!["7".into()], managed: true };
        let fates = [(candidate, Fate::Required(vec![heir.clone()], Some("7".into())))];
        let inherits = heir_is == Heir::Stays;
        assert_eq!(hand_over(&desk, &fates).await.is_ok(), inherits);
        assert_eq!(server.lock().writes, writes);
        let ledger = desk.ledgers.fetch(&heir.key).await.unwrap();
        assert_eq!(ledger.is_some_and(|ledger| ledger.find(&object).is_some()), inherits);
    }
}
