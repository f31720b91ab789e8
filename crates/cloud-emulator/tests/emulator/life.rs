//! The lives of things: create, read, tag, update, delete, by the facts page.

use crate::support::{self, World, request, seconds};
use cloud_emulator::kit::{EmulatedCloud, Phase, Settings};
use serde_json::{Value, json};

#[test]
fn whoami_names_account_region_and_principal() {
    let mut world = World::calm();
    let reply = world.get("/v1/whoami");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.body, json!({"account": "acct-1", "region": "here-1", "principal": "alice"}));
}

#[test]
fn every_reply_carries_a_date_in_whole_seconds_and_a_request_id() {
    let mut world = World::calm();
    world.now += std::time::Duration::from_millis(1_999);
    let (good, bad) = (world.get("/v1/networks"), world.get("/v1/nothing"));
    for reply in [&good, &bad] {
        assert_eq!(reply.headers["date"], "Thu, 01 Jan 2026 00:00:01 GMT");
        assert_eq!(reply.headers["content-type"], "application/json");
    }
    assert_ne!(good.headers["x-request-id"], bad.headers["x-request-id"]);
}

#[test]
fn a_created_thing_has_the_fields_of_the_facts_page() {
    let mut world = World::calm();
    let body = json!({"name": "n", "cidr": "10.0.0.0/8", "tags": {"owner-name": "a b"}});
    let reply = world.post("/v1/networks", &body);
    assert_eq!(reply.status, 201);
    let id = reply.id();
    let digits = id.strip_prefix("network-").expect("the singular stands first");
    assert!(digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)), "{id}");
    let expected = json!({
        "id": id, "kind": "network", "created_at": "2026-01-01T00:00:00.000Z", "created_by": "alice", "state": "ready",
        "state_reason": null, "tags": {"owner-name": "a b"}, "name": "n", "cidr": "10.0.0.0/8"
    });
    assert_eq!(reply.body, expected);
    assert_eq!(world.get(&format!("/v1/networks/{id}")).body, expected);
    assert_eq!(world.list("networks"), vec![expected]);
}

#[test]
fn each_kind_can_be_made_and_names_need_not_be_unique() {
    let mut world = World::calm();
    let (network, disk) = (world.network(), world.disk());
    assert_ne!(network, world.network());
    assert_ne!(disk, world.disk());
    let address = world.post("/v1/addresses", &json!({"network_id": network, "label": "a"}));
    assert_eq!((address.status, &address.body["tags"]), (201, &json!({})));
    let route = world.post("/v1/routes", &json!({"network_id": network, "destination": "d", "next_hop": "h"}));
    assert_eq!((route.status, route.body.get("tags")), (201, None));
    let machine = json!({"name": "m", "network_id": network, "disk_id": disk, "flavor": "small"});
    assert_eq!(world.post("/v1/machines", &machine).status, 201);
    for disk in [json!({}), json!({"disk_id": null})] {
        let mut machine = json!({"name": "m", "network_id": network, "flavor": "small"});
        machine.as_object_mut().unwrap().extend(disk.as_object().unwrap().clone());
        let reply = world.post("/v1/machines", &machine);
        assert_eq!((reply.status, &reply.body["disk_id"]), (201, &Value::Null));
    }
}

#[test]
fn a_machine_is_building_then_ready_or_failed_with_a_reason() {
    let mut world = World::new(Settings { build: [("machines".to_owned(), seconds(5))].into(), ..Settings::default() });
    let network = world.network();
    let order = json!({"name": "m", "network_id": network, "flavor": "small"});
    let good = world.post("/v1/machines", &order);
    world.cloud.fail_next_build("machines", "no capacity", 1).unwrap();
    let bad = world.post("/v1/machines", &order);
    for reply in [&good, &bad] {
        assert_eq!((&reply.body["state"], &reply.body["state_reason"]), (&json!("building"), &Value::Null));
    }
    world.pass(5);
    let good = world.get(&format!("/v1/machines/{}", good.id()));
    assert_eq!((&good.body["state"], &good.body["state_reason"]), (&json!("ready"), &Value::Null));
    let bad = world.get(&format!("/v1/machines/{}", bad.id()));
    assert_eq!((&bad.body["state"], &bad.body["state_reason"]), (&json!("failed"), &json!("no capacity")));
    assert!(world.cloud.fail_next_build("disks", "they never build", 1).is_err());
}

#[test]
fn tags_are_set_and_removed_without_touching_others() {
    let mut world = World::calm();
    let body = json!({"name": "d", "size_gb": 1, "tags": {"keep": "1", "drop": "2"}});
    let id = world.post("/v1/disks", &body).id();
    let path = format!("/v1/disks/{id}/tags");
    let reply = world.put(&path, &json!({"set": {"new": "3"}, "remove": ["drop", "never-there"]}));
    assert_eq!((reply.status, &reply.body["tags"]), (200, &json!({"keep": "1", "new": "3"})));
    let reply = world.put(&path, &json!({}));
    assert_eq!((reply.status, &reply.body["tags"]), (200, &json!({"keep": "1", "new": "3"})));
}

