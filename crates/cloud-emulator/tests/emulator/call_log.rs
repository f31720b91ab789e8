//! The call log.
use crate::support::World;
use cloud_emulator::kit::{CallFilter, EmulatedCloud, Settings};
use serde_json::json;

#[test]
fn a_call_is_logged_with_all_that_can_be_counted() {
    let mut world = World::calm();
    let reply = world.post("/v1/disks", &json!({"name": "d", "size_gb": 1}));
    let calls = &world.cloud.kit().calls;
    let call = calls.matching(&CallFilter::default()).next().unwrap();
    assert_eq!((call.seq, call.at, call.principal.as_deref()), (1, world.now, Some("alice")));
    assert_eq!(
        (call.method.as_str(), call.path.as_str(), call.kind, call.verb),
        ("POST", "/v1/disks", "disks", "create")
    );
    assert_eq!((call.status, call.effect, call.mutating, call.fault), (Some(201), true, true, None));
    assert_eq!(call.thing.as_deref(), Some(reply.id().as_str()));
    assert_eq!(call.request_id.as_bytes(), reply.headers["x-request-id"].as_bytes());
}

#[test]
fn an_effect_is_a_change_and_nothing_else() {
    let mut world = World::new(Settings {
        deletion: [("networks".to_owned(), crate::support::seconds(9))].into(),
        ..Settings::default()
    });
    let order = json!({"name": "n", "cidr": "c"});
    let id = world.keyed("POST", "/v1/networks", "key-1", &order).id();
    let path = format!("/v1/networks/{id}");
    world.put(&format!("{path}/tags"), &json!({"set": {"k": "v"}}));
    world.delete(&path);
    let latest = world.cloud.kit().calls.latest();
    let since = CallFilter { after: Some(latest), ..CallFilter::default() };
    world.keyed("POST", "/v1/networks", "key-1", &order);
    world.put(&format!("{path}/tags"), &json!({"set": {"k": "v"}}));
    world.delete(&path);
    world.get(&path);
    world.post("/v1/networks", &json!({}));
    let calls = &world.cloud.kit().calls;
    assert_eq!(calls.count(&since), 5);
    assert_eq!(calls.count(&CallFilter { effect: Some(true), ..since.clone() }), 0);
    assert_eq!(calls.count(&CallFilter { mutating: Some(true), ..since }), 4);
    assert_eq!(calls.count(&CallFilter { effect: Some(true), thing: Some(id), ..CallFilter::default() }), 3);
}

#[test]
fn filters_narrow_by_each_property() {
    let mut world = World::calm();
    world.disk();
    world.get("/v1/disks");
    world.get("/v1/networks");
    world.get("/v1/networks/network-1");
    let count = |filter: CallFilter| world.cloud.kit().calls.count(&filter);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(count(CallFilter { kind: some("networks"), ..CallFilter::default() }), 2);
    assert_eq!(count(CallFilter { verb: some("list"), ..CallFilter::default() }), 2);
    assert_eq!(count(CallFilter { method: some("POST"), ..CallFilter::default() }), 1);
    assert_eq!(count(CallFilter { path: some("/v1/*s"), ..CallFilter::default() }), 3);
    assert_eq!(count(CallFilter { status: Some(404), ..CallFilter::default() }), 1);
    assert_eq!(count(CallFilter { principal: some("bob"), ..CallFilter::default() }), 0);
}

#[test]
fn the_log_is_bounded_and_says_what_it_forgot() {
    let mut world = World::new(Settings { call_log: 3, ..Settings::default() });
    (0..5).for_each(|_| drop(world.get("/v1/disks")));
    let calls = &mut world.cloud.kit_mut().calls;
    assert_eq!((calls.count(&CallFilter::default()), calls.forgotten(), calls.latest()), (3, 2, 5));
    calls.clear();
    assert_eq!((calls.count(&CallFilter::default()), calls.forgotten(), calls.latest()), (0, 0, 5));
}
