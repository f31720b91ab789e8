//! Time that passes only when somebody waits.
use common::clock::{Boot, Clock};
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Milliseconds since the beginning. Sleeping moves it.
#[derive(Debug, Default)]
pub struct SimClock(AtomicU64);
impl SimClock {
    /// Time passes.
    pub fn pass(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}
impl Clock for SimClock {
    fn boot(&self) -> Boot {
        Boot(Duration::from_millis(self.0.load(Ordering::SeqCst)))
    }
    fn wall(&self) -> Timestamp {
        let millis = i64::try_from(self.0.load(Ordering::SeqCst)).unwrap_or(i64::MAX / 2);
        Timestamp::from_millisecond(1_790_000_000_000_i64.saturating_add(millis)).unwrap_or_default()
    }
    fn sleep_until(&self, until: Boot) -> BoxFuture<'static, ()> {
        self.pass(until.since(self.boot()));
        Box::pin(std::future::ready(()))
    }
}
