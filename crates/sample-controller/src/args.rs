//! This controller's own flags, and what they make.
use crate::client::{Client, Limits};
use crate::credentials::Credentials;
use crate::names::{CONTROLLER, KIND, MANAGER};
use crate::operations;
use crate::session::Account;
use clap::Args;
use common::clock::SharedClock;
use common::engine::{Settings, Timing};
use common::peer::Guard;
use common::process::metered::Metered;
use common::process::metrics::Metrics;
use http_transport::Http;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Flags of the sample cloud.
#[derive(Clone, Debug, Args)]
pub struct SampleArgs {
    /// Where the cloud answers: scheme, host and port.
    #[arg(long, env = "CUSTODY_CLOUD_URL", default_value = "http://127.0.0.1:8081")]
    pub cloud_url: String,
    /// File with the bearer token; read for every pass, so that a changed Secret is used at once.
    #[arg(long, env = "CUSTODY_TOKEN_FILE", default_value = "/etc/custody/cloud/token")]
    pub token_file: PathBuf,
    /// A decision is carried out within this time after the list it rests on was asked for, or not at all.
    #[arg(long, env = "CUSTODY_START_WINDOW_SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub start_window_seconds: u64,
    /// How often to look at what is under way.
    #[arg(long, env = "CUSTODY_POLL_SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub poll_seconds: u64,
    /// Longest cloud call.
    #[arg(long, env = "CUSTODY_CALL_TIMEOUT_SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=15))]
    pub call_timeout_seconds: u64,
    /// Whatever a call changed shows in lists of the cloud by then.
    #[arg(long, env = "CUSTODY_LIST_LAG_SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub list_lag_seconds: u64,
    /// One list of each kind serves all owners for this long.
    #[arg(long, env = "CUSTODY_LIST_INTERVAL_SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub list_interval_seconds: u64,
}
impl SampleArgs {
    /// Longest cloud call.
    pub fn call(&self) -> Duration {
        Duration::from_secs(self.call_timeout_seconds)
    }
    /// What the engine must know of this controller and its cloud.
    pub fn settings(&self, installation: &str) -> Settings {
        Settings {
            controller: CONTROLLER,
            kind: KIND.to_owned(),
            installation: installation.to_owned(),
            timing: Timing {
                window: Duration::from_secs(self.start_window_seconds),
                call: self.call(),
                lag: Duration::from_secs(self.list_lag_seconds),
                poll: Duration::from_secs(self.poll_seconds),
            },
            peers: Guard { managed_by: Some(MANAGER), ..Guard::NONE },
        }
    }
    /// The account behind the token file, over real sockets.
    pub fn account(&self, clock: &SharedClock, metrics: Option<Arc<Metrics>>) -> Result<Account, String> {
        let user_agent = concat!("sample-controller/", env!("CARGO_PKG_VERSION"));
        let http =
            Http::new(&http_transport::Settings { user_agent, call: self.call(), authority: None, anybody: false })?;
        let transport = Metered::around(http, operations::NAMES, clock.clone(), metrics);
        let limits = Limits { read: self.call(), ..Limits::default() };
        let (url, time) = (self.cloud_url.clone(), clock.clone());
        let connect = Box::new(move |token| -> Arc<dyn crate::cloud::Cloud> {
            Arc::new(Client::new(transport.clone(), time.clone(), &url, token, limits))
        });
        let credentials = Credentials::File(self.token_file.clone());
        Ok(Account::new(credentials, connect, clock.clone(), Duration::from_secs(self.list_interval_seconds)))
    }
}
