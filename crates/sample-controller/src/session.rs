//! One token's view of the account: the cloud, one shared list per kind, and who the token is.
//!
//! A session never changes its token. If the Secret changes, the next pass gets a new session with nothing remembered:
//! a list that was read as somebody else must never count as absence.
use crate::cloud::{Cloud, Identity, Item, Kind};
use crate::credentials::{Credentials, Token};
use common::clock::SharedClock;
use common::engine::estate::{Fault, Freshness};
use common::observer::{Fetched, Observer, Snapshot};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// One token's view of the account.
pub struct Session {
    cloud: Arc<dyn Cloud>,
    observers: [Observer<Item>; Kind::ALL.len()],
    identity: Mutex<Option<Identity>>,
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
        Session { observers: Kind::ALL.map(observer), identity: Mutex::new(None), cloud }
    }
    /// The cloud itself.
    pub fn cloud(&self) -> &dyn Cloud {
        &*self.cloud
    }
    /// Who the token is; asked once.
    pub async fn identity(&self) -> Result<Identity, Fault> {
        let mut known = self.identity.lock().await;
        if let Some(identity) = &*known {
            return Ok(identity.clone());
        }
        let identity = self.cloud.whoami().await?;
        *known = Some(identity.clone());
        Ok(identity)
    }
    /// All things of every kind, in the order of [`Kind::ALL`].
    pub async fn snapshots(&self, freshness: Freshness) -> Result<Vec<Arc<Snapshot<Item>>>, Fault> {
        futures::future::try_join_all(self.observers.iter().map(|observer| observer.get(freshness))).await
    }
}

/// Makes the cloud for a token.
pub type Connect = Box<dyn Fn(Token) -> Arc<dyn Cloud> + Send + Sync>;

/// The account behind a Secret.
pub struct Account {
    credentials: Credentials,
    connect: Connect,
    clock: SharedClock,
    interval: Duration,
    current: Mutex<Option<(Token, Arc<Session>)>>,
}
impl Account {
    /// Nothing is read or asked yet.
    pub fn new(credentials: Credentials, connect: Connect, clock: SharedClock, interval: Duration) -> Self {
        Account { credentials, connect, clock, interval, current: Mutex::new(None) }
    }
    /// The session of the token as it is now.
    pub async fn session(&self) -> Result<Arc<Session>, Fault> {
        let token = self.credentials.token().await?;
        let mut current = self.current.lock().await;
        if let Some((known, session)) = &*current
            && *known == token
        {
            return Ok(session.clone());
        }
        let session = Arc::new(Session::new((self.connect)(token.clone()), &self.clock, self.interval));
        *current = Some((token, session.clone()));
        Ok(session)
    }
}
