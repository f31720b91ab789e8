//! One listing for everybody: all owners of an account share one paged list per kind and interval.
use crate::clock::{Boot, SharedClock};
use crate::engine::estate::{Fault, Freshness};
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;

/// Everything of one kind, as the cloud showed it at one time.
#[derive(Clone, Debug)]
pub struct Snapshot<T> {
    /// When the first page was asked for; says nothing about anything written later.
    pub sent: Boot,
    /// The cloud's own date in the reply to that.
    pub date: Timestamp,
    /// All pages.
    pub items: Vec<T>,
}

/// What a fetch brings: the cloud's date and all items.
pub type Fetched<T> = Result<(Timestamp, Vec<T>), Fault>;
type Fetch<T> = Box<dyn Fn() -> BoxFuture<'static, Fetched<T>> + Send + Sync>;

/// Asks at most once per interval, and at most once at a time.
pub struct Observer<T> {
    clock: SharedClock,
    interval: Duration,
    fetch: Fetch<T>,
    latest: RwLock<Option<Arc<Snapshot<T>>>>,
    /// Held by the one who asks; the others wait for its answer.
    asking: Mutex<()>,
}

impl<T: Send + Sync> Observer<T> {
    /// `fetch` brings all pages; its requests go out after it is called.
    pub fn new(
        clock: SharedClock,
        interval: Duration,
        fetch: impl Fn() -> BoxFuture<'static, Fetched<T>> + Send + Sync + 'static,
    ) -> Self {
        Observer { clock, interval, fetch: Box::new(fetch), latest: RwLock::new(None), asking: Mutex::new(()) }
    }

    fn good(&self, freshness: Freshness) -> Option<Arc<Snapshot<T>>> {
        let latest = self.latest.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        let good = match freshness {
            Freshness::Any => self.clock.boot().since(latest.sent) < self.interval,
            Freshness::SentAfter(moment) => latest.sent >= moment,
        };
        good.then_some(latest)
    }

    /// The shared snapshot if it is good enough, else a new one.
    pub async fn get(&self, freshness: Freshness) -> Result<Arc<Snapshot<T>>, Fault> {
        if let Some(good) = self.good(freshness) {
            return Ok(good);
        }
        let _one_at_a_time = self.asking.lock().await;
        if let Some(good) = self.good(freshness) {
            return Ok(good);
        }
        let sent = self.clock.boot();
        let (date, items) = (self.fetch)().await?;
        let fresh = Arc::new(Snapshot { sent, date, items });
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(fresh.clone());
        Ok(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn observer(interval: Duration) -> (Arc<Observer<u32>>, Arc<AtomicU32>) {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = calls.clone();
        let fetch = move || -> BoxFuture<'static, Fetched<u32>> {
            let n = counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                tokio::task::yield_now().await;
                Ok((Timestamp::UNIX_EPOCH, vec![n]))
            })
        };
        (Arc::new(Observer::new(Arc::new(SystemClock), interval, fetch)), calls)
    }

    #[tokio::test]
    async fn many_askers_share_one_fetch() {
        let (observer, calls) = observer(Duration::from_hours(1));
        let asked = (0..50).map(|_| observer.get(Freshness::Any));
        let answers = futures::future::join_all(asked).await;
        assert!(answers.iter().all(|a| a.as_ref().unwrap().items == [0]));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
    #[tokio::test]
    async fn who_needs_a_newer_one_gets_a_newer_one() {
        let (observer, calls) = observer(Duration::from_hours(1));
        let first = observer.get(Freshness::Any).await.unwrap();
        let second = observer.get(Freshness::SentAfter(first.sent + Duration::from_nanos(1))).await.unwrap();
        assert!(second.sent > first.sent);
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }
}
