//! Runs passes: one at a time per object, a bounded number in all, each bounded in time, a panic costs one of them.
use super::cache::{Cache, Effect};
use super::gate::Gate;
use super::next::Next;
use super::object::{Arrived, Kept, Key};
use super::queue::{Queue, Taken, Why};
use super::watch::{self, News, Source};
use crate::backoff::{self, Streaks};
use crate::clock::{Boot, SharedClock};
use crate::conditions::cut;
use crate::engine::owner::OwnerView;
use crate::process::health::Readiness;
use crate::process::metrics::Metrics;
use crate::random::Random;
use async_trait::async_trait;
use futures::FutureExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch as signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, error, info, warn};

/// If the cache is behind and no event comes, look again then.
const STALE_LOOK: Duration = Duration::from_secs(5);
/// A watch that has not told us of our own write by then is deaf: list anew.
pub const DEAF: Duration = Duration::from_secs(30);
/// Stuck objects are tried again this often at the least: permissions and quotas change without any event.
const STUCK_LOOK: Duration = Duration::from_mins(1);
/// News between the watch and the cache: small, so that a list is not held twice.
const NEWS: usize = 16;

/// What a controller does for one object.
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// The kind.
    type Object: DeserializeOwned + Send + Sync;
    /// One pass. `view` and `status` are of the same version as `object`.
    async fn reconcile(&self, object: &Self::Object, view: &OwnerView, status: &Value) -> Next;
    /// The object does not fit its type: say so in its conditions. Nobody else's pass is touched by it.
    async fn invalid(&self, view: &OwnerView, status: &Value, why: &str) -> Next;
    /// The object is no longer there.
    fn gone(&self, uid: &str);
    /// Is a change of status alone worth a pass? Asked only where nothing else changed.
    fn wakes(&self, _before: &Kept, _now: &Arrived) -> bool {
        false
    }
}

/// Bounds of a runner.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Workers.
    pub concurrency: usize,
    /// Longest pass.
    pub pass: Duration,
    /// Every object is looked at again this often at the least.
    pub resync: Duration,
    /// At the end, running passes get this long.
    pub drain: Duration,
}

/// What a runner stands on.
#[derive(Clone)]
pub struct Ground {
    /// Time.
    pub clock: SharedClock,
    /// Chance.
    pub random: Arc<Random>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Told when the first list is complete.
    pub readiness: Readiness,
}

struct Shared {
    queue: Mutex<Queue>,
    cache: RwLock<Cache>,
    gate: Arc<Gate>,
    wake: Notify,
    /// The first list was complete. Later lists replace what they find: the cache is never empty again because of one.
    listed: signal::Sender<bool>,
    clock: SharedClock,
    metrics: Arc<Metrics>,
}
impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn enqueue(&self, key: &Key, why: Why) {
        if self.queue().add(key, why, self.clock.boot()) {
            let name = self.metrics.controller();
            self.metrics.adds.with_label_values(&[name, name]).inc();
        }
        self.wake.notify_one();
    }
}

/// Lets others look into a runner's cache and ask for passes.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);
impl Handle {
    /// A pass for this object, soon.
    pub fn enqueue(&self, key: &Key) {
        self.0.enqueue(key, Why::Changed);
    }
    /// A pass for every object that this is true of.
    pub fn enqueue_where(&self, wanted: impl Fn(&Key, &Kept) -> bool) {
        let keys: Vec<Key> =
            self.read(|cache| cache.iter().filter(|(k, o)| wanted(k, o)).map(|(k, _)| k.clone()).collect());
        for key in keys {
            self.0.enqueue(&key, Why::Changed);
        }
    }
    /// Looks into the cache.
    pub fn read<T>(&self, look: impl FnOnce(&Cache) -> T) -> T {
        look(&self.0.cache.read().unwrap_or_else(PoisonError::into_inner))
    }
    /// Was the first list complete? Passes begin before: until then, what is not in the cache may be there all the same.
    pub fn is_listed(&self) -> bool {
        *self.0.listed.borrow()
    }
    /// Waits until the first list is complete.
    pub async fn listed(&self) {
        // Fails only without a sender, and this handle holds it.
        let _ = self.0.listed.subscribe().wait_for(|listed| *listed).await;
    }
}

