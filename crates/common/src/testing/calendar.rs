//! Virtual time: what happens next. Nothing here waits; time jumps from one happening to the next.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Milliseconds since the history began.
pub type Millis = u64;

/// Happenings in order of time, and of booking at the same time.
#[derive(Debug)]
pub struct Calendar<T> {
    now: Millis,
    booked: u64,
    order: BinaryHeap<Reverse<(Millis, u64)>>,
    entries: BTreeMap<u64, T>,
}

impl<T> Default for Calendar<T> {
    fn default() -> Self {
        Calendar { now: 0, booked: 0, order: BinaryHeap::new(), entries: BTreeMap::new() }
    }
}

impl<T> Calendar<T> {
    /// The time it is.
    pub fn now(&self) -> Millis {
        self.now
    }
    /// Books a happening; one booked for the past happens next.
    pub fn book(&mut self, at: Millis, what: T) {
        self.booked += 1;
        self.order.push(Reverse((at.max(self.now), self.booked)));
        self.entries.insert(self.booked, what);
    }
    /// When the next happening is.
    pub fn next_at(&self) -> Option<Millis> {
        self.order.peek().map(|Reverse((at, _))| *at)
    }
    /// The next happening up to `limit`; time moves to it, or to `limit` if there is none.
    pub fn advance(&mut self, limit: Millis) -> Option<T> {
        match self.order.peek() {
            Some(Reverse((at, _))) if *at <= limit => {
                let Reverse((at, number)) = self.order.pop()?;
                self.now = at;
                self.entries.remove(&number)
            }
            _ => {
                self.now = self.now.max(limit);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Calendar;

    #[test]
    fn happenings_come_in_order_of_time_then_of_booking() {
        let mut calendar = Calendar::default();
        for (at, what) in [(5, 'c'), (1, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
            calendar.book(at, what);
        }
        let mut seen = String::new();
        while let Some(what) = calendar.advance(6) {
            seen.push(what);
        }
        assert_eq!((seen.as_str(), calendar.now()), ("abcd", 6));
        assert_eq!(calendar.next_at(), Some(9));
    }
}
