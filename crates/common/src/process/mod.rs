//! The process around a controller: command line, logs, metrics, health, leadership, the way to a clean end.
pub mod health;
pub mod metrics;
