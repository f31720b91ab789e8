//! When a policy is looked at again, and what it follows meanwhile.
use super::tests::Stage;
use super::*;
use crate::cluster::sight::Eyes;
use crate::testing::scene::{POLICIES, key, policy_path};
use crate::testing::server::LateEyes;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CHILD: &str = "/apis/test/v1/namespaces/n/things/x";

/// Eyes that tell whether the policy follows anything.
struct Told(LateEyes, Arc<AtomicBool>);
impl Eyes for Told {
    fn look(&self, policy: &Key) -> Arc<dyn Sight> {
        self.1.store(true, Ordering::SeqCst);
        self.0.look(policy)
    }
    fn forget(&self, _: &Key) {
        self.1.store(false, Ordering::SeqCst);
    }
}
/// A policy that creates one object, evaluated at these intervals; and whether it follows that.
fn stage(interval: &Value) -> (Stage, impl Fn() -> bool + use<>) {
    let mut stage = Stage::set(|_| None, &json!({"a": 1}));
    let follows = Arc::new(AtomicBool::new(false));
    let eyes = LateEyes { server: stage.server.clone(), late: 0 };
    stage.desk.eyes = Some(Arc::new(Told(eyes, follows.clone())));
    stage
        .server
        .lock()
        .world
        .edit(&policy_path(POLICIES[0]), |policy| policy["spec"]["evaluationInterval"] = interval.clone());
    (stage, move || follows.load(Ordering::SeqCst))
}
/// Somebody deletes the object, and a watch tells.
fn take_away(stage: &Stage, dirt: Dirt) {
    stage.server.lock().world.delete(CHILD, None).unwrap();
    stage.desk.memories.soil(&key(POLICIES[0]), dirt);
    stage.clock.pass(Duration::from_mins(1));
}
fn is_there(stage: &Stage) -> bool {
    stage.server.lock().world.objects.contains_key(CHILD)
}

#[tokio::test]
async fn never_again_means_never_though_the_other_state_is_watched() {
    // given a policy that watches until it is compliant, and is
    let (stage, follows) = stage(&json!({"compliant": "never"}));
    assert_eq!(stage.pass().await, Next::Done);
    assert_eq!(stage.policy()["status"]["compliant"], "Compliant");
    assert!(!follows());
    // when its object goes, heard of by a watch that was just ending, then it stays gone
    take_away(&stage, Dirt::Followed);
    assert_eq!(stage.pass().await, Next::Done);
    assert!(!is_there(&stage));
    // when the policy is edited, or its namespaces change, then it is evaluated all the same
    stage.server.lock().world.edit(&policy_path(POLICIES[0]), |policy| policy["spec"]["severity"] = "low".into());
    stage.pass().await;
    assert!(is_there(&stage) && !follows());
    take_away(&stage, Dirt::Always);
    stage.pass().await;
    assert!(is_there(&stage));
}
#[tokio::test]
async fn who_becomes_watched_looks_once_more_to_follow() {
    // given a policy that is evaluated on an interval until it is compliant, and is
    let (stage, follows) = stage(&json!({"noncompliant": "10s"}));
    let next = stage.pass().await;
    assert_eq!((stage.policy()["status"]["compliant"].as_str(), follows()), (Some("Compliant"), false));
    // then it comes back, and follows its object from then on
    assert_eq!(next, Next::Again(stage.desk.settings.backoff));
    stage.clock.pass(stage.desk.settings.backoff);
    assert_eq!((stage.pass().await, follows()), (Next::Done, true));
    take_away(&stage, Dirt::Followed);
    stage.pass().await;
    assert!(is_there(&stage));
}
#[tokio::test]
async fn who_becomes_timed_follows_no_longer() {
    let (stage, follows) = stage(&json!({"compliant": "1h"}));
    assert_eq!(stage.pass().await, Next::Again(Duration::from_hours(1)));
    assert!(!follows());
    take_away(&stage, Dirt::Followed);
    assert_eq!(stage.pass().await, Next::Again(Duration::from_mins(59)));
}
