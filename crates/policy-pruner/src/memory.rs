//! What this process remembers of a policy between passes, and whether it is time to evaluate. Pure: now is an argument.
use crate::api::{ConfigurationPolicy, PolicyStatus};
use crate::evaluate::Results;
use crate::names::reason;
use crate::standing::{COMPLIANT, TERMINATING};
use crate::text::duration::Interval;
use common::clock::Boot;
use jiff::Timestamp;
use std::time::Duration;

/// Between passes.
#[derive(Debug, Default)]
pub struct Memory {
    /// What was evaluated last in this process.
    pub evaluated: Option<Fingerprint>,
    /// Something the policy looks at changed.
    pub dirty: bool,
    /// When the last evaluation began.
    pub began: Option<Boot>,
    /// Failures in a row.
    pub streak: u32,
    /// The last evaluation must be repeated even if nothing changes.
    pub unfinished: bool,
    /// Comparisons.
    pub results: Results,
    /// The generation that `results` are about.
    pub generation: i64,
    /// An event about held pruning was sent for this generation.
    pub told_held: bool,
    /// What an event said last about kept objects, and of which generation.
    told_kept: (i64, String),
    /// When a deletion was last attempted.
    pub swept: Option<Boot>,
}
impl Memory {
    /// Is this worth an event? A deletion that is tried again keeps the same objects every time.
    pub fn is_news(&mut self, generation: i64, kept: &str) -> bool {
        let told = (generation, kept.to_owned());
        let news = !kept.is_empty() && self.told_kept != told;
        if news {
            self.told_kept = told;
        }
        news
    }
}

/// What makes an evaluation worth repeating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    uid: String,
    generation: i64,
    annotations: Vec<Option<String>>,
}
impl Fingerprint {
    /// Of a policy.
    pub fn of(policy: &ConfigurationPolicy) -> Self {
        let annotation = |key: &str| policy.metadata.annotations.as_ref().and_then(|a| a.get(key)).cloned();
        let keys = [crate::names::DISABLE_TEMPLATES, crate::names::ENCRYPTION_IV, crate::names::UNINSTALLING];
        Fingerprint {
            uid: policy.metadata.uid.clone().unwrap_or_default(),
            generation: policy.metadata.generation.unwrap_or_default(),
            annotations: keys.into_iter().map(annotation).collect(),
        }
    }
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Evaluate.
    Now,
    /// Not before this long.
    In(Duration),
    /// Not until something changes.
    Not,
}

/// Is it time?
pub fn due(policy: &ConfigurationPolicy, memory: &Memory, wall: Timestamp) -> Due {
    let empty = PolicyStatus::default();
    let status = policy.status.as_ref().unwrap_or(&empty);
    let generation = policy.metadata.generation.unwrap_or_default();
    let first = status.last_evaluated.is_empty() || status.last_evaluated_generation != generation;
    let unknown = status.compliant.is_empty() || status.compliant == TERMINATING;
    if first || unknown || memory.dirty || memory.unfinished || waits_for_recreate(status) {
        return Due::Now;
    }
    let interval = policy.spec.interval(status.compliant == COMPLIANT);
    let changed = memory.evaluated.as_ref().is_some_and(|before| *before != Fingerprint::of(policy));
    match interval {
        // After a start everything is looked at once, so that it is followed from then on.
        Interval::Watch if changed || memory.evaluated.is_none() => Due::Now,
        Interval::Watch => Due::Not,
        Interval::Never => {
            if changed {
                Due::Now
            } else {
                Due::Not
            }
        }
        Interval::Unreadable => Due::Now,
        Interval::Every(_) if changed => Due::Now,
        Interval::Every(period) => match status.last_evaluated.parse::<Timestamp>() {
            Err(_) => Due::Now,
            Ok(last) => {
                let passed = Duration::try_from(wall.duration_since(last)).unwrap_or_default();
                if passed >= period { Due::Now } else { Due::In(period.saturating_sub(passed)) }
            }
        },
    }
}
fn waits_for_recreate(status: &PolicyStatus) -> bool {
    let conditions = status.compliancy_details.iter().flat_map(|detail| &detail.conditions);
    conditions.into_iter().any(|c| {
        c.reason.contains(reason::UPDATE_ERROR)
            && c.message.contains("timed out waiting for the object to delete during recreate")
    })
}

