//! One server object, one emulated OpenStack, and time that only passes when told to: the production visit over a wire in memory.
#![allow(dead_code)] // every suite uses its own part
#![allow(clippy::needless_pass_by_value)] // json!s are written in place

use async_trait::async_trait;
use cloud_emulator::kit::{CallFilter, Delivery, EmulatedCloud, Fault as Struck, Plant, Settings, Truth};
use cloud_emulator::openstack::OpenStackCloud;
use common::clock::{Clock, SharedClock};
use common::engine::Engine;
use common::engine::fence::Open;
use common::engine::report::{Progress, Report};
use common::engine::rules::Rulebook;
use common::names;
use common::random::Random;
use common::testing::one_owner::{OneOwner, Stored, ToldClock};
use common::transport::{Request, Response, Transport, TransportError};
use jiff::Timestamp;
use openstack_server_controller::api::OpenStackServerSpec;
use openstack_server_controller::args::{LIST_INTERVAL, TIMING};
use openstack_server_controller::client::{Client, Connection, Limits};
use openstack_server_controller::cloud::Cloud;
use openstack_server_controller::clouds;
use openstack_server_controller::inputs::Given;
use openstack_server_controller::names::{CONTROLLER, KIND, PEERS};
use openstack_server_controller::reconcile::{Reconciler, Subject};
use openstack_server_controller::session::Sessions;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MOST_VISITS: usize = 200;

/// A wire that does what the emulator says of each reply.
pub(crate) struct Wire {
    cloud: Mutex<OpenStackCloud>,
    time: Arc<ToldClock>,
}
impl Wire {
    /// To a new cloud that knows our credentials.
    pub(crate) fn of(settings: Settings, time: &Arc<ToldClock>) -> Arc<Self> {
        let mut cloud = OpenStackCloud::new(settings, 1);
        cloud.kit_mut().admit("controller", "secret-1");
        cloud.kit_mut().principals.admit("other", "secret-2", "acct-2");
        Arc::new(Wire { cloud: Mutex::new(cloud), time: time.clone() })
    }
    pub(crate) fn cloud<T>(&self, look: impl FnOnce(&mut OpenStackCloud, Timestamp) -> T) -> T {
        look(&mut self.cloud.lock().unwrap(), self.time.wall())
    }
    pub(crate) fn plant(&self, kind: &str, fields: Value) -> String {
        let fields: Map<String, Value> = fields.as_object().unwrap().clone();
        self.cloud(|cloud, now| cloud.plant(now, Plant::new(kind, fields)).unwrap())
    }
    /// What exists of a kind.
    pub(crate) fn living(&self, kind: &str) -> Vec<Truth> {
        let all = self.cloud(|cloud, now| cloud.truth(now));
        all.into_iter().filter(|it| it.exists() && it.kind == kind).collect()
    }
}
/// Kubernetes, with credentials.
pub(crate) fn inputs() -> Arc<Given> {
    let inputs = Arc::new(Given::default());
    inputs.held().cloud = Some(clouds::read(CLOUDS, "c", None, None).unwrap());
    inputs
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

pub(crate) struct World {
    pub(crate) time: Arc<ToldClock>,
    wire: Arc<Wire>,
    server: OneOwner,
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
        let time = Arc::new(ToldClock::default());
        let wire = Wire::of(settings, &time);
        let inputs = inputs();
        let server = OneOwner::new("srv");
        let reconciler = reconciler(&wire, &time, &inputs, 7, false);
        World { time, wire, server, spec: spec(fields), reconciler, inputs, notes: Vec::new() }
    }
    /// A new process: nothing is remembered.
    pub(crate) fn restart(&mut self, seed: u64) {
        self.reconciler = reconciler(&self.wire, &self.time, &self.inputs, seed, false);
    }
    /// A new process that ends soft-deleted servers for good.
    pub(crate) fn force(&mut self) {
        self.reconciler = reconciler(&self.wire, &self.time, &self.inputs, 8, true);
    }
    pub(crate) fn stored(&self) -> Stored {
        self.server.stored()
    }
    pub(crate) fn cloud<T>(&self, look: impl FnOnce(&mut OpenStackCloud, Timestamp) -> T) -> T {
        self.wire.cloud(look)
    }
    pub(crate) fn pass(&self, by: Duration) {
        self.time.pass(by);
    }
    /// Longer than anything takes to come to light.
    pub(crate) fn settle(&self) {
        self.pass(Duration::from_mins(6));
    }
    /// One visit on the newest version.
    pub(crate) async fn visit(&mut self) -> Progress {
        self.report().await.progress
    }
    /// One visit of another owner of the same spec.
    pub(crate) async fn visit_of(&self, owner: &OneOwner) -> Progress {
        let Stored { view, status, .. } = owner.stored();
        let subject = Subject { view: &view, spec: &self.spec, status: Some(&status) };
        self.reconciler.visit(subject, None, owner).await.report.progress
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
    pub(crate) fn annotate(&mut self, key: &str, value: &str) {
        self.server.annotate(key, value);
    }
    pub(crate) fn finalize(&mut self, finalizer: &str) {
        self.server.touch(|stored| stored.view.finalizers.push(finalizer.into()));
    }
    pub(crate) fn delete(&mut self) {
        self.server.delete();
    }
    pub(crate) fn use_other_project(&self) {
        self.inputs.held().cloud = Some(clouds::read(CLOUDS, "other", None, None).unwrap());
    }
    pub(crate) fn lose_status(&mut self) {
        self.server.touch(|stored| {
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
        self.wire.living(kind)
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
        self.wire.plant(kind, fields)
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

fn reconciler(wire: &Arc<Wire>, time: &Arc<ToldClock>, inputs: &Arc<Given>, seed: u64, forces: bool) -> Reconciler {
    let engine = engine(CONTROLLER, KIND, time, seed);
    let sessions = Arc::new(connected(wire, time).forcing(forces));
    Reconciler::new(engine, sessions, inputs.clone(), time.clone())
}
/// What decides for the objects of one kind.
pub(crate) fn engine(controller: &'static str, kind: &str, time: &Arc<ToldClock>, seed: u64) -> Arc<Engine> {
    let peers = common::peer::Guard { peers: PEERS, ..common::peer::Guard::NONE };
    let settings =
        common::engine::Settings { controller, kind: kind.into(), installation: "here".into(), timing: TIMING, peers };
    let random = Arc::new(Random::seeded(seed));
    Arc::new(Engine::new(settings, time.clone(), random, Arc::new(Open), Rulebook::production()))
}
/// Clients over the wire.
pub(crate) fn sessions(wire: &Arc<Wire>, time: &Arc<ToldClock>) -> Arc<Sessions> {
    Arc::new(connected(wire, time))
}
fn connected(wire: &Arc<Wire>, time: &Arc<ToldClock>) -> Sessions {
    let clock: SharedClock = time.clone();
    let (transport, ticks) = (wire.clone(), clock.clone());
    let connect = Box::new(move |config: &clouds::CloudConfig| {
        let connection = Connection::new(transport.clone(), ticks.clone(), config.clone(), Limits::default());
        Ok(Arc::new(Client::new(connection)) as Arc<dyn Cloud>)
    });
    Sessions::new(connect, clock, LIST_INTERVAL)
}
