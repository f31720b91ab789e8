//! One owner from its first visit to its last: plan, client and engine on the emulator, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

mod support;

use cloud_emulator::kit::Plant;
use cloud_emulator::kit::calls::CallFilter;
use common::engine::report::Progress;
use common::names::{self, reason};
use common::peer::{Guard, Peer};
use sample_controller::api::{AddressSpec, Adopt, DiskSpec, MachineSpec, NetworkSpec, RouteSpec, SampleOwnerSpec};
use sample_controller::names::CONTROLLER;
use serde_json::json;
use std::time::Duration;
use support::World;

fn spec() -> SampleOwnerSpec {
    let text = |text: &str| text.to_owned();
    SampleOwnerSpec {
        control_plane_endpoint: None,
        networks: vec![NetworkSpec { name: text("main"), cidr: Some(text("10.0.0.0/16")), ..NetworkSpec::default() }],
        disks: vec![DiskSpec { name: text("data"), size_gb: Some(10), ..DiskSpec::default() }],
        addresses: vec![AddressSpec { name: text("vip"), network: text("main"), label: text("api"), adopt: None }],
        routes: vec![RouteSpec {
            name: text("out"),
            network: text("main"),
            destination: text("0.0.0.0/0"),
            next_hop: text("10.0.0.1"),
        }],
        machines: vec![MachineSpec {
            name: text("web"),
            network: text("main"),
            disk: Some(text("data")),
            flavor: text("small"),
        }],
    }
}

#[tokio::test]
async fn an_owner_gets_what_it_asks_for_once_and_takes_it_with_it() {
    let mut world = World::new(spec());
    // when it is served until it is done
    assert_eq!(world.serve().await, Progress::Done);
    // then each thing is there once, and status says so
    assert_eq!(world.living().len(), 5);
    assert_eq!(world.status()["summary"], "5/5");
    assert_eq!(world.status()["initialization"]["provisioned"], true);
    assert_eq!(world.condition("Ready"), Some("True".to_owned()));
    // and when it is deleted, everything goes, and it goes
    world.delete();
    assert_eq!(world.serve().await, Progress::Gone);
    assert_eq!(world.living(), Vec::<String>::new());
    assert!(world.is_gone());
}

#[tokio::test]
async fn a_converged_owner_costs_no_call_of_its_own() {
    let mut world = World::new(spec());
    world.serve().await;
    world.settle();
    world.visit().await;
    let before = world.calls(&CallFilter::default());
    for _ in 0..20 {
        assert_eq!(world.visit().await, Progress::Done);
    }
    assert_eq!(world.calls(&CallFilter::default()), before, "the shared lists are new enough");
    world.pass(Duration::from_mins(1));
    world.visit().await;
    let lists = CallFilter { verb: Some("list".into()), ..CallFilter::default() };
    let (all, listed) = (world.calls(&CallFilter::default()) - before, world.calls(&lists));
    assert_eq!(all, 5, "one list per kind");
    assert!(listed >= 5);
}

#[tokio::test]
async fn a_new_flavor_is_patched_and_nothing_else_is_touched() {
    let mut world = World::new(spec());
    world.serve().await;
    let before = world.living();
    world.edit(|spec| spec.machines[0].flavor = "large".into());
    let writes = CallFilter { mutating: Some(true), ..CallFilter::default() };
    let written = world.calls(&writes);
    assert_eq!(world.serve().await, Progress::Done);
    assert_eq!(world.living(), before);
    assert_eq!(world.field("machine", "flavor"), json!("large"));
    assert_eq!(world.calls(&writes) - written, 1);
}

#[tokio::test]
async fn what_was_adjusted_is_looked_at_anew_however_long_shared_listings_last() {
    // given listings that are shared for longer than anybody waits
    let mut world = World::with(spec(), Guard::NONE, Duration::from_hours(1));
    world.serve().await;
    world.settle();
    world.edit(|spec| spec.machines[0].flavor = "large".into());
    // when a machine is adjusted, then the next poll sees it, and no more lists are asked than for that
    let lists = CallFilter { verb: Some("list".into()), ..CallFilter::default() };
    let before = world.calls(&lists);
    assert!(matches!(world.visit().await, Progress::Waiting { .. }));
    world.pass(Duration::from_secs(10));
    assert_eq!(world.visit().await, Progress::Done);
    assert_eq!(world.field("machine", "flavor"), json!("large"));
    assert_eq!(world.calls(&lists) - before, 10, "one list per kind before the change, and one after it");
}

