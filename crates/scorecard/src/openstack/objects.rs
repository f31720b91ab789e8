//! OpenStackServer objects as the API server would hold them, and somebody who serves them: a server is ready a while after it was
//! made, has a port of its own, and is gone a while after it was deleted. Objects whose owner is gone are collected.
use super::cloud::{ACCOUNTS, PLAYER};
use crate::emulated::{Emulated, emulated_mut};
use async_trait::async_trait;
use cloud_emulator::kit::Plant;
use common::testing::sim::{State, date_of};
use common::testing::wire::{Call, Heard, Target};
use common::testing::{Millis, Surroundings};
use kube::ResourceExt;
use openstack_server_controller::api::{OpenStackServer, OpenStackServerStatus};
use openstack_server_controller::inputs::Missing;
use openstack_server_controller::servers::Servers;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// As in production.
const TIMEOUT: Millis = 10_000;
/// How long a server takes to come and to go.
const TAKES: Millis = 4_000;
const PRIVATE: &str = "7e700000-0000-4000-8000-000000000001";

#[derive(Clone, Serialize, Deserialize)]
struct Held {
    object: OpenStackServer,
    port: String,
    address: String,
    ready: Millis,
    gone: Option<Millis>,
}

/// The API server of one process, for objects that are no owners.
pub(super) struct Others(pub(super) Surroundings);
impl Others {
    /// Which API server.
    pub(super) fn server(&self) -> usize {
        self.0.sim.with(|s| s.processes.get(self.0.process).map_or(0, |p| p.server))
    }
    /// One call of it.
    pub(super) async fn call<R: Send + 'static>(
        &self,
        writes: bool,
        label: String,
        effect: impl FnOnce(&mut State) -> R + Send + 'static,
    ) -> Result<R, Missing> {
        let call = Call { target: Target::Api, writes, timeout: TIMEOUT };
        match self.0.sim.call(call, || label, effect).await {
            Heard::Reply(reply) => Ok(reply),
            Heard::NotSent => Err(Missing::Unavailable("connection refused".into())),
            Heard::NoReply | Heard::Garbage => Err(Missing::Unavailable("connection lost".into())),
            Heard::Status(code) => Err(Missing::Unavailable(format!("{code}"))),
        }
    }
}
/// The same, for servers.
pub(super) struct SimServers(Others);
impl SimServers {
    pub(super) fn new(surroundings: Surroundings) -> Self {
        SimServers(Others(surroundings))
    }
}

fn held(cloud: &Emulated, key: &(usize, String)) -> Option<Held> {
    serde_json::from_value(cloud.others.get(key)?.clone()).ok()
}
/// What stands under this name now; what is over or without an owner is taken away first.
fn look(s: &mut State, server: usize, name: &str) -> Option<Held> {
    let now = s.now();
    let key = (server, name.to_owned());
    let uids: Vec<String> = s.servers.get(server)?.objects().map(|(_, object)| object.view.uid.clone()).collect();
    let cloud = emulated_mut(s.cloud.as_mut())?;
    let held = held(cloud, &key)?;
    let orphaned = !held.object.owner_references().iter().any(|it| uids.contains(&it.uid));
    if orphaned || held.gone.is_some_and(|gone| gone <= now) {
        cloud.others.remove(&key);
        let _ = cloud.cloud.delete_by_hand(date_of(now), &held.port);
        return None;
    }
    Some(held)
}
fn shown(held: Held, now: Millis) -> OpenStackServer {
    let Held { mut object, port, address, ready, gone } = held;
    let condition = |status: &str| json!({"type": "Ready", "status": status, "reason": "Played", "message": "", "lastTransitionTime": "2027-01-15T08:00:00Z"});
    let up = ready <= now;
    let status = json!({
        "ready": up, "instanceID": format!("instance-of-{port}"), "instanceState": if up { "ACTIVE" } else { "BUILD" },
        "addresses": [{"type": "InternalIP", "address": address}],
        "resolved": {"ports": [{"name": "p", "networkID": PRIVATE}]}, "resources": {"ports": [{"id": port}]},
        "conditions": [condition(if up { "True" } else { "False" })],
    });
    object.status = serde_json::from_value::<OpenStackServerStatus>(status).ok();
    if gone.is_some() {
        let when = serde_json::from_value(json!("2027-01-15T08:00:00Z")).ok();
        object.metadata.deletion_timestamp = when;
    }
    object
}
fn make(s: &mut State, server: usize, mut object: OpenStackServer) {
    let (now, name) = (s.now(), object.name_any());
    if look(s, server, &name).is_some() {
        return;
    }
    let number = s.chance.below(1 << 40);
    let Some(cloud) = emulated_mut(s.cloud.as_mut()) else { return };
    // Two servers never share an address.
    let address = format!("10.{}.{}.{}", 100 + number % 100, number / 100 % 250, number / 25_000 % 250);
    let fields = json!({"name": format!("port-of-{number}"), "network_id": PRIVATE, "fixed_ips": [{"subnet_id": "s", "ip_address": address}]});
    let Value::Object(fields) = fields else { return };
    let plant = Plant { created_by: PLAYER.into(), account: Some(ACCOUNTS[0].0.into()), ..Plant::new("port", fields) };
    let Ok(port) = cloud.cloud.plant(date_of(now), plant) else { return };
    object.metadata.uid = Some(format!("server-{number}"));
    let held = Held { object, port, address, ready: now + TAKES, gone: None };
    if let Ok(value) = serde_json::to_value(held) {
        cloud.others.insert((server, name), value);
    }
}
fn change(s: &mut State, server: usize, this: &OpenStackServer, change: impl FnOnce(&mut Held)) {
    let name = this.name_any();
    let Some(mut held) = look(s, server, &name).filter(|held| held.object.uid() == this.uid()) else { return };
    change(&mut held);
    if let (Some(cloud), Ok(value)) = (emulated_mut(s.cloud.as_mut()), serde_json::to_value(held)) {
        cloud.others.insert((server, name), value);
    }
}

#[async_trait]
impl Servers for SimServers {
    async fn get(&self, _namespace: &str, name: &str) -> Result<Option<OpenStackServer>, Missing> {
        let (server, asked) = (self.0.server(), name.to_owned());
        let effect = move |s: &mut State| {
            let now = s.now();
            look(s, server, &asked).map(|held| shown(held, now))
        };
        self.0.call(false, format!("api get server {name}"), effect).await
    }
    async fn create(&self, object: &OpenStackServer) -> Result<(), Missing> {
        let (server, object) = (self.0.server(), object.clone());
        let label = format!("api create server {}", object.name_any());
        self.0.call(true, label, move |s: &mut State| make(s, server, object)).await
    }
    async fn delete(&self, object: &OpenStackServer) -> Result<(), Missing> {
        let (server, object) = (self.0.server(), object.clone());
        let label = format!("api delete server {}", object.name_any());
        let effect = move |s: &mut State| {
            let gone = s.now() + TAKES;
            change(s, server, &object, |held| held.gone = held.gone.or(Some(gone)));
        };
        self.0.call(true, label, effect).await
    }
    async fn patch(&self, object: &OpenStackServer, patch: &Value) -> Result<(), Missing> {
        let (server, object, patch) = (self.0.server(), object.clone(), patch.clone());
        let label = format!("api patch server {}", object.name_any());
        let effect = move |s: &mut State| {
            change(s, server, &object, |held| {
                if let Ok(identity) = serde_json::from_value(patch["spec"]["identityRef"].clone()) {
                    held.object.spec.identity_ref = identity;
                }
            });
        };
        self.0.call(true, label, effect).await
    }
}
