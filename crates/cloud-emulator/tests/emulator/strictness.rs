//! What is not on the facts page is refused by name, and changes nothing.
use crate::support::{World, delivered, request};
use cloud_emulator::kit::EmulatedCloud;
use serde_json::{Value, json};

/// Refused as 400 with a message that names the culprit.
fn refused(world: &mut World, method: &str, path: &str, body: Option<&Value>, names: &str) {
    let things = world.cloud.truth(world.now).len();
    let reply = world.call(method, path, body);
    assert_eq!(reply.code(), (400, "InvalidRequest"), "{method} {path} {body:?}");
    assert!(reply.message().contains(names), "{method} {path} {body:?}: {:?} does not name {names}", reply.message());
    assert_eq!(world.cloud.truth(world.now).len(), things, "nothing was made");
}

#[test]
fn an_unknown_or_missing_token_is_unauthorized() {
    let mut world = World::calm();
    for headers in [vec![], vec![("authorization", "Bearer wrong")], vec![("authorization", "Basic secret-1")]] {
        let reply = delivered(world.send(request("GET", "/v1/networks", &headers, None)));
        assert_eq!(reply.code(), (401, "Unauthorized"), "{headers:?}");
    }
}

#[test]
fn a_wrong_create_body_is_refused_by_the_name_of_the_field() {
    let mut world = World::calm();
    let network = world.network();
    for (plural, body, names) in [
        ("networks", json!({"cidr": "c"}), "name"),
        ("networks", json!({"name": "n"}), "cidr"),
        ("networks", json!({"name": 1, "cidr": "c"}), "name"),
        ("networks", json!({"name": "n", "cidr": "c", "extra": 1}), "extra"),
        ("networks", json!({"name": "n", "cidr": "c", "tags": []}), "tags"),
        ("networks", json!({"name": "n", "cidr": "c", "tags": {"k": 1}}), "tags.k"),
        ("disks", json!({"name": "d"}), "size_gb"),
        ("disks", json!({"name": "d", "size_gb": "10"}), "size_gb"),
        ("disks", json!({"name": "d", "size_gb": 1.5}), "size_gb"),
        ("disks", json!({"name": "d", "size_gb": 0}), "size_gb"),
        ("disks", json!({"name": "d", "size_gb": 16_385}), "size_gb"),
        ("addresses", json!({"network_id": network, "label": "a", "tags": {}}), "tags"),
        ("addresses", json!({"label": "a"}), "network_id"),
        ("routes", json!({"network_id": network, "destination": "d"}), "next_hop"),
        ("routes", json!({"network_id": network, "destination": "d", "next_hop": "h", "tags": {}}), "tags"),
        ("machines", json!({"name": "m", "network_id": network}), "flavor"),
        ("machines", json!({"name": "m", "network_id": network, "flavor": "f", "disk_id": 7}), "disk_id"),
        ("machines", json!([]), "object"),
    ] {
        refused(&mut world, "POST", &format!("/v1/{plural}"), Some(&body), names);
    }
    for size in [1, 16_384] {
        assert_eq!(world.post("/v1/disks", &json!({"name": "d", "size_gb": size})).status, 201);
    }
}

#[test]
fn tags_keep_to_their_rules() {
    let mut world = World::calm();
    let many: Value = (0..21).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    let long_key = json!({"k".repeat(65): "v"});
    for tags in [many, long_key, json!({"": "v"}), json!({"a b": "v"}), json!({"ä": "v"})] {
        refused(&mut world, "POST", "/v1/disks", Some(&json!({"name": "d", "size_gb": 1, "tags": tags})), "tag");
    }
    for value in ["v".repeat(129), "ä".to_owned(), "line\nbreak".to_owned()] {
        refused(
            &mut world,
            "POST",
            "/v1/disks",
            Some(&json!({"name": "d", "size_gb": 1, "tags": {"k": value}})),
            "tags.k",
        );
    }
    let most: Value = (0..20).map(|n| (format!("k-_./:{n}"), json!("~ "))).collect::<serde_json::Map<_, _>>().into();
    let reply = world.post("/v1/disks", &json!({"name": "d", "size_gb": 1, "tags": most}));
    assert_eq!(reply.status, 201);
    let path = format!("/v1/disks/{}/tags", reply.id());
    refused(&mut world, "PUT", &path, Some(&json!({"set": {"one-more": "v"}})), "more than 20");
    let swap = json!({"set": {"one-more": "", "k".repeat(64): "v".repeat(128)}, "remove": ["k-_./:0", "k-_./:1"]});
    assert_eq!(world.put(&path, &swap).status, 200);
}

