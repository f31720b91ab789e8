//! The way to a clean end: the first signal asks, the second insists.
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Exit status after a second signal.
pub const INSISTED: i32 = 130;

/// A token that is cancelled by the first SIGTERM or SIGINT. The second one ends the process on the spot.
pub fn on_signals() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            }
        };
        let first = next().await;
        info!(signal = first, "stopping; a second signal stops at once");
        stop.cancel();
        let second = next().await;
        warn!(signal = second, "stopped at once");
        std::process::exit(INSISTED);
    });
    Ok(token)
}
