//! Leadership by Lease, with a deadline that fences every mutating call.
//!
//! A lock is taken by compare-and-swap: GET, then PUT with the resourceVersion. Whether somebody else's lease has run out is
//! judged on our own boot-time clock, from our first sight of the unchanged record: wall clocks and theirs do not matter.
//! A watch brings every renewal at once, so that this wait begins with it and not with the next look.
//! Our own right ends one lease duration after the moment *before* the last successful renewal was sent. Losing it ends the
//! process: starting over is simpler than finding every task that still believes.
use crate::clock::{Boot, SharedClock};
use crate::engine::fence::Fence;
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tracing::{debug, info, warn};

/// Subtracted from our own right: clocks of two machines do not run exactly alike.
const MARGIN: Duration = Duration::from_secs(1);
/// How long the API server may hold a watch: below what it takes, so that it ends in order.
const WATCH_SECONDS: u32 = 290;
type News = BoxStream<'static, kube::Result<WatchEvent<Lease>>>;

/// Times of the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Others wait this long for an unchanged record. A frozen leader is replaced after it.
    pub lease: Duration,
    /// Without a renewal for this long we step down. `lease - renew` is left for calls on the wire.
    pub renew: Duration,
    /// Between renewals, and between looks at somebody else's lease where it cannot be watched.
    pub retry: Duration,
}
impl Default for Terms {
    fn default() -> Self {
        Terms { lease: Duration::from_secs(30), renew: Duration::from_secs(15), retry: Duration::from_secs(3) }
    }
}
/// Terms that fence nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "lease {lease:?} - renew deadline {renew:?} must leave {call:?} for a call, and the retry period must be shorter than the renew deadline"
)]
pub struct InvalidTerms {
    lease: Duration,
    renew: Duration,
    call: Duration,
}
impl Terms {
    /// A connection that has gone silent must leave time for another try.
    fn one_try(&self) -> Duration {
        self.renew / 3
    }
    /// Do they leave room for a mutating call of this length?
    pub fn check(&self, call: Duration) -> Result<(), InvalidTerms> {
        let left = self.lease.saturating_sub(self.renew);
        let ok = left >= call && self.retry < self.renew && !self.retry.is_zero() && self.lease > MARGIN;
        if ok { Ok(()) } else { Err(InvalidTerms { lease: self.lease, renew: self.renew, call }) }
    }
}

/// A Lease as found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Changes with every write.
    pub resource_version: String,
    /// Who holds it; empty if it was released.
    pub holder: String,
    /// For how long after a renewal.
    pub duration: Duration,
}
/// A record, and when this very version of it was first seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// What was seen.
    pub record: Record,
    /// When for the first time.
    pub since: Boot,
}
impl Sight {
    /// A look at the Lease: the same version keeps its first time.
    pub fn update(before: Option<Sight>, record: Record, now: Boot) -> Sight {
        match before {
            Some(sight) if sight.record.resource_version == record.resource_version => sight,
            _ => Sight { record, since: now },
        }
    }
}
/// What to do. Pure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is none: create it.
    Create,
    /// It is free, or has run out, or is ours: write our name on it.
    Take,
    /// Somebody holds it at least until then.
    Wait(Boot),
}
/// What to do about a Lease.
pub fn decide(me: &str, seen: Option<&Sight>, now: Boot) -> Step {
    let Some(Sight { record, since }) = seen else { return Step::Create };
    if record.holder.is_empty() || record.holder == me {
        return Step::Take;
    }
    let ends = *since + record.duration;
    if now >= ends { Step::Take } else { Step::Wait(ends) }
}

/// When to look again: after a while, or at the very end of what somebody else holds, if that is sooner.
pub fn next_look(me: &str, seen: Option<&Sight>, now: Boot, retry: Duration) -> Boot {
    match decide(me, seen, now) {
        Step::Wait(ends) => ends.min(now + retry),
        Step::Create | Step::Take => now + retry,
    }
}

/// The right to write, as an atomic deadline in milliseconds of boot time. Zero: none.
#[derive(Debug)]
pub struct LeaseFence {
    deadline: AtomicU64,
}
impl LeaseFence {
    fn new() -> Self {
        LeaseFence { deadline: AtomicU64::new(0) }
    }
    fn set(&self, until: Boot) {
        let millis = u64::try_from(until.0.as_millis()).unwrap_or(u64::MAX);
        self.deadline.store(millis, Ordering::SeqCst);
    }
    fn close(&self) {
        self.deadline.store(0, Ordering::SeqCst);
    }
}
impl Fence for LeaseFence {
    fn holds_until(&self, until: Boot) -> bool {
        until.0.as_millis() < u128::from(self.deadline.load(Ordering::SeqCst))
    }
}