/// When to come back after an evaluation, if nothing happens meanwhile.
pub fn come_back(interval: Interval) -> Option<Duration> {
    match interval {
        Interval::Watch | Interval::Never => None,
        Interval::Every(period) => Some(period),
        Interval::Unreadable => Some(Duration::from_secs(10)),
    }
}

/// Does the policy follow what it looks at?
pub fn follows(policy: &ConfigurationPolicy) -> bool {
    let compliant = policy.status.as_ref().is_some_and(|s| s.compliant == COMPLIANT);
    policy.spec.interval(compliant) == Interval::Watch
}

/// How long a failing policy is left alone.
pub fn patience(backoff: Duration, streak: u32) -> Duration {
    let base = backoff.max(Duration::from_secs(1));
    base.saturating_mul(1 << streak.saturating_sub(1).min(5)).min(Duration::from_mins(1)).max(base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PolicySpec;

    fn policy(compliant: &str, noncompliant: &str, state: &str) -> ConfigurationPolicy {
        let mut spec = PolicySpec::default();
        spec.evaluation_interval.compliant = compliant.into();
        spec.evaluation_interval.noncompliant = noncompliant.into();
        let mut policy = ConfigurationPolicy::new("p", spec);
        policy.metadata.generation = Some(1);
        policy.status = Some(PolicyStatus {
            compliant: state.into(),
            last_evaluated: "2026-11-16T08:00:00Z".into(),
            last_evaluated_generation: 1,
            ..PolicyStatus::default()
        });
        policy
    }
    fn known(policy: &ConfigurationPolicy) -> Memory {
        Memory { evaluated: Some(Fingerprint::of(policy)), ..Memory::default() }
    }
    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_table_of_due() {
        let later = at("2026-11-16T08:00:30Z");
        for (compliant, noncompliant, state, expected) in [
            ("", "", COMPLIANT, Due::Not),
            ("10s", "", COMPLIANT, Due::Now),
            ("1m", "", COMPLIANT, Due::In(Duration::from_secs(30))),
            ("1m", "", "NonCompliant", Due::Not),
            ("", "1m", "NonCompliant", Due::In(Duration::from_secs(30))),
            ("never", "", COMPLIANT, Due::Not),
            ("", "never", COMPLIANT, Due::Not),
            ("never", "10s", "", Due::Now),
            ("never", "never", TERMINATING, Due::Now),
            ("10x", "", COMPLIANT, Due::Now),
        ] {
            let policy = policy(compliant, noncompliant, state);
            assert_eq!(due(&policy, &known(&policy), later), expected, "{compliant} {noncompliant} {state}");
        }
    }
    #[test]
    fn changes_and_dirt_are_due_at_once() {
        let mut policy = policy("1h", "1h", COMPLIANT);
        let mut memory = known(&policy);
        let now = at("2026-11-16T08:00:30Z");
        memory.dirty = true;
        assert_eq!(due(&policy, &memory, now), Due::Now);
        memory.dirty = false;
        policy.metadata.annotations = Some([(crate::names::ENCRYPTION_IV.to_owned(), "x".to_owned())].into());
        assert_eq!(due(&policy, &memory, now), Due::Now);
        policy.metadata.annotations = Some([("other".to_owned(), "x".to_owned())].into());
        assert_ne!(due(&policy, &memory, now), Due::Now, "annotations of others do not count");
        policy.metadata.generation = Some(2);
        assert_eq!(due(&policy, &memory, now), Due::Now);
    }
    #[test]
    fn after_a_start_watched_policies_are_looked_at_once_and_timed_ones_keep_their_time() {
        let now = at("2026-11-16T08:00:30Z");
        assert_eq!(due(&policy("", "", COMPLIANT), &Memory::default(), now), Due::Now);
        assert_ne!(due(&policy("1h", "", COMPLIANT), &Memory::default(), now), Due::Now);
    }
    #[test]
    fn what_is_kept_is_told_once_and_again_when_it_changes() {
        let mut memory = Memory::default();
        let told = [(1, ""), (1, "a"), (1, "a"), (1, ""), (1, "a"), (1, "a; b"), (2, "a; b")]
            .map(|(generation, kept)| memory.is_news(generation, kept));
        assert_eq!(told, [false, true, false, false, false, true, true]);
    }
    #[test]
    fn patience_grows_and_ends() {
        let backoff = Duration::from_secs(5);
        let seconds: Vec<u64> = (1..=6).map(|n| patience(backoff, n).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 60, 60]);
        assert_eq!(patience(Duration::ZERO, 1), Duration::from_secs(1));
    }
}
