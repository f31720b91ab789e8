//! The OpenStack controller's real binary on a real API server, with the emulated cloud on loopback.
//!
//! Every test has a namespace, a cloud and controllers of its own; they share one control plane. What is judged is always the
//! cloud's own truth.
// A test that measures prints what it saw; a story is one long future.
#![allow(clippy::print_stdout, clippy::large_futures)]
mod stage;

mod bastion;
mod faults;
mod happy;
mod kill;
mod real;
mod reality;

use e2e::Result;

/// Runs a story only if end-to-end tests were asked for; what was seen instead of the wanted is the failure's text.
async fn tell(name: &str, story: impl Future<Output = Result<()>>) {
    if e2e::enabled(name) {
        end(name, story.await);
    }
}

/// Tells a figure; `hack/verify` collects these lines.
#[allow(clippy::print_stdout)] // on a line of its own, after libtest's unfinished one
fn seen(figure: &str) {
    println!("\nSEEN: {figure}");
}

#[allow(clippy::panic)] // how a test fails; the error's own text says everything, its Debug form would hide it
fn end(name: &str, ended: Result<()>) {
    if let Err(error) = ended {
        panic!("{name}: {error}");
    }
}
