//! The fields of status beside the conditions, and the conditions of this controller's own. Pure.
use crate::api::{AddressPair, OpenStackServerSpec, ResolvedServer};
use crate::cloud::{Item, Kind, Port, Server};
use crate::estate::Seen;
use crate::names::{self, reason};
use common::conditions::{self, Statement, Tri};
use common::engine::estate::{Fault, Ids};
use common::engine::report::{Progress, Report};
use common::identity::Slot;
use common::names::reason as shared;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};
use std::net::IpAddr;

/// What became of the credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Not asked in this pass.
    Unasked,
    /// They were accepted.
    Granted,
    /// They were not, or cannot be read.
    Refused(String),
}
const EXTERNAL: &str = "ExternalIP";

/// What became of the floating address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Floating {
    /// None is asked for, or it was not looked at.
    Unasked,
    /// It is on the server.
    Ready,
    /// The pool has given none yet.
    Waiting(String),
    /// It cannot be put on the server.
    Failed(String),
}

/// What a pass came to, for status.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// The engine's report.
    pub report: &'a Report,
    /// What was seen in the cloud.
    pub seen: &'a Seen,
    /// What the names lead to.
    pub resolved: Option<&'a ResolvedServer>,
    /// The owner is on its way out.
    pub deleting: bool,
    /// Credentials.
    pub access: Access,
    /// Floating address.
    pub floating: Floating,
    /// Addresses from outside that status has, where this pass could not look: Nova's lists tell of them late.
    pub known_outside: Vec<Value>,
    /// The spec was refused again and again.
    pub hopeless: Option<String>,
    /// What differs from the spec; none if nothing was compared.
    pub drift: Option<Vec<String>>,
}
impl Scene<'_> {
    fn server_id(&self) -> Option<&String> {
        self.report.ids.get(&crate::plan::server_slot()?)
    }
    fn server(&self) -> Option<&Server> {
        self.seen.server(self.server_id()?)
    }
    /// The engine has made sure that the recorded server is no more.
    fn is_lost(&self) -> bool {
        let Some(id) = self.server_id() else { return false };
        let refused =
            self.report.standing.iter().any(|it| it.slot.kind() == Kind::Server.name() && it.state == "refused");
        refused && self.seen.missing.contains(&(Kind::Server, id.clone()))
    }
    /// Why the owner has failed, if it has.
    pub fn failure(&self) -> Option<(&'static str, String)> {
        if self.deleting {
            return None;
        }
        if self.is_lost() {
            return Some((reason::INSTANCE_NOT_FOUND, "the server was unexpectedly deleted".to_owned()));
        }
        if let Some(why) = &self.hopeless {
            return Some((reason::INVALID_SPEC, why.clone()));
        }
        let server = self.server()?;
        match server.status.as_str() {
            "ERROR" => Some((error_reason(server), error_text(server))),
            "DELETED" | "SOFT_DELETED" => Some((reason::INSTANCE_DELETED, format!("server {} was deleted", server.id))),
            _ => None,
        }
    }
}
fn error_reason(server: &Server) -> &'static str {
    let no_host = server.fault.as_ref().is_some_and(|text| text.contains("No valid host"));
    if no_host { reason::NO_VALID_HOST } else { reason::INSTANCE_STATE_ERROR }
}
fn error_text(server: &Server) -> String {
    let why = server.fault.as_deref().unwrap_or("Nova gives no reason");
    format!("server {} is in ERROR: {why}", server.id)
}

