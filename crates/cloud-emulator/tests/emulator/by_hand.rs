//! Strangers' things, changes by hand, and the truth.
use crate::support::{World, seconds};
use cloud_emulator::kit::{EmulatedCloud, Lags, Phase, Plant, Settings, Tags};
use serde_json::{Map, Value, json};

fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn a_strangers_thing_is_there_at_once_with_any_tags() {
    let lag = Lags { list: seconds(60), tags: seconds(60), get: seconds(60), ..Lags::default() };
    let mut world = World::new(Settings { lag, ..Settings::default() });
    let network = world.network();
    let address = fields(&json!({"network_id": network, "label": "a"}));
    let plant = Plant::new("address", address).tagged([("owner-name", "somebody")]);
    let id = world.cloud.plant(world.now, plant).unwrap();
    let item = &world.list("addresses")[0];
    assert_eq!((&item["id"], &item["created_by"]), (&json!(id), &json!("stranger")));
    assert_eq!(item["tags"], json!({"owner-name": "somebody"}));
    let machine = fields(&json!({"name": "m", "network_id": network, "flavor": "f"}));
    world.cloud.plant(world.now, Plant::new("machines", machine)).unwrap();
    assert_eq!(world.list("machines")[0]["state"], "ready");
    let truth = world.cloud.truth(world.now);
    assert_eq!(truth.iter().map(|thing| thing.planted).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(truth[1].natural_key, Some(format!("{network}/a")));
}

#[test]
fn a_strangers_thing_obeys_the_rules_of_the_cloud() {
    let mut world = World::calm();
    let network = world.network();
    let address = fields(&json!({"network_id": network, "label": "a"}));
    world.cloud.plant(world.now, Plant::new("addresses", address.clone())).unwrap();
    let route = fields(&json!({"network_id": network, "destination": "d", "next_hop": "h"}));
    for wrong in [
        Plant::new("addresses", address),
        Plant::new("address", fields(&json!({"network_id": "network-00000000", "label": "b"}))),
        Plant::new("disks", fields(&json!({"name": "d"}))),
        Plant::new("balloons", Map::new()),
        Plant::new("routes", route).tagged([("k", "v")]),
    ] {
        assert!(world.cloud.plant(world.now, wrong.clone()).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_person_can_delete_and_retag() {
    let mut world = World::calm();
    let disk = world.post("/v1/disks", &json!({"name": "d", "size_gb": 1, "tags": {"a": "1", "b": "2"}})).id();
    let set = Tags::from([("b".to_owned(), "3".to_owned())]);
    world.cloud.retag_by_hand(world.now, &disk, set, &["a".to_owned()]).unwrap();
    assert_eq!(world.get(&format!("/v1/disks/{disk}")).body["tags"], json!({"b": "3"}));
    world.cloud.delete_by_hand(world.now, &disk).unwrap();
    assert_eq!(world.get(&format!("/v1/disks/{disk}")).status, 404);
    assert!(world.cloud.delete_by_hand(world.now, &disk).is_err(), "it is gone");
    let network = world.network();
    world.post("/v1/addresses", &json!({"network_id": network, "label": "a"}));
    assert!(world.cloud.delete_by_hand(world.now, &network).is_err(), "it is in use");
}

#[test]
fn the_truth_remembers_what_a_thing_was_when_its_deletion_was_asked_for() {
    let mut world = World::new(Settings { deletion: [("disks".to_owned(), seconds(9))].into(), ..Settings::default() });
    let body = json!({"name": "d", "size_gb": 7, "tags": {"a": "1"}});
    let disk = world.post("/v1/disks", &body).id();
    world.pass(1);
    world.delete(&format!("/v1/disks/{disk}"));
    world.put(&format!("/v1/disks/{disk}/tags"), &json!({"remove": ["a"]}));
    let truth = world.cloud.truth(world.now).remove(0);
    let deletion = truth.deletion.clone().unwrap();
    assert_eq!((truth.phase, deletion.at, deletion.by.as_deref()), (Phase::Deleting, world.now, Some("alice")));
    assert_eq!(deletion.tags, Some([("a".to_owned(), "1".to_owned())].into()));
    assert_eq!(
        (truth.tags, &truth.fields["size_gb"], truth.created_by.as_str()),
        (Some(Tags::new()), &json!(7), "alice")
    );
}

#[test]
fn settings_change_at_run_time() {
    let mut world = World::calm();
    world.disk();
    let lag = Lags { list: seconds(60), ..Lags::default() };
    world.cloud.kit_mut().configure(Settings { lag, ..Settings::default() });
    world.disk();
    assert_eq!(world.listed("disks").len(), 1);
}
