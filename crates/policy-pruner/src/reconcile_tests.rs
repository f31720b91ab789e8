use super::*;
use crate::cluster::objects::Objects;
use crate::cluster::wire::{Call, Verb, Wire};
use crate::encryption::tests::{seal, secret, vector};
use crate::report::Notices;
use crate::surroundings::Surroundings;
use crate::testing::clock::SimClock;
use crate::testing::histories;
use crate::testing::scene::{self, POLICIES, key, policy_path};
use crate::testing::server::SimServer;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// An API server that refuses some requests.
struct Refusing(SimServer, fn(&Call) -> Option<Trouble>);
#[async_trait]
impl Wire for Refusing {
    async fn call(&self, call: Call) -> Result<Value, Trouble> {
        match (self.1)(&call) {
            Some(trouble) => Err(trouble),
            None => self.0.call(call).await,
        }
    }
}
fn invalid(message: &str) -> Trouble {
    Trouble { code: 422, reason: "Invalid".into(), message: message.into(), ..Trouble::default() }
}

/// One policy with one template, and a process that serves it.
pub(super) struct Stage {
    pub(super) server: SimServer,
    pub(super) clock: Arc<SimClock>,
    pub(super) desk: Desk,
}
impl Stage {
    pub(super) fn set(refuse: fn(&Call) -> Option<Trouble>, spec: &Value) -> Self {
        let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
        {
            let mut shared = server.lock();
            scene::begin(&mut shared);
            let thing = json!({"apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "n"}, "spec": spec});
            let template = json!({"complianceType": "musthave", "objectDefinition": thing});
            shared.world.edit(&policy_path(POLICIES[0]), |policy| {
                policy["spec"] = json!({"remediationAction": "enforce", "object-templates": [template]});
            });
        }
        let mut desk = histories::desk(&server, &clock, 1, 0);
        desk.objects = Objects(Arc::new(Refusing(server.clone(), refuse)));
        desk.reporter.objects = desk.objects.clone();
        desk.surroundings = Arc::new(Surroundings::new(desk.objects.clone(), None));
        Stage { server, clock, desk }
    }
    /// The policy prunes what it created, and asks for these.
    fn ask_for(&self, objects: &[Value]) {
        let templates: Vec<Value> =
            objects.iter().map(|object| json!({"complianceType": "musthave", "objectDefinition": object})).collect();
        self.server.lock().world.edit(&policy_path(POLICIES[0]), |policy| {
            policy["spec"]["pruneObjectBehavior"] = "DeleteIfCreated".into();
            policy["spec"]["object-templates"] = json!(templates);
        });
    }
    fn touch(&self, change: impl FnOnce(&mut Value)) {
        self.server.lock().world.touch(&policy_path(POLICIES[0]), change);
    }
    pub(super) fn policy(&self) -> Value {
        self.server.lock().world.objects[&policy_path(POLICIES[0])].clone()
    }
    pub(super) async fn pass(&self) -> Next {
        self.server.lock().remember();
        let policy = serde_json::from_value(self.policy()).unwrap();
        pass(&self.desk, &key(POLICIES[0]), &policy).await
    }
}

#[tokio::test]
async fn a_refused_object_does_not_tell_what_was_decrypted() {
    let refuse = |call: &Call| {
        let refused = call.verb == Verb::Post && call.path.ends_with("/things");
        refused.then(|| invalid("spec.a: Invalid value: \"raleigh\""))
    };
    let stage = Stage::set(refuse, &json!({"a": seal(&[1; 32], "raleigh")}));
    stage.touch(|policy| policy["metadata"]["annotations"] = json!({names::ENCRYPTION_IV: vector()}));
    let path = format!("/api/v1/namespaces/n/secrets/{}", names::ENCRYPTION_SECRET);
    stage.server.lock().world.create(&path, secret(&[1; 32], None), "hub").unwrap();
    stage.pass().await;
    let status = stage.policy()["status"].to_string();
    assert!(status.contains("cannot be created, reason: `422 Invalid: not shown"), "{status}");
    assert!(!status.contains("raleigh"), "{status}");
}

#[tokio::test]
async fn an_uninstall_that_is_called_off_is_noticed() {
    let stage = Stage::set(|_| None, &json!({"a": 1}));
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", names::CRD);
    stage.touch(|policy| policy["metadata"]["annotations"] = json!({names::UNINSTALLING: "2026-11-16T08:00:00Z"}));
    let ending = |at: Value| stage.server.lock().world.touch(&crd, |crd| crd["metadata"] = at);
    ending(json!({"name": names::CRD, "finalizers": ["x"], "deletionTimestamp": "2026-11-16T08:00:00Z"}));
    // Let go of, and looked at again though nothing happens to the policy.
    let Next::Again(wait) = stage.pass().await else { panic!("nobody would look again") };
    assert!(stage.policy().get("status").is_none());
    ending(json!({"name": names::CRD}));
    stage.clock.pass(wait);
    stage.pass().await;
    assert_eq!(stage.policy()["status"]["compliant"], "Compliant");
}
#[tokio::test]
async fn after_an_uninstall_that_is_called_off_a_policy_follows_its_objects_again() {
    // given a policy that was evaluated, and let go of
    let stage = Stage::set(|_| None, &json!({"a": 1}));
    let child = "/apis/test/v1/namespaces/n/things/x";
    assert_eq!(stage.pass().await, Next::Done);
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", names::CRD);
    let ending = |at: Value| stage.server.lock().world.touch(&crd, |crd| crd["metadata"] = at);
    stage.touch(|policy| policy["metadata"]["annotations"] = json!({names::UNINSTALLING: "2026-11-16T08:00:00Z"}));
    ending(json!({"name": names::CRD, "finalizers": ["x"], "deletionTimestamp": "2026-11-16T08:00:00Z"}));
    let Next::Again(wait) = stage.pass().await else { panic!("nobody would look again") };
    // when its object goes unheard of, and everything else is as it was
    stage.server.lock().world.delete(child, None).unwrap();
    stage.touch(|policy| policy["metadata"]["annotations"] = json!({}));
    ending(json!({"name": names::CRD}));
    stage.clock.pass(wait);
    stage.pass().await;
    // then that is noticed
    assert!(stage.server.lock().world.objects.contains_key(child));
}
#[tokio::test]
async fn a_definition_that_goes_lets_go_of_a_policy_that_waits_for_its_child() {
    let stage = Stage::set(|_| None, &json!({"a": 1}));
    let server = &stage.server;
    server
        .lock()
        .world
        .edit(&policy_path(POLICIES[0]), |policy| policy["spec"]["pruneObjectBehavior"] = "DeleteAll".into());
    stage.pass().await;
    let child = "/apis/test/v1/namespaces/n/things/x";
    server.lock().world.touch(child, |child| child["metadata"]["finalizers"] = json!(["somebody/holds"]));
    server.lock().world.delete(&policy_path(POLICIES[0]), None).unwrap();
    stage.pass().await;
    let Next::Again(wait) = stage.pass().await else { panic!("not over yet") };
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", names::CRD);
    server.lock().world.touch(&crd, |crd| crd["metadata"]["deletionTimestamp"] = "2026-11-16T08:00:00Z".into());
    server.lock().world.touch(&crd, |crd| crd["metadata"]["finalizers"] = json!(["x"]));
    stage.clock.pass(wait);
    stage.pass().await;
    assert!(!server.lock().world.objects.contains_key(&policy_path(POLICIES[0])), "let go of");
    assert!(server.lock().world.objects.contains_key(child));
}

/// The definition of policies begins to go, or is as it was.
fn definition(stage: &Stage, going: bool) {
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", names::CRD);
    let (finalizers, at) = if going { (json!(["x"]), json!("2026-11-16T08:00:00Z")) } else { (json!([]), Value::Null) };
    stage.server.lock().world.touch(&crd, |crd| {
        crd["metadata"] = json!({"name": names::CRD, "finalizers": finalizers, "deletionTimestamp": at});
    });
}
#[tokio::test]
async fn nothing_is_pruned_by_an_edit_while_the_installation_leaves_and_every_policy_is_let_go_of() {
    // given a policy that created two things, and was evaluated a moment ago
    let stage = Stage::set(|_| None, &json!({"a": 1}));
    stage.ask_for(&[thing("a"), thing("x")]);
    stage.pass().await;
    stage.clock.pass(Duration::from_secs(1));
    // when the installation begins to leave, and then one of them is edited out
    definition(&stage, true);
    stage.ask_for(&[thing("x")]);
    let Next::Again(wait) = stage.pass().await else { panic!("nobody would look again") };
    // then it stays, and the policy is let go of though nobody told it
    assert!(stage.server.lock().world.objects.contains_key(A));
    stage.clock.pass(wait.max(LEAVING_LOOK));
    assert_eq!(stage.pass().await, Next::Again(LEAVING_LOOK));
    assert_eq!(stage.policy()["metadata"]["finalizers"], json!([]));
    // when that is called off, then what dropped out goes
    definition(&stage, false);
    stage.clock.pass(LEAVING_LOOK);
    stage.pass().await;
    assert_eq!(stage.policy()["metadata"]["finalizers"], json!([names::FINALIZER]));
    assert!(!stage.server.lock().world.objects.contains_key(A));
}
#[tokio::test]
async fn a_drifted_object_is_mended_without_asking_whether_the_installation_leaves() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let count = |call: &Call| {
        if call.path.ends_with("/customresourcedefinitions") {
            ASKED.fetch_add(1, Ordering::SeqCst);
        }
        None
    };
    // given a policy at rest
    let stage = Stage::set(count, &json!({"a": 1}));
    stage.pass().await;
    stage.clock.pass(LEAVING_LOOK);
    stage.pass().await;
    let before = ASKED.load(Ordering::SeqCst);
    // when its object drifts long after the last answer
    stage.clock.pass(LEAVING_LOOK * 2);
    let x = "/apis/test/v1/namespaces/n/things/x";
    stage.server.lock().world.edit(x, |thing| thing["spec"]["a"] = 7.into());
    stage.desk.memories.soil(&key(POLICIES[0]), Dirt::Followed);
    stage.pass().await;
    // then it is mended, and that was all
    assert_eq!(stage.server.lock().world.objects[x]["spec"]["a"], 1);
    assert_eq!(ASKED.load(Ordering::SeqCst), before);
    // and an edit of the policy asks again
    stage.server.lock().world.edit(&policy_path(POLICIES[0]), |policy| policy["spec"]["severity"] = "high".into());
    stage.pass().await;
    assert_eq!(ASKED.load(Ordering::SeqCst), before + 1);
}
#[tokio::test]
async fn a_deletion_says_that_it_cannot_tell_whether_the_installation_leaves() {
    let refuse = |call: &Call| {
        let asked = call.path.ends_with("/customresourcedefinitions");
        asked.then(|| Trouble { code: 500, message: "etcd is away".into(), ..Trouble::default() })
    };
    let stage = Stage::set(refuse, &json!({"a": 1}));
    stage.ask_for(&[thing("a")]);
    // That nobody can tell keeps nothing from being evaluated.
    stage.pass().await;
    assert_eq!(stage.policy()["status"]["compliant"], "Compliant");
    stage.server.lock().world.delete(&policy_path(POLICIES[0]), None).unwrap();
    assert!(matches!(stage.pass().await, Next::Again(_)));
    let status = stage.policy()["status"].clone();
    assert!(status["compliant"] == "Terminating" && status.to_string().contains("etcd is away"), "{status}");
    assert!(stage.server.lock().world.objects.contains_key(A));
}
#[tokio::test]
async fn what_only_the_status_knew_is_known_to_the_ledger_once_the_policy_prunes() {
    for replaced in [false, true] {
        // given a policy that created an object and pruned nothing, and then prunes
        let stage = Stage::set(|_| None, &json!({"a": 1}));
        stage.pass().await;
        let child = "/apis/test/v1/namespaces/n/things/x";
        if replaced {
            stage.server.lock().world.delete(child, None).unwrap();
            stage.server.lock().world.create(child, thing("x"), "a-stranger").unwrap();
        }
        stage.ask_for(&[thing("x")]);
        stage.clock.pass(Duration::from_secs(1));
        stage.pass().await;
        // when its status is lost and it is deleted
        stage.touch(|policy| policy["status"] = json!({}));
        stage.server.lock().world.delete(&policy_path(POLICIES[0]), None).unwrap();
        stage.pass().await;
        // then its own object goes, and nothing that somebody else put there
        let objects = stage.server.lock().world.objects.clone();
        assert!(!objects.contains_key(&policy_path(POLICIES[0])));
        assert_eq!(objects.contains_key(child), replaced);
    }
}
#[tokio::test]
async fn a_ledger_without_use_is_closed_and_one_that_somebody_deletes_is_written_anew() {
    let stage = Stage::set(|_| None, &json!({"a": 1}));
    stage.ask_for(&[thing("x")]);
    stage.pass().await;
    let space = json!({"metadata": {"name": "n"}});
    stage.server.lock().world.create("/api/v1/namespaces/n", space, "somebody").unwrap();
    let path = crate::prune::ledgers::mapping().path_of("n", &names::ledger_name(POLICIES[0]));
    // given a ledger that somebody deletes, when the policy hears of it, then there is a new one that says the same
    stage.server.lock().world.delete(&path, None).unwrap();
    let doomed = stage.server.lock().world.objects[&path].clone();
    stage.desk.ledgers.saw(&doomed);
    stage.desk.memories.soil(&key(POLICIES[0]), Dirt::Always);
    stage.clock.pass(Duration::from_secs(1));
    stage.pass().await;
    let anew = stage.server.lock().world.objects[&path].clone();
    assert!(anew["metadata"]["deletionTimestamp"].is_null() && anew["data"] == doomed["data"], "{anew}");
    // given a policy that no longer prunes and has lost its finalizer by hand, then it has no ledger either
    for uid in ["another", "its own"] {
        stage.server.lock().world.edit(&policy_path(POLICIES[0]), |policy| {
            policy["spec"]["pruneObjectBehavior"] = "None".into();
            policy["metadata"]["finalizers"] = json!([]);
            if uid == "another" {
                let own = policy["metadata"]["uid"].take();
                policy["metadata"]["own"] = own;
            } else {
                policy["metadata"]["uid"] = policy["metadata"]["own"].take();
            }
        });
        stage.clock.pass(Duration::from_secs(1));
        stage.pass().await;
        assert_eq!(stage.server.lock().world.objects.contains_key(&path), uid == "another", "{uid}");
    }
}
#[tokio::test]
async fn an_edit_to_a_template_prunes_nothing() {
    for raw in [false, true] {
        // given a policy that created an object
        let stage = Stage::set(|_| None, &json!({"a": 1}));
        stage.ask_for(&[thing("a")]);
        stage.pass().await;
        // when it is edited to something that only a template names
        stage.server.lock().world.edit(&policy_path(POLICIES[0]), |policy| {
            policy["spec"]["object-templates"][0]["objectDefinition"]["metadata"]["name"] = "{{ x }}".into();
            if raw {
                policy["spec"]["object-templates-raw"] = policy["spec"]["object-templates"].to_string().into();
                policy["spec"]["object-templates"] = Value::Null;
            }
        });
        stage.clock.pass(Duration::from_secs(1));
        stage.pass().await;
        // then it says so, and the object stays; it goes with the policy, which created it
        assert_eq!(stage.policy()["status"]["compliant"], "NonCompliant");
        assert!(stage.server.lock().world.objects.contains_key(A), "{raw}");
        stage.server.lock().world.delete(&policy_path(POLICIES[0]), None).unwrap();
        stage.pass().await;
        assert!(!stage.server.lock().world.objects.contains_key(A), "{raw}");
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_does_not_take_the_status_along() {
    let refuse = |call: &Call| call.path.ends_with("/events").then(|| invalid("metadata.name: Invalid value"));
    let stage = Stage::set(refuse, &json!({"a": 1}));
    let owner = json!({"apiVersion": "v1", "kind": "Owner", "name": "system:owner", "uid": "u"});
    stage.touch(|policy| policy["metadata"]["ownerReferences"] = json!([owner]));
    assert_eq!(stage.pass().await, Next::Done);
    assert_eq!(stage.policy()["status"]["compliant"], "Compliant");
}
#[tokio::test]
async fn only_a_policy_that_is_gone_counts_as_gone() {
    let refuse = |call: &Call| call.path.ends_with("/status").then(|| invalid("status: Invalid value"));
    let stage = Stage::set(refuse, &json!({"a": 1}));
    let policy = serde_json::from_value(stage.policy()).unwrap();
    // A status that is refused is tried again, less and less often.
    for seconds in [1, 2, 4] {
        assert_eq!(stage.pass().await, Next::Again(Duration::from_secs(seconds)));
        assert!(stage.desk.memories.of(&key(POLICIES[0])).lock().await.unfinished);
        stage.clock.pass(Duration::from_secs(seconds));
    }
    stage.server.lock().world.delete(&policy_path(POLICIES[0]), None).unwrap();
    assert_eq!(pass(&stage.desk, &key(POLICIES[0]), &policy).await, Next::Again(RACE));
}

fn thing(name: &str) -> Value {
    json!({"apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": name, "namespace": "n"}, "spec": {"a": 1}})
}
const SPACE: &str = "/api/v1/namespaces/n";
const A: &str = "/apis/test/v1/namespaces/n/things/a";
const B: &str = "/apis/test/v1/namespaces/n/things/b";

#[tokio::test]
async fn a_namespace_that_is_edited_out_stays_for_what_an_earlier_pass_kept() {
    for ledger_knows in [true, false] {
        // given a policy that created a namespace and two things in it
        let stage = Stage::set(|_| None, &json!({"a": 1}));
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        stage.ask_for(&[space, thing("a"), thing("b"), thing("x")]);
        stage.pass().await;
        if !ledger_knows {
            let mut ledger = stage.desk.ledgers.get(&key(POLICIES[0])).await.unwrap().unwrap();
            assert!(ledger.remove(&crate::api::ObjectRef::new("test/v1", "Thing", "n", "b")));
            stage.desk.ledgers.save(&key(POLICIES[0]), &mut ledger).await.unwrap();
        }
        // when a stranger makes one of them anew, the other is held, and all three are edited out
        {
            let world = &mut stage.server.lock().world;
            world.delete(B, None).unwrap();
            world.create(B, thing("b"), "a-stranger").unwrap();
            world.touch(A, |thing| thing["metadata"]["finalizers"] = json!(["x/y"]));
        }
        stage.ask_for(&[thing("x")]);
        stage.clock.pass(Duration::from_secs(1));
        let Next::Again(wait) = stage.pass().await else { panic!("one is still held") };
        stage.server.lock().world.touch(A, |thing| thing["metadata"]["finalizers"] = json!([]));
        stage.clock.pass(wait);
        assert_eq!(stage.pass().await, Next::Done);
        // then what the stranger made is still there, and so is the namespace around it, and the books are closed on both
        let objects = stage.server.lock().world.objects.clone();
        assert!(objects.contains_key(SPACE) && objects.contains_key(B) && !objects.contains_key(A), "{ledger_knows}");
        let ledger = stage.desk.ledgers.get(&key(POLICIES[0])).await.unwrap().unwrap();
        assert_eq!(ledger.entries.len(), 1, "{ledger:?}");
    }
}

#[tokio::test]
async fn what_drops_out_of_raw_text_goes_as_out_of_a_list() {
    for raw in [false, true] {
        // given a policy that deletes all, has once found an object in a namespace that its selector has lost, and has no ledger of that
        let stage = Stage::set(|_| None, &json!({"a": 1}));
        let elsewhere = "/apis/test/v1/namespaces/m/things/x";
        let mut found = thing("x");
        found["metadata"]["namespace"] = "m".into();
        let made = stage.server.lock().world.create(elsewhere, found.clone(), "somebody").unwrap();
        for (name, labels) in [("n", json!({"team": "x"})), ("m", json!({}))] {
            let space = json!({"metadata": {"name": name, "labels": labels}});
            stage.server.lock().world.create(&format!("/api/v1/namespaces/{name}"), space, "somebody").unwrap();
        }
        let properties = json!({"createdByPolicy": false, "uid": made["metadata"]["uid"]});
        stage.server.lock().world.edit(&policy_path(POLICIES[0]), |policy| {
            policy["status"] = json!({"relatedObjects": [{"object": found, "properties": properties}]});
            policy["spec"]["pruneObjectBehavior"] = "DeleteAll".into();
            policy["spec"]["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
            policy["spec"]["object-templates"][0]["objectDefinition"]["metadata"] = json!({"name": "x"});
            if raw {
                policy["spec"]["object-templates-raw"] = policy["spec"]["object-templates"].to_string().into();
                policy["spec"]["object-templates"] = Value::Null;
            }
        });
        // when it is evaluated, then that object goes
        stage.pass().await;
        assert_eq!(stage.policy()["status"]["compliant"], "Compliant");
        assert!(!stage.server.lock().world.objects.contains_key(elsewhere), "{raw}");
    }
}

/// Takes down events.
#[derive(Default)]
struct Heard(Mutex<Vec<Value>>);
#[async_trait]
impl Wire for Heard {
    async fn call(&self, call: Call) -> Result<Value, Trouble> {
        self.0.lock().unwrap().extend(call.body);
        Ok(Value::Null)
    }
}
#[tokio::test]
async fn what_an_edit_cannot_delete_is_told_once() {
    let no_right = |call: &Call| {
        let refused = call.verb == Verb::Delete && call.path == A;
        refused.then(|| Trouble { code: 403, message: "things is forbidden".into(), ..Trouble::default() })
    };
    let nobody: fn(&Call) -> Option<Trouble> = |_| None;
    for (refuse, finalizers, events) in [(no_right as fn(&Call) -> _, json!([]), 1), (nobody, json!(["x/y"]), 0)] {
        // given an object that was edited out, and a namespace that has its turn after it
        let mut stage = Stage::set(refuse, &json!({"a": 1}));
        let heard = Arc::new(Heard::default());
        let (notices, sending) = Notices::start(Objects(heard.clone()));
        stage.desk.reporter.notices = notices;
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        stage.ask_for(&[space, thing("a"), thing("x")]);
        stage.pass().await;
        stage.server.lock().world.touch(A, |thing| thing["metadata"]["finalizers"] = finalizers);
        stage.ask_for(&[thing("x")]);
        // when it cannot be deleted time and again
        let mut writes = Vec::new();
        for _ in 0..4 {
            stage.clock.pass(Duration::from_secs(10));
            assert!(matches!(stage.pass().await, Next::Again(_)));
            writes.push(stage.policy()["metadata"]["resourceVersion"].clone());
        }
        // then a refusal is told once, waiting is not, and nothing is written to the policy for either
        stage.desk.reporter.notices = Notices::silent();
        sending.await;
        let told = |reason: &str| -> Vec<Value> {
            heard.0.lock().unwrap().iter().filter(|event| event["reason"] == reason).cloned().collect()
        };
        let (held, pruned) = (told("PruneHeld"), told("Pruned"));
        // and what is deleted is told once, too, though it is not gone yet
        assert_eq!(pruned.len(), 1 - events, "{pruned:?}");
        assert!(pruned.iter().all(|event| event["message"].to_string().contains("Kind=Thing")), "{pruned:?}");
        assert_eq!(held.len(), events, "{held:?}");
        assert!(
            held.iter().all(|event| event["message"].as_str().unwrap().contains("things is forbidden")),
            "{held:?}"
        );
        assert_eq!(writes[1], writes[2]);
    }
}
