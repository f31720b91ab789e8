//! Time, handed in: production asks the machine, the simulator asks its own calendar.
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

/// A moment on this machine's boot-time clock: suspended time included, never moved by a wall-clock jump.
/// Meaningless outside this process; nothing of it is ever stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boot(pub Duration);

impl Boot {
    /// How long `self` lies after `earlier`; zero if it does not.
    pub fn since(self, earlier: Boot) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
    /// This moment less `by`, not before the beginning.
    #[must_use]
    pub fn minus(self, by: Duration) -> Boot {
        Boot(self.0.saturating_sub(by))
    }
}
impl Add<Duration> for Boot {
    type Output = Boot;
    fn add(self, by: Duration) -> Boot {
        Boot(self.0.saturating_add(by))
    }
}
impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}s", self.0.as_secs_f64())
    }
}

/// The only source of time in this workspace.
pub trait Clock: Send + Sync + 'static {
    /// Now, for deadlines and settle times.
    fn boot(&self) -> Boot;
    /// Now, for people: events, conditions, logs. No decision may rest on it.
    fn wall(&self) -> Timestamp;
    /// Resolves at `until`.
    fn sleep_until(&self, until: Boot) -> BoxFuture<'static, ()>;
}

/// A clock many parts share.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn boot(&self) -> Boot {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let (secs, nanos) = (u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0));
        Boot(Duration::new(secs, nanos))
    }
    #[allow(clippy::disallowed_methods)] // the one place that may ask
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }
    #[allow(clippy::disallowed_methods)]
    fn sleep_until(&self, until: Boot) -> BoxFuture<'static, ()> {
        let left = until.since(self.boot());
        Box::pin(tokio::time::sleep(left))
    }
}
