//! The calls of OpenStack that are used, over a [`Connection`].
mod balancers;
mod catalog;
mod connection;
mod facts;
mod paging;
pub mod reply;
pub mod wire;

pub use catalog::Service;
pub use connection::{Connection, Limits};
use facts::Remembered;

use crate::cloud::{
    Backend, Cloud, Extensions, Found, Identity, Inventory, Item, Kind, Lookup, Made, Pairs, Query, ROUTERS, TRUNKS,
    describe, retagged,
};
use crate::quota::Quota;
use async_trait::async_trait;
use common::clock::Boot;
use common::engine::estate::{Fault, Outcome};
use common::ledger::Id;
use common::transport::Response;
use connection::{Ask, ReadError};
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reply::{Complaint, Unreadable};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tokio::sync::Mutex;

/// All but the unreserved characters: ids and names are the cloud's words, not ours.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
fn transient(Unreadable(what): Unreadable) -> Fault {
    Fault::Transient(what)
}
/// The outcome of a write that did not succeed.
fn failed<T>(response: &Response) -> Outcome<T> {
    match reply::complaint(response) {
        Complaint::Perhaps(why) => Outcome::Unknown(why),
        sure => Outcome::Refused(sure.fault()),
    }
}
/// Passes on what is no success; there is no other use for a unit.
fn recast<T>(outcome: Outcome<()>) -> Outcome<T> {
    match outcome {
        Outcome::Refused(fault) => Outcome::Refused(fault),
        Outcome::Unknown(why) => Outcome::Unknown(why),
        Outcome::Done(()) => Outcome::Unknown("done without a reply".into()),
    }
}

/// How a kind is called on the wire.
struct Words {
    service: Service,
    path: &'static str,
    list: &'static str,
    many: &'static str,
    one: &'static str,
}
fn words(kind: Kind) -> Words {
    let (service, path, list, many, one) = match kind {
        Kind::Server => (Service::Compute, "/servers", "/servers/detail", "servers", "server"),
        Kind::Volume => (Service::BlockStorage, "/volumes", "/volumes/detail", "volumes", "volume"),
        Kind::Port => (Service::Network, "/ports", "/ports", "ports", "port"),
        Kind::Trunk => (Service::Network, "/trunks", "/trunks", "trunks", "trunk"),
        Kind::FloatingIp => (Service::Network, "/floatingips", "/floatingips", "floatingips", "floatingip"),
        // Its path leads through its pool.
        Kind::Member => (Service::LoadBalancer, "", "", "members", "member"),
    };
    Words { service, path, list, many, one }
}
/// The path of one thing.
fn at(kind: Kind, id: &str) -> String {
    match id.split_once('/') {
        Some((pool, member)) if kind == Kind::Member => format!("{}/{}", balancers::members_of(pool), encode(member)),
        _ => format!("{}/{}", words(kind).path, encode(id)),
    }
}

/// A client of one project.
pub struct Client {
    connection: Connection,
    version: Remembered<u32>,
    extensions: Remembered<Extensions>,
    zones: Remembered<BTreeSet<String>>,
}

impl Client {
    /// Nothing is asked yet.
    pub fn new(connection: Connection) -> Self {
        Client { connection, version: Mutex::new(None), extensions: Mutex::new(None), zones: Mutex::new(None) }
    }

    async fn version(&self, service: Service) -> Result<Option<String>, Fault> {
        Ok(match service {
            Service::Compute => Some(format!("compute 2.{}", self.compute_version().await?)),
            Service::Network | Service::Image | Service::BlockStorage | Service::LoadBalancer => None,
        })
    }
    async fn read(&self, service: Service, path: String) -> Result<Response, ReadError> {
        let version = self.version(service).await.map_err(ReadError::Fault)?;
        self.connection.read(&Ask { version, ..Ask::get(service, path) }).await
    }
    /// A write whose success has no body of interest.
    async fn write(&self, service: Service, method: Method, path: String, body: Option<&Value>) -> Outcome<()> {
        match self.send(service, method, path, body, None).await {
            Ok(response) if response.status().is_success() => Outcome::Done(()),
            Ok(response) => failed(&response),
            Err(outcome) => outcome,
        }
    }
    async fn send(
        &self,
        service: Service,
        method: Method,
        path: String,
        body: Option<&Value>,
        not_after: Option<Boot>,
    ) -> Result<Response, Outcome<()>> {
        let version = self.version(service).await.map_err(Outcome::Refused)?;
        self.connection.write(&Ask { service, method, path, body, version }, not_after).await
    }

