//! How the sample cloud speaks.
use crate::emulated::{About, Dialect, Effect};
use cloud_emulator::kit::{EmulatedCloud, Lag, Paging, Plant, Settings, Truth as Thing};
use cloud_emulator::sample::SampleCloud;
use common::engine::estate::Sighting;
use common::identity::{MarkKeys, MarkSeen};
use common::ledger::Id;
use common::operator::Found;
use common::testing::{Lags, Millis, Twin};
use common::transport::Response;
use http::{Method, StatusCode};
use sample_controller::cloud::Kind;
use sample_controller::estate::{KEYS, sighting};
use sample_controller::wire;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Accounts and the tokens that name them.
pub(super) const ACCOUNTS: [(&str, &str); 2] = [("acct-1", "token-1"), ("acct-2", "token-2")];
const KINDS: [&str; 5] = ["networks", "disks", "addresses", "routes", "machines"];

/// The sample cloud.
pub(super) struct SampleWords;

/// A thing as the production client would read it, without any lag.
fn seen(thing: &Thing) -> Option<Sighting> {
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

impl Dialect for SampleWords {
    fn keys(&self) -> &'static MarkKeys {
        &KEYS
    }
    fn accounts(&self) -> [(&'static str, &'static str); 2] {
        ACCOUNTS
    }
    fn cloud(&self, seed: u64) -> Box<dyn EmulatedCloud> {
        let settings = Settings { call_log: 1, paging: Paging { max: 3, ragged: true }, ..Settings::default() };
        Box::new(SampleCloud::new(settings, seed))
    }
    fn counted(&self) -> &'static [&'static str] {
        &KINDS
    }
    fn about(&self, path: &str) -> About {
        About { kind: true, thing: path.split('/').nth(3).map(str::to_owned), deeper: false }
    }
    fn effect(&self, method: &Method, _path: &str, about: &About, response: &Response) -> Effect {
        let named = |effect: fn(Id) -> Effect| about.thing.clone().map_or(Effect::Nothing, effect);
        match (method, response.status()) {
            (&Method::POST, StatusCode::CREATED) => id_in(response).map_or(Effect::Nothing, Effect::Made),
            (&Method::PUT, StatusCode::OK) => named(Effect::Marked),
            (&Method::PATCH, StatusCode::OK) => named(Effect::Changed),
            (&Method::DELETE, StatusCode::ACCEPTED) => named(Effect::Ended),
            (_, StatusCode::FORBIDDEN) if String::from_utf8_lossy(response.body()).contains("\"Forbidden\"") => {
                Effect::Refused
            }
            _ => Effect::Nothing,
        }
    }
    fn times(&self, settings: &mut Settings, lags: Lags, lag: &dyn Fn(Millis) -> Lag) {
        settings.lag.tags = lag(lags.tag);
        settings.build = BTreeMap::from([("machines".to_owned(), lag(lags.build))]);
        settings.deletion = KINDS.iter().map(|kind| ((*kind).to_owned(), lag(lags.delete))).collect();
    }
    fn key(&self, thing: &Thing) -> String {
        seen(thing).and_then(|it| it.key).unwrap_or_default()
    }
    fn params(&self, thing: &Thing) -> Option<String> {
        seen(thing).and_then(|it| it.params)
    }
    fn marked_at_create(&self, kind: &str) -> bool {
        !matches!(kind, "address" | "route")
    }
    fn plant(&self, twin: &Twin) -> Option<Plant> {
        Some(Plant::new(&twin.kind, twin.params.as_object()?.clone()))
    }
    fn markable(&self, kind: &str) -> bool {
        kind != Kind::Route.singular()
    }
    fn found(&self, thing: &Thing, _mark: MarkSeen) -> Option<Found> {
        let seen = seen(thing)?;
        let parent = thing.fields.get("network_id").and_then(Value::as_str).map(str::to_owned);
        Some(Found {
            kind: seen.kind,
            id: thing.id.clone(),
            mark: seen.mark,
            name: seen.key.unwrap_or_default(),
            parent,
        })
    }
    fn fail(&self, cloud: &mut dyn EmulatedCloud) {
        let _ = cloud.fail_next_build(Kind::Machine.singular(), "no capacity", 2);
    }
}
