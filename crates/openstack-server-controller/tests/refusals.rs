//! What the cloud refuses: told in its own words, tried again, and held against the spec only where the spec is to blame.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails
mod support;

use common::engine::report::Progress;
use serde_json::json;
use std::time::Duration;
use support::World;

#[tokio::test]
async fn a_spec_that_is_refused_for_ten_minutes_is_failed_and_never_tried_again() {
    let mut world = World::new(&json!({}));
    world.strike(json!({"match": {"kind": "servers", "verb": "create"}, "action": {"status": {"status": 400}}}));
    let mut early = 0;
    for minute in 0..30 {
        world.visit().await;
        if world.condition("Failed").is_none() {
            early = minute;
        }
        world.pass(Duration::from_mins(1));
    }
    assert!(world.said("Failed").starts_with("True/InvalidSpec"), "{}", world.said("Failed"));
    assert!(early >= 9, "failed after {early} minutes");
    let tries = |world: &World| world.log().iter().filter(|it| it.as_str() == "servers create").count();
    let before = tries(&world);
    assert!(before >= 3, "{before} tries");
    world.clear_faults();
    world.pass(Duration::from_mins(5));
    world.visit().await;
    assert_eq!(tries(&world), before, "no more mutation except deletion");
    world.delete();
    world.serve().await;
    assert!(world.is_gone() && world.all_living().is_empty());
}

#[tokio::test]
async fn what_the_spec_did_not_cause_never_fails_a_server() {
    // reads that are refused, tags that are, and Keystone that takes a request for nonsense
    let trouble = [
        json!({"match": {"kind": "servers", "verb": "list"}, "action": {"status": {"status": 400}}}),
        json!({"match": {"kind": "images"}, "action": {"status": {"status": 400}}}),
        json!({"match": {"kind": "ports", "verb": "tag"}, "action": {"status": {"status": 400}}}),
        json!({"match": {"kind": "tokens"}, "action": {"status": {"status": 400}}}),
    ];
    for fault in trouble {
        let mut world = World::new(&json!({"tags": ["blue"]}));
        world.strike(fault.clone());
        for _ in 0..30 {
            world.visit().await;
            world.pass(Duration::from_mins(1));
        }
        assert_eq!(world.condition("Failed"), None, "{fault}");
        let said = world.said("InstanceReady");
        let told = ["OpenStackError", "OpenStackAuthenticationFailed"].iter().any(|it| said.contains(it));
        assert!(said.contains("on purpose") == told || said.starts_with("True"), "{fault}: {said}");
        // when it passes, then the server is made as if nothing had been
        world.clear_faults();
        world.settle();
        assert_eq!(world.serve().await, Progress::Done, "{fault}: {}", world.said("InstanceReady"));
    }
}

#[tokio::test]
async fn what_is_missing_or_taken_is_told_in_the_clouds_words_and_tried_again() {
    // given a network that is not there, by its id
    let nobody = "7e700000-0000-4000-8000-0000000000ff";
    let mut world = World::new(&json!({"ports": [{"network": {"id": nobody}}]}));
    for _ in 0..30 {
        world.visit().await;
        world.pass(Duration::from_mins(1));
    }
    let said = world.said("InstanceReady");
    assert!(said.starts_with("False/PortCreateFailed: NetworkNotFound") && said.contains("request "), "{said}");
    assert_eq!(world.condition("Failed"), None, "it can still come");
    // given an address that somebody has, then it is told, and tried until it is free
    let private = "7e700000-0000-4000-8000-000000000001";
    let fixed = json!([{"subnet_id": "5b700000-0000-4000-8000-000000000001", "ip_address": "10.0.9.9"}]);
    let port = json!({"network": {"id": private}, "fixedIPs": [{"ipAddress": "10.0.9.9"}]});
    let mut world = World::new(&json!({"ports": [port]}));
    let other = world.plant("port", json!({"name": "other", "network_id": private, "fixed_ips": fixed}));
    world.serve().await;
    let said = world.said("InstanceReady");
    assert!(said.starts_with("False/PortCreateFailed: IpAddressAlreadyAllocated"), "{said}");
    world.remove(&other);
    world.pass(Duration::from_mins(2));
    assert_eq!(world.serve().await, Progress::Done, "{}", world.said("InstanceReady"));
}

#[tokio::test]
async fn a_full_volume_quota_is_told_as_a_quota() {
    let mut world = World::new(&json!({"rootVolume": {"sizeGiB": 1}}));
    world.configure(|s| s.quotas = [("volumes".to_owned(), 0)].into());
    world.serve().await;
    let said = world.said("InstanceReady");
    assert!(said.starts_with("False/QuotaExceeded") && said.contains("VolumeLimitExceeded"), "{said}");
    assert!(said.contains("request "), "{said}");
    world.configure(|s| s.quotas.clear());
    world.pass(Duration::from_mins(2));
    assert_eq!(world.serve().await, Progress::Done);
}
