//! The bare controller: spec to estate, one engine pass, one status write. As any controller does it.
use super::cloud::BareCloud;
use super::estate::{BareEstate, Shared};
use super::{KINDS, kind_of, spec};
use crate::engine::estate::Markable;
use crate::engine::report::{Progress, Report};
use crate::engine::{Engine, Settings, Timing};
use crate::identity::{Mark, Slot};
use crate::ledger::Id;
use crate::names;
use crate::operator::Found;
use crate::runtime::next::Next;
use crate::status::{self, Wish};
use crate::testing::calendar::Millis;
use crate::testing::chance::Chance;
use crate::testing::cloud::{Lags, SimCloud, Twin};
use crate::testing::server::Object;
use crate::testing::subject::{Controller, Edit, Subject, Surroundings, Variety, Visit};
use async_trait::async_trait;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One other provider, for histories in which its finalizer is on the object.
const PEERS: crate::peer::Guard = crate::peer::Guard {
    peers: &[crate::peer::Peer { name: "example", finalizers: &["peer.example/finalizer"] }],
    ..crate::peer::Guard::NONE
};

const CONTROLLER: &str = "bare";
const RESYNC: Duration = Duration::from_mins(10);

/// The smallest user of the engine.
#[derive(Clone, Copy, Debug)]
pub struct Bare {
    timing: Timing,
}
impl Default for Bare {
    fn default() -> Self {
        Bare { timing: Timing::DEFAULT }
    }
}

struct BareController {
    surroundings: Surroundings,
    timing: Timing,
    engine: Engine,
    shared: Arc<Shared>,
    failures: Mutex<HashMap<String, u32>>,
    /// Of the credentials this process started with.
    account: String,
}

impl Subject for Bare {
    fn name(&self) -> &'static str {
        "bare"
    }
    fn controller(&self) -> &'static str {
        CONTROLLER
    }
    fn kind(&self) -> &'static str {
        "BareOwner"
    }
    fn timing(&self) -> Timing {
        self.timing
    }
    fn told(&self, lag: Duration) -> Arc<dyn Subject> {
        Arc::new(Bare { timing: Timing { lag, ..self.timing } })
    }
    fn waves(&self) -> u64 {
        4
    }
    fn cloud(&self, seed: u64, lags: Lags) -> Box<dyn SimCloud> {
        Box::new(BareCloud::new(seed, lags))
    }
    fn spec(&self, name: &str, variety: Variety, chance: &mut Chance) -> Value {
        spec::draw(name, variety, chance).to_value()
    }
    fn edit(&self, value: &mut Value, edit: Edit, chance: &mut Chance) -> bool {
        let mut spec = spec::Spec::read(value);
        let edited = spec::edit(&mut spec, edit, chance);
        *value = spec.to_value();
        edited
    }
    fn refer(&self, value: &mut Value, kind: &str, id: &str) -> bool {
        let mut spec = spec::Spec::read(value);
        let referred = spec::refer(&mut spec, kind, id);
        *value = spec.to_value();
        referred
    }
    fn twins(&self, name: &str, value: &Value, cloud: &dyn SimCloud) -> Vec<Twin> {
        let cloud: &dyn std::any::Any = cloud;
        let ids = cloud.downcast_ref::<BareCloud>().map(|cloud| cloud.slots(name)).unwrap_or_default();
        spec::Spec::read(value).twins(&ids)
    }
    fn permissions(&self) -> Vec<String> {
        let verbs = ["create", "tag", "delete"];
        KINDS.iter().flat_map(|k| verbs.iter().map(|v| format!("{}.{v}", k.name))).collect()
    }
    fn start(&self, surroundings: Surroundings) -> Arc<dyn Controller> {
        let settings = Settings {
            controller: CONTROLLER,
            kind: self.kind().into(),
            installation: surroundings.installation.clone(),
            timing: self.timing(),
            peers: PEERS,
        };
        let engine = Engine::new(
            settings,
            Arc::clone(&surroundings.clock),
            Arc::clone(&surroundings.random),
            Arc::clone(&surroundings.fence),
            surroundings.rules.clone(),
        );
        let (timing, shared, failures) = (self.timing, Arc::default(), Mutex::default());
        let account = surroundings.sim.with(|s| s.cloud.current_account());
        Arc::new(BareController { surroundings, timing, engine, shared, failures, account })
    }
    fn wanted(&self, value: &Value) -> Vec<String> {
        spec::Spec::read(value).pieces.iter().map(|p| p.slot.to_string()).collect()
    }
    fn marked_later(&self, value: &Value) -> usize {
        let later = |p: &&spec::PieceSpec| kind_of(p.slot.kind()).is_some_and(|k| k.markable != Markable::AtCreate);
        spec::Spec::read(value).pieces.iter().filter(later).count()
    }
    fn found(&self, cloud: &dyn SimCloud) -> Vec<Found> {
        let cloud: &dyn std::any::Any = cloud;
        cloud.downcast_ref::<BareCloud>().map(BareCloud::found).unwrap_or_default()
    }
    fn plant_orphans(&self, cloud: &mut dyn SimCloud, now: Millis, mark: &Mark, count: u64) -> Vec<Id> {
        let mut ids = Vec::new();
        for n in 0..count {
            let mut net = None;
            for kind in &KINDS {
                let on: Vec<&Id> = net.iter().collect();
                let params = json!({"key": format!("dead/{}-{n}", kind.name), "params": {"size": 1, "on": on}});
                let slot = Slot::new(kind.name, Some(&n.to_string())).unwrap_or_else(|_| mark.slot.clone());
                let made =
                    cloud.plant(now, &Twin { kind: kind.name.into(), params }, Some(&Mark { slot, ..mark.clone() }));
                net = net.or_else(|| made.clone());
                ids.extend(made);
            }
        }
        ids
    }
    fn is_shared_list(&self, label: &str) -> bool {
        label == "cloud list" || label == "cloud whoami"
    }
}

