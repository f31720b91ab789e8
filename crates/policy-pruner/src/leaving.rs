//! Is this installation on its way out, as far as one policy must know?
use crate::api::ConfigurationPolicy;
use crate::cluster::wire::Trouble;
use crate::desk::Desk;
use crate::memory::patience;
use crate::surroundings::Fresh;
use common::runtime::object::Version;
use std::time::Duration;

/// While an uninstall goes on, whether it still does is looked at this often; and else for policies that nobody told.
pub const LEAVING_LOOK: Duration = Duration::from_secs(30);
/// What is said while that cannot be looked at.
pub const UNTOLD: &str = "whether this installation is on its way out cannot be told";

/// How new the answer must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// For a policy that is going, that was told so, or that is about to prune.
    Anew,
    /// For a policy that was edited or whose time has come: an answer serves for a while.
    Lately,
    /// For one that only its objects wake: any answer serves, so that a repair costs no request more than the repair.
    Ever,
}

/// Is it? An answer that says yes is never taken without a new look; and whatever cannot be asked keeps only those from their pass
/// that ask anew.
pub async fn is_leaving(desk: &Desk, policy: &ConfigurationPolicy, look: Look) -> Result<bool, Trouble> {
    let now = desk.clock.boot();
    let age = match look {
        Look::Anew => None,
        Look::Lately => Some(LEAVING_LOOK),
        Look::Ever => Some(Duration::MAX),
    };
    if let Some(age) = age {
        let lately = Fresh { since: Version::parse("0"), now, age };
        if !matches!(desk.surroundings.leaving(lately).await, Ok(true)) {
            return Ok(false);
        }
    }
    let since = Version::parse(policy.metadata.resource_version.as_deref().unwrap_or("0"));
    desk.surroundings.leaving(Fresh { since, now, age: patience(desk.settings.backoff, 1) }).await
}
