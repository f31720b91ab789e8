//! Runs histories on a few threads and adds up what they came to.
use crate::bench::{Bench, Scenario};
use crate::checks::Verdict;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Threads used.
pub const THREADS: u64 = 2;

/// What the histories of one scenario came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Histories run.
    pub histories: u64,
    /// External calls in them.
    pub calls: u64,
    /// Each sort of damage: how often, and the first case that shows it.
    pub violations: BTreeMap<String, (u64, u64)>,
    /// Each sort of known residue.
    pub residue: BTreeMap<String, (u64, u64)>,
}
impl Tally {
    fn add(&mut self, case: u64, verdict: Verdict) {
        self.histories += 1;
        self.calls += verdict.calls;
        for (lines, into) in [(verdict.violations, &mut self.violations), (verdict.residue, &mut self.residue)] {
            for line in lines {
                let entry = into.entry(line).or_insert((0, case));
                *entry = (entry.0 + 1, entry.1.min(case));
            }
        }
    }
    /// Both together.
    #[must_use]
    pub fn with(mut self, other: Tally) -> Tally {
        self.histories += other.histories;
        self.calls += other.calls;
        for (from, into) in [(other.violations, &mut self.violations), (other.residue, &mut self.residue)] {
            for (line, (count, case)) in from {
                let entry = into.entry(line).or_insert((0, case));
                *entry = (entry.0 + count, entry.1.min(case));
            }
        }
        self
    }
}

/// One history; a panic in it is damage too.
pub fn run_one(bench: &Bench, scenario: &Scenario, case: u64) -> Verdict {
    catch_unwind(AssertUnwindSafe(|| (scenario.run)(bench, case))).unwrap_or_else(|_| {
        let mut verdict = Verdict::default();
        verdict.violations.insert("panicked".into());
        verdict
    })
}

/// Runs `count` of the scenario's `total` histories, evenly spread.
pub fn run_many(bench: &Bench, scenario: &Scenario, total: u64, count: u64, done: &AtomicU64) -> Tally {
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut tally = Tally::default();
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        break;
                    }
                    let case = if count < total { n * total / count } else { n };
                    tally.add(case, run_one(bench, scenario, case));
                    done.fetch_add(1, Ordering::Relaxed);
                }
                if let Ok(mut sum) = sum.lock() {
                    *sum = std::mem::take(&mut *sum).with(tally);
                }
            });
        }
    });
    sum.into_inner().unwrap_or_default()
}

/// The first case up to `most` in which damage shows that `whole` does not have, with what it is.
pub fn find(bench: &Bench, whole: &Bench, scenario: &Scenario, most: u64) -> Option<(u64, String)> {
    let next = AtomicU64::new(0);
    let found: Mutex<Option<(u64, String)>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    let over = found.lock().is_ok_and(|f| f.as_ref().is_some_and(|(known, _)| *known < case));
                    if case >= most || over {
                        break;
                    }
                    let verdict = run_one(bench, scenario, case);
                    let Some(line) = verdict.violations.into_iter().next() else { continue };
                    if !run_one(whole, scenario, case).violations.is_empty() {
                        continue;
                    }
                    if let Ok(mut found) = found.lock()
                        && found.as_ref().is_none_or(|(known, _)| case < *known)
                    {
                        *found = Some((case, line));
                    }
                }
            });
        }
    });
    found.into_inner().ok().flatten()
}
