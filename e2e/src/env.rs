//! The environment variables of the harness, read in one place.
use std::path::PathBuf;

/// Set to 1: the end-to-end tests run.
pub const ENABLED: &str = "CUSTODY_E2E";
/// Folder of a control plane that many test processes share; set by `e2e-controlplane with`.
pub const SHARED: &str = "CUSTODY_E2E_DIR";
/// Set to 1: use the cluster that `KUBECONFIG` names instead of starting a control plane.
pub const EXISTING: &str = "CUSTODY_E2E_EXISTING";
/// Where the controllers and the emulator were built; the folder of the running executable's profile if unset.
pub const BINARIES: &str = "CUSTODY_BIN_DIR";

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

/// Whether end-to-end tests were asked for. Says on stderr that `test` is skipped if not.
pub fn enabled(test: &str) -> bool {
    let enabled = is_set(ENABLED);
    if !enabled {
        eprintln!("skipped: {test} (set {ENABLED}=1 to run it)");
    }
    enabled
}
