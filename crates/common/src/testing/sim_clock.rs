//! The clocks of one simulated process: its machine booted at a time of its own, its wall clock may be wrong and may jump.
use super::calendar::Millis;
use super::sim::{ProcessId, Sim, date_of};
use crate::clock::{Boot, Clock};
use futures::channel::oneshot;
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::time::Duration;

/// The clocks of one process.
#[derive(Clone)]
pub struct SimClock {
    sim: Sim,
    process: ProcessId,
}

impl SimClock {
    /// The clocks of this process.
    pub fn new(sim: Sim, process: ProcessId) -> Self {
        SimClock { sim, process }
    }
}

/// Whole milliseconds of a duration; a history never lasts long enough to overflow.
pub fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

impl Clock for SimClock {
    fn boot(&self) -> Boot {
        self.sim.with(|s| {
            let now = Duration::from_millis(s.now());
            let Some(p) = s.processes.get_mut(self.process) else { return Boot(now) };
            // Never the same moment twice: what compares two readings for equality must fail here as it would outside.
            p.last_read = (p.booted + now).max(p.last_read + Duration::from_nanos(1));
            Boot(p.last_read)
        })
    }
    fn wall(&self) -> Timestamp {
        self.sim.with(|s| {
            let true_date = date_of(s.now());
            s.processes.get(self.process).and_then(|p| true_date.checked_add(p.skew).ok()).unwrap_or(true_date)
        })
    }
    fn sleep_until(&self, until: Boot) -> BoxFuture<'static, ()> {
        let (tell, told) = oneshot::channel();
        self.sim.with(|s| {
            let booted = s.processes.get(self.process).map_or(Duration::ZERO, |p| p.booted);
            let at = until.0.saturating_sub(booted);
            // Up to the next millisecond: a sleeper must never wake before its time.
            let at = millis(at) + u64::from(!at.subsec_nanos().is_multiple_of(1_000_000));
            let after = at.saturating_sub(s.now());
            s.book(after, move |_| {
                let _ = tell.send(());
            });
        });
        Box::pin(async move {
            if told.await.is_err() {
                futures::future::pending::<()>().await;
            }
        })
    }
}
