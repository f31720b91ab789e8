//! Killed with SIGKILL again and again through creation and deletion, while the cloud is at its worst.
use crate::stage::{PATIENCE, Stage, full};
use crate::{seen, tell};
use common::clock::{Clock, SystemClock};
use common::random::Random;
use e2e::{Result, env};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn kill_9_through_creation_leaves_one_server_each() {
    tell("kill_9_through_creation_leaves_one_server_each", story()).await;
}

fn lag() -> Value {
    let up_to = |ms: u64| json!({"up_to_ms": ms});
    json!({
        "lag": {"list": up_to(1500), "get": up_to(500), "ghost": up_to(1500)},
        "build": {"servers": up_to(1500), "volumes": up_to(1000)}, "deletion": {"servers": up_to(1000)}, "paging": {"max": 50, "ragged": false},
    })
}
fn faults() -> Vec<Value> {
    let of_writes = |probability: f64, action: Value| json!({"match": {"mutating": true}, "probability": probability, "action": action});
    vec![
        of_writes(0.08, json!({"cut": {"effect": true}})),
        of_writes(0.04, json!({"cut": {"effect": false}})),
        of_writes(0.04, json!({"status": {"status": 500, "effect": true}})),
        of_writes(0.03, json!({"status": {"status": 503}})),
        of_writes(0.03, json!({"status": {"status": 401}})),
        of_writes(0.03, json!({"throttle": {"retry_after_s": 1}})),
        of_writes(0.25, json!({"delay": {"ms": 400}})),
        json!({"match": {"mutating": false}, "probability": 0.02, "action": {"status": {"status": 404}}}),
    ]
}

/// Puts a sub-port on the trunk of a server, if it has come that far; says whether it has one.
async fn ride(stage: &Stage, number: u32) -> Result<bool> {
    let name = format!("srv-{number}-0");
    let Some(trunk) = stage.living("trunk").await?.into_iter().find(|it| it.fields["name"] == name) else {
        return Ok(false);
    };
    let network = "7e700000-0000-4000-8000-000000000002";
    let planted = json!({"kind": "port", "fields": {"name": format!("riding-{number}"), "network_id": network}});
    let port = stage.emulator.plant(&planted).await?["id"].clone();
    let sub_port = json!({"port_id": port, "segmentation_type": "vlan", "segmentation_id": 100});
    // Faults strike everybody: one that did not get on is nobody's any more.
    let rides = stage.ride(&trunk.id, &[sub_port]).await.is_ok();
    if !rides {
        stage.emulator.delete_by_hand(port.as_str().unwrap_or_default()).await?;
    }
    Ok(rides)
}

async fn story() -> Result<()> {
    let (seed, lasting) = (env::number(env::SEED, 1), env::seconds(env::KILLS, 40));
    let dice = Random::seeded(seed);
    let stage = Stage::set("kill").await?;
    stage.behave(&lag()).await?;
    for fault in faults() {
        stage.emulator.add_faults(&fault).await?;
    }
    let mut controller = stage.start().await?;
    let (mut created, mut deleted, mut kills, mut riding) = (0_u32, 0_u32, 0_u32, 0_u32);
    let deadline = SystemClock.boot() + lasting;
    while SystemClock.boot() < deadline {
        if created < 8 {
            stage.create(&format!("srv-{created}"), &full()).await?;
            created += 1;
        } else if deleted < 4 && dice.one_in(3) {
            // Half of them have a sub-port by then, which goes with the trunk through the kills.
            if dice.one_in(2) {
                riding += u32::from(ride(&stage, deleted).await?);
            }
            stage.delete(&format!("srv-{deleted}")).await?;
            deleted += 1;
        }
        let pause = Duration::from_millis(200 + dice.below(1500));
        SystemClock.sleep_until(SystemClock.boot() + pause).await;
        if dice.one_in(2) {
            kills += 1;
            controller.restart().await?;
        }
    }
    stage.emulator.clear_faults().await?;
    controller.wait_ready(PATIENCE).await?;
    let left = stage.wait_for_rest(6).await?;
    let made = stage.things().await?.iter().filter(|it| it.is_ours()).count();
    seen(&format!(
        "{kills} kills in {lasting:?} (seed {seed}), {created} servers created, {deleted} deleted, {riding} of them with a sub-port; {made} things made, 0 doubled, 0 orphaned, {left} servers at rest"
    ));
    stage.delete_all().await?;
    let riders = stage.living("port").await?;
    assert!(riders.is_empty(), "what rode on a trunk of ours goes with it: {riders:?}");
    controller.must_run()?;
    controller.kill().await?;
    stage.clear().await
}
