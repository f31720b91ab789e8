//! The emulated OpenStack as the simulator needs it: exchanges, deeds, the truth with its history of marks.
use cloud_emulator::kit::{EmulatedCloud, Lag, Phase, Plant, Settings};
use cloud_emulator::openstack::OpenStackCloud;
use common::identity::{Mark, MarkSeen, Slot};
use common::ledger::Id;
use common::operator::Found;
use common::testing::sim::date_of;
use common::testing::{Deed, Lags, Millis, SimCloud, Truth, Twin};
use common::transport::{Request, Response};
use http::{Method, StatusCode};
use openstack_server_controller::cloud::{KEYS, Kind, port_key, server_key, trunk_key};
use serde_json::Value;
use std::collections::BTreeMap;

/// Projects and the secrets that lead to them.
pub(super) const ACCOUNTS: [(&str, &str); 2] = [("acct-1", "secret-1"), ("acct-2", "secret-2")];
const KINDS: [&str; 4] = ["servers", "ports", "trunks", "volumes"];

/// The emulator, and what it does not remember.
pub struct EmulatedOpenStack {
    cloud: OpenStackCloud,
    now: Millis,
    account: String,
    deeds: Vec<Deed>,
    marks: BTreeMap<Id, Vec<(Millis, MarkSeen)>>,
    refusals: u64,
}

impl EmulatedOpenStack {
    /// A cloud with both projects admitted.
    pub fn new(seed: u64, lags: Lags) -> Self {
        let settings = Settings { call_log: 1, ..Settings::default() };
        let mut cloud = OpenStackCloud::new(settings, seed);
        for (account, secret) in ACCOUNTS {
            cloud.kit_mut().principals.admit(account, secret, account);
        }
        let (account, marks) = (ACCOUNTS[0].0.into(), BTreeMap::new());
        let mut this = EmulatedOpenStack { cloud, now: 0, account, deeds: Vec::new(), marks, refusals: 0 };
        this.lags(lags);
        this
    }
    fn real(&self, id: &str) -> Option<cloud_emulator::kit::Truth> {
        self.cloud.truth(date_of(self.now)).into_iter().find(|t| t.id == id)
    }
    /// Notes the mark a thing carries now.
    fn note(&mut self, now: Millis, id: &str) {
        let Some(thing) = self.real(id) else { return };
        let mark = mark(&thing);
        let history = self.marks.entry(id.to_owned()).or_default();
        if history.last().map(|(_, known)| known) != Some(&mark) {
            history.push((now, mark));
        }
    }
    fn configure(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.cloud.kit().settings().clone();
        change(&mut settings);
        self.cloud.kit_mut().configure(settings);
    }
    /// Live things of the server of this name: slot and id.
    pub fn slots(&self, name: &str) -> BTreeMap<Slot, Id> {
        let ours = |t: &cloud_emulator::kit::Truth| {
            let called = t.fields.get("name").and_then(Value::as_str).unwrap_or_default();
            called == name || called.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
        };
        let things = self.cloud.truth(date_of(self.now)).into_iter().filter(alive).filter(|t| !t.planted && ours(t));
        things.filter_map(|t| Some((t.tags?.get(KEYS.slot)?.parse().ok()?, t.id))).collect()
    }
    fn tell(&self, thing: &cloud_emulator::kit::Truth) -> Truth {
        Truth {
            id: thing.id.clone(),
            kind: thing.kind.into(),
            key: key(thing),
            by_controller: !thing.planted,
            live: alive(thing),
            marks: self.marks.get(&thing.id).cloned().unwrap_or_else(|| vec![(0, MarkSeen::Nothing)]),
            born: u64::try_from(thing.born.duration_since(date_of(0)).as_millis()).unwrap_or(0),
            marked_at_create: true,
            params: None,
        }
    }
    /// Everything alive, for an audit.
    pub fn found(&self) -> Vec<Found> {
        let things = self.cloud.truth(date_of(self.now));
        let text = |t: &cloud_emulator::kit::Truth, field: &str| {
            t.fields.get(field).and_then(Value::as_str).map(str::to_owned)
        };
        let found = |t: &cloud_emulator::kit::Truth| Found {
            kind: t.kind,
            id: t.id.clone(),
            mark: mark(t),
            name: text(t, "name").unwrap_or_default(),
            parent: text(t, "port_id"),
        };
        things.iter().filter(|t| alive(t)).map(found).collect()
    }
}

fn alive(thing: &cloud_emulator::kit::Truth) -> bool {
    !matches!(thing.phase, Phase::Deleting | Phase::Gone)
}
fn mark(thing: &cloud_emulator::kit::Truth) -> MarkSeen {
    let tags = thing.tags.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
    MarkSeen::from_tags(&KEYS, tags)
}
/// Where it stands, as the production client would say.
fn key(thing: &cloud_emulator::kit::Truth) -> String {
    let text = |field: &str| thing.fields.get(field).and_then(Value::as_str).unwrap_or_default();
    match thing.kind {
        "port" => port_key(text("network_id"), text("name")),
        "trunk" => trunk_key(text("port_id")),
        "server" => server_key(text("name")),
        other => format!("{other} {}", text("name")),
    }
}
/// The id in the body of a create's reply, whatever it is called there.
fn id_in(response: &Response) -> Option<Id> {
    let body: Value = serde_json::from_slice(response.body()).ok()?;
    body.as_object()?.values().next()?.get("id")?.as_str().map(str::to_owned)
}

