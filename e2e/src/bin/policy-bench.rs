//! The bench of policy-pruner: many policies converge and go. Requests and memory are judged, because they are the same on every
//! machine; wall and CPU time are told, and judged only as shares of what the peer takes on the same control plane in the same run.
#![allow(clippy::print_stdout)] // printing is what it is for
use clap::Parser;
use common::clock::{Clock, SystemClock};
use e2e::controller::{ControllerProcess, Launch};
use e2e::{Account, AuditLog, Cluster, ControlPlane, Error, Result, Seen, TemporaryNamespace, until_every};
use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(30);
/// Requests of the bench itself at once.
const AT_ONCE: usize = 24;
/// Between two looks at all policies: a list of a thousand costs the API server what several policies do.
const LOOK: Duration = Duration::from_millis(500);

/// Measures policy-pruner, and the peer beside it.
#[derive(Parser)]
struct Cli {
    /// Our binary.
    #[arg(long)]
    controller: PathBuf,
    /// The peer's binary.
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Workloads: policies x objects each.
    #[arg(long, value_delimiter = ',', default_value = "1000x1,200x10")]
    load: Vec<String>,
    /// For how long converged policies are watched for requests.
    #[arg(long, default_value_t = 60)]
    quiet_seconds: u64,
    /// Show every kind of request.
    #[arg(long)]
    show_requests: bool,
    /// At most so many MB at the peak.
    #[arg(long, default_value_t = 60.0)]
    most_mb: f64,
    /// At most this share of the peer's wall time.
    #[arg(long, default_value_t = 0.25)]
    most_wall: f64,
    /// At most this share of the peer's CPU time.
    #[arg(long, default_value_t = 0.4)]
    most_cpu: f64,
}

struct Figures {
    up: Duration,
    down: Duration,
    cpu: f64,
    peak_mb: f64,
    requests: u64,
    quiet: u64,
    left: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    match measure(&Cli::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("policy-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(cli: &Cli) -> Result<bool> {
    let plane = ControlPlane::start().await?;
    let cluster = plane.cluster().clone();
    let account = Account::deployed(&cluster, "deploy/overlays/policy-pruner-all-kinds".as_ref()).await?;
    let mut good = true;
    println!(
        "{:<8} {:>9} {:>9} {:>9} {:>8} {:>8} {:>11} {:>11} {:>9}",
        "who", "load", "up s", "down s", "cpu s", "peak MB", "req/policy", "req/object", "quiet/min"
    );
    for load in &cli.load {
        let (policies, objects) = load
            .split_once('x')
            .and_then(|(p, o)| Some((p.parse().ok()?, o.parse().ok()?)))
            .ok_or_else(|| Error::other(format!("{load} is no load")))?;
        let ours = run(cli, &cluster, &account, None, policies, objects).await?;
        show("ours", load, policies, objects, &ours);
        let (per_policy, per_object) = (ratio(ours.requests, policies), ratio(ours.requests, policies * objects));
        let budget = if objects == 1 { per_policy <= 12.0 } else { per_object <= 3.0 };
        good &= budget && ours.peak_mb <= cli.most_mb && ours.quiet == 0 && ours.left == 0;
        if let Some(peer) = &cli.peer {
            let theirs = run(cli, &cluster, &account, Some(peer), policies, objects).await?;
            show("peer", load, policies, objects, &theirs);
            let (wall, cpu) = ((ours.up + ours.down).div_duration_f64(theirs.up + theirs.down), ours.cpu / theirs.cpu);
            good &= wall <= cli.most_wall && cpu <= cli.most_cpu;
            println!(
                "SEEN: {load}: {wall:.2} of the peer's wall time, {cpu:.2} of its CPU time; objects left behind: {} by the peer",
                theirs.left
            );
        }
        println!(
            "SEEN: {load}: {per_policy:.1} requests per policy, {per_object:.2} per object, peak {:.0} MB, {} requests while at rest, {} objects left behind",
            ours.peak_mb, ours.quiet, ours.left
        );
    }
    plane.stop().await?;
    Ok(good)
}

#[allow(clippy::cast_precision_loss)] // figures for people
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}
fn show(who: &str, load: &str, policies: u64, objects: u64, f: &Figures) {
    println!(
        "{who:<8} {load:>9} {:>9.1} {:>9.1} {:>8.1} {:>8.1} {:>11.1} {:>11.2} {:>9}",
        f.up.as_secs_f64(),
        f.down.as_secs_f64(),
        f.cpu,
        f.peak_mb,
        ratio(f.requests, policies),
        ratio(f.requests, policies * objects),
        f.quiet
    );
}

fn api(cluster_client: kube::Client, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "policy.open-cluster-management.io".into(),
        version: "v1".into(),
        api_version: "policy.open-cluster-management.io/v1".into(),
        kind: "ConfigurationPolicy".into(),
        plural: "configurationpolicies".into(),
    };
    Api::namespaced_with(cluster_client, namespace, &resource)
}

