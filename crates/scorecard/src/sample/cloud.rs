//! The emulated sample cloud as the simulator needs it: exchanges, deeds, the truth with its history of marks.
use cloud_emulator::kit::{EmulatedCloud, Lag, Paging, Phase, Plant, Settings};
use cloud_emulator::sample::SampleCloud;
use common::engine::estate::Sighting;
use common::identity::{Mark, MarkSeen};
use common::ledger::Id;
use common::operator::Found;
use common::testing::sim::date_of;
use common::testing::{Deed, Lags, Millis, SimCloud, Truth, Twin};
use common::transport::{Request, Response};
use http::{Method, StatusCode};
use sample_controller::cloud::{Kind, READABLE_TAG};
use sample_controller::estate::{KEYS, sighting};
use sample_controller::wire;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Accounts and the tokens that name them.
pub(super) const ACCOUNTS: [(&str, &str); 2] = [("acct-1", "token-1"), ("acct-2", "token-2")];
const KINDS: [&str; 5] = ["networks", "disks", "addresses", "routes", "machines"];

/// The emulator, and what it does not remember.
pub struct EmulatedSample {
    cloud: SampleCloud,
    now: Millis,
    account: String,
    deeds: Vec<Deed>,
    marks: BTreeMap<Id, Vec<(Millis, MarkSeen)>>,
    refusals: u64,
}