/// Watch, cache, queue and workers for one kind.
pub struct Runner<R> {
    reconciler: Arc<R>,
    shared: Arc<Shared>,
    bounds: Bounds,
    ground: Ground,
    streaks: Streaks<Key>,
    /// Keys whose cached version is behind our own writes, and since when.
    behind: HashMap<Key, Boot>,
    /// The watch has kept something from us for too long.
    deaf: bool,
    passes: JoinSet<(Key, Arc<str>, Ended)>,
}

/// How a pass ended.
enum Ended {
    Returned(Next),
    Panicked,
    TimedOut,
}

impl<R: Reconciler> Runner<R> {
    /// A runner; nothing happens before [`Runner::run`].
    pub fn new(reconciler: Arc<R>, gate: Arc<Gate>, bounds: Bounds, ground: Ground) -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::new(bounds.concurrency)),
            cache: RwLock::default(),
            gate,
            wake: Notify::new(),
            listed: signal::Sender::new(false),
            clock: ground.clock.clone(),
            metrics: ground.metrics.clone(),
        });
        let name = ground.metrics.controller().to_owned();
        let workers = i64::try_from(bounds.concurrency.max(1)).unwrap_or(i64::MAX);
        ground.metrics.max_concurrent.with_label_values(&[&name]).set(workers);
        let scraped = shared.clone();
        ground.metrics.before_scrape(move |metrics| refresh(metrics, &scraped));
        Runner {
            reconciler,
            shared,
            bounds,
            ground,
            streaks: Streaks::new(100_000),
            behind: HashMap::new(),
            deaf: false,
            passes: JoinSet::new(),
        }
    }
    /// For others.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }
    /// Runs until `stop`, then lets running passes end within the drain time.
    pub async fn run(mut self, source: Source, stop: CancellationToken) {
        let what = format!("first list of {}", source.resource.plural);
        self.ground.readiness.missing(&what, "not complete");
        let (mut news, mut watching) = self.listen(&source);
        loop {
            let until = self.dispatch();
            if self.forgive_deafness() {
                (news, watching) = self.listen(&source);
            }
            let clock = self.ground.clock.clone();
            let alarm = async move {
                match until {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let wake = self.shared.clone();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = self.passes.join_next() => self.ended(ended),
                Some(news) = news.recv() => self.heard(news, &what),
                () = wake.wake.notified() => {}
                () = alarm => {}
            }
        }
        drop(watching);
        let clock = self.ground.clock.clone();
        let deadline = clock.boot() + self.bounds.drain;
        let running = self.passes.len();
        if running > 0 {
            info!(running, "waiting for running passes");
        }
        tokio::select! {
            () = async { while self.passes.join_next().await.is_some() {} } => {}
            () = clock.sleep_until(deadline) => warn!(cut = self.passes.len(), "passes cut off at the end of the drain time"),
        }
    }

    /// A list and a watch of their own; dropping the set ends them.
    fn listen(&self, source: &Source) -> (mpsc::Receiver<News>, JoinSet<()>) {
        let (tell, news) = mpsc::channel(NEWS);
        let mut watching = JoinSet::new();
        watching.spawn(watch::watch(source.clone(), self.ground.clock.clone(), tell));
        (news, watching)
    }
    /// True if the watch is to be started over; the new one gets as much time as the old one had.
    fn forgive_deafness(&mut self) -> bool {
        if !std::mem::take(&mut self.deaf) {
            return false;
        }
        let now = self.ground.clock.boot();
        self.behind.values_mut().for_each(|since| *since = now);
        let name = self.ground.metrics.controller();
        self.ground.metrics.watch_troubles.with_label_values(&[name]).inc();
        warn!(objects = self.behind.len(), "the watch keeps our own writes from us: listing anew");
        true
    }

    fn heard(&mut self, news: News, what: &str) {
        let shared = self.shared.clone();
        let mut cache = shared.cache.write().unwrap_or_else(PoisonError::into_inner);
        match news {
            News::Begin => cache.begin(),
            News::Listed(object) | News::Changed(object) => {
                let key = object.key();
                let before = cache.get(&key).cloned();
                let effect = cache.apply(&object, &shared.gate);
                drop(cache);
                let woken =
                    effect == Effect::Echo && before.is_some_and(|before| self.reconciler.wakes(&before, &object));
                match effect {
                    // A first list is not urgent: what changes meanwhile goes first.
                    Effect::New => shared.enqueue(&key, Why::Due),
                    // Two processes that fail on one object would wake each other for ever by their ledger writes.
                    Effect::Ledger if self.streaks.is_failing(&key) => {}
                    Effect::Changed | Effect::Ledger => shared.enqueue(&key, Why::Changed),
                    Effect::Echo if woken => shared.enqueue(&key, Why::Changed),
                    Effect::Echo if self.behind.contains_key(&key) => shared.enqueue(&key, Why::Due),
                    Effect::Echo | Effect::Stale => {}
                }
            }
            News::Complete => {
                let gone = cache.finish();
                let objects = cache.len();
                drop(cache);
                info!(objects, "list complete");
                self.ground.readiness.present(what);
                shared.listed.send_replace(true);
                for (key, uid) in gone {
                    self.gone(&key, &uid);
                }
            }
            News::Gone(object) => {
                let key = object.key();
                let kept = cache.remove(&key);
                drop(cache);
                self.gone(&key, object.uid());
                // A name used again between two events leaves the cache with another uid.
                if let Some(kept) = kept.filter(|k| *k.uid != *object.uid()) {
                    self.gone(&key, &kept.uid);
                }
            }
            News::Trouble(why) => {
                let name = self.ground.metrics.controller();
                self.ground.metrics.watch_troubles.with_label_values(&[name]).inc();
                // Before the first list this is what is missing: the CRD, a permission, the API server.
                self.ground.readiness.still_missing(what, &cut(&why, 300));
                warn!(why, "watch");
            }
        }
    }
    fn gone(&mut self, key: &Key, uid: &str) {
        self.shared.queue().forget(key);
        self.streaks.forget(key);
        self.behind.remove(key);
        self.shared.gate.forget(uid);
        self.reconciler.gone(uid);
    }

    /// Starts passes while there are workers; returns when the next delayed key is due.
    fn dispatch(&mut self) -> Option<Boot> {
        loop {
            let now = self.ground.clock.boot();
            let (key, waited) = match self.shared.queue().take(now) {
                Taken::Next(key, waited) => (key, waited),
                Taken::Nothing(at) => return at,
                Taken::Full => return None,
            };
            let name = self.ground.metrics.controller();
            self.ground.metrics.queue_duration.with_label_values(&[name, name]).observe(waited.as_secs_f64());
            let kept = self.handle().read(|cache| cache.get(&key).cloned());
            let Some(kept) = kept else {
                self.shared.queue().done(&key, None, now);
                continue;
            };
            if self.shared.gate.is_stale(&kept.uid, kept.version) {
                self.ground.metrics.stale_skips.with_label_values(&[name]).inc();
                let since = *self.behind.entry(key.clone()).or_insert(now);
                self.deaf |= now.since(since) > DEAF;
                self.shared.queue().done(&key, Some(now + STALE_LOOK), now);
                continue;
            }
            self.behind.remove(&key);
            self.start(key, kept);
        }
    }
    fn start(&mut self, key: Key, kept: Kept) {
        let metrics = &self.ground.metrics;
        metrics.active_workers.with_label_values(&[metrics.controller()]).inc();
        let (reconciler, bound) = (self.reconciler.clone(), self.bounds.pass);
        let span = tracing::info_span!("pass", object = %key, uid = &*kept.uid);
        let uid = kept.uid.clone();
        let invalid = metrics.invalid.with_label_values(&[metrics.controller()]);
        let pass = async move {
            let (view, status) = kept.view();
            match kept.decode::<R::Object>() {
                Ok(object) => {
                    drop(kept);
                    reconciler.reconcile(&object, &view, &status).await
                }
                Err(why) => {
                    invalid.inc();
                    let why = why.to_string();
                    warn!(why, "the object does not fit its type");
                    reconciler.invalid(&view, &status, &why).await
                }
            }
        };
        let bounded = async move {
            let ended = match tokio::time::timeout(bound, AssertUnwindSafe(pass).catch_unwind()).await {
                Ok(Ok(next)) => Ended::Returned(next),
                Ok(Err(_)) => Ended::Panicked,
                Err(_) => Ended::TimedOut,
            };
            (key, uid, ended)
        };
        self.passes.spawn(bounded.instrument(span));
    }

    fn ended(&mut self, joined: Result<(Key, Arc<str>, Ended), tokio::task::JoinError>) {
        // A pass is neither aborted nor able to panic past its guard while the runner lives.
        let Ok((key, uid, ended)) = joined else { return };
        let now = self.ground.clock.boot();
        let metrics = self.ground.metrics.clone();
        let name = metrics.controller();
        metrics.active_workers.with_label_values(&[name]).dec();
        let next = match ended {
            Ended::Returned(next) => next,
            Ended::Panicked => {
                metrics.panics.with_label_values(&[name]).inc();
                Next::Retry("the pass panicked".into())
            }
            Ended::TimedOut => {
                metrics.timeouts.with_label_values(&[name]).inc();
                Next::Retry(format!("the pass took longer than {:?}", self.bounds.pass))
            }
        };
        metrics.reconcile_total.with_label_values(&[name, next.result()]).inc();
        let wait = self.wait_after(&key, &next);
        let took = self.shared.queue().done(&key, Some(now + wait), now);
        metrics.reconcile_time.with_label_values(&[name]).observe(took.as_secs_f64());
        metrics.work_duration.with_label_values(&[name, name]).observe(took.as_secs_f64());
        log(&key, &next, took, wait);
        // Its end may have been seen while the pass still wrote.
        if self.handle().read(|cache| cache.get(&key).is_none_or(|k| k.uid != uid)) {
            self.shared.gate.forget(&uid);
            self.reconciler.gone(&uid);
        }
    }
    /// How long the object is left alone, unless it changes.
    fn wait_after(&mut self, key: &Key, next: &Next) -> Duration {
        let (metrics, random) = (self.ground.metrics.clone(), self.ground.random.clone());
        let name = metrics.controller();
        if let Next::Done | Next::Again(_) = next {
            self.streaks.forget(key);
        } else {
            metrics.reconcile_errors.with_label_values(&[name]).inc();
            metrics.retries.with_label_values(&[name, name]).inc();
        }
        match next {
            Next::Done => random.jitter(self.bounds.resync, 10),
            // An estate that says "at once" for ever must not spin.
            Next::Again(after) => (*after).clamp(Duration::from_millis(10), self.bounds.resync),
            Next::Retry(_) => backoff::delay(self.streaks.failed(key), random.bits64()),
            Next::RetryAfter(_, after) => {
                let own = backoff::delay(self.streaks.failed(key), random.bits64());
                own.max(*after).min(self.bounds.resync.max(own))
            }
            Next::Stuck(_) => {
                metrics.terminal_errors.with_label_values(&[name]).inc();
                random.jitter(STUCK_LOOK.min(self.bounds.resync), 10)
            }
        }
    }
}

