//! The sample controller as a subject: its own visit, its own client, the runtime's gate and trigger.
use super::cloud::{ACCOUNTS, SampleWords};
use super::spec;
use crate::emulated::{Emulated, emulated};
use crate::process::{Process, Visitor};
use async_trait::async_trait;
use common::engine::owner::OwnerApi;
use common::engine::report::Report;
use common::engine::{Engine, Settings, Timing};
use common::identity::{Mark, Slot};
use common::ledger::Id;
use common::operator::Found;
use common::peer::Guard;
use common::testing::{Chance, Controller, Edit, Lags, Millis, Object, SimCloud, Subject, Surroundings, Twin, Variety};
use sample_controller::api::SampleOwnerSpec;
use sample_controller::client::{Client, Limits};
use sample_controller::cloud::{Cloud, READABLE_TAG};
use sample_controller::credentials::{Credentials, Token};
use sample_controller::names::{CONTROLLER, KIND, readable};
use sample_controller::plan::Plan;
use sample_controller::reconcile::{Reconciler, Subject as Owned};
use sample_controller::session::Account;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

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

struct Visits(Reconciler);
#[async_trait]
impl Visitor for Visits {
    async fn visit(&self, object: &Object, paused: Option<String>, api: &dyn OwnerApi) -> Report {
        let spec = read(&object.spec);
        let status = Value::Object(object.fields.clone());
        let subject = Owned { view: &object.view, spec: &spec, status: Some(&status) };
        self.0.visit(subject, paused, api).await.report
    }
    fn forget(&self, uid: &str) {
        self.0.engine().forget(uid);
    }
}

fn read(spec: &Value) -> SampleOwnerSpec {
    serde_json::from_value(spec.clone()).unwrap_or_default()
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
        Box::new(Emulated::new(&SampleWords, seed, lags))
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
        let ids = emulated(cloud)
            .map(|c| {
                let known_as = readable("ns", name);
                c.slots(|t| t.tags.as_ref().is_some_and(|tags| tags.get(READABLE_TAG) == Some(&known_as)))
            })
            .unwrap_or_default();
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
        let visits = Visits(Reconciler::new(Arc::new(engine), Arc::new(account), clock));
        Process::start(CONTROLLER, visits, surroundings)
    }
    fn wanted(&self, value: &Value) -> Vec<String> {
        Plan::of("ns", "x", &read(value)).pieces(&BTreeMap::new()).iter().map(|p| p.slot.to_string()).collect()
    }
    fn marked_later(&self, value: &Value) -> usize {
        let spec = read(value);
        spec.addresses.len() + spec.routes.len()
    }
    fn found(&self, cloud: &dyn SimCloud) -> Vec<Found> {
        emulated(cloud).map(Emulated::found).unwrap_or_default()
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
