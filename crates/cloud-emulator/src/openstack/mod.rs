//! OpenStack: Keystone, Nova, Neutron, Cinder, Glance and Octavia as far as servers, ports, trunks, volumes, floating IPs and
//! members of pools go. Written from what the services document and do, on the kit; strict where they are strict.
//!
//! Everything lies behind one address: `/identity`, `/compute/v2.1`, `/networking` (unversioned in the catalog, as many clouds
//! write it), `/image`, `/volume/v3/<project>`, `/load-balancer`. A principal's name is the id of an application credential and the name of a
//! user; its token is the secret of the one and the password of the other. The account is the project.
//!
//! One emulator is one region. `settings.regions` names others of the same cloud, each an emulator of its own: the catalog lists them after
//! this one, and their tokens are good here. What stands in one region has other ids than in the next.
//!
//! `settings.lacks` takes names of Neutron's extensions, `load-balancer` (there is no Octavia), `block-storage` (there is no Cinder), `microversions` (Nova is an old one), `hard-delete` (deleted
//! servers stay, soft deleted) and `force-delete` (nobody may end them). Volumes of type `multiattach` take several servers. `settings.quotas` counts things, and `cores`, `ram` and `gigabytes`. Set by hand as a tag, `!status` changes what a server's or volume's state looks like, and `!flavor` what a server was resized to.
mod balancers;
mod creates;
mod fields;
mod identity;
mod kinds;
mod quotas;
mod replies;
mod scenery;
mod show;
mod store;
mod writes;

use crate::kit::dice::Dice;
use crate::kit::{
    Answer, ByHandError, Call, Cloud, Emulator, Kit, Naming, Plant, Principal, Principals, Refusal, Request, Settings,
    Tags, Truth, Vocabulary,
};
use http::StatusCode;
use http::header::HeaderName;
use identity::Tokens;
use jiff::Timestamp;
use kinds::{ALL, Kind, Service, VERBS, WORDS};
use replies::Refused;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use store::{Maker, Store};

/// OpenStack on its kit.
pub type OpenStackCloud = Emulator<OpenStackState>;

impl OpenStackCloud {
    /// A cloud with its scenery; nobody is admitted yet.
    pub fn new(settings: Settings, seed: u64) -> Self {
        let mut state = OpenStackState::default();
        state.furnish(&settings, &mut Dice::new(seed ^ 0x5ce4_e4f1));
        Emulator::on_kit(state, settings, seed)
    }
}

/// Extensions of Neutron that this cloud has unless it lacks them.
const EXTENSIONS: [&str; 8] = [
    "standard-attr-tag",
    "tag-ports-during-bulk-creation",
    "trunk",
    "port-security",
    "allowed-address-pairs",
    "security-group",
    "router",
    "uplink-status-propagation",
];
/// The newest microversion of Nova: of a recent one, and of one that lacks `microversions`.
fn newest_compute(settings: &Settings) -> u32 {
    if has(settings, "microversions") { 96 } else { 38 }
}

/// What the cloud holds.
#[derive(Debug, Default)]
pub struct OpenStackState {
    store: Store,
    tokens: Tokens,
    failures: [VecDeque<String>; ALL.len()],
    next_address: u32,
    next_floating: u32,
}

fn has(settings: &Settings, what: &str) -> bool {
    !settings.lacks.contains(what)
}
/// The minor number of the microversion that a request asks for.
fn version_of(request: &Request) -> u32 {
    let header = |name: &str| request.headers().get(name).and_then(|it| it.to_str().ok());
    let asked = header("openstack-api-version").and_then(|it| it.strip_prefix("compute "));
    let asked = asked.or_else(|| header("x-openstack-nova-api-version"));
    asked.and_then(|it| it.strip_prefix("2.")).and_then(|it| it.parse().ok()).unwrap_or(1)
}

