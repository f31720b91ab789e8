//! Who is next. Pure: time comes in as an argument, keys go out; no task, no lock, no sleep.
//!
//! A key is in the queue at most once and with one worker at most. What changed goes before what is only due again, but not
//! for ever: every few changed keys one due key gets its turn. A change pulls a delayed key forward.
use super::object::Key;
use crate::clock::Boot;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

/// So many changed keys in a row while others wait.
const CHANGED_IN_A_ROW: u32 = 8;

/// Why a key is in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Its time has come: resync, retry, poll, first list.
    Due,
    /// Somebody changed it.
    Changed,
}

/// What [`Queue::take`] has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// This one, and how long it stood ready.
    Next(Key, Duration),
    /// Nothing before this moment; never, if there is none.
    Nothing(Option<Boot>),
    /// All workers are busy.
    Full,
}

#[derive(Debug)]
enum Place {
    Delayed { at: Boot },
    Ready { why: Why, since: Boot },
    Running { since: Boot, again: Option<Why> },
}
#[derive(Debug)]
struct Entry {
    place: Place,
    /// Tells a live entry of a lane or the calendar from one left behind.
    ticket: u64,
}

/// The queue of one controller.
#[derive(Debug)]
pub struct Queue {
    most_running: usize,
    entries: HashMap<Key, Entry>,
    changed: VecDeque<(Key, u64)>,
    due: VecDeque<(Key, u64)>,
    calendar: BTreeMap<(Boot, u64), Key>,
    next_ticket: u64,
    running: usize,
    ready: usize,
    in_a_row: u32,
}

impl Queue {
    /// With so many workers; at least one.
    pub fn new(most_running: usize) -> Self {
        Queue {
            most_running: most_running.max(1),
            entries: HashMap::new(),
            changed: VecDeque::new(),
            due: VecDeque::new(),
            calendar: BTreeMap::new(),
            next_ticket: 0,
            running: 0,
            ready: 0,
            in_a_row: 0,
        }
    }
    fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }
    /// A key to see to as soon as possible. True if that made it ready.
    pub fn add(&mut self, key: &Key, why: Why, now: Boot) -> bool {
        let since = match self.entries.get_mut(key).map(|e| &mut e.place) {
            Some(Place::Running { again, .. }) => {
                *again = (*again).max(Some(why));
                return false;
            }
            Some(Place::Ready { why: before, .. }) if *before >= why => return false,
            // In the wrong lane: it moves, and keeps its seniority.
            Some(Place::Ready { since, .. }) => Some(*since),
            Some(Place::Delayed { .. }) | None => None,
        };
        self.drop_delay(key);
        let ticket = self.ticket();
        let place = Place::Ready { why, since: since.unwrap_or(now) };
        self.entries.insert(key.clone(), Entry { place, ticket });
        self.tidy(why);
        self.lane(why).push_back((key.clone(), ticket));
        self.ready += usize::from(since.is_none());
        since.is_none()
    }
    /// A key to see to at `at`. Of two times the earlier counts; a ready or running key needs none.
    pub fn add_at(&mut self, key: &Key, at: Boot) {
        match self.entries.get(key).map(|e| &e.place) {
            Some(Place::Delayed { at: before }) if *before <= at => return,
            Some(Place::Running { .. } | Place::Ready { .. }) => return,
            Some(Place::Delayed { .. }) | None => {}
        }
        self.drop_delay(key);
        let ticket = self.ticket();
        self.entries.insert(key.clone(), Entry { place: Place::Delayed { at }, ticket });
        self.calendar.insert((at, ticket), key.clone());
    }
    fn drop_delay(&mut self, key: &Key) {
        if let Some(Entry { place: Place::Delayed { at }, ticket }) = self.entries.get(key) {
            self.calendar.remove(&(*at, *ticket));
        }
    }
    fn lane(&mut self, why: Why) -> &mut VecDeque<(Key, u64)> {
        match why {
            Why::Changed => &mut self.changed,
            Why::Due => &mut self.due,
        }
    }
    /// Entries left behind go when they outnumber the keys: a lane stays bounded even while no worker is free.
    fn tidy(&mut self, why: Why) {
        if self.lane(why).len() > 2 * self.entries.len() + 64 {
            let mut lane = std::mem::take(self.lane(why));
            lane.retain(|(key, ticket)| self.entries.get(key).is_some_and(|e| e.ticket == *ticket));
            *self.lane(why) = lane;
        }
    }
    /// The next key, which is running from now on; give it back with [`Queue::done`].
    pub fn take(&mut self, now: Boot) -> Taken {
        while let Some(first) = self.calendar.first_entry() {
            if first.key().0 > now {
                break;
            }
            let ((at, _), key) = first.remove_entry();
            self.entries.remove(&key);
            self.add(&key, Why::Due, at);
        }
        if self.running >= self.most_running {
            return Taken::Full;
        }
        let due_first = self.in_a_row >= CHANGED_IN_A_ROW;
        let order = if due_first { [Why::Due, Why::Changed] } else { [Why::Changed, Why::Due] };
        for why in order {
            while let Some((key, ticket)) = self.lane(why).pop_front() {
                let Some(entry) = self.entries.get_mut(&key).filter(|e| e.ticket == ticket) else { continue };
                let Place::Ready { since, .. } = entry.place else { continue };
                entry.place = Place::Running { since: now, again: None };
                self.running += 1;
                self.ready -= 1;
                self.in_a_row = if why == Why::Changed { self.in_a_row + 1 } else { 0 };
                return Taken::Next(key, now.since(since));
            }
        }
        Taken::Nothing(self.calendar.first_key_value().map(|((at, _), _)| *at))
    }
    /// A running key is finished; returns how long it ran. What was added meanwhile makes it ready at once.
    pub fn done(&mut self, key: &Key, again_at: Option<Boot>, now: Boot) -> Duration {
        let Some(Entry { place: Place::Running { since, again }, .. }) = self.entries.get(key) else {
            return Duration::ZERO;
        };
        let (since, again) = (*since, *again);
        self.entries.remove(key);
        self.running -= 1;
        match (again, again_at) {
            (Some(why), _) => {
                self.add(key, why, now);
            }
            (None, Some(at)) => self.add_at(key, at),
            (None, None) => {}
        }
        now.since(since)
    }
    /// The object is gone: nothing more to do, unless somebody is at it right now.
    pub fn forget(&mut self, key: &Key) {
        match self.entries.get_mut(key).map(|e| &mut e.place) {
            Some(Place::Running { again, .. }) => *again = None,
            Some(Place::Ready { .. }) => {
                self.ready -= 1;
                self.entries.remove(key);
            }
            Some(Place::Delayed { .. }) => {
                self.drop_delay(key);
                self.entries.remove(key);
            }
            None => {}
        }
    }
    /// Ready keys.
    pub fn depth(&self) -> usize {
        self.ready
    }
    /// Keys with a worker.
    pub fn running(&self) -> usize {
        self.running
    }
    /// Keys known, delayed ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Nothing known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// For how long each running key has been running.
    pub fn running_for(&self, now: Boot) -> impl Iterator<Item = Duration> {
        self.entries.values().filter_map(move |e| match e.place {
            Place::Running { since, .. } => Some(now.since(since)),
            _ => None,
        })
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
