//! The wire: every external call is an effect that happens later or never, with a reply that comes later or never.
//! What is on the wire goes on when its process crashes or freezes.
use super::calendar::Millis;
use super::chance::Chance;
use super::sim::{Actor, Signal, Sim, State};
use futures::channel::oneshot;
use futures::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// The API server of the process.
    Api,
    /// The cloud.
    Cloud,
}
/// One call, before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who is called.
    pub target: Target,
    /// It changes something.
    pub writes: bool,
    /// The caller gives up after this long; no effect comes later than that.
    pub timeout: Millis,
}
/// What the caller hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard<R> {
    /// The true answer.
    Reply(R),
    /// No byte reached the other side.
    NotSent,
    /// Nothing came back, or the connection was cut.
    NoReply,
    /// A bare error status instead of the answer.
    Status(u16),
    /// Bytes that are no answer.
    Garbage,
}
/// An answer that is not the true one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Spoiled {
    /// Nothing until the time-out.
    Silence,
    /// The connection is cut.
    Cut,
    /// An error status.
    Status(u16),
    /// Not what was promised.
    Garbage,
}
/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Effect, then reply, so long after sending.
    Through {
        /// The effect.
        effect: Millis,
        /// The reply.
        reply: Millis,
    },
    /// The answer is not the true one; the effect may happen all the same.
    Spoiled {
        /// When the effect happens, if it does.
        effect: Option<Millis>,
        /// What comes back.
        answer: Spoiled,
        /// When it comes back; silence lasts until the time-out.
        reply: Millis,
    },
    /// The connection was refused.
    NotSent,
    /// The process dies before the call is made.
    CrashBefore,
    /// The process dies when the effect happens.
    CrashAfterEffect,
    /// The process dies once it has the reply, before its next call.
    CrashAfterReply,
    /// The process dies when everything that is sent at the same moment is on the wire; the effect happens or not.
    CrashInWave {
        /// Does this call of the wave take effect?
        effect: bool,
        /// Is this the last call of the wave?
        last: bool,
    },
}

/// One call as it was made, for plans and counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its number in the history.
    pub number: usize,
    /// Who was called.
    pub target: Target,
    /// It changes something.
    pub writes: bool,
    /// When it was sent.
    pub sent: Millis,
    /// By whom.
    pub actor: Option<Actor>,
    /// What it was; empty unless the calls are recorded.
    pub label: String,
}

/// How the wire behaves, and what was sent.
#[derive(Debug)]
pub struct Wire {
    /// One call in this many goes wrong; none if 0.
    pub trouble: u64,
    /// One mutating call in this many goes wrong, instead; as `trouble` if 0.
    pub trouble_writes: u64,
    /// At one call in this many the process dies; never if 0.
    pub crashes: u64,
    /// At one call in this many the process stands still for a while; never if 0.
    pub freezes: u64,
    /// Round trip when nothing goes wrong: fixed if equal.
    pub latency: (Millis, Millis),
    /// Calls with a fate of their own, by number.
    pub twists: BTreeMap<usize, Fate>,
    /// Times without connection.
    pub outages: Vec<(Target, Millis, Millis)>,
    /// Keep a list of the calls?
    pub recording: bool,
    /// The calls, if kept.
    pub made: Vec<Made>,
    /// How many calls were made, by target and mutating or not.
    pub counts: BTreeMap<(Target, bool), u64>,
    /// Twists that came to pass.
    pub twisted: BTreeSet<usize>,
    sent: usize,
}
impl Default for Wire {
    fn default() -> Self {
        Wire {
            trouble: 0,
            trouble_writes: 0,
            crashes: 0,
            freezes: 0,
            latency: (40, 40),
            twists: BTreeMap::new(),
            outages: Vec::new(),
            recording: false,
            made: Vec::new(),
            counts: BTreeMap::new(),
            twisted: BTreeSet::new(),
            sent: 0,
        }
    }
}
impl Wire {
    /// Nothing goes wrong from here on.
    pub fn calm(&mut self) {
        self.trouble = 0;
        self.trouble_writes = 0;
        (self.crashes, self.freezes) = (0, 0);
        self.twists.clear();
        self.outages.clear();
    }
    /// How many calls of this sort were made.
    pub fn count(&self, target: Target, writes: bool) -> u64 {
        self.counts.get(&(target, writes)).copied().unwrap_or(0)
    }
    /// How many calls were made in all.
    pub fn total(&self) -> usize {
        self.sent
    }
    fn fate(&mut self, number: usize, call: Call, now: Millis, chance: &mut Chance) -> Fate {
        if let Some(fate) = self.twists.get(&number) {
            self.twisted.insert(number);
            return *fate;
        }
        if self.outages.iter().any(|(target, from, to)| *target == call.target && (*from..*to).contains(&now)) {
            return if chance.one_in(2) {
                Fate::NotSent
            } else {
                Fate::Spoiled { effect: None, answer: Spoiled::Status(503), reply: self.latency.1 }
            };
        }
        if chance.one_in(self.crashes) {
            return match chance.below(4) {
                0 => Fate::CrashBefore,
                1 => Fate::CrashAfterEffect,
                2 => Fate::CrashAfterReply,
                _ => Fate::CrashInWave { effect: chance.one_in(2), last: true },
            };
        }
        let trouble = if call.writes && self.trouble_writes > 0 { self.trouble_writes } else { self.trouble };
        if chance.one_in(trouble) {
            return troubled(call, chance);
        }
        let reply = chance.between(self.latency.0, self.latency.1);
        Fate::Through { effect: reply / 2, reply }
    }
}

