//! The state of one simulated world, and the handle its parts share.
use super::calendar::{Calendar, Millis};
use super::chance::Chance;
use super::cloud::SimCloud;
use super::evidence::Evidence;
use super::server::{Key, Server};
use super::watch::{Cache, StaleStart, WatchWeather};
use super::wire::Wire;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One controller process; a restarted one has a new number.
pub type ProcessId = usize;

/// What the world does when the time has come.
pub enum Happening {
    /// Something on the wire.
    Do(Box<dyn FnOnce(&mut State) + Send>),
    /// Something that concerns processes.
    Signal(Signal),
}

/// News for the loop that runs the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The process dies now and is started again.
    Crash(ProcessId),
    /// The process dies as soon as it has nothing to do without another call.
    Doom(ProcessId),
    /// Something may be due in the queue of the process.
    Look(ProcessId),
    /// The process may run again.
    Thaw(ProcessId),
    /// The processes of server 0 are replaced by one with an old cache.
    StartStale(StaleStart),
    /// The process stands still for so long.
    Freeze(ProcessId, Millis),
}

/// Who makes a call: a process, working on one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The process.
    pub process: ProcessId,
    /// The owner it works on.
    pub key: Key,
}

/// What the world knows of a process besides its futures.
#[derive(Debug)]
pub struct ProcessState {
    /// Which API server it talks to.
    pub server: usize,
    /// False once it crashed: its calls go on, its replies reach nobody.
    pub alive: bool,
    /// Not polled before this time.
    pub frozen_until: Millis,
    /// No event reaches it before this time.
    pub deaf_until: Millis,
    /// Its next call is never made.
    pub doomed: bool,
    /// Its machine booted this long before the history began.
    pub booted: Duration,
    /// What its boot-time clock said last.
    pub last_read: Duration,
    /// How far its wall clock is off.
    pub skew: SignedDuration,
    /// What its watch has shown it.
    pub cache: Cache,
    /// Owners whose cached version changed since the queue looked.
    pub changed: BTreeSet<Key>,
}

/// One simulated world.
pub struct State {
    /// Time and what happens next.
    pub calendar: Calendar<Happening>,
    /// Chance.
    pub chance: Chance,
    /// API servers.
    pub servers: Vec<Server>,
    /// The cloud.
    pub cloud: Box<dyn SimCloud>,
    /// Calls and what becomes of them.
    pub wire: Wire,
    /// How watches behave.
    pub watches: WatchWeather,
    /// All processes that ever ran.
    pub processes: Vec<ProcessState>,
    /// Who is being polled.
    pub current: Option<Actor>,
    /// News for the loop.
    pub signals: Vec<Signal>,
    /// What was seen that matters for the verdict.
    pub evidence: Evidence,
    /// How old a shared listing may be for an owner at rest; a controller's own setting if none.
    pub listing_interval: Option<Duration>,
    trace: Option<String>,
}

/// The beginning of every history, for people.
pub const EPOCH: Timestamp = Timestamp::constant(1_800_000_000, 0);

impl State {
    /// A world without processes.
    pub fn new(seed: u64, servers: Vec<Server>, cloud: Box<dyn SimCloud>, trace: bool) -> Self {
        State {
            calendar: Calendar::default(),
            chance: Chance::new(seed),
            servers,
            cloud,
            wire: Wire::default(),
            watches: WatchWeather::default(),
            processes: Vec::new(),
            current: None,
            signals: Vec::new(),
            evidence: Evidence::default(),
            listing_interval: None,
            trace: trace.then(String::new),
        }
    }
    /// The time it is.
    pub fn now(&self) -> Millis {
        self.calendar.now()
    }
    /// The date it is, by the cloud's own clock.
    pub fn date(&self) -> Timestamp {
        date_of(self.now())
    }
    /// Books something on the wire.
    pub fn book(&mut self, after: Millis, what: impl FnOnce(&mut State) + Send + 'static) {
        let at = self.now().saturating_add(after);
        self.calendar.book(at, Happening::Do(Box::new(what)));
    }
    /// Books news for the loop.
    pub fn book_signal(&mut self, after: Millis, signal: Signal) {
        let at = self.now().saturating_add(after);
        self.calendar.book(at, Happening::Signal(signal));
    }
    /// One line of the history, if somebody reads it.
    pub fn say(&mut self, line: impl FnOnce() -> String) {
        let (now, who) = (self.now(), self.current.as_ref().map(|a| a.process));
        if let Some(trace) = &mut self.trace {
            let who = who.map_or_else(String::new, |p| format!("p{p} "));
            let _ = writeln!(trace, "{:>9.3} {who}{}", Duration::from_millis(now).as_secs_f64(), line());
        }
    }
    /// Is somebody reading the history?
    pub fn traced(&self) -> bool {
        self.trace.is_some()
    }
    /// The history so far.
    pub fn take_trace(&mut self) -> String {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// The date at a time of the history.
pub fn date_of(now: Millis) -> Timestamp {
    EPOCH.checked_add(Duration::from_millis(now)).unwrap_or(Timestamp::MAX)
}

/// The handle all parts of one world share. One thread runs a world; the lock only satisfies `Send`.
#[derive(Clone)]
pub struct Sim(Arc<Mutex<State>>);

impl Sim {
    /// A world to share.
    pub fn new(state: State) -> Self {
        Sim(Arc::new(Mutex::new(state)))
    }
    /// Looks at or changes the world. Never call it from inside itself.
    pub fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// The time it is.
    pub fn now(&self) -> Millis {
        self.with(|s| s.now())
    }
}
