//! `Idempotency-Key`: one key, one thing.
use crate::support::{World, seconds};
use cloud_emulator::kit::{EmulatedCloud, Settings};
use serde_json::json;

#[test]
fn the_same_key_and_body_give_the_same_thing_as_it_is_now() {
    let mut world =
        World::new(Settings { deletion: [("networks".to_owned(), seconds(5))].into(), ..Settings::default() });
    let order = json!({"name": "n", "cidr": "c", "tags": {"a": "1"}});
    let first = world.keyed("POST", "/v1/networks", "key-1", &order);
    assert_eq!(first.status, 201);
    let path = format!("/v1/networks/{}", first.id());
    world.put(&format!("{path}/tags"), &json!({"set": {"b": "2"}}));

    let again = world.keyed("POST", "/v1/networks", "key-1", &json!({"cidr": "c", "tags": {"a": "1"}, "name": "n"}));
    assert_eq!((again.status, again.id()), (200, first.id()), "the order of fields is no difference");
    assert_eq!(again.body["tags"], json!({"a": "1", "b": "2"}));

    world.delete(&path);
    let again = world.keyed("POST", "/v1/networks", "key-1", &order);
    assert_eq!((again.status, &again.body["state"]), (200, &json!("deleting")));
    world.pass(5);
    assert_eq!(world.keyed("POST", "/v1/networks", "key-1", &order).code(), (404, "NotFound"), "gone since");
    assert_eq!(world.cloud.truth(world.now).len(), 1);
}

#[test]
fn another_body_under_a_used_key_is_a_mismatch() {
    let mut world = World::calm();
    world.keyed("POST", "/v1/networks", "key-1", &json!({"name": "n", "cidr": "c", "tags": {"a": "1"}}));
    for other in [json!({"name": "n", "cidr": "c"}), json!({"name": "m", "cidr": "c", "tags": {"a": "1"}})] {
        assert_eq!(world.keyed("POST", "/v1/networks", "key-1", &other).code(), (409, "TokenMismatch"));
    }
    assert_eq!(world.cloud.truth(world.now).len(), 1);
}

#[test]
fn a_refused_create_leaves_its_key_unused() {
    let mut world = World::calm();
    let order = |network: &str| json!({"name": "m", "network_id": network, "flavor": "f"});
    let reply = world.keyed("POST", "/v1/machines", "key-1", &order("network-00000000"));
    assert_eq!(reply.code(), (404, "NotFound"));
    let network = world.network();
    assert_eq!(world.keyed("POST", "/v1/machines", "key-1", &order(&network)).status, 201);
}

#[test]
fn keys_belong_to_a_kind() {
    let mut world = World::calm();
    let network = world.keyed("POST", "/v1/networks", "key-1", &json!({"name": "n", "cidr": "c"}));
    let order = json!({"name": "m", "network_id": network.id(), "flavor": "f"});
    assert_eq!(world.keyed("POST", "/v1/machines", "key-1", &order).status, 201);
}

#[test]
fn a_key_is_forgotten_24_hours_after_the_create() {
    let mut world = World::calm();
    let order = json!({"name": "n", "cidr": "c"});
    let first = world.keyed("POST", "/v1/networks", "key-1", &order).id();
    world.pass(24 * 3600 - 1);
    assert_eq!(world.keyed("POST", "/v1/networks", "key-1", &order).id(), first);
    world.pass(1);
    let reply = world.keyed("POST", "/v1/networks", "key-1", &order);
    assert_eq!(reply.status, 201);
    assert_ne!(reply.id(), first);
    let other = json!({"name": "other", "cidr": "c"});
    assert_eq!(world.keyed("POST", "/v1/networks", "key-1", &other).code(), (409, "TokenMismatch"), "used anew");
}

#[test]
fn a_key_has_a_shape_and_not_every_kind_takes_one() {
    let mut world = World::calm();
    let order = json!({"name": "n", "cidr": "c"});
    for wrong in ["", "a_b", "a b", &"k".repeat(65)] {
        assert_eq!(world.keyed("POST", "/v1/networks", wrong, &order).code(), (400, "InvalidRequest"), "{wrong:?}");
    }
    assert_eq!(world.keyed("POST", "/v1/networks", &"K".repeat(64), &order).status, 201);
    let disk = json!({"name": "d", "size_gb": 1});
    assert_eq!(world.keyed("POST", "/v1/disks", "key-1", &disk).code(), (400, "InvalidRequest"));
}
