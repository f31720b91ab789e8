//! `cloud-emulator <cloud>`: an emulated cloud on a TCP port.
mod cli;

use clap::Parser;
use cli::{Admission, Cli, Clouds, Serving};
use cloud_emulator::kit::EmulatedCloud;
use cloud_emulator::kit::Settings;
use cloud_emulator::kit::clock::CloudClock;
use cloud_emulator::kit::server::{Host, serve};
use cloud_emulator::openstack::OpenStackCloud;
use cloud_emulator::sample::SampleCloud;
use std::error::Error;
use std::io::IsTerminal;
use std::path::Path;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    match Cli::parse().cloud {
        Clouds::Sample(serving) => {
            let cloud = SampleCloud::new(settings(&serving)?, serving.seed);
            run("sample", cloud, serving).await
        }
        Clouds::Openstack(serving) => {
            let cloud = OpenStackCloud::new(settings(&serving)?, serving.seed);
            run("openstack", cloud, serving).await
        }
    }
}
fn settings(serving: &Serving) -> Result<Settings, Box<dyn Error>> {
    Ok(match &serving.settings {
        Some(file) => serde_json::from_slice(&std::fs::read(file)?)?,
        None => Settings::default(),
    })
}

async fn run(name: &str, mut cloud: impl EmulatedCloud + 'static, serving: Serving) -> Result<(), Box<dyn Error>> {
    cloud.kit().settings().check(cloud.vocabulary())?;
    for Admission { principal, account, token } in &serving.tokens {
        let account = account.clone().unwrap_or_else(|| cloud.kit().settings().account.clone());
        cloud.kit_mut().principals.admit(principal, token, &account);
    }
    let clock = serving.virtual_time.map_or(CloudClock::REAL, |now| CloudClock::Virtual { now });
    let host = Host::new(Box::new(cloud), clock, serving.admin_token);

    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(&serving.listen).await?;
    let address = listener.local_addr()?.to_string();
    tracing::info!(%address, seed = serving.seed, "the {name} cloud is open");
    if let Some(file) = &serving.print_address_to {
        publish(file, &address)?;
    }
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        tracing::info!("stopping");
        stopping.cancel();
    });
    Ok(serve(listener, host, stop).await?)
}

/// Whoever waits for the file never sees half an address.
fn publish(file: &Path, address: &str) -> std::io::Result<()> {
    let half = file.with_extension("part");
    std::fs::write(&half, address)?;
    std::fs::rename(half, file)
}
