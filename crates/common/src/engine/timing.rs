//! The three times that the protocol's safety rests on, and the one that follows from them.
use std::time::Duration;

/// Times of one cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Intent patch and cloud write both start within this time after the listing was sent.
    pub window: Duration,
    /// A whole call, retries included, is over by then, one way or the other.
    pub call: Duration,
    /// Whatever a call changed shows in listings by then.
    pub lag: Duration,
    /// How often to look at what is under way.
    pub poll: Duration,
}
impl Timing {
    /// Suits most clouds: settle is one minute.
    pub const DEFAULT: Timing = Timing {
        window: Duration::from_secs(10),
        call: Duration::from_secs(15),
        lag: Duration::from_secs(30),
        poll: Duration::from_secs(10),
    };
    /// Only for clocks that do not tick alike in two processes.
    const MARGIN: Duration = Duration::from_secs(5);

    /// Nothing that was under way when a record was first seen can still come to light after this.
    pub fn settle(&self) -> Duration {
        self.window + self.call + self.lag + Timing::MARGIN
    }
}
