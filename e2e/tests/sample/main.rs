//! The sample controller's real binary on a real API server, with the emulated cloud on loopback.
//!
//! Every test has a namespace, a cloud and controllers of its own; they share one control plane, except where a test takes it
//! away or needs two. What is judged is always the cloud's own truth against the owners' ledgers.
mod breaks;
mod churn;
mod cloud;
mod judge;
mod owners;
mod stage;

mod copies;
mod damage;
mod freeze;
mod happy;
mod kill;
mod moves;
mod outage;
mod quiet;

use e2e::Result;

/// Runs a story only if end-to-end tests were asked for; what was seen instead of the wanted is the failure's text.
async fn tell(name: &str, story: impl Future<Output = Result<()>>) {
    if !e2e::enabled(name) {
        return;
    }
    if let Err(error) = story.await {
        assert!(error.to_string().is_empty(), "{name}: {error}");
    }
}
