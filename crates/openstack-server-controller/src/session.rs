//! One set of credentials' view of its project: the cloud, one shared list per kind, and what is remembered of soft deletes.
//!
//! A session never changes its credentials. If a Secret changes, the next pass gets a new session with nothing remembered: a
//! list that was read as somebody else must never count as absence.
use crate::cloud::{Cloud, Item, Kind};
use crate::clouds::CloudConfig;
use common::clock::{Boot, SharedClock};
use common::engine::estate::{Fault, Freshness};
use common::ledger::Id;
use common::observer::{Fetched, Observer, Snapshot};
use futures::future::BoxFuture;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the reply of a create counts as a read.
const FRESH: Duration = Duration::from_secs(8);

/// One project as one set of credentials sees it.
pub struct Session {
    cloud: Arc<dyn Cloud>,
    observers: [Observer<Item>; Kind::ALL.len()],
    clock: SharedClock,
    /// What create calls returned, a moment ago: a read would say the same.
    fresh: Mutex<HashMap<(Kind, Id), (Boot, Item)>>,
    /// Soft-deleted servers whose end we may not bring about: to us they are gone.
    given_up: Mutex<BTreeSet<Id>>,
}
impl Session {
    /// Nothing is asked yet. Lists are shared for `interval`.
    pub fn new(cloud: Arc<dyn Cloud>, clock: &SharedClock, interval: Duration) -> Self {
        let observer = |kind: Kind| {
            let cloud = cloud.clone();
            Observer::new(clock.clone(), interval, move || -> BoxFuture<'static, Fetched<Item>> {
                let cloud = cloud.clone();
                Box::pin(async move { cloud.list(kind).await.map(|list| (list.date, list.items)) })
            })
        };
        Session {
            observers: Kind::ALL.map(observer),
            cloud,
            clock: clock.clone(),
            fresh: Mutex::new(HashMap::new()),
            given_up: Mutex::new(BTreeSet::new()),
        }
    }
    /// The cloud itself.
    pub fn cloud(&self) -> &dyn Cloud {
        &*self.cloud
    }
    /// All things of these kinds.
    pub async fn snapshots(
        &self,
        kinds: &BTreeSet<Kind>,
        freshness: Freshness,
    ) -> Result<Vec<Arc<Snapshot<Item>>>, Fault> {
        let wanted = Kind::ALL.into_iter().zip(&self.observers).filter(|(kind, _)| kinds.contains(kind));
        futures::future::try_join_all(wanted.map(|(_, observer)| observer.get(freshness))).await
    }
    /// A create call returned this.
    pub fn note_made(&self, item: Item) {
        let now = self.clock.boot();
        let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.retain(|_, (at, _)| now.since(*at) < FRESH);
        fresh.insert((item.kind(), item.id().clone()), (now, item));
    }
    /// What a create call returned, if that was a moment ago.
    pub fn just_made(&self, kind: Kind, id: &str) -> Option<Item> {
        let now = self.clock.boot();
        let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.get(&(kind, id.to_owned())).filter(|(at, _)| now.since(*at) < FRESH).map(|(_, item)| item.clone())
    }
    /// This soft-deleted server cannot be ended by us.
    pub fn give_up(&self, server: &str) {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned());
    }
    /// Was it given up?
    pub fn gave_up(&self, server: &str) -> bool {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).contains(server)
    }
}

/// Makes the cloud for a configuration.
pub type Connect = Box<dyn Fn(&CloudConfig) -> Result<Arc<dyn Cloud>, Fault> + Send + Sync>;

/// Sessions beyond this number are forgotten, the longest unused first.
const MOST: usize = 64;

/// All sessions of the process.
pub struct Sessions {
    connect: Connect,
    clock: SharedClock,
    interval: Duration,
    known: Mutex<HashMap<String, (Boot, Arc<Session>)>>,
}
impl Sessions {
    /// None yet.
    pub fn new(connect: Connect, clock: SharedClock, interval: Duration) -> Self {
        Sessions { connect, clock, interval, known: Mutex::new(HashMap::new()) }
    }
    /// The session of these credentials. Two that differ in anything, be it only the region, share nothing.
    pub fn of(&self, config: &CloudConfig) -> Result<Arc<Session>, Fault> {
        let now = self.clock.boot();
        let key = config.fingerprint();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((used, session)) = known.get_mut(&key) {
            *used = now;
            return Ok(session.clone());
        }
        if known.len() >= MOST
            && let Some(oldest) = known.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone())
        {
            known.remove(&oldest);
        }
        let session = Arc::new(Session::new((self.connect)(config)?, &self.clock, self.interval));
        known.insert(key, (now, session.clone()));
        Ok(session)
    }
}
