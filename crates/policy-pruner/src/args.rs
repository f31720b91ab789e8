//! The command line: the peer's subcommands and flags work unchanged, ours stand beside them.
use crate::desk::Settings;
use clap::{Args, Parser, Subcommand, ValueEnum};
use common::process::cli::{KubeArgs, Output, RunArgs};
use common::process::telemetry::LogFormat;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Everything.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "policy-pruner",
    version,
    about = "Evaluates ConfigurationPolicies, removes what they created, and never anything else."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How log lines look.
    #[arg(long, env = "CUSTODY_LOG_FORMAT", value_enum, default_value_t, global = true)]
    pub log_format: LogFormat,
    /// Which log lines: `info`, `policy_pruner=debug,warn`, ...
    #[arg(long, env = "CUSTODY_LOG_FILTER", default_value = "info,kube_client::client::builder=off", global = true)]
    pub log_filter: String,
}

impl Cli {
    /// How log lines look and which there are: the peer's flags say it, too.
    pub fn logs(&self) -> (LogFormat, String) {
        let (mut format, mut filter) = (self.log_format, self.log_filter.clone());
        let Command::Controller(args) = &self.command else { return (format, filter) };
        match args.peer.log_encoder.as_deref() {
            Some("json") => format = LogFormat::Json,
            Some("console") => format = LogFormat::Text,
            _ => {}
        }
        match args.peer.log_level.as_deref().unwrap_or_default() {
            "error" => "error".clone_into(&mut filter),
            level if level == "debug" || level.parse::<u8>().is_ok_and(|level| level > 0) => {
                filter.push_str(",policy_pruner=debug");
            }
            _ => {}
        }
        (format, filter)
    }
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Serve: evaluate policies, prune what they created.
    #[command(visible_alias = "run")]
    Controller(Box<ControllerArgs>),
    /// Print the CRD as YAML.
    Crd,
    /// Show what would be done for one policy, object by object, and change nothing. Exit status 2 if that is anything.
    Plan(Box<PlanArgs>),
    /// List every object that this controller created and whose policy is gone, as far as there are ledgers. Exit status 3 if there is any.
    ///
    /// Found: what a ledger (a ConfigMap with the label custody.dev/policy-ledger) says was created, if it is still there and its policy is not.
    /// Orphan: ledger and object agree. Replaced: somebody else created it anew. Unknown: it cannot be looked at. Unreadable: a ledger that
    /// cannot be read. Orphan, Unknown and Unreadable make the exit status 3.
    ///
    /// Not found: objects of policies with pruneObjectBehavior None, which keep no ledger; objects whose ledger was removed by force; objects
    /// that somebody else created. What an object was created by shows in its managedFields: policy-pruner or policy-pruner-create-<id>.
    Audit(Box<InspectArgs>),
    /// Check permissions and the CRD.
    Doctor(Box<InspectArgs>),
    /// Let go of every policy before the controller is removed; prune nothing.
    TriggerUninstall(Box<UninstallArgs>),
}

/// Which terminating namespaces count where a policy does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Terminating {
    /// They count.
    #[value(name = "IfMatch")]
    IfMatch,
    /// They do not.
    #[value(name = "Drop")]
    Drop,
}

