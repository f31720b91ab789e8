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

use e2e::Result;
use tokio::sync::RwLock;

/// Most stories are told side by side; one that counts what the controllers' account asks for is told alone.
static FLOOR: RwLock<()> = RwLock::const_new(());

/// Runs a story only if end-to-end tests were asked for; what was seen instead of the wanted is the failure's text.
async fn tell(name: &str, story: impl Future<Output = Result<()>>) {
    if e2e::enabled(name) {
        let _beside_others = FLOOR.read().await;
        end(name, story.await);
    }
}

/// As [`tell`], with nobody else on the control plane.
async fn tell_alone(name: &str, story: impl Future<Output = Result<()>>) {
    if e2e::enabled(name) {
        let _alone = FLOOR.write().await;
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