/// What is merged into status after a pass.
pub fn fields(scene: &Scene<'_>) -> Value {
    let mut fields = Map::new();
    fields.extend(scene.resolved.and_then(|it| Some(("resolved".to_owned(), serde_json::to_value(it).ok()?))));
    fields.extend(scene.server_id().map(|id| ("instanceID".to_owned(), json!(id))));
    if let Some(server) = scene.server() {
        fields.insert("ready".to_owned(), json!(server.status == "ACTIVE" && !scene.deleting));
        fields.insert("instanceState".to_owned(), json!(server.status));
        let told = addresses(server);
        if tells_all(&told, &scene.known_outside) {
            fields.insert("addresses".to_owned(), told);
        }
    } else if scene.is_lost() {
        fields.insert("ready".to_owned(), json!(false));
        fields.insert("instanceState".to_owned(), json!("DELETED"));
    } else {
        // Required by readers from the first write on; a pass that did not look changes nothing else.
        let never = scene.report.view.as_ref().is_some_and(|view| view.conditions.is_empty());
        fields.extend(never.then(|| ("ready".to_owned(), json!(false))));
    }
    if !scene.report.ids.is_empty() {
        fields.insert("resources".to_owned(), resources(&scene.report.ids));
    }
    Value::Object(fields)
}
fn resources(ids: &Ids) -> Value {
    let number = |slot: &Slot| slot.as_str().rsplit('-').next().and_then(|text| text.parse::<u32>().ok());
    let of = |kind: Kind| -> Value {
        let mut all: Vec<_> = ids.iter().filter(|(slot, _)| Kind::of(slot) == Some(kind)).collect();
        // The root volume has no number and comes first.
        all.sort_by_key(|(slot, _)| number(slot));
        all.into_iter().map(|(_, id)| json!({"id": id})).collect()
    };
    json!({"ports": of(Kind::Port), "trunks": of(Kind::Trunk), "volumes": of(Kind::Volume)})
}
/// What status says of addresses from outside.
pub fn outside(status: Option<&Value>) -> Vec<Value> {
    let all = status.and_then(|it| it["addresses"].as_array()).into_iter().flatten();
    all.filter(|it| it["type"] == EXTERNAL).cloned().collect()
}
fn tells_all(told: &Value, known: &[Value]) -> bool {
    known.iter().all(|it| told.as_array().is_some_and(|told| told.contains(it)))
}
/// By network, IPv4 first, unknown origins left out; then the name.
pub fn addresses(server: &Server) -> Value {
    let mut all = Vec::new();
    for list in server.addresses.values() {
        let mut list: Vec<_> = list.iter().collect();
        list.sort_by_key(|it| it.version);
        for it in list {
            let type_ = match it.origin.as_str() {
                "fixed" => "InternalIP",
                "floating" => EXTERNAL,
                _ => continue,
            };
            all.push(json!({"type": type_, "address": it.address}));
        }
    }
    all.push(json!({"type": "InternalDNS", "address": server.name}));
    Value::Array(all)
}

/// The conditions of this controller's own.
pub fn statements(scene: &Scene<'_>, old: &[Condition], spec: &OpenStackServerSpec) -> Vec<Statement> {
    let mut out = Vec::new();
    match &scene.access {
        Access::Unasked => {}
        Access::Granted => out.push(Statement::new(names::AUTHENTICATED, Tri::True, reason::READY, "")),
        Access::Refused(why) => {
            out.push(Statement::new(names::AUTHENTICATED, Tri::False, reason::AUTHENTICATION_FAILED, why.clone()));
        }
    }
    match &scene.floating {
        Floating::Unasked => {}
        Floating::Ready => out.push(Statement::new(names::FLOATING_ADDRESS_READY, Tri::True, reason::READY, "")),
        Floating::Waiting(why) => {
            out.push(Statement::new(
                names::FLOATING_ADDRESS_READY,
                Tri::False,
                reason::WAITING_FOR_ADDRESS,
                why.clone(),
            ));
        }
        Floating::Failed(why) => {
            out.push(Statement::new(names::FLOATING_ADDRESS_READY, Tri::False, reason::FLOATING_IP_ERROR, why.clone()));
        }
    }
    let failed_before = conditions::find(old, names::FAILED).is_some_and(|it| it.status == "True");
    match scene.failure() {
        Some((why, message)) => out.push(Statement::new(names::FAILED, Tri::True, why, message)),
        // Only an instance that was seen to be well again ends it: a pass that saw nothing knows nothing.
        None if failed_before && scene.server().is_some_and(|it| it.status == "ACTIVE") => {
            out.push(Statement::new(names::FAILED, Tri::False, "Recovered", "the instance was brought back"));
        }
        None => {}
    }
    if let Some(drift) = &scene.drift {
        // Nobody needs to be told that what never drifted has not drifted.
        out.extend(match drift.as_slice() {
            [] if conditions::find(old, names::DRIFTED).is_none() => None,
            [] => Some(Statement::new(names::DRIFTED, Tri::False, reason::IN_SYNC, "")),
            all => Some(Statement::new(names::DRIFTED, Tri::True, reason::DIFFERS, all.join("; "))),
        });
    }
    out.extend(instance_ready(scene, spec));
    out
}

