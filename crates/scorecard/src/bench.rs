//! What a scenario is given, and what it gives back.
use crate::checks::Verdict;
use common::engine::rules::Rulebook;
use common::testing::sim_clock::millis;
use common::testing::{Beginning, Lags, Millis, Subject, World};
use std::sync::Arc;

/// Who is tested, under which rules.
#[derive(Clone)]
pub struct Bench {
    /// The user of the engine.
    pub subject: Arc<dyn Subject>,
    /// Which rules hold.
    pub rules: Rulebook,
    /// Keep the history for people?
    pub trace: bool,
}

impl Bench {
    /// A world with two API servers.
    pub fn world(&self, seed: u64, shared_installation: bool, lags: Lags, haste: Millis) -> World {
        let second = if shared_installation { "one" } else { "two" };
        World::new(
            Arc::clone(&self.subject),
            Beginning {
                seed,
                installations: vec!["one".into(), second.into()],
                lags,
                haste,
                rules: self.rules.clone(),
                trace: self.trace,
            },
        )
    }
    /// The longest anything can stay unseen.
    pub fn settle(&self) -> Millis {
        millis(self.subject.timing().settle())
    }
    /// As late as the cloud is allowed to be, so that settle still covers it.
    pub fn latest(&self) -> Lags {
        let lag = millis(self.subject.timing().lag);
        Lags { list: lag, tag: lag, get: lag / 6, ghost: lag, delete: lag / 2, build: lag, worst: false }
    }
}

/// One family of histories.
pub struct Scenario {
    /// As in the table: `S1`.
    pub name: &'static str,
    /// What it does.
    pub title: &'static str,
    /// How many histories it has; `budget` is what is asked for where there is no natural number.
    pub cases: fn(&Bench, budget: u64) -> u64,
    /// One of them.
    pub run: fn(&Bench, case: u64) -> Verdict,
    /// Its part of the budget, in thousandths.
    pub share: u64,
}
