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
mod lives;
mod pruning;
mod rights;

use e2e::Result;

/// Runs a story only if end-to-end tests were asked for.
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
#[allow(clippy::panic)] // how a test fails; the error's own text says everything
fn end(name: &str, ended: Result<()>) {
    if let Err(error) = ended {
        panic!("{name}: {error}");
    }
}
