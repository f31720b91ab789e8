//! Killed with SIGKILL again and again, while owners come and go and the cloud is at its worst.
use crate::churn::Churn;
use crate::stage::{PATIENCE, Stage};
use crate::{seen, tell};
use common::clock::{Clock, SystemClock};
use common::random::Random;
use e2e::{Result, env};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn kill_9_at_random_moments_doubles_nothing_and_loses_nothing() {
    tell("kill_9_at_random_moments_doubles_nothing_and_loses_nothing", story()).await;
}

/// Everything shows up late, and things on their way out still look alive.
fn lag() -> Value {
    let up_to = |ms: u64| json!({"up_to_ms": ms});
    json!({
        "lag": {"list": up_to(1500), "tags": up_to(1500), "get": up_to(500), "ghost": up_to(1500), "ghosts": "either"},
        "build": {"machines": up_to(1000)}, "deletion": {"machines": up_to(1000)}, "paging": {"max": 7, "ragged": true},
    })
}

fn faults() -> Vec<Value> {
    let of_writes = |probability: f64, action: Value| json!({"match": {"mutating": true}, "probability": probability, "action": action});
    let of_reads = |probability: f64, action: Value| json!({"match": {"mutating": false}, "probability": probability, "action": action});
    vec![
        of_writes(0.08, json!({"cut": {"effect": true}})),
        of_writes(0.04, json!({"cut": {"effect": false}})),
        of_writes(0.04, json!({"status": {"status": 500, "effect": true}})),
        of_writes(0.03, json!({"status": {"status": 503}})),
        of_writes(0.03, json!({"throttle": {"retry_after_s": 1}})),
        of_writes(0.25, json!({"delay": {"ms": 400}})),
        of_reads(0.02, json!({"status": {"status": 502}})),
        of_reads(0.02, json!("truncated")),
    ]
}

async fn story() -> Result<()> {
    // given a cloud at its worst, strangers in it, and a controller
    let (seed, lasting) = (env::number(env::SEED, 1), env::seconds(env::KILLS, 45));
    let dice = Random::seeded(seed);
    let stage = Stage::set("kill").await?;
    stage.cloud.behave(&lag()).await?;
    stage.cloud.hurt(&faults()).await?;
    for n in 0..3 {
        stage.cloud.plant_network(&format!("{}.owner-{n}.net", stage.namespace()), &json!({})).await?;
    }
    let mut controller = stage.start().await?;
    // when it is killed at random moments while owners are created, edited and deleted
    let mut churn = Churn::new(&stage, &dice);
    let mut kills = 0_u32;
    let deadline = SystemClock.boot() + lasting;
    while SystemClock.boot() < deadline {
        churn.act().await?;
        let pause = Duration::from_millis(100 + dice.below(1200));
        SystemClock.sleep_until(SystemClock.boot() + pause).await;
        if dice.one_in(2) {
            kills += 1;
            controller.restart().await?;
        }
    }
    // then, once the cloud is itself again, everything comes to rest: nothing doubled, nothing lost, no stranger harmed
    stage.cloud.emulator.clear_faults().await?;
    controller.wait_ready(PATIENCE).await?;
    let all = stage.wait_for_rest().await?;
    let made = stage.cloud.things().await?.iter().filter(|thing| thing.is_ours()).count();
    let (created, edited, deleted) = (churn.created, churn.edited, churn.deleted);
    seen(&format!(
        "{kills} kills in {lasting:?} (seed {seed}), {created} owners created, {edited} edits, {deleted} deleted; {made} things \
         made, 0 doubled, 0 orphaned, 0 lost, {} owners at rest",
        all.len()
    ));
    // and it all goes away again
    stage.delete_all().await?;
    let damage = stage.damage(&[]).await?;
    assert!(damage.is_none(), "{damage}");
    controller.must_run()?;
    controller.kill().await?;
    stage.clear().await
}
