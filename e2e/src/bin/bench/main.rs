//! The bench: how much memory a controller's release binary takes, idle and with many owners at rest, and how soon an event
//! becomes a pass. Sizes are judged, because they are the same on every machine; times are only told.
#![allow(clippy::print_stdout)] // printing is what it is for
mod latency;
mod workload;

use clap::Parser;
use e2e::account::Account;
use e2e::controller::{ControllerProcess, Launch};
use e2e::emulator::EmulatorProcess;
use e2e::patience::dynamic_api;
use e2e::{Cluster, ControlPlane, Error, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const CONTROLLER: &str = "sample-controller";
const TOKEN: &str = "the-controllers-own-token";
const PATIENCE: Duration = Duration::from_hours(1);

/// Measures a controller's release binary.
#[derive(Parser)]
struct Cli {
    /// The binary to measure.
    #[arg(long)]
    controller: PathBuf,
    /// So many owners of 4 KB of JSON.
    #[arg(long, default_value_t = 10_000)]
    owners: u64,
    /// Give each a network instead of a pause. Takes many times as long: the API server stores some eight versions of each.
    #[arg(long)]
    converge: bool,
    /// At most so many MB with all owners.
    #[arg(long, default_value_t = 60.0)]
    most_loaded_mb: f64,
    /// At most so many MB without any.
    #[arg(long, default_value_t = 12.0)]
    most_idle_mb: f64,
    /// At most so many MB of stripped binary.
    #[arg(long, default_value_t = 12.0)]
    most_binary_mb: f64,
}

/// One line of the table: what was measured, in MB, and the bar.
struct Line {
    what: String,
    is: f64,
    most: f64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let measured = measure(&Cli::parse()).await;
    let lines = match measured {
        Ok(lines) => lines,
        Err(error) => {
            println!("bench: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("\n{:<46} {:>9} {:>9} {:>6}", "measure", "MB", "bar", "ratio");
    for Line { what, is, most } in &lines {
        println!("{what:<46} {is:>9.1} {most:>9.1} {:>6.2}", is / most);
    }
    for Line { what, is, most } in &lines {
        println!("SEEN: {what}: {is:.1} MB of at most {most:.0} MB");
    }
    if lines.iter().all(|line| line.is <= line.most) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn measure(cli: &Cli) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut add = |what: &str, is: f64, most: f64| lines.push(Line { what: what.to_owned(), is, most });
    add("stripped release binary", file_mb(&cli.controller)?, cli.most_binary_mb);
    let plane = ControlPlane::start().await?;
    let cluster = plane.cluster();
    let cloud = EmulatorProcess::start(cluster, "sample", "cloud", &[(CONTROLLER, TOKEN)]).await?;
    let mut controller = start(cli, cluster, &cloud).await?;
    let owners =
        dynamic_api(cluster.client().await?, "default", "sample.custody.dev/v1alpha1", "SampleOwner", "sampleowners");

    workload::quiet(&controller).await?;
    add("resident, idle, no owner", memory_mb(&controller, "VmRSS")?, cli.most_idle_mb);
    println!("creating {} owners", cli.owners);
    workload::create(&owners, cli.owners, !cli.converge).await?;
    let word = if cli.converge { "converged" } else { "paused" };
    if cli.converge {
        workload::converge(&cloud, &controller, cli.owners).await?;
    } else {
        workload::rest(&owners, &controller, cli.owners).await?;
    }
    println!("   one owner is {} bytes of JSON", workload::json_bytes(&owners).await?);
    let many = cli.owners;
    add(&format!("resident, {many} {word} owners"), memory_mb(&controller, "VmRSS")?, cli.most_loaded_mb);
    println!("   {:.1} MB at its peak", memory_mb(&controller, "VmHWM")?);
    // A leader that ends in earnest frees the Lease; the next one lists everything anew.
    controller.stop(Duration::from_secs(40)).await?;
    controller.restart().await?;
    controller.wait_ready(PATIENCE).await?;
    workload::quiet(&controller).await?;
    add(
        &format!("resident, {many} {word} owners, after a restart"),
        memory_mb(&controller, "VmRSS")?,
        cli.most_loaded_mb,
    );
    println!("   {:.1} MB at its peak", memory_mb(&controller, "VmHWM")?);
    latency::tell(&owners, many, !cli.converge).await?;

    controller.stop(Duration::from_secs(40)).await?;
    cloud.stop().await?;
    plane.stop().await?;
    Ok(lines)
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
        .arg(format!("--kubeconfig={}", account.kubeconfig().display()));
    let mut controller = launch.start()?;
    controller.wait_ready(PATIENCE).await?;
    Ok(controller)
}

fn memory_mb(controller: &ControllerProcess, field: &str) -> Result<f64> {
    let path = format!("/proc/{}/status", controller.pid().as_raw_nonzero());
    let text = std::fs::read_to_string(&path).map_err(|error| Error::other(format!("{path}: {error}")))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map(|kb| kb / 1024.0).ok_or_else(|| Error::other(format!("no {field} in {path}")))
}

#[allow(clippy::cast_precision_loss)] // a file of 2^53 bytes would not be a binary
fn file_mb(path: &Path) -> Result<f64> {
    let file = std::fs::metadata(path).map_err(|error| Error::other(format!("{}: {error}", path.display())))?;
    Ok(file.len() as f64 / (1024.0 * 1024.0))
}
