//! The process around a controller: command line, logs, metrics, health, leadership, the way to a clean end.
pub mod cli;
pub mod client;
pub mod health;
pub mod leader;
pub mod metered;
pub mod metrics;
pub mod orphans;
pub mod owned;
pub mod run;
pub mod server;
pub mod shutdown;
pub mod telemetry;

pub use run::{Context, Identity, carry_out, run};
