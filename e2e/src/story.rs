//! How the stories of a suite are told: only if asked for, side by side or alone, and with what was seen.
use crate::{Result, enabled};
use tokio::sync::RwLock;

/// Most stories are told side by side; one that counts what the controllers' account asks for is told alone.
static FLOOR: RwLock<()> = RwLock::const_new(());

/// Runs a story only if end-to-end tests were asked for; what was seen instead of the wanted is the failure's text.
pub async fn tell(name: &str, story: impl Future<Output = Result<()>>) {
    if enabled(name) {
        let _beside_others = FLOOR.read().await;
        end(name, story.await);
    }
}

/// As [`tell`], with nobody else on the control plane.
pub async fn tell_alone(name: &str, story: impl Future<Output = Result<()>>) {
    if enabled(name) {
        let _alone = FLOOR.write().await;
        end(name, story.await);
    }
}

/// Tells a figure; `hack/verify` collects these lines.
#[allow(clippy::print_stdout)] // on a line of its own, after libtest's unfinished one
pub fn seen(figure: &str) {
    println!("\nSEEN: {figure}");
}

#[allow(clippy::panic)] // how a test fails; the error's own text says everything, its Debug form would hide it
fn end(name: &str, ended: Result<()>) {
    if let Err(error) = ended {
        panic!("{name}: {error}");
    }
}
