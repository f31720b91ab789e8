//! Watches: what a process has seen of its API server. They lag; on request they drop, repeat and reorder.
use super::calendar::Millis;
use super::server::{Change, Key, Object, Server};
use super::sim::{ProcessId, Signal, State};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The cache of one process.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    objects: BTreeMap<Key, Arc<Object>>,
    applied: usize,
}
impl Cache {
    /// A fresh list of a server as it was after its first `length` changes.
    pub fn listed(server: &Server, length: usize) -> Self {
        let mut cache = Cache::default();
        cache.catch_up(&server.log, length.min(server.log.len()));
        cache
    }
    /// The cached version.
    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }
    /// All cached objects.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.objects.keys()
    }
    fn apply(&mut self, change: &Change) {
        match &change.object {
            Some(object) => drop(self.objects.insert(change.key.clone(), Arc::clone(object))),
            None => drop(self.objects.remove(&change.key)),
        }
    }
    fn catch_up(&mut self, log: &[Change], length: usize) -> Vec<Key> {
        let new = log.get(self.applied..length).unwrap_or_default();
        for change in new {
            self.apply(change);
        }
        self.applied = self.applied.max(length);
        new.iter().map(|change| change.key.clone()).collect()
    }
}

/// What becomes of one event on its way to one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFate {
    /// Delivered, with everything before it.
    After(Millis),
    /// Never delivered; a later event does not bring it either.
    Dropped,
    /// Delivered alone, whatever else has been seen by then: events out of order.
    Alone(Millis),
    /// Delivered, and once more later.
    Twice(Millis, Millis),
}

/// How watches behave.
#[derive(Clone, Debug, Default)]
pub struct WatchWeather {
    /// Least and most lag.
    pub lag: (Millis, Millis),
    /// One event in so many has a fate of its own by chance; none if 0.
    pub trouble: u64,
    /// Events with a fate of their own, by index in the log of server 0.
    pub twists: BTreeMap<usize, EventFate>,
    /// Nothing goes wrong any more: what was on its way alone or for a second time is thrown away.
    pub calmed: bool,
    /// When server 0 has seen so many changes, its processes are replaced by one with an old cache.
    pub stale_start: Option<StaleStart>,
}
/// A process that begins with an old list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleStart {
    /// After so many changes of the server.
    pub at: usize,
    /// It has seen so many of them.
    pub seen: usize,
    /// It sees the others only so much later.
    pub late: Millis,
}
impl WatchWeather {
    /// Nothing goes wrong from here on.
    pub fn calm(&mut self) {
        self.lag = (5, 5);
        self.trouble = 0;
        self.twists.clear();
        self.calmed = true;
    }
}

impl State {
    /// Tells the watches what is new on the servers.
    pub fn announce(&mut self) {
        for number in 0..self.servers.len() {
            let Some(server) = self.servers.get_mut(number) else { continue };
            let (from, to) = (server.announced, server.log.len());
            server.announced = to;
            if number == 0 && self.watches.stale_start.is_some_and(|stale| to >= stale.at) {
                self.signals.extend(self.watches.stale_start.take().map(Signal::StartStale));
            }
            for index in from..to {
                let watchers: Vec<ProcessId> =
                    (0..self.processes.len()).filter(|p| self.watches_server(*p, number)).collect();
                for process in watchers {
                    self.send_event(process, index, number);
                }
            }
        }
    }
    fn watches_server(&self, process: ProcessId, server: usize) -> bool {
        self.processes.get(process).is_some_and(|p| p.alive && p.server == server)
    }
    fn send_event(&mut self, process: ProcessId, index: usize, server: usize) {
        let deaf = self.processes.get(process).map_or(0, |p| p.deaf_until).saturating_sub(self.now());
        let lag = self.chance.between(self.watches.lag.0, self.watches.lag.1).max(deaf);
        let fate = match self.watches.twists.get(&index) {
            Some(fate) if server == 0 => *fate,
            _ if self.chance.one_in(self.watches.trouble) => {
                let longest = 20 * (self.watches.lag.1 + 100);
                let later = lag + self.chance.below(longest);
                match self.chance.below(3) {
                    0 => EventFate::Dropped,
                    1 => EventFate::Alone(later),
                    _ => EventFate::Twice(lag, later),
                }
            }
            _ => EventFate::After(lag),
        };
        if self.traced() && !matches!(fate, EventFate::After(_)) {
            self.say(|| format!("event {} of server {server} to p{process}: {fate:?}", index + 1));
        }
        match fate {
            EventFate::After(lag) => self.book(lag, move |s| s.deliver(process, index, false)),
            EventFate::Dropped => self.book(0, move |s| s.skip(process, index)),
            EventFate::Alone(lag) => {
                self.book(0, move |s| s.skip(process, index));
                self.book(lag, move |s| s.deliver(process, index, true));
            }
            EventFate::Twice(first, second) => {
                self.book(first, move |s| s.deliver(process, index, false));
                self.book(second, move |s| s.deliver(process, index, true));
            }
        }
    }
    /// The event counts as delivered without being so, if it is the next one.
    fn skip(&mut self, process: ProcessId, index: usize) {
        if let Some(p) = self.processes.get_mut(process).filter(|p| p.cache.applied == index) {
            p.cache.applied = index + 1;
        }
    }
    fn deliver(&mut self, process: ProcessId, index: usize, alone: bool) {
        if alone && self.watches.calmed {
            return;
        }
        let State { processes, servers, .. } = self;
        let Some(p) = processes.get_mut(process).filter(|p| p.alive) else { return };
        let Some(server) = servers.get(p.server) else { return };
        let changed = if alone {
            server.log.get(index).map(|change| {
                p.cache.apply(change);
                change.key.clone()
            })
        } else {
            None
        };
        p.changed.extend(changed);
        if !alone {
            let keys = p.cache.catch_up(&server.log, index + 1);
            p.changed.extend(keys);
        }
        self.signals.push(Signal::Look(process));
    }
    /// The watch is started anew from a list of the server as it is.
    pub fn relist(&mut self, process: ProcessId) {
        let State { processes, servers, .. } = self;
        let Some(p) = processes.get_mut(process).filter(|p| p.alive) else { return };
        let Some(server) = servers.get(p.server) else { return };
        let old = std::mem::replace(&mut p.cache, Cache::listed(server, server.log.len()));
        p.changed.extend(old.objects.into_keys());
        p.changed.extend(p.cache.objects.keys().cloned());
        self.signals.push(Signal::Look(process));
    }
}
