//! The bastion of a cluster, its server object played: taken over as it stands, replaced without losing its address.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails
#![allow(clippy::needless_pass_by_value)] // json!s are written in place
mod support;

use async_trait::async_trait;
use cloud_emulator::kit::{EmulatedCloud, Settings};
use common::engine::report::Progress;
use common::names::ADOPT_FROM;
use common::testing::one_owner::{OneOwner, Stored, ToldClock};
use openstack_server_controller::api::{OpenStackClusterSpec, OpenStackServer};
use openstack_server_controller::bastion::reconcile::{Reconciler, Subject};
use openstack_server_controller::bastion::{CONTROLLER, KIND, SPEC_HASH};
use openstack_server_controller::inputs::Missing;
use openstack_server_controller::servers::Servers;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Wire, engine, inputs, sessions};

const PRIVATE: &str = "7e700000-0000-4000-8000-000000000001";
const PUBLIC: &str = "7e700000-0000-4000-8000-00000000000e";
const CAPO_CLUSTER: &str = "openstackcluster.infrastructure.cluster.x-k8s.io";
const CAPO_SERVER: &str = "openstackserver.infrastructure.cluster.x-k8s.io";

fn merge(into: &mut Value, patch: &Value) {
    match patch.as_object() {
        Some(fields) => {
            for (key, value) in fields {
                merge(&mut into[key], value);
            }
        }
        None => *into = patch.clone(),
    }
}

