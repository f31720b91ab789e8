//! How many cloud resources are recorded as ours, by kind: the gauge `owned_resources`.
use super::metrics::Metrics;
use crate::engine::report::Report;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts per owner, so that an owner that changes or goes is taken out of the sum. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Owned(Arc<Mutex<Tally>>);

/// Kinds and how many of each; small, because there is one per owner.
type Counts = Box<[(Box<str>, i64)]>;

#[derive(Debug, Default)]
struct Tally {
    by_owner: HashMap<Box<str>, Counts>,
    by_kind: BTreeMap<Box<str>, i64>,
}
impl Owned {
    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What an owner has after a pass. A pass that knows no ids because it could not look says nothing.
    pub fn note(&self, uid: &str, report: &Report, metrics: &Metrics) {
        let mut kinds: BTreeMap<&str, i64> = BTreeMap::new();
        for slot in report.ids.keys() {
            *kinds.entry(slot.kind()).or_default() += 1;
        }
        self.replace(uid, kinds.into_iter().map(|(kind, n)| (kind.into(), n)).collect(), metrics);
    }
    /// The owner is gone.
    pub fn forget(&self, uid: &str, metrics: &Metrics) {
        self.replace(uid, Box::default(), metrics);
    }
    fn replace(&self, uid: &str, new: Counts, metrics: &Metrics) {
        let mut tally = self.lock();
        let old =
            if new.is_empty() { tally.by_owner.remove(uid) } else { tally.by_owner.insert(uid.into(), new.clone()) };
        for (kind, n) in old.unwrap_or_default() {
            *tally.by_kind.entry(kind).or_default() -= n;
        }
        for (kind, n) in new {
            *tally.by_kind.entry(kind).or_default() += n;
        }
        for (kind, n) in &tally.by_kind {
            metrics.owned.with_label_values(&[&**kind]).set(*n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::report::Progress;

    fn report(slots: &[&str]) -> Report {
        let ids = slots.iter().map(|s| (s.parse().unwrap(), "id".to_owned())).collect();
        Report {
            progress: Progress::Done,
            view: None,
            standing: vec![],
            notes: vec![],
            kept: vec![],
            mirror: None,
            ids,
        }
    }

    #[test]
    fn an_owner_counts_once_whatever_happens_to_it() {
        let (owned, metrics) = (Owned::default(), Metrics::new("sample", "0").unwrap());
        let ports = || metrics.owned.with_label_values(&["port"]).get();
        owned.note("a", &report(&["port-0", "port-1", "vpc"]), &metrics);
        owned.note("b", &report(&["port-0"]), &metrics);
        assert_eq!(ports(), 3);
        owned.note("a", &report(&["port-0", "vpc"]), &metrics);
        assert_eq!(ports(), 2);
        owned.forget("a", &metrics);
        owned.forget("a", &metrics);
        assert_eq!((ports(), metrics.owned.with_label_values(&["vpc"]).get()), (1, 0));
    }
}
