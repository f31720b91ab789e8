//! The command line.
use clap::{Args, Parser, Subcommand};
use jiff::Timestamp;
use std::path::PathBuf;

/// Emulated clouds for tests and demos. The administration lies under /admin and wants `Authorization: Bearer <admin token>`:
/// faults, settings, calls, things, failures, clock, denials, principals.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) cloud: Clouds,
}
#[derive(Debug, Subcommand)]
pub(crate) enum Clouds {
    /// The sample cloud of docs/sample-cloud.md.
    Sample(Serving),
    /// OpenStack: Keystone, Nova, Neutron, Cinder and Glance behind one address.
    Openstack(Serving),
}
#[derive(Args)]
pub(crate) struct Serving {
    /// Address to listen on; port 0 takes any free port.
    #[arg(long, env = "CLOUD_EMULATOR_LISTEN", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
    /// Writes the address in use to this file once connections are accepted.
    #[arg(long, env = "CLOUD_EMULATOR_PRINT_ADDRESS_TO", value_name = "FILE")]
    pub(crate) print_address_to: Option<PathBuf>,
    /// Admits a principal, to the account of the settings unless it names another. May be repeated; in the variable, separated by
    /// commas.
    #[arg(
        long = "token",
        env = "CLOUD_EMULATOR_TOKENS",
        hide_env_values = true,
        value_name = "PRINCIPAL[@ACCOUNT]=TOKEN",
        value_delimiter = ','
    )]
    pub(crate) tokens: Vec<Admission>,
    /// Token of the administration; without it there is none.
    #[arg(long, env = "CLOUD_EMULATOR_ADMIN_TOKEN", hide_env_values = true)]
    pub(crate) admin_token: Option<String>,
    /// Seed of all randomness: ids, drawn lags, faults with a probability.
    #[arg(long, env = "CLOUD_EMULATOR_SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// File with settings in JSON, as PUT /admin/settings takes them.
    #[arg(long, env = "CLOUD_EMULATOR_SETTINGS", value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Time stands still at this moment (RFC 3339) until POST /admin/clock moves it; without it the wall clock is used.
    #[arg(long, env = "CLOUD_EMULATOR_VIRTUAL_TIME", value_name = "TIME")]
    pub(crate) virtual_time: Option<Timestamp>,
}
impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").field("listen", &self.listen).field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// `principal[@account]=token`.
#[derive(Clone)]
pub(crate) struct Admission {
    pub(crate) principal: String,
    pub(crate) account: Option<String>,
    pub(crate) token: String,
}
impl std::str::FromStr for Admission {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (who, token) = text.split_once('=').ok_or("not PRINCIPAL[@ACCOUNT]=TOKEN")?;
        let (principal, account) = who.split_once('@').map_or((who, None), |(name, account)| (name, Some(account)));
        if principal.is_empty() || token.is_empty() {
            return Err("principal and token must not be empty");
        }
        Ok(Admission { principal: principal.into(), account: account.map(Into::into), token: token.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
    #[test]
    fn an_admission_names_principal_account_and_token() {
        let plain: Admission = "alice=s=1".parse().unwrap();
        assert_eq!((plain.principal.as_str(), plain.account, plain.token.as_str()), ("alice", None, "s=1"));
        let elsewhere: Admission = "bob@acct-2=x".parse().unwrap();
        assert_eq!(elsewhere.account.as_deref(), Some("acct-2"));
        assert!("alice".parse::<Admission>().is_err() && "=x".parse::<Admission>().is_err());
    }
}