impl OpenStackState {
    fn dispatch(&mut self, settings: &Settings, dice: &mut Dice, call: Call<'_>) -> Result<Answer, Refused> {
        let request = call.request;
        self.store.settle(settings, dice, call.now);
        match (call.naming.kind, call.naming.verb) {
            ("tokens", "create") => return self.tokens.give(settings, dice, call),
            ("versions", "get") => return Ok(versions(request, newest_compute(settings))),
            _ => {}
        }
        if !self.tokens.accepts(settings, request, call.now) {
            return Err(Refused::unauthorized());
        }
        let service = kinds::split(request.uri().path()).map(|it| it.0);
        let missing = [(Service::Balancer, "load-balancer"), (Service::Volume, "block-storage")];
        if missing.into_iter().any(|(of, name)| service == Some(of) && !has(settings, name)) {
            return Ok(Answer::new(StatusCode::NOT_FOUND, b"<html><body>404 Not Found</body></html>".to_vec()));
        }
        match (call.naming.kind, call.naming.verb) {
            ("extensions", "list") => return Ok(Self::extensions(settings)),
            ("limits", "get") => return Ok(self.limits(settings, call)),
            ("os-availability-zone", "list") => return Ok(zones()),
            ("types", "list") => return Ok(types()),
            _ => {}
        }
        let Some(kind) = ALL.into_iter().find(|kind| kind.plural() == call.naming.kind) else {
            return Ok(Answer::new(StatusCode::NOT_FOUND, b"<html><body>404 Not Found</body></html>".to_vec()));
        };
        if kind == Kind::Trunk && !has(settings, "trunk") {
            return Err(Refused::new(
                Service::Network,
                StatusCode::NOT_FOUND,
                "HTTPNotFound",
                "The resource could not be found.".into(),
            ));
        }
        let version = version_of(request);
        if kind.service() == Service::Compute && version > newest_compute(settings) {
            let message = format!("Version 2.{version} is not supported by the API.");
            return Err(Refused::new(Service::Compute, StatusCode::NOT_ACCEPTABLE, "", message));
        }
        match (call.naming.verb, call.naming.thing) {
            ("list", _) => show::list(&self.store, settings, kind, call, version),
            ("create", _) => self.create(settings, dice, kind, call),
            ("get", Some(id)) => {
                let found = self.store.seen(&call.principal.account, kind, id, call.now);
                let found =
                    found.filter(|it| it.readable_from <= call.now).ok_or_else(|| Refused::not_found(kind, id))?;
                let shown = show::thing(&self.store, found, &call.principal.account, call.now, false, version);
                Ok(replies::one(StatusCode::OK, kind, shown))
            }
            ("update", Some(id)) => self.update(kind, id, call),
            ("tag", Some(id)) => self.tag(settings, kind, id, call),
            ("mark", Some(id)) => self.mark(kind, id, call),
            ("action" | "free", Some(id)) => self.action(settings, dice, kind, id, call),
            ("delete", Some(id)) => self.delete(settings, dice, kind, id, call),
            _ => Err(Refused::new(
                kind.service(),
                StatusCode::NOT_FOUND,
                "HTTPNotFound",
                "The resource could not be found.".into(),
            )),
        }
    }
    fn extensions(settings: &Settings) -> Answer {
        let has = EXTENSIONS.iter().filter(|alias| has(settings, alias));
        let list: Vec<Value> = has.map(|alias| json!({"alias": alias, "name": alias, "description": "", "links": [], "updated": "2026-01-01T00:00:00-00:00"})).collect();
        Answer::new(StatusCode::OK, json!({"extensions": list}).to_string().into_bytes())
    }
    fn by_hand(&mut self, id: &str, now: Timestamp) -> Result<&mut store::Thing, ByHandError> {
        self.store.get_mut(id, now).ok_or_else(|| ByHandError(format!("no thing {id:?}")))
    }
}

