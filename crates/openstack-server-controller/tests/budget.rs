//! What a thousand servers at rest cost: the shared lists, and nothing of their own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails
mod support;

use cloud_emulator::kit::{CallFilter, Truth};
use common::engine::owner::OwnerView;
use common::engine::report::Progress;
use common::identity::Place;
use common::names;
use common::testing::one_owner::{OneOwner, Stored};
use openstack_server_controller::names::{CONTROLLER, KIND};
use serde_json::{Value, json};
use std::time::Duration;
use support::World;

/// Another owner like one that is done, under its own name, owner id and marks, with things of its own.
fn like(world: &World, (template, things): (&Stored, &[Truth]), n: usize) -> OneOwner {
    let name = format!("srv-{n}");
    let place = |name: &str| Place::of("here", CONTROLLER, KIND, "ns", name).to_string();
    let id = template.view.annotations[&names::owner_id(CONTROLLER)].clone();
    let own = format!("{n:08x}{}", &id[8..]);
    let mut changes = vec![(place("tpl"), place(&name)), (id, own), ("tpl".to_owned(), name.clone())];
    let written = |text: &str, changes: &[(String, String)]| {
        changes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let mut plugged = Vec::new();
    for thing in things {
        let fields = serde_json::to_string(&thing.fields).unwrap();
        let mut fields: Value = serde_json::from_str(&written(&fields, &changes)).unwrap();
        if thing.kind == "server" {
            fields["plugged"] = json!(plugged);
        }
        let made = world.plant(thing.kind, fields);
        plugged.push(made.clone());
        changes.push((thing.id.clone(), made));
    }
    changes.push(("uid-1".to_owned(), format!("uid-{n}")));
    let owner = OneOwner::new(&name);
    owner.touch(|stored| {
        stored.view = OwnerView { name, uid: written("uid-1", &changes), ..template.view.clone() };
        stored.view.annotations.values_mut().for_each(|it| *it = written(it, &changes));
        stored.view.conditions.iter_mut().for_each(|it| it.message = written(&it.message, &changes));
        stored.status = serde_json::from_str(&written(&template.status.to_string(), &changes)).unwrap();
    });
    owner
}

#[tokio::test]
async fn a_thousand_servers_at_rest_share_a_handful_of_lists() {
    // given a thousand servers with ports and volumes of their own, and one more: more than a page of each
    let world = World::new(&json!({"rootVolume": {"sizeGiB": 1}, "serverMetadata": [{"key": "team", "value": "x"}]}));
    let template = OneOwner::new("tpl");
    while world.visit_of(&template).await != Progress::Done {
        world.pass(Duration::from_secs(5));
    }
    let template = template.stored();
    let things: Vec<Truth> = ["port", "volume", "server"].iter().flat_map(|kind| world.living(kind)).collect();
    let owners: Vec<OneOwner> = (0..1000).map(|n| like(&world, (&template, &things), n)).collect();
    world.settle();
    world.clear_log();
    // when each of them is visited in the ten minutes of a resync
    for owner in &owners {
        assert_eq!(world.visit_of(owner).await, Progress::Done, "{:?}", owner.stored().view.conditions);
        world.pass(Duration::from_millis(600));
    }
    // then the cloud was asked at most a dozen times, and nothing was done
    let calls = world.calls(&CallFilter::default());
    println!("SEEN: 1000 converged servers over 10 minutes: {calls} calls of the cloud");
    assert!(calls <= 12, "{:?}", world.log());
    assert_eq!(world.writes(), Vec::<String>::new());
    // and what differs by then is told, of that one alone
    let said = |n: usize| owners[n].stored().view.conditions.into_iter().find(|it| it.type_ == "Drifted");
    let server = owners[500].stored().status["instanceID"].as_str().unwrap().to_owned();
    world.drift(&server, "team", "y");
    world.pass(Duration::from_mins(10));
    for n in [499, 500, 501] {
        assert_eq!(said(n), None);
        assert_eq!(world.visit_of(&owners[n]).await, Progress::Done);
        assert_eq!(said(n).is_some_and(|it| it.status == "True"), n == 500);
    }
    // and each has its own: the end of one is the end of nobody else's
    owners[7].delete();
    for _ in 0..40 {
        world.visit_of(&owners[7]).await;
        world.pass(Duration::from_secs(10));
    }
    assert!(owners[7].stored().gone);
    assert_eq!(["server", "port", "volume"].map(|kind| world.living(kind).len()), [1000, 1000, 1000]);
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
