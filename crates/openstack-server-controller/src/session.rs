//! One set of credentials' view of its project: the cloud, one shared list per kind, and what is remembered of soft deletes.
//!
//! A session never changes its credentials. If a Secret changes, the next pass gets a new session with nothing remembered: a
//! list that was read as somebody else must never count as absence.
use crate::cloud::{Backend, Cloud, Item, Kind};
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
    /// Lists of members, by balancer; of all of them without one.
    members: Mutex<HashMap<Option<Id>, Arc<Observer<Item>>>>,
    /// Pools behind the ports of balancers, and when they were asked for.
    backends: Mutex<HashMap<Id, (Boot, Vec<Backend>)>>,
    interval: Duration,
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
            members: Mutex::new(HashMap::new()),
            backends: Mutex::new(HashMap::new()),
            interval,
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
    /// Members of the pools of a balancer, or of all pools of the project.
    pub async fn members(&self, balancer: Option<&str>, freshness: Freshness) -> Result<Arc<Snapshot<Item>>, Fault> {
        let observer = {
            let mut known = self.members.lock().unwrap_or_else(PoisonError::into_inner);
            let key = balancer.map(str::to_owned);
            let made = || {
                let (cloud, key) = (self.cloud.clone(), key.clone());
                Arc::new(Observer::new(
                    self.clock.clone(),
                    self.interval,
                    move || -> BoxFuture<'static, Fetched<Item>> {
                        let (cloud, key) = (cloud.clone(), key.clone());
                        Box::pin(async move { cloud.members(key.as_deref()).await.map(|list| (list.date, list.items)) })
                    },
                ))
            };
            known.entry(key.clone()).or_insert_with(made).clone()
        };
        observer.get(freshness).await
    }
    /// The pools behind the ports of a balancer, asked for as often as lists are.
    pub async fn backends(&self, balancer: &str) -> Result<Vec<Backend>, Fault> {
        let now = self.clock.boot();
        let known = self.backends.lock().unwrap_or_else(PoisonError::into_inner).get(balancer).cloned();
        if let Some((_, backends)) = known.filter(|(asked, _)| now.since(*asked) < self.interval) {
            return Ok(backends);
        }
        let backends = self.cloud.backends(balancer).await?;
        let mut known = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(balancer.to_owned(), (now, backends.clone()));
        Ok(backends)
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
