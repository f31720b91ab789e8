//! One control plane for a whole command: `e2e-controlplane with -- cargo test -p e2e`.
use clap::{Parser, Subcommand};
use e2e::{ControlPlane, Error, Result, env};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use tokio::signal::unix::{SignalKind, signal};

/// A real control plane on loopback, for tests and for trying things out.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts a control plane, runs a command with it, stops it. The command finds it by CUSTODY_E2E_DIR and KUBECONFIG,
    /// and kubectl and clusterctl on its PATH. The folder with all logs is kept if the command fails.
    With {
        /// The command and its arguments, after `--`.
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let Command::With { command } = Cli::parse().command;
    match with(&command).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("e2e-controlplane: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn with(command: &[OsString]) -> Result<ExitCode> {
    let plane = ControlPlane::start().await?;
    let folder = plane.cluster().folder();
    eprintln!("e2e-controlplane: running in {}", folder.path().display());
    let ended = run(&plane, command).await?;
    if !ended.success() && ended.signal().is_none() {
        folder.keep();
    }
    plane.stop().await?;
    let code = ended.code().unwrap_or(128 + ended.signal().unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

async fn run(plane: &ControlPlane, command: &[OsString]) -> Result<ExitStatus> {
    let [program, args @ ..] = command else { return Err(Error::other("no command")) };
    let cluster = plane.cluster();
    let failed = |what: &str| {
        let what = format!("{what} {}", program.display());
        move |source| Error::Io { what, source }
    };
    let mut child = tokio::process::Command::new(program)
        .args(args)
        .env(env::ENABLED, "1")
        .env(env::SHARED, cluster.folder().path())
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("PATH", cluster.tools().await?.search_path())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed("cannot start"))?;
    // A Ctrl-C reaches the command by itself; we stay until it has ended, to clean up behind it.
    let mut interrupts = signal(SignalKind::interrupt()).map_err(failed("no signals while running"))?;
    let mut terminations = signal(SignalKind::terminate()).map_err(failed("no signals while running"))?;
    loop {
        tokio::select! {
            ended = child.wait() => return ended.map_err(failed("cannot wait for")),
            _ = interrupts.recv() => {}
            _ = terminations.recv() => pass_on(&child),
        }
    }
}

fn pass_on(child: &tokio::process::Child) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = rustix::process::kill_process(pid, rustix::process::Signal::TERM)
    {
        eprintln!("e2e-controlplane: cannot end the command: {error}");
    }
}