    /// One thing's JSON; none if the service says that there is none.
    async fn show(&self, service: Service, path: String, one: &str) -> Result<Option<Value>, Fault> {
        match self.read(service, path).await {
            Ok(response) => {
                let mut body: Map<String, Value> = reply::decode(&response).map_err(transient)?;
                let found = body.remove(one);
                found
                    .map(Some)
                    .ok_or_else(|| Fault::Transient(format!("{}: no {one} in the reply", reply::about(&response))))
            }
            Err(ReadError::Complaint(Complaint::NotFound(_))) => Ok(None),
            Err(error) => Err(error.fault()),
        }
    }
    /// Replaces the pairs of ours in the metadata of a server or volume.
    async fn mark_metadata(&self, kind: Kind, id: &str, mark: &Pairs) -> Outcome<()> {
        let Words { service, path, .. } = words(kind);
        let all = format!("{path}/{}/metadata", encode(id));
        if !mark.is_empty() {
            let set = self.write(service, Method::POST, all.clone(), Some(&json!({"metadata": mark}))).await;
            if set != Outcome::Done(()) {
                return set;
            }
        }
        for stale in crate::cloud::KEYS.all().into_iter().filter(|key| !mark.contains_key(*key)) {
            match self.send(service, Method::DELETE, format!("{all}/{stale}"), None, None).await {
                Ok(response) if response.status().is_success() => {}
                Ok(response) => match reply::complaint(&response) {
                    Complaint::NotFound(_) => {}
                    _ => return failed(&response),
                },
                Err(outcome) => return outcome,
            }
        }
        Outcome::Done(())
    }
    /// Sub-ports ride on the trunk and would keep it.
    async fn free_sub_ports(&self, id: &str) -> Outcome<()> {
        let trunk = match self.get(Kind::Trunk, id).await {
            Ok(Some(Item::Trunk(trunk))) => trunk,
            Ok(_) => return Outcome::Done(()),
            Err(fault) => return Outcome::Refused(fault),
        };
        if trunk.sub_ports.is_empty() {
            return Outcome::Done(());
        }
        let sub_ports: Vec<Value> = trunk.sub_ports.iter().map(|port| json!({"port_id": port})).collect();
        let path = format!("/trunks/{}/remove_subports", encode(id));
        self.write(Service::Network, Method::PUT, path, Some(&json!({"sub_ports": sub_ports}))).await
    }
}

#[async_trait]
impl Cloud for Client {
    async fn identity(&self) -> Result<Identity, Fault> {
        let token = self.connection.token().await?;
        let (project, region, user) = (token.project.clone(), token.region.clone(), token.user.clone());
        Ok(Identity { project, region, user, date: token.date })
    }

    async fn extensions(&self) -> Result<Extensions, Fault> {
        self.ask_extensions().await
    }
    async fn zones(&self) -> Result<BTreeSet<String>, Fault> {
        self.ask_zones().await
    }
    async fn compute_version(&self) -> Result<u32, Fault> {
        self.ask_compute_version().await
    }
    async fn gateways(&self, network: &str) -> Result<BTreeSet<Id>, Fault> {
        self.ask_gateways(network).await
    }
    async fn offers(&self, kind: Kind) -> Result<bool, Fault> {
        match kind {
            Kind::Port | Kind::Server => Ok(true),
            Kind::Volume => self.connection.offers(Service::BlockStorage).await,
            Kind::Member => self.connection.offers(Service::LoadBalancer).await,
            Kind::Trunk => Ok(self.ask_extensions().await?.contains(TRUNKS)),
            Kind::FloatingIp => Ok(self.ask_extensions().await?.contains(ROUTERS)),
        }
    }
    async fn quotas(&self) -> Result<Vec<Quota>, Fault> {
        self.ask_quotas().await
    }
    async fn has_key(&self, name: &str) -> Result<bool, Fault> {
        let shown = self.show(Service::Compute, format!("/os-keypairs/{}", encode(name)), "keypair").await?;
        Ok(shown.is_some())
    }
    async fn volume_types(&self) -> Result<BTreeSet<String>, Fault> {
        let listed = self.pages(Service::BlockStorage, "/types", "volume_types", &Query::new()).await?;
        let words = |value: &Value| ["id", "name"].map(|key| value[key].as_str().unwrap_or_default().to_owned());
        Ok(listed.values.iter().flat_map(words).collect())
    }
    async fn members(&self, balancer: Option<&str>) -> Result<Inventory, Fault> {
        self.list_members(balancer).await
    }
    async fn backends(&self, balancer: &str) -> Result<Vec<Backend>, Fault> {
        self.list_backends(balancer).await
    }

