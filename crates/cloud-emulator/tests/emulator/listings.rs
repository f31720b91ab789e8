//! Listings: pages, and what they show too late.
use crate::support::{World, seconds};
use cloud_emulator::kit::{EmulatedCloud, GhostLook, Lag, Lags, Paging, Settings};
use serde_json::json;
use std::collections::BTreeSet;

fn lagging(lag: Lags) -> World {
    World::new(Settings { lag, ..Settings::default() })
}

#[test]
fn a_page_holds_what_was_asked_for_and_names_the_next() {
    let mut world = World::calm();
    let made: BTreeSet<String> = (0..120).map(|_| world.disk()).collect();
    let first = world.get("/v1/disks");
    assert_eq!(first.body["items"].as_array().unwrap().len(), 50, "the default");
    let next = first.body["next"].as_str().expect("more").to_owned();
    let second = world.get(&format!("/v1/disks?limit=100&page={next}"));
    assert_eq!(second.body["items"].as_array().unwrap().len(), 70);
    assert!(second.body["next"].is_null());
    assert_eq!(world.listed("disks").into_iter().collect::<BTreeSet<_>>(), made);
    assert_eq!(
        world.get(&format!("/v1/networks?page={next}")).code(),
        (400, "InvalidRequest"),
        "another listing's token"
    );
}

#[test]
fn the_server_may_put_less_on_a_page_than_asked() {
    let mut world = World::new(Settings { paging: Paging { max: 3, ragged: false }, ..Settings::default() });
    (0..7).for_each(|_| drop(world.disk()));
    assert_eq!(world.get("/v1/disks?limit=100").body["items"].as_array().unwrap().len(), 3);
    assert_eq!(world.listed("disks").len(), 7);
}

#[test]
fn ragged_pages_lose_nothing_and_end() {
    let mut world = World::new(Settings { paging: Paging { max: 3, ragged: true }, ..Settings::default() });
    let made: BTreeSet<String> = (0..40).map(|_| world.disk()).collect();
    let before = world.cloud.kit().calls.latest();
    let listed = world.listed("disks");
    assert_eq!(listed.len(), 40, "nothing twice");
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), made);
    assert!(world.cloud.kit().calls.latest() - before > 14, "some pages were shorter than three");
}

#[test]
fn what_is_there_during_a_whole_listing_is_shown_once_whatever_comes_and_goes() {
    let mut world = World::calm();
    let stays: Vec<String> = (0..30).map(|_| world.disk()).collect();
    let mut goes: Vec<String> = (0..10).map(|_| world.disk()).collect();
    let mut seen = Vec::new();
    let mut page = String::new();
    loop {
        let reply = world.get(&format!("/v1/disks?limit=4{page}"));
        seen.extend(reply.body["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(next) = reply.body["next"].as_str() else { break };
        page = format!("&page={next}");
        world.disk();
        if let Some(id) = goes.pop() {
            world.delete(&format!("/v1/disks/{id}"));
        }
    }
    for id in stays {
        assert_eq!(seen.iter().filter(|seen| **seen == id).count(), 1, "{id}");
    }
}

#[test]
fn a_new_thing_shows_up_late_in_listings_and_a_little_late_by_id() {
    let mut world = lagging(Lags { list: seconds(10), get: seconds(2), ..Lags::default() });
    let id = world.disk();
    let path = format!("/v1/disks/{id}");
    assert_eq!(world.get(&path).code(), (404, "NotFound"));
    assert!(world.listed("disks").is_empty());
    world.pass(2);
    assert_eq!(world.get(&path).status, 200);
    world.pass(7);
    assert!(world.listed("disks").is_empty());
    world.pass(1);
    assert_eq!(world.listed("disks"), [id]);
}

#[test]
fn writes_find_a_thing_that_no_read_shows_yet() {
    let mut world = lagging(Lags { list: seconds(10), get: seconds(10), ..Lags::default() });
    let network = world.network();
    let order = json!({"network_id": network, "label": "a"});
    let address = world.post("/v1/addresses", &order).id();
    assert_eq!(world.post("/v1/addresses", &order).code(), (409, "KeyTaken"));
    assert_eq!(world.put(&format!("/v1/addresses/{address}/tags"), &json!({"set": {"k": "v"}})).status, 200);
    assert_eq!(world.delete(&format!("/v1/addresses/{address}")).status, 202);
}

#[test]
fn tags_show_up_late_in_listings_but_not_by_id() {
    let mut world = lagging(Lags { tags: seconds(10), ..Lags::default() });
    let id = world.post("/v1/disks", &json!({"name": "d", "size_gb": 1, "tags": {"k": "1"}})).id();
    assert_eq!(world.list("disks")[0]["tags"], json!({}));
    assert_eq!(world.get(&format!("/v1/disks/{id}")).body["tags"], json!({"k": "1"}));
    world.pass(10);
    assert_eq!(world.list("disks")[0]["tags"], json!({"k": "1"}));
    world.put(&format!("/v1/disks/{id}/tags"), &json!({"set": {"k": "2"}}));
    assert_eq!(world.list("disks")[0]["tags"], json!({"k": "1"}));
    assert_eq!(world.cloud.truth(world.now)[0].tags, Some([("k".to_owned(), "2".to_owned())].into()));
    world.pass(10);
    assert_eq!(world.list("disks")[0]["tags"], json!({"k": "2"}));
}

#[test]
fn a_thing_that_is_gone_haunts_listings_as_deleting_or_as_alive() {
    for (ghosts, state) in [(GhostLook::Deleting, "deleting"), (GhostLook::Alive, "ready")] {
        let mut world = lagging(Lags { ghost: seconds(10), ghosts, ..Lags::default() });
        let id = world.disk();
        world.delete(&format!("/v1/disks/{id}"));
        assert_eq!(world.get(&format!("/v1/disks/{id}")).code(), (404, "NotFound"), "by id it is gone");
        world.pass(9);
        assert_eq!(world.list("disks")[0]["state"], state);
        world.pass(1);
        assert!(world.list("disks").is_empty());
    }
}

#[test]
fn a_drawn_lag_stays_below_its_most_and_differs_from_thing_to_thing() {
    let mut world = lagging(Lags { list: Lag::UpToMs(60_000), ..Lags::default() });
    (0..20).for_each(|_| drop(world.disk()));
    let mut counts = BTreeSet::new();
    for _ in 0..6 {
        counts.insert(world.listed("disks").len());
        world.pass(10);
    }
    assert!(counts.len() > 3, "they do not come all at once: {counts:?}");
    assert_eq!(world.listed("disks").len(), 20);
}
