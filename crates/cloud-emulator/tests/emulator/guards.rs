//! Quotas, rate limits and denials.
use crate::support::{World, delivered, request};
use cloud_emulator::kit::{EmulatedCloud, RateLimit, Settings};
use serde_json::json;

fn limit(burst: u32, per_second: f64) -> RateLimit {
    RateLimit { principal: None, kind: None, verb: None, burst, per_second }
}

#[test]
fn a_quota_counts_what_exists() {
    let mut world = World::new(Settings { quotas: [("disks".to_owned(), 2)].into(), ..Settings::default() });
    let first = world.disk();
    world.disk();
    let order = json!({"name": "d", "size_gb": 1});
    assert_eq!(world.post("/v1/disks", &order).code(), (403, "QuotaExceeded"));
    world.network();
    world.delete(&format!("/v1/disks/{first}"));
    assert_eq!(world.post("/v1/disks", &order).status, 201);
}

#[test]
fn a_repeat_under_a_known_key_needs_no_quota() {
    let mut world = World::new(Settings { quotas: [("networks".to_owned(), 1)].into(), ..Settings::default() });
    let order = json!({"name": "n", "cidr": "c"});
    assert_eq!(world.keyed("POST", "/v1/networks", "key-1", &order).status, 201);
    assert_eq!(world.keyed("POST", "/v1/networks", "key-1", &order).status, 200);
    assert_eq!(world.keyed("POST", "/v1/networks", "key-2", &order).code(), (403, "QuotaExceeded"));
}

#[test]
fn a_rate_limit_says_when_to_come_again_and_means_it() {
    let mut world = World::new(Settings { limits: vec![limit(2, 0.4)], ..Settings::default() });
    assert_eq!(world.get("/v1/disks").status, 200);
    assert_eq!(world.get("/v1/disks").status, 200);
    let reply = world.get("/v1/disks");
    assert_eq!(reply.code(), (429, "TooManyRequests"));
    assert_eq!(reply.headers["retry-after"], "3", "2.5 seconds, rounded up");
    world.pass(2);
    assert_eq!(world.get("/v1/disks").status, 429);
    world.pass(1);
    assert_eq!(world.get("/v1/disks").status, 200);
}

#[test]
fn limits_are_counted_for_each_principal_and_only_on_what_they_cover() {
    let creates = RateLimit { kind: Some("disks".to_owned()), verb: Some("create".to_owned()), ..limit(1, 0.1) };
    let mut world = World::new(Settings { limits: vec![creates], ..Settings::default() });
    world.cloud.kit_mut().admit("bob", "secret-2");
    let order = json!({"name": "d", "size_gb": 1});
    assert_eq!(world.post("/v1/disks", &order).status, 201);
    let refused = world.post("/v1/disks", &order);
    assert_eq!(refused.status, 429);
    assert_eq!(world.cloud.truth(world.now).len(), 1, "nothing happened");
    assert_eq!(world.get("/v1/disks").status, 200);
    world.network();
    let handled = world.send(request("POST", "/v1/disks", &[("authorization", "Bearer secret-2")], Some(&order)));
    assert_eq!(delivered(handled).status, 201);
}

#[test]
fn a_denial_names_the_permission_and_hits_one_principal() {
    let mut world = World::calm();
    let network = world.network();
    let one = format!("/v1/networks/{network}");
    for (permission, method, path, body) in [
        ("networks.list", "GET", "/v1/networks".to_owned(), None),
        ("networks.get", "GET", one.clone(), None),
        ("networks.create", "POST", "/v1/networks".to_owned(), Some(json!({"name": "n", "cidr": "c"}))),
        ("networks.tag", "PUT", format!("{one}/tags"), Some(json!({"set": {"k": "v"}}))),
        ("machines.update", "PATCH", "/v1/machines/machine-1".to_owned(), Some(json!({"flavor": "f"}))),
        ("networks.delete", "DELETE", one.clone(), None),
    ] {
        world.cloud.kit_mut().denials.deny("bob", permission);
        assert_ne!(world.call("GET", "/v1/networks", None).status, 403);
        world.cloud.kit_mut().denials.deny("alice", permission);
        let reply = world.call(method, &path, body.as_ref());
        assert_eq!(reply.code(), (403, "Forbidden"));
        assert!(reply.message().contains(permission), "{}", reply.message());
        assert!(world.cloud.kit_mut().denials.allow("alice", permission));
        assert_ne!(world.call(method, &path, body.as_ref()).status, 403);
    }
    assert_eq!(world.get("/v1/whoami").status, 200);
}
