//! Everything the sample cloud holds, and what it once held.
use super::kinds::Kind;
use super::tags::TagHistory;
use crate::kit::{Deletion, Phase, Truth};
use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The fields of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Network { name: String, cidr: String },
    Disk { name: String, size_gb: u64 },
    Address { network_id: String, label: String },
    Route { network_id: String, destination: String, next_hop: String },
    Machine { name: String, network_id: String, disk_id: Option<String>, flavor: String },
}
impl Body {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Body::Network { .. } => Kind::Network,
            Body::Disk { .. } => Kind::Disk,
            Body::Address { .. } => Kind::Address,
            Body::Route { .. } => Kind::Route,
            Body::Machine { .. } => Kind::Machine,
        }
    }
    pub(super) fn network(&self) -> Option<&str> {
        match self {
            Body::Network { .. } | Body::Disk { .. } => None,
            Body::Address { network_id, .. } | Body::Route { network_id, .. } | Body::Machine { network_id, .. } => {
                Some(network_id)
            }
        }
    }
    pub(super) fn disk(&self) -> Option<&str> {
        match self {
            Body::Machine { disk_id, .. } => disk_id.as_deref(),
            _ => None,
        }
    }
    /// The part of the natural key that is unique within a network.
    pub(super) fn key_in_network(&self) -> Option<&str> {
        match self {
            Body::Address { label, .. } => Some(label),
            Body::Route { destination, .. } => Some(destination),
            _ => None,
        }
    }
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Body::Network { name, cidr } => {
                map.serialize_entry("name", name)?;
                map.serialize_entry("cidr", cidr)
            }
            Body::Disk { name, size_gb } => {
                map.serialize_entry("name", name)?;
                map.serialize_entry("size_gb", size_gb)
            }
            Body::Address { network_id, label } => {
                map.serialize_entry("network_id", network_id)?;
                map.serialize_entry("label", label)
            }
            Body::Route { network_id, destination, next_hop } => {
                map.serialize_entry("network_id", network_id)?;
                map.serialize_entry("destination", destination)?;
                map.serialize_entry("next_hop", next_hop)
            }
            Body::Machine { name, network_id, disk_id, flavor } => {
                map.serialize_entry("name", name)?;
                map.serialize_entry("network_id", network_id)?;
                map.serialize_entry("disk_id", disk_id)?;
                map.serialize_entry("flavor", flavor)
            }
        }
    }
}
impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write(&mut map)?;
        map.end()
    }
}

/// One thing.
#[derive(Debug)]
pub(super) struct Thing {
    pub(super) id: String,
    /// The number in the id; listings are in its order.
    pub(super) number: u32,
    pub(super) account: Arc<str>,
    pub(super) created_by: Arc<str>,
    pub(super) planted: bool,
    pub(super) token: Option<String>,
    pub(super) born: Timestamp,
    /// As bodies show it, written once.
    pub(super) born_text: String,
    pub(super) body: Body,
    pub(super) tags: Option<TagHistory>,
    pub(super) built: Timestamp,
    pub(super) failure: Option<String>,
    pub(super) listed_from: Timestamp,
    pub(super) readable_from: Timestamp,
    pub(super) end: Option<End>,
}
/// The end of a thing.
#[derive(Debug)]
pub(super) struct End {
    pub(super) deletion: Deletion,
    /// Listings show it until then.
    pub(super) ghost_until: Timestamp,
    /// Listings show it as if nobody had deleted it.
    pub(super) looks_alive: bool,
}
impl Thing {
    pub(super) fn kind(&self) -> Kind {
        self.body.kind()
    }
    pub(super) fn gone(&self, now: Timestamp) -> bool {
        self.end.as_ref().is_some_and(|end| end.deletion.gone <= now)
    }
    /// Where it is in its life, its end left out.
    pub(super) fn phase_alive(&self, now: Timestamp) -> Phase {
        match &self.failure {
            _ if now < self.built => Phase::Building,
            Some(_) => Phase::Failed,
            None => Phase::Ready,
        }
    }
    pub(super) fn phase(&self, now: Timestamp) -> Phase {
        match &self.end {
            None => self.phase_alive(now),
            Some(_) if self.gone(now) => Phase::Gone,
            Some(_) => Phase::Deleting,
        }
    }
    pub(super) fn natural_key(&self) -> Option<String> {
        let within = self.body.key_in_network()?;
        Some(format!("{}/{within}", self.body.network()?))
    }
    pub(super) fn truth(&self, now: Timestamp) -> Truth {
        let fields = match serde_json::to_value(&self.body) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Truth {
            id: self.id.clone(),
            kind: self.kind().singular(),
            account: self.account.to_string(),
            created_by: self.created_by.to_string(),
            planted: self.planted,
            natural_key: self.natural_key(),
            token: self.token.clone(),
            born: self.born,
            tags: self.tags.as_ref().map(|tags| tags.truth().clone()),
            phase: self.phase(now),
            deletion: self.end.as_ref().map(|end| end.deletion.clone()),
            fields,
        }
    }
}

