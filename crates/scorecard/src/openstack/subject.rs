//! What the parts of the OpenStack controller have in common as subjects.
use super::cloud::{ACCOUNTS, OpenStackWords};
use crate::emulated::{Emulated, emulated};
use common::engine::{Engine, Settings, Timing};
use common::identity::{Mark, Slot};
use common::ledger::{Id, Ledger};
use common::operator::Found;
use common::peer::Guard;
use common::testing::{Chance, Controller, Edit, Lags, Millis, Object, SimCloud, Subject, Surroundings, Twin, Variety};
use openstack_server_controller::args::{LIST_INTERVAL, TIMING};
use openstack_server_controller::client::{Client, Connection, Limits};
use openstack_server_controller::cloud::Cloud;
use openstack_server_controller::clouds::{CloudConfig, Credential, Method};
use openstack_server_controller::inputs::Given;
use openstack_server_controller::session::Sessions;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One part of the controller.
pub(super) trait Part: Sync {
    /// For the table.
    fn name(&self) -> &'static str;
    /// In annotations.
    fn controller(&self) -> &'static str;
    /// The owner's kind.
    fn kind(&self) -> &'static str;
    /// How many waves its pieces come in.
    fn waves(&self) -> u64;
    /// A spec.
    fn draw(&self, variety: Variety, chance: &mut Chance) -> Value;
    /// Changes a spec.
    fn edit(&self, spec: &mut Value, edit: Edit, chance: &mut Chance) -> bool;
    /// What a stranger would make.
    fn twins(&self, name: &str, spec: &Value, cloud: &Emulated) -> Vec<Twin>;
    /// Kinds and verbs that it needs.
    fn permissions(&self) -> &'static [(&'static str, &'static [&'static str])];
    /// The slots of a spec.
    fn wanted(&self, spec: &Value) -> Vec<String>;
    /// What is wrong with an owner that is done.
    fn flaw(&self, _object: &Object, _ledger: &Ledger, _cloud: &Emulated) -> Option<String> {
        None
    }
    /// What is wrong at any time.
    fn damage(&self, _cloud: &Emulated) -> Vec<String> {
        Vec::new()
    }
    /// Kinds and bodies of what a dead owner left; a body can name what was planted before it.
    fn orphans(&self, number: u64, planted: &BTreeMap<&'static str, Id>) -> Vec<(&'static str, Value)>;
    /// A process.
    fn start(&self, hands: Hands, surroundings: Surroundings) -> Arc<dyn Controller>;
}
/// What every part is given to work with.
pub(super) struct Hands {
    pub(super) engine: Arc<Engine>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) inputs: Arc<Given>,
}

