//! How long to leave a failing object alone: one second, doubled with every failure in a row, up to five minutes.
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// After the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// Never longer.
pub const LONGEST: Duration = Duration::from_mins(5);

/// The wait after `streak` failures in a row (1 is the first). `seed` spreads objects that failed together over a fifth of it.
pub fn delay(streak: u32, seed: u64) -> Duration {
    let doublings = streak.saturating_sub(1).min(16);
    let base = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let spread = u64::try_from(base.as_millis()).unwrap_or(u64::MAX) / 5;
    let less = if spread == 0 { 0 } else { seed % (spread + 1) };
    base.saturating_sub(Duration::from_millis(less))
}

/// Failures in a row, per object. Bounded: when it is full, the object with the shortest streak is forgotten.
#[derive(Debug)]
pub struct Streaks<K> {
    most: usize,
    failures: HashMap<K, u32>,
}
impl<K: Hash + Eq + Clone> Streaks<K> {
    /// Remembers at most this many objects.
    pub fn new(most: usize) -> Self {
        Streaks { most: most.max(1), failures: HashMap::new() }
    }
    /// One more failure; returns how many in a row.
    pub fn failed(&mut self, key: &K) -> u32 {
        if let Some(n) = self.failures.get_mut(key) {
            *n = n.saturating_add(1);
            return *n;
        }
        if self.failures.len() >= self.most {
            let shortest = self.failures.iter().min_by_key(|(_, n)| **n).map(|(k, _)| k.clone());
            shortest.and_then(|k| self.failures.remove(&k));
        }
        self.failures.insert(key.clone(), 1);
        1
    }
    /// Did it fail last time?
    pub fn is_failing(&self, key: &K) -> bool {
        self.failures.contains_key(key)
    }
    /// It went well, or the object is gone.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }
    /// Objects that failed last time.
    pub fn len(&self) -> usize {
        self.failures.len()
    }
    /// Nothing failed.
    pub fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_double_up_to_five_minutes() {
        let seconds: Vec<u64> = (0..=12).map(|n| delay(n, 0).as_secs()).collect();
        assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        assert_eq!(delay(u32::MAX, 0), LONGEST);
    }
    proptest! {
        #[test]
        fn chance_shortens_by_at_most_a_fifth(streak: u32, seed: u64) {
            let (whole, shortened) = (delay(streak, 0), delay(streak, seed));
            prop_assert!(shortened <= whole && shortened >= whole.mul_f64(0.8));
        }
    }
    #[test]
    fn success_ends_the_streak() {
        let mut streaks = Streaks::new(8);
        assert_eq!((streaks.failed(&"a"), streaks.failed(&"a"), streaks.failed(&"b")), (1, 2, 1));
        streaks.forget(&"a");
        assert_eq!(streaks.failed(&"a"), 1);
    }
    #[test]
    fn a_full_map_forgets_the_shortest_streak() {
        let mut streaks = Streaks::new(2);
        streaks.failed(&1);
        streaks.failed(&1);
        streaks.failed(&2);
        streaks.failed(&3);
        assert_eq!(streaks.len(), 2);
        assert_eq!(streaks.failed(&1), 3);
    }
}
