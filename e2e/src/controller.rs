//! A controller's real binary with its shipped rights, and everything that can happen to a process.
use crate::account::Account;
use crate::binaries;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::patience::{Seen, until};
use crate::process::{Leashed, Program, free_address, tail};
use rustix::process::{Pid, Signal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

/// How to start a controller.
#[derive(Clone, Debug)]
pub struct Launch {
    program: Program,
    listen: SocketAddr,
}

impl Launch {
    /// The workspace binary `name`, started as `<name> run` as its pod would start it: with the account's rights, at home in
    /// the account's namespace, named `instance`.
    pub fn controller(cluster: &Cluster, account: &Account, name: &str, instance: &str) -> Result<Self> {
        let launch = Self::program(cluster, binaries::ours(name)?, instance)?;
        let listen = launch.listen;
        Ok(launch
            .arg("run")
            .arg(format!("--listen={listen}"))
            .arg(format!("--kubeconfig={}", account.kubeconfig().display()))
            .env("POD_NAME", instance))
    }
    /// Any program that serves `/readyz` on [`Launch::listen`].
    pub fn program(cluster: &Cluster, path: PathBuf, instance: &str) -> Result<Self> {
        let log = cluster.folder().fresh_file(instance, "log")?;
        let program = Program { name: instance.to_owned(), path, log, ..Program::default() };
        Ok(Launch { program, listen: free_address()? })
    }
    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.program.args.push(arg.into().into());
        self
    }
    /// One more environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.program.env.push((name.to_owned(), value.into().into()));
        self
    }
    /// The free address chosen for its health and metrics.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }
    /// Starts it; does not wait until it is ready.
    pub fn start(self) -> Result<ControllerProcess> {
        let process = Leashed::start(&self.program)?;
        Ok(ControllerProcess { launch: self, process })
    }
}

/// A running controller. Dropping it kills it.
#[derive(Debug)]
pub struct ControllerProcess {
    launch: Launch,
    process: Leashed,
}

impl ControllerProcess {
    /// Its pid; another one after a restart.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }
    /// Where its output goes.
    pub fn log(&self) -> &Path {
        self.process.log()
    }
    /// The last lines of its output.
    pub fn log_tail(&self, lines: usize) -> String {
        tail(self.log(), lines)
    }
    /// Waits until `/readyz` says 200. Fails at once, with its log, if it ends.
    pub async fn wait_ready(&mut self, patience: Duration) -> Result<()> {
        let url = format!("http://{}/readyz", self.launch.listen);
        let client = reqwest::Client::builder().timeout(Duration::from_secs(2)).build()?;
        let process = std::cell::RefCell::new(&mut self.process);
        let what = format!("{} to be ready", self.launch.program.name);
        let waited = until(&what, patience, || {
            let running = process.borrow_mut().must_run();
            let request = client.get(&url);
            async move {
                running?;
                let seen = match request.send().await {
                    Ok(answer) if answer.status().is_success() => return Ok(Seen::Yes(())),
                    Ok(answer) => format!("{}: {}", answer.status(), answer.text().await.unwrap_or_default()),
                    Err(error) => error.to_string(),
                };
                Ok(Seen::NotYet(seen))
            }
        })
        .await;
        waited.map_err(|error| match error {
            Error::Timeout { what, patience, seen } => {
                let seen = format!("{seen}\nthe end of its log:\n{}", self.log_tail(25));
                Error::Timeout { what, patience, seen }
            }
            other => other,
        })
    }
    /// Its metrics, as text.
    pub async fn metrics(&self) -> Result<String> {
        let url = format!("http://{}/metrics", self.launch.listen);
        Ok(reqwest::get(url).await?.error_for_status()?.text().await?)
    }
    /// Fails with its log if it has ended.
    pub fn must_run(&mut self) -> Result<()> {
        self.process.must_run()
    }
    /// Stops time for it (SIGSTOP).
    pub fn freeze(&mut self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }
    /// Lets it go on after [`ControllerProcess::freeze`] (SIGCONT).
    pub fn unfreeze(&mut self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }
    /// Kills it without warning (SIGKILL).
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill().await.map(drop)
    }
    /// Asks it to end (SIGTERM), kills it after `grace`. The exit status tells which.
    pub async fn stop(&mut self, grace: Duration) -> Result<ExitStatus> {
        self.process.stop(grace).await
    }
    /// Waits until it ends by itself, as a leader that lost its lease must.
    pub async fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        self.process.wait(patience).await
    }
    /// Kills it if it runs, and starts it again as before. Does not wait until it is ready.
    pub async fn restart(&mut self) -> Result<()> {
        self.kill().await?;
        self.process = Leashed::start(&self.launch.program)?;
        Ok(())
    }
}
