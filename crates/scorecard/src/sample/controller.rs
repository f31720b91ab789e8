//! The sample controller as a subject: its own visit, its own client, the runtime's gate and trigger.
use super::cloud::{ACCOUNTS, EmulatedSample};
use super::spec;
use async_trait::async_trait;
use common::backoff;
use common::clock::Boot;
use common::engine::owner::OwnerApi;
use common::engine::report::{Progress, Report};
use common::engine::{Engine, Settings, Timing};
use common::identity::{Mark, Slot};
use common::ledger::Id;
use common::names;
use common::operator::Found;
use common::peer::Guard;
use common::runtime::gate::{Gate, GatedApi};
use common::runtime::next::Next;
use common::runtime::object::{Arrived, Version};
use common::runtime::runner::DEAF;
use common::runtime::trigger::Trigger;
use common::testing::{
    Chance, Controller, Edit, Lags, Millis, Object, SimCloud, Subject, Surroundings, Twin, Variety, Visit,
};
use sample_controller::api::SampleOwnerSpec;
use sample_controller::client::{Client, Limits};
use sample_controller::cloud::Cloud;
use sample_controller::credentials::{Credentials, Token};
use sample_controller::names::{CONTROLLER, KIND, readable};
use sample_controller::plan::Plan;
use sample_controller::reconcile::{Reconciler, Subject as Owned};
use sample_controller::session::Account;
use serde_json::{Map, Value, json};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const RESYNC: Duration = Duration::from_mins(10);
const STALE: Duration = Duration::from_secs(1);

/// The sample controller.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    timing: Timing,
}
impl Default for Sample {
    /// With the defaults of the controller's flags.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Sample { timing: Timing { window: seconds(10), call: seconds(10), lag: seconds(30), poll: seconds(10) } }
    }
}

struct SampleProcess {
    reconciler: Reconciler,
    gate: Arc<Gate>,
    api: GatedApi,
    surroundings: Surroundings,
    failures: Mutex<BTreeMap<String, u32>>,
    /// Since when the cache is behind our own writes, by uid.
    since: Mutex<BTreeMap<String, Boot>>,
}

fn read(spec: &Value) -> SampleOwnerSpec {
    serde_json::from_value(spec.clone()).unwrap_or_default()
}
fn emulated(cloud: &dyn SimCloud) -> Option<&EmulatedSample> {
    let any: &dyn Any = cloud;
    any.downcast_ref()
}

