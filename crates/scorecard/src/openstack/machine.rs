//! Machines as a subject: a server object, and members of a load balancer.
use super::objects::SimServers;
use super::subject::{Hands, Part};
use crate::emulated::Emulated;
use crate::process::{Process, Visitor};
use async_trait::async_trait;
use common::engine::owner::{OwnerApi, OwnerView};
use common::engine::report::Report;
use common::ledger::Id;
use common::testing::{Chance, Controller, Edit, Object, Surroundings, Twin, Variety};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use openstack_server_controller::api::{OpenStackCluster, OpenStackMachineSpec};
use openstack_server_controller::inputs::Missing;
use openstack_server_controller::machine::nodes::{Node, Nodes};
use openstack_server_controller::machine::reconcile::{Reconciler, Subject};
use openstack_server_controller::machine::{CONTROLLER, KIND};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PRIVATE: &str = "7e700000-0000-4000-8000-000000000001";
const IMAGE: &str = "1a600000-0000-4000-8000-000000000001";
const BALANCER: &str = "1b000000-0000-4000-8000-000000000001";
const POOLS: [(i64, &str); 2] =
    [(6443, "b0010000-0000-4000-8000-000000000001"), (9345, "b0010000-0000-4000-8000-000000000002")];

/// OpenStackMachines of a control plane.
pub(super) struct Machines;

struct Visits {
    reconciler: Reconciler,
    nodes: Arc<SimNodes>,
}
/// Cluster API's objects: nobody changes them here, and what is written there is kept aside, by uid.
#[derive(Default)]
struct SimNodes(Mutex<BTreeMap<String, String>>);
impl SimNodes {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
#[async_trait]
impl Nodes for SimNodes {
    async fn node(&self, _view: &OwnerView, _owners: &[OwnerReference]) -> Result<Option<Node>, Missing> {
        Ok(Some(node()))
    }
    async fn set_provider_id(&self, view: &OwnerView, id: &str) -> Result<(), Missing> {
        self.known().insert(view.uid.clone(), id.to_owned());
        Ok(())
    }
}
#[async_trait]
impl Visitor for Visits {
    async fn visit(&self, object: &Object, paused: Option<String>, api: &dyn OwnerApi) -> Report {
        let mut spec: OpenStackMachineSpec = serde_json::from_value(object.spec.clone()).unwrap_or_default();
        spec.provider_id = self.nodes.known().get(&object.view.uid).cloned();
        let status = Value::Object(object.fields.clone());
        let subject = Subject { view: &object.view, owners: &[], spec: &spec, status: &status };
        Box::pin(self.reconciler.visit(subject, paused, api)).await.report
    }
    fn forget(&self, uid: &str) {
        self.reconciler.engine.forget(uid);
        self.nodes.known().remove(uid);
    }
}
/// What Cluster API says: a machine of the control plane, in a cluster whose balancer answers on two ports.
fn node() -> Node {
    let cluster = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster", "metadata": {"name": "c"},
        "spec": {"identityRef": {"name": "creds", "cloudName": "c"}, "network": {"id": PRIVATE},
            "apiServer": {"managedLoadBalancer": {"enabled": true, "additionalPorts": [9345]}}},
        "status": {"initialization": {"provisioned": true}, "network": {"id": PRIVATE}, "apiServerLoadBalancer": {"id": BALANCER}},
    });
    Node {
        bootstrap: Some("boot".into()),
        failure_domain: None,
        control_plane: true,
        cluster: serde_json::from_value::<OpenStackCluster>(cluster).ok(),
    }
}

impl Part for Machines {
    fn name(&self) -> &'static str {
        "machine"
    }
    fn controller(&self) -> &'static str {
        CONTROLLER
    }
    fn kind(&self) -> &'static str {
        KIND
    }
    fn waves(&self) -> u64 {
        1
    }
    fn draw(&self, _variety: Variety, chance: &mut Chance) -> Value {
        let tags: Vec<String> = (0..chance.below(3)).map(|n| format!("t{n}")).collect();
        json!({"flavor": {"id": "2"}, "image": {"id": IMAGE}, "tags": tags})
    }
    fn edit(&self, _spec: &mut Value, _edit: Edit, _chance: &mut Chance) -> bool {
        false
    }
    fn twins(&self, name: &str, _spec: &Value, cloud: &Emulated) -> Vec<Twin> {
        let held = cloud.others.iter().find(|((_, called), _)| called == name).map(|(_, held)| held["address"].clone());
        let Some(address) = held else { return Vec::new() };
        let member = |(port, pool): (i64, &str)| {
            let params = json!({"pool_id": pool, "address": address, "protocol_port": port, "name": "somebody"});
            Twin { kind: "member".into(), params }
        };
        POOLS.into_iter().map(member).collect()
    }
    fn permissions(&self) -> &'static [(&'static str, &'static [&'static str])] {
        &[("members", &["create", "update", "delete"])]
    }
    fn wanted(&self, _spec: &Value) -> Vec<String> {
        POOLS.iter().map(|(port, _)| format!("member-{port}")).collect()
    }
    fn orphans(&self, number: u64, _planted: &BTreeMap<&'static str, Id>) -> Vec<(&'static str, Value)> {
        let address = format!("10.99.0.{number}");
        vec![("member", json!({"pool_id": POOLS[0].1, "address": address, "protocol_port": 6443, "name": "dead"}))]
    }
    fn start(&self, hands: Hands, surroundings: Surroundings) -> Arc<dyn Controller> {
        let nodes = Arc::new(SimNodes::default());
        let reconciler = Reconciler {
            engine: hands.engine,
            sessions: hands.sessions,
            inputs: hands.inputs,
            servers: Arc::new(SimServers::new(surroundings.clone())),
            nodes: nodes.clone(),
            clock: surroundings.clock.clone(),
        };
        Process::start(CONTROLLER, Visits { reconciler, nodes }, surroundings)
    }
}