fn log(key: &Key, next: &Next, took: Duration, wait: Duration) {
    let (object, took, again) = (key.to_string(), took.as_secs_f64(), wait.as_secs_f64());
    match next {
        Next::Done => debug!(object, took, again, "pass: done"),
        Next::Again(_) => info!(object, took, again, "pass: waiting"),
        Next::Retry(why) | Next::RetryAfter(why, _) => warn!(object, took, again, why, "pass: failed"),
        Next::Stuck(why) => error!(object, took, again, why, "pass: stuck"),
    }
}

fn refresh(metrics: &Metrics, shared: &Shared) {
    let name = metrics.controller();
    let labels = [name, name];
    let (depth, ages) = {
        let queue = shared.queue();
        let ages: Vec<f64> = queue.running_for(shared.clock.boot()).map(|d| d.as_secs_f64()).collect();
        (queue.depth(), ages)
    };
    let objects = shared.cache.read().unwrap_or_else(PoisonError::into_inner).len();
    metrics.depth.with_label_values(&labels).set(i64::try_from(depth).unwrap_or(i64::MAX));
    metrics.unfinished.with_label_values(&labels).set(ages.iter().sum());
    metrics.longest_running.with_label_values(&labels).set(ages.iter().copied().fold(0.0, f64::max));
    metrics.watched.with_label_values(&[name]).set(i64::try_from(objects).unwrap_or(i64::MAX));
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
