//! The ownership engine: what to do for one owner, decided by two pure tables, done by one driver.
//!
//! `stance` says whether we may act at all, `sight` sorts what the cloud shows, `decide` holds the two tables, `write`
//! stores the ledger, `up` and `down` carry out what the tables say, `takeover` and `stance` handle owners that came
//! from elsewhere. See docs/architecture.md for the drawing.
mod act;
pub mod decide;
mod down;
pub mod estate;
pub mod fence;
mod memory;
pub mod owner;
mod pass;
pub mod preview;
pub mod report;
pub mod rules;
pub mod sight;
mod stance;
mod survey;
mod takeover;
mod timing;
mod up;
mod write;

pub use timing::Timing;

use crate::clock::SharedClock;
use crate::ledger::Writer;
use crate::peer::Guard;
use crate::random::Random;
use fence::Fence;
use memory::Memory;
use rules::Rulebook;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one controller is and how its cloud behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The controller's name: in annotations, finalizer and place.
    pub controller: &'static str,
    /// The owner's kind.
    pub kind: String,
    /// Which installation this is.
    pub installation: String,
    /// Times of the cloud.
    pub timing: Timing,
    /// Other providers of the same kind: where one serves the object, nothing is written.
    pub peers: Guard,
}

/// Serves all owners of one kind in one process.
pub struct Engine {
    settings: Settings,
    clock: SharedClock,
    random: Arc<Random>,
    fence: Arc<dyn Fence>,
    rules: Rulebook,
    memory: Memory,
    process: u64,
    writes: AtomicU64,
}

impl Engine {
    /// One per process.
    pub fn new(
        settings: Settings,
        clock: SharedClock,
        random: Arc<Random>,
        fence: Arc<dyn Fence>,
        rules: Rulebook,
    ) -> Self {
        let process = random.bits64();
        let memory = Memory::new(settings.timing.settle(), process, rules.clone());
        Engine { settings, clock, random, fence, rules, memory, process, writes: AtomicU64::new(0) }
    }
    /// The owner is gone for good.
    pub fn forget(&self, uid: &str) {
        self.memory.forget(uid);
    }
    /// Is this ledger text one that this very process wrote?
    pub fn wrote(&self, ledger_text: &str) -> bool {
        crate::ledger::Ledger::parse(ledger_text).is_ok_and(|l| l.writer.process == self.process)
    }
    fn next_writer(&self) -> Writer {
        Writer { process: self.process, number: self.writes.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}
