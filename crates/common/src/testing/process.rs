//! One controller process: a queue with one pass at a time per owner, and futures polled by hand.
use super::calendar::Millis;
use super::chance::Chance;
use super::server::{Key, Object};
use super::sim::{Actor, ProcessId, Signal, Sim};
use super::sim_clock::millis;
use super::subject::{Controller, Visit};
use crate::engine::report::{Progress, Report};
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Says that a future wants to be polled.
struct Wish(AtomicBool);
impl Wake for Wish {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Pass {
    future: BoxFuture<'static, Visit>,
    wish: Arc<Wish>,
    uid: String,
}

/// One owner in the queue.
#[derive(Default)]
struct Work {
    due: Option<Millis>,
    pass: Option<Pass>,
    /// Something changed while a pass was running.
    again: bool,
    trigger: Option<u64>,
    uid: String,
}

/// One running process.
pub struct Process {
    /// Its number.
    pub id: ProcessId,
    controller: Arc<dyn Controller>,
    queue: BTreeMap<Key, Work>,
    /// Visits come early, by chance within this time; 0 for as asked.
    pub haste: Millis,
    /// How each owner's last pass ended.
    pub reports: BTreeMap<Key, Report>,
    /// What last went wrong with each owner, until it is done.
    pub faults: BTreeMap<Key, String>,
    /// Passes that were started.
    pub passes: u64,
}

impl Process {
    /// A process that has just started; everything it has cached is due.
    pub fn new(id: ProcessId, controller: Arc<dyn Controller>, haste: Millis) -> Self {
        Process {
            id,
            controller,
            queue: BTreeMap::new(),
            haste,
            reports: BTreeMap::new(),
            faults: BTreeMap::new(),
            passes: 0,
        }
    }
    /// Takes in what the watch brought.
    pub fn look(&mut self, sim: &Sim) {
        let (now, changed) = sim.with(|s| {
            let now = s.now();
            let Some(p) = s.processes.get_mut(self.id) else { return (now, Vec::new()) };
            let keys = std::mem::take(&mut p.changed);
            (now, keys.into_iter().map(|k| (p.cache.get(&k).cloned(), k)).collect::<Vec<_>>())
        });
        for (object, key) in changed {
            self.changed(key, object.as_deref(), now);
        }
    }
    fn changed(&mut self, key: Key, object: Option<&Object>, now: Millis) {
        let Some(object) = object else {
            if let Some(work) = self.queue.get_mut(&key) {
                if !work.uid.is_empty() {
                    self.controller.forget(&work.uid);
                }
                (work.due, work.again, work.trigger) = (None, false, None);
            }
            self.reports.remove(&key);
            return;
        };
        let work = self.queue.entry(key).or_default();
        if work.uid != object.view.uid {
            if !work.uid.is_empty() {
                self.controller.forget(&work.uid);
            }
            work.uid.clone_from(&object.view.uid);
        }
        if !self.controller.heeds(object) {
            return;
        }
        let trigger = Some(self.controller.trigger(object));
        if work.trigger != trigger {
            work.trigger = trigger;
            if work.pass.is_some() {
                work.again = true;
            } else {
                work.due = Some(now);
            }
        }
    }
    /// Everything cached is due now.
    pub fn wake_all(&mut self, now: Millis) {
        for work in self.queue.values_mut() {
            if work.pass.is_some() {
                work.again = true;
            } else {
                work.due = Some(now);
            }
        }
    }
    /// Starts what is due.
    fn start_due(&mut self, sim: &Sim) {
        let now = sim.now();
        for (key, work) in &mut self.queue {
            if work.pass.is_some() || work.due.is_none_or(|due| due > now) {
                continue;
            }
            work.due = None;
            let cached = sim.with(|s| s.processes.get(self.id).and_then(|p| p.cache.get(key).cloned()));
            let Some(object) = cached else { continue };
            let controller = Arc::clone(&self.controller);
            let uid = object.view.uid.clone();
            let future = Box::pin(async move { controller.reconcile(&object).await });
            work.pass = Some(Pass { future, wish: Arc::new(Wish(AtomicBool::new(true))), uid });
            self.passes += 1;
        }
    }
    /// Polls what wants to be polled, in an order drawn by chance. True if anything was polled.
    pub fn run(&mut self, sim: &Sim, order: &mut Chance) -> bool {
        self.start_due(sim);
        let mut ready: Vec<Key> =
            self.queue.iter().filter(|(_, w)| w.wants_poll()).map(|(key, _)| key.clone()).collect();
        if ready.is_empty() {
            return false;
        }
        let first = order.index(ready.len());
        ready.rotate_left(first);
        for key in ready {
            self.poll(&key, sim, order);
        }
        true
    }
    fn poll(&mut self, key: &Key, sim: &Sim, order: &mut Chance) {
        let Some(work) = self.queue.get_mut(key) else { return };
        let Some(pass) = &mut work.pass else { return };
        pass.wish.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&pass.wish));
        sim.with(|s| s.current = Some(Actor { process: self.id, key: key.clone() }));
        let polled = pass.future.as_mut().poll(&mut Context::from_waker(&waker));
        sim.with(|s| s.current = None);
        let Poll::Ready(visit) = polled else { return };
        let uid = std::mem::take(&mut pass.uid);
        work.pass = None;
        let here = work.uid == uid && work.trigger.is_some();
        let due = here || work.again && work.trigger.is_some();
        let asked = visit.again.map(millis);
        let hasty = if self.haste > 0 { Some(order.below(self.haste)) } else { None };
        let after = match (asked, hasty) {
            _ if work.again => Some(1),
            (Some(asked), Some(hasty)) => Some(asked.min(hasty).max(10)),
            (asked, _) => asked.map(|a| a.max(10)),
        };
        work.again = false;
        sim.with(|s| {
            s.evidence.kept.extend(visit.report.kept.iter().map(|t| t.id.clone()));
            let now = s.now();
            s.say(|| format!("p{} pass over {}: {}", self.id, key.1, told(&visit.report)));
            if let (Some(after), true) = (after, due) {
                work.due = Some(now + after);
                s.book_signal(after, Signal::Look(self.id));
            }
        });
        if here {
            match &visit.report.progress {
                Progress::Failed(fault) => drop(self.faults.insert(key.clone(), fault.to_string())),
                Progress::Done | Progress::Gone => drop(self.faults.remove(key)),
                Progress::Waiting { .. } | Progress::Blocked { .. } | Progress::Stale(_) => {}
            }
            self.reports.insert(key.clone(), visit.report);
        }
    }
}

impl Work {
    fn wants_poll(&self) -> bool {
        self.pass.as_ref().is_some_and(|p| p.wish.0.load(Ordering::Relaxed))
    }
}

fn told(report: &Report) -> String {
    let standing: Vec<String> = report.standing.iter().map(|s| format!("{}={}", s.slot, s.state)).collect();
    let progress = match &report.progress {
        Progress::Waiting { reason, message, again } => format!("waiting {reason} {message:?} again in {again:?}"),
        other => format!("{other:?}"),
    };
    let kept: Vec<&str> = report.kept.iter().map(|t| t.id.as_str()).collect();
    format!("{progress} [{}] kept {kept:?}", standing.join(" "))
}
