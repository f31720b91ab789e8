//! A leader that stands still in mid-call, and wakes up when another leads.
use crate::owners::{one_of_each, small};
use crate::stage::{GRACE, PATIENCE, Stage};
use crate::{seen, tell};
use common::clock::{Boot, Clock, SystemClock};
use e2e::{ControllerProcess, Error, Result, Seen, env, until};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn frozen_leader_wakes_up_and_doubles_nothing() {
    tell("frozen_leader_wakes_up_and_doubles_nothing", story()).await;
}

/// Is this replica the leader, by its own word?
async fn leads(replica: &ControllerProcess) -> Result<bool> {
    let metrics = replica.metrics().await?;
    let line = metrics.lines().find(|line| line.starts_with("leader_election_master_status"));
    Ok(line.is_some_and(|line| line.ends_with(" 1")))
}

async fn lease(stage: &Stage) -> Result<LeaseSpec> {
    let leases: Api<Lease> = Api::namespaced(stage.cluster.client().await?, stage.account.namespace());
    leases.get("sample").await?.spec.ok_or_else(|| Error::other("a Lease without a word"))
}

/// The leader first.
async fn elected(a: ControllerProcess, b: ControllerProcess) -> Result<(ControllerProcess, ControllerProcess)> {
    let first = until("one of two to lead", PATIENCE, || async {
        Ok(match (leads(&a).await?, leads(&b).await?) {
            (true, false) => Seen::Yes(true),
            (false, true) => Seen::Yes(false),
            both => Seen::NotYet(format!("{both:?}")),
        })
    })
    .await?;
    Ok(if first { (a, b) } else { (b, a) })
}

async fn story() -> Result<()> {
    // given two replicas under one Lease; the terms are the shipped ones when the freeze lasts a minute
    let freeze = env::seconds(env::FREEZE, 20);
    let (lasts, renew, retry) = (freeze / 2, freeze / 4, freeze / 20);
    let stage = Stage::set("freeze").await?;
    let replica = |name: &str| -> Result<ControllerProcess> {
        let terms = [("lease-duration", lasts), ("renew-deadline", renew), ("retry-period", retry)];
        // An owner at rest is looked at once in this time: then at the latest a double is seen.
        let launch = stage.launch(name)?.env("POD_NAME", name).arg("--resync=20s");
        let launch = terms.iter().fold(launch, |l, (flag, time)| l.arg(format!("--{flag}={}ms", time.as_millis())));
        launch.start()
    };
    let (mut a, mut b) = (replica("a")?, replica("b")?);
    a.wait_ready(PATIENCE).await?;
    b.wait_ready(PATIENCE).await?;
    let (mut leader, mut standby) = elected(a, b).await?;
    stage.create("before", &one_of_each()).await?;
    stage.wait_ready("before").await?;
    // when the leader freezes while a create without a token is on its way, so slow that the cloud carries it out only after the
    // other leader has made one of its own
    let lands = freeze + Duration::from_secs(20);
    let late = json!({"match": {"kind": "disks", "verb": "create"}, "action": {"late": {"ms": lands.as_millis()}}});
    stage.cloud.hurt(&[late]).await?;
    let mark = stage.cloud.mark().await?;
    stage.create("during", &one_of_each()).await?;
    until("a create on its way", PATIENCE, || async {
        let calls = stage.cloud.calls_since(mark).await?;
        let disks = calls.get(&("disks".to_owned(), "create".to_owned())).copied().unwrap_or(0);
        Ok(if disks > 0 { Seen::Yes(()) } else { Seen::NotYet(format!("{calls:?}")) })
    })
    .await?;
    leader.freeze()?;
    let (frozen, froze_at) = (SystemClock.boot(), SystemClock.wall());
    let renewed = lease(&stage).await?.renew_time.ok_or_else(|| Error::other("a Lease that was never renewed"))?.0;
    stage.cloud.emulator.clear_faults().await?;
    // and owners keep coming
    let mut taken_over = false;
    let mut count = 0;
    while SystemClock.boot() < frozen + freeze {
        count += 1;
        stage.create(&format!("frozen-{count}"), &small()).await?;
        let next = SystemClock.boot() + freeze / 10;
        while SystemClock.boot() < next {
            SystemClock.sleep_until(SystemClock.boot() + freeze / 100).await;
            taken_over = taken_over || leads(&standby).await?;
        }
    }
    // then the other leads and goes on before the frozen one wakes up: once the Lease has run out, not a second lease later
    assert!(taken_over, "nobody took over");
    let acquired = lease(&stage).await?.acquire_time.ok_or_else(|| Error::other("a Lease that nobody acquired"))?.0;
    let silent = acquired.duration_since(renewed).unsigned_abs();
    assert!(silent >= lasts && silent < lasts + lasts / 2, "a lease of {lasts:?} was silent for {silent:?}");
    for name in ["during", "frozen-1"] {
        stage.wait_ready(name).await?;
    }
    leader.unfreeze()?;
    let most = watch_doubles(&stage, frozen + lands + Duration::from_secs(5)).await?;
    assert!(most <= 1, "one create was frozen, and {most} things are doubled");
    // and the one that woke up ends by itself, as one that lost its lease must; its pod would start again
    let ended = leader.wait(PATIENCE).await?;
    assert_eq!(ended.code(), Some(1), "{}", leader.log_tail(20));
    leader.restart().await?;
    // and everything comes to rest: nothing doubled, nothing lost
    let all = stage.wait_for_rest().await?;
    assert_eq!(all.len(), count + 2);
    seen(&format!(
        "frozen for {freeze:?}, lease {lasts:?}: the other led {:.1} s after the freeze, {:.1} s after the last renewal; {count} owners created meanwhile; at most {most} doubled \
         after the wake-up, 0 at rest",
        acquired.duration_since(froze_at).as_secs_f64(),
        silent.as_secs_f64(),
    ));
    stage.delete_all().await?;
    standby.stop(GRACE).await?;
    leader.stop(GRACE).await?;
    stage.clear().await
}

/// The most doubles seen at once until then.
async fn watch_doubles(stage: &Stage, until: Boot) -> Result<usize> {
    let mut most = 0;
    while SystemClock.boot() < until {
        let things = stage.cloud.things().await?;
        most = most.max(crate::judge::judge(&things, &std::collections::BTreeMap::new()).doubled.len());
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_millis(100)).await;
    }
    Ok(most)
}
