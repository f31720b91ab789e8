//! This controller's own flags, and what they make.
use crate::client::{Client, Connection, Limits};
use crate::cloud::Cloud;
use crate::clouds::CloudConfig;
use crate::names::{CAPO, CONTROLLER, KIND, PEERS, reason};
use crate::operations;
use crate::session::Sessions;
use clap::{Args, ValueEnum};
use common::clock::SharedClock;
use common::engine::estate::Fault;
use common::engine::{Settings, Timing};
use common::peer::Guard;
use common::process::metered::Metered;
use common::process::metrics::Metrics;
use http_transport::Http;
use std::sync::Arc;
use std::time::Duration;

/// The times of the cloud, unless a flag says otherwise. The scorecard proves them.
pub const TIMING: Timing = Timing {
    window: Duration::from_secs(10),
    call: Duration::from_secs(10),
    lag: Duration::from_secs(10),
    poll: Duration::from_secs(10),
};
/// How long a list of each kind serves all owners, unless a flag says otherwise.
pub const LIST_INTERVAL: Duration = Duration::from_mins(5);

/// The parts of this controller, each of use alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// OpenStackServer.
    Server,
    /// The bastion of OpenStackCluster.
    Bastion,
    /// OpenStackMachine.
    Machine,
}
/// Providers that objects can be adopted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Provider {
    /// The Go provider of Cluster API.
    Capo,
}

/// Flags of OpenStack.
#[derive(Clone, Debug, Args)]
pub struct OpenStackArgs {
    /// Which kinds are served.
    #[arg(long, env = "CUSTODY_PARTS", value_enum, value_delimiter = ',', default_values_t = [Part::Server, Part::Bastion, Part::Machine])]
    pub parts: Vec<Part>,
    /// Adopts what this provider made for every object, annotated or not.
    #[arg(long, env = "CUSTODY_ADOPT_FROM", value_enum)]
    pub adopt_from: Option<Provider>,
    /// A decision is carried out within this time after the list it rests on was asked for, or not at all.
    #[arg(long, env = "CUSTODY_START_WINDOW_SECONDS", default_value_t = TIMING.window.as_secs(), value_parser = clap::value_parser!(u64).range(1..=60))]
    pub start_window_seconds: u64,
    /// How often to look at what is under way.
    #[arg(long, env = "CUSTODY_POLL_SECONDS", default_value_t = TIMING.poll.as_secs(), value_parser = clap::value_parser!(u64).range(1..=600))]
    pub poll_seconds: u64,
    /// Longest cloud call.
    #[arg(long, env = "CUSTODY_CALL_TIMEOUT_SECONDS", default_value_t = TIMING.call.as_secs(), value_parser = clap::value_parser!(u64).range(1..=120))]
    pub call_timeout_seconds: u64,
    /// Whatever a call changed shows in lists of the cloud by then.
    #[arg(long, env = "CUSTODY_LIST_LAG_SECONDS", default_value_t = TIMING.lag.as_secs(), value_parser = clap::value_parser!(u64).range(0..=600))]
    pub list_lag_seconds: u64,
    /// One list of each kind serves all servers of a project at rest for this long.
    #[arg(long, env = "CUSTODY_LIST_INTERVAL_SECONDS", default_value_t = LIST_INTERVAL.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub list_interval_seconds: u64,
    /// Ends servers for good that the cloud keeps after their deletion (soft delete). Without it the cloud decides when: until then
    /// their ports and volumes stay, and their owners wait.
    #[arg(long, env = "CUSTODY_FORCE_DELETE", default_value_t = false)]
    pub force_delete: bool,
    /// Calls to one service of one project at the same time.
    #[arg(long, env = "CUSTODY_CALLS_AT_ONCE", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub calls_at_once: u64,
}
impl OpenStackArgs {
    /// Longest cloud call.
    pub fn call(&self) -> Duration {
        Duration::from_secs(self.call_timeout_seconds)
    }
    /// Is this part served?
    pub fn serves(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
    /// The times of the cloud.
    pub fn timing(&self) -> Timing {
        Timing {
            window: Duration::from_secs(self.start_window_seconds),
            call: self.call(),
            lag: Duration::from_secs(self.list_lag_seconds),
            poll: Duration::from_secs(self.poll_seconds),
        }
    }
    /// What the engine must know of this controller and its cloud.
    pub fn settings(&self, installation: &str) -> Settings {
        Settings {
            controller: CONTROLLER,
            kind: KIND.to_owned(),
            installation: installation.to_owned(),
            timing: self.timing(),
            peers: self.guard(),
        }
    }
    /// How servers live with those of the Go provider.
    pub fn guard(&self) -> Guard {
        Guard { peers: PEERS, adopt: self.adopt_from.map(|Provider::Capo| CAPO), ..Guard::NONE }
    }
    /// Sessions over real sockets.
    pub fn sessions(&self, clock: &SharedClock, metrics: Option<Arc<Metrics>>) -> Sessions {
        let (call, time) = (self.call(), clock.clone());
        let at_once = usize::try_from(self.calls_at_once).unwrap_or(8);
        let limits = Limits { read: call, at_once, ..Limits::default() };
        let connect = Box::new(move |config: &CloudConfig| -> Result<Arc<dyn Cloud>, Fault> {
            let user_agent = concat!("openstack-server-controller/", env!("CARGO_PKG_VERSION"));
            let (authority, anybody) = (config.ca.as_deref(), !config.verify);
            let http = Http::new(&http_transport::Settings { user_agent, call, authority, anybody })
                .map_err(|message| Fault::Terminal { reason: reason::AUTHENTICATION_FAILED, message })?;
            let transport = Metered::around(http, operations::NAMES, time.clone(), metrics.clone());
            Ok(Arc::new(Client::new(Connection::new(transport, time.clone(), config.clone(), limits))))
        });
        Sessions::new(connect, clock.clone(), Duration::from_secs(self.list_interval_seconds))
            .forcing(self.force_delete)
    }
}