    async fn list(&self, kind: Kind) -> Result<Inventory, Fault> {
        if kind == Kind::Member {
            return self.list_members(None).await;
        }
        let Words { service, list, many, .. } = words(kind);
        // Neutron shows an administrator everybody's things.
        let query = match service {
            Service::Network => vec![("project_id", self.identity().await?.project)],
            _ => Query::new(),
        };
        let listed = self.pages(service, list, many, &query).await?;
        let items = listed.values.into_iter().map(|value| wire::item(kind, "", value)).collect::<Result<_, _>>();
        Ok(Inventory { date: listed.date, items: items.map_err(transient)? })
    }

    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Item>, Fault> {
        let Words { service, one, .. } = words(kind);
        let shown = self.show(service, at(kind, id), one).await?;
        shown.map(|value| wire::item(kind, id, value).map_err(transient)).transpose()
    }

    async fn find(&self, what: Lookup, query: Query) -> Result<Vec<Found>, Fault> {
        let (service, path, many) = match what {
            Lookup::Networks => (Service::Network, "/networks", "networks"),
            Lookup::Subnets => (Service::Network, "/subnets", "subnets"),
            Lookup::SecurityGroups => (Service::Network, "/security-groups", "security_groups"),
            Lookup::Images => (Service::Image, "/images", "images"),
            Lookup::Flavors => (Service::Compute, "/flavors/detail", "flavors"),
            Lookup::ServerGroups => (Service::Compute, "/os-server-groups", "server_groups"),
        };
        let listed = self.pages(service, path, many, &query).await?;
        listed.values.into_iter().map(|value| wire::found(value).map_err(transient)).collect()
    }
    async fn one(&self, what: Lookup, id: &str) -> Result<Option<Found>, Fault> {
        let (service, path, one) = match what {
            Lookup::Networks => (Service::Network, "/networks", "network"),
            Lookup::Subnets => (Service::Network, "/subnets", "subnet"),
            Lookup::SecurityGroups => (Service::Network, "/security-groups", "security_group"),
            Lookup::Flavors => (Service::Compute, "/flavors", "flavor"),
            Lookup::ServerGroups => (Service::Compute, "/os-server-groups", "server_group"),
            Lookup::Images => {
                let found = self.find(Lookup::Images, vec![("id", id.to_owned())]).await?;
                return Ok(found.into_iter().find(|image| image.id == id));
            }
        };
        let shown = self.show(service, format!("{path}/{}", encode(id)), one).await?;
        shown.map(|value| wire::found(value).map_err(transient)).transpose()
    }