/// `controller`.
#[derive(Clone, Debug, Args)]
pub struct ControllerArgs {
    /// Common to all controllers of the house.
    #[command(flatten)]
    pub common: RunArgs,
    /// The API server.
    #[command(flatten)]
    pub kube: KubeArgs,
    /// The namespace of the policies; empty for all.
    #[arg(long, env = "WATCH_NAMESPACE", default_value = "")]
    pub watch_namespace: String,
    /// Beside a single namespace, also serve open-cluster-management-policies.
    #[arg(long, env = "CUSTODY_OCM_POLICY_NAMESPACE", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub enable_ocm_policy_namespace: bool,
    /// Seconds between two evaluations of one policy.
    #[arg(long, env = "CUSTODY_EVALUATION_BACKOFF", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub evaluation_backoff: u32,
    /// Policies evaluated at once; default: --concurrency.
    #[arg(long, env = "CUSTODY_EVALUATION_CONCURRENCY", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub evaluation_concurrency: Option<u16>,
    /// Where metrics are served beside --listen; `0` for nowhere.
    #[arg(long, env = "CUSTODY_METRICS_BIND_ADDRESS", default_value = "localhost:8383")]
    pub metrics_bind_address: String,
    /// Where health is served; in place of --listen.
    #[arg(long, env = "CUSTODY_HEALTH_PROBE_BIND_ADDRESS")]
    pub health_probe_bind_address: Option<String>,
    /// Whether terminating namespaces count where a policy does not say.
    #[arg(long, env = "CUSTODY_TERMINATING_NAMESPACES", value_enum, default_value = "IfMatch", ignore_case = true)]
    pub default_terminating_namespace_inclusion: Terminating,
    /// Prune exactly as the peer does: DeleteAll also takes what was only matched, and what other policies require.
    #[arg(long, env = "CUSTODY_PRUNE_LIKE_UPSTREAM", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub prune_like_upstream: bool,
    /// Name of our own Deployment: its annotation `uninstalling` switches to letting go.
    #[arg(long, env = "OPERATOR_NAME", default_value = "")]
    pub operator_name: String,
    /// Namespace of our own Deployment; default: that of the pod. Outside a pod there is none.
    #[arg(long, env = "CUSTODY_OPERATOR_NAMESPACE")]
    pub operator_namespace: Option<String>,
    /// `local`: this process is no pod, whatever it finds.
    #[arg(long, env = "OSDK_FORCE_RUN_MODE", default_value = "", hide = true)]
    pub run_mode: String,
    /// Accepted for the peer's sake.
    #[command(flatten)]
    pub peer: PeerArgs,
}

/// Flags of the peer that have nothing to do here: the client adapts to what the API server says, decryption needs no
/// workers, and what is not served is refused where it would matter.
#[derive(Clone, Debug, Args)]
pub struct PeerArgs {
    /// Accepted; the client adapts to the API server.
    #[arg(long, hide = true)]
    pub client_max_qps: Option<f64>,
    /// Accepted; the client adapts to the API server.
    #[arg(long, hide = true)]
    pub client_burst: Option<u32>,
    /// Accepted; decryption needs no workers.
    #[arg(long, hide = true)]
    pub decryption_concurrency: Option<u32>,
    /// `false`: nothing is served at --metrics-bind-address; --listen has metrics all the same.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    pub enable_metrics: Option<bool>,
    /// Accepted; metrics are served without TLS.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    pub secure_metrics: Option<bool>,
    /// Accepted; the add-on lease is not kept.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    pub enable_lease: Option<bool>,
    /// Accepted; nothing is told to a hub.
    #[arg(long, hide = true)]
    pub cluster_name: Option<String>,
    /// Accepted; nothing is told to a hub.
    #[arg(long, hide = true)]
    pub hub_kubeconfig_path: Option<String>,
    /// Hosted mode is not served: refused.
    #[arg(long, hide = true)]
    pub target_kubeconfig_path: Option<String>,
    /// Hub templates are not served: refused.
    #[arg(long, hide = true)]
    pub standalone_hub_templates_kubeconfig_path: Option<String>,
    /// Accepted; OperatorPolicies are not served.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    pub enable_operator_policy: Option<bool>,
    /// Accepted; OperatorPolicies are not served.
    #[arg(long, hide = true)]
    pub operator_policy_default_namespace: Option<String>,
    /// Accepted; OperatorPolicies are not served.
    #[arg(long, hide = true)]
    pub operator_policy_status_history_length: Option<u32>,
    /// Accepted; no template functions are served.
    #[arg(long, hide = true)]
    pub template_function_denylist: Option<String>,
    /// Accepted; nothing is served by TLS.
    #[arg(long, hide = true)]
    pub tls_min_version: Option<String>,
    /// Accepted; nothing is served by TLS.
    #[arg(long, hide = true)]
    pub tls_cipher_suites: Option<String>,
    /// `debug`, or 1 and above: also debug lines of this controller. `error`: errors only.
    #[arg(long, env = "CUSTODY_LOG_LEVEL", hide = true)]
    pub log_level: Option<String>,
    /// `json` or `console`, in place of --log-format.
    #[arg(long, hide = true)]
    pub log_encoder: Option<String>,
}

