//! Servers as a subject.
use super::cloud::is_of;
use super::pool::{self, PoolInputs};
use super::server_spec::{draw, draw_pooled, reached, read, resolved};
use super::subject::{Hands, Part};
use crate::emulated::Emulated;
use crate::process::{Process, Visitor};
use async_trait::async_trait;
use common::engine::estate::{Piece, Want};
use common::engine::owner::OwnerApi;
use common::engine::report::Report;
use common::ledger::{Id, Ledger};
use common::testing::{Chance, Controller, Edit, Object, Surroundings, Twin, Variety};
use openstack_server_controller::inputs::Inputs;
use openstack_server_controller::names::{CONTROLLER, KIND};
use openstack_server_controller::plan::{Facts, Plan};
use openstack_server_controller::reconcile::{Reconciler, Subject};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// OpenStackServers.
pub(super) struct Servers;

struct Visits(Reconciler);
#[async_trait]
impl Visitor for Visits {
    async fn visit(&self, object: &Object, paused: Option<String>, api: &dyn OwnerApi) -> Report {
        let spec = read(&object.spec);
        let status = Value::Object(object.fields.clone());
        let subject = Subject { view: &object.view, spec: &spec, status: Some(&status) };
        self.0.visit(subject, paused, api).await.report
    }
    fn forget(&self, uid: &str) {
        self.0.forget(uid);
    }
}

impl Part for Servers {
    fn name(&self) -> &'static str {
        "openstack"
    }
    fn controller(&self) -> &'static str {
        CONTROLLER
    }
    fn kind(&self) -> &'static str {
        KIND
    }
    fn waves(&self) -> u64 {
        3
    }
    fn draw(&self, variety: Variety, chance: &mut Chance) -> Value {
        draw(variety, chance)
    }
    fn edit(&self, _spec: &mut Value, _edit: Edit, _chance: &mut Chance) -> bool {
        false
    }
    fn twins(&self, name: &str, value: &Value, cloud: &Emulated) -> Vec<Twin> {
        let ids = cloud.slots(|thing| is_of(thing, name));
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
    fn permissions(&self) -> &'static [(&'static str, &'static [&'static str])] {
        &[
            ("ports", &["create", "tag", "delete"]),
            ("trunks", &["create", "tag", "update", "delete"]),
            ("volumes", &["create", "mark", "delete"]),
            ("servers", &["create", "mark", "delete"]),
        ]
    }
    fn wanted(&self, spec: &Value) -> Vec<String> {
        Plan::of("x", &read(spec), &Facts::default()).slots().map(ToString::to_string).collect()
    }
    fn orphans(&self, number: u64, planted: &BTreeMap<&'static str, Id>) -> Vec<(&'static str, Value)> {
        let name = format!("dead-{number}");
        vec![
            ("port", json!({"name": name, "network_id": "n"})),
            ("volume", json!({"name": name, "size": 1})),
            ("trunk", json!({"name": name, "port_id": planted.get("port")})),
            ("server", json!({"name": name})),
        ]
    }
    fn start(&self, hands: Hands, surroundings: Surroundings) -> Arc<dyn Controller> {
        let inputs = hands.inputs.clone();
        start(hands, inputs, surroundings)
    }
}
fn start(hands: Hands, inputs: Arc<dyn Inputs>, surroundings: Surroundings) -> Arc<dyn Controller> {
    let Hands { engine, sessions, .. } = hands;
    let visits = Visits(Reconciler::new(engine, sessions, inputs, surroundings.clock.clone()));
    Process::start(CONTROLLER, visits, surroundings)
}

/// OpenStackServers that wait for an address of a pool and are reached by it.
pub(super) struct PooledServers;

impl Part for PooledServers {
    fn name(&self) -> &'static str {
        "pooled"
    }
    fn controller(&self) -> &'static str {
        CONTROLLER
    }
    fn kind(&self) -> &'static str {
        KIND
    }
    fn waves(&self) -> u64 {
        Servers.waves()
    }
    fn draw(&self, variety: Variety, chance: &mut Chance) -> Value {
        draw_pooled(variety, chance)
    }
    fn edit(&self, spec: &mut Value, edit: Edit, chance: &mut Chance) -> bool {
        Servers.edit(spec, edit, chance)
    }
    fn twins(&self, name: &str, spec: &Value, cloud: &Emulated) -> Vec<Twin> {
        Servers.twins(name, spec, cloud)
    }
    fn permissions(&self) -> &'static [(&'static str, &'static [&'static str])] {
        &[
            ("ports", &["create", "tag", "delete"]),
            ("servers", &["create", "mark", "delete"]),
            ("floatingips", &["update"]),
        ]
    }
    fn wanted(&self, spec: &Value) -> Vec<String> {
        Servers.wanted(spec)
    }
    fn orphans(&self, number: u64, planted: &BTreeMap<&'static str, Id>) -> Vec<(&'static str, Value)> {
        Servers.orphans(number, planted)
    }
    fn flaw(&self, object: &Object, ledger: &Ledger, cloud: &Emulated) -> Option<String> {
        let port = ledger.records.get(&reached(&read(&object.spec))?)?.id()?;
        pool::flaw(cloud, &object.view.uid, port)
    }
    fn damage(&self, cloud: &Emulated) -> Vec<String> {
        pool::damage(cloud)
    }
    fn start(&self, hands: Hands, surroundings: Surroundings) -> Arc<dyn Controller> {
        let inputs = Arc::new(PoolInputs::new(hands.inputs.clone(), surroundings.clone()));
        start(hands, inputs, surroundings)
    }
}