/// One that takes servers, and one that does not.
fn zones() -> Answer {
    let zone =
        |name: &str, available: bool| json!({"zoneName": name, "zoneState": {"available": available}, "hosts": null});
    let body = json!({"availabilityZoneInfo": [zone("nova", true), zone("closed", false)]});
    Answer::new(StatusCode::OK, body.to_string().into_bytes())
}
/// Types of volumes.
fn types() -> Answer {
    let of = |id: &str, name: &str| json!({"id": id, "name": name, "is_public": true});
    let all = [
        of("7e000000-0000-4000-8000-000000000001", "__DEFAULT__"),
        of("7e000000-0000-4000-8000-000000000002", "multiattach"),
    ];
    Answer::new(StatusCode::OK, json!({"volume_types": all}).to_string().into_bytes())
}
fn versions(request: &Request, newest_compute: u32) -> Answer {
    let body = match kinds::split(request.uri().path()) {
        Some((Service::Compute, _)) => {
            json!({"version": {"id": "v2.1", "status": "CURRENT", "version": format!("2.{newest_compute}"), "min_version": "2.1", "links": []}})
        }
        _ => json!({"versions": {"values": [{"id": "v3.14", "status": "stable", "links": []}]}}),
    };
    Answer::new(StatusCode::OK, body.to_string().into_bytes())
}