#[tokio::test]
async fn a_failed_machine_is_replaced() {
    let mut world = World::new(spec());
    world.fail_next_build("machine");
    assert_eq!(world.serve().await, Progress::Done);
    assert_eq!(world.living().len(), 5);
    assert_eq!(world.count_made("machine"), 2);
}

#[tokio::test]
async fn a_strangers_route_on_our_destination_is_refused_and_stays() {
    // given a network that is used, with a stranger's route to where ours would lead
    let mut world = World::new(SampleOwnerSpec::default());
    let network = world.plant(Plant::new("network", fields(&json!({"name": "shared", "cidr": "10.0.0.0/8"}))));
    let route = json!({"network_id": network, "destination": "0.0.0.0/0", "next_hop": "10.9.9.9"});
    let route = world.plant(Plant::new("route", fields(&route)));
    world.edit(|owner| {
        *owner = SampleOwnerSpec { networks: vec![], disks: vec![], addresses: vec![], machines: vec![], ..spec() };
        owner.networks =
            vec![NetworkSpec { name: "main".into(), use_id: Some(network.clone()), ..NetworkSpec::default() }];
    });
    // when
    let end = world.serve().await;
    // then
    assert!(matches!(end, Progress::Blocked { reason: reason::EXISTS_UNOWNED, .. }), "{end:?}");
    world.delete();
    assert_eq!(world.serve().await, Progress::Gone);
    assert_eq!(world.living(), [network, route]);
}

#[tokio::test]
async fn an_adopted_disk_is_released_at_the_end() {
    let mut world = World::new(SampleOwnerSpec::default());
    let plant = Plant::new("disk", fields(&json!({"name": "theirs", "size_gb": 7})));
    let disk = world.plant(plant.tagged([("owner-name", "somebody"), ("team", "blue")]));
    world.edit(|owner| {
        let adopt = Some(Adopt::Release);
        owner.disks = vec![DiskSpec {
            name: "d".into(),
            size_gb: Some(7),
            cloud_name: Some("theirs".into()),
            adopt,
            use_id: None,
        }];
    });
    assert_eq!(world.serve().await, Progress::Done);
    assert_eq!(world.tag(&disk, "custody.dev/adopted").as_deref(), Some("release"));
    assert_eq!(world.tag(&disk, "owner-name").as_deref(), Some("somebody"), "what people wrote stays");
    world.delete();
    assert_eq!(world.serve().await, Progress::Gone);
    assert_eq!(world.living(), std::slice::from_ref(&disk));
    assert_eq!((world.tag(&disk, "custody.dev/owner"), world.tag(&disk, "team")), (None, Some("blue".into())));
}

#[tokio::test]
async fn an_owner_that_cannot_be_served_says_why_and_can_still_be_deleted() {
    let mut world = World::new(spec());
    world.serve().await;
    world.edit(|spec| spec.addresses[0].network = "nowhere".into());
    let end = world.serve().await;
    assert!(matches!(end, Progress::Blocked { reason: reason::INVALID_OBJECT, .. }), "{end:?}");
    assert_eq!(world.living().len(), 5, "nothing is taken down for a mistake");
    world.delete();
    assert_eq!(world.serve().await, Progress::Gone);
    assert_eq!(world.living(), Vec::<String>::new());
}

#[tokio::test]
async fn a_paused_owner_is_looked_at_and_left_alone() {
    let mut world = World::new(spec());
    world.annotate(names::PAUSED, "true");
    let end = world.serve().await;
    assert!(!matches!(end, Progress::Done), "{end:?}");
    assert_eq!(world.calls(&CallFilter { mutating: Some(true), ..CallFilter::default() }), 0);
    assert_eq!(world.condition("Paused"), Some("True".to_owned()));
}

/// Owner id and status are lost, and a process that remembers nothing comes.
fn lose_the_owner_id(world: &mut World) {
    world.touch(|stored| {
        stored.view.annotations.remove(&names::owner_id(CONTROLLER));
        stored.view.conditions.clear();
        stored.status = json!({});
    });
    world.restart();
}