/// What the state of the server means; `None` leaves the condition as it is.
fn instance_ready(scene: &Scene<'_>, spec: &OpenStackServerSpec) -> Option<Statement> {
    let say = |status, why: &str, message: String| Some(Statement::new(names::INSTANCE_READY, status, why, message));
    if scene.deleting {
        return match &scene.report.progress {
            Progress::Failed(fault) => say(Tri::False, reason::INSTANCE_DELETE_FAILED, fault.to_string()),
            _ => say(Tri::False, shared::DELETING, String::new()),
        };
    }
    if let Some((why, message)) = scene.failure() {
        return say(Tri::False, why, message);
    }
    if let Some(server) = scene.server() {
        return match server.status.as_str() {
            "ACTIVE" => say(Tri::True, reason::READY, String::new()),
            "BUILD" | "" => say(Tri::False, reason::INSTANCE_NOT_READY, format!("server {} is being built", server.id)),
            other => say(Tri::Unknown, reason::INSTANCE_NOT_READY, format!("instance state is not handled: {other}")),
        };
    }
    let made_ports = scene.report.ids.keys().filter(|slot| Kind::of(slot) == Some(Kind::Port)).count();
    let step = if made_ports < spec.ports.len() { reason::PORT_CREATE_FAILED } else { reason::INSTANCE_CREATE_FAILED };
    match &scene.report.progress {
        Progress::Done | Progress::Gone | Progress::Stale(_) | Progress::Blocked { reason: shared::PAUSED, .. } => None,
        Progress::Waiting { reason: why, message, .. } => {
            let why = if *why == shared::PROGRESSING { reason::INSTANCE_NOT_READY } else { why };
            say(Tri::False, why, message.clone())
        }
        Progress::Blocked { reason: why, message } => say(Tri::False, why, message.clone()),
        Progress::Failed(fault) => match fault {
            Fault::Terminal { reason: shared::INVALID_REQUEST | reason::CREATE_REFUSED, message } => {
                say(Tri::False, step, message.clone())
            }
            Fault::Terminal { reason: why, message } => say(Tri::False, why, message.clone()),
            Fault::Denied(what) if scene.access == Access::Granted => {
                say(Tri::False, reason::POLICY_FORBIDDEN, what.clone())
            }
            Fault::Denied(what) => say(Tri::False, reason::AUTHENTICATION_FAILED, what.clone()),
            Fault::Transient(why) => say(Tri::False, reason::CLOUD_UNAVAILABLE, why.clone()),
            Fault::Throttled(_) => say(Tri::False, reason::CLOUD_UNAVAILABLE, "the cloud asks to slow down".to_owned()),
        },
    }
}

