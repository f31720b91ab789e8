//! One server object, one emulated OpenStack, and time that only passes when told to: the production visit over a wire in memory.
#![allow(dead_code)] // every suite uses its own part
#![allow(clippy::needless_pass_by_value)] // json!s are written in place

use async_trait::async_trait;
use cloud_emulator::kit::{CallFilter, Delivery, EmulatedCloud, Fault as Struck, Plant, Settings, Truth};
use cloud_emulator::openstack::OpenStackCloud;
use common::clock::{Boot, Clock, SharedClock};
use common::engine::fence::Open;
use common::engine::owner::{ApiUnavailable, OwnerApi, OwnerPatch, OwnerView, Patched};
use common::engine::report::{Progress, Report};
use common::engine::rules::Rulebook;
use common::engine::{Engine, Timing};
use common::names;
use common::random::Random;
use common::transport::{Request, Response, Transport, TransportError};
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use openstack_server_controller::api::OpenStackServerSpec;
use openstack_server_controller::client::{Client, Connection, Limits};
use openstack_server_controller::cloud::Cloud;
use openstack_server_controller::clouds;
use openstack_server_controller::inputs::Given;
use openstack_server_controller::names::{CONTROLLER, KIND, PEERS};
use openstack_server_controller::reconcile::{Policy, Reconciler, Subject};
use openstack_server_controller::session::Sessions;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_mins(5);
const MOST_VISITS: usize = 200;

pub(crate) struct Time(Mutex<Duration>);
impl Clock for Time {
    fn boot(&self) -> Boot {
        Boot(*self.0.lock().unwrap())
    }
    fn wall(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap() + *self.0.lock().unwrap()
    }
    fn sleep_until(&self, moment: Boot) -> BoxFuture<'static, ()> {
        let mut now = self.0.lock().unwrap();
        *now = (*now).max(moment.0);
        Box::pin(std::future::ready(()))
    }
}

