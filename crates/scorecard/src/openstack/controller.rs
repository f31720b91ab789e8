//! The OpenStack controller as a subject: its own visit, its own client, the runtime's gate and trigger.
use super::cloud::{ACCOUNTS, EmulatedOpenStack};
use super::spec::{self, read, resolved};
use async_trait::async_trait;
use common::backoff;
use common::clock::Boot;
use common::engine::estate::{Piece, Want};
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
use openstack_server_controller::client::{Client, Connection, Limits};
use openstack_server_controller::cloud::Cloud;
use openstack_server_controller::clouds::{CloudConfig, Credential, Method};
use openstack_server_controller::inputs::Given;
use openstack_server_controller::names::{CONTROLLER, KIND};
use openstack_server_controller::plan::{Facts, Plan};
use openstack_server_controller::reconcile::{Policy, Reconciler, Subject as Owned};
use openstack_server_controller::session::Sessions;
use serde_json::{Map, Value, json};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const RESYNC: Duration = Duration::from_mins(10);
const STALE: Duration = Duration::from_secs(1);
/// As the controller's flag has it.
const INTERVAL: Duration = Duration::from_mins(5);

/// The OpenStack controller's servers.
#[derive(Clone, Copy, Debug)]
pub struct OpenStack {
    timing: Timing,
}
impl Default for OpenStack {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        OpenStack { timing: Timing { window: seconds(10), call: seconds(10), lag: seconds(30), poll: seconds(10) } }
    }
}

struct Process {
    reconciler: Reconciler,
    gate: Arc<Gate>,
    api: GatedApi,
    surroundings: Surroundings,
    failures: Mutex<BTreeMap<String, u32>>,
    /// Since when the cache is behind our own writes, by uid.
    since: Mutex<BTreeMap<String, Boot>>,
}

fn emulated(cloud: &dyn SimCloud) -> Option<&EmulatedOpenStack> {
    let any: &dyn Any = cloud;
    any.downcast_ref()
}
fn config(account: &str) -> CloudConfig {
    let secret = ACCOUNTS.iter().find(|(name, _)| *name == account).map_or("none", |(_, secret)| secret);
    CloudConfig {
        auth_url: "http://cloud.test/identity/v3".into(),
        method: Method::ApplicationCredential { credential: Credential::Id(account.into()), secret: secret.into() },
        region: None,
        interface: "public".into(),
        verify: true,
        ca: None,
        overrides: BTreeMap::new(),
    }
}

impl Subject for OpenStack {
    fn name(&self) -> &'static str {
        "openstack"
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
        Arc::new(OpenStack { timing: Timing { lag, ..self.timing } })
    }
    fn waves(&self) -> u64 {
        3
    }
    fn cloud(&self, seed: u64, lags: Lags) -> Box<dyn SimCloud> {
        Box::new(EmulatedOpenStack::new(seed, lags))
    }
    fn spec(&self, _name: &str, variety: Variety, chance: &mut Chance) -> Value {
        spec::draw(variety, chance)
    }
    fn edit(&self, _value: &mut Value, _edit: Edit, _chance: &mut Chance) -> bool {
        false
    }
    fn refer(&self, _value: &mut Value, _kind: &str, _id: &str) -> bool {
        false
    }
    fn twins(&self, name: &str, value: &Value, cloud: &dyn SimCloud) -> Vec<Twin> {
        let ids = emulated(cloud).map(|c| c.slots(name)).unwrap_or_default();
        let spec = read(value);
        let resolved = resolved(name, &spec);
        let plan = Plan::of(name, &spec, &Facts { resolved: Some(&resolved), ..Facts::default() });
        let twin = |piece: Piece| match piece.want {
            Want::Make { draft: Some(draft), .. } => {
                Some(Twin { kind: piece.slot.kind().to_owned(), params: draft.params })
            }
            Want::Make { .. } | Want::Use { .. } => None,
        };
        plan.pieces(&ids).into_iter().filter_map(twin).collect()
    }
    fn permissions(&self) -> Vec<String> {
        let kinds = [
            ("ports", &["create", "tag", "delete"][..]),
            ("trunks", &["create", "tag", "update", "delete"]),
            ("volumes", &["create", "mark", "delete"]),
            ("servers", &["create", "mark", "delete"]),
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
        let fence = surroundings.fence.clone();
        let engine = Engine::new(settings, clock.clone(), random, fence.clone(), surroundings.rules.clone());
        let inputs = Arc::new(Given::default());
        inputs.held().cloud = Some(config(&surroundings.sim.with(|s| s.cloud.current_account())));
        let (transport, time) = (Arc::new(surroundings.transport.clone()), clock.clone());
        let connect = Box::new(move |config: &CloudConfig| {
            let limits = Limits { page: 3, ..Limits::default() };
            let connection = Connection::new(transport.clone(), time.clone(), config.clone(), limits);
            Ok(Arc::new(Client::new(connection)) as Arc<dyn Cloud>)
        });
        let sessions = Arc::new(Sessions::new(connect, clock.clone(), INTERVAL));
        let policy = Policy { adopt_all: false, call: self.timing().call };
        let gate = Arc::new(Gate::new(names::ledger(CONTROLLER)));
        Arc::new(Process {
            reconciler: Reconciler::new(Arc::new(engine), sessions, inputs, fence, clock, policy),
            api: gate.watching(Arc::clone(&surroundings.api)),
            gate,
            surroundings,
            failures: Mutex::default(),
            since: Mutex::default(),
        })
    }
    fn wanted(&self, value: &Value) -> Vec<String> {
        Plan::of("x", &read(value), &Facts::default()).slots().map(ToString::to_string).collect()
    }
    fn marked_later(&self, _value: &Value) -> usize {
        0
    }
    fn found(&self, cloud: &dyn SimCloud) -> Vec<Found> {
        emulated(cloud).map(EmulatedOpenStack::found).unwrap_or_default()
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
            let port = plant("port", json!({"name": format!("dead-{n}"), "network_id": "n"}));
            plant("volume", json!({"name": format!("dead-{n}"), "size": 1}));
            plant("trunk", json!({"name": format!("dead-{n}"), "port_id": port}));
            plant("server", json!({"name": format!("dead-{n}")}));
        }
        ids
    }
    fn is_shared_list(&self, label: &str) -> bool {
        let path = label.split('?').next().unwrap_or_default();
        let lists = ["/detail", "/ports", "/trunks", "/extensions", "/v2.1/"];
        label.starts_with("GET ") && lists.iter().any(|end| path.ends_with(end)) || path.ends_with("/auth/tokens")
    }
}

impl Process {
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
impl Controller for Process {
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
        self.reconciler.forget(uid);
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
