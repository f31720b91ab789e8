//! One controller process in the simulator: what the runtime's runner does around a visit, with the runtime's own gate and trigger.
use async_trait::async_trait;
use common::backoff;
use common::clock::Boot;
use common::engine::owner::OwnerApi;
use common::engine::report::{Progress, Report};
use common::names;
use common::runtime::gate::{Gate, GatedApi};
use common::runtime::next::Next;
use common::runtime::object::{Arrived, Version};
use common::runtime::runner::DEAF;
use common::runtime::trigger::Trigger;
use common::testing::{Controller, Object, Surroundings, Visit};
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const RESYNC: Duration = Duration::from_mins(10);
const STALE: Duration = Duration::from_secs(1);

/// A controller's own visit of one object.
#[async_trait]
pub trait Visitor: Send + Sync {
    /// From a cached object to the status write.
    async fn visit(&self, object: &Object, paused: Option<String>, api: &dyn OwnerApi) -> Report;
    /// The object is gone.
    fn forget(&self, uid: &str);
}

/// A process around a visitor.
pub struct Process<V> {
    visitor: V,
    gate: Arc<Gate>,
    api: GatedApi,
    surroundings: Surroundings,
    failures: Mutex<BTreeMap<String, u32>>,
    /// Since when the cache is behind our own writes, by uid.
    since: Mutex<BTreeMap<String, Boot>>,
}
impl<V: Visitor + 'static> Process<V> {
    /// A process of this controller.
    pub fn start(controller: &str, visitor: V, surroundings: Surroundings) -> Arc<dyn Controller> {
        let gate = Arc::new(Gate::new(names::ledger(controller)));
        let api = gate.watching(Arc::clone(&surroundings.api));
        Arc::new(Process { visitor, gate, api, surroundings, failures: Mutex::default(), since: Mutex::default() })
    }
    /// As the runner does: a watch that keeps our own writes from us for too long is started over.
    fn behind(&self, uid: &str) {
        let now = self.surroundings.clock.boot();
        let mut known = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let since = known.entry(uid.to_owned()).or_insert(now);
        if now.since(*since) > DEAF {
            *since = now;
            self.surroundings.sim.with(|s| s.relist(self.surroundings.process));
        }
    }
    fn again(&self, uid: &str, report: &Report) -> Option<Duration> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Next::from(report);
        if !matches!(next, Next::Retry(_)) {
            failures.remove(uid);
        }
        match next {
            Next::Done | Next::Stuck(_) => (report.progress != Progress::Gone).then_some(RESYNC),
            Next::Again(after) | Next::RetryAfter(_, after) => Some(after),
            Next::Retry(_) => {
                let count = failures.entry(uid.to_owned()).or_default();
                *count += 1;
                Some(backoff::delay(*count, self.surroundings.random.bits64()))
            }
        }
    }
}

#[async_trait]
impl<V: Visitor + 'static> Controller for Process<V> {
    async fn reconcile(&self, object: &Object) -> Visit {
        if !self.heeds(object) {
            self.behind(&object.view.uid);
            let report = Report {
                progress: Progress::Stale("the cache is behind".into()),
                view: None,
                standing: Vec::new(),
                notes: Vec::new(),
                kept: Vec::new(),
                mirror: None,
                ids: BTreeMap::new(),
            };
            return Visit { again: Some(STALE), report };
        }
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(&object.view.uid);
        let paused = object.view.annotations.contains_key(names::PAUSED).then(|| "paused by its annotation".to_owned());
        let report = self.visitor.visit(object, paused, &self.api).await;
        Visit { again: self.again(&object.view.uid, &report), report }
    }
    fn forget(&self, uid: &str) {
        self.visitor.forget(uid);
        self.gate.forget(uid);
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
    fn heeds(&self, object: &Object) -> bool {
        !self.gate.is_stale(&object.view.uid, Version::parse(&object.view.resource_version))
    }
    fn trigger(&self, object: &Object) -> u64 {
        let view = &object.view;
        let ledger = view.annotations.get(self.gate.annotation()).map(String::as_str);
        let own = self.gate.is_own(&view.uid, ledger);
        let failing = self.failures.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&view.uid);
        let deleted = view.deleting.then_some("2027-01-15T08:00:00Z");
        let mut metadata = Map::new();
        metadata.insert("uid".into(), json!(view.uid));
        metadata.insert("labels".into(), json!(view.labels));
        metadata.insert("annotations".into(), json!(view.annotations));
        metadata.insert("finalizers".into(), json!(view.finalizers));
        metadata.insert("deletionTimestamp".into(), json!(deleted));
        let arrived: Result<Arrived, _> = serde_json::from_value(json!({"metadata": metadata, "spec": object.spec}));
        let trigger =
            arrived.map_or_else(|_| Trigger::default(), |arrived| Trigger::of(&arrived, self.gate.annotation()));
        if own || failing { trigger.rest } else { trigger.rest ^ trigger.ledger }
    }
}
