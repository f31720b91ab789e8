//! Faults: whom they strike, and whether anything happened.
use crate::support::{World, read, request};
use cloud_emulator::kit::{Action, CallFilter, Delivery, EmulatedCloud, Fault, Match, Spared};
use serde_json::json;
use std::time::Duration;

fn create() -> cloud_emulator::kit::Request {
    let order = json!({"name": "d", "size_gb": 1});
    request("POST", "/v1/disks", &[("authorization", "Bearer secret-1")], Some(&order))
}
fn disks(world: &World) -> usize {
    world.cloud.truth(world.now).len()
}

#[test]
fn each_action_does_what_it_says_with_and_without_the_effect() {
    let ms = Duration::from_millis;
    for (action, effect, delivery, status) in [
        (Action::Status { status: 500, effect: true, retry_after_s: None }, true, Delivery::Deliver, Some(500)),
        (Action::Status { status: 503, effect: false, retry_after_s: None }, false, Delivery::Deliver, Some(503)),
        (Action::Throttle { retry_after_s: 7 }, false, Delivery::Deliver, Some(429)),
        (Action::Cut { effect: true }, true, Delivery::DropReply, None),
        (Action::Cut { effect: false }, false, Delivery::CutBefore, None),
        (Action::Hang { ms: 5, effect: true }, true, Delivery::Silence(ms(5)), None),
        (Action::Hang { ms: 5, effect: false }, false, Delivery::Silence(ms(5)), None),
        (Action::Malformed { effect: true }, true, Delivery::Deliver, Some(201)),
        (Action::Malformed { effect: false }, false, Delivery::Deliver, Some(200)),
        (Action::Truncated, true, Delivery::CutMidBody, Some(201)),
        (Action::Delay { ms: 5 }, true, Delivery::Delay(ms(5)), Some(201)),
        (Action::Slow { ms: 5 }, true, Delivery::Slow(ms(5)), Some(201)),
        (Action::Late { ms: 5 }, false, Delivery::Postpone(ms(5)), None),
    ] {
        let mut world = World::calm();
        world.cloud.kit_mut().faults.add(Fault::once(Match::verb("disks", "create"), action.clone()));
        let handled = world.send(create());
        assert_eq!(handled.delivery, delivery, "{action:?}");
        assert_eq!(disks(&world), usize::from(effect), "{action:?}");
        let call = world.cloud.kit().calls.matching(&CallFilter::default()).next().unwrap().clone();
        assert_eq!((call.effect, call.status, call.fault), (effect, status, Some(action.name())), "{action:?}");
        if let Some(status) = status {
            assert_eq!(handled.response.status().as_u16(), status, "{action:?}");
        }
        assert_eq!(world.post("/v1/disks", &json!({"name": "d", "size_gb": 1})).status, 201, "only once");
    }
}

#[test]
fn a_throttle_carries_retry_after_and_a_malformed_body_is_no_json() {
    let mut world = World::calm();
    let on = Match::verb("disks", "create");
    world.cloud.kit_mut().faults.add(Fault::once(on.clone(), Action::Throttle { retry_after_s: 7 }));
    world.cloud.kit_mut().faults.add(Fault::once(on, Action::Malformed { effect: true }));
    let reply = read(world.send(create()));
    assert_eq!((reply.code(), &reply.headers["retry-after"]), ((429, "TooManyRequests"), &"7".parse().unwrap()));
    let handled = world.send(create());
    assert!(serde_json::from_slice::<serde_json::Value>(handled.response.body()).is_err());
}

#[test]
fn a_postponed_call_is_carried_out_when_it_comes_again_spared() {
    let mut world = World::calm();
    let always = Fault { times: None, ..Fault::once(Match::default(), Action::Late { ms: 5 }) };
    world.cloud.kit_mut().faults.add(always);
    assert_eq!(world.send(create()).delivery, Delivery::Postpone(Duration::from_millis(5)));
    let mut again = create();
    again.extensions_mut().insert(Spared);
    assert_eq!(read(world.send(again)).status, 201);
    assert_eq!(disks(&world), 1);
}

#[test]
fn a_fault_strikes_only_what_it_matches_from_the_nth_on_and_so_often() {
    let mut world = World::calm();
    let on = Match { path: Some("/v1/*s".to_owned()), method: Some("GET".to_owned()), ..Match::default() };
    let unavailable = Action::Status { status: 503, effect: false, retry_after_s: None };
    world.cloud.kit_mut().faults.add(Fault { after: 1, times: Some(2), ..Fault::once(on, unavailable.clone()) });
    let for_bob = Match { principal: Some("bob".to_owned()), ..Match::default() };
    world.cloud.kit_mut().faults.add(Fault { times: None, ..Fault::once(for_bob, unavailable) });
    world.disk();
    let statuses: Vec<u16> = (0..5).map(|_| world.get("/v1/disks").status).collect();
    assert_eq!(statuses, [200, 503, 503, 200, 200]);
    let scripted = &world.cloud.kit().faults.all()[0];
    assert_eq!((scripted.seen, scripted.struck), (5, 2));
}

#[test]
fn a_probability_strikes_some_and_a_mutating_match_spares_reads() {
    let mut world = World::calm();
    let on = Match { mutating: Some(true), ..Match::default() };
    let action = Action::Status { status: 500, effect: false, retry_after_s: None };
    world.cloud.kit_mut().faults.add(Fault { times: None, probability: 0.3, ..Fault::once(on, action) });
    let order = json!({"name": "d", "size_gb": 1});
    let struck = (0..1000).filter(|_| world.post("/v1/disks", &order).status == 500).count();
    assert!((200..400).contains(&struck), "{struck} of 1000");
    assert!((0..50).all(|_| world.get("/v1/disks").status == 200));
}

#[test]
fn a_fault_on_a_refused_call_shows_no_effect() {
    let mut world = World::calm();
    world.cloud.kit_mut().denials.deny("alice", "disks.create");
    world.cloud.kit_mut().faults.add(Fault::once(Match::default(), Action::Cut { effect: true }));
    assert_eq!(world.send(create()).delivery, Delivery::DropReply);
    assert_eq!(disks(&world), 0);
    assert_eq!(world.cloud.kit().calls.count(&CallFilter { effect: Some(true), ..CallFilter::default() }), 0);
}
