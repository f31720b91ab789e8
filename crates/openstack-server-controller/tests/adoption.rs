//! What the Go provider made is taken over as it stands: the one server of the name, and what is attached to it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails
mod support;

use common::engine::report::Progress;
use common::names::{ADOPT_FROM, ADOPTED_FROM};
use serde_json::json;
use support::World;

const PRIVATE: &str = "7e700000-0000-4000-8000-000000000001";
const FINALIZER: &str = "openstackserver.infrastructure.cluster.x-k8s.io";

/// As an old version left it: the port has a name that nobody would give it today.
fn legacy(world: &World) -> (String, String, String) {
    let port = world.plant("port", json!({"name": "ns-cluster-bastion-0", "network_id": PRIVATE, "fixed_ips": []}));
    let volume = world.plant("volume", json!({"name": "srv-root", "size": 1}));
    let server = world.plant("server", json!({"name": "srv", "metadata": {"team": "x"}, "plugged": [port, volume]}));
    (server, port, volume)
}

#[tokio::test]
async fn a_server_of_the_go_provider_is_adopted_with_its_ids_and_goes_with_its_owner() {
    let mut world = World::new(&json!({"rootVolume": {"sizeGiB": 1}}));
    let (server, port, volume) = legacy(&world);
    // given the peer's finalizer, then nothing is touched
    world.finalize(FINALIZER);
    world.serve().await;
    assert!(world.said("Stalled").contains("PeerController"), "{}", world.said("Stalled"));
    assert_eq!(world.writes(), Vec::<String>::new());
    // when it is asked for, then the finalizers are swapped and everything is ours, as it was
    world.annotate(ADOPT_FROM, "capo");
    assert_eq!(world.serve().await, Progress::Done, "{}", world.said("InstanceReady"));
    let view = world.stored().view;
    assert_eq!(view.finalizers, ["custody.dev/openstack"]);
    assert_eq!(
        (view.annotations.get(ADOPT_FROM), view.annotations.get(ADOPTED_FROM).map(String::as_str)),
        (None, Some("capo"))
    );
    assert_eq!(world.status()["instanceID"], json!(server));
    assert_eq!(world.status()["resources"]["ports"], json!([{"id": port}]));
    assert_eq!(world.status()["resources"]["volumes"], json!([{"id": volume}]));
    assert_eq!((world.made("server"), world.made("port"), world.made("volume")), (0, 0, 0));
    let marked = &world.living("server")[0];
    assert_eq!(marked.tags.as_ref().unwrap()["custody-adopted"], "delete");
    assert_eq!(marked.fields["metadata"]["team"], "x", "other metadata stays");
    assert_eq!(world.condition("Ready").unwrap().0, "True");
    // when it is deleted, then it all goes
    world.delete();
    world.serve().await;
    assert!(world.is_gone());
    assert_eq!(world.all_living(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_plugged_or_unplugged_after_the_adoption_is_no_mismatch() {
    let mut world = World::new(&json!({"rootVolume": {"sizeGiB": 1}}));
    let (server, port, volume) = legacy(&world);
    world.annotate(ADOPT_FROM, "capo");
    assert_eq!(world.serve().await, Progress::Done, "{}", world.said("InstanceReady"));
    world.settle();
    // when somebody plugs another port in
    world.plant("port", json!({"name": "hot", "network_id": PRIVATE, "fixed_ips": [], "device_id": server}));
    world.settle();
    assert_eq!(world.serve().await, Progress::Done, "{}", world.said("InstanceReady"));
    assert_eq!(world.condition("InstanceReady").unwrap().0, "True");
    assert_eq!(world.status()["resources"]["ports"], json!([{"id": port}]));
    assert_eq!(world.status()["resources"]["volumes"], json!([{"id": volume}]));
}

#[tokio::test]
async fn what_does_not_fit_is_said_and_nothing_is_made_beside_it() {
    for (fields, said) in [
        (
            json!({"ports": [{"network": {"id": PRIVATE}}, {"network": {"id": PRIVATE}}]}),
            "has 1 ports, the spec asks for 2",
        ),
        (json!({"ports": [{"network": {"filter": {"name": "other"}}}]}), "other networks"),
        (
            json!({"rootVolume": {"sizeGiB": 1}, "additionalBlockDevices": [{"name": "d", "sizeGiB": 1, "storage": {"type": "Volume"}}]}),
            "no volume called srv-d",
        ),
    ] {
        let mut world = World::new(&fields);
        legacy(&world);
        world.annotate(ADOPT_FROM, "capo");
        world.serve().await;
        let text = world.said("InstanceReady");
        assert!(text.contains("AdoptionMismatch") && text.contains(said), "{text}");
        assert_eq!(world.writes(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn with_nothing_to_adopt_a_new_server_is_made() {
    let mut world = World::new(&json!({}));
    world.annotate(ADOPT_FROM, "capo");
    assert_eq!(world.serve().await, Progress::Done);
    assert_eq!((world.made("server"), world.made("port")), (1, 1));
}

#[tokio::test]
async fn two_servers_of_the_name_are_both_left_alone() {
    let mut world = World::new(&json!({"rootVolume": {"sizeGiB": 1}}));
    legacy(&world);
    world.plant("server", json!({"name": "srv"}));
    world.annotate(ADOPT_FROM, "capo");
    world.serve().await;
    assert!(world.said("InstanceReady").contains("2 servers are called srv"), "{}", world.said("InstanceReady"));
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_port_that_vanishes_is_replaced_at_most_once_and_status_follows() {
    // before there is a server: made again, under a new id
    let mut world = World::new(&json!({}));
    world.configure(|s| {
        s.quotas.insert("servers".into(), 0);
    });
    world.serve().await;
    let first = world.living("port")[0].id.clone();
    world.settle();
    world.remove(&first);
    for _ in 0..5 {
        world.serve().await;
        world.settle();
    }
    assert_eq!((world.living("port").len(), world.made("port")), (1, 2));
    assert_eq!(world.status()["resources"]["ports"][0]["id"], json!(world.living("port")[0].id));
    // with a server on it: not made again, but said
    let mut world = World::new(&json!({}));
    assert_eq!(world.serve().await, Progress::Done);
    world.settle();
    let port = world.living("port")[0].id.clone();
    world.remove(&port);
    for _ in 0..5 {
        world.serve().await;
        world.settle();
    }
    assert_eq!(world.made("port"), 1);
    assert!(world.said("Stalled").contains("ResourceLost"), "{}", world.said("Stalled"));
}

#[tokio::test]
async fn a_dot_in_a_name_is_a_dot_and_two_namespaces_do_not_meet() {
    // given servers whose names a pattern would take for ours
    let mut world = World::new(&json!({}));
    world.plant("server", json!({"name": "srvx"}));
    world.plant("server", json!({"name": "a-srv"}));
    assert_eq!(world.serve().await, Progress::Done);
    assert_eq!(world.made("server"), 1);
    // and one that carries another owner's whole mark under our name
    let mut world = World::new(&json!({}));
    let mark = json!({"custody-owner": "0".repeat(32), "custody-place": "615f69ed4e24-0757658d5fc863ff", "custody-slot": "server"});
    let other = world.plant("server", json!({"name": "srv", "metadata": mark}));
    assert_eq!(world.serve().await, Progress::Done, "{}", world.said("InstanceReady"));
    world.delete();
    world.serve().await;
    assert!(world.is_gone());
    assert_eq!(world.all_living(), [format!("server {other}")]);
}

#[tokio::test]
async fn drift_is_said_and_left_alone() {
    let mut world = World::new(&json!({"tags": ["blue"], "serverMetadata": [{"key": "team", "value": "x"}]}));
    assert_eq!(world.serve().await, Progress::Done);
    world.settle();
    world.visit().await;
    assert_eq!(world.condition("Drifted"), None);
    let (port, server) = (world.living("port")[0].id.clone(), world.living("server")[0].id.clone());
    world.drift(&server, "team", "y");
    world.settle();
    world.serve().await;
    assert!(world.said("Drifted").starts_with("True/Differs: metadata team"), "{}", world.said("Drifted"));
    assert!(world.living("port").iter().any(|it| it.id == port));
    assert_eq!(world.condition("Ready").unwrap().0, "True");
    // an address pair that the port was never given
    let mut world = World::new(&json!({"ports": [{"network": {"id": PRIVATE}}]}));
    assert_eq!(world.serve().await, Progress::Done);
    world.spec.ports[0].allowed_address_pairs =
        vec![serde_json::from_value(json!({"ipAddress": "10.0.0.99"})).unwrap()];
    world.settle();
    world.serve().await;
    assert!(world.said("Drifted").contains("allowed address pairs"), "{}", world.said("Drifted"));
}