impl BareController {
    fn again(&self, uid: &str, report: &Report) -> Option<Duration> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(report.progress, Progress::Failed(_)) {
            failures.remove(uid);
        }
        match Next::from(report) {
            Next::Done | Next::Stuck(_) => (report.progress != Progress::Gone).then_some(RESYNC),
            Next::Again(after) | Next::RetryAfter(_, after) => Some(after),
            Next::Retry(_) => {
                let streak = failures.entry(uid.to_owned()).or_default();
                *streak += 1;
                Some(crate::backoff::delay(*streak, self.surroundings.random.bits64()))
            }
        }
    }
}

#[async_trait]
impl Controller for BareController {
    async fn reconcile(&self, object: &Object) -> Visit {
        let estate = BareEstate {
            sim: self.surroundings.sim.clone(),
            clock: Arc::clone(&self.surroundings.clock),
            call: self.timing.call,
            interval: self.surroundings.sim.with(|s| s.listing_interval).unwrap_or(self.timing.poll),
            spec: spec::Spec::read(&object.spec),
            shared: Arc::clone(&self.shared),
            account: self.account.clone(),
        };
        let api = self.surroundings.api.as_ref();
        let paused = object.view.annotations.contains_key(names::PAUSED).then(|| "annotation".to_owned());
        let report = self.engine.pass(&object.view, paused.clone(), api, &estate).await;
        let fields = json!({"ids": report.ids});
        let mut wish = Wish::new(CONTROLLER, object.view.generation, &fields);
        let current = Value::Object(object.fields.clone());
        wish.current = Some(&current);
        wish.paused = paused.as_deref();
        status::write(api, &report, &wish, self.surroundings.clock.wall()).await;
        Visit { again: self.again(&object.view.uid, &report), report }
    }
    fn forget(&self, uid: &str) {
        self.engine.forget(uid);
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
    fn trigger(&self, object: &Object) -> u64 {
        let ledger = names::ledger(CONTROLLER);
        let mut hash = Sha256::new();
        hash.update(object.spec.to_string());
        let view = &object.view;
        for (name, value) in view.labels.iter().chain(&view.annotations) {
            if *name != ledger || !self.engine.wrote(value) {
                hash.update(format!("{name}={value};"));
            }
        }
        hash.update(format!("{:?}{}{}", view.finalizers, view.deleting, view.uid));
        let bytes = hash.finalize();
        bytes.iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte))
    }
}
