//! Everything the cloud holds, and what it once held.
use super::kinds::{ALL, Kind};
use crate::kit::dice::Dice;
use crate::kit::{Deletion, Phase, Settings, Tags, Truth, later};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One thing.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // independent facts
pub(super) struct Thing {
    pub(super) id: String,
    pub(super) kind: Kind,
    /// The project; none if everybody sees it.
    pub(super) project: Option<Arc<str>>,
    pub(super) created_by: Arc<str>,
    pub(super) planted: bool,
    pub(super) born: Timestamp,
    pub(super) body: Map<String, Value>,
    pub(super) built: Timestamp,
    pub(super) failure: Option<String>,
    pub(super) listed_from: Timestamp,
    pub(super) readable_from: Timestamp,
    /// Plugged into this server, visibly from then on.
    pub(super) server: Option<(String, Timestamp)>,
    /// Goes with the server it is plugged into.
    pub(super) goes_with_server: bool,
    pub(super) soft_deleted: bool,
    /// Its end has been passed on to what hangs on it.
    pub(super) settled: bool,
    pub(super) end: Option<End>,
}
/// The end of a thing.
#[derive(Debug)]
pub(super) struct End {
    pub(super) deletion: Deletion,
    pub(super) ghost_until: Timestamp,
    pub(super) looks_alive: bool,
}