/// What in the cloud differs from the spec and is left as it is.
pub fn drift(spec: &OpenStackServerSpec, resolved: &ResolvedServer, ids: &Ids, seen: &Seen) -> Vec<String> {
    let mut all = Vec::new();
    let server = crate::plan::server_slot().and_then(|slot| ids.get(&slot));
    for (index, (wanted, port)) in resolved.ports.iter().zip(&spec.ports).enumerate() {
        let Some(id) = crate::plan::port_slot(index).and_then(|slot| ids.get(&slot)) else { continue };
        let Some(Item::Port(is)) = seen.items.get(&(Kind::Port, id.clone())) else { continue };
        let groups: std::collections::BTreeSet<_> = wanted.security_groups.iter().cloned().collect();
        if !groups.is_empty() && groups != is.security_groups {
            all.push(format!("security groups of port {id}"));
        }
        if port.enable_port_security != Some(false) && port.allowed_address_pairs.iter().any(|it| !allows(is, it)) {
            all.push(format!("allowed address pairs of port {id}"));
        }
        if is.up != port.admin_state_up.unwrap_or(true) {
            all.push(format!("administrative state of port {id}"));
        }
        if let Some(server) = server
            && is.device != **server
        {
            all.push(format!("port {id} is not plugged into the server"));
        }
    }
    if let Some(server) = server.and_then(|id| seen.server(id)) {
        for metadata in &spec.server_metadata {
            if server.metadata.get(&metadata.key) != Some(&metadata.value) {
                all.push(format!("metadata {} of the server", metadata.key));
            }
        }
        let volumes = ids.iter().filter(|(slot, _)| Kind::of(slot) == Some(Kind::Volume));
        for (slot, id) in volumes.filter(|(_, id)| !server.volumes.contains(id)) {
            all.push(format!("{slot} ({id}) is not attached to the server"));
        }
        if is_resized(server, spec, resolved) {
            all.push("flavor of the server".to_owned());
        }
        // Volumes beside those of the spec are nobody's mistake: a node's are attached by its storage driver.
        all.extend(seen.plugged.iter().map(|port| format!("port {port} is plugged into the server, too")));
    }
    all
}
/// Is the server of another flavor than the one it was made of? An id in the spec cannot be compared with a name.
fn is_resized(server: &Server, spec: &OpenStackServerSpec, resolved: &ResolvedServer) -> bool {
    match (&server.flavor.id, &server.flavor.name) {
        (Some(id), _) => resolved.flavor_id.as_ref().is_some_and(|wanted| wanted != id),
        (None, Some(name)) => spec.flavor_id.is_none() && spec.flavor.as_ref().is_some_and(|wanted| wanted != name),
        (None, None) => false,
    }
}
/// Does a port have this pair? Those that it has beside are somebody else's: network plugins add their own.
fn allows(port: &Port, wanted: &AddressPair) -> bool {
    // Neutron has its own way to write an address.
    let plain = |text: &str| {
        let (address, length) = text.split_once('/').unwrap_or((text, ""));
        let address = address.parse::<IpAddr>().map_or_else(|_| address.to_owned(), |it| it.to_string());
        let whole = if address.contains(':') { "128" } else { "32" };
        (address, if length.is_empty() { whole.to_owned() } else { length.to_owned() })
    };
    let mac = wanted.mac_address.as_deref();
    let fits = |it: &&(String, String)| plain(&it.0) == plain(&wanted.ip_address);
    port.pairs.iter().filter(fits).any(|it| mac.is_none_or(|mac| it.1.eq_ignore_ascii_case(mac)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_pair_is_told_by_its_address_and_by_a_mac_that_was_asked_for() {
        let pairs =
            vec![("10.0.0.5".to_owned(), "fa:16:3e:00:00:01".to_owned()), ("fd00::1".to_owned(), "x".to_owned())];
        let port = Port { pairs, ..Port::default() };
        let allows = |address: &str, mac: Option<&str>| {
            let pair = AddressPair { ip_address: address.into(), mac_address: mac.map(str::to_owned) };
            super::allows(&port, &pair)
        };
        assert!(allows("10.0.0.5", None) && allows("10.0.0.5/32", None) && allows("FD00:0::1", None));
        assert!(allows("10.0.0.5", Some("FA:16:3E:00:00:01")) && !allows("10.0.0.5", Some("fa:16:3e:00:00:02")));
        assert!(!allows("10.0.0.6", None) && !allows("10.0.0.5/24", None));
    }
    use crate::cloud::Address;

    #[test]
    fn addresses_go_by_network_then_version_and_what_is_unknown_is_left_out() {
        let address =
            |text: &str, version: u8, origin: &str| Address { address: text.into(), version, origin: origin.into() };
        let networks = [
            ("b", vec![address("fd00::2", 6, "fixed"), address("10.1.0.2", 4, "fixed")]),
            (
                "a",
                vec![
                    address("10.0.0.2", 4, "fixed"),
                    address("203.0.113.2", 4, "floating"),
                    address("192.0.2.2", 4, "borrowed"),
                ],
            ),
        ];
        let addresses = networks.into_iter().map(|(name, list)| (name.to_owned(), list)).collect();
        let told = super::addresses(&Server { name: "srv".into(), addresses, ..Server::default() });
        let expected = json!([
            {"type": "InternalIP", "address": "10.0.0.2"}, {"type": "ExternalIP", "address": "203.0.113.2"},
            {"type": "InternalIP", "address": "10.1.0.2"}, {"type": "InternalIP", "address": "fd00::2"},
            {"type": "InternalDNS", "address": "srv"}]);
        assert_eq!(told, expected);
        // Where a pass could not look at the pool's address, only a list that has it replaces what was said before.
        let before = json!({"addresses": [{"type": "ExternalIP", "address": "203.0.113.9"}, {"type": "InternalIP", "address": "10.0.0.9"}]});
        assert!(tells_all(&told, &[]) && tells_all(&told, &outside(Some(&json!({"addresses": told})))));
        assert!(!tells_all(&told, &outside(Some(&before))));
    }
}
