//! An API server that answers wrongly, goes away, or stores what does not fit: the controller keeps running and catches up.
use crate::churn::Churn;
use crate::owners::{is_stalled, one_of_each, small};
use crate::stage::{BINARY, PATIENCE, Stage};
use crate::{seen, tell};
use common::clock::{Clock, SystemClock};
use common::names::reason;
use common::random::Random;
use e2e::fault_proxy::{FaultProxy, Trouble};
use e2e::{Account, ControlPlane, Result, Seen, env, until};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn wrong_answers_of_the_api_server_are_survived() {
    tell("wrong_answers_of_the_api_server_are_survived", wrong_answers()).await;
}

async fn wrong_answers() -> Result<()> {
    // given a controller that reaches the API server through a proxy that strikes one request in four and every other watch
    let seed = env::number(env::SEED, 1);
    let mut stage = Stage::set("proxy").await?;
    let proxy = FaultProxy::start(&stage.account, seed).await?;
    stage.account = stage.account.through(proxy.address())?;
    let mut controller = stage.start().await?;
    proxy.rage();
    // when owners come, change and go meanwhile
    let dice = Random::seeded(seed);
    let mut churn = Churn::new(&stage, &dice);
    for _ in 0..24 {
        churn.act().await?;
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_millis(500)).await;
        controller.must_run()?;
    }
    // then it keeps running, and everything comes to rest even without a calm
    let all = stage.wait_for_rest().await?;
    controller.must_run()?;
    let struck = proxy.struck();
    let spared: Vec<Trouble> = FaultProxy::all_troubles().into_iter().filter(|it| !struck.contains_key(it)).collect();
    assert!(
        spared.is_empty() && struck.values().sum::<u64>() > 50,
        "too little happened: {struck:?}, never {spared:?}"
    );
    seen(&format!(
        "{} requests struck ({struck:?}); {} owners at rest, 0 doubled, 0 lost",
        struck.values().sum::<u64>(),
        all.len()
    ));
    proxy.calm();
    stage.delete_all().await?;
    controller.kill().await?;
    stage.clear().await
}

#[tokio::test]
async fn an_api_server_that_goes_away_is_waited_for() {
    tell("an_api_server_that_goes_away_is_waited_for", away()).await;
}

async fn away() -> Result<()> {
    // given a control plane that this test may take away, and a ready owner
    let mut plane = ControlPlane::start().await?;
    let stage = Stage::set_on(plane.cluster(), "away").await?;
    let mut controller = stage.start().await?;
    stage.create("before", &one_of_each()).await?;
    stage.wait_ready("before").await?;
    does_not_fit(&stage).await?;
    // when the API server goes away in the middle of the work on another owner
    let lasting = env::seconds(env::OUTAGE, 15);
    let late = json!({"match": {"verb": "create"}, "action": {"delay": {"ms": 700}}});
    stage.cloud.hurt(&[late]).await?;
    let mark = stage.cloud.mark().await?;
    stage.create("during", &one_of_each()).await?;
    until("a create on its way", PATIENCE, || async {
        let creates = stage.cloud.count_since(mark, &["create"]).await?;
        Ok(if creates > 0 { Seen::Yes(()) } else { Seen::NotYet("no create yet".to_owned()) })
    })
    .await?;
    plane.take_api_server_away().await?;
    SystemClock.sleep_until(SystemClock.boot() + lasting).await;
    controller.must_run()?;
    plane.bring_api_server_back().await?;
    // then the controller is still there and catches up, with that owner and with new ones
    stage.create("after", &small()).await?;
    stage.wait_for_rest().await?;
    controller.must_run()?;
    let made = stage.cloud.things().await?.iter().filter(|thing| thing.is_ours()).count();
    seen(&format!("API server away for {lasting:?} in mid-creation: caught up, {made} things made for 16 wishes"));
    assert_eq!(made, 16);
    stage.delete_all().await?;
    controller.kill().await?;
    stage.clear().await?;
    plane.stop().await
}

/// An object that is stored but does not fit its type stops nobody else, and is served once it fits.
async fn does_not_fit(stage: &Stage) -> Result<()> {
    // given a definition that lets everything through, as an older one may have
    let definitions: Api<CustomResourceDefinition> = Api::all(stage.cluster.client().await?);
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let loose = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]);
    let loose: Patch<()> = Patch::Json(serde_json::from_value(loose).map_err(e2e::Error::other)?);
    definitions.patch("sampleowners.sample.custody.dev", &PatchParams::default(), &loose).await?;
    // when an object is stored that is none
    until("the API server to take anything", PATIENCE, || async {
        let stored = stage.create("misfit", &json!({"networks": "none of your business"})).await;
        Ok(stored.map_or_else(|error| Seen::NotYet(error.to_string()), |_| Seen::Yes(())))
    })
    .await?;
    // then it says so, and others are served
    stage.wait("misfit", "to be called invalid", |object| is_stalled(object, reason::INVALID_OBJECT)).await?;
    stage.create("beside", &small()).await?;
    stage.wait_ready("beside").await?;
    // when it is repaired, then it is served
    stage.patch("misfit", &json!({"spec": small()})).await?;
    stage.wait_ready("misfit").await?;
    for name in ["misfit", "beside"] {
        stage.delete(name).await?;
        stage.wait_gone(name).await?;
    }
    Account::shipped(&stage.cluster, BINARY).await.map(drop)
}
