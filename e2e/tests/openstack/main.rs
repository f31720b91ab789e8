//! The OpenStack controller's real binary on a real API server, with the emulated cloud on loopback.
//!
//! Every test has a namespace, a cloud and controllers of its own; they share one control plane. What is judged is always the
//! cloud's own truth.
// A test that measures prints what it saw; a story is one long future.
#![allow(clippy::print_stdout, clippy::large_futures)]
// The number of a case, then its words.
#![allow(non_snake_case)]
mod stage;

mod bastion;
mod faults;
mod happy;
mod kill;
mod machine;
mod operate;
mod real;
mod real_parents;
mod real_stage;
mod reality;
mod replay;
mod rights;

use e2e::story::{seen, tell, tell_alone};
