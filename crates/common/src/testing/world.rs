//! The loop: virtual time moves to the next happening, then everything that can run runs.
use super::calendar::Millis;
use super::chance::Chance;
use super::process::Process;
use super::server::{Key, Object, Server};
use super::sim::{Happening, ProcessId, ProcessState, Signal, Sim, State};
use super::sim_clock::{SimClock, millis};
use super::subject::{Subject, Surroundings};
use super::watch::{Cache, StaleStart};
use super::{SimApi, SimTransport, cloud::Lags};
use crate::engine::fence::Open;
use crate::engine::owner::OwnerView;
use crate::engine::rules::Rulebook;
use crate::random::Random;
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What a world begins with.
#[derive(Clone)]
pub struct Beginning {
    /// The history's number.
    pub seed: u64,
    /// Installation ids of the API servers.
    pub installations: Vec<String>,
    /// How far the cloud's answers are behind.
    pub lags: Lags,
    /// Visits come early, by chance within this time; 0 for as asked.
    pub haste: Millis,
    /// Which rules hold.
    pub rules: Rulebook,
    /// Keep the history for people?
    pub trace: bool,
}

/// One world with its processes.
pub struct World {
    /// What is shared.
    pub sim: Sim,
    /// Who is tested.
    pub subject: Arc<dyn Subject>,
    /// Running processes.
    pub processes: Vec<Process>,
    beginning: Beginning,
    order: Chance,
    /// Crashes so far.
    pub crashes: u64,
}

/// How long an API call may take, as in production.
const API_TIMEOUT: Millis = 10_000;

