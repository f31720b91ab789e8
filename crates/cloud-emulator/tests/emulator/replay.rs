//! The same seed and the same calls give the same bytes.
use crate::support::{TOKEN, World, request, seconds};
use cloud_emulator::kit::{Action, EmulatedCloud, Fault, GhostLook, Lag, Lags, Match, Paging, Settings};
use serde_json::json;
use std::fmt::Write;

/// A history with every kind of randomness in it, as text.
fn history(seed: u64) -> String {
    let lag = Lags {
        list: Lag::UpToMs(9_000),
        tags: Lag::UpToMs(9_000),
        ghosts: GhostLook::Either,
        ghost: seconds(5),
        get: Lag::UpToMs(900),
    };
    let build = [("machines".to_owned(), Lag::UpToMs(5_000))].into();
    let settings = Settings { lag, build, paging: Paging { max: 3, ragged: true }, ..Settings::default() };
    let mut world = World::seeded(settings, seed);
    let action = Action::Status { status: 500, effect: true, retry_after_s: None };
    let fault = Fault { times: None, probability: 0.2, ..Fault::once(Match::default(), action) };
    world.cloud.kit_mut().faults.add(fault);
    let mut text = String::new();
    for round in 0..60 {
        let newest = world.cloud.truth(world.now).last().map(|thing| thing.id.clone()).unwrap_or_default();
        let (method, path, body) = match round % 4 {
            0 => (
                "POST",
                "/v1/disks".to_owned(),
                Some(json!({"name": "d", "size_gb": 1, "tags": {"r": round.to_string()}})),
            ),
            1 => ("GET", "/v1/disks".to_owned(), None),
            2 => ("GET", format!("/v1/disks/{newest}"), None),
            _ => ("DELETE", format!("/v1/disks/{newest}"), None),
        };
        let bearer = format!("Bearer {TOKEN}");
        let handled = world.send(request(method, &path, &[("authorization", &bearer)], body.as_ref()));
        let _ =
            writeln!(text, "{:?} {:?} {:?}", handled.delivery, handled.response.headers(), handled.response.status());
        text.push_str(&String::from_utf8_lossy(handled.response.body()));
        world.pass(1);
    }
    text
}

#[test]
fn one_seed_is_one_history() {
    assert_eq!(history(7), history(7));
    assert_ne!(history(7), history(8));
}