async fn run(
    cli: &Cli,
    cluster: &Cluster,
    account: &Account,
    peer: Option<&PathBuf>,
    policies: u64,
    objects: u64,
) -> Result<Figures> {
    let namespace = TemporaryNamespace::create(cluster, "bench").await?;
    let client = cluster.client().await?;
    let api = api(client, namespace.name());
    let mut controller = start(cli, cluster, account, peer, namespace.name())?;
    controller.wait_ready(PATIENCE).await?;
    let log = AuditLog::of(cluster)?;
    let from = log.moment().await?;
    let began = SystemClock.boot();
    let created = stream::iter(0..policies).map(|n| {
        let (api, namespace) = (api.clone(), namespace.name().to_owned());
        async move { api.create(&PostParams::default(), &policy(&namespace, n, objects)?).await.map_err(Error::from) }
    });
    let failed: Vec<Error> = created.buffer_unordered(AT_ONCE).filter_map(|r| async { r.err() }).collect().await;
    if let Some(error) = failed.into_iter().next() {
        return Err(error);
    }
    until_every(LOOK, "all policies compliant", PATIENCE, || async {
        let all = api.list(&ListParams::default()).await?.items;
        let done = all.iter().filter(|p| p.data["status"]["compliant"] == "Compliant").count();
        Ok(if done as u64 == policies { Seen::Yes(()) } else { Seen::NotYet(format!("{done} of {policies}")) })
    })
    .await?;
    let up = SystemClock.boot().since(began);
    // Let echoes settle, then nothing may be asked for.
    SystemClock.sleep_until(SystemClock.boot() + Duration::from_secs(15)).await;
    let rest = log.moment().await?;
    SystemClock.sleep_until(SystemClock.boot() + Duration::from_secs(cli.quiet_seconds)).await;
    let rested = log.moment().await?;
    let quiet: u64 = log
        .requests(&account.user(), rest, rested)?
        .into_iter()
        .filter(|(request, _)| request.verb != "watch" && !request.resource.contains("leases"))
        .map(|(_, count)| count)
        .sum();
    let began = SystemClock.boot();
    let deleted = stream::iter(0..policies).map(|n| {
        let api = api.clone();
        async move { api.delete(&format!("p{n:05}"), &DeleteParams::default()).await.map(drop).map_err(Error::from) }
    });
    deleted.buffer_unordered(AT_ONCE).for_each(|_| async {}).await;
    until_every(LOOK, "all policies gone", PATIENCE, || async {
        let left = api.list(&ListParams::default()).await?.items.len();
        Ok(if left == 0 { Seen::Yes(()) } else { Seen::NotYet(format!("{left} left")) })
    })
    .await?;
    let down = SystemClock.boot().since(began);
    // A policy that is gone has taken its objects along, or it was not worth the time: of the peer that is told, of ours judged.
    let maps: Api<DynamicObject> = Api::namespaced_with(cluster.client().await?, namespace.name(), &config_maps());
    let left = maps.list(&ListParams::default()).await?.items;
    let left = left.iter().filter(|map| map.metadata.name.as_ref().is_some_and(|name| is_child(name))).count();
    let to = log.moment().await?;
    let requests = log.requests(&account.user(), from, to)?;
    if cli.show_requests {
        for (request, count) in &requests {
            println!("   {count:>6} {request}");
        }
    }
    let requests = requests.into_values().sum();
    let (cpu, peak_mb) = usage(&controller)?;
    controller.stop(Duration::from_secs(40)).await?;
    namespace.finish(PATIENCE).await?;
    Ok(Figures { up, down, cpu, peak_mb, requests, quiet, left })
}

fn start(
    cli: &Cli,
    cluster: &Cluster,
    account: &Account,
    peer: Option<&PathBuf>,
    namespace: &str,
) -> Result<ControllerProcess> {
    let name = if peer.is_some() { "peer" } else { "ours" };
    let path = peer.unwrap_or(&cli.controller).clone();
    let launch = Launch::program(cluster, path, name)?;
    let listen = launch.listen();
    launch
        .env("KUBECONFIG", account.kubeconfig().display().to_string())
        .env("WATCH_NAMESPACE", namespace)
        .arg("controller")
        .arg("--leader-elect=false")
        .arg("--metrics-bind-address=0")
        .arg(format!("--health-probe-bind-address={listen}"))
        .start()
}

fn config_maps() -> ApiResource {
    let (version, kind) = ("v1".to_owned(), "ConfigMap".to_owned());
    ApiResource { group: String::new(), api_version: version.clone(), version, kind, plural: "configmaps".into() }
}
fn child(number: u64, n: u64) -> String {
    format!("o{number:05}-{n}")
}
fn is_child(name: &str) -> bool {
    name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
fn policy(namespace: &str, number: u64, objects: u64) -> Result<DynamicObject> {
    let templates: Vec<_> = (0..objects)
        .map(|n| {
            let metadata = json!({"name": child(number, n), "namespace": namespace});
            json!({"complianceType": "musthave",
                "objectDefinition": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}})
        })
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "metadata": {"name": format!("p{number:05}"), "namespace": namespace},
        "spec": {"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": templates},
    }))
    .map_err(Error::other)
}

/// CPU seconds and peak resident MB of a process.
fn usage(controller: &ControllerProcess) -> Result<(f64, f64)> {
    let pid = controller.pid().as_raw_nonzero();
    let read = |file: &str| {
        let path = PathBuf::from(format!("/proc/{pid}/{file}"));
        std::fs::read_to_string(&path).map_err(Error::other)
    };
    let stat = read("stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<f64>().ok()).sum();
    let status = read("status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: f64 = peak.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    Ok((ticks / 100.0, kilobytes / 1024.0))
}