impl Subject for Sample {
    fn name(&self) -> &'static str {
        "sample"
    }
    fn controller(&self) -> &'static str {
        CONTROLLER
    }
    fn kind(&self) -> &'static str {
        KIND
    }
    fn timing(&self) -> Timing {
        self.timing
    }
    fn told(&self, lag: Duration) -> Arc<dyn Subject> {
        Arc::new(Sample { timing: Timing { lag, ..self.timing } })
    }
    fn waves(&self) -> u64 {
        2
    }
    fn cloud(&self, seed: u64, lags: Lags) -> Box<dyn SimCloud> {
        Box::new(EmulatedSample::new(seed, lags))
    }
    fn spec(&self, _name: &str, variety: Variety, chance: &mut Chance) -> Value {
        serde_json::to_value(spec::draw(variety, chance)).unwrap_or_default()
    }
    fn edit(&self, value: &mut Value, edit: Edit, chance: &mut Chance) -> bool {
        let mut spec = read(value);
        let edited = spec::edit(&mut spec, edit, chance);
        *value = serde_json::to_value(spec).unwrap_or_default();
        edited
    }
    fn refer(&self, value: &mut Value, kind: &str, id: &str) -> bool {
        let mut spec = read(value);
        let referred = spec::refer(&mut spec, kind, id);
        *value = serde_json::to_value(spec).unwrap_or_default();
        referred
    }
    fn twins(&self, name: &str, value: &Value, cloud: &dyn SimCloud) -> Vec<Twin> {
        let ids = emulated(cloud).map(|c| c.slots(&readable("ns", name))).unwrap_or_default();
        let pieces = Plan::of("ns", name, &read(value)).pieces(&ids);
        let draft = |want| match want {
            common::engine::estate::Want::Make { draft, .. } => draft,
            common::engine::estate::Want::Use { .. } => None,
        };
        let twin = |p: common::engine::estate::Piece| {
            Some(Twin { kind: p.slot.kind().to_owned(), params: draft(p.want)?.params })
        };
        pieces.into_iter().filter_map(twin).collect()
    }
    fn permissions(&self) -> Vec<String> {
        let kinds = [
            ("networks", &["create", "tag", "delete"][..]),
            ("disks", &["create", "tag", "delete"]),
            ("addresses", &["create", "tag", "delete"]),
            ("routes", &["create", "delete"]),
            ("machines", &["create", "tag", "update", "delete"]),
        ];
        kinds.iter().flat_map(|(kind, verbs)| verbs.iter().map(move |verb| format!("{kind}.{verb}"))).collect()
    }
    fn start(&self, surroundings: Surroundings) -> Arc<dyn Controller> {
        let settings = Settings {
            controller: CONTROLLER,
            kind: KIND.into(),
            installation: surroundings.installation.clone(),
            timing: self.timing(),
            peers: Guard::NONE,
        };
        let (clock, random) = (Arc::clone(&surroundings.clock), Arc::clone(&surroundings.random));
        let engine =
            Engine::new(settings, clock.clone(), random, surroundings.fence.clone(), surroundings.rules.clone());
        let account = surroundings.sim.with(|s| s.cloud.current_account());
        let token = ACCOUNTS.iter().find(|(name, _)| *name == account).map_or("none", |(_, token)| token);
        let (transport, time) = (Arc::new(surroundings.transport.clone()), clock.clone());
        let connect = Box::new(move |token| -> Arc<dyn Cloud> {
            let limits = Limits { page: 3, ..Limits::default() };
            Arc::new(Client::new(transport.clone(), time.clone(), "http://cloud.test", token, limits))
        });
        let credentials = Credentials::Fixed(Token::new(token));
        let account = Account::new(credentials, connect, clock.clone(), self.timing().poll);
        let gate = Arc::new(Gate::new(names::ledger(CONTROLLER)));
        Arc::new(SampleProcess {
            reconciler: Reconciler::new(Arc::new(engine), Arc::new(account), clock),
            api: gate.watching(Arc::clone(&surroundings.api)),
            gate,
            surroundings,
            failures: Mutex::default(),
            since: Mutex::default(),
        })
    }
    fn wanted(&self, value: &Value) -> Vec<String> {
        Plan::of("ns", "x", &read(value)).pieces(&BTreeMap::new()).iter().map(|p| p.slot.to_string()).collect()
    }
    fn marked_later(&self, value: &Value) -> usize {
        let spec = read(value);
        spec.addresses.len() + spec.routes.len()
    }
    fn found(&self, cloud: &dyn SimCloud) -> Vec<Found> {
        emulated(cloud).map(EmulatedSample::found).unwrap_or_default()
    }
    fn plant_orphans(&self, cloud: &mut dyn SimCloud, now: Millis, mark: &Mark, count: u64) -> Vec<Id> {
        let mut ids = Vec::new();
        for n in 0..count {
            let mut plant = |kind: &str, params: Value| {
                let slot = Slot::new(kind, Some(&n.to_string())).unwrap_or_else(|_| mark.slot.clone());
                let mark = Mark { slot, ..mark.clone() };
                let id = cloud.plant(now, &Twin { kind: kind.into(), params }, Some(&mark));
                ids.extend(id.clone());
                id
            };
            let network = plant("network", json!({"name": format!("dead.{n}"), "cidr": "10.9.0.0/16"}));
            let disk = plant("disk", json!({"name": format!("dead.{n}"), "size_gb": 1}));
            plant("address", json!({"network_id": network, "label": "dead"}));
            plant("route", json!({"network_id": network, "destination": "172.30.0.0/16", "next_hop": "10.9.0.1"}));
            let machine =
                json!({"name": format!("dead.{n}"), "network_id": network, "disk_id": disk, "flavor": "small"});
            plant("machine", machine);
        }
        ids
    }
    fn is_shared_list(&self, label: &str) -> bool {
        label.starts_with("GET ") && (label.contains("?limit=") || label.ends_with("/whoami"))
    }
}

impl SampleProcess {
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
                let streak = failures.entry(uid.to_owned()).or_default();
                *streak += 1;
                Some(backoff::delay(*streak, self.surroundings.random.bits64()))
            }
        }
    }
}

#[async_trait]
impl Controller for SampleProcess {
    async fn reconcile(&self, object: &Object) -> Visit {
        if !self.heeds(object) {
            self.behind(&object.view.uid);
            let progress = Progress::Stale("the cache is behind".into());
            let report = Report {
                progress,
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
        let spec = read(&object.spec);
        let status = Value::Object(object.fields.clone());
        let subject = Owned { view: &object.view, spec: &spec, status: Some(&status) };
        let paused = object.view.annotations.contains_key(names::PAUSED).then(|| "paused by its annotation".to_owned());
        let api: &dyn OwnerApi = &self.api;
        let report = self.reconciler.visit(subject, paused, api).await.report;
        Visit { again: self.again(&object.view.uid, &report), report }
    }
    fn forget(&self, uid: &str) {
        self.reconciler.engine().forget(uid);
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
