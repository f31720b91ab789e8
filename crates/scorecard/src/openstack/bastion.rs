//! Bastions as a subject: a server object that comes and goes, and a floating IP that outlives it.
use super::objects::SimServers;
use super::subject::{Hands, Part};
use crate::emulated::Emulated;
use crate::process::{Process, Visitor};
use async_trait::async_trait;
use common::engine::owner::OwnerApi;
use common::engine::report::Report;
use common::ledger::Id;
use common::testing::{Chance, Controller, Edit, Object, Surroundings, Twin, Variety};
use openstack_server_controller::api::OpenStackClusterSpec;
use openstack_server_controller::bastion::reconcile::{Reconciler, Subject};
use openstack_server_controller::bastion::{CONTROLLER, KIND};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const PRIVATE: &str = "7e700000-0000-4000-8000-000000000001";
const PUBLIC: &str = "7e700000-0000-4000-8000-00000000000e";
const IMAGE: &str = "1a600000-0000-4000-8000-000000000001";

/// Bastions of OpenStackClusters.
pub(super) struct Bastions;

struct Visits(Reconciler);
#[async_trait]
impl Visitor for Visits {
    async fn visit(&self, object: &Object, paused: Option<String>, api: &dyn OwnerApi) -> Report {
        let spec: OpenStackClusterSpec = serde_json::from_value(object.spec.clone()).unwrap_or_default();
        let status = Value::Object(object.fields.clone());
        let subject = Subject { view: &object.view, spec: &spec, status: &status };
        self.0.visit(subject, paused, api).await.report
    }
    fn forget(&self, uid: &str) {
        self.0.engine().forget(uid);
    }
}
fn enabled(spec: &Value) -> bool {
    spec["bastion"]["enabled"] == true
}

impl Part for Bastions {
    fn name(&self) -> &'static str {
        "bastion"
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
    fn draw(&self, variety: Variety, chance: &mut Chance) -> Value {
        let wanted = matches!(variety, Variety::Fixed | Variety::Twelve) || !chance.one_in(5);
        json!({
            "identityRef": {"name": "creds", "cloudName": "c"}, "network": {"id": PRIVATE}, "externalNetwork": {"id": PUBLIC},
            "bastion": {"enabled": wanted, "spec": {"flavor": {"id": "2"}, "image": {"id": IMAGE}}},
        })
    }
    fn edit(&self, spec: &mut Value, edit: Edit, chance: &mut Chance) -> bool {
        match edit {
            Edit::Change if enabled(spec) => {
                spec["bastion"]["spec"]["flavor"]["id"] = json!(format!("{}", chance.below(1000)));
            }
            Edit::Remove | Edit::RemoveMost if enabled(spec) => spec["bastion"]["enabled"] = json!(false),
            Edit::Add if !enabled(spec) => spec["bastion"]["enabled"] = json!(true),
            _ => return false,
        }
        true
    }
    fn twins(&self, _name: &str, spec: &Value, cloud: &Emulated) -> Vec<Twin> {
        // Floating IPs are many in one network: a stranger's is never in the way.
        let address = format!("198.51.{}.{}", cloud.now() / 250 % 250, cloud.now() % 250);
        let params = json!({"floating_network_id": PUBLIC, "floating_ip_address": address, "port_id": null});
        enabled(spec).then(|| Twin { kind: "fip".into(), params }).into_iter().collect()
    }
    fn permissions(&self) -> &'static [(&'static str, &'static [&'static str])] {
        &[("floatingips", &["create", "update", "delete"])]
    }
    fn wanted(&self, spec: &Value) -> Vec<String> {
        enabled(spec).then(|| "fip".to_owned()).into_iter().collect()
    }
    fn orphans(&self, number: u64, _planted: &BTreeMap<&'static str, Id>) -> Vec<(&'static str, Value)> {
        let address = format!("198.18.0.{number}");
        vec![("fip", json!({"floating_network_id": PUBLIC, "floating_ip_address": address, "port_id": null}))]
    }
    fn start(&self, hands: Hands, surroundings: Surroundings) -> Arc<dyn Controller> {
        let servers = Arc::new(SimServers::new(surroundings.clone()));
        let clock = surroundings.clock.clone();
        let visits = Visits(Reconciler::new(hands.engine, hands.sessions, hands.inputs, servers, clock));
        Process::start(CONTROLLER, visits, surroundings)
    }
}
