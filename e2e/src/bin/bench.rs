//! The bench: how much memory a controller's release binary takes, idle and with many converged owners, and how soon an event
//! becomes a pass. Memory is judged, because it is the same on every machine; times are only told.
#![allow(clippy::print_stdout)] // printing is what it is for
use clap::Parser;
use common::clock::{Clock, SystemClock};
use common::names;
use e2e::account::Account;
use e2e::controller::{ControllerProcess, Launch};
use e2e::emulator::EmulatorProcess;
use e2e::patience::dynamic_api;
use e2e::{Cluster, ControlPlane, Error, Result, Seen, until};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const CONTROLLER: &str = "sample-controller";
const TOKEN: &str = "the-controllers-own-token";
const PATIENCE: Duration = Duration::from_hours(1);
/// Requests to the API server at once: enough to keep it busy on two cores.
const AT_ONCE: usize = 16;
const SAMPLES: usize = 100;

/// Measures a controller's release binary.
#[derive(Parser)]
struct Cli {
    /// The binary to measure.
    #[arg(long)]
    controller: PathBuf,
    /// So many owners, each with one network.
    #[arg(long, default_value_t = 10_000)]
    owners: u64,
    /// At most so many MB with all owners converged.
    #[arg(long, default_value_t = 60.0)]
    most_loaded_mb: f64,
    /// At most so many MB without any.
    #[arg(long, default_value_t = 12.0)]
    most_idle_mb: f64,
}

#[tokio::main]
async fn main() -> ExitCode {
    match measure(&Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(cli: &Cli) -> Result<()> {
    let plane = ControlPlane::start().await?;
    let cluster = plane.cluster();
    let cloud = EmulatorProcess::start(cluster, "sample", "cloud", &[(CONTROLLER, TOKEN)]).await?;
    let mut controller = start(cli, cluster, &cloud).await?;
    let owners =
        dynamic_api(cluster.client().await?, "default", "sample.custody.dev/v1alpha1", "SampleOwner", "sampleowners");

    quiet(&controller).await?;
    let idle = memory_mb(&controller, "VmRSS")?;
    println!("SEEN: idle {idle:.1} MB resident");

    println!("creating {} owners", cli.owners);
    create(&owners, cli.owners).await?;
    converge(&cloud, &controller, cli.owners).await?;
    let (loaded, peak) = (memory_mb(&controller, "VmRSS")?, memory_mb(&controller, "VmHWM")?);
    println!("SEEN: {loaded:.1} MB resident with {} converged owners, {peak:.1} MB at its peak", cli.owners);

    let mut waits = Vec::with_capacity(SAMPLES);
    for n in 0..SAMPLES {
        waits.push(event_to_pass(&owners, &name(n as u64 % cli.owners)).await?);
    }
    waits.sort();
    let (median, worst) = (waits[SAMPLES / 2], waits[SAMPLES * 99 / 100]);
    println!("SEEN: event to the pass's own write, {SAMPLES} times: median {median:.1?}, 99th percentile {worst:.1?}");

    controller.stop(Duration::from_secs(30)).await?;
    cloud.stop().await?;
    plane.stop().await?;
    let too_much =
        |what: &str, is: f64, most: f64| (is > most).then(|| format!("{what}: {is:.1} MB, at most {most:.1}"));
    let verdict = [too_much("idle", idle, cli.most_idle_mb), too_much("with all owners", loaded, cli.most_loaded_mb)];
    match verdict.into_iter().flatten().reduce(|all, one| format!("{all}; {one}")) {
        None => Ok(()),
        Some(message) => Err(Error::other(message)),
    }
}

async fn start(cli: &Cli, cluster: &Cluster, cloud: &EmulatorProcess) -> Result<ControllerProcess> {
    let account = Account::shipped(cluster, CONTROLLER).await?;
    let token = cluster.folder().write("cloud-token", TOKEN)?;
    let launch = Launch::program(cluster, cli.controller.clone(), CONTROLLER)?;
    let listen = launch.listen();
    let launch = launch
        .arg("run")
        .arg(format!("--listen={listen}"))
        .arg(format!("--cloud-url={}", cloud.url()))
        .arg(format!("--token-file={}", token.display()))
        .env("KUBECONFIG", account.kubeconfig().display().to_string());
    let mut controller = launch.start()?;
    controller.wait_ready(PATIENCE).await?;
    Ok(controller)
}

fn name(number: u64) -> String {
    format!("owner-{number:05}")
}

async fn create(owners: &Api<DynamicObject>, count: u64) -> Result<()> {
    let one = |number: u64| async move {
        let (high, low) = (number / 256 % 256, number % 256);
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "sample.custody.dev/v1alpha1",
            "kind": "SampleOwner",
            "metadata": {"name": name(number)},
            "spec": {"networks": [{"name": "net", "cidr": format!("10.{high}.{low}.0/24")}]},
        }))
        .map_err(Error::other)?;
        owners.create(&PostParams::default(), &object).await?;
        Ok::<(), Error>(())
    };
    stream::iter((0..count).map(one)).buffer_unordered(AT_ONCE).try_collect().await
}

/// Waits until every owner has its network and the controller has nothing left to do.
async fn converge(cloud: &EmulatorProcess, controller: &ControllerProcess, count: u64) -> Result<()> {
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
async fn quiet(controller: &ControllerProcess) -> Result<()> {
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

fn memory_mb(controller: &ControllerProcess, field: &str) -> Result<f64> {
    let path = format!("/proc/{}/status", controller.pid().as_raw_nonzero());
    let text = std::fs::read_to_string(&path).map_err(|error| Error::other(format!("{path}: {error}")))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map(|kb| kb / 1024.0).ok_or_else(|| Error::other(format!("no {field} in {path}")))
}

/// A needless `take-over: none` is taken off by the very next pass, before any call to the cloud: from the API server's answer
/// to ours until the pass's own write shows.
async fn event_to_pass(owners: &Api<DynamicObject>, name: &str) -> Result<Duration> {
    let mut ask = json!({"metadata": {"annotations": {}}});
    ask["metadata"]["annotations"][names::TAKE_OVER] = Value::from("none");
    owners.patch(name, &PatchParams::default(), &Patch::Merge(ask)).await?;
    let began = SystemClock.boot();
    loop {
        let object = owners.get_metadata(name).await?;
        if !object.metadata.annotations.unwrap_or_default().contains_key(names::TAKE_OVER) {
            return Ok(SystemClock.boot().since(began));
        }
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_millis(1)).await;
    }
}