/// A wire that does what the emulator says of each reply.
pub(crate) struct Wire {
    cloud: Mutex<OpenStackCloud>,
    time: Arc<Time>,
}
#[async_trait]
impl Transport for Wire {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let handled = self.cloud.lock().unwrap().handle(self.time.wall(), request);
        match handled.delivery {
            Delivery::Deliver | Delivery::Delay(_) | Delivery::Slow(_) => Ok(handled.response),
            _ => Err(TransportError::NoReply("cut".into())),
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Stored {
    pub(crate) view: OwnerView,
    pub(crate) status: Value,
    version: u64,
    pub(crate) gone: bool,
}
pub(crate) struct Server(Mutex<Stored>);
impl Server {
    fn change(&self, view: &OwnerView, change: impl FnOnce(&mut Stored)) -> Patched {
        let mut stored = self.0.lock().unwrap();
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
impl OwnerApi for Server {
    async fn get(&self, _: &str, _: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
        let stored = self.0.lock().unwrap();
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
            for (key, value) in fields.as_object().unwrap() {
                stored.status[key] = value.clone();
            }
        })
    }
}

pub(crate) struct World {
    pub(crate) time: Arc<Time>,
    wire: Arc<Wire>,
    server: Server,
    pub(crate) spec: OpenStackServerSpec,
    reconciler: Reconciler,
    pub(crate) inputs: Arc<Given>,
    pub(crate) notes: Vec<String>,
}
/// A spec with these fields beside the least that is needed.
pub(crate) fn spec(fields: &Value) -> OpenStackServerSpec {
    let mut whole = json!({
        "identityRef": {"name": "creds", "cloudName": "c"}, "sshKeyName": "", "flavor": "m1.small",
        "image": {"filter": {"name": "cirros"}}, "ports": [{"network": {"filter": {"name": "private"}}}],
    });
    for (key, value) in fields.as_object().unwrap() {
        whole[key] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}
const CLOUDS: &str = "
clouds:
  c: {auth_type: v3applicationcredential, auth: {auth_url: 'http://cloud.test/identity/v3', application_credential_id: controller, application_credential_secret: secret-1}}
  other: {auth_type: v3applicationcredential, auth: {auth_url: 'http://cloud.test/identity/v3', application_credential_id: other, application_credential_secret: secret-2}}
";
impl World {
    pub(crate) fn new(fields: &Value) -> Self {
        Self::with(fields, Settings::default())
    }
    pub(crate) fn with(fields: &Value, settings: Settings) -> Self {
        let time = Arc::new(Time(Mutex::new(Duration::from_hours(1))));
        let mut cloud = OpenStackCloud::new(settings, 1);
        cloud.kit_mut().admit("controller", "secret-1");
        cloud.kit_mut().principals.admit("other", "secret-2", "acct-2");
        let wire = Arc::new(Wire { cloud: Mutex::new(cloud), time: time.clone() });
        let inputs = Arc::new(Given::default());
        inputs.held().cloud = Some(clouds::read(CLOUDS, "c", None, None).unwrap());
        let view = OwnerView {
            namespace: "ns".into(),
            name: "srv".into(),
            uid: "uid-1".into(),
            resource_version: "0".into(),
            generation: 1,
            ..OwnerView::default()
        };
        let server = Server(Mutex::new(Stored { view, status: json!({}), ..Stored::default() }));
        let reconciler = reconciler(&wire, &time, &inputs, 7);
        World { time, wire, server, spec: spec(fields), reconciler, inputs, notes: Vec::new() }
    }
    /// A new process: nothing is remembered.
    pub(crate) fn restart(&mut self, seed: u64) {
        self.reconciler = reconciler(&self.wire, &self.time, &self.inputs, seed);
    }
    pub(crate) fn stored(&self) -> Stored {
        self.server.0.lock().unwrap().clone()
    }
    pub(crate) fn cloud<T>(&self, look: impl FnOnce(&mut OpenStackCloud, Timestamp) -> T) -> T {
        look(&mut self.wire.cloud.lock().unwrap(), self.time.wall())
    }
    pub(crate) fn pass(&self, by: Duration) {
        *self.time.0.lock().unwrap() += by;
    }
    /// Longer than anything takes to come to light.
    pub(crate) fn settle(&self) {
        self.pass(Duration::from_mins(6));
    }
    /// One visit on the newest version.
    pub(crate) async fn visit(&mut self) -> Progress {
        self.report().await.progress
    }
    pub(crate) async fn report(&mut self) -> Report {
        let Stored { view, status, .. } = self.stored();
        let paused = view.annotations.contains_key(names::PAUSED).then(|| "paused".to_owned());
        let subject = Subject { view: &view, spec: &self.spec, status: Some(&status) };
        let report = self.reconciler.visit(subject, paused, &self.server).await.report;
        self.notes.extend(report.notes.iter().map(|note| note.message.clone()));
        report
    }
    /// Visits until nothing more is to be waited for.
    pub(crate) async fn serve(&mut self) -> Progress {
        let mut last = Progress::Gone;
        for _ in 0..MOST_VISITS {
            if self.is_gone() {
                break;
            }
            last = self.visit().await;
            match &last {
                Progress::Waiting { again, .. } if *again > Duration::from_secs(30) => return last,
                Progress::Waiting { again, .. } => self.pass((*again).max(Duration::from_secs(1))),
                Progress::Failed(common::engine::estate::Fault::Transient(_)) | Progress::Stale(_) => {
                    self.pass(Duration::from_secs(10));
                }
                Progress::Failed(_) | Progress::Done | Progress::Blocked { .. } | Progress::Gone => return last,
            }
        }
        last
    }
    fn touch(&mut self, change: impl FnOnce(&mut OwnerView)) {
        let view = self.stored().view;
        self.server.change(&view, |stored| change(&mut stored.view));
    }
    pub(crate) fn annotate(&mut self, key: &str, value: &str) {
        self.touch(|view| {
            view.annotations.insert(key.into(), value.into());
        });
    }
    pub(crate) fn finalize(&mut self, finalizer: &str) {
        self.touch(|view| view.finalizers.push(finalizer.into()));
    }
    pub(crate) fn delete(&mut self) {
        self.touch(|view| {
            view.deleting = true;
            view.generation += 1;
        });
    }
    pub(crate) fn use_other_project(&self) {
        self.inputs.held().cloud = Some(clouds::read(CLOUDS, "other", None, None).unwrap());
    }
    pub(crate) fn lose_status(&mut self) {
        let view = self.stored().view;
        self.server.change(&view, |stored| {
            stored.view.conditions.clear();
            stored.status = json!({});
        });
    }
    pub(crate) fn is_gone(&self) -> bool {
        self.stored().gone
    }
    pub(crate) fn status(&self) -> Value {
        self.stored().status
    }
    /// Status, reason and message of a condition.
    pub(crate) fn condition(&self, type_: &str) -> Option<(String, String, String)> {
        let found = self.stored().view.conditions.into_iter().find(|it| it.type_ == type_);
        found.map(|it| (it.status, it.reason, it.message))
    }
    pub(crate) fn said(&self, type_: &str) -> String {
        self.condition(type_)
            .map(|(status, reason, message)| format!("{status}/{reason}: {message}"))
            .unwrap_or_default()
    }
    pub(crate) fn truth(&self) -> Vec<Truth> {
        self.cloud(|cloud, now| cloud.truth(now))
    }
    /// What exists of a kind.
    pub(crate) fn living(&self, kind: &str) -> Vec<Truth> {
        self.truth().into_iter().filter(|it| it.exists() && it.kind == kind).collect()
    }
    pub(crate) fn all_living(&self) -> Vec<String> {
        self.truth().into_iter().filter(Truth::exists).map(|it| format!("{} {}", it.kind, it.id)).collect()
    }
    pub(crate) fn made(&self, kind: &str) -> usize {
        self.truth().into_iter().filter(|it| it.kind == kind && !it.planted).count()
    }
    pub(crate) fn calls(&self, filter: &CallFilter) -> usize {
        self.cloud(|cloud, _| cloud.kit().calls.count(filter))
    }
    /// `KIND verb` of every call so far, in order.
    pub(crate) fn log(&self) -> Vec<String> {
        self.cloud(|cloud, _| {
            cloud.kit().calls.matching(&CallFilter::default()).map(|it| format!("{} {}", it.kind, it.verb)).collect()
        })
    }
    pub(crate) fn writes(&self) -> Vec<String> {
        let filter = CallFilter { mutating: Some(true), ..CallFilter::default() };
        self.cloud(|cloud, _| {
            cloud.kit().calls.matching(&filter).map(|it| format!("{} {}", it.kind, it.verb)).collect()
        })
    }
    pub(crate) fn clear_log(&self) {
        self.cloud(|cloud, _| cloud.kit_mut().calls.clear());
    }
    pub(crate) fn plant(&self, kind: &str, fields: Value) -> String {
        let fields: Map<String, Value> = fields.as_object().unwrap().clone();
        self.cloud(|cloud, now| cloud.plant(now, Plant::new(kind, fields)).unwrap())
    }
    pub(crate) fn remove(&self, id: &str) {
        self.cloud(|cloud, now| cloud.delete_by_hand(now, id).unwrap());
    }
    /// Somebody changes the metadata of a server.
    pub(crate) fn drift(&self, id: &str, key: &str, value: &str) {
        let set = [(key.to_owned(), value.to_owned())].into_iter().collect();
        self.cloud(|cloud, now| cloud.retag_by_hand(now, id, set, &[]).unwrap());
    }
    pub(crate) fn set_status(&self, id: &str, status: &str) {
        let set = [("!status".to_owned(), status.to_owned())].into_iter().collect();
        self.cloud(|cloud, now| cloud.retag_by_hand(now, id, set, &[]).unwrap());
    }
    pub(crate) fn clear_status(&self, id: &str) {
        self.cloud(|cloud, now| {
            cloud.retag_by_hand(now, id, cloud_emulator::kit::Tags::default(), &["!status".to_owned()]).unwrap();
        });
    }
    pub(crate) fn strike(&self, fault: Value) {
        let fault: Struck = serde_json::from_value(fault).unwrap();
        self.cloud(|cloud, _| cloud.kit_mut().faults.add(fault));
    }
    pub(crate) fn clear_faults(&self) {
        self.cloud(|cloud, _| cloud.kit_mut().faults.clear());
    }
    pub(crate) fn configure(&self, change: impl FnOnce(&mut Settings)) {
        self.cloud(|cloud, _| {
            let mut settings = cloud.kit().settings().clone();
            change(&mut settings);
            cloud.kit_mut().configure(settings);
        });
    }
    pub(crate) fn fail_next(&self, kind: &str, why: &str) {
        self.cloud(|cloud, _| cloud.fail_next_build(kind, why, 1).unwrap());
    }
}

fn reconciler(wire: &Arc<Wire>, time: &Arc<Time>, inputs: &Arc<Given>, seed: u64) -> Reconciler {
    let clock: SharedClock = time.clone();
    let timing = Timing { call: Duration::from_secs(15), ..Timing::DEFAULT };
    let peers = common::peer::Guard { peers: PEERS, ..common::peer::Guard::NONE };
    let settings = common::engine::Settings {
        controller: CONTROLLER,
        kind: KIND.into(),
        installation: "here".into(),
        timing,
        peers,
    };
    let random = Arc::new(Random::seeded(seed));
    let (transport, ticks) = (wire.clone(), clock.clone());
    let connect = Box::new(move |config: &clouds::CloudConfig| {
        let connection = Connection::new(transport.clone(), ticks.clone(), config.clone(), Limits::default());
        Ok(Arc::new(Client::new(connection)) as Arc<dyn Cloud>)
    });
    let sessions = Arc::new(Sessions::new(connect, clock.clone(), INTERVAL));
    let engine = Arc::new(Engine::new(settings, clock.clone(), random, Arc::new(Open), Rulebook::production()));
    let policy = Policy { adopt_all: false, call: Duration::from_secs(15) };
    Reconciler::new(engine, sessions, inputs.clone(), Arc::new(Open), clock, policy)
}
