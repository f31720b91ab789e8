//! The time of a cloud that is served over HTTP. A simulator needs none of this: it hands `now` in.
use jiff::Timestamp;
use std::time::Duration;

/// Where a served cloud's time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudClock {
    /// The machine's wall clock, this far ahead.
    Real {
        /// How far ahead.
        ahead: Duration,
    },
    /// Stands still until it is moved.
    Virtual {
        /// The present.
        now: Timestamp,
    },
}
impl CloudClock {
    /// The machine's wall clock.
    pub const REAL: CloudClock = CloudClock::Real { ahead: Duration::ZERO };

    /// Now.
    #[allow(clippy::disallowed_methods)] // the one place of this crate that asks the machine
    pub fn now(&self) -> Timestamp {
        match *self {
            CloudClock::Real { ahead } => super::later(Timestamp::now(), ahead),
            CloudClock::Virtual { now } => now,
        }
    }
    /// Lets time pass.
    pub fn advance(&mut self, by: Duration) {
        match self {
            CloudClock::Real { ahead } => *ahead = ahead.saturating_add(by),
            CloudClock::Virtual { now } => *now = super::later(*now, by),
        }
    }
}
