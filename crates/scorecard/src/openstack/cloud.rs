//! How OpenStack speaks.
use crate::emulated::{About, Dialect, Effect};
use cloud_emulator::kit::{EmulatedCloud, Lag, Plant, Settings, Truth as Thing};
use cloud_emulator::openstack::OpenStackCloud;
use common::identity::{MarkKeys, MarkSeen};
use common::ledger::Id;
use common::operator::Found;
use common::testing::{Lags, Millis, Twin};
use common::transport::Response;
use http::{Method, StatusCode};
use openstack_server_controller::cloud::{KEYS, Kind, member_key, port_key, server_key, trunk_key};
use serde_json::Value;

/// Projects and the secrets that lead to them.
pub(super) const ACCOUNTS: [(&str, &str); 2] = [("acct-1", "secret-1"), ("acct-2", "secret-2")];
/// Who makes ports for servers that are only played.
pub(super) const PLAYER: &str = "player";
const KINDS: [&str; 6] = ["servers", "ports", "trunks", "volumes", "floatingips", "members"];
/// Kinds whose deletion takes time.
const SLOW: [&str; 5] = ["servers", "ports", "trunks", "volumes", "members"];

/// OpenStack.
pub(super) struct OpenStackWords;

pub(super) fn text<'a>(thing: &'a Thing, field: &str) -> &'a str {
    thing.fields.get(field).and_then(Value::as_str).unwrap_or_default()
}
/// Is it called so, or after that?
pub(super) fn is_of(thing: &Thing, name: &str) -> bool {
    let called = text(thing, "name");
    !thing.planted && (called == name || called.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')))
}
/// The pool that a path leads through.
fn pool_in<'a>(parts: &[&'a str]) -> &'a str {
    let at = parts.iter().position(|part| *part == "pools");
    at.and_then(|at| parts.get(at + 1)).copied().unwrap_or_default()
}
fn known_as(parts: &[&str], id: &str) -> Id {
    if parts.contains(&"members") { format!("{}/{id}", pool_in(parts)) } else { id.to_owned() }
}
/// The id in the body of a create's reply, whatever it is called there.
fn id_in(response: &Response) -> Option<Id> {
    let body: Value = serde_json::from_slice(response.body()).ok()?;
    body.as_object()?.values().next()?.get("id")?.as_str().map(str::to_owned)
}

impl Dialect for OpenStackWords {
    fn keys(&self) -> &'static MarkKeys {
        &KEYS
    }
    fn accounts(&self) -> [(&'static str, &'static str); 2] {
        ACCOUNTS
    }
    fn cloud(&self, seed: u64) -> Box<dyn EmulatedCloud> {
        Box::new(OpenStackCloud::new(Settings { call_log: 1, ..Settings::default() }, seed))
    }
    fn counted(&self) -> &'static [&'static str] {
        &KINDS
    }
    fn about(&self, path: &str) -> About {
        let parts: Vec<&str> = path.split('/').collect();
        let Some(at) = parts.iter().position(|part| KINDS.contains(part)) else { return About::default() };
        let thing = parts.get(at + 1).map(|id| known_as(&parts, id));
        About { kind: true, thing, deeper: parts.len() > at + 2 }
    }
    fn effect(&self, method: &Method, path: &str, about: &About, response: &Response) -> Effect {
        let good = response.status().is_success() && about.kind;
        let named = |effect: fn(Id) -> Effect| about.thing.clone().map_or(Effect::Nothing, effect);
        match *method {
            Method::POST if good && about.thing.is_none() => {
                let parts: Vec<&str> = path.split('/').collect();
                id_in(response).map_or(Effect::Nothing, |id| Effect::Made(known_as(&parts, &id)))
            }
            Method::DELETE if good && !about.deeper => named(Effect::Ended),
            Method::PUT | Method::POST | Method::DELETE if good => named(Effect::Marked),
            _ if response.status() == StatusCode::FORBIDDEN
                && String::from_utf8_lossy(response.body()).contains("Policy") =>
            {
                Effect::Refused
            }
            _ => Effect::Nothing,
        }
    }
    fn times(&self, settings: &mut Settings, lags: Lags, lag: &dyn Fn(Millis) -> Lag) {
        let build = ["servers", "volumes", "members"];
        settings.build = build.iter().map(|kind| ((*kind).to_owned(), lag(lags.build))).collect();
        settings.deletion = SLOW.iter().map(|kind| ((*kind).to_owned(), lag(lags.delete))).collect();
    }
    fn key(&self, thing: &Thing) -> String {
        match thing.kind {
            "port" => port_key(text(thing, "network_id"), text(thing, "name")),
            "trunk" => trunk_key(text(thing, "port_id")),
            "server" => server_key(text(thing, "name")),
            "member" => {
                let port = thing.fields.get("protocol_port").and_then(Value::as_i64).unwrap_or_default();
                member_key(text(thing, "pool_id"), text(thing, "address"), port)
            }
            other => format!("{other} {}", text(thing, "name")),
        }
    }
    fn params(&self, _thing: &Thing) -> Option<String> {
        None
    }
    fn marked_at_create(&self, _kind: &str) -> bool {
        true
    }
    fn plant(&self, twin: &Twin) -> Option<Plant> {
        Some(Plant::new(&twin.kind, twin.params.as_object()?.clone()))
    }
    fn markable(&self, _kind: &str) -> bool {
        true
    }
    fn found(&self, thing: &Thing, mark: MarkSeen) -> Option<Found> {
        let parent = Some(text(thing, "port_id")).filter(|it| !it.is_empty()).map(str::to_owned);
        Some(Found { kind: thing.kind, id: self.id(thing), mark, name: text(thing, "name").to_owned(), parent })
    }
    fn fail(&self, cloud: &mut dyn EmulatedCloud) {
        let _ = cloud.fail_next_build(Kind::Server.name(), "No valid host was found.", 1);
        let _ = cloud.fail_next_build(Kind::Volume.name(), "no space", 1);
    }
    fn id(&self, thing: &Thing) -> Id {
        if thing.kind == "member" { format!("{}/{}", text(thing, "pool_id"), thing.id) } else { thing.id.clone() }
    }
    fn own_id<'a>(&self, id: &'a str) -> &'a str {
        id.rsplit('/').next().unwrap_or(id)
    }
    fn hides(&self, thing: &Thing) -> bool {
        thing.created_by == PLAYER
    }
}