/// A part of the controller as a subject.
#[derive(Clone, Copy)]
pub(super) struct OpenStack {
    part: &'static dyn Part,
    timing: Timing,
}
impl OpenStack {
    /// With the defaults of the controller's flags.
    pub(super) fn of(part: &'static dyn Part) -> Self {
        OpenStack { part, timing: TIMING }
    }
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
        self.part.name()
    }
    fn controller(&self) -> &'static str {
        self.part.controller()
    }
    fn kind(&self) -> &'static str {
        self.part.kind()
    }
    fn timing(&self) -> Timing {
        self.timing
    }
    fn told(&self, lag: Duration) -> Arc<dyn Subject> {
        Arc::new(OpenStack { timing: Timing { lag, ..self.timing }, ..*self })
    }
    fn waves(&self) -> u64 {
        self.part.waves()
    }
    fn cloud(&self, seed: u64, lags: Lags) -> Box<dyn SimCloud> {
        Box::new(Emulated::new(&OpenStackWords, seed, lags))
    }
    fn spec(&self, _name: &str, variety: Variety, chance: &mut Chance) -> Value {
        self.part.draw(variety, chance)
    }
    fn edit(&self, value: &mut Value, edit: Edit, chance: &mut Chance) -> bool {
        self.part.edit(value, edit, chance)
    }
    fn refer(&self, _value: &mut Value, _kind: &str, _id: &str) -> bool {
        false
    }
    fn twins(&self, name: &str, value: &Value, cloud: &dyn SimCloud) -> Vec<Twin> {
        emulated(cloud).map(|cloud| self.part.twins(name, value, cloud)).unwrap_or_default()
    }
    fn permissions(&self) -> Vec<String> {
        let all = self.part.permissions().iter();
        all.flat_map(|(kind, verbs)| verbs.iter().map(move |verb| format!("{kind}.{verb}"))).collect()
    }
    fn start(&self, surroundings: Surroundings) -> Arc<dyn Controller> {
        let settings = Settings {
            controller: self.part.controller(),
            kind: self.part.kind().into(),
            installation: surroundings.installation.clone(),
            timing: self.timing,
            peers: Guard::NONE,
        };
        let (clock, random) = (Arc::clone(&surroundings.clock), Arc::clone(&surroundings.random));
        let fence = surroundings.fence.clone();
        let engine = Engine::new(settings, clock.clone(), random, fence, surroundings.rules.clone());
        let inputs = Arc::new(Given::default());
        inputs.held().cloud = Some(config(&surroundings.sim.with(|s| s.cloud.current_account())));
        let (transport, time, call) = (Arc::new(surroundings.transport.clone()), clock.clone(), self.timing.call);
        let connect = Box::new(move |config: &CloudConfig| {
            let limits = Limits { page: 3, read: call, ..Limits::default() };
            let connection = Connection::new(transport.clone(), time.clone(), config.clone(), limits);
            Ok(Arc::new(Client::new(connection)) as Arc<dyn Cloud>)
        });
        let sessions = Arc::new(Sessions::new(connect, clock, LIST_INTERVAL));
        let hands = Hands { engine: Arc::new(engine), sessions, inputs };
        self.part.start(hands, surroundings)
    }
    fn wanted(&self, value: &Value) -> Vec<String> {
        self.part.wanted(value)
    }
    fn flaw(&self, object: &Object, ledger: &Ledger, cloud: &dyn SimCloud) -> Option<String> {
        emulated(cloud).and_then(|cloud| self.part.flaw(object, ledger, cloud))
    }
    fn damage(&self, cloud: &dyn SimCloud) -> Vec<String> {
        emulated(cloud).map(|cloud| self.part.damage(cloud)).unwrap_or_default()
    }
    fn marked_later(&self, _value: &Value) -> usize {
        0
    }
    fn found(&self, cloud: &dyn SimCloud) -> Vec<Found> {
        emulated(cloud).map(Emulated::found).unwrap_or_default()
    }
    fn plant_orphans(&self, cloud: &mut dyn SimCloud, now: Millis, mark: &Mark, count: u64) -> Vec<Id> {
        let mut ids = Vec::new();
        for number in 0..count {
            let mut planted = BTreeMap::new();
            while let Some((kind, params)) =
                self.part.orphans(number, &planted).into_iter().find(|(kind, _)| !planted.contains_key(kind))
            {
                let slot = Slot::new(kind, Some(&number.to_string())).unwrap_or_else(|_| mark.slot.clone());
                let mark = Mark { slot, ..mark.clone() };
                let id = cloud.plant(now, &Twin { kind: kind.into(), params }, Some(&mark));
                ids.extend(id.clone());
                planted.insert(kind, id.unwrap_or_default());
            }
        }
        ids
    }
    fn is_shared_list(&self, label: &str) -> bool {
        let path = label.split('?').next().unwrap_or_default();
        let lists = [
            "/detail",
            "/ports",
            "/trunks",
            "/extensions",
            "/v2.1/",
            "/floatingips",
            "/members",
            "/pools",
            "/listeners",
        ];
        label.starts_with("GET ") && lists.iter().any(|end| path.ends_with(end))
            || path.ends_with("/auth/tokens")
            // What is read from the API server is no call of the cloud, and writes are counted there.
            || ["server", "claim", "address"].iter().any(|it| label.starts_with(&format!("api get {it} ")))
    }
}
