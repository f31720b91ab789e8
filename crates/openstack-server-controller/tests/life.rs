//! The life of a server: made once, seen as it is, deleted with everything that was made for it and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails
mod support;

use cloud_emulator::kit::{CallFilter, Settings};
use common::engine::report::Progress;
use serde_json::{Value, json};
use std::time::Duration;
use support::World;

fn full() -> Value {
    json!({
        "ports": [
            {"network": {"filter": {"name": "private"}}, "trunk": true, "tags": ["first"]},
            {"network": {"filter": {"name": "other"}}, "nameSuffix": "second"}],
        "rootVolume": {"sizeGiB": 10}, "tags": ["blue"], "sshKeyName": "key", "userDataRef": {"name": "data"},
        "additionalBlockDevices": [{"name": "data", "sizeGiB": 5, "storage": {"type": "Volume"}}],
        "serverGroup": {"filter": {"name": "group"}}, "securityGroups": [{"filter": {"name": "web"}}],
        "serverMetadata": [{"key": "team", "value": "x"}],
    })
}

#[tokio::test]
async fn the_first_visits_store_what_names_lead_to_and_create_nothing() {
    let mut world = World::new(&json!({}));
    world.visit().await;
    assert_eq!(world.writes(), Vec::<String>::new());
    assert!(world.status()["resolved"]["imageID"].is_string(), "{}", world.status());
    world.visit().await;
    assert_eq!(world.stored().view.finalizers, ["custody.dev/openstack"]);
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_with_everything_is_made_once_and_goes_with_everything() {
    let mut world = World::new(&full());
    world.inputs.held().user_data.insert("data".into(), b"#cloud-config".to_vec());
    world.configure(|s| {
        s.build.insert("servers".into(), cloud_emulator::kit::Lag::FixedMs(15_000));
        s.build.insert("volumes".into(), cloud_emulator::kit::Lag::FixedMs(15_000));
    });
    assert_eq!(world.serve().await, Progress::Done, "{}", world.said("InstanceReady"));
    for (kind, count) in [("server", 1), ("port", 2), ("volume", 2), ("trunk", 1)] {
        assert_eq!((world.living(kind).len(), world.made(kind)), (count, count), "{kind}");
    }
    let status = world.status();
    let server = &world.living("server")[0];
    assert_eq!(
        (&status["instanceID"], &status["instanceState"], &status["ready"]),
        (&json!(server.id), &json!("ACTIVE"), &json!(true))
    );
    assert_eq!(world.condition("Ready").unwrap().0, "True");
    assert_eq!(world.condition("InstanceReady").unwrap().0, "True");
    assert_eq!(world.condition("Failed"), None);
    assert_eq!(status["resources"]["ports"].as_array().unwrap().len(), 2);
    assert!(status["addresses"].as_array().unwrap().iter().any(|it| it["type"] == "InternalIP"), "{status}");
    assert_eq!(server.fields["metadata"]["team"], "x");
    assert_eq!(server.fields["scheduler_hints"], json!({"group": "5e600000-0000-4000-8000-000000000001"}));
    let ports = world.living("port");
    assert_eq!(ports.iter().map(|it| it.fields["name"].as_str().unwrap()).collect::<Vec<_>>(), ["srv-0", "srv-second"]);
    assert!(ports[0].fields["tags"].as_array().unwrap().contains(&json!("first")));
    assert!(ports.iter().all(|it| it.fields["security_groups"] == json!(["5ec00000-0000-4000-8000-000000000002"])));
    // tags of the trunk come by a call of their own
    assert!(world.living("trunk")[0].fields["tags"].as_array().unwrap().contains(&json!("blue")));

    world.delete();
    world.serve().await;
    assert!(world.is_gone(), "{}", world.said("InstanceReady"));
    assert_eq!(world.all_living(), Vec::<String>::new());
    let writes = world.writes();
    let at = |what: &str| writes.iter().rposition(|it| it == what).unwrap_or_else(|| panic!("{what} in {writes:?}"));
    assert!(at("servers delete") < at("trunks delete") && at("trunks delete") < at("ports delete"), "{writes:?}");
}

#[tokio::test]
async fn a_server_costs_its_creates_and_few_reads() {
    let mut world = World::new(&json!({
        "ports": [{"network": {"filter": {"name": "private"}}}, {"network": {"filter": {"name": "other"}}}], "rootVolume": {"sizeGiB": 10}}));
    assert_eq!(world.serve().await, Progress::Done);
    let log = world.log();
    let reads: Vec<_> = log.iter().filter(|it| !it.ends_with("create") && !it.starts_with("tokens")).collect();
    assert_eq!(world.writes().len(), 4, "{log:?}");
    // version, extensions, image, flavors, two networks, the first list of each kind; what is being built is polled
    let lists = ["servers list", "ports list", "volumes list"];
    let count = |what: &str| reads.iter().filter(|it| it.as_str() == what).count();
    let again: usize = lists.iter().map(|list| count(list).saturating_sub(1)).sum();
    let polls = again + count("servers get") + count("volumes get");
    let own = reads.len() - polls;
    println!("SEEN: {} calls: 4 creates, {own} reads, {polls} polls of what was being built", log.len());
    assert!(own <= 10, "{reads:?}");
    // a converged server costs nothing while the shared lists are young
    world.settle();
    world.visit().await;
    world.clear_log();
    for _ in 0..5 {
        world.visit().await;
    }
    assert_eq!(world.log(), Vec::<String>::new());
}

#[tokio::test]
async fn a_lost_reply_of_every_create_doubles_nothing() {
    for kind in ["ports", "volumes", "servers", "trunks"] {
        let mut fields = full();
        fields.as_object_mut().unwrap().remove("userDataRef");
        let mut world = World::new(&fields);
        world.strike(
            json!({"match": {"kind": kind, "verb": "create"}, "times": 1, "action": {"cut": {"effect": true}}}),
        );
        assert_eq!(world.serve().await, Progress::Done, "{kind}: {}", world.said("InstanceReady"));
        for (kind, count) in [("server", 1), ("port", 2), ("volume", 2), ("trunk", 1)] {
            assert_eq!((world.living(kind).len(), world.made(kind)), (count, count), "{kind}");
        }
    }
}

#[tokio::test]
async fn a_server_that_vanished_is_failed_and_never_made_again() {
    let mut world = World::new(&json!({}));
    assert_eq!(world.serve().await, Progress::Done);
    world.settle();
    let id = world.living("server")[0].id.clone();
    world.remove(&id);
    for _ in 0..5 {
        world.visit().await;
        world.settle();
    }
    assert!(world.said("Failed").starts_with("True/InstanceNotFound"), "{}", world.said("Failed"));
    assert!(world.said("InstanceReady").contains("unexpectedly deleted"));
    assert_eq!(world.condition("Ready").unwrap().0, "True", "Ready is never lowered");
    assert_eq!(world.status()["ready"], false);
    assert_eq!((world.made("server"), world.made("port")), (1, 1));
    // its deletion still takes everything away
    world.delete();
    world.serve().await;
    assert!(world.is_gone());
    assert_eq!(world.all_living(), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_in_error_is_failed_with_novas_words_and_can_be_brought_back() {
    let mut world = World::new(&json!({}));
    world.fail_next("server", "No valid host was found. There are not enough hosts available.");
    world.serve().await;
    assert!(world.said("Failed").starts_with("True/NoValidHost"), "{}", world.said("Failed"));
    assert!(world.said("InstanceReady").contains("not enough hosts"), "{}", world.said("InstanceReady"));
    assert_eq!(
        (world.status()["ready"].clone(), world.status()["instanceState"].clone()),
        (json!(false), json!("ERROR"))
    );
    assert_eq!(world.condition("Ready").unwrap().0, "False");
    // no more mutation
    world.clear_log();
    world.settle();
    world.visit().await;
    assert_eq!(world.writes(), Vec::<String>::new());
    // until an operator brings it back
    let id = world.living("server")[0].id.clone();
    world.set_status(&id, "ACTIVE");
    world.settle();
    assert_eq!(world.serve().await, Progress::Done);
    assert!(world.said("Failed").starts_with("False"), "{}", world.said("Failed"));
    assert_eq!(world.condition("Ready").unwrap().0, "True");
}

#[tokio::test]
async fn an_html_404_is_an_outage_and_nothing_is_failed_or_made() {
    let mut world = World::new(&json!({}));
    assert_eq!(world.serve().await, Progress::Done);
    world.settle();
    world.strike(json!({"match": {"kind": "servers"}, "action": {"status": {"status": 404}}}));
    for _ in 0..4 {
        world.visit().await;
        world.settle();
    }
    assert_eq!(world.condition("Failed"), None);
    assert_eq!(world.condition("Ready").unwrap().0, "True");
    assert_eq!(world.made("server"), 1);
}

#[tokio::test]
async fn other_states_are_unknown_and_not_ready_now() {
    let mut world = World::new(&json!({}));
    assert_eq!(world.serve().await, Progress::Done);
    let id = world.living("server")[0].id.clone();
    world.set_status(&id, "SHUTOFF");
    world.settle();
    world.visit().await;
    assert!(world.said("InstanceReady").starts_with("Unknown/InstanceNotReady"), "{}", world.said("InstanceReady"));
    assert_eq!(world.status()["ready"], false);
    assert_eq!(world.condition("Ready").unwrap().0, "True");
}

#[tokio::test]
async fn names_that_lead_to_none_or_two_are_said_and_nothing_is_made() {
    let cases = [
        (json!({"image": {"filter": {"name": "nothing"}}}), "no image matches"),
        (json!({"image": {"filter": {"name": "twice"}}}), "2 images match"),
        (json!({"flavor": "huge"}), "no flavor matches"),
        (json!({"ports": [{"network": {"filter": {"name": "nowhere"}}}]}), "no network matches"),
        (json!({"serverGroup": {"filter": {"name": "nobody"}}}), "no server group matches"),
        (json!({"securityGroups": [{"filter": {"name": "nope"}}]}), "no security group matches"),
        (
            json!({"ports": [{"network": {"filter": {"name": "private"}}, "fixedIPs": [{"subnet": {"id": "5b700000-0000-4000-8000-000000000002"}}]}]}),
            "is in network",
        ),
        (json!({"ports": [{"fixedIPs": [{"subnet": {"filter": {"ipVersion": 4}}}]}]}), "cannot be told"),
        // a filter that says nothing means nothing, not anything
        (json!({"image": {"filter": {"name": ""}}}), "the image is named in no way"),
        (json!({"image": {"filter": {"tags": []}}}), "the image is named in no way"),
        (json!({"securityGroups": [{"filter": {"name": ""}}]}), "a security group is named in no way"),
        (json!({"ports": [{"network": {"filter": {"tags": []}}}]}), "its network is named in no way"),
    ];
    for (fields, said) in cases {
        let mut world = World::new(&fields);
        world.serve().await;
        let text = world.said("InstanceReady");
        assert!(text.starts_with("False/DependencyFailed") && text.contains(said), "{said}: {text}");
        assert_eq!(world.writes(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_network_is_told_by_the_first_subnet_that_is_told_exactly() {
    let mut world = World::new(&json!({"ports": [{"fixedIPs": [
        {"subnet": {"filter": {"name": "other-subnet"}}}]}]}));
    assert_eq!(world.serve().await, Progress::Done, "{}", world.said("InstanceReady"));
    assert_eq!(world.living("port")[0].fields["network_id"], "7e700000-0000-4000-8000-000000000002");
}

#[tokio::test]
async fn deleted_before_anything_was_made_makes_nothing() {
    let mut world = World::new(&json!({}));
    world.visit().await;
    world.visit().await;
    world.delete();
    world.serve().await;
    assert!(world.is_gone());
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_deletion_needs_no_name_to_lead_anywhere() {
    let mut world = World::new(&full());
    world.inputs.held().user_data.insert("data".into(), b"x".to_vec());
    assert_eq!(world.serve().await, Progress::Done);
    world.lose_status();
    world.inputs.held().user_data.clear();
    world.strike(json!({"match": {"kind": "images"}, "action": {"status": {"status": 500}}}));
    world.strike(json!({"match": {"kind": "flavors"}, "action": {"status": {"status": 500}}}));
    world.delete();
    world.serve().await;
    assert!(world.is_gone(), "{}", world.said("InstanceReady"));
    assert_eq!(world.all_living(), Vec::<String>::new());
}

#[tokio::test]
async fn a_strangers_server_of_the_same_name_is_left_alone_and_named() {
    let mut world = World::new(&json!({}));
    let stranger = world.plant("server", json!({"name": "srv", "metadata": {"team": "other"}}));
    world.serve().await;
    let text = world.said("InstanceReady");
    assert!(text.starts_with("False/ExistsUnowned") && text.contains(&stranger), "{text}");
    assert_eq!(world.made("server"), 0);
    world.delete();
    world.serve().await;
    assert!(world.is_gone());
    assert_eq!(world.all_living(), [format!("server {stranger}")]);
}

#[tokio::test]
async fn credentials_that_see_another_project_stop_everything() {
    let mut world = World::new(&json!({}));
    assert_eq!(world.serve().await, Progress::Done);
    world.settle();
    world.use_other_project();
    world.clear_log();
    for _ in 0..3 {
        world.visit().await;
        world.settle();
    }
    let stalled = world.said("Stalled");
    assert!(stalled.contains("IdentityMismatch"), "{stalled}");
    assert_eq!(world.writes(), Vec::<String>::new());
    assert_eq!(world.condition("Failed"), None);
    // nor does a deletion forget what it cannot see
    world.delete();
    world.serve().await;
    assert!(!world.is_gone());
}

#[tokio::test]
async fn refused_credentials_are_said_and_mended_without_a_restart() {
    let mut world = World::new(&json!({}));
    world.cloud(|cloud, _| {
        use cloud_emulator::kit::EmulatedCloud;
        cloud.kit_mut().principals.revoke("controller")
    });
    world.visit().await;
    assert!(world.said("OpenStackAuthenticationSucceeded").starts_with("False/OpenStackAuthenticationFailed"));
    world.cloud(|cloud, _| {
        use cloud_emulator::kit::EmulatedCloud;
        cloud.kit_mut().admit("controller", "secret-1");
    });
    assert_eq!(world.serve().await, Progress::Done);
    assert!(world.said("OpenStackAuthenticationSucceeded").starts_with("True"));
}

#[tokio::test]
async fn a_token_that_ends_in_mid_run_is_replaced_once_and_nothing_is_doubled() {
    let mut world = World::new(&json!({}));
    for kind in ["ports", "servers"] {
        world.strike(
            json!({"match": {"kind": kind, "verb": "create"}, "times": 1, "action": {"status": {"status": 401}}}),
        );
    }
    assert_eq!(world.serve().await, Progress::Done);
    assert_eq!((world.made("server"), world.made("port")), (1, 1));
    assert_eq!(world.calls(&CallFilter { kind: Some("tokens".into()), ..CallFilter::default() }), 3);
}

#[tokio::test]
async fn ports_are_marked_in_their_descriptions_and_a_cloud_without_tags_will_do() {
    for (lacks, tagged) in [(vec![], true), (vec!["standard-attr-tag"], false)] {
        let lacks = lacks.into_iter().map(str::to_owned).collect();
        let mut world = World::with(&full(), Settings { lacks, ..Settings::default() });
        world.inputs.held().user_data.insert("data".into(), b"x".to_vec());
        assert_eq!(world.serve().await, Progress::Done, "{}", world.said("InstanceReady"));
        let port = &world.living("port")[0];
        assert!(port.fields["description"].as_str().unwrap().contains("custody-owner="), "{:?}", port.fields);
        assert_eq!(port.fields["tags"].as_array().unwrap().contains(&json!("first")), tagged);
        world.delete();
        world.serve().await;
        assert!(world.is_gone());
        assert_eq!(world.all_living(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_cloud_without_trunks_is_said_before_anything_is_made() {
    let lacks = ["trunk".to_owned()].into();
    let mut world = World::with(&full(), Settings { lacks, ..Settings::default() });
    world.serve().await;
    assert!(world.said("InstanceReady").contains("no trunk extension"), "{}", world.said("InstanceReady"));
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn user_data_is_waited_for() {
    let mut world = World::new(&json!({"userDataRef": {"name": "data"}}));
    world.serve().await;
    let text = world.said("InstanceReady");
    assert!(text.contains("WaitingForDependency") && text.contains("data"), "{text}");
    assert_eq!(world.writes(), Vec::<String>::new());
    world.inputs.held().user_data.insert("data".into(), b"hello".to_vec());
    assert_eq!(world.serve().await, Progress::Done);
    assert_eq!(world.living("server")[0].fields["OS-EXT-SRV-ATTR:user_data"], "aGVsbG8=");
}

#[tokio::test]
async fn a_pools_address_is_put_on_the_port_behind_the_right_router() {
    let mut world = World::new(&json!({
        "ports": [{"network": {"filter": {"name": "other"}}}, {"network": {"filter": {"name": "private"}}}],
        "floatingIPPoolRef": {"apiGroup": "x", "kind": "Pool", "name": "p"}}));
    world.serve().await;
    assert!(world.said("InstanceReady").contains("WaitingForIPAddressClaim"), "{}", world.said("InstanceReady"));
    assert_eq!(world.writes(), Vec::<String>::new());
    let floating = world.plant("fip", json!({"floating_network_id": "7e700000-0000-4000-8000-00000000000e", "floating_ip_address": "203.0.113.77", "port_id": null}));
    world.inputs.held().address = Some("203.0.113.77".into());
    assert_eq!(world.serve().await, Progress::Done, "{}", world.said("FloatingAddressFromPoolReady"));
    let port = &world.living("port").into_iter().find(|it| it.fields["name"] == "srv-1").unwrap();
    let leads = world.living("fip")[0].fields["port_id"].clone();
    assert_eq!((world.living("fip")[0].id.clone(), leads), (floating, json!(port.id)));
    // Nova's own list of it is minutes old
    let told = json!({"type": "ExternalIP", "address": "203.0.113.77"});
    assert!(world.status()["addresses"].as_array().unwrap().contains(&told), "{}", world.status());
    assert!(world.said("FloatingAddressFromPoolReady").starts_with("True"));
    world.delete();
    world.serve().await;
    assert!(world.is_gone());
    assert_eq!(world.living("fip").len(), 1, "the pool's address is the pool's");
}

#[tokio::test]
async fn soft_deleted_servers_are_left_to_the_cloud_unless_they_shall_be_ended() {
    let soft = |lacks: &[&str]| {
        let lacks = lacks.iter().map(|it| (*it).to_owned()).collect();
        World::with(&json!({"rootVolume": {"sizeGiB": 1}}), Settings { lacks, ..Settings::default() })
    };
    let mut world = soft(&["hard-delete"]);
    world.force();
    assert_eq!(world.serve().await, Progress::Done);
    world.delete();
    world.serve().await;
    assert!(world.is_gone() && world.all_living().is_empty(), "{}", world.said("InstanceReady"));
    // where nobody asked for it, or nobody lets us: the server counts as gone, but its port and volume are not left behind for nobody
    for (lacks, forces) in [(&["hard-delete"][..], false), (&["hard-delete", "force-delete"], true)] {
        let mut world = soft(lacks);
        if forces {
            world.force();
        }
        assert_eq!(world.serve().await, Progress::Done);
        world.delete();
        for _ in 0..3 {
            world.serve().await;
        }
        let server = world.living("server")[0].id.clone();
        assert!(!world.is_gone());
        assert_eq!(world.log().iter().any(|it| it == "servers action"), forces);
        let said = world.said("InstanceReady");
        assert!(said.contains(&format!("in use by {server}")), "{said}");
        // when the cloud reclaims it, then the rest goes, too
        world.remove(&server);
        world.settle();
        world.serve().await;
        assert!(world.is_gone() && world.all_living().is_empty(), "{}", world.said("InstanceReady"));
    }
}

#[tokio::test]
async fn a_volume_in_error_is_replaced_before_there_is_a_server() {
    let mut world = World::new(&json!({"rootVolume": {"sizeGiB": 1}}));
    world.fail_next("volume", "no space");
    for _ in 0..4 {
        world.serve().await;
        world.pass(Duration::from_secs(90));
    }
    assert_eq!(world.serve().await, Progress::Done, "{}", world.said("InstanceReady"));
    assert_eq!((world.living("volume").len(), world.made("volume"), world.made("server")), (1, 2, 1));
}

#[tokio::test]
async fn another_flavor_and_ports_of_others_are_told_as_drift() {
    let mut world = World::new(&json!({}));
    assert_eq!(world.serve().await, Progress::Done);
    let id = world.living("server")[0].id.clone();
    world.settle();
    assert_eq!(world.visit().await, Progress::Done);
    assert_eq!(world.condition("Drifted"), None);
    // when somebody resizes it and plugs a port into it
    world.drift(&id, "!flavor", "m1.tiny");
    let private = "7e700000-0000-4000-8000-000000000001";
    let port = world.plant("port", json!({"name": "theirs", "network_id": private, "server_id": id}));
    let volume = world.plant("volume", json!({"name": "pvc", "size": 1, "server_id": id}));
    world.settle();
    assert_eq!(world.visit().await, Progress::Done);
    let said = world.said("Drifted");
    assert!(said.starts_with("True") && said.contains("flavor of the server") && said.contains(&port), "{said}");
    assert!(!said.contains(&volume), "a volume beside is its storage driver's business: {said}");
    // when it is as before, then so is the condition
    world.drift(&id, "!flavor", "m1.small");
    world.remove(&port);
    world.settle();
    assert_eq!(world.visit().await, Progress::Done);
    assert!(world.said("Drifted").starts_with("False"), "{}", world.said("Drifted"));
}

#[tokio::test]
async fn a_trunk_that_is_gone_holds_nothing_up() {
    let mut world = World::new(&full());
    world.inputs.held().user_data.insert("data".into(), b"x".to_vec());
    assert_eq!(world.serve().await, Progress::Done);
    let trunk = world.living("trunk")[0].id.clone();
    world.delete();
    world.visit().await;
    world.remove(&trunk);
    world.serve().await;
    assert!(world.is_gone() && world.all_living().is_empty(), "{}", world.said("InstanceReady"));
}

#[tokio::test]
async fn a_list_that_is_older_than_the_server_is_no_drift() {
    let mut world = World::new(&json!({"rootVolume": {"sizeGiB": 1}}));
    world.configure(|s| {
        s.build.insert("volumes".into(), cloud_emulator::kit::Lag::FixedMs(8_000));
    });
    assert_eq!(world.serve().await, Progress::Done);
    // when the next visits come while the lists are shared that were read before there was a server
    for _ in 0..8 {
        world.pass(Duration::from_mins(1));
        assert_eq!(world.visit().await, Progress::Done);
        assert_eq!(world.condition("Drifted"), None);
    }
}
