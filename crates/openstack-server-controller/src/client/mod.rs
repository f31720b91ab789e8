//! The calls of OpenStack that are used, over a [`Connection`].
mod connection;
pub mod reply;
pub mod wire;

pub use connection::{Connection, Limits, Service};

use crate::cloud::{Cloud, Extensions, Found, Identity, Inventory, Item, Kind, Lookup, Made, Pairs, Query, describe};
use async_trait::async_trait;
use common::clock::Boot;
use common::engine::estate::{Fault, Outcome};
use common::ledger::Id;
use common::names::reason::INVALID_REQUEST;
use common::transport::Response;
use connection::{Ask, ReadError};
use http::Method;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reply::{Complaint, Unreadable};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;
use tokio::sync::Mutex;

/// All but the unreserved characters: ids and names are the cloud's words, not ours.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The newest microversion of Nova whose answers are known here: 2.60, several attachments of one volume.
const NEWEST_COMPUTE: u32 = 60;
/// What Neutron can do does not change often.
const EXTENSIONS_LAST: Duration = Duration::from_hours(1);

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
    };
    Words { service, path, list, many, one }
}

/// All pages of a list.
struct Listed {
    date: Timestamp,
    values: Vec<Value>,
}

/// A client of one project.
pub struct Client {
    connection: Connection,
    version: Mutex<Option<u32>>,
    extensions: Mutex<Option<(Boot, Extensions)>>,
}

impl Client {
    /// Nothing is asked yet.
    pub fn new(connection: Connection) -> Self {
        Client { connection, version: Mutex::new(None), extensions: Mutex::new(None) }
    }

