//! The command line all controllers share: `<controller> run | crd | plan | audit | takeover | release | doctor`.
//!
//! Exit status: 0 done; 1 failed, or leadership lost; 2 `plan` is not empty; 3 `audit` found orphans; 64 the command line
//! makes no sense; 130 a second signal.
use super::leader::Terms;
use super::telemetry::LogFormat;
use crate::filter::Filter;
use crate::runtime::runner::Bounds;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Something failed.
pub const FAILED: u8 = 1;
/// `plan` is not empty.
pub const PLAN_NOT_EMPTY: u8 = 2;
/// `audit` found orphans.
pub const ORPHANS_FOUND: u8 = 3;
/// The command line makes no sense. Not 2, which clap would take: that is a plan.
pub const USAGE: u8 = 64;

/// A controller's command line; `A` are its own flags.
#[derive(Clone, Debug, Parser)]
pub struct Cli<A: Args> {
    /// What to do.
    #[command(subcommand)]
    pub command: Command<A>,
    /// How log lines look.
    #[arg(long, env = "CUSTODY_LOG_FORMAT", value_enum, default_value_t, global = true)]
    pub log_format: LogFormat,
    /// Which log lines: `info`, `common=debug,warn`, ... What kube's client says of failed requests, we say ourselves.
    #[arg(long, env = "CUSTODY_LOG_FILTER", default_value = "info,kube_client::client::builder=off", global = true)]
    pub log_filter: String,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command<A: Args> {
    /// Serve: watch owners and bring their resources in line.
    Run(Box<Run<A>>),
    /// Print the CRDs as YAML.
    Crd,
    /// Show what would be created, changed and deleted; write nothing. Exit status 2 if that is anything.
    Plan(Box<Inspect<A>>),
    /// List every resource that carries our kind of mark, its owner, and whether that owner lives. Exit status 3 if orphans exist.
    Audit(Box<Inspect<A>>),
    /// Ask for owners that came from another installation to be taken over.
    Takeover(Box<Takeover<A>>),
    /// Let go of owners: resources and marks stay, finalizers go, survivors are listed.
    Release(Box<Release<A>>),
    /// Check permissions, clock and installation id before the first create.
    Doctor(Box<Inspect<A>>),
}

/// `run`.
#[derive(Clone, Debug, Args)]
pub struct Run<A: Args> {
    /// Common to all controllers.
    #[command(flatten)]
    pub common: RunArgs,
    /// The API server.
    #[command(flatten)]
    pub kube: KubeArgs,
    /// The controller's own.
    #[command(flatten)]
    pub own: A,
}
/// `plan`, `audit`, `doctor`.
#[derive(Clone, Debug, Args)]
pub struct Inspect<A: Args> {
    /// The API server.
    #[command(flatten)]
    pub kube: KubeArgs,
    /// How the answer looks.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
    /// The controller's own.
    #[command(flatten)]
    pub own: A,
}
/// `takeover`.
#[derive(Clone, Debug, Args)]
pub struct Takeover<A: Args> {
    /// The installation the owners came from: its id.
    #[arg(long, value_name = "INSTALLATION")]
    pub from: String,
    /// Only this owner.
    #[arg(long)]
    pub name: Option<String>,
    /// Only say what would be asked for.
    #[arg(long)]
    pub dry_run: bool,
    /// The rest.
    #[command(flatten)]
    pub inspect: Inspect<A>,
}
/// `release`.
#[derive(Clone, Debug, Args)]
pub struct Release<A: Args> {
    /// Only this owner.
    #[arg(long, required_unless_present = "all")]
    pub name: Option<String>,
    /// All owners.
    #[arg(long, conflicts_with = "name")]
    pub all: bool,
    /// Only say what would be let go.
    #[arg(long)]
    pub dry_run: bool,
    /// The rest.
    #[command(flatten)]
    pub inspect: Inspect<A>,
}

/// How an answer looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Columns.
    #[default]
    Table,
    /// JSON.
    Json,
}

/// The API server, and which objects in it.
#[derive(Clone, Debug, Default, Args)]
pub struct KubeArgs {
    /// A kubeconfig file; without it, what kubectl would use, or the pod's own.
    #[arg(long, env = "CUSTODY_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Serve only this namespace.
    #[arg(long, env = "CUSTODY_NAMESPACE")]
    pub namespace: Option<String>,
    /// Serve only objects whose label cluster.x-k8s.io/watch-filter has this value.
    #[arg(long, env = "CUSTODY_WATCH_FILTER")]
    pub watch_filter: Option<String>,
    /// Which installation this is; default: the UID of the namespace kube-system. Two installations that must not take each
    /// other's resources for their own need different ids.
    #[arg(long, env = "CUSTODY_INSTALLATION_ID")]
    pub installation_id: Option<String>,
}
impl KubeArgs {
    /// Which objects are served.
    pub fn filter(&self) -> Filter {
        Filter::new(self.namespace.as_deref(), self.watch_filter.as_deref())
    }
}