impl Cloud for OpenStackState {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary { kinds: &WORDS, verbs: &VERBS }
    }
    fn request_id_header(&self) -> HeaderName {
        HeaderName::from_static("x-openstack-request-id")
    }
    fn name<'r>(&self, request: &'r Request) -> Naming<'r> {
        kinds::name(request)
    }
    fn identify(&self, request: &Request, principals: &Principals) -> Option<Arc<Principal>> {
        match kinds::name(request) {
            Naming { kind: "tokens", .. } => identity::prove(request, principals),
            // Versions are told to everybody.
            Naming { kind: "versions", .. } => Some(Arc::new(Principal { name: "anybody".into(), account: "".into() })),
            _ => Tokens::holder(request, principals),
        }
    }
    fn permission(&self, naming: &Naming<'_>) -> Option<String> {
        let free =
            naming.verb.is_empty() || matches!(naming.kind, "tokens" | "versions" | "extensions" | "limits" | "");
        (!free).then(|| format!("{}.{}", naming.kind, naming.verb))
    }
    fn serve(&mut self, settings: &Settings, dice: &mut Dice, call: Call<'_>) -> Answer {
        self.dispatch(settings, dice, call).unwrap_or_else(Answer::from)
    }
    fn refuse(&self, refusal: &Refusal) -> Answer {
        match refusal {
            Refusal::Unauthorized => Refused::unauthorized().into(),
            Refusal::Forbidden(permission) => Refused::forbidden(permission).into(),
            Refusal::Throttled => Refused::of_status(StatusCode::TOO_MANY_REQUESTS),
            Refusal::Status(status) => Refused::of_status(*status),
        }
    }
    fn truth(&self, now: Timestamp) -> Vec<Truth> {
        self.store.all().iter().filter(|it| it.kind.is_made() && it.project.is_some()).map(|it| it.truth(now)).collect()
    }
    fn plant(&mut self, kit: &mut Kit, now: Timestamp, plant: Plant) -> Result<String, ByHandError> {
        let kind = Kind::by_word(&plant.kind).ok_or_else(|| ByHandError(format!("no kind {:?}", plant.kind)))?;
        let (settings, dice) = kit.split();
        self.store.settle(settings, dice, now);
        let on = plant.fields.get("port_id").and_then(Value::as_str).unwrap_or_default();
        if kind == Kind::Trunk && self.store.of_kind(Kind::Trunk).any(|it| it.text("port_id") == on && !it.gone(now)) {
            return Err(ByHandError(format!("port {on} has a trunk already")));
        }
        let named = |field: &str| plant.fields.get(field).cloned().unwrap_or_default();
        let spot = format!(
            "{}/{}:{}",
            named("pool_id").as_str().unwrap_or_default(),
            named("address").as_str().unwrap_or_default(),
            named("protocol_port")
        );
        if kind == Kind::Member
            && self.store.of_kind(Kind::Member).any(|it| !it.gone(now) && it.natural_key().as_deref() == Some(&spot))
        {
            return Err(ByHandError(format!("{spot} is taken already")));
        }
        let project = plant.account.unwrap_or_else(|| settings.account.clone());
        let maker = Maker {
            project: Some(project.into()),
            name: plant.created_by.into(),
            planted: true,
            born: plant.born.unwrap_or(now),
        };
        let mut body = plant.fields;
        // Where it stands: the bodies of creates name these by other words.
        let server = body.remove("server_id").and_then(|it| it.as_str().map(str::to_owned));
        let ports: Vec<String> =
            body.remove("plugged").and_then(|it| serde_json::from_value(it).ok()).unwrap_or_default();
        if let Some(Value::Object(server)) = body.remove("server") {
            body = server;
        }
        for noise in ["networks", "block_device_mapping_v2", "flavorRef", "imageRef", "sub_ports_of"] {
            body.remove(noise);
        }
        if kind == Kind::Member {
            body.entry("tags").or_insert_with(|| json!([]));
            body.entry("name").or_insert_with(|| json!(""));
            // As a create names it.
            if let Some(Value::Object(member)) = body.remove("member") {
                body.extend(member);
            }
            if let Some(pool) = body.remove("pool") {
                body.insert("pool_id".into(), pool);
            }
        } else if kind.service() == Service::Network {
            body.entry("tags").or_insert_with(|| json!([]));
            body.entry("description").or_insert_with(|| json!(""));
        } else {
            body.entry("metadata").or_insert_with(|| json!({}));
            body.entry("name").or_insert_with(|| json!(""));
        }
        let id = self.store.make(settings, dice, maker, kind, body, None);
        if let Some(thing) = self.store.get_mut(&id, now) {
            if !plant.tags.is_empty() {
                thing.retag(&plant.tags, &[]);
            }
            thing.server = server.map(|server| (server, now));
        }
        for port in ports {
            if let Some(port) = self.store.get_mut(&port, now) {
                port.server = Some((id.clone(), now));
                port.goes_with_server = port.kind == Kind::Volume;
            }
        }
        Ok(id)
    }
    fn delete_by_hand(&mut self, kit: &mut Kit, now: Timestamp, id: &str) -> Result<(), ByHandError> {
        self.by_hand(id, now)?;
        let (settings, dice) = kit.split();
        self.store.end(settings, dice, id, None, now);
        self.store.settle(settings, dice, now);
        Ok(())
    }
    fn retag_by_hand(
        &mut self,
        _kit: &mut Kit,
        now: Timestamp,
        id: &str,
        mut set: Tags,
        remove: &[String],
    ) -> Result<(), ByHandError> {
        if id == "tokens" {
            self.tokens.revoke_all();
            return Ok(());
        }
        let thing = self.by_hand(id, now)?;
        if let Some(status) = set.remove("!status") {
            thing.body.insert("status".into(), json!(status));
        }
        if let Some(flavor) = set.remove("!flavor") {
            thing.body.insert("flavor".into(), json!({"original_name": flavor}));
        }
        if remove.iter().any(|key| key == "!status") {
            thing.body.remove("status");
        }
        thing.retag(&set, remove);
        Ok(())
    }
    fn fail_next_build(&mut self, kind: &str, reason: &str, times: u32) -> Result<(), ByHandError> {
        let kind = Kind::by_word(kind).filter(|kind| matches!(kind, Kind::Server | Kind::Volume | Kind::Port));
        let kind =
            kind.ok_or_else(|| ByHandError("servers and volumes are built, and ports can find no address".to_owned()))?;
        for _ in 0..times {
            self.failures[kind.index()].push_back(reason.to_owned());
        }
        Ok(())
    }
}
