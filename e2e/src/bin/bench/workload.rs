//! Many owners of 4 KB, kept in the cache and left alone: paused, or each with its network.
use crate::PATIENCE;
use common::clock::{Clock, SystemClock};
use common::names;
use e2e::controller::ControllerProcess;
use e2e::emulator::EmulatorProcess;
use e2e::patience::has_condition;
use e2e::{Error, Result, Seen, until};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;
use std::time::Duration;

/// Requests to the API server at once: enough to keep it busy on two cores.
const AT_ONCE: usize = 16;
/// What people write down beside; brings an owner to 4 KB with what the API server and the controller add.
const NOTES: usize = 900;
/// A paused one has no ledger and little status.
const NOTES_OF_PAUSED: usize = 2300;

pub(crate) fn name(number: u64) -> String {
    format!("owner-{number:05}")
}

/// So many bytes of words as people use them, different for every owner: what is all alike would pack to nothing.
fn prose(seed: u64, length: usize) -> String {
    const WORDS: &str = "the team that runs this cluster keeps its notes here because nobody reads another page when it burns: who to \
        call, which network belongs to whom, why the second address must stay, what was tried before and did not help, links and dates";
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let (mut text, mut state) = (String::with_capacity(length + 16), seed.wrapping_add(1));
    while text.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (word, number) = ((state >> 33) % words.len() as u64, state >> 54);
        text.push_str(words[usize::try_from(word).unwrap_or_default()]);
        text.push(' ');
        if number.is_multiple_of(4) {
            text.push_str(&number.to_string());
            text.push(' ');
        }
    }
    text.truncate(length);
    text
}

pub(crate) async fn create(owners: &Api<DynamicObject>, count: u64, paused: bool) -> Result<()> {
    let one = |number: u64| async move {
        let (high, low) = (number / 256 % 256, number % 256);
        let notes = prose(number, if paused { NOTES_OF_PAUSED } else { NOTES });
        let mut object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "sample.custody.dev/v1alpha1",
            "kind": "SampleOwner",
            "metadata": {"name": name(number), "annotations": {"example.com/notes": notes}},
            "spec": {"networks": [{"name": "net", "cidr": format!("10.{high}.{low}.0/24")}]},
        }))
        .map_err(Error::other)?;
        if paused {
            object.metadata.annotations.get_or_insert_default().insert(names::PAUSED.to_owned(), String::new());
        }
        owners.create(&PostParams::default(), &object).await?;
        Ok::<(), Error>(())
    };
    stream::iter((0..count).map(one)).buffer_unordered(AT_ONCE).try_collect().await
}

/// The size of one owner as the API server sends it.
pub(crate) async fn json_bytes(owners: &Api<DynamicObject>) -> Result<usize> {
    let object = owners.get(&name(0)).await?;
    Ok(serde_json::to_vec(&object).map_err(Error::other)?.len())
}

/// Waits until every owner says that it is paused, and the controller has nothing left to do.
pub(crate) async fn rest(owners: &Api<DynamicObject>, controller: &ControllerProcess, count: u64) -> Result<()> {
    quiet(controller).await?;
    for number in [0, count / 2, count.saturating_sub(1)] {
        let paused = |object: &DynamicObject| has_condition(object, "Paused", "True");
        e2e::wait_for_object(owners, &name(number), "a paused owner", PATIENCE, paused).await?;
    }
    Ok(())
}

/// Waits until every owner has its network and the controller has nothing left to do.
pub(crate) async fn converge(cloud: &EmulatorProcess, controller: &ControllerProcess, count: u64) -> Result<()> {
    let told = std::cell::Cell::new(0);
    until("all networks", PATIENCE, || async {
        let made = cloud.things().await?.as_array().map_or(0, |list| list.len() as u64);
        if made >= told.get() + count.div_ceil(10) {
            println!("   {made} of {count}");
            told.set(made);
        }
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_secs(2)).await;
        Ok(if made >= count { Seen::Yes(()) } else { Seen::NotYet(format!("{made} networks")) })
    })
    .await?;
    quiet(controller).await
}

/// Nothing queued and nothing running for ten looks in a row.
pub(crate) async fn quiet(controller: &ControllerProcess) -> Result<()> {
    let still = std::cell::Cell::new(0);
    until("the controller to be quiet", PATIENCE, || async {
        let metrics = controller.metrics().await?;
        let busy = sum(&metrics, "workqueue_depth") + sum(&metrics, "controller_runtime_active_workers");
        still.set(if busy > 0.0 { 0 } else { still.get() + 1 });
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_secs(1)).await;
        Ok(if still.get() >= 10 { Seen::Yes(()) } else { Seen::NotYet(format!("{busy} keys queued or running")) })
    })
    .await
}

/// The sum of a metric over its labels.
fn sum(metrics: &str, name: &str) -> f64 {
    let lines = metrics.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
