//! One set of credentials' view of its project: the cloud, one shared list per kind, and what is remembered of deletes that are
//! not ours to bring about.
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
    /// Soft-deleted servers are ended for good.
    forces: bool,
    /// Soft-deleted servers that we may not end. To us they are gone.
    given_up: Mutex<BTreeSet<Id>>,
}
impl Session {
    /// Nothing is asked yet. Lists are shared for `interval`.
    pub fn new(cloud: Arc<dyn Cloud>, clock: &SharedClock, interval: Duration, forces: bool) -> Self {
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
            forces,
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
    /// Are soft-deleted servers ended for good? The cloud keeps them so that somebody can bring them back.
    pub fn forces(&self) -> bool {
        self.forces
    }
    /// This cannot be ended by us.
    pub fn give_up(&self, id: &str) {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
    }
    /// Was it given up?
    pub fn gave_up(&self, id: &str) -> bool {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }
}

/// Makes the cloud for a configuration.
pub type Connect = Box<dyn Fn(&CloudConfig) -> Result<Arc<dyn Cloud>, Fault> + Send + Sync>;

/// A session that nobody asked for in this time is forgotten: objects are visited more often than that.
const IDLE: Duration = Duration::from_mins(30);
/// Sessions beyond this number are forgotten, the longest unused first.
const MOST: usize = 4096;

/// All sessions of the process.
pub struct Sessions {
    connect: Connect,
    clock: SharedClock,
    interval: Duration,
    forces: bool,
    known: Mutex<HashMap<String, (Boot, Arc<Session>)>>,
}
impl Sessions {
    /// None yet.
    pub fn new(connect: Connect, clock: SharedClock, interval: Duration) -> Self {
        Sessions { connect, clock, interval, forces: false, known: Mutex::new(HashMap::new()) }
    }
    /// Soft-deleted servers are ended for good.
    #[must_use]
    pub fn forcing(self, forces: bool) -> Self {
        Sessions { forces, ..self }
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
        known.retain(|_, (used, _)| now.since(*used) < IDLE);
        if known.len() >= MOST
            && let Some(oldest) = known.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone())
        {
            known.remove(&oldest);
        }
        let session = Arc::new(Session::new((self.connect)(config)?, &self.clock, self.interval, self.forces));
        known.insert(key, (now, session.clone()));
        Ok(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Client, Connection, Limits};
    use async_trait::async_trait;
    use common::testing::one_owner::ToldClock;
    use common::transport::{Request, Response, Transport, TransportError};
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Nowhere;
    #[async_trait]
    impl Transport for Nowhere {
        async fn exchange(&self, _: Request) -> Result<Response, TransportError> {
            Err(TransportError::NotSent("nowhere".into()))
        }
    }
    fn config(n: usize) -> CloudConfig {
        let clouds = format!(
            "clouds: {{c: {{auth_type: v3applicationcredential, auth: {{auth_url: 'http://k/v3', application_credential_id: i, application_credential_secret: s{n}}}}}}}"
        );
        crate::clouds::read(&clouds, "c", None, None).unwrap()
    }

    #[test]
    fn hundreds_of_credentials_keep_their_sessions_and_unused_ones_are_forgotten() {
        let time = Arc::new(ToldClock::default());
        let clock: SharedClock = time.clone();
        let made = Arc::new(AtomicUsize::new(0));
        let (count, ticks) = (made.clone(), clock.clone());
        let connect = Box::new(move |config: &CloudConfig| {
            count.fetch_add(1, Ordering::Relaxed);
            let connection = Connection::new(Arc::new(Nowhere), ticks.clone(), config.clone(), Limits::default());
            Ok(Arc::new(Client::new(connection)) as Arc<dyn Cloud>)
        });
        let sessions = Sessions::new(connect, clock, Duration::from_mins(5));
        // given many sets of credentials, each used at every resync
        for _ in 0..3 {
            for n in 0..200 {
                sessions.of(&config(n)).unwrap();
            }
            time.pass(Duration::from_mins(10));
        }
        assert_eq!(made.load(Ordering::Relaxed), 200);
        // when most are not used any more, then they are forgotten, and the others are not
        for _ in 0..4 {
            sessions.of(&config(0)).unwrap();
            time.pass(Duration::from_mins(10));
        }
        sessions.of(&config(200)).unwrap();
        assert_eq!((made.load(Ordering::Relaxed), sessions.known.lock().unwrap().len()), (201, 2));
    }
}
