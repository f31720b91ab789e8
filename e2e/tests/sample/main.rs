//! The sample controller's real binary on a real API server, with the emulated cloud on loopback.
//!
//! Every test has a namespace, a cloud and controllers of its own; they share one control plane, except where a test takes it
//! away or needs two. What is judged is always the cloud's own truth against the owners' ledgers.
// A test that measures prints what it saw; a story is one long future.
#![allow(clippy::print_stdout, clippy::large_futures)]
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

use e2e::story::{seen, tell, tell_alone};