impl PeerArgs {
    /// What was asked for and is not served here, in words.
    pub fn unserved(&self) -> Vec<&'static str> {
        let on = |flag: Option<bool>| flag == Some(true);
        let set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let all = [
            (on(self.secure_metrics), "--secure-metrics: metrics are served without TLS"),
            (set(&self.tls_min_version), "--tls-min-version: nothing is served by TLS"),
            (set(&self.tls_cipher_suites), "--tls-cipher-suites: nothing is served by TLS"),
            (on(self.enable_lease), "--enable-lease: the Lease of the add-on is not kept"),
            (set(&self.hub_kubeconfig_path), "--hub-kubeconfig-path: nothing is told to a hub"),
            (on(self.enable_operator_policy), "--enable-operator-policy: OperatorPolicies are not served"),
            (set(&self.template_function_denylist), "--template-function-denylist: templates are not served"),
        ];
        all.into_iter().filter(|(asked, _)| *asked).map(|(_, words)| words).collect()
    }
}

impl ControllerArgs {
    /// How to behave.
    pub fn settings(&self) -> Settings {
        Settings {
            backoff: Duration::from_secs(u64::from(self.evaluation_backoff)),
            take_terminating: self.default_terminating_namespace_inclusion == Terminating::IfMatch,
            like_upstream: self.prune_like_upstream,
        }
    }
    /// Namespaces served; `None` for all.
    pub fn namespaces(&self) -> Result<Vec<Option<String>>, String> {
        let one = self.kube.namespace.as_deref().unwrap_or(&self.watch_namespace).trim();
        if one.contains(',') {
            return Err(format!("one namespace or none can be served, not {one:?}"));
        }
        if one.is_empty() {
            return Ok(vec![None]);
        }
        let mut all = vec![Some(one.to_owned())];
        if self.enable_ocm_policy_namespace && one != crate::names::OCM_NAMESPACE {
            all.push(Some(crate::names::OCM_NAMESPACE.to_owned()));
        }
        Ok(all)
    }
    /// Flags of the house, as the peer's flags would have them.
    pub fn run_args(&self) -> Result<RunArgs, String> {
        let PeerArgs { target_kubeconfig_path, standalone_hub_templates_kubeconfig_path, .. } = &self.peer;
        if target_kubeconfig_path.as_ref().is_some_and(|path| !path.is_empty()) {
            return Err("hosted mode (--target-kubeconfig-path) is not served".into());
        }
        if standalone_hub_templates_kubeconfig_path.as_ref().is_some_and(|path| !path.is_empty()) {
            return Err("hub templates (--standalone-hub-templates-kubeconfig-path) are not served".into());
        }
        let mut args = self.common.clone();
        args.lease_name.get_or_insert_with(|| crate::names::LEASE.to_owned());
        if let Some(at_once) = self.evaluation_concurrency {
            args.concurrency = at_once;
        }
        if let Some(address) = &self.health_probe_bind_address {
            args.listen = address_of(address)?;
        }
        Ok(args)
    }
    /// Where metrics are served beside health.
    pub fn metrics_address(&self) -> Result<Option<SocketAddr>, String> {
        match self.metrics_bind_address.as_str() {
            _ if self.peer.enable_metrics == Some(false) => Ok(None),
            "" | "0" => Ok(None),
            text => address_of(text).map(Some),
        }
    }
}
/// `localhost:8383`, `:8081`, `[::]:80`.
fn address_of(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    let mut found = full.to_socket_addrs().map_err(|e| format!("{text}: {e}"))?;
    found.next().ok_or_else(|| format!("{text} is no address"))
}

/// `audit`, `doctor`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// The API server.
    #[command(flatten)]
    pub kube: KubeArgs,
    /// How the answer looks.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}