/// Neutron's tags that look like pairs, and words of a description that do.
fn pairs<'a>(words: impl Iterator<Item = &'a str>) -> Tags {
    words.filter_map(|word| word.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

impl Thing {
    pub(super) fn gone(&self, now: Timestamp) -> bool {
        self.end.as_ref().is_some_and(|end| end.deletion.gone <= now)
    }
    pub(super) fn text(&self, field: &str) -> &str {
        self.body.get(field).and_then(Value::as_str).unwrap_or_default()
    }
    pub(super) fn phase(&self, now: Timestamp) -> Phase {
        match &self.end {
            Some(_) if self.gone(now) => Phase::Gone,
            Some(_) => Phase::Deleting,
            None => self.phase_alive(now),
        }
    }
    pub(super) fn phase_alive(&self, now: Timestamp) -> Phase {
        match &self.failure {
            _ if now < self.built => Phase::Building,
            Some(_) => Phase::Failed,
            None => Phase::Ready,
        }
    }
    /// The server it is plugged into, as far as that shows.
    pub(super) fn plugged(&self, now: Timestamp) -> Option<&str> {
        self.server.as_ref().filter(|(_, from)| *from <= now).map(|(id, _)| id.as_str())
    }
    /// Whatever could say whose it is, as pairs.
    pub(super) fn tags(&self) -> Option<Tags> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match self.kind {
            Kind::Server | Kind::Volume => {
                let metadata = self.body.get("metadata").and_then(Value::as_object);
                Some(metadata.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect())
            }
            Kind::Port | Kind::Trunk | Kind::FloatingIp => {
                let tags = self.body.get("tags").and_then(Value::as_array);
                let tags = tags.into_iter().flatten().filter_map(Value::as_str);
                Some(pairs(tags.chain(self.text("description").split_whitespace())))
            }
            Kind::Member => {
                let tags = self.body.get("tags").and_then(Value::as_array);
                Some(pairs(tags.into_iter().flatten().filter_map(Value::as_str)))
            }
            _ => None,
        }
    }
    /// Changes pairs where this thing keeps them.
    pub(super) fn retag(&mut self, set: &Tags, remove: &[String]) {
        let leaves = |key: &str| remove.iter().any(|it| it == key) || set.contains_key(key);
        match self.kind {
            Kind::Server | Kind::Volume => {
                let entry = self.body.entry("metadata").or_insert_with(|| json!({}));
                if let Some(metadata) = entry.as_object_mut() {
                    metadata.retain(|key, _| !leaves(key));
                    metadata.extend(set.iter().map(|(key, value)| (key.clone(), json!(value))));
                }
            }
            Kind::Member => {
                let stays = |tag: &String| tag.split_once('=').is_none_or(|(key, _)| !leaves(key));
                let tags = self.body.get("tags").and_then(Value::as_array).into_iter().flatten();
                let kept = tags.filter_map(Value::as_str).map(str::to_owned).filter(stays);
                let all: Vec<String> = kept.chain(set.iter().map(|(key, value)| format!("{key}={value}"))).collect();
                self.body.insert("tags".into(), json!(all));
            }
            _ => {
                let stays = |word: &&str| word.split_once('=').is_none_or(|(key, _)| !leaves(key));
                let mut words: Vec<String> =
                    self.text("description").split_whitespace().filter(stays).map(str::to_owned).collect();
                words.extend(set.iter().map(|(key, value)| format!("{key}={value}")));
                self.body.insert("description".into(), json!(words.join(" ")));
            }
        }
    }
    pub(super) fn natural_key(&self) -> Option<String> {
        match self.kind {
            Kind::Trunk => Some(self.text("port_id").to_owned()),
            Kind::FloatingIp => Some(self.text("floating_ip_address").to_owned()),
            Kind::Member => {
                let port = self.body.get("protocol_port").and_then(Value::as_i64).unwrap_or_default();
                Some(format!("{}/{}:{port}", self.text("pool_id"), self.text("address")))
            }
            _ => None,
        }
    }
    pub(super) fn truth(&self, now: Timestamp) -> Truth {
        let mut fields = self.body.clone();
        if let Some(server) = self.plugged(now) {
            fields.insert("device_id".into(), json!(server));
        }
        Truth {
            id: self.id.clone(),
            kind: self.kind.word(),
            account: self.project.as_deref().unwrap_or_default().to_owned(),
            created_by: self.created_by.to_string(),
            planted: self.planted,
            natural_key: self.natural_key(),
            token: None,
            born: self.born,
            tags: self.tags(),
            phase: self.phase(now),
            deletion: self.end.as_ref().map(|end| end.deletion.clone()),
            fields,
        }
    }
}

/// Who makes a thing, and when.
pub(super) struct Maker {
    pub(super) project: Option<Arc<str>>,
    pub(super) name: Arc<str>,
    pub(super) planted: bool,
    pub(super) born: Timestamp,
}

/// All things ever made.
#[derive(Debug, Default)]
pub(super) struct Store {
    things: Vec<Thing>,
    by_id: HashMap<String, usize>,
    listed: [BTreeMap<u64, usize>; ALL.len()],
}
impl Store {
    pub(super) fn all(&self) -> &[Thing] {
        &self.things
    }
    pub(super) fn get(&self, kind: Kind, id: &str, now: Timestamp) -> Option<&Thing> {
        let thing = &self.things[*self.by_id.get(id)?];
        (thing.kind == kind && !thing.gone(now)).then_some(thing)
    }
    pub(super) fn get_mut(&mut self, id: &str, now: Timestamp) -> Option<&mut Thing> {
        let thing = &mut self.things[*self.by_id.get(id)?];
        (!thing.gone(now)).then_some(thing)
    }
    /// Visible to a project, by id.
    pub(super) fn seen(&self, project: &str, kind: Kind, id: &str, now: Timestamp) -> Option<&Thing> {
        self.get(kind, id, now).filter(|it| it.project.as_deref().is_none_or(|of| of == project))
    }
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Thing> {
        self.listed[kind.index()].values().map(|index| &self.things[*index])
    }
    pub(super) fn count(&self, project: &str, kind: Kind, now: Timestamp) -> u64 {
        let mine = |it: &&Thing| it.project.as_deref() == Some(project) && !it.gone(now);
        self.of_kind(kind).filter(mine).count() as u64
    }
    pub(super) fn make(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        maker: Maker,
        kind: Kind,
        body: Map<String, Value>,
        failure: Option<String>,
    ) -> String {
        let id = loop {
            let [a, b, c, d] = std::array::from_fn(|_| dice.id());
            let id = format!("{a:08x}-{:04x}-4{:03x}-8{:03x}-{:04x}{d:08x}", b >> 16, b & 0xfff, c >> 20, c & 0xffff);
            if !self.by_id.contains_key(&id) {
                break id;
            }
        };
        self.put(settings, dice, maker, kind, &id, body, failure);
        id
    }
    #[allow(clippy::too_many_arguments)] // one thing, one call
    pub(super) fn put(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        maker: Maker,
        kind: Kind,
        id: &str,
        body: Map<String, Value>,
        failure: Option<String>,
    ) {
        let (now, planted) = (maker.born, maker.planted);
        let lag = |lag: crate::kit::Lag, dice: &mut Dice| if planted { now } else { later(now, lag.draw(dice)) };
        let build = settings.build.get(kind.plural()).copied().unwrap_or_default();
        let thing = Thing {
            id: id.to_owned(),
            kind,
            project: maker.project,
            created_by: maker.name,
            planted,
            born: now,
            body,
            built: lag(build, dice),
            failure,
            listed_from: lag(settings.lag.list, dice),
            readable_from: lag(settings.lag.get, dice),
            server: None,
            goes_with_server: false,
            soft_deleted: false,
            settled: false,
            end: None,
        };
        let index = self.things.len();
        self.by_id.insert(id.to_owned(), index);
        self.listed[kind.index()].insert(index as u64, index);
        self.things.push(thing);
    }
    /// Begins the end of a thing.
    pub(super) fn end(&mut self, settings: &Settings, dice: &mut Dice, id: &str, by: Option<String>, now: Timestamp) {
        let Some(index) = self.by_id.get(id).copied() else { return };
        let thing = &mut self.things[index];
        if thing.end.is_some() {
            return;
        }
        let takes = settings.deletion.get(thing.kind.plural()).copied().unwrap_or_default();
        let gone = later(now, takes.draw(dice));
        let tags = thing.tags();
        thing.end = Some(End {
            deletion: Deletion { by, at: now, gone, tags },
            ghost_until: later(gone, settings.lag.ghost.draw(dice)),
            looks_alive: settings.lag.ghosts.alive(dice),
        });
        if thing.kind == Kind::Port {
            self.free_addresses(id);
        }
    }
    /// A floating IP outlives the port that it leads to, and leads nowhere then.
    fn free_addresses(&mut self, port: &str) {
        let all: Vec<usize> = self.listed[Kind::FloatingIp.index()].values().copied().collect();
        for floating in all {
            let body = &mut self.things[floating].body;
            if body.get("port_id").and_then(Value::as_str) == Some(port) {
                body.extend([("port_id".to_owned(), Value::Null), ("status".to_owned(), Value::from("DOWN"))]);
            }
        }
    }
    /// Lets the ends of servers reach what hangs on them: ports are unplugged, volumes go along.
    pub(super) fn settle(&mut self, settings: &Settings, dice: &mut Dice, now: Timestamp) {
        let over: Vec<(String, Option<String>)> = self.listed[Kind::Server.index()]
            .values()
            .map(|index| &self.things[*index])
            .filter(|it| !it.settled && it.gone(now))
            .map(|it| (it.id.clone(), it.end.as_ref().and_then(|end| end.deletion.by.clone())))
            .collect();
        for (server, by) in over {
            let hanging: Vec<(String, bool)> = self
                .things
                .iter()
                .filter(|it| it.server.as_ref().is_some_and(|(id, _)| *id == server) && !it.gone(now))
                .map(|it| (it.id.clone(), it.goes_with_server))
                .collect();
            for (id, goes) in hanging {
                if let Some(thing) = self.get_mut(&id, now) {
                    thing.server = None;
                }
                if goes {
                    self.end(settings, dice, &id, by.clone(), now);
                }
            }
            if let Some(index) = self.by_id.get(&server) {
                self.things[*index].settled = true;
            }
        }
        for listed in &mut self.listed {
            let things = &self.things;
            let ended = |it: &Thing| {
                it.end.as_ref().is_some_and(|end| end.ghost_until <= now) && (it.settled || it.kind != Kind::Server)
            };
            if listed.values().any(|index| ended(&things[*index])) {
                listed.retain(|_, index| !ended(&things[*index]));
            }
        }
    }
}
