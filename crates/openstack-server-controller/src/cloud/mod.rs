//! OpenStack in our own words: what it can do, and plain structs. No HTTP in it.
mod item;

pub use item::*;

use crate::quota::Quota;
use async_trait::async_trait;
use common::clock::Boot;
use common::engine::estate::{Fault, Outcome};
use common::identity::{MarkKeys, Slot};
use common::ledger::Id;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The keys of our marks: Nova allows neither a slash in metadata keys nor in tags.
pub const KEYS: MarkKeys = MarkKeys::DASHED;

/// The kinds of things that have owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A port.
    Port,
    /// A volume.
    Volume,
    /// A trunk on a port.
    Trunk,
    /// A server.
    Server,
    /// A floating IP.
    FloatingIp,
    /// A member of a pool of a load balancer.
    Member,
}
impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [Kind::Port, Kind::Volume, Kind::Trunk, Kind::Server, Kind::FloatingIp, Kind::Member];
    /// The first part of its slots.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Port => "port",
            Kind::Volume => "volume",
            Kind::Trunk => "trunk",
            Kind::Server => "server",
            Kind::FloatingIp => "fip",
            Kind::Member => "member",
        }
    }
    /// The kind of a slot.
    pub fn of(slot: &Slot) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == slot.kind())
    }
}

/// Names to values: metadata, marks.
pub type Pairs = BTreeMap<String, String>;

/// All things of a kind.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// The cloud's own date in the reply to the first request.
    pub date: Timestamp,
    /// The things.
    pub items: Vec<Item>,
}
/// Who the credentials are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Id of the project.
    pub project: String,
    /// Region.
    pub region: String,
    /// Name or id of the user.
    pub user: String,
    /// The cloud's own date.
    pub date: Timestamp,
}
impl Identity {
    /// What a ledger is written for.
    pub fn scope(&self) -> String {
        format!("{}/{}", self.project, self.region)
    }
}

/// Something that a spec can name: network, subnet, security group, image, flavor, server group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// Of a subnet: its network.
    pub network: Option<Id>,
    /// Of a subnet: its address range.
    pub cidr: Option<String>,
    /// Of an image: its state.
    pub status: Option<String>,
    /// Of a flavor: its cores.
    pub cores: i64,
    /// Of a flavor: its RAM in MB.
    pub ram: i64,
}
/// What can be looked up by filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Networks.
    Networks,
    /// Subnets.
    Subnets,
    /// Security groups.
    SecurityGroups,
    /// Images.
    Images,
    /// Flavors; all, the cloud knows no filter by name.
    Flavors,
    /// Server groups; all, the cloud knows no filter by name.
    ServerGroups,
}
/// A pool that answers for a port of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The port that the balancer listens on.
    pub port: i64,
    /// The pool behind it.
    pub pool: Id,
}
/// What a create brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its id.
    pub id: Id,
    /// The whole thing, where the reply shows it as a read would.
    pub item: Option<Item>,
}
/// Query parameters.
pub type Query = Vec<(&'static str, String)>;

/// What Neutron can do beyond the beginning.
pub type Extensions = BTreeSet<String>;
/// Things have tags.
pub const TAGS: &str = "standard-attr-tag";
/// Ports can be trunks.
pub const TRUNKS: &str = "trunk";
/// There are routers, and floating IPs with them.
pub const ROUTERS: &str = "router";
/// A port is trusted by an attribute of its own.
pub const TRUSTED_PORTS: &str = "port-trusted-vif";

/// One project of a cloud.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Who we are. Asks once.
    async fn identity(&self) -> Result<Identity, Fault>;
    /// What Neutron can do. Asks once an hour.
    async fn extensions(&self) -> Result<Extensions, Fault>;
    /// Availability zones of Nova that take servers. Asks once an hour.
    async fn zones(&self) -> Result<BTreeSet<String>, Fault>;
    /// The newest microversion of Nova that is used here: minor number of 2.x. Asks once an hour.
    async fn compute_version(&self) -> Result<u32, Fault>;
    /// Can there be things of this kind? Not every cloud has block storage, trunks or load balancers.
    async fn offers(&self, kind: Kind) -> Result<bool, Fault>;
    /// Everything of a kind in the project.
    async fn list(&self, kind: Kind) -> Result<Inventory, Fault>;
    /// One thing; none if the cloud says that there is none.
    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Item>, Fault>;
    /// What fits a filter.
    async fn find(&self, what: Lookup, query: Query) -> Result<Vec<Found>, Fault>;
    /// One of them by id; none if the cloud says that there is none.
    async fn one(&self, what: Lookup, id: &str) -> Result<Option<Found>, Fault>;
    /// Creates, with a mark. Not sent after `not_after`.
    async fn create(&self, kind: Kind, body: &Value, mark: &Pairs, not_after: Boot) -> Outcome<Made>;
    /// Puts these words of a mark on, in place of any others of ours.
    async fn mark(&self, kind: Kind, id: &str, mark: &Pairs) -> Outcome<()>;
    /// Sets all tags of a port or trunk.
    async fn set_tags(&self, kind: Kind, id: &str, tags: &BTreeSet<String>) -> Outcome<()>;
    /// Deletes. What is not there is done.
    async fn delete(&self, kind: Kind, id: &str) -> Outcome<()>;
    /// Ends a soft-deleted server for good.
    async fn force_delete(&self, server: &str) -> Outcome<()>;
    /// Leads a floating IP to a port, or to nowhere.
    async fn point(&self, floating_ip: &str, port: Option<&str>) -> Outcome<()>;
    /// Gateway networks of the routers that stand in a network.
    async fn gateways(&self, network: &str) -> Result<BTreeSet<Id>, Fault>;
    /// Members of the pools of a load balancer; of all pools of the project if none is named.
    async fn members(&self, balancer: Option<&str>) -> Result<Inventory, Fault>;
    /// The pools behind the ports of a load balancer.
    async fn backends(&self, balancer: &str) -> Result<Vec<Backend>, Fault>;
    /// The quotas of the project, as far as they are told.
    async fn quotas(&self) -> Result<Vec<Quota>, Fault>;
    /// Is there an SSH key of this name?
    async fn has_key(&self, name: &str) -> Result<bool, Fault>;
    /// Types that volumes can be of, by id and by name.
    async fn volume_types(&self) -> Result<BTreeSet<String>, Fault>;
}
