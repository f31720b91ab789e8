//! A pool of floating IPs: a while after a claim was made, it has an address. The pool's addresses are its own: they outlive every claim, and the next
//! claim of the same name gets the address again, as a claim that was moved with its server keeps it.
use super::cloud::{ACCOUNTS, PLAYER, text};
use super::objects::Others;
use crate::emulated::{Emulated, alive, emulated_mut};
use async_trait::async_trait;
use cloud_emulator::kit::{Plant, Truth as Thing};
use common::engine::owner::OwnerView;
use common::testing::sim::{State, date_of};
use common::testing::{Millis, Surroundings};
use kube::ResourceExt;
use kube::api::DynamicObject;
use openstack_server_controller::api::{IdentityRef, TypedRef};
use openstack_server_controller::claims::{self, Claims, IPAM};
use openstack_server_controller::clouds::CloudConfig;
use openstack_server_controller::inputs::{Given, Inputs, Missing};
use openstack_server_controller::kube_inputs::resource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// How long the pool thinks, and how long the garbage collector takes.
const TAKES: Millis = 4_000;
const PUBLIC: &str = "7e700000-0000-4000-8000-00000000000e";

/// Claims by a pool, everything else as handed in.
pub(super) struct PoolInputs {
    given: Arc<Given>,
    claims: SimClaims,
}
impl PoolInputs {
    pub(super) fn new(given: Arc<Given>, surroundings: Surroundings) -> Self {
        PoolInputs { given, claims: SimClaims(Others(surroundings)) }
    }
}
#[async_trait]
impl Inputs for PoolInputs {
    async fn cloud(&self, namespace: &str, identity: &IdentityRef) -> Result<CloudConfig, Missing> {
        self.given.cloud(namespace, identity).await
    }
    async fn user_data(&self, namespace: &str, secret: &str) -> Result<Vec<u8>, Missing> {
        self.given.user_data(namespace, secret).await
    }
    async fn image(&self, namespace: &str, name: &str) -> Result<String, Missing> {
        self.given.image(namespace, name).await
    }
    async fn address(&self, owner: &OwnerView, pool: &TypedRef) -> Result<Option<String>, Missing> {
        claims::address(&self.claims, owner, pool).await
    }
    async fn release(&self, owner: &OwnerView) -> Result<(), Missing> {
        claims::release(&self.claims, owner).await
    }
    async fn reads_lists_of_zones(&self) -> Result<bool, Missing> {
        self.given.reads_lists_of_zones().await
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Held {
    claim: DynamicObject,
    address: Option<String>,
    /// When it is collected, once its owner is gone.
    collected: Option<Millis>,
}
fn read(value: &Value) -> Option<Held> {
    serde_json::from_value(value.clone()).ok()
}
fn keep(cloud: &mut Emulated, key: (usize, String), held: Held) {
    cloud.others.extend(serde_json::to_value(held).ok().map(|value| (key, value)));
}
/// Does an owner of it live? One without owners is nobody's, and never collected.
fn is_owned(s: &State, server: usize, claim: &DynamicObject) -> bool {
    let owners = claim.owner_references();
    let lives = |uid: &str| s.servers.get(server).is_some_and(|it| it.objects().any(|(_, o)| o.view.uid == uid));
    owners.is_empty() || owners.iter().any(|it| lives(&it.uid))
}
/// The claim of this name now; one whose owner is gone stays until it is collected.
fn look(s: &mut State, server: usize, name: &str) -> Option<Held> {
    let (now, key) = (s.now(), (server, name.to_owned()));
    let mut held = read(emulated_mut(s.cloud.as_mut())?.others.get(&key)?)?;
    let owned = is_owned(s, server, &held.claim);
    let cloud = emulated_mut(s.cloud.as_mut())?;
    match held.collected {
        Some(when) if when <= now => {
            cloud.others.remove(&key);
            return None;
        }
        None if !owned => {
            held.collected = Some(now + TAKES);
            keep(cloud, key, held.clone());
        }
        _ => {}
    }
    Some(held)
}
/// The claim is stored, and the pool hears of it. Whoever comes second is refused.
fn make(s: &mut State, server: usize, claim: DynamicObject) -> Option<DynamicObject> {
    let name = claim.name_any();
    if look(s, server, &name).is_some() {
        return None;
    }
    let cloud = emulated_mut(s.cloud.as_mut())?;
    keep(cloud, (server, name.clone()), Held { claim: claim.clone(), address: None, collected: None });
    s.book(TAKES, move |s| give(s, server, &name));
    Some(claim)
}
fn give(s: &mut State, server: usize, name: &str) {
    let Some(mut held) = look(s, server, name).filter(|it| it.address.is_none()) else { return };
    held.address = free_address(s, name);
    if let Some(cloud) = emulated_mut(s.cloud.as_mut()) {
        keep(cloud, (server, name.to_owned()), held);
    }
}
/// One that a claim of this name had before and that nobody has now, or a new one.
fn free_address(s: &mut State, name: &str) -> Option<String> {
    let now = s.now();
    let all: Vec<(usize, Held)> = emulated_mut(s.cloud.as_mut())?
        .others
        .iter()
        .filter_map(|((server, _), it)| Some((*server, read(it)?)))
        .collect();
    let taken: Vec<String> = all
        .into_iter()
        .filter(|(server, it)| is_owned(s, *server, &it.claim))
        .filter_map(|(_, it)| it.address)
        .collect();
    let cloud = emulated_mut(s.cloud.as_mut())?;
    let known: Vec<Thing> = addresses(cloud);
    let free = known.iter().filter(|it| text(it, "description") == name).map(|it| text(it, "floating_ip_address"));
    if let Some(free) = free.into_iter().find(|it| !taken.iter().any(|taken| taken == it)) {
        return Some(free.to_owned());
    }
    let address = format!("203.0.113.{}", 100 + known.len());
    let fields =
        json!({"floating_network_id": PUBLIC, "floating_ip_address": address, "port_id": null, "description": name});
    let Value::Object(fields) = fields else { return None };
    let plant = Plant { created_by: PLAYER.into(), account: Some(ACCOUNTS[0].0.into()), ..Plant::new("fip", fields) };
    cloud.cloud.plant(date_of(now), plant).ok().map(|_| address)
}
/// Every address that the pool ever had.
fn addresses(cloud: &Emulated) -> Vec<Thing> {
    let all = cloud.cloud.truth(date_of(cloud.now()));
    all.into_iter().filter(|it| it.kind == "fip" && it.created_by == PLAYER).collect()
}

/// What is wrong with the address of an owner that is done: `port` is where it shall lead.
pub(super) fn flaw(cloud: &Emulated, uid: &str, port: &str) -> Option<String> {
    let owns = |held: &Held| held.claim.owner_references().iter().any(|it| it.uid == uid);
    let claims: Vec<Held> = cloud.others.values().filter_map(read).filter(owns).collect();
    let [claim] = claims.as_slice() else { return Some(format!("it has {} claims", claims.len())) };
    let leads =
        |it: &Thing| claim.address.as_deref() == Some(text(it, "floating_ip_address")) && text(it, "port_id") == port;
    (!addresses(cloud).iter().any(leads)).then(|| "its address leads elsewhere".to_owned())
}
/// Addresses are the pool's to delete, and a claim without an owner would stay for good.
pub(super) fn damage(cloud: &Emulated) -> Vec<String> {
    let deleted = addresses(cloud).iter().any(|it| !alive(it));
    let ownerless = cloud.others.values().filter_map(read).any(|it| it.claim.owner_references().is_empty());
    let told = [(deleted, "a pool's address deleted"), (ownerless, "a claim that nobody owns")];
    told.into_iter().filter(|(is, _)| *is).map(|(_, what)| what.to_owned()).collect()
}

struct SimClaims(Others);
#[async_trait]
impl Claims for SimClaims {
    async fn claim(&self, _namespace: &str, name: &str) -> Result<Option<DynamicObject>, Missing> {
        let (server, asked) = (self.0.server(), name.to_owned());
        let effect = move |s: &mut State| {
            look(s, server, &asked).map(|Held { mut claim, address, .. }| {
                if address.is_some() {
                    claim.data["status"] = json!({"addressRef": {"name": asked}});
                }
                claim
            })
        };
        self.0.call(false, format!("api get claim {name}"), effect).await
    }
    async fn make(&self, _namespace: &str, claim: &DynamicObject) -> Result<Option<DynamicObject>, Missing> {
        let (server, claim) = (self.0.server(), claim.clone());
        let label = format!("api create claim {}", claim.name_any());
        let made = self.0.call(true, label, move |s: &mut State| make(s, server, claim)).await?;
        made.map(Some).ok_or_else(|| Missing::Unavailable("the claim is there already".into()))
    }
    /// The claims of this pool have no finalizers.
    async fn finalize(&self, _claim: &DynamicObject, _finalizers: &[String]) -> Result<(), Missing> {
        Ok(())
    }
    async fn given(&self, _namespace: &str, name: &str) -> Result<Option<DynamicObject>, Missing> {
        let (server, asked) = (self.0.server(), name.to_owned());
        let effect = move |s: &mut State| look(s, server, &asked)?.address;
        let address = self.0.call(false, format!("api get address {name}"), effect).await?;
        Ok(address.map(|address| {
            let mut object = DynamicObject::new(name, &resource(IPAM, "IPAddress"));
            object.data = json!({"spec": {"address": address}});
            object
        }))
    }
}