/// A thing as one read path shows it at one time.
pub(super) struct Shown<'t> {
    pub(super) thing: &'t Thing,
    pub(super) now: Timestamp,
    pub(super) in_listing: bool,
}
impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Shown { thing, now, in_listing } = *self;
        let as_alive = in_listing && thing.end.as_ref().is_some_and(|end| end.looks_alive);
        let state = match if as_alive { thing.phase_alive(now) } else { thing.phase(now) } {
            Phase::Building => "building",
            Phase::Ready => "ready",
            Phase::Failed => "failed",
            Phase::Deleting | Phase::Gone => "deleting",
        };
        let reason = thing.failure.as_deref().filter(|_| state == "failed");
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &thing.id)?;
        map.serialize_entry("kind", thing.kind().singular())?;
        map.serialize_entry("created_at", &thing.born_text)?;
        map.serialize_entry("created_by", &*thing.created_by)?;
        map.serialize_entry("state", state)?;
        map.serialize_entry("state_reason", &reason)?;
        if let Some(tags) = &thing.tags {
            map.serialize_entry("tags", if in_listing { tags.listed(now) } else { tags.truth() })?;
        }
        thing.body.write(&mut map)?;
        map.end()
    }
}

/// A create that came with a key, remembered for as long as the key is.
#[derive(Debug)]
pub(super) struct Keyed {
    pub(super) thing: usize,
    pub(super) order: super::requests::Order,
    pub(super) at: Timestamp,
}
/// Whose key: the account's, for one kind.
pub(super) type KeyId = (Arc<str>, Kind, String);

/// All things ever made, with ways to find those that are still there.
#[derive(Debug, Default)]
pub(super) struct Store {
    things: Vec<Thing>,
    by_id: HashMap<String, usize>,
    /// What listings may still show, by number; those that ended for good are taken out when a listing passes them.
    listed: [BTreeMap<u32, usize>; 5],
    /// Who needs a network or disk, by its id; those that are gone are taken out when somebody asks.
    users: HashMap<String, Vec<usize>>,
    pub(super) keys: HashMap<KeyId, Keyed>,
}
impl Store {
    pub(super) fn all(&self) -> &[Thing] {
        &self.things
    }
    pub(super) fn at(&self, index: usize) -> &Thing {
        &self.things[index]
    }
    pub(super) fn at_mut(&mut self, index: usize) -> &mut Thing {
        &mut self.things[index]
    }
    /// One that is not gone, seen from an account.
    pub(super) fn find(&self, account: &str, kind: Kind, id: &str, now: Timestamp) -> Option<usize> {
        let index = *self.by_id.get(id)?;
        let thing = &self.things[index];
        (thing.kind() == kind && &*thing.account == account && !thing.gone(now)).then_some(index)
    }
    /// One that is not gone, for its owner's hand.
    pub(super) fn find_any(&self, id: &str, now: Timestamp) -> Option<usize> {
        self.by_id.get(id).copied().filter(|index| !self.things[*index].gone(now))
    }
    pub(super) fn taken(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }
    pub(super) fn add(&mut self, thing: Thing) -> usize {
        let index = self.things.len();
        self.by_id.insert(thing.id.clone(), index);
        self.listed[thing.kind().index()].insert(thing.number, index);
        for needed in [thing.body.network(), thing.body.disk()].into_iter().flatten() {
            self.users.entry(needed.to_owned()).or_default().push(index);
        }
        self.things.push(thing);
        index
    }
    /// Those that need this one and are not gone.
    pub(super) fn users(&mut self, id: &str, now: Timestamp) -> impl Iterator<Item = &Thing> {
        let things = &self.things;
        let users = self.users.get_mut(id).map(|users| {
            users.retain(|index| !things[*index].gone(now));
            &*users
        });
        users.into_iter().flatten().map(|index| &things[*index])
    }
    /// How many of a kind an account has.
    pub(super) fn count(&self, account: &str, kind: Kind, now: Timestamp) -> usize {
        let mine = |index: &usize| {
            let thing = &self.things[*index];
            &*thing.account == account && !thing.gone(now)
        };
        self.listed[kind.index()].values().filter(|index| mine(index)).count()
    }
    /// Drops from listings what has ended for good.
    pub(super) fn sweep(&mut self, kind: Kind, now: Timestamp) {
        let things = &self.things;
        let ended = |index: usize| things[index].end.as_ref().is_some_and(|end| end.ghost_until <= now);
        let listed = &mut self.listed[kind.index()];
        if listed.values().any(|index| ended(*index)) {
            listed.retain(|_, index| !ended(*index));
        }
    }
    /// What listings may show of a kind, from a number on.
    pub(super) fn listed(&self, kind: Kind, from: u32) -> impl Iterator<Item = &Thing> {
        self.listed[kind.index()].range(from..).map(|(_, index)| &self.things[*index])
    }
}
