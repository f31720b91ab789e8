//! An API server with one owner in it, the emulator behind a wire without a socket, and time that passes when told to.
use async_trait::async_trait;
use cloud_emulator::kit::calls::CallFilter;
use cloud_emulator::kit::{Delivery, EmulatedCloud, Plant, Settings, Truth};
use cloud_emulator::sample::SampleCloud;
use common::clock::{Clock, SharedClock};
use common::engine::fence::Open;
use common::engine::report::{Note, Progress, Report};
use common::engine::rules::Rulebook;
use common::engine::{Engine, Timing};
use common::names;
use common::peer::Guard;
use common::random::Random;
use common::testing::one_owner::{OneOwner, Stored, ToldClock};
use common::transport::{Request, Response, Transport, TransportError};
use jiff::Timestamp;
use sample_controller::api::SampleOwnerSpec;
use sample_controller::client::{Client, Limits};
use sample_controller::cloud::Cloud;
use sample_controller::credentials::Credentials;
use sample_controller::names::{CONTROLLER, KIND};
use sample_controller::reconcile::{Reconciler, Subject};
use sample_controller::session::Account;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(10);
const MOST_VISITS: u32 = 300;

struct Wire {
    cloud: Mutex<SampleCloud>,
    time: Arc<ToldClock>,
}
#[async_trait]
impl Transport for Wire {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let handled = self.cloud.lock().unwrap().handle(self.time.wall(), request);
        match handled.delivery {
            Delivery::Deliver => Ok(handled.response),
            other => Err(TransportError::NoReply(format!("{other:?}"))),
        }
    }
}

/// A process that has seen nothing yet.
fn start(time: &Arc<ToldClock>, wire: &Arc<Wire>, token: &Path, peers: Guard, interval: Duration) -> Reconciler {
    let clock: SharedClock = time.clone();
    let settings = common::engine::Settings {
        controller: CONTROLLER,
        kind: KIND.into(),
        installation: "here".into(),
        timing: Timing { call: Duration::from_secs(10), ..Timing::DEFAULT },
        peers,
    };
    let random = Arc::new(Random::from_system().unwrap());
    let (transport, ticks) = (wire.clone(), clock.clone());
    let connect = Box::new(move |token| -> Arc<dyn Cloud> {
        Arc::new(Client::new(transport.clone(), ticks.clone(), "http://cloud.test", token, Limits::default()))
    });
    let account = Arc::new(Account::new(Credentials::File(token.to_owned()), connect, clock.clone(), interval));
    let engine = Arc::new(Engine::new(settings, clock.clone(), random, Arc::new(Open), Rulebook::production()));
    Reconciler::new(engine, account, clock)
}

