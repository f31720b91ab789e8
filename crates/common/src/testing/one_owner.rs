//! One owner at an API server in memory, and a clock that moves when it is told to: for tests of a controller's visits, one
//! after the other.
use crate::clock::{Boot, Clock};
use crate::engine::owner::{ApiUnavailable, OwnerApi, OwnerPatch, OwnerView, Patched};
use async_trait::async_trait;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time that passes when told to, and while somebody sleeps.
#[derive(Debug)]
pub struct ToldClock(Mutex<Duration>);
impl Default for ToldClock {
    /// The machine booted an hour ago.
    fn default() -> Self {
        ToldClock(Mutex::new(Duration::from_hours(1)))
    }
}
impl ToldClock {
    fn held(&self) -> MutexGuard<'_, Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Time passes.
    pub fn pass(&self, by: Duration) {
        *self.held() += by;
    }
}
impl Clock for ToldClock {
    fn boot(&self) -> Boot {
        Boot(*self.held())
    }
    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap_or_default() + *self.held()
    }
    fn sleep_until(&self, until: Boot) -> BoxFuture<'static, ()> {
        let mut now = self.held();
        *now = (*now).max(until.0);
        Box::pin(std::future::ready(()))
    }
}

/// An owner as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// All but spec and status.
    pub view: OwnerView,
    /// Its status, without conditions.
    pub status: Value,
    /// It was deleted and nothing holds it any more.
    pub gone: bool,
    version: u64,
}
/// An API server with one owner in it.
#[derive(Debug)]
pub struct OneOwner(Mutex<Stored>);
impl OneOwner {
    /// Just created, under this name.
    pub fn new(name: &str) -> Self {
        let view = OwnerView {
            namespace: "ns".into(),
            name: name.into(),
            uid: "uid-1".into(),
            resource_version: "0".into(),
            generation: 1,
            ..OwnerView::default()
        };
        OneOwner(Mutex::new(Stored { view, status: json!({}), gone: false, version: 0 }))
    }
    fn held(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The newest version.
    pub fn stored(&self) -> Stored {
        self.held().clone()
    }
    /// Somebody writes on the newest version.
    pub fn touch(&self, change: impl FnOnce(&mut Stored)) {
        let newest = self.stored().view;
        self.change(&newest, change);
    }
    /// Somebody edits the spec, wherever that is kept.
    pub fn edited(&self) {
        self.touch(|stored| stored.view.generation += 1);
    }
    /// Somebody annotates it.
    pub fn annotate(&self, key: &str, value: &str) {
        self.touch(|stored| {
            stored.view.annotations.insert(key.into(), value.into());
        });
    }
    /// Somebody deletes it.
    pub fn delete(&self) {
        self.touch(|stored| {
            stored.view.deleting = true;
            stored.view.generation += 1;
        });
    }
    fn change(&self, view: &OwnerView, change: impl FnOnce(&mut Stored)) -> Patched {
        let mut stored = self.held();
        if stored.gone {
            return Patched::Gone;
        }
        if stored.view.resource_version != view.resource_version {
            return Patched::Conflict;
        }
        change(&mut stored);
        stored.version += 1;
        stored.view.resource_version = stored.version.to_string();
        stored.gone = stored.view.deleting && stored.view.finalizers.is_empty();
        Patched::Stored(Box::new(stored.view.clone()))
    }
}
#[async_trait]
impl OwnerApi for OneOwner {
    async fn get(&self, _: &str, _: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
        let stored = self.held();
        Ok((!stored.gone).then(|| stored.view.clone()))
    }
    async fn patch(&self, view: &OwnerView, patch: &OwnerPatch) -> Patched {
        self.change(view, |stored| {
            for (key, value) in &patch.annotations {
                match value {
                    Some(value) => stored.view.annotations.insert(key.clone(), value.clone()),
                    None => stored.view.annotations.remove(key),
                };
            }
            if let Some(finalizers) = &patch.finalizers {
                stored.view.finalizers.clone_from(finalizers);
            }
        })
    }
    async fn patch_status(&self, view: &OwnerView, conditions: &[Condition], fields: &Value) -> Patched {
        self.change(view, |stored| {
            stored.view.conditions = conditions.to_vec();
            for (key, value) in fields.as_object().into_iter().flatten() {
                stored.status[key] = value.clone();
            }
        })
    }
}
