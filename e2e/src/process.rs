//! A child process that cannot outlive us, not even when we are killed with SIGKILL.
//!
//! Without unsafe code there is no way to ask the kernel for that, so every child runs on a leash: a small shell script that
//! holds one end of a pipe whose other end is ours alone. The kernel closes our end whatever way we die.
use crate::error::{Error, Result};
use crate::patience::{Seen, until};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// For messages.
    pub name: String,
    /// The executable.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Added to our own environment.
    pub env: Vec<(String, OsString)>,
    /// Its output is appended here.
    pub log: PathBuf,
    /// Deleted when we die, unless it was kept (see [`crate::folder::Folder::keep`]).
    pub folder: Option<PathBuf>,
}

/// A running program on its leash. Dropping it kills the program.
#[derive(Debug)]
pub struct Leashed {
    name: String,
    log: PathBuf,
    leash: Child,
    // Closing it cuts the program off.
    grip: Option<ChildStdin>,
    pid: Pid,
    ended: Option<ExitStatus>,
}

impl Leashed {
    /// Starts a program in a process group of its own, so that a Ctrl-C at the terminal reaches us and not it.
    pub fn start(program: &Program) -> Result<Self> {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&program.log)
            .map_err(Error::io("cannot open", &program.log))?;
        let mut command = Command::new(crate::binaries::leash());
        if let Some(folder) = &program.folder {
            command.arg("-d").arg(folder);
        }
        command.arg(&program.path).args(&program.args);
        command.envs(program.env.iter().map(|(key, value)| (key.as_str(), value.as_os_str())));
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut leash = command.spawn().map_err(Error::io("cannot start", &program.path))?;
        let grip = leash.stdin.take();
        let mut line = String::new();
        if let Some(stdout) = leash.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(Error::io("no pid from", &program.path))?;
        }
        let pid = line.trim().parse().ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Error::other(format!("no pid from the leash of {}: {line:?}", program.name)))?;
        Ok(Leashed { name: program.name.clone(), log: program.log.clone(), leash, grip, pid, ended: None })
    }
    /// The program's own pid, not the leash's.
    pub fn pid(&self) -> Pid {
        self.pid
    }
    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }
    /// The exit status, once it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.leash.try_wait().map_err(Error::io("cannot wait for", &self.name))?;
        }
        Ok(self.ended)
    }
    /// Fails with the end of the log if the program has ended.
    pub fn must_run(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => {
                Err(Error::Ended { name: self.name.clone(), status: status.to_string(), tail: tail(&self.log, 25) })
            }
        }
    }
    /// Sends a signal to the program; no error if it has ended already.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        match kill_process(self.pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(Error::other(format!("cannot send {signal:?} to {}: {error}", self.name))),
        }
    }
    /// Asks it to end, waits for `grace`, then kills it. Its exit status tells which.
    pub async fn stop(&mut self, grace: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        // A frozen process takes no SIGTERM before it is woken.
        self.signal(Signal::CONT)?;
        match self.wait(grace).await {
            Err(Error::Timeout { .. }) => self.kill().await,
            other => other,
        }
    }
    /// Kills it with SIGKILL and waits until it is gone.
    pub async fn kill(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::KILL)?;
        self.wait(Duration::from_secs(10)).await
    }
    /// Waits until it ends by itself.
    pub async fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let what = format!("the end of {} (pid {})", self.name, self.pid.as_raw_nonzero());
        let this = std::cell::RefCell::new(self);
        until(&what, patience, || async {
            let ended = this.borrow_mut().ended()?;
            Ok(ended.map_or_else(|| Seen::NotYet("still running".to_owned()), Seen::Yes))
        })
        .await
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        drop(self.grip.take());
        for _ in 0..500 {
            if !matches!(self.ended(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        eprintln!("{} (pid {}) did not end within 5 s of SIGKILL", self.name, self.pid.as_raw_nonzero());
    }
}

/// The last lines of a log.
pub fn tail(log: &Path, lines: usize) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let skipped = text.lines().count().saturating_sub(lines);
    text.lines().skip(skipped).collect::<Vec<_>>().join("\n")
}

/// Runs a command to its end and hands back its standard output.
pub async fn output<I, A>(program: &Path, args: I) -> Result<String>
where
    I: IntoIterator<Item = A>,
    A: AsRef<OsStr>,
{
    output_with(program, args, &[]).await
}

/// Like [`output`], with something added to the environment.
pub async fn output_with<I, A>(program: &Path, args: I, env: &[(&str, &OsStr)]) -> Result<String>
where
    I: IntoIterator<Item = A>,
    A: AsRef<OsStr>,
{
    let mut command = tokio::process::Command::new(program);
    command.args(args).envs(env.iter().copied()).stdin(Stdio::null()).kill_on_drop(true);
    let done = command.output().await.map_err(Error::io("cannot run", program))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(Error::Command {
        command: format!("{:?}", command.as_std()),
        status: done.status.to_string(),
        output: format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)),
    })
}

/// A loopback address nobody listens on at this moment.
pub fn free_address() -> Result<std::net::SocketAddr> {
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map_err(Error::io("no free port on", "127.0.0.1"))
}
