//! How soon an event becomes a pass, beside what the API server's own watch takes. Both are seen by one watch of ours.
use crate::PATIENCE;
use crate::workload::name;
use common::clock::{Boot, Clock, SystemClock};
use common::names;
use e2e::patience::has_condition;
use e2e::{Error, Result};
use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::{DynamicObject, ListParams, PartialObjectMeta, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use std::time::Duration;

const SAMPLES: usize = 200;
/// So many owners are asked, in turn.
const SERVED: u64 = 20;

/// A needless `take-over: none` is taken off by the very next pass, before any call to the cloud. So one watch shows two things:
/// our own write, as late as the API server tells anybody, and the pass's.
pub(crate) async fn tell(owners: &Api<DynamicObject>, count: u64, paused: bool) -> Result<()> {
    if paused {
        serve_some(owners, count).await?;
    }
    let version = owners.list_metadata(&ListParams::default().limit(1)).await?.metadata.resource_version;
    let params = WatchParams::default().timeout(290);
    let mut events = owners.watch_metadata(&params, version.as_deref().unwrap_or("0")).await?.boxed();
    let (mut told, mut visited) = (Vec::new(), Vec::new());
    for n in 0..SAMPLES {
        let name = name(n as u64 % count.min(SERVED));
        let began = SystemClock.boot();
        let mut ask = json!({"metadata": {"annotations": {}}});
        ask["metadata"]["annotations"][names::TAKE_OVER] = Value::from("none");
        owners.patch(&name, &PatchParams::default(), &Patch::Merge(ask)).await?;
        told.push(wait(&mut events, &name, true).await?.since(began));
        visited.push(wait(&mut events, &name, false).await?.since(began));
    }
    println!("\n{:<46} {:>9} {:>9}", format!("from our write, {SAMPLES} times"), "p50", "p99");
    for (what, times) in
        [("to the API server's own watch event", &mut told), ("to the pass's own write, seen", &mut visited)]
    {
        times.sort();
        let (median, worst) = (times[SAMPLES / 2], times[SAMPLES * 99 / 100]);
        println!("{what:<46} {:>9} {:>9}", ms(median), ms(worst));
        println!("SEEN: from a write {what}: p50 {}, p99 {}", ms(median), ms(worst));
    }
    Ok(())
}

/// A paused owner gets no such pass: takes the pause off those that are asked.
async fn serve_some(owners: &Api<DynamicObject>, count: u64) -> Result<()> {
    let mut unpause = json!({"metadata": {"annotations": {}}});
    unpause["metadata"]["annotations"][names::PAUSED] = Value::Null;
    for number in 0..count.min(SERVED) {
        owners.patch(&name(number), &PatchParams::default(), &Patch::Merge(&unpause)).await?;
    }
    for number in 0..count.min(SERVED) {
        let ready = |object: &DynamicObject| has_condition(object, "Ready", "True");
        e2e::wait_for_object(owners, &name(number), "an owner to be ready", PATIENCE, ready).await?;
    }
    Ok(())
}

/// When the watch showed the object with the request on it, or without.
async fn wait(
    events: &mut (impl futures::Stream<Item = kube::Result<WatchEvent<PartialObjectMeta<DynamicObject>>>> + Unpin),
    name: &str,
    asked: bool,
) -> Result<Boot> {
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Modified(object) = event
            && object.metadata.name.as_deref() == Some(name)
            && object.metadata.annotations.unwrap_or_default().contains_key(names::TAKE_OVER) == asked
        {
            return Ok(SystemClock.boot());
        }
    }
    Err(Error::other("the watch ended"))
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