/// Flags of `run` that all controllers share.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Where /livez, /readyz and /metrics answer.
    #[arg(long, env = "CUSTODY_LISTEN", default_value = "[::]:8080")]
    pub listen: SocketAddr,
    /// So many passes at once.
    #[arg(long, env = "CUSTODY_CONCURRENCY", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// Every object is looked at again this often.
    #[arg(long, env = "CUSTODY_RESYNC", default_value = "10m", value_parser = duration)]
    pub resync: Duration,
    /// Longest pass.
    #[arg(long, env = "CUSTODY_PASS_TIMEOUT", default_value = "2m", value_parser = duration)]
    pub pass_timeout: Duration,
    /// At the end, running passes get this long. Keep it, and 10 s more, inside terminationGracePeriodSeconds.
    #[arg(long, env = "CUSTODY_DRAIN_TIMEOUT", default_value = "20s", value_parser = duration)]
    pub drain_timeout: Duration,
    /// Elect a leader. Ownership is safe without, but two processes do everything twice.
    #[arg(long, env = "CUSTODY_LEADER_ELECT", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader_elect: bool,
    /// Namespace of the Lease; default: that of the pod.
    #[arg(long, env = "CUSTODY_LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// Name of the Lease; default: that of the controller.
    #[arg(long, env = "CUSTODY_LEASE_NAME")]
    pub lease_name: Option<String>,
    /// A leader that is silent for this long is replaced.
    #[arg(long, env = "CUSTODY_LEASE_DURATION", default_value = "30s", value_parser = duration)]
    pub lease_duration: Duration,
    /// A leader that could not renew for this long steps down.
    #[arg(long, env = "CUSTODY_RENEW_DEADLINE", default_value = "15s", value_parser = duration)]
    pub renew_deadline: Duration,
    /// Between renewals.
    #[arg(long, env = "CUSTODY_RETRY_PERIOD", default_value = "3s", value_parser = duration)]
    pub retry_period: Duration,
    /// Name of this pod, for the Lease and for events; from the downward API.
    #[arg(long, env = "POD_NAME", default_value = "")]
    pub pod_name: String,
}
impl RunArgs {
    /// Times of the election.
    pub fn terms(&self) -> Terms {
        Terms { lease: self.lease_duration, renew: self.renew_deadline, retry: self.retry_period }
    }
    /// Bounds of the runner.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            concurrency: usize::from(self.concurrency),
            pass: self.pass_timeout,
            resync: self.resync,
            drain: self.drain_timeout,
        }
    }
}

/// `90s`, `10m`, `1h 30m`. Zero and less make no sense anywhere here.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text.parse().map_err(|e: jiff::Error| e.to_string())?;
    let positive = Duration::try_from(parsed).map_err(|e| e.to_string())?;
    if positive.is_zero() { Err("must be more than zero".into()) } else { Ok(positive) }
}

/// What `--help` and `--version` say.
#[derive(Clone, Copy, Debug)]
pub struct Title {
    /// Name of the controller.
    pub controller: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// Reads a command line. `Err` is the exit status, after help or the error was printed.
pub fn parse<A: Args>(
    title: Title,
    line: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Cli<A>, ExitCode> {
    let named = Cli::<A>::command().name(title.controller).bin_name(title.controller);
    let command = named.about(title.about).version(title.version);
    let parsed = command.try_get_matches_from(line).and_then(|matches| Cli::<A>::from_arg_matches(&matches));
    parsed.map_err(|error| {
        // Nothing can be said if not even this can be printed.
        let _ = error.print();
        if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
    })
}

/// The answer of a subcommand, on stdout. A closed pipe is the reader's choice, not a failure.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Rows as aligned columns, the header first.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let mut text = line(header.to_vec());
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Args)]
    struct Own {
        #[arg(long, default_value = "http://127.0.0.1")]
        endpoint: String,
    }
    fn line(text: &str) -> Result<Cli<Own>, ExitCode> {
        let title = Title { controller: "sample", about: "A sample.", version: "1" };
        parse::<Own>(title, text.split_whitespace())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::<Own>::command().debug_assert();
    }
    #[test]
    fn every_flag_of_run_can_be_set_by_environment() {
        let command = Cli::<Own>::command();
        let run = command.find_subcommand("run").unwrap();
        let unnamed: Vec<_> =
            run.get_arguments().filter(|a| a.get_env().is_none()).map(|a| a.get_id().to_string()).collect();
        assert_eq!(unnamed, ["endpoint"], "only the test's own flag has none");
    }
    #[test]
    fn run_has_safe_defaults() {
        let Ok(Cli { command: Command::Run(run), .. }) = line("sample run --endpoint http://x") else {
            panic!("not run")
        };
        assert!(run.common.leader_elect);
        assert_eq!(run.common.terms(), Terms::default());
        assert_eq!(run.common.resync, Duration::from_mins(10));
        assert_eq!(run.own.endpoint, "http://x");
    }
    #[test]
    fn nonsense_is_told_from_a_plan_by_its_exit_status() {
        for bad in ["sample", "sample fly", "sample run --resync 0s", "sample run --concurrency 0", "sample release"] {
            assert_eq!(line(bad).map(|_| ()).unwrap_err(), ExitCode::from(USAGE), "{bad}");
        }
        assert_eq!(line("sample --help").map(|_| ()).unwrap_err(), ExitCode::SUCCESS);
    }
    #[test]
    fn election_can_be_switched_off() {
        let Ok(Cli { command: Command::Run(run), .. }) = line("sample run --leader-elect=false") else {
            panic!("not run")
        };
        assert!(!run.common.leader_elect);
    }
    #[test]
    fn tables_are_aligned() {
        let rows = vec![vec!["a".into(), "long value".into()], vec!["bbb".into(), String::new()]];
        assert_eq!(table(&["ID", "WHAT"], &rows), "ID   WHAT\na    long value\nbbb\n");
    }
}