    async fn create(&self, kind: Kind, body: &Value, mark: &Pairs, not_after: Boot) -> Outcome<Made> {
        let Words { service, path, one, .. } = words(kind);
        let pool = body["pool"].as_str().unwrap_or_default().to_owned();
        let body = match kind {
            Kind::Server => {
                let mut body = body.clone();
                merge(&mut body["server"]["metadata"], mark);
                body
            }
            Kind::Volume => {
                let mut volume = body.clone();
                merge(&mut volume["metadata"], mark);
                json!({ one: volume })
            }
            Kind::Member => {
                let mut member = body["member"].clone();
                member["tags"] = json!(retagged(&BTreeSet::new(), mark));
                json!({ one: member })
            }
            // Tags in a create call come late, or not at all, whatever extension the cloud names: the description is
            // written with the thing itself. The tags of the spec follow.
            Kind::Port | Kind::Trunk | Kind::FloatingIp => {
                let mut thing = body.clone();
                if let Some(fields) = thing.as_object_mut() {
                    fields.remove("tags");
                }
                thing["description"] = json!(describe(thing["description"].as_str().unwrap_or_default(), mark));
                json!({ one: thing })
            }
        };
        let path = if kind == Kind::Member { balancers::members_of(&pool) } else { path.to_owned() };
        let response = match self.send(service, Method::POST, path, Some(&body), Some(not_after)).await {
            Ok(response) => response,
            Err(outcome) => return recast(outcome),
        };
        if !response.status().is_success() {
            return match reply::complaint(&response) {
                Complaint::Perhaps(why) => Outcome::Unknown(why),
                sure => Outcome::Refused(sure.of_create()),
            };
        }
        let made: Map<String, Value> = match reply::decode(&response) {
            Ok(made) => made,
            Err(Unreadable(what)) => return Outcome::Unknown(what),
        };
        let Some(made) = made.get(one) else {
            return Outcome::Unknown(format!("{}: no {one} in the reply", reply::about(&response)));
        };
        match made.get("id").and_then(Value::as_str) {
            Some(id) => {
                let id = if kind == Kind::Member { format!("{pool}/{id}") } else { id.to_owned() };
                let item = wire::item(kind, &id, made.clone()).ok();
                Outcome::Done(Made { id, item })
            }
            None => Outcome::Unknown(format!("{}: no id in the reply", reply::about(&response))),
        }
    }

    async fn mark(&self, kind: Kind, id: &str, mark: &Pairs) -> Outcome<()> {
        let Words { service, one, .. } = words(kind);
        if let Kind::Server | Kind::Volume = kind {
            return self.mark_metadata(kind, id, mark).await;
        }
        let described = |text: &str| json!({"description": describe(text, mark)});
        let change = match self.get(kind, id).await {
            Ok(Some(Item::Port(port))) => described(&port.description),
            Ok(Some(Item::Trunk(trunk))) => described(&trunk.description),
            Ok(Some(Item::FloatingIp(address))) => described(&address.description),
            Ok(Some(Item::Member(member))) => json!({"tags": retagged(&member.tags, mark)}),
            Ok(_) => return Outcome::Refused(Fault::Transient(format!("{} {id} is gone", kind.name()))),
            Err(fault) => return Outcome::Refused(fault),
        };
        self.write(service, Method::PUT, at(kind, id), Some(&json!({ one: change }))).await
    }

    async fn set_tags(&self, kind: Kind, id: &str, tags: &BTreeSet<String>) -> Outcome<()> {
        let Words { service, path, .. } = words(kind);
        let body = json!({"tags": tags});
        self.write(service, Method::PUT, format!("{path}/{}/tags", encode(id)), Some(&body)).await
    }

    async fn delete(&self, kind: Kind, id: &str) -> Outcome<()> {
        let service = words(kind).service;
        if kind == Kind::Trunk {
            let freed = self.free_sub_ports(id).await;
            if freed != Outcome::Done(()) {
                return freed;
            }
        }
        match self.send(service, Method::DELETE, at(kind, id), None, None).await {
            Ok(response) if response.status().is_success() => Outcome::Done(()),
            Ok(response) => match reply::complaint(&response) {
                Complaint::NotFound(_) => Outcome::Done(()),
                // Attached, or busy: it passes, and the text says what it waits for.
                Complaint::Conflict(why) | Complaint::Invalid(why) => Outcome::Refused(Fault::Transient(why)),
                _ => failed(&response),
            },
            Err(outcome) => outcome,
        }
    }

    async fn force_delete(&self, server: &str) -> Outcome<()> {
        let path = format!("/servers/{}/action", encode(server));
        self.write(Service::Compute, Method::POST, path, Some(&json!({"forceDelete": null}))).await
    }

    async fn point(&self, floating_ip: &str, port: Option<&str>) -> Outcome<()> {
        let path = format!("/floatingips/{}", encode(floating_ip));
        self.write(Service::Network, Method::PUT, path, Some(&json!({"floatingip": {"port_id": port}}))).await
    }
}

fn merge(into: &mut Value, pairs: &Pairs) {
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in pairs {
        into[key] = json!(value);
    }
}
