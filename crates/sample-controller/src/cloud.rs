//! The sample cloud in our own words: what it can do, and plain structs. No HTTP in it.
use async_trait::async_trait;
use common::clock::Boot;
use common::engine::estate::{Fault, Outcome};
use common::identity::Slot;
use common::ledger::Id;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The tag that people read: which owner a thing belongs to. Says nothing about ownership.
pub const READABLE_TAG: &str = "owner-name";

/// The five kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A network.
    Network,
    /// A disk.
    Disk,
    /// An address in a network.
    Address,
    /// A route in a network.
    Route,
    /// A machine in a network, with or without a disk.
    Machine,
}
impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Network, Kind::Disk, Kind::Address, Kind::Route, Kind::Machine];

    /// One of it: the first part of slots and ids.
    pub const fn singular(self) -> &'static str {
        match self {
            Kind::Network => "network",
            Kind::Disk => "disk",
            Kind::Address => "address",
            Kind::Route => "route",
            Kind::Machine => "machine",
        }
    }
    /// Many of it: the collection in the API.
    pub const fn plural(self) -> &'static str {
        match self {
            Kind::Network => "networks",
            Kind::Disk => "disks",
            Kind::Address => "addresses",
            Kind::Route => "routes",
            Kind::Machine => "machines",
        }
    }
    /// Which kind a slot holds; none for a slot this controller never made.
    pub fn of(slot: &Slot) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.singular() == slot.kind())
    }
}

/// What a thing is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// Of a network.
    Network {
        /// Not unique.
        name: String,
        /// Address range.
        cidr: String,
    },
    /// Of a disk.
    Disk {
        /// Not unique.
        name: String,
        /// Size.
        size_gb: i64,
    },
    /// Of an address.
    Address {
        /// Where.
        network_id: Id,
        /// Unique there.
        label: String,
    },
    /// Of a route.
    Route {
        /// Where.
        network_id: Id,
        /// Unique there.
        destination: String,
        /// Through which address.
        next_hop: String,
    },
    /// Of a machine.
    Machine {
        /// Not unique.
        name: String,
        /// Where.
        network_id: Id,
        /// With which disk.
        disk_id: Option<Id>,
        /// Size class; the one thing that can be changed.
        flavor: String,
    },
}
impl Attributes {
    /// Of which kind.
    pub fn kind(&self) -> Kind {
        match self {
            Attributes::Network { .. } => Kind::Network,
            Attributes::Disk { .. } => Kind::Disk,
            Attributes::Address { .. } => Kind::Address,
            Attributes::Route { .. } => Kind::Route,
            Attributes::Machine { .. } => Kind::Machine,
        }
    }
    /// The natural key. Where names are not unique it is only a hint: it says what might be meant, never whose it is.
    pub fn key(&self) -> String {
        match self {
            Attributes::Network { name, .. } | Attributes::Disk { name, .. } | Attributes::Machine { name, .. } => {
                format!("name/{name}")
            }
            Attributes::Address { network_id, label } => format!("{network_id}/label/{label}"),
            Attributes::Route { network_id, destination, .. } => format!("{network_id}/to/{destination}"),
        }
    }
    /// The fields of the create call. Drafts and sightings are hashed from this one form, or they would never agree.
    pub fn body(&self) -> Value {
        match self {
            Attributes::Network { name, cidr } => json!({"name": name, "cidr": cidr}),
            Attributes::Disk { name, size_gb } => json!({"name": name, "size_gb": size_gb}),
            Attributes::Address { network_id, label } => json!({"network_id": network_id, "label": label}),
            Attributes::Route { network_id, destination, next_hop } => {
                json!({"network_id": network_id, "destination": destination, "next_hop": next_hop})
            }
            Attributes::Machine { name, network_id, disk_id: None, flavor } => {
                json!({"name": name, "network_id": network_id, "flavor": flavor})
            }
            Attributes::Machine { name, network_id, disk_id: Some(disk), flavor } => {
                json!({"name": name, "network_id": network_id, "disk_id": disk, "flavor": flavor})
            }
        }
    }
    /// The network it stands in.
    pub fn parent(&self) -> Option<&Id> {
        match self {
            Attributes::Network { .. } | Attributes::Disk { .. } => None,
            Attributes::Address { network_id, .. }
            | Attributes::Route { network_id, .. }
            | Attributes::Machine { network_id, .. } => Some(network_id),
        }
    }
}

/// Where a thing is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not usable yet.
    Building,
    /// Usable.
    Ready,
    /// Will never be usable.
    Failed,
    /// On its way out.
    Deleting,
}

/// Tags of a thing.
pub type Tags = BTreeMap<String, String>;

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: Id,
    /// What it was made with.
    pub attributes: Attributes,
    /// Its tags; none for kinds that have no tags.
    pub tags: Option<Tags>,
    /// The cloud's date of its creation.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// Where it is in its life.
    pub state: State,
    /// Why it is there, if the cloud says.
    pub state_reason: Option<String>,
}

/// All things of one kind, as shown at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// The cloud's date in the reply to the first request.
    pub date: Timestamp,
    /// The things.
    pub items: Vec<Item>,
}

/// Who the credentials are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The account.
    pub account: String,
    /// The region.
    pub region: String,
    /// The principal.
    pub principal: String,
    /// The cloud's own date.
    pub date: Timestamp,
}

/// One create call.
#[derive(Clone, Copy, Debug)]
pub struct Creation<'a> {
    /// As [`Attributes::body`] makes them.
    pub fields: &'a Value,
    /// For kinds that take tags at create.
    pub tags: Option<&'a Tags>,
    /// For kinds that take an idempotency key.
    pub token: Option<&'a str>,
    /// Not sent later than this.
    pub not_after: Boot,
}

/// What the sample cloud can do.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Who the credentials are.
    async fn whoami(&self) -> Result<Identity, Fault>;
    /// All things of a kind.
    async fn list(&self, kind: Kind) -> Result<Inventory, Fault>;
    /// One thing; `None` if the cloud says there is none.
    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Item>, Fault>;
    /// Creates with one call; never repeated here.
    async fn create(&self, kind: Kind, creation: Creation<'_>) -> Outcome<Id>;
    /// Sets and removes tags, leaving all others.
    async fn tag(&self, kind: Kind, id: &str, set: &Tags, remove: &[&str]) -> Outcome<()>;
    /// Changes the flavor of a machine.
    async fn resize(&self, id: &str, flavor: &str) -> Outcome<()>;
    /// Deletes; what is not there counts as done.
    async fn delete(&self, kind: Kind, id: &str) -> Outcome<()>;
    /// Each permission that this controller needs for a kind, and whether it has it. Changes nothing.
    async fn permissions(&self, kind: Kind) -> Vec<(String, Result<(), Fault>)>;
}
