//! The policy pruner's real binary on a real API server: what policies mean, case by case, and what becomes of their objects.
//!
//! Cases are data (`cases/*.yaml`): given objects and a policy, when something is done, then status, messages and objects.
#![allow(clippy::print_stdout, clippy::large_futures)]
mod case;
mod check;
mod stage;

mod conformance;
mod drift;
mod ends;
mod faults;
mod lease;
mod lives;
mod pruning;
mod rights;

use e2e::story::{seen, tell};
