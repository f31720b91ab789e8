//! The gauge `orphans{kind}`: what nobody looks after any more, as an audit would find it.
use super::metrics::Metrics;
use crate::ledger::Id;
use crate::operator::audit::Finding;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Between two looks. An alert on orphans is about money, not about minutes.
pub const INTERVAL: Duration = Duration::from_mins(10);

/// What the last look found.
#[derive(Debug, Default)]
pub struct Orphans {
    suspects: BTreeSet<(String, Id)>,
    kinds: BTreeSet<String>,
}
impl Orphans {
    /// Counts what this look and the one before call an orphan: one look alone can fall between the last delete of an
    /// owner and the list that shows it.
    pub fn look(&mut self, findings: &[Finding], metrics: &Metrics) {
        let orphans = findings.iter().filter(|f| f.verdict.is_orphan());
        let now: BTreeSet<(String, Id)> = orphans.map(|f| (f.kind.clone(), f.id.clone())).collect();
        self.kinds.extend(now.iter().map(|(kind, _)| kind.clone()));
        let mut counts: BTreeMap<&str, i64> = self.kinds.iter().map(|kind| (kind.as_str(), 0)).collect();
        for (kind, _) in now.intersection(&self.suspects) {
            *counts.entry(kind).or_default() += 1;
        }
        for (kind, count) in counts {
            metrics.orphans.with_label_values(&[kind]).set(count);
        }
        self.suspects = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::audit::Verdict;

    fn finding(verdict: Verdict, id: &str) -> Finding {
        let text = String::new;
        let (name, slot, owner, note) = (text(), text(), text(), text());
        Finding { verdict, kind: "disk".into(), id: id.into(), name, slot, owner, note }
    }

    #[test]
    fn an_orphan_counts_from_the_second_look_until_it_is_gone() {
        let (mut orphans, metrics) = (Orphans::default(), Metrics::new("sample", "0").unwrap());
        let disks = || metrics.orphans.with_label_values(&["disk"]).get();
        let both = [finding(Verdict::Orphan, "a"), finding(Verdict::Owned, "b")];
        orphans.look(&both, &metrics);
        assert_eq!(disks(), 0);
        orphans.look(&both, &metrics);
        assert_eq!(disks(), 1);
        orphans.look(&[finding(Verdict::Orphan, "c")], &metrics);
        assert_eq!(disks(), 0);
        orphans.look(&[], &metrics);
        assert_eq!(disks(), 0);
    }
}
