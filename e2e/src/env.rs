//! The environment variables of the harness, read in one place.
use std::path::PathBuf;
use std::time::Duration;

/// Set to 1: the end-to-end tests run.
pub const ENABLED: &str = "CUSTODY_E2E";
/// Folder of a control plane that many test processes share; set by `e2e-controlplane with`.
pub const SHARED: &str = "CUSTODY_E2E_DIR";
/// Set to 1: use the cluster that `KUBECONFIG` names instead of starting a control plane.
pub const EXISTING: &str = "CUSTODY_E2E_EXISTING";
/// Where the controllers and the emulator were built; the folder of the running executable's profile if unset.
pub const BINARIES: &str = "CUSTODY_BIN_DIR";

/// For how many seconds a leader is frozen.
pub const FREEZE: &str = "CUSTODY_E2E_FREEZE_SECONDS";
/// For how many seconds a controller is killed again and again.
pub const KILLS: &str = "CUSTODY_E2E_KILL_SECONDS";
/// For how many seconds the API server is away.
pub const OUTAGE: &str = "CUSTODY_E2E_OUTAGE_SECONDS";
/// For how many seconds a controller with nothing to do is watched.
pub const QUIET: &str = "CUSTODY_E2E_QUIET_SECONDS";
/// Seed of what tests draw.
pub const SEED: &str = "CUSTODY_E2E_SEED";

/// Folder of a running OpenStack (`e2e/openstack/up.sh`); without it, tests on a real one are left out.
pub const OPENSTACK: &str = "CUSTODY_OPENSTACK_ROOT";

#[allow(clippy::disallowed_methods)] // a library has no command line; the variables are documented above
pub(crate) fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

pub(crate) fn path(name: &str) -> Option<PathBuf> {
    read(name).map(PathBuf::from)
}

pub(crate) fn is_set(name: &str) -> bool {
    read(name).as_deref() == Some("1")
}

/// A number, or `otherwise` if the variable is unset or no number.
pub fn number(name: &str, otherwise: u64) -> u64 {
    read(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A time in seconds, or `otherwise` seconds.
pub fn seconds(name: &str, otherwise: u64) -> Duration {
    Duration::from_secs(number(name, otherwise))
}

/// Whether end-to-end tests were asked for. Says on stderr that `test` is skipped if not.
pub fn enabled(test: &str) -> bool {
    let enabled = is_set(ENABLED);
    if !enabled {
        eprintln!("skipped: {test} (set {ENABLED}=1 to run it)");
    }
    enabled
}

/// The folder of a running OpenStack, if there is one.
pub fn openstack_root() -> Option<PathBuf> {
    path(OPENSTACK)
}