#[tokio::test]
async fn a_lost_owner_id_does_not_take_along_what_only_the_ledger_knows() {
    // given a route, which never carries a mark, on somebody else's network
    let mut world = World::new(SampleOwnerSpec::default());
    let network = world.plant(Plant::new("network", fields(&json!({"name": "shared", "cidr": "10.0.0.0/8"}))));
    world.edit(|owner| {
        *owner = SampleOwnerSpec { disks: vec![], addresses: vec![], machines: vec![], ..spec() };
        owner.networks =
            vec![NetworkSpec { name: "main".into(), use_id: Some(network.clone()), ..NetworkSpec::default() }];
    });
    assert_eq!(world.serve().await, Progress::Done);
    let before = world.living();
    assert_eq!(before.len(), 2);
    // when
    lose_the_owner_id(&mut world);
    // then the route is still ours, and goes with its owner
    assert_eq!(world.serve().await, Progress::Done);
    assert_eq!(world.living(), before);
    world.delete();
    assert_eq!(world.serve().await, Progress::Gone);
    assert_eq!(world.living(), [network]);
}

#[tokio::test]
async fn a_lost_owner_id_is_not_drawn_anew_for_another_account() {
    let mut world = World::new(spec());
    assert_eq!(world.serve().await, Progress::Done);
    let before = world.living();
    // when the credentials see another account, in which nothing carries our mark
    lose_the_owner_id(&mut world);
    world.use_account("acct-2");
    let end = world.serve().await;
    // then the ledger knows better
    assert!(matches!(end, Progress::Blocked { reason: reason::IDENTITY_MISMATCH, .. }), "{end:?}");
    assert_eq!(world.living(), before);
}

#[tokio::test]
async fn an_owner_that_is_deleted_under_a_peers_finalizer_says_that_it_is_too_late() {
    const PEERS: &[Peer] = &[Peer { name: "capx", finalizers: &["x.cluster.x-k8s.io"] }];
    let guard = Guard { peers: PEERS, adopt: Some("capx"), ..Guard::NONE };
    let mut world = World::with(spec(), guard, Duration::from_secs(10));
    // given a peer that was stopped while it deleted
    world.touch(|stored| stored.view.finalizers = vec!["x.cluster.x-k8s.io".into()]);
    world.delete();
    // when
    let end = world.serve().await;
    // then
    let message = match end {
        Progress::Blocked { reason: reason::PEER_CONTROLLER, message } => message,
        other => panic!("{other:?}"),
    };
    assert!(message.contains("x.cluster.x-k8s.io") && message.contains("too late"), "{message}");
    assert_eq!(world.condition("Stalled"), Some("True".to_owned()));
}

#[tokio::test]
async fn a_new_start_names_what_the_former_owner_id_leaves_behind() {
    let mut world = World::new(spec());
    assert_eq!(world.serve().await, Progress::Done);
    let before = world.living();
    // given a copy of the owner under another name
    world.touch(|stored| stored.view.name = "copy".into());
    world.restart();
    let end = world.serve().await;
    assert!(matches!(end, Progress::Blocked { reason: reason::TAKEOVER_REQUIRED, .. }), "{end:?}");
    // when it shall start with nothing
    world.annotate(names::TAKE_OVER, "none");
    // then everything of the original is named, the route without a mark, too
    let kept: Vec<String> =
        world.notes().await.into_iter().filter(|it| it.reason == "Kept").map(|it| it.message).collect();
    for id in &before {
        assert_eq!(kept.iter().filter(|message| message.contains(id)).count(), 1, "{id} in {kept:?}");
    }
}

#[tokio::test]
async fn an_owner_id_written_over_ours_is_never_served_however_often_it_is_looked_at() {
    let mut world = World::new(spec());
    assert_eq!(world.serve().await, Progress::Done);
    let owner_id = names::owner_id(CONTROLLER);
    let (before, ours) = (world.living(), world.annotation(&owner_id).unwrap());
    // when somebody writes another owner id, and deletes the owner
    world.annotate(&owner_id, &"0".repeat(ours.len()));
    for deleted in [false, false, true, true] {
        if deleted && !world.is_deleting() {
            world.delete();
        }
        world.settle();
        let end = world.serve().await;
        assert!(matches!(end, Progress::Blocked { reason: reason::OWNER_ID_INVALID, .. }), "{end:?}");
        assert_eq!(world.living(), before);
    }
    // then putting back what status knows is enough
    world.annotate(&owner_id, &ours);
    assert_eq!(world.serve().await, Progress::Gone);
    assert_eq!(world.living(), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_that_sees_another_account_is_refused_before_anything_is_believed() {
    let mut world = World::new(spec());
    world.serve().await;
    world.use_account("acct-2");
    let end = world.visit().await;
    assert!(matches!(end, Progress::Blocked { reason: reason::IDENTITY_MISMATCH, .. }), "{end:?}");
    assert_eq!(world.living().len(), 5);
}

fn fields(value: &serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    value.as_object().cloned().unwrap()
}