impl EmulatedSample {
    /// An empty cloud with both accounts admitted.
    pub fn new(seed: u64, lags: Lags) -> Self {
        let settings = Settings { call_log: 1, paging: Paging { max: 3, ragged: true }, ..Settings::default() };
        let mut cloud = SampleCloud::new(settings, seed);
        for (account, token) in ACCOUNTS {
            cloud.kit_mut().principals.admit(account, token, account);
        }
        let mut this = EmulatedSample {
            cloud,
            now: 0,
            account: ACCOUNTS[0].0.into(),
            deeds: Vec::new(),
            marks: BTreeMap::new(),
            refusals: 0,
        };
        this.lags(lags);
        this
    }
    fn real(&self, id: &str) -> Option<cloud_emulator::kit::Truth> {
        self.cloud.truth(date_of(self.now)).into_iter().find(|t| t.id == id)
    }
    /// Notes the mark a thing carries now.
    fn note(&mut self, now: Millis, id: &str) {
        let Some(thing) = self.real(id) else { return };
        let tags = thing.tags.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
        let mark = MarkSeen::from_tags(&KEYS, tags);
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
    /// Live things that people know by this readable tag: slot and id.
    pub fn slots(&self, readable: &str) -> BTreeMap<common::identity::Slot, Id> {
        let things = self.cloud.truth(date_of(self.now)).into_iter().filter(alive);
        let ours = things.filter(|t| {
            t.tags.as_ref().is_some_and(|tags| tags.get(READABLE_TAG).map(String::as_str) == Some(readable))
        });
        ours.filter_map(|t| Some((t.tags?.get(KEYS.slot)?.parse().ok()?, t.id))).collect()
    }
    fn tell(&self, thing: &cloud_emulator::kit::Truth) -> Truth {
        let seen = seen(thing);
        Truth {
            id: thing.id.clone(),
            kind: thing.kind.into(),
            key: seen.as_ref().and_then(|s| s.key.clone()).unwrap_or_default(),
            by_controller: !thing.planted,
            live: alive(thing),
            marks: self.marks.get(&thing.id).cloned().unwrap_or_else(|| vec![(0, MarkSeen::Nothing)]),
            born: u64::try_from(thing.born.duration_since(date_of(0)).as_millis()).unwrap_or(0),
            marked_at_create: !matches!(thing.kind, "address" | "route"),
            params: seen.and_then(|s| s.params),
        }
    }
    /// Everything alive, for an audit.
    pub fn found(&self) -> Vec<Found> {
        let things = self.cloud.truth(date_of(self.now));
        things
            .iter()
            .filter(|t| alive(t))
            .filter_map(|t| {
                let seen = seen(t)?;
                let parent = t.fields.get("network_id").and_then(Value::as_str).map(str::to_owned);
                Some(Found {
                    kind: seen.kind,
                    id: t.id.clone(),
                    mark: seen.mark,
                    name: seen.key.unwrap_or_default(),
                    parent,
                })
            })
            .collect()
    }
}

fn alive(thing: &cloud_emulator::kit::Truth) -> bool {
    !matches!(thing.phase, Phase::Deleting | Phase::Gone)
}
/// A thing as the production client would read it, without any lag.
fn seen(thing: &cloud_emulator::kit::Truth) -> Option<Sighting> {
    let kind = Kind::ALL.into_iter().find(|k| k.singular() == thing.kind)?;
    let mut body = thing.fields.clone();
    body.insert("id".into(), json!(thing.id));
    body.insert("kind".into(), json!(thing.kind));
    body.insert("created_at".into(), json!(thing.born.to_string()));
    body.insert("created_by".into(), json!(thing.created_by));
    body.insert("state".into(), json!("ready"));
    body.insert("state_reason".into(), Value::Null);
    if let Some(tags) = &thing.tags {
        body.insert("tags".into(), json!(tags));
    }
    let response = Response::new(Value::Object(body).to_string().into_bytes());
    Some(sighting(&wire::thing(kind, &response).ok()?, ""))
}
fn id_in(response: &Response) -> Option<Id> {
    let body: Value = serde_json::from_slice(response.body()).ok()?;
    body.get("id").and_then(Value::as_str).map(str::to_owned)
}

impl SimCloud for EmulatedSample {
    fn exchange(&mut self, now: Millis, request: Request) -> Response {
        self.now = now;
        let method = request.method().clone();
        let named = request.uri().path().split('/').nth(3).map(str::to_owned);
        let before = named.as_ref().filter(|_| method == Method::DELETE).and_then(|id| self.real(id));
        let response = self.cloud.handle(date_of(now), request).response;
        match (method, response.status()) {
            (Method::POST, StatusCode::CREATED) => {
                if let Some(id) = id_in(&response) {
                    self.note(now, &id);
                    self.deeds.push(Deed::Created(id));
                }
            }
            (Method::PUT, StatusCode::OK) => {
                if let Some(id) = named {
                    self.note(now, &id);
                    self.deeds.push(Deed::Tagged(id));
                }
            }
            (Method::PATCH, StatusCode::OK) => self.deeds.extend(named.map(Deed::Changed)),
            (Method::DELETE, StatusCode::ACCEPTED) if before.is_some_and(|t| alive(&t)) => {
                self.deeds.extend(named.map(Deed::Deleted));
            }
            (_, StatusCode::FORBIDDEN) if String::from_utf8_lossy(response.body()).contains("\"Forbidden\"") => {
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
        let fields = twin.params.as_object()?.clone();
        let mut plant = Plant::new(&twin.kind, fields);
        if let Some(mark) = mark.filter(|_| twin.kind != Kind::Route.singular()) {
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
            s.lag.tags = lag(lags.tag);
            s.lag.get = lag(lags.get);
            s.lag.ghost = lag(lags.ghost);
            s.build = BTreeMap::from([("machines".to_owned(), lag(lags.build))]);
            s.deletion = KINDS.iter().map(|kind| ((*kind).to_owned(), lag(lags.delete))).collect();
        });
    }
    fn fail_builds(&mut self, fail: bool) {
        if fail {
            let _ = self.cloud.fail_next_build(Kind::Machine.singular(), "no capacity", 2);
        }
    }
    fn quota(&mut self, most: Option<usize>) {
        let most = most.and_then(|n| u64::try_from(n).ok());
        let quotas = most.map(|n| KINDS.iter().map(|kind| ((*kind).to_owned(), n)).collect());
        self.configure(|s| s.quotas = quotas.unwrap_or_default());
    }
}