#[test]
fn a_wrong_tag_call_is_refused() {
    let mut world = World::calm();
    let (network, disk) = (world.network(), world.disk());
    let path = format!("/v1/disks/{disk}/tags");
    for (body, names) in [
        (json!({"set": []}), "set"),
        (json!({"remove": {}}), "remove"),
        (json!({"remove": [1]}), "remove"),
        (json!({"add": {}}), "add"),
        (json!({"set": {"k": null}}), "set.k"),
        (json!({"set": {"k": "v"}, "remove": ["k"]}), "k is in set and in remove"),
    ] {
        refused(&mut world, "PUT", &path, Some(&body), names);
    }
    let route = world.post("/v1/routes", &json!({"network_id": network, "destination": "d", "next_hop": "h"})).id();
    refused(&mut world, "PUT", &format!("/v1/routes/{route}/tags"), Some(&json!({})), "no tags");
    assert_eq!(world.put("/v1/disks/disk-00000000/tags", &json!({})).code(), (404, "NotFound"));
}

#[test]
fn unknown_query_parameters_and_stray_bodies_are_refused() {
    let mut world = World::calm();
    let disk = world.disk();
    let one = format!("/v1/disks/{disk}");
    for (method, path, names) in [
        ("GET", "/v1/disks?name=d", "name"),
        ("GET", "/v1/disks?limit=0", "limit"),
        ("GET", "/v1/disks?limit=101", "limit"),
        ("GET", "/v1/disks?limit=x", "limit"),
        ("GET", "/v1/disks?limit=1&limit=2", "limit"),
        ("GET", "/v1/disks?page=made-up", "page"),
        ("GET", "/v1/whoami?x=1", "x"),
        ("GET", &format!("{one}?x=1"), "x"),
        ("DELETE", &format!("{one}?force=true"), "force"),
    ] {
        refused(&mut world, method, path, None, names);
    }
    let body = json!({"name": "d", "size_gb": 1});
    refused(&mut world, "POST", "/v1/disks?dry=1", Some(&body), "dry");
    for (method, path) in [("GET", "/v1/disks"), ("GET", one.as_str()), ("DELETE", one.as_str())] {
        refused(&mut world, method, path, Some(&json!({})), "body");
    }
}

#[test]
fn calls_that_no_path_has_are_refused() {
    let mut world = World::calm();
    let disk = world.disk();
    for path in ["/", "/v1", "/v1/nothing", "/v2/disks"] {
        assert_eq!(world.get(path).code(), (404, "NotFound"), "{path}");
    }
    for (method, path) in [
        ("PUT", "/v1/disks".to_owned()),
        ("POST", format!("/v1/disks/{disk}")),
        ("GET", format!("/v1/disks/{disk}/tags")),
        ("GET", "/v1/disks/".to_owned()),
        ("DELETE", "/v1/disks".to_owned()),
    ] {
        assert_eq!(world.call(method, &path, None).code(), (400, "InvalidRequest"), "{method} {path}");
    }
    assert_eq!(world.get(&format!("/v1/networks/{disk}")).code(), (404, "NotFound"), "another kind's id");
}

#[test]
fn a_body_that_is_no_json_is_refused() {
    let mut world = World::calm();
    let mut send = |body: &[u8], content_type: &str| {
        let mut request = request("POST", "/v1/disks", &[("authorization", "Bearer secret-1")], None);
        request.headers_mut().insert("content-type", content_type.parse().unwrap());
        *request.body_mut() = body.to_vec();
        delivered(world.send(request))
    };
    let good = br#"{"name": "d", "size_gb": 1}"#;
    assert_eq!(send(b"{\"name\": ", "application/json").code(), (400, "InvalidRequest"));
    assert_eq!(send(good, "text/plain").code(), (400, "InvalidRequest"));
    assert_eq!(send(good, "application/json; charset=utf-8").status, 201);
}
