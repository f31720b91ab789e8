use super::*;
use crate::api::ConfigurationPolicy;
use crate::cluster::kinds::Kinds;
use crate::cluster::objects::Objects;
use crate::cluster::sight::Direct;
use crate::cluster::spaces::Asked;
use crate::cluster::wire::{Call, Trouble, Verb, Wire};
use crate::dialect::Dialect;
use crate::evaluate::{act, keyring, templates};
use crate::testing::clock::SimClock;
use crate::testing::world::World;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::runtime::object::Key;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// An API server whose things cannot be changed once their `spec.fixed` is set.
struct Server(Mutex<World>);
#[async_trait]
impl Wire for Server {
    async fn call(&self, call: Call) -> Result<Value, Trouble> {
        assert!(!call.mutates(), "{call:?}");
        let mut world = self.0.lock().unwrap();
        if call.verb == Verb::Put && world.objects[&call.path]["spec"]["fixed"] == true {
            return Err(Trouble { code: 422, message: "field is immutable".into(), ..Trouble::default() });
        }
        world.answer(&call)
    }
}
fn thing(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": name, "namespace": "n", "labels": {"a": "b"}}, "spec": spec})
}
async fn previews(given: &[Value], policy: Value) -> Vec<(String, String)> {
    let (previews, doubts) = planned(given, policy).await;
    assert!(doubts.is_empty(), "{doubts:?}");
    previews
}
async fn planned(given: &[Value], policy: Value) -> (Vec<(String, String)>, Vec<String>) {
    let mut world = World::default();
    for object in given {
        let (kind, name) = (&object["kind"], object["metadata"]["name"].as_str().unwrap());
        let folder = if kind == "Thing" { "/apis/test/v1/namespaces/n/things" } else { "/api/v1/namespaces/n/secrets" };
        world.create(&format!("{folder}/{name}"), object.clone(), "somebody").unwrap();
    }
    let policy: ConfigurationPolicy = serde_json::from_value(policy).unwrap();
    let (wire, clock) = (Arc::new(Server(Mutex::new(world))), Arc::new(SimClock::default()));
    let (objects, clock): (_, SharedClock) = (Objects(wire.clone()), clock);
    let (key, kinds) = (Key::new("n", "p"), Kinds::new(wire, clock.clone()));
    let (sight, spaces) = (Direct(objects.clone()), Asked(objects.clone()));
    let ground = Ground {
        objects: &objects,
        kinds: &kinds,
        sight: &sight,
        spaces: &spaces,
        take_terminating: true,
        dialect: Dialect::Current,
        clock: &clock,
        policy: &policy,
        key: &key,
    };
    let keys = keyring::keys(&policy, &key, &sight).await.ok();
    let ready = templates::ready(&policy, keys.as_ref()).unwrap();
    let (previews, doubts) = preview(ground, &act::read(ground, ready).await).await;
    (previews.into_iter().map(|p| (format!("{} {}", p.action, p.object.metadata.name), p.why)).collect(), doubts)
}
fn policy(templates: &Value) -> Value {
    json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"remediationAction": "enforce", "object-templates": templates}})
}

#[tokio::test]
async fn what_cannot_be_changed_is_made_anew_or_refused() {
    for (fixed, option, expected) in [
        (false, "None", "update x"),
        (false, "IfRequired", "update x"),
        (false, "Always", "recreate x"),
        (true, "None", "blocked x"),
        (true, "IfRequired", "recreate x"),
        (true, "Always", "recreate x"),
    ] {
        let definition = thing("x", &json!({"a": 2}));
        let template = json!({"complianceType": "musthave", "recreateOption": option, "objectDefinition": definition});
        let found = previews(&[thing("x", &json!({"a": 1, "fixed": fixed}))], policy(&json!([template]))).await;
        assert_eq!(found[0].0, expected, "{option} {found:?}");
    }
}
#[tokio::test]
async fn every_object_that_is_matched_is_named() {
    let mut definition = thing("", &json!({"a": 1}));
    definition["metadata"].as_object_mut().unwrap().remove("name");
    let template = json!({"complianceType": "musthave", "objectDefinition": definition});
    let given = [thing("x", &json!({"a": 1})), thing("y", &json!({"a": 1})), thing("z", &json!({"a": 2}))];
    let found = previews(&given, policy(&json!([template]))).await;
    assert_eq!(found.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), ["none x", "none y"]);
}
#[tokio::test]
async fn encrypted_values_are_compared_and_not_shown() {
    use crate::encryption::tests::{seal, secret, vector};
    let mut keys = secret(&[1; 32], None);
    keys["kind"] = "Secret".into();
    keys["metadata"] = json!({"name": crate::names::ENCRYPTION_SECRET});
    let sealed = thing("x", &json!({"a": seal(&[1; 32], "raleigh")}));
    let mut asked = policy(&json!([{"complianceType": "musthave", "objectDefinition": sealed}]));
    asked["metadata"]["annotations"] = json!({crate::names::ENCRYPTION_IV: vector()});
    for (now, expected) in [("raleigh", "none x"), ("cary", "update x")] {
        let found = previews(&[keys.clone(), thing("x", &json!({"a": now}))], asked.clone()).await;
        assert!(found[0].0 == expected && !found[0].1.contains("raleigh"), "{now} {found:?}");
    }
}

#[tokio::test]
async fn a_template_that_cannot_be_evaluated_has_a_row_of_its_own() {
    let mut unknown = thing("a", &json!({}));
    unknown["kind"] = "Nothing".into();
    let mut nowhere = thing("b", &json!({}));
    nowhere["metadata"]["namespace"] = "".into();
    let (templated, mut selecting) = (thing("{{ x }}", &json!({})), thing("", &json!({})));
    selecting["metadata"] = json!({"namespace": "n"});
    let badly = json!({"matchExpressions": [{"key": "a", "operator": "Seriously"}]});
    for (definition, selector, row, why, doubt) in [
        (unknown, json!(null), "blocked a", "couldn't find mapping resource", true),
        (nowhere, json!(null), "blocked b", "has no namespace specified", false),
        (templated, json!(null), "blocked {{ x }}", "Go templates are not supported", true),
        (selecting, badly, "blocked -", "Error parsing provided objectSelector", true),
    ] {
        let template =
            json!({"complianceType": "musthave", "objectDefinition": definition, "objectSelector": selector});
        let (found, doubts) = planned(&[], policy(&json!([template]))).await;
        assert!(found.len() == 1 && found[0].0 == row && found[0].1.contains(why), "{found:?}");
        assert_eq!(doubts.len(), usize::from(doubt), "{doubts:?}");
    }
}
