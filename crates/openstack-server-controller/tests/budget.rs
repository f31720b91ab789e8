//! What a thousand servers at rest cost: the shared lists, and nothing of their own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails
mod support;

use cloud_emulator::kit::CallFilter;
use common::engine::report::Progress;
use serde_json::json;
use std::time::Duration;
use support::World;

#[tokio::test]
async fn a_thousand_visits_of_a_resync_share_a_handful_of_lists() {
    // given a server at rest among many others in its project
    let mut world =
        World::new(&json!({"rootVolume": {"sizeGiB": 1}, "serverMetadata": [{"key": "team", "value": "x"}]}));
    assert_eq!(world.serve().await, Progress::Done);
    // more than a page of each
    for n in 0..1000 {
        world.plant("server", json!({"name": format!("other-{n}")}));
        world.plant("port", json!({"name": format!("other-{n}"), "network_id": "n"}));
    }
    world.settle();
    world.clear_log();
    // when a thousand passes are spread over the ten minutes of a resync, as those of a thousand servers are
    for _ in 0..1000 {
        assert_eq!(world.visit().await, Progress::Done);
        world.pass(Duration::from_millis(600));
    }
    // then the cloud was asked at most a dozen times
    let calls = world.calls(&CallFilter::default());
    println!("SEEN: 1000 passes over converged servers in 10 minutes: {calls} calls of the cloud");
    assert!(calls <= 12, "{:?}", world.log());
    // and what differs by then is told
    assert_eq!(world.condition("Drifted"), None);
    let server = world.living("server").into_iter().find(|it| it.fields["name"] == "srv").unwrap().id;
    world.drift(&server, "team", "y");
    world.pass(Duration::from_mins(10));
    assert_eq!(world.visit().await, Progress::Done);
    assert!(world.said("Drifted").starts_with("True"), "{}", world.said("Drifted"));
}

#[tokio::test]
async fn a_server_that_vanished_is_noticed_within_the_resync() {
    let mut world = World::new(&json!({}));
    assert_eq!(world.serve().await, Progress::Done);
    world.settle();
    assert_eq!(world.visit().await, Progress::Done);
    let id = world.living("server")[0].id.clone();
    world.remove(&id);
    world.pass(Duration::from_mins(10));
    world.serve().await;
    assert!(world.said("Failed").starts_with("True/InstanceNotFound"), "{}", world.said("Failed"));
}

#[tokio::test]
async fn what_a_cloud_can_do_is_remembered_through_an_outage_and_asked_for_once_a_minute() {
    // given a server at rest whose cloud was asked what it can do hours ago
    let mut world = World::new(&json!({}));
    assert_eq!(world.serve().await, Progress::Done);
    world.pass(Duration::from_hours(3));
    // when the question fails from now on, then everything goes on with the old answer
    world.strike(json!({"match": {"kind": "extensions"}, "action": {"status": {"status": 500}}}));
    world.clear_log();
    for _ in 0..100 {
        assert_eq!(world.visit().await, Progress::Done);
        world.pass(Duration::from_millis(300));
    }
    let asked = world.log().iter().filter(|it| it.as_str() == "extensions list").count();
    assert!((1..=3).contains(&asked), "one question with its repetitions in half a minute, not {asked}");
}