    async fn version(&self, service: Service) -> Result<Option<String>, Fault> {
        Ok(match service {
            Service::Compute => Some(format!("compute 2.{}", self.compute_version().await?)),
            Service::Network | Service::Image | Service::BlockStorage => None,
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

    /// Follows pages by their marker, never by the host of the link: proxies write their own.
    async fn pages(&self, service: Service, path: &str, many: &str, query: &Query) -> Result<Listed, Fault> {
        let mut asked: Vec<String> = query.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
        let paged = matches!(service, Service::Compute | Service::BlockStorage | Service::Image);
        if paged {
            asked.push(format!("limit={}", self.connection.limits.page));
        }
        let (mut date, mut values, mut seen) = (None, Vec::new(), HashSet::new());
        let mut marker: Option<(&str, String)> = None;
        for _ in 0..self.connection.limits.pages {
            let mut query = asked.clone();
            query.extend(marker.as_ref().map(|(key, value)| format!("{key}={}", encode(value))));
            let mark = if query.is_empty() { "" } else { "?" };
            let read = self.read(service, format!("{path}{mark}{}", query.join("&"))).await;
            let response = read.map_err(|error| match error {
                // What stood at the end of the last page is gone: the list is asked for anew by whoever needs it.
                ReadError::Complaint(Complaint::Invalid(why) | Complaint::NotFound(why)) if marker.is_some() => {
                    Fault::Transient(format!("{many} changed while they were listed: {why}"))
                }
                other => other.fault(),
            })?;
            if date.is_none() {
                date = Some(reply::date(&response).map_err(transient)?);
            }
            let body: Map<String, Value> = reply::decode(&response).map_err(transient)?;
            let Some(page) = body.get(many).and_then(Value::as_array) else {
                return Err(Fault::Transient(format!("{}: no {many} in the reply", reply::about(&response))));
            };
            let id = |value: &Value| value.get("id").and_then(Value::as_str).map(str::to_owned);
            let before = values.len();
            // Things that came or went between two pages can push one onto both.
            values.extend(page.iter().filter(|it| id(it).is_none_or(|id| seen.insert(id))).cloned());
            let next = next_link(&body, many);
            let Some((next, date)) = next.zip(date) else {
                return date
                    .map(|date| Listed { date, values })
                    .ok_or_else(|| Fault::Transient("no page was read".into()));
            };
            let following =
                marker_in(&next).map(|it| ("marker", it)).or_else(|| Some(("marker", page.last().and_then(id)?)));
            if following.is_none() || (values.len() == before && following == marker) {
                return Ok(Listed { date, values });
            }
            marker = following;
        }
        Err(Fault::Transient(format!("the list of {many} does not end after {} pages", self.connection.limits.pages)))
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
    /// Sub-ports ride on the trunk and would keep it; they are set free and stay.
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

/// The address of the next page, if there is one.
fn next_link(body: &Map<String, Value>, many: &str) -> Option<String> {
    let links = body.get(&format!("{many}_links")).and_then(Value::as_array);
    let next = links.into_iter().flatten().find(|link| link.get("rel").and_then(Value::as_str) == Some("next"));
    let href = next.and_then(|link| link.get("href")).or_else(|| body.get("next"));
    href.and_then(Value::as_str).map(str::to_owned)
}
fn marker_in(link: &str) -> Option<String> {
    let query = link.split_once('?')?.1;
    let value = query.split('&').find_map(|pair| pair.strip_prefix("marker="))?;
    percent_decode_str(value).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[async_trait]
impl Cloud for Client {
    async fn identity(&self) -> Result<Identity, Fault> {
        let token = self.connection.token().await?;
        let (project, region, user) = (token.project.clone(), token.region.clone(), token.user.clone());
        Ok(Identity { project, region, user, date: token.date })
    }

    async fn extensions(&self) -> Result<Extensions, Fault> {
        #[derive(Deserialize)]
        struct Reply {
            extensions: Vec<Extension>,
        }
        #[derive(Deserialize)]
        struct Extension {
            alias: String,
        }
        let mut held = self.extensions.lock().await;
        let now = self.connection.clock.boot();
        if let Some((asked, known)) = &*held
            && now.since(*asked) < EXTENSIONS_LAST
        {
            return Ok(known.clone());
        }
        let response = self.read(Service::Network, "/extensions".into()).await.map_err(ReadError::fault)?;
        let Reply { extensions } = reply::decode(&response).map_err(transient)?;
        let known: Extensions = extensions.into_iter().map(|it| it.alias).collect();
        *held = Some((now, known.clone()));
        Ok(known)
    }

    async fn compute_version(&self) -> Result<u32, Fault> {
        #[derive(Deserialize)]
        struct Reply {
            version: Versions,
        }
        #[derive(Deserialize)]
        struct Versions {
            version: String,
        }
        let mut held = self.version.lock().await;
        if let Some(version) = *held {
            return Ok(version);
        }
        let response = self.connection.read(&Ask::get(Service::Compute, "/".into())).await.map_err(ReadError::fault)?;
        let Reply { version } = reply::decode(&response).map_err(transient)?;
        let minor = version.version.strip_prefix("2.").and_then(|minor| minor.parse::<u32>().ok());
        let minor = minor.ok_or_else(|| Fault::Transient("Nova names no version 2.x".into()))?.min(NEWEST_COMPUTE);
        *held = Some(minor);
        Ok(minor)
    }

    async fn list(&self, kind: Kind) -> Result<Inventory, Fault> {
        let Words { service, list, many, .. } = words(kind);
        // Neutron shows an administrator everybody's things.
        let query = match service {
            Service::Network => vec![("project_id", self.identity().await?.project)],
            _ => Query::new(),
        };
        let listed = self.pages(service, list, many, &query).await?;
        let items = listed.values.into_iter().map(|value| wire::item(kind, value)).collect::<Result<_, _>>();
        Ok(Inventory { date: listed.date, items: items.map_err(transient)? })
    }

    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Item>, Fault> {
        let Words { service, path, one, .. } = words(kind);
        let shown = self.show(service, format!("{path}/{}", encode(id)), one).await?;
        shown.map(|value| wire::item(kind, value).map_err(transient)).transpose()
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
        let response = match self.send(service, Method::POST, path.to_owned(), Some(&body), Some(not_after)).await {
            Ok(response) => response,
            Err(outcome) => return recast(outcome),
        };
        if !response.status().is_success() {
            return failed(&response);
        }
        let made: Map<String, Value> = match reply::decode(&response) {
            Ok(made) => made,
            Err(Unreadable(what)) => return Outcome::Unknown(what),
        };
        let Some(made) = made.get(one) else {
            return Outcome::Unknown(format!("{}: no {one} in the reply", reply::about(&response)));
        };
        match made.get("id").and_then(Value::as_str) {
            Some(id) => Outcome::Done(Made { id: id.to_owned(), item: wire::item(kind, made.clone()).ok() }),
            None => Outcome::Unknown(format!("{}: no id in the reply", reply::about(&response))),
        }
    }

    async fn mark(&self, kind: Kind, id: &str, mark: &Pairs) -> Outcome<()> {
        let Words { service, path, one, .. } = words(kind);
        let at = format!("{path}/{}", encode(id));
        if let Kind::Server | Kind::Volume = kind {
            return self.mark_metadata(kind, id, mark).await;
        }
        let description = match self.get(kind, id).await {
            Ok(Some(Item::Port(port))) => port.description,
            Ok(Some(Item::Trunk(trunk))) => trunk.description,
            Ok(Some(Item::FloatingIp(address))) => address.description,
            Ok(_) => return Outcome::Refused(Fault::Transient(format!("{} {id} is gone", kind.name()))),
            Err(fault) => return Outcome::Refused(fault),
        };
        let body = json!({ one: {"description": describe(&description, mark)} });
        self.write(service, Method::PUT, at, Some(&body)).await
    }

    async fn set_tags(&self, kind: Kind, id: &str, tags: &BTreeSet<String>) -> Outcome<()> {
        let Words { service, path, .. } = words(kind);
        let body = json!({"tags": tags});
        self.write(service, Method::PUT, format!("{path}/{}/tags", encode(id)), Some(&body)).await
    }

    async fn delete(&self, kind: Kind, id: &str) -> Outcome<()> {
        let Words { service, path, .. } = words(kind);
        if kind == Kind::Trunk {
            let freed = self.free_sub_ports(id).await;
            if freed != Outcome::Done(()) {
                return freed;
            }
        }
        match self.send(service, Method::DELETE, format!("{path}/{}", encode(id)), None, None).await {
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

    async fn gateways(&self, network: &str) -> Result<BTreeSet<Id>, Fault> {
        let query = vec![("network_id", network.to_owned())];
        let ports = self.pages(Service::Network, "/ports", "ports", &query).await?;
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let of_router = |port: &&Value| {
            text(port, "device_owner").is_some_and(|it| it.starts_with("network:") && it.contains("router_interface"))
        };
        let routers: BTreeSet<Id> =
            ports.values.iter().filter(of_router).filter_map(|port| text(port, "device_id")).collect();
        let mut gateways = BTreeSet::new();
        for router in routers {
            let shown = self.show(Service::Network, format!("/routers/{}", encode(&router)), "router").await?;
            let gateway =
                shown.as_ref().and_then(|it| it.get("external_gateway_info")).and_then(|it| text(it, "network_id"));
            gateways.extend(gateway);
        }
        Ok(gateways)
    }

    async fn quotas(&self) -> Result<Vec<(String, i64, i64)>, Fault> {
        let response = self.read(Service::Compute, "/limits".into()).await.map_err(ReadError::fault)?;
        let body: Value = reply::decode(&response).map_err(transient)?;
        let number = |key: &str| body["limits"]["absolute"].get(key).and_then(Value::as_i64);
        let pairs = [
            ("instances", "totalInstancesUsed", "maxTotalInstances"),
            ("cores", "totalCoresUsed", "maxTotalCores"),
            ("RAM in MB", "totalRAMUsed", "maxTotalRAMSize"),
        ];
        let mut all: Vec<(String, i64, i64)> = pairs
            .iter()
            .filter_map(|(name, used, most)| Some(((*name).to_owned(), number(used)?, number(most)?)))
            .collect();
        let project = self.identity().await?.project;
        let shown = self.show(Service::Network, format!("/quotas/{}/details", encode(&project)), "quota").await?;
        let ports = shown.as_ref().and_then(|it| it.get("port"));
        let number = |key: &str| ports.and_then(|it| it.get(key)).and_then(Value::as_i64);
        all.extend(number("used").zip(number("limit")).map(|(used, most)| ("ports".to_owned(), used, most)));
        Ok(all)
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
/// A fault for a request that no cloud could serve.
pub fn impossible(message: String) -> Fault {
    Fault::Terminal { reason: INVALID_REQUEST, message }
}