impl SimCloud for EmulatedOpenStack {
    fn exchange(&mut self, now: Millis, request: Request) -> Response {
        self.now = now;
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let parts: Vec<&str> = path.split('/').collect();
        let at = parts.iter().position(|part| KINDS.contains(part) || *part == "floatingips");
        let named = at.and_then(|at| parts.get(at + 1)).map(|id| (*id).to_owned());
        let deeper = at.is_some_and(|at| parts.len() > at + 2);
        let before = named.as_ref().filter(|_| method == Method::DELETE && !deeper).and_then(|id| self.real(id));
        let response = self.cloud.handle(date_of(now), request).response;
        let good = response.status().is_success();
        match method {
            Method::POST if good && at.is_some() && named.is_none() => {
                if let Some(id) = id_in(&response) {
                    self.note(now, &id);
                    self.deeds.push(Deed::Created(id));
                }
            }
            Method::DELETE if good && !deeper && before.as_ref().is_some_and(alive) => {
                self.deeds.extend(named.map(Deed::Deleted));
            }
            Method::POST | Method::PUT | Method::DELETE
                if good && at.is_some() && (deeper || method == Method::PUT) =>
            {
                if let Some(id) = named {
                    self.note(now, &id);
                    self.deeds.push(Deed::Tagged(id));
                }
            }
            _ if response.status() == StatusCode::FORBIDDEN
                && String::from_utf8_lossy(response.body()).contains("Policy") =>
            {
                self.refusals += 1;
            }
            _ => {}
        }
        response
    }
    fn deeds(&mut self) -> Vec<Deed> {
        std::mem::take(&mut self.deeds)
    }
    fn truth(&self) -> Vec<Truth> {
        self.cloud.truth(date_of(self.now)).iter().map(|t| self.tell(t)).collect()
    }
    fn thing(&self, id: &str) -> Option<Truth> {
        self.real(id).map(|t| self.tell(&t))
    }
    fn plant(&mut self, now: Millis, twin: &Twin, mark: Option<&Mark>) -> Option<Id> {
        self.now = now;
        let mut plant = Plant::new(&twin.kind, twin.params.as_object()?.clone());
        if let Some(mark) = mark {
            plant.tags = mark.to_tags(&KEYS);
        }
        let id = self.cloud.plant(date_of(now), plant).ok()?;
        self.note(now, &id);
        Some(id)
    }
    fn remove(&mut self, now: Millis, id: &str) {
        self.now = now;
        let _ = self.cloud.delete_by_hand(date_of(now), id);
    }
    fn retag(&mut self, now: Millis, id: &str, mark: Option<&Mark>) {
        self.now = now;
        let set = mark.map(|m| m.to_tags(&KEYS)).unwrap_or_default();
        let remove: Vec<String> =
            KEYS.all().iter().filter(|k| !set.contains_key(**k)).map(|k| (*k).to_owned()).collect();
        let _ = self.cloud.retag_by_hand(date_of(now), id, set, &remove);
        self.note(now, id);
    }
    fn deny(&mut self, permission: &str) {
        for (account, _) in ACCOUNTS {
            self.cloud.kit_mut().denials.deny(account, permission);
        }
    }
    fn allow_all(&mut self) {
        self.cloud.kit_mut().denials.clear();
    }
    fn refusals(&self) -> u64 {
        self.refusals
    }
    fn account(&mut self, name: &str) {
        name.clone_into(&mut self.account);
    }
    fn current_account(&self) -> String {
        self.account.clone()
    }
    fn lags(&mut self, lags: Lags) {
        let lag = |most: Millis| if lags.worst { Lag::FixedMs(most) } else { Lag::UpToMs(most) };
        self.configure(|s| {
            s.lag.list = lag(lags.list);
            s.lag.get = lag(lags.get);
            s.lag.ghost = lag(lags.ghost);
            s.build =
                BTreeMap::from([("servers".to_owned(), lag(lags.build)), ("volumes".to_owned(), lag(lags.build))]);
            s.deletion = KINDS.iter().map(|kind| ((*kind).to_owned(), lag(lags.delete))).collect();
        });
    }
    fn fail_builds(&mut self, fail: bool) {
        if fail {
            let _ = self.cloud.fail_next_build(Kind::Server.name(), "No valid host was found.", 1);
            let _ = self.cloud.fail_next_build(Kind::Volume.name(), "no space", 1);
        }
    }
    fn quota(&mut self, most: Option<usize>) {
        let most = most.and_then(|n| u64::try_from(n).ok());
        let quotas = most.map(|n| KINDS.iter().map(|kind| ((*kind).to_owned(), n)).collect());
        self.configure(|s| s.quotas = quotas.unwrap_or_default());
    }
}
