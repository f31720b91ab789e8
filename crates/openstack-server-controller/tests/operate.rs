//! What people are shown of a project: what a plan would meet with, and what there is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails
mod support;

use cloud_emulator::kit::Settings;
use common::engine::estate::Freshness;
use common::engine::preview::Act;
use common::testing::one_owner::ToldClock;
use openstack_server_controller::preflight::look_ahead;
use openstack_server_controller::quota::Needs;
use openstack_server_controller::session::Session;
use openstack_server_controller::sight::Sight;
use serde_json::{Value, json};
use std::sync::Arc;
use support::{Wire, inputs, sessions};

fn project(settings: Settings) -> (Arc<Wire>, Arc<Session>) {
    let time = Arc::new(ToldClock::default());
    let wire = Wire::of(settings, &time);
    let config = inputs().held().cloud.clone().unwrap();
    let session = sessions(&wire, &time).of(&config).unwrap();
    (wire, session)
}
fn create(slot: &str, params: Value) -> Act {
    Act::Create { slot: slot.to_owned(), params }
}

#[tokio::test]
async fn an_audit_sees_the_rest_of_a_cloud_without_block_storage_trunks_and_balancers() {
    let lacks = ["block-storage", "trunk", "load-balancer"].map(str::to_owned).into();
    let (wire, session) = project(Settings { lacks, ..Settings::default() });
    let server = wire.plant("server", json!({"name": "srv"}));
    let mut sight = Sight::default();
    sight.look("p", &session, Freshness::Any).await;
    assert_eq!(sight.unseen, Vec::<String>::new());
    assert_eq!(sight.absent, ["p has no volumes", "p has no trunks", "p has no load balancers"]);
    assert!(sight.found.iter().any(|it| it.id == server));
    // where one list fails, that is told, and the others are read
    let (wire, session) = project(Settings::default());
    let server = wire.plant("server", json!({"name": "srv"}));
    let fault = json!({"match": {"kind": "volumes"}, "action": {"status": {"status": 400}}});
    wire.cloud(|cloud, _| {
        use cloud_emulator::kit::EmulatedCloud;
        cloud.kit_mut().faults.add(serde_json::from_value(fault).unwrap());
    });
    let mut sight = Sight::default();
    sight.look("p", &session, Freshness::Any).await;
    assert!(sight.unseen.len() == 1 && sight.unseen[0].starts_with("p: volumes: "), "{:?}", sight.unseen);
    assert!(sight.found.iter().any(|it| it.id == server));
}

#[tokio::test]
async fn a_plan_knows_what_the_quotas_leave_and_what_is_not_there() {
    let quotas =
        [("servers", 5), ("cores", 2), ("ram", 1024), ("ports", 1), ("trunks", 0), ("volumes", 1), ("gigabytes", 10)];
    let quotas = quotas.map(|(name, most)| (name.to_owned(), most)).into();
    let (wire, session) = project(Settings { quotas, ..Settings::default() });
    // given a server of one core and 512 MB, and a volume of 4 GiB
    wire.plant("server", json!({"name": "other", "flavor": {"original_name": "m1.small"}}));
    wire.plant("volume", json!({"name": "other", "size": 4}));
    let server = |more: Value| {
        let mut server = json!({"flavorRef": "2", "key_name": "key", "availability_zone": "nova:host-1"});
        server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        create("server", json!({ "server": server }))
    };
    // when what fits is planned, then nothing is said
    let mut needs = Needs::default();
    let fits = [server(json!({})), create("port-0", json!({}))];
    assert_eq!(look_ahead(session.cloud(), &fits, &mut needs).await, Ok(Vec::new()));
    assert_eq!(needs.short(&session.cloud().quotas().await.unwrap()), Vec::<String>::new());
    // when more is planned, then everything that is short is named
    let more = [
        server(json!({"key_name": "lost", "availability_zone": "closed"})),
        server(json!({"flavorRef": "nothing"})),
        create("port-1", json!({})),
        create("trunk-0", json!({})),
        create("volume-root", json!({"size": 8, "volume_type": "gold"})),
        create("volume-0", json!({"size": 1, "volume_type": "multiattach"})),
    ];
    let lacking = look_ahead(session.cloud(), &more, &mut needs).await.unwrap();
    assert_eq!(
        lacking,
        [
            "no availability zone closed takes servers",
            "there is no SSH key lost",
            "there is no flavor nothing",
            "there is no volume type gold"
        ]
    );
    let short = needs.short(&session.cloud().quotas().await.unwrap());
    let told = [
        "quota of cores: 1 of 2 used, 2 more would be made",
        "quota of RAM in MB: 512 of 1024 used, 1024 more would be made",
        "quota of ports: 0 of 1 used, 2 more would be made",
        "quota of trunks: 0 of 0 used, 1 more would be made",
        "quota of volumes: 1 of 1 used, 2 more would be made",
        "quota of gigabytes of volumes: 4 of 10 used, 9 more would be made",
    ];
    assert_eq!(short, told);
}