#[test]
fn a_machines_flavor_is_the_one_mutable_attribute() {
    let mut world = World::calm();
    let network = world.network();
    let id = world.post("/v1/machines", &json!({"name": "m", "network_id": network, "flavor": "small"})).id();
    let reply = world.call("PATCH", &format!("/v1/machines/{id}"), Some(&json!({"flavor": "big"})));
    assert_eq!((reply.status, &reply.body["flavor"]), (200, &json!("big")));
    let reply = world.call("PATCH", &format!("/v1/machines/{id}"), Some(&json!({"name": "other"})));
    assert_eq!(reply.code(), (400, "InvalidRequest"));
    let reply = world.call("PATCH", &format!("/v1/networks/{network}"), Some(&json!({"flavor": "big"})));
    assert_eq!(reply.code(), (400, "InvalidRequest"));
}

#[test]
fn a_deleted_thing_is_deleting_and_then_gone() {
    let mut world = World::new(Settings { deletion: [("disks".to_owned(), seconds(3))].into(), ..Settings::default() });
    let path = format!("/v1/disks/{}", world.disk());
    for _ in 0..2 {
        let reply = world.delete(&path);
        assert_eq!((reply.status, &reply.body["state"]), (202, &json!("deleting")));
    }
    assert_eq!(world.get(&path).body["state"], "deleting");
    assert_eq!(world.cloud.truth(world.now)[0].phase, Phase::Deleting);
    world.pass(3);
    assert_eq!(world.get(&path).code(), (404, "NotFound"));
    assert_eq!(world.delete(&path).code(), (404, "NotFound"));
    assert!(world.list("disks").is_empty());
    let truth = &world.cloud.truth(world.now)[0];
    assert_eq!((truth.phase, truth.exists()), (Phase::Gone, false));
    assert_eq!(truth.deletion.as_ref().and_then(|end| end.by.as_deref()), Some("alice"));
}

#[test]
fn what_others_need_is_in_use_until_they_are_gone() {
    let mut world =
        World::new(Settings { deletion: [("machines".to_owned(), seconds(3))].into(), ..Settings::default() });
    let (network, disk) = (world.network(), world.disk());
    let machine = json!({"name": "m", "network_id": network, "disk_id": disk, "flavor": "small"});
    let machine_id = world.post("/v1/machines", &machine).id();
    let address = world.post("/v1/addresses", &json!({"network_id": network, "label": "a"})).id();
    let route = world.post("/v1/routes", &json!({"network_id": network, "destination": "d", "next_hop": "h"})).id();
    let reply = world.post("/v1/machines", &machine);
    assert_eq!(reply.code(), (409, "InUse"), "a disk serves one machine");
    assert_eq!(world.delete(&format!("/v1/disks/{disk}")).code(), (409, "InUse"));
    world.delete(&format!("/v1/machines/{machine_id}"));
    assert_eq!(world.delete(&format!("/v1/disks/{disk}")).code(), (409, "InUse"), "still deleting");
    world.pass(3);
    assert_eq!(world.delete(&format!("/v1/disks/{disk}")).status, 202);
    for user in [format!("/v1/addresses/{address}"), format!("/v1/routes/{route}")] {
        assert_eq!(world.delete(&format!("/v1/networks/{network}")).code(), (409, "InUse"));
        assert_eq!(world.delete(&user).status, 202);
    }
    assert_eq!(world.delete(&format!("/v1/networks/{network}")).status, 202);
}

#[test]
fn natural_keys_are_unique_while_their_holder_exists() {
    let mut world = World::calm();
    let (network, other) = (world.network(), world.network());
    for (plural, body) in [
        ("addresses", json!({"network_id": network, "label": "a"})),
        ("routes", json!({"network_id": network, "destination": "a", "next_hop": "h"})),
    ] {
        let path = format!("/v1/{plural}");
        let id = world.post(&path, &body).id();
        assert_eq!(world.post(&path, &body).code(), (409, "KeyTaken"));
        let mut elsewhere = body.clone();
        elsewhere["network_id"] = json!(other);
        assert_eq!(world.post(&path, &elsewhere).status, 201);
        world.delete(&format!("{path}/{id}"));
        assert_eq!(world.post(&path, &body).status, 201);
    }
}

#[test]
fn what_a_create_names_must_be_there() {
    let mut world =
        World::new(Settings { deletion: [("networks".to_owned(), seconds(3))].into(), ..Settings::default() });
    let network = world.network();
    let reply = world.post("/v1/addresses", &json!({"network_id": "network-00000000", "label": "a"}));
    assert_eq!(reply.code(), (404, "NotFound"));
    assert!(reply.message().contains("network_id"), "{}", reply.message());
    let order = json!({"name": "m", "network_id": network, "disk_id": "disk-00000000", "flavor": "small"});
    assert_eq!(world.post("/v1/machines", &order).code(), (404, "NotFound"));
    world.delete(&format!("/v1/networks/{network}"));
    let reply = world.post("/v1/addresses", &json!({"network_id": network, "label": "a"}));
    assert_eq!(reply.code(), (404, "NotFound"), "it is on its way out");
}

#[test]
fn accounts_do_not_see_each_other() {
    let mut world = World::calm();
    let network = world.network();
    world.cloud.kit_mut().principals.admit("bob", "secret-2", "acct-2");
    let mut ask = |method: &str, path: &str| {
        let handled = world.send(request(method, path, &[("authorization", "Bearer secret-2")], None));
        support::delivered(handled)
    };
    assert_eq!(ask("GET", "/v1/whoami").body["account"], "acct-2");
    assert_eq!(ask("GET", &format!("/v1/networks/{network}")).status, 404);
    assert_eq!(ask("DELETE", &format!("/v1/networks/{network}")).status, 404);
    assert_eq!(ask("GET", "/v1/networks").body["items"], json!([]));
}