pub(crate) struct World {
    time: Arc<ToldClock>,
    wire: Arc<Wire>,
    server: OneOwner,
    spec: SampleOwnerSpec,
    reconciler: Reconciler,
    token: PathBuf,
    peers: Guard,
    interval: Duration,
}
impl World {
    pub(crate) fn new(spec: SampleOwnerSpec) -> Self {
        World::with(spec, Guard::NONE, INTERVAL)
    }
    /// Beside these peers, with shared listings that last so long.
    pub(crate) fn with(spec: SampleOwnerSpec, peers: Guard, interval: Duration) -> Self {
        let time = Arc::new(ToldClock::default());
        let mut cloud = SampleCloud::new(Settings::default(), 1);
        cloud.kit_mut().admit("controller", "token-1");
        cloud.kit_mut().principals.admit("other", "token-2", "acct-2");
        let wire = Arc::new(Wire { cloud: Mutex::new(cloud), time: time.clone() });
        let token = std::env::temp_dir().join(format!("custody-{:016x}", Random::from_system().unwrap().bits64()));
        std::fs::write(&token, "token-1\n").unwrap();
        let reconciler = start(&time, &wire, &token, peers, interval);
        World { time, wire, server: OneOwner::new("o"), spec, reconciler, token, peers, interval }
    }
    /// Another process takes the place of this one.
    pub(crate) fn restart(&mut self) {
        self.reconciler = start(&self.time, &self.wire, &self.token, self.peers, self.interval);
    }
    /// Somebody writes on the owner.
    pub(crate) fn touch(&self, change: impl FnOnce(&mut Stored)) {
        self.server.touch(change);
    }
    fn stored(&self) -> Stored {
        self.server.stored()
    }
    fn cloud<T>(&self, look: impl FnOnce(&mut SampleCloud, Timestamp) -> T) -> T {
        look(&mut self.wire.cloud.lock().unwrap(), self.time.wall())
    }
    pub(crate) fn pass(&self, by: Duration) {
        self.time.pass(by);
    }
    /// Longer than anything takes to come to light.
    pub(crate) fn settle(&self) {
        self.pass(Duration::from_mins(2));
    }
    /// One visit on the newest version.
    pub(crate) async fn visit(&mut self) -> Progress {
        self.report().await.progress
    }
    /// What one visit has to tell.
    pub(crate) async fn notes(&mut self) -> Vec<Note> {
        self.report().await.notes
    }
    async fn report(&mut self) -> Report {
        let Stored { view, status, .. } = self.stored();
        let paused = view.annotations.contains_key(names::PAUSED).then(|| "paused".to_owned());
        let subject = Subject { view: &view, spec: &self.spec, status: Some(&status) };
        self.reconciler.visit(subject, paused, &self.server).await.report
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
                Progress::Waiting { again, .. } => self.pass((*again).max(Duration::from_secs(1))),
                Progress::Failed(_) | Progress::Stale(_) => self.pass(Duration::from_secs(10)),
                Progress::Done | Progress::Blocked { .. } | Progress::Gone => return last,
            }
        }
        last
    }
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut SampleOwnerSpec)) {
        change(&mut self.spec);
        self.server.edited();
    }
    pub(crate) fn annotate(&mut self, key: &str, value: &str) {
        self.server.annotate(key, value);
    }
    pub(crate) fn delete(&mut self) {
        self.server.delete();
    }
    pub(crate) fn use_account(&self, account: &str) {
        assert_eq!(account, "acct-2");
        std::fs::write(&self.token, "token-2").unwrap();
    }
    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        self.stored().view.annotations.remove(key)
    }
    pub(crate) fn is_deleting(&self) -> bool {
        self.stored().view.deleting
    }
    pub(crate) fn is_gone(&self) -> bool {
        self.stored().gone
    }
    pub(crate) fn status(&self) -> Value {
        self.stored().status
    }
    pub(crate) fn condition(&self, type_: &str) -> Option<String> {
        self.stored().view.conditions.into_iter().find(|it| it.type_ == type_).map(|it| it.status)
    }
    /// Ids of everything that exists, in the order of creation.
    pub(crate) fn living(&self) -> Vec<String> {
        self.cloud(|cloud, now| cloud.truth(now).into_iter().filter(Truth::exists).map(|it| it.id).collect())
    }
    pub(crate) fn count_made(&self, kind: &str) -> usize {
        self.cloud(|cloud, now| cloud.truth(now).into_iter().filter(|it| it.kind == kind).count())
    }
    pub(crate) fn field(&self, kind: &str, field: &str) -> Value {
        self.cloud(|cloud, now| cloud.truth(now).into_iter().find(|it| it.kind == kind).unwrap().fields[field].clone())
    }
    pub(crate) fn tag(&self, id: &str, key: &str) -> Option<String> {
        self.cloud(|cloud, now| cloud.truth(now).into_iter().find(|it| it.id == id)?.tags?.remove(key))
    }
    pub(crate) fn calls(&self, filter: &CallFilter) -> usize {
        self.cloud(|cloud, _| cloud.kit().calls.count(filter))
    }
    pub(crate) fn plant(&self, plant: Plant) -> String {
        self.cloud(|cloud, now| cloud.plant(now, plant).unwrap())
    }
    pub(crate) fn fail_next_build(&self, kind: &str) {
        self.cloud(|cloud, _| cloud.fail_next_build(kind, "no room", 1).unwrap());
    }
}
impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.token);
    }
}