impl World {
    /// A world without processes and owners.
    pub fn new(subject: Arc<dyn Subject>, beginning: Beginning) -> Self {
        let servers =
            beginning.installations.iter().enumerate().map(|(n, id)| Server::new(id, &format!("uid{n}"))).collect();
        let cloud = subject.cloud(beginning.seed, beginning.lags);
        let mut state = State::new(beginning.seed, servers, cloud, beginning.trace);
        state.evidence.controller = subject.controller();
        state.evidence.kind = subject.kind();
        state.evidence.settle = millis(subject.timing().settle());
        state.evidence.reach = subject.timing().window + subject.timing().call;
        let order = state.chance.fork();
        World { sim: Sim::new(state), subject, processes: Vec::new(), beginning, order, crashes: 0 }
    }
    /// Starts a process on this server, with a cache listed now.
    pub fn spawn(&mut self, server: usize) -> ProcessId {
        let length = self.sim.with(|s| s.servers.get(server).map_or(0, |x| x.log.len()));
        self.spawn_at(server, length, 0)
    }
    /// Starts a process whose first list is as old as the first `length` changes of the server; it hears of the others `late`.
    pub fn spawn_at(&mut self, server: usize, length: usize, late: Millis) -> ProcessId {
        let (id, random, timeout) = self.sim.with(|s| {
            let cache = s.servers.get(server).map(|x| Cache::listed(x, length)).unwrap_or_default();
            let changed: BTreeSet<Key> = cache.keys().cloned().collect();
            let booted = Duration::from_millis(1 + s.chance.below(1 << 32));
            s.processes.push(ProcessState {
                server,
                alive: true,
                frozen_until: 0,
                deaf_until: s.now() + late,
                doomed: false,
                booted,
                last_read: Duration::ZERO,
                skew: SignedDuration::ZERO,
                cache,
                changed,
            });
            let id = s.processes.len() - 1;
            // What the list missed comes by watch, as after any list.
            let newest = s.servers.get(server).map_or(0, |x| x.log.len());
            if length < newest {
                let lag = s.chance.between(s.watches.lag.0, s.watches.lag.1);
                s.book(lag.max(late), move |s| s.relist(id));
            }
            s.signals.push(Signal::Look(id));
            (id, s.chance.bits(), millis(self.subject.timing().call))
        });
        let surroundings = Surroundings {
            sim: self.sim.clone(),
            process: id,
            clock: Arc::new(SimClock::new(self.sim.clone(), id)),
            random: Arc::new(Random::seeded(random)),
            fence: Arc::new(Open),
            rules: self.beginning.rules.clone(),
            transport: SimTransport::new(self.sim.clone(), timeout),
            api: Arc::new(SimApi::new(self.sim.clone(), id, API_TIMEOUT)),
            installation: self.sim.with(|s| s.servers.get(server).map(|x| x.installation.clone()).unwrap_or_default()),
        };
        self.processes.push(Process::new(id, self.subject.start(surroundings), self.beginning.haste));
        id
    }
    /// Creates an owner.
    pub fn create_owner(&self, server: usize, name: &str, spec: Value) -> Key {
        let key: Key = ("ns".into(), name.into());
        let view = OwnerView { namespace: key.0.clone(), name: key.1.clone(), ..OwnerView::default() };
        self.sim.with(|s| {
            s.say(|| format!("USER creates {name} on server {server}: {spec}"));
            if let Some(x) = s.servers.get_mut(server) {
                x.create(Object { view, spec, ..Object::default() });
            }
            s.announce();
        });
        key
    }
    /// Kills a process and starts it again on the same server.
    pub fn crash(&mut self, id: ProcessId) {
        let server = self.sim.with(|s| {
            let p = s.processes.get_mut(id).filter(|p| p.alive)?;
            p.alive = false;
            let server = p.server;
            s.say(|| format!("CRASH of p{id}"));
            Some(server)
        });
        let Some(server) = server else { return };
        self.processes.retain(|p| p.id != id);
        self.crashes += 1;
        self.spawn(server);
    }
    /// Ends a process for good.
    pub fn stop(&mut self, id: ProcessId) {
        self.sim.with(|s| {
            if let Some(p) = s.processes.get_mut(id) {
                p.alive = false;
            }
            s.say(|| format!("p{id} stops"));
        });
        self.processes.retain(|p| p.id != id);
    }
    fn start_stale(&mut self, stale: StaleStart) {
        let old: Vec<ProcessId> =
            self.sim.with(|s| (0..s.processes.len()).filter(|p| s.processes[*p].server == 0).collect());
        for id in old {
            self.stop(id);
        }
        self.spawn_at(0, stale.seen, stale.late);
    }
    /// A process stands still for a while, in the middle of whatever it does; its clocks go on.
    pub fn freeze(&mut self, id: ProcessId, lasts: Millis) {
        self.sim.with(|s| {
            let until = s.now() + lasts;
            if let Some(p) = s.processes.get_mut(id) {
                p.frozen_until = p.frozen_until.max(until);
            }
            s.say(|| format!("p{id} FREEZES for {lasts} ms"));
            s.book_signal(lasts, Signal::Thaw(id));
        });
    }
    /// Runs until `limit`, or until `stop` says so after some happening. True if stopped.
    pub fn run_while(&mut self, limit: Millis, mut stop: impl FnMut(&mut State) -> bool) -> bool {
        loop {
            self.attend();
            if self.sim.with(&mut stop) {
                return true;
            }
            match self.sim.with(|s| s.calendar.advance(limit)) {
                None => return false,
                Some(Happening::Do(act)) => self.sim.with(|s| {
                    act(s);
                    s.announce();
                }),
                Some(Happening::Signal(signal)) => self.sim.with(|s| s.signals.push(signal)),
            }
        }
    }
    /// Runs for so long.
    pub fn run_for(&mut self, time: Millis) {
        let limit = self.sim.now() + time;
        self.run_while(limit, |_| false);
    }
    /// Everything that can run runs.
    fn attend(&mut self) {
        let mut doomed: Vec<ProcessId> = Vec::new();
        loop {
            let signals = self.sim.with(|s| std::mem::take(&mut s.signals));
            for signal in &signals {
                match *signal {
                    Signal::Crash(id) => self.crash(id),
                    Signal::Doom(id) => {
                        self.sim.with(|s| s.processes.get_mut(id).map(|p| p.doomed = true));
                        doomed.push(id);
                    }
                    Signal::Freeze(id, lasts) => self.freeze(id, lasts),
                    Signal::StartStale(stale) => self.start_stale(stale),
                    Signal::Look(id) => {
                        let asleep = self.sim.with(|s| s.processes.get(id).is_some_and(|p| p.frozen_until > s.now()));
                        if let Some(p) = self.processes.iter_mut().find(|p| p.id == id && !asleep) {
                            p.look(&self.sim);
                        }
                    }
                    // What was going on goes on before anything is heard of what happened meanwhile.
                    Signal::Thaw(id) => self.sim.with(|s| {
                        let late = s.chance.below(200);
                        s.book_signal(late, Signal::Look(id));
                    }),
                }
            }
            let now = self.sim.now();
            let mut ran = false;
            for n in 0..self.processes.len() {
                let Some(p) = self.processes.get_mut(n) else { break };
                let frozen = self.sim.with(|s| s.processes.get(p.id).is_some_and(|p| p.frozen_until > now));
                if !frozen {
                    ran |= p.run(&self.sim, &mut self.order);
                }
            }
            if !ran && self.sim.with(|s| s.signals.is_empty()) {
                if doomed.is_empty() {
                    return;
                }
                for id in doomed.drain(..) {
                    self.crash(id);
                }
            }
        }
    }
    /// Nothing goes wrong from here on, and everybody sees what is there.
    pub fn calm(&mut self) {
        self.sim.with(|s| {
            s.say(|| "CALM".into());
            s.wire.calm();
            s.watches.calm();
            for id in 0..s.processes.len() {
                s.relist(id);
            }
        });
        for process in &mut self.processes {
            process.haste = 0;
        }
        self.beginning.haste = 0;
    }
    /// Every owner is visited once more.
    pub fn wake_all(&mut self) {
        let now = self.sim.now();
        for process in &mut self.processes {
            process.wake_all(now);
        }
    }
    /// Passes so far, of the processes that still run.
    pub fn passes(&self) -> u64 {
        self.processes.iter().map(|p| p.passes).sum()
    }
}