/// One candidate for one Lease.
pub struct Candidate {
    api: Api<Lease>,
    name: String,
    me: String,
    terms: Terms,
    clock: SharedClock,
    fence: Arc<LeaseFence>,
    seen: Option<Sight>,
    /// The object behind `seen`, to write back with whatever else is in it.
    object: Option<Lease>,
    /// When our last successful write was sent.
    held: Option<Boot>,
}

impl Candidate {
    /// `me` must differ between any two processes ever: a pod's name and a random number.
    pub fn new(client: Client, namespace: &str, name: &str, me: String, terms: Terms, clock: SharedClock) -> Self {
        Candidate {
            api: Api::namespaced(client, namespace),
            name: name.into(),
            me,
            terms,
            clock,
            fence: Arc::new(LeaseFence::new()),
            seen: None,
            object: None,
            held: None,
        }
    }
    /// Open while we lead.
    pub fn fence(&self) -> Arc<LeaseFence> {
        self.fence.clone()
    }
    /// Returns once we lead. Dropping the future gives up.
    pub async fn win(&mut self) {
        loop {
            match self.turn(self.terms.renew).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(why) => warn!(why, lease = self.name, "election"),
            }
            let now = self.clock.boot();
            match self.watch(now).await {
                Some(news) => self.follow(news, now).await,
                None => self.clock.sleep_until(self.next_look(now, self.terms.retry)).await,
            }
        }
    }
    fn next_look(&self, now: Boot, retry: Duration) -> Boot {
        next_look(&self.me, self.seen.as_ref(), now, retry)
    }
    /// What happens to the Lease after what was seen of it. None where it may not be watched, or there is none.
    async fn watch(&self, now: Boot) -> Option<News> {
        let version = &self.seen.as_ref()?.record.resource_version;
        let params = WatchParams::default().fields(&format!("metadata.name={}", self.name)).timeout(WATCH_SECONDS);
        let left = self.next_look(now, self.terms.retry).since(now);
        match self.bounded(left, self.api.watch(&params, version)).await {
            Ok(news) => Some(news.boxed()),
            Err(trouble) => {
                debug!(%trouble, lease = self.name, "not watched: looking from time to time");
                None
            }
        }
    }
    /// Returns when it is time for a look: what is held has ended, or is free, or nothing was heard of a leader that should
    /// have renewed, be it because of the watch.
    async fn follow(&mut self, mut news: News, begun: Boot) {
        loop {
            let now = self.clock.boot();
            let free = !matches!(decide(&self.me, self.seen.as_ref(), now), Step::Wait(_));
            let until = self.next_look(now, if free { self.terms.retry } else { self.terms.retry * 2 });
            tokio::select! {
                event = news.next() => match event {
                    Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => {
                        self.saw(lease);
                        if !matches!(decide(&self.me, self.seen.as_ref(), self.clock.boot()), Step::Wait(_)) {
                            return;
                        }
                    }
                    Some(Ok(WatchEvent::Bookmark(_))) => {}
                    // One that breaks off at once is not begun again at once.
                    ended => {
                        if let Some(Ok(WatchEvent::Error(why))) = &ended {
                            debug!(%why, lease = self.name, "the watch ends");
                        }
                        return self.clock.sleep_until(self.next_look(begun, self.terms.retry)).await;
                    }
                },
                () = self.clock.sleep_until(until) => return,
            }
        }
    }
    /// Renews until leadership is lost, and says why.
    pub async fn keep(&mut self) -> String {
        loop {
            self.clock.sleep_until(self.clock.boot() + self.terms.retry).await;
            let Some(held) = self.held else { return "never held".into() };
            let deadline = held + self.terms.renew;
            let left = deadline.since(self.clock.boot());
            if left.is_zero() {
                self.fence.close();
                return format!("not renewed within {:?}", self.terms.renew);
            }
            match self.turn(left).await {
                Ok(true) => {}
                Ok(false) => {
                    self.fence.close();
                    let holder = self.seen.as_ref().map_or("nobody", |s| s.record.holder.as_str());
                    return format!("held by {holder}");
                }
                Err(why) => warn!(why, lease = self.name, "renewal"),
            }
        }
    }
    /// Lets go, so that a successor need not wait. Only after the last mutating call.
    pub async fn release(&mut self) {
        self.fence.close();
        let (Some(_), Some(object)) = (self.held.take(), self.object.take()) else { return };
        let mut free = object;
        let spec = free.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        let params = PostParams::default();
        let released = self.bounded(Duration::from_secs(5), self.api.replace(&self.name, &params, &free)).await;
        match released {
            Ok(_) => info!(lease = self.name, "released"),
            Err(Trouble::Conflict) => warn!(lease = self.name, "not released: somebody else wrote it"),
            Err(Trouble::Missing) => {}
            Err(Trouble::Other(why)) => warn!(why, lease = self.name, "not released"),
        }
    }

    /// One look and, if it is ours to take, one write, all within `within` and none for longer than one try: a call that hangs
    /// must leave room for another. `Ok(true)`: we hold it now.
    async fn turn(&mut self, within: Duration) -> Result<bool, String> {
        let ends = self.clock.boot() + within;
        // While we hold it, our own last write is the newest we know: one call instead of two.
        if self.held.is_none() || self.object.is_none() {
            self.look(ends).await?;
        }
        for _ in 0..2 {
            match decide(&self.me, self.seen.as_ref(), self.clock.boot()) {
                Step::Wait(_) => return Ok(false),
                Step::Create | Step::Take => match self.write(ends).await {
                    Ok(()) => return Ok(true),
                    // Somebody else's write, or our own whose reply was lost: look, then decide anew.
                    Err(Trouble::Conflict | Trouble::Missing) => self.look(ends).await?,
                    Err(Trouble::Other(why)) => {
                        self.object = None;
                        return Err(why);
                    }
                },
            }
        }
        Ok(false)
    }
    async fn look(&mut self, ends: Boot) -> Result<(), String> {
        let left = ends.since(self.clock.boot()).min(self.terms.one_try());
        match self.bounded(left, self.api.get(&self.name)).await {
            Ok(lease) => self.saw(lease),
            Err(Trouble::Missing) => self.missed(),
            Err(Trouble::Conflict) => return Err("a read that conflicts".into()),
            Err(Trouble::Other(why)) => return Err(why),
        }
        Ok(())
    }
    /// Somebody deleted it. Whoever held it does not know yet, and may write for as long as it lasted.
    fn missed(&mut self) {
        self.object = None;
        if !matches!(decide(&self.me, self.seen.as_ref(), self.clock.boot()), Step::Wait(_)) {
            self.seen = None;
        }
    }
    fn saw(&mut self, lease: Lease) {
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
        let record = Record {
            resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
            holder: spec.holder_identity.unwrap_or_default(),
            duration: seconds.map_or(self.terms.lease, Duration::from_secs),
        };
        self.seen = Some(Sight::update(self.seen.take(), record, self.clock.boot()));
        self.object = Some(lease);
    }
    async fn write(&mut self, ends: Boot) -> Result<(), Trouble> {
        let sent = self.clock.boot();
        let left = ends.since(sent).min(self.terms.one_try());
        let params = PostParams::default();
        let lease = self.signed();
        let stored = if lease.metadata.resource_version.is_some() {
            self.bounded(left, self.api.replace(&self.name, &params, &lease)).await?
        } else {
            self.bounded(left, self.api.create(&params, &lease)).await?
        };
        self.saw(stored);
        self.held = Some(sent);
        self.fence.set((sent + self.terms.lease).minus(MARGIN));
        Ok(())
    }
    /// The Lease with our name on it; everything else in it stays.
    fn signed(&self) -> Lease {
        let now = MicroTime(self.clock.wall());
        let mut lease = self.object.clone().unwrap_or_else(|| Lease {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            spec: None,
        });
        let spec: &mut LeaseSpec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.me) {
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(-1).saturating_add(1));
            spec.holder_identity = Some(self.me.clone());
        }
        spec.lease_duration_seconds = Some(i32::try_from(self.terms.lease.as_secs()).unwrap_or(i32::MAX));
        spec.renew_time = Some(now);
        lease
    }
    async fn bounded<T>(&self, left: Duration, call: impl Future<Output = kube::Result<T>>) -> Result<T, Trouble> {
        let clock = &self.clock;
        let ends = clock.boot() + left;
        tokio::select! {
            reply = call => reply.map_err(|error| match error {
                kube::Error::Api(status) if status.code == 409 => Trouble::Conflict,
                kube::Error::Api(status) if status.code == 404 && status.details.is_some() => Trouble::Missing,
                other => Trouble::Other(other.to_string()),
            }),
            () = clock.sleep_until(ends) => Err(Trouble::Other("no reply in time".into())),
        }
    }
}
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("changed, or already there")]
    Conflict,
    #[error("not there")]
    Missing,
    #[error("{0}")]
    Other(String),
}

#[cfg(test)]
#[path = "leader_tests.rs"]
mod tests;