/// A call that goes wrong, one way or another.
fn troubled(call: Call, chance: &mut Chance) -> Fate {
    let answer = match chance.below(7) {
        0 | 1 => Spoiled::Silence,
        2 => Spoiled::Cut,
        3 => Spoiled::Status(500),
        4 => Spoiled::Status(503),
        5 => Spoiled::Status(504),
        _ => Spoiled::Garbage,
    };
    let late = chance.below(call.timeout);
    match chance.below(9) {
        0 => Fate::NotSent,
        1 => Fate::Spoiled { effect: None, answer: Spoiled::Status(429), reply: 30 },
        2 => Fate::Spoiled { effect: None, answer, reply: chance.below(call.timeout) },
        // the effect may come after the answer: a gateway gave up, what is behind it did not
        3 | 4 => Fate::Spoiled { effect: Some(late), answer, reply: chance.below(call.timeout) },
        5 => Fate::Spoiled { effect: Some(chance.below(100)), answer, reply: 150 },
        6 => Fate::Through { effect: late, reply: late + chance.below(call.timeout - late) },
        7 => Fate::Through { effect: late, reply: late },
        _ => Fate::Through { effect: chance.below(100).min(call.timeout - 1), reply: call.timeout - 1 },
    }
}

impl Sim {
    /// Sends a call. `effect` is what the other side does with it, whenever it gets it.
    pub fn call<R: Send + 'static>(
        &self,
        call: Call,
        label: impl FnOnce() -> String,
        effect: impl FnOnce(&mut State) -> R + Send + 'static,
    ) -> BoxFuture<'static, Heard<R>> {
        let (tell, told) = oneshot::channel();
        self.with(|s| s.send(call, label, effect, tell));
        Box::pin(async move {
            match told.await {
                Ok(heard) => heard,
                // Swallowed: the process is about to die and must not run on.
                Err(_) => futures::future::pending().await,
            }
        })
    }
}

impl State {
    fn send<R: Send + 'static>(
        &mut self,
        call: Call,
        label: impl FnOnce() -> String,
        effect: impl FnOnce(&mut State) -> R + Send + 'static,
        tell: oneshot::Sender<Heard<R>>,
    ) {
        let (now, actor) = (self.now(), self.current.clone());
        let process = actor.as_ref().map(|a| a.process);
        if process.and_then(|p| self.processes.get(p)).is_some_and(|p| p.doomed || !p.alive) {
            return;
        }
        let number = self.wire.sent;
        let fate = self.wire.fate(number, call, now, &mut self.chance);
        if fate == Fate::CrashBefore {
            self.wire.sent += 1;
            self.say(|| format!("#{number} dies before {}", label()));
            self.signals.extend(process.map(Signal::Crash));
            return;
        }
        self.wire.sent += 1;
        *self.wire.counts.entry((call.target, call.writes)).or_default() += 1;
        if self.chance.one_in(self.wire.freezes) {
            let lasts = self.chance.below(2 * self.evidence.settle);
            self.signals.extend(process.map(|p| Signal::Freeze(p, lasts)));
        }
        let label = if self.wire.recording || self.traced() { label() } else { String::new() };
        self.say(|| format!("#{number} {label}  {}", describe(fate)));
        if self.wire.recording {
            let made =
                Made { number, target: call.target, writes: call.writes, sent: now, actor: actor.clone(), label };
            self.wire.made.push(made);
        }
        let act = move |s: &mut State| {
            let before = std::mem::replace(&mut s.current, actor);
            let reply = effect(s);
            s.current = before;
            reply
        };
        let usual = self.wire.latency.0;
        match fate {
            Fate::Through { effect, reply } => self.book(effect, move |s| {
                let answer = act(s);
                s.book(reply.saturating_sub(effect), move |_| drop(tell.send(Heard::Reply(answer))));
            }),
            Fate::CrashAfterReply => self.book(usual / 2, move |s| {
                let answer = act(s);
                s.book(usual / 2, move |s| {
                    drop(tell.send(Heard::Reply(answer)));
                    s.signals.extend(process.map(Signal::Doom));
                });
            }),
            Fate::CrashAfterEffect => self.book(usual / 2, move |s| {
                act(s);
                s.signals.extend(process.map(Signal::Crash));
            }),
            Fate::CrashInWave { effect, last } => {
                if effect {
                    self.book(usual / 2, move |s| drop(act(s)));
                }
                if last {
                    self.signals.extend(process.map(Signal::Crash));
                }
            }
            Fate::Spoiled { effect, answer, reply } => {
                if let Some(effect) = effect {
                    self.book(effect, move |s| drop(act(s)));
                }
                let (heard, reply) = match answer {
                    Spoiled::Silence => (Heard::NoReply, call.timeout),
                    Spoiled::Cut => (Heard::NoReply, reply),
                    Spoiled::Status(code) => (Heard::Status(code), reply),
                    Spoiled::Garbage => (Heard::Garbage, reply),
                };
                self.book(reply, move |_| drop(tell.send(heard)));
            }
            Fate::NotSent | Fate::CrashBefore => self.book(1, move |_| drop(tell.send(Heard::NotSent))),
        }
    }
}

fn describe(fate: Fate) -> String {
    match fate {
        Fate::Through { reply, .. } if reply < 1000 => String::new(),
        fate => format!("[{fate:?}]"),
    }
}