/// `plan`.
#[derive(Clone, Debug, Args)]
pub struct PlanArgs {
    /// The policy: namespace/name.
    #[arg(required_unless_present = "file")]
    pub policy: Option<String>,
    /// A policy that is not applied yet.
    #[arg(short = 'f', long = "file", value_name = "FILE", conflicts_with = "policy")]
    pub file: Option<PathBuf>,
    /// Show what deleting the policy would do.
    #[arg(long)]
    pub delete: bool,
    /// Prune as the peer does.
    #[arg(long)]
    pub prune_like_upstream: bool,
    /// The rest.
    #[command(flatten)]
    pub inspect: InspectArgs,
}
/// `trigger-uninstall`.
#[derive(Clone, Debug, Args)]
pub struct UninstallArgs {
    /// Name of the controller's Deployment.
    #[arg(long, env = "CUSTODY_DEPLOYMENT_NAME", default_value = "config-policy-controller")]
    pub deployment_name: String,
    /// Namespace of the controller's Deployment.
    #[arg(long, env = "CUSTODY_DEPLOYMENT_NAMESPACE", default_value = "open-cluster-management-agent-addon")]
    pub deployment_namespace: String,
    /// Namespace of the policies.
    #[arg(long, env = "CUSTODY_POLICY_NAMESPACE")]
    pub policy_namespace: String,
    /// Another namespace with policies.
    #[arg(long = "additional-namespace")]
    pub additional_namespaces: Vec<String>,
    /// Give up after this long.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(30..=86_400))]
    pub timeout_seconds: u64,
    /// The API server.
    #[command(flatten)]
    pub kube: KubeArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn controller(line: &str) -> ControllerArgs {
        match Cli::try_parse_from(line.split_whitespace()).unwrap().command {
            Command::Controller(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
    #[test]
    fn the_peers_line_works_unchanged() {
        let args = controller(
            "policy-pruner controller --leader-elect=false --log-level=1 --evaluation-backoff=2 --enable-operator-policy=true --client-max-qps=30 --client-burst=45 --evaluation-concurrency=2 --metrics-bind-address=localhost:8383 --health-probe-bind-address=:8081 --cluster-name=c --enable-lease --default-terminating-namespace-inclusion=IfMatch",
        );
        assert_eq!(args.settings().backoff, Duration::from_secs(2));
        let run = args.run_args().unwrap();
        assert!(!run.leader_elect && run.concurrency == 2 && run.listen.port() == 8081);
        assert_eq!(run.lease_name.as_deref(), Some(crate::names::LEASE));
        assert_eq!(args.metrics_address().unwrap().unwrap().port(), 8383);
    }
    #[test]
    fn the_peers_flags_for_logs_and_metrics_do_what_they_say() {
        let logs = |line: &str| Cli::try_parse_from(line.split_whitespace()).unwrap().logs();
        for (flags, format, filter) in [
            ("", LogFormat::Json, "info"),
            ("--log-level=0", LogFormat::Json, "info"),
            ("--log-level=1 --log-encoder=console", LogFormat::Text, "info,policy_pruner=debug"),
            ("--log-level=debug --log-encoder=json", LogFormat::Json, "info,policy_pruner=debug"),
            ("--log-level=error", LogFormat::Json, "error"),
        ] {
            let line = format!("x controller --log-format=json --log-filter=info {flags}");
            assert_eq!(logs(&line), (format, filter.to_owned()), "{flags}");
        }
        assert_eq!(logs("x crd --log-filter=warn").1, "warn");
        assert_eq!(controller("x controller --enable-metrics=false").metrics_address(), Ok(None));
    }
    #[test]
    fn what_is_accepted_and_not_served_is_told() {
        let told = |flags: &str| controller(&format!("x controller {flags}")).peer.unserved();
        assert!(told("--client-max-qps=30 --secure-metrics=false --enable-lease=false --tls-min-version=").is_empty());
        let all = told(
            "--secure-metrics --tls-min-version=1.3 --tls-cipher-suites=x --enable-lease --hub-kubeconfig-path=/x",
        );
        assert!(all.len() == 5 && all[0].contains("without TLS"), "{all:?}");
    }
    #[test]
    fn what_is_not_served_is_refused() {
        assert!(controller("x controller --target-kubeconfig-path=/x").run_args().is_err());
        assert!(controller("x run --standalone-hub-templates-kubeconfig-path=/x").run_args().is_err());
        assert!(controller("x run --watch-namespace=a,b").namespaces().is_err());
    }
    #[test]
    fn one_namespace_brings_the_frameworks_along() {
        let all = controller("x run --watch-namespace=managed").namespaces().unwrap();
        assert_eq!(all, [Some("managed".to_owned()), Some(crate::names::OCM_NAMESPACE.to_owned())]);
        let alone = controller("x run --watch-namespace=managed --enable-ocm-policy-namespace=false");
        assert_eq!(alone.namespaces().unwrap().len(), 1);
        assert_eq!(controller("x run --watch-namespace=").namespaces().unwrap(), [None]);
    }
}