/// The one server object of the cluster, and what was done with it.
#[derive(Default)]
struct Played {
    object: Mutex<Option<Value>>,
    log: Mutex<Vec<String>>,
}
impl Played {
    fn change(&self, what: &str, change: impl FnOnce(&mut Value)) {
        self.log.lock().unwrap().push(what.to_owned());
        change(self.object.lock().unwrap().as_mut().unwrap());
    }
    fn object(&self) -> Value {
        self.object.lock().unwrap().clone().unwrap_or_default()
    }
    fn did(&self, what: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|it| *it == what).count()
    }
}
#[async_trait]
impl Servers for Played {
    async fn get(&self, _: &str, _: &str) -> Result<Option<OpenStackServer>, Missing> {
        let found = self.object.lock().unwrap().clone();
        Ok(found.map(|it| serde_json::from_value(it).unwrap()))
    }
    async fn create(&self, server: &OpenStackServer) -> Result<(), Missing> {
        *self.object.lock().unwrap() = Some(serde_json::to_value(server).unwrap());
        self.change("create", |it| it["metadata"]["uid"] = json!("server"));
        Ok(())
    }
    async fn delete(&self, _: &OpenStackServer) -> Result<(), Missing> {
        self.change("delete", |it| it["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
        Ok(())
    }
    async fn patch(&self, _: &OpenStackServer, patch: &Value) -> Result<(), Missing> {
        self.change("patch", |it| merge(it, patch));
        Ok(())
    }
}

struct World {
    time: Arc<ToldClock>,
    wire: Arc<Wire>,
    cluster: OneOwner,
    servers: Arc<Played>,
    reconciler: Reconciler,
    spec: Value,
}
impl World {
    fn new() -> Self {
        let time = Arc::new(ToldClock::default());
        let wire = Wire::of(Settings::default(), &time);
        let servers = Arc::new(Played::default());
        let (engine, sessions) = (engine(CONTROLLER, KIND, &time, 7), sessions(&wire, &time));
        let reconciler = Reconciler::new(engine, sessions, inputs(), servers.clone(), time.clone());
        let spec = json!({
            "identityRef": {"name": "creds", "cloudName": "c"}, "network": {"id": PRIVATE}, "tags": ["a-cluster"],
            "externalNetwork": {"id": PUBLIC},
            "bastion": {"spec": {"flavor": {"id": "2"}, "image": {"id": "i"}, "tags": ["z-bastion"]}},
        });
        World { time, wire, cluster: OneOwner::new("c"), servers, reconciler, spec }
    }
    fn said(&self, type_: &str) -> String {
        let found = self.cluster.stored().view.conditions.into_iter().find(|it| it.type_ == type_);
        found.map(|it| format!("{}/{}: {}", it.status, it.reason, it.message)).unwrap_or_default()
    }
    async fn visit(&self) -> Progress {
        let Stored { view, status, .. } = self.cluster.stored();
        let spec: OpenStackClusterSpec = serde_json::from_value(self.spec.clone()).unwrap();
        let subject = Subject { view: &view, spec: &spec, status: &status };
        let progress = self.reconciler.visit(subject, None, &self.cluster).await.report.progress;
        self.time.pass(Duration::from_mins(1));
        progress
    }
    /// Visits, with somebody who serves the server object: it gets a port, and goes with it when it is deleted.
    async fn serve(&self) {
        for _ in 0..12 {
            self.visit().await;
            let object = self.servers.object();
            if object["metadata"]["deletionTimestamp"].is_string() {
                let port = object["status"]["resources"]["ports"][0]["id"].as_str().unwrap_or_default().to_owned();
                self.wire.cloud(|cloud, now| cloud.delete_by_hand(now, &port).unwrap());
                *self.servers.object.lock().unwrap() = None;
            } else if object["metadata"].is_object() && object["status"].is_null() {
                let port = self.wire.plant("port", json!({"network_id": PRIVATE, "fixed_ips": []}));
                self.servers.change("serve", |it| it["status"] = ready(&port));
            }
        }
    }
    fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.spec);
        self.cluster.edited();
    }
    fn address(&self) -> String {
        self.cluster.stored().status["bastion"]["floatingIP"].as_str().unwrap_or_default().to_owned()
    }
    /// As the Go provider left it: cluster, server object with a port, an address on it. Its id is returned.
    fn left_by_capo(&self) -> String {
        let port = self.wire.plant("port", json!({"name": "c-bastion-0", "network_id": PRIVATE, "fixed_ips": []}));
        self.cluster.touch(|it| it.view.finalizers.push(CAPO_CLUSTER.into()));
        // The newest version fills the subnets of the network in, and keeps tags as they came.
        let fixed = json!([{"subnet": {"id": "5b700000-0000-4000-8000-000000000001"}}]);
        *self.servers.object.lock().unwrap() = Some(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
            "metadata": {"name": "c-bastion", "namespace": "ns", "uid": "theirs", "finalizers": [CAPO_SERVER],
                "ownerReferences": [{"apiVersion": "v", "kind": KIND, "name": "c", "uid": "uid-1"}]},
            "spec": {"identityRef": {"name": "creds", "cloudName": "c"}, "sshKeyName": "", "flavorID": "2", "image": {"id": "i"},
                "tags": ["z-bastion", "a-cluster"], "ports": [{"network": {"id": PRIVATE}, "fixedIPs": fixed}]},
            "status": ready(&port),
        }));
        let address = json!({"floating_network_id": PUBLIC, "floating_ip_address": "203.0.113.50", "port_id": port});
        self.wire.plant("fip", address)
    }
}
fn ready(port: &str) -> Value {
    let condition = json!({"type": "Ready", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({"ready": true, "instanceID": "i", "instanceState": "ACTIVE", "conditions": [condition],
        "resolved": {"ports": [{"name": "p", "networkID": PRIVATE}]}, "resources": {"ports": [{"id": port}]}})
}

#[tokio::test]
async fn a_server_object_of_the_go_provider_is_kept_whatever_it_was_derived_from() {
    let mut world = World::new();
    let address = world.left_by_capo();
    world.serve().await;
    assert_eq!(world.servers.did("patch"), 0, "beside the other provider nothing is written");
    // when the cluster is taken over, then the object is asked for and kept
    world.cluster.annotate(ADOPT_FROM, "capo");
    world.serve().await;
    let object = world.servers.object();
    assert_eq!((world.servers.did("delete"), &object["metadata"]["uid"]), (0, &json!("theirs")));
    assert_eq!(object["metadata"]["annotations"][ADOPT_FROM], "capo");
    assert!(object["metadata"]["annotations"][SPEC_HASH].is_string());
    assert!(world.said("BastionReady").starts_with("True"), "{}", world.said("BastionReady"));
    assert_eq!((world.address(), world.wire.living("fip")[0].id.clone()), ("203.0.113.50".into(), address));
    // when another flavor is asked for, then it goes only once nobody else's finalizer is on it
    world.edit(|spec| spec["bastion"]["spec"]["flavor"]["id"] = json!("3"));
    world.serve().await;
    assert_eq!(world.servers.did("delete"), 0);
    assert!(world.said("BastionReady").contains("taken over"), "{}", world.said("BastionReady"));
    world.servers.change("swap", |it| it["metadata"]["finalizers"] = json!(["custody.dev/openstack"]));
    world.serve().await;
    assert_eq!((world.servers.did("delete"), world.servers.did("create")), (1, 1));
}

#[tokio::test]
async fn an_address_that_was_taken_over_outlives_its_server() {
    let mut world = World::new();
    let address = world.left_by_capo();
    world.cluster.annotate(ADOPT_FROM, "capo");
    world.serve().await;
    world.servers.change("swap", |it| it["metadata"]["finalizers"] = json!(["custody.dev/openstack"]));
    // when another flavor is asked for, then another server has the same address
    world.edit(|spec| spec["bastion"]["spec"]["flavor"]["id"] = json!("3"));
    world.serve().await;
    assert_eq!((world.servers.did("delete"), world.servers.did("create")), (1, 1));
    assert!(world.said("BastionReady").starts_with("True"), "{}", world.said("BastionReady"));
    let fips = world.wire.living("fip");
    assert_eq!((world.address(), fips.len(), &fips[0].id), ("203.0.113.50".into(), 1, &address));
    assert_eq!(fips[0].fields["port_id"], world.servers.object()["status"]["resources"]["ports"][0]["id"]);
}

#[tokio::test]
async fn other_credentials_reach_a_bastion_on_its_way_out() {
    let mut world = World::new();
    world.serve().await;
    assert!(world.said("BastionReady").starts_with("True"), "{}", world.said("BastionReady"));
    // given a server that cannot go with the credentials it has
    world.cluster.delete();
    world.visit().await;
    assert!(world.servers.object()["metadata"]["deletionTimestamp"].is_string());
    // when the cluster is given others, then so is the server
    world.edit(|spec| spec["identityRef"]["name"] = json!("new"));
    world.visit().await;
    assert_eq!(world.servers.object()["spec"]["identityRef"]["name"], "new");
    // when the bastion is not wanted and other credentials come at once, then they come before the end
    let mut world = World::new();
    world.serve().await;
    world.edit(|spec| {
        spec["identityRef"]["name"] = json!("new");
        spec["bastion"]["enabled"] = json!(false);
    });
    world.visit().await;
    assert_eq!(world.servers.object()["spec"]["identityRef"]["name"], "new");
    assert_eq!(world.servers.log.lock().unwrap().split_off(2), ["patch", "delete"]);
}

#[tokio::test]
async fn a_server_ends_with_its_own_credentials_when_nothing_is_said_of_the_bastion_any_more() {
    for gone in [json!(null), json!({"enabled": false})] {
        let mut world = World::new();
        world.edit(|spec| spec["bastion"]["spec"]["identityRef"] = json!({"name": "own", "cloudName": "c"}));
        world.serve().await;
        assert_eq!(world.servers.object()["spec"]["identityRef"]["name"], "own");
        // when the block that named them is taken out
        world.edit(|spec| spec["bastion"] = gone.clone());
        world.visit().await;
        let object = world.servers.object();
        assert!(object["metadata"]["deletionTimestamp"].is_string(), "{object}");
        assert_eq!(object["spec"]["identityRef"]["name"], "own");
    }
}

#[tokio::test]
async fn an_address_that_was_only_named_stays_its_users_in_a_cluster_that_was_taken_over() {
    let mut world = World::new();
    let first = world.left_by_capo();
    world.wire.cloud(|cloud, now| cloud.delete_by_hand(now, &first).unwrap());
    let theirs = json!({"floating_network_id": PUBLIC, "floating_ip_address": "203.0.113.77", "port_id": null});
    let theirs = world.wire.plant("fip", theirs);
    world.cluster.annotate(ADOPT_FROM, "capo");
    world.edit(|spec| spec["bastion"]["floatingIP"] = json!("203.0.113.77"));
    world.serve().await;
    assert_eq!(world.address(), "203.0.113.77", "{}", world.said("BastionReady"));
    // when it is named no longer, then another is made
    world.edit(|spec| drop(spec["bastion"].as_object_mut().unwrap().remove("floatingIP")));
    world.serve().await;
    assert_ne!(world.address(), "203.0.113.77", "{}", world.said("BastionReady"));
    // and whatever becomes of the bastion, the user's is still there
    world.servers.change("swap", |it| it["metadata"]["finalizers"] = json!(["custody.dev/openstack"]));
    world.edit(|spec| spec["bastion"]["enabled"] = json!(false));
    world.serve().await;
    let left: Vec<String> = world.wire.living("fip").into_iter().map(|it| it.id).collect();
    assert_eq!(left, [theirs]);
}

#[tokio::test]
async fn a_cluster_on_its_way_out_says_why_its_server_is_not_taken_over() {
    let world = World::new();
    world.left_by_capo();
    world.cluster.annotate(ADOPT_FROM, "capo");
    world.serve().await;
    // given a server that cannot be taken over
    let trouble = json!({"type": "InstanceReady", "status": "False", "reason": "AdoptionMismatch", "message": "has 1 ports",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    world.servers.change("trouble", |it| it["status"]["conditions"].as_array_mut().unwrap().push(trouble));
    // when the cluster is deleted, then it waits, and says for what
    world.cluster.delete();
    let progress = world.visit().await;
    let Progress::Waiting { message, .. } = progress else { panic!("{progress:?}") };
    assert_eq!(message, "the server is taken over before it is deleted: AdoptionMismatch: has 1 ports");
    assert_eq!(world.servers.did("delete"), 0);
}

#[tokio::test]
async fn a_pinned_address_that_would_have_to_be_made_beside_another_is_refused_loudly() {
    let mut world = World::new();
    world.serve().await;
    let first = world.address();
    world.edit(|spec| spec["bastion"]["floatingIP"] = json!("203.0.113.77"));
    world.serve().await;
    let said = world.said("BastionReady");
    assert!(said.starts_with("False/FloatingIPError") && said.contains(&first), "{said}");
    assert!(world.said("Ready").starts_with("True"), "{}", world.said("Ready"));
    assert_eq!(world.wire.living("fip").len(), 1);
    // when it is there, then it is used, and ours goes
    let made = json!({"floating_network_id": PUBLIC, "floating_ip_address": "203.0.113.77", "port_id": null});
    let pinned = world.wire.plant("fip", made);
    world.serve().await;
    let left = world.wire.living("fip");
    assert_eq!((world.address(), left.len(), &left[0].id), ("203.0.113.77".into(), 1, &pinned));
}

/// Somebody leads an address elsewhere, by the cloud's own API.
async fn lead(world: &World, floating: &str, port: Option<&str>) {
    use common::transport::Transport;
    let ask = |method: &str, path: &str, token: &str, body: Value| {
        let request = http::Request::builder().method(method).uri(format!("http://cloud.test{path}"));
        request.header("x-auth-token", token).body(body.to_string().into_bytes()).unwrap()
    };
    let proof = json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": {"id": "controller", "secret": "secret-1"}}}});
    let reply = world.wire.exchange(ask("POST", "/identity/v3/auth/tokens", "", proof)).await.unwrap();
    let token = reply.headers()["x-subject-token"].to_str().unwrap().to_owned();
    let path = format!("/networking/v2.0/floatingips/{floating}");
    let reply = world.wire.exchange(ask("PUT", &path, &token, json!({"floatingip": {"port_id": port}}))).await.unwrap();
    assert!(reply.status().is_success());
}

#[tokio::test]
async fn a_pinned_address_is_never_taken_from_somebody_elses_port() {
    let mut world = World::new();
    let theirs = world.wire.plant("port", json!({"name": "other-bastion-0", "network_id": PRIVATE, "fixed_ips": []}));
    let address = json!({"floating_network_id": PUBLIC, "floating_ip_address": "203.0.113.77", "port_id": theirs});
    let pinned = world.wire.plant("fip", address);
    world.edit(|spec| spec["bastion"]["floatingIP"] = json!("203.0.113.77"));
    world.serve().await;
    let said = world.said("BastionReady");
    assert!(said.starts_with("False/FloatingIPError") && said.contains(&theirs), "{said}");
    assert!(world.said("Ready").starts_with("True"), "{}", world.said("Ready"));
    assert_eq!(world.wire.living("fip")[0].fields["port_id"], json!(theirs));
    // when it is set free, then it is used
    lead(&world, &pinned, None).await;
    world.serve().await;
    assert!(world.said("BastionReady").starts_with("True"), "{}", world.said("BastionReady"));
    let own = world.servers.object()["status"]["resources"]["ports"][0]["id"].clone();
    assert_eq!(world.wire.living("fip")[0].fields["port_id"], own);
    // when somebody takes it, then the bastion does not take it back, and says so
    lead(&world, &pinned, Some(&theirs)).await;
    world.serve().await;
    assert_eq!(world.wire.living("fip")[0].fields["port_id"], json!(theirs));
    assert!(world.said("BastionReady").starts_with("False/FloatingIPError"), "{}", world.said("BastionReady"));
    // when the bastion is replaced, then a port of its own that the address led to is no obstacle
    lead(&world, &pinned, own.as_str()).await;
    world.edit(|spec| spec["bastion"]["spec"]["flavor"]["id"] = json!("3"));
    world.serve().await;
    assert!(world.said("BastionReady").starts_with("True"), "{}", world.said("BastionReady"));
    assert_eq!(world.servers.did("create"), 2);
}

#[tokio::test]
async fn a_pinned_address_that_is_taken_after_it_was_listed_is_not_taken_back() {
    let mut world = World::new();
    let theirs = world.wire.plant("port", json!({"name": "other", "network_id": PRIVATE, "fixed_ips": []}));
    let address = json!({"floating_network_id": PUBLIC, "floating_ip_address": "203.0.113.77", "port_id": null});
    let pinned = world.wire.plant("fip", address);
    world.edit(|spec| spec["bastion"]["floatingIP"] = json!("203.0.113.77"));
    // given a list that shows it free, read while the server is made
    while world.servers.object()["metadata"].is_null() {
        world.visit().await;
    }
    let port = world.wire.plant("port", json!({"network_id": PRIVATE, "fixed_ips": []}));
    world.servers.change("serve", |it| it["status"] = ready(&port));
    lead(&world, &pinned, Some(&theirs)).await;
    for _ in 0..10 {
        world.visit().await;
        assert_eq!(world.wire.living("fip")[0].fields["port_id"], json!(theirs));
    }
    assert!(world.said("BastionReady").starts_with("False/FloatingIPError"), "{}", world.said("BastionReady"));
}

#[tokio::test]
async fn the_address_of_a_bastion_is_the_one_in_the_network_of_the_cluster() {
    let world = World::new();
    world.visit().await;
    world.visit().await;
    world.visit().await;
    let other = "7e700000-0000-4000-8000-000000000002";
    let plant = |network: &str, address: &str| {
        let fixed = json!([{"subnet_id": "s", "ip_address": address}]);
        world.wire.plant("port", json!({"network_id": network, "fixed_ips": fixed}))
    };
    let ports = [plant(other, "10.1.0.9"), plant(PRIVATE, "10.0.0.9")];
    let mut status = ready("");
    // Nova's addresses go by the names of networks
    status["addresses"] =
        json!([{"type": "InternalIP", "address": "10.1.0.9"}, {"type": "InternalIP", "address": "10.0.0.9"}]);
    status["resolved"]["ports"] = json!([{"name": "a", "networkID": other}, {"name": "b", "networkID": PRIVATE}]);
    status["resources"]["ports"] = json!([{"id": ports[0]}, {"id": ports[1]}]);
    world.servers.change("serve", |it| it["status"] = status);
    world.serve().await;
    assert!(world.said("BastionReady").starts_with("True"), "{}", world.said("BastionReady"));
    assert_eq!(world.cluster.stored().status["bastion"]["ip"], "10.0.0.9");
}

#[tokio::test]
async fn a_network_that_is_named_by_nothing_is_no_network() {
    let mut world = World::new();
    world.edit(|spec| spec["network"] = json!({"filter": {"name": ""}}));
    world.visit().await;
    assert!(world.said("Ready").contains("named in no way"), "{}", world.said("Ready"));
}
