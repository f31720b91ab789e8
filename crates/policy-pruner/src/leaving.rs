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

/// Is it? Asked `anew` for a policy that is going, that was told so, or that is about to prune. For others an answer serves for a while,
/// unless it says yes; and whatever cannot be asked does not keep them from being evaluated.
pub async fn is_leaving(desk: &Desk, policy: &ConfigurationPolicy, anew: bool) -> Result<bool, Trouble> {
    let now = desk.clock.boot();
    let lately = Fresh { since: Version::parse("0"), now, age: LEAVING_LOOK };
    if !anew && !matches!(desk.surroundings.leaving(lately).await, Ok(true)) {
        return Ok(false);
    }
    let since = Version::parse(policy.metadata.resource_version.as_deref().unwrap_or("0"));
    desk.surroundings.leaving(Fresh { since, now, age: patience(desk.settings.backoff, 1) }).await
}
