//! OpenStack in our own words: what it can do, and plain structs. No HTTP in it.
use async_trait::async_trait;
use common::clock::Boot;
use common::engine::estate::{Fault, Outcome};
use common::identity::{MarkKeys, MarkSeen, Slot};
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
}
impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Port, Kind::Volume, Kind::Trunk, Kind::Server, Kind::FloatingIp];
    /// The first part of its slots.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Port => "port",
            Kind::Volume => "volume",
            Kind::Trunk => "trunk",
            Kind::Server => "server",
            Kind::FloatingIp => "fip",
        }
    }
    /// The kind of a slot.
    pub fn of(slot: &Slot) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == slot.kind())
    }
}

/// Names to values: metadata, marks.
pub type Pairs = BTreeMap<String, String>;

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Id.
    pub id: Id,
    /// Name; not unique.
    pub name: String,
    /// Nova's word for its state.
    pub status: String,
    /// What Nova is doing with it.
    pub task: Option<String>,
    /// Why it is in ERROR.
    pub fault: Option<String>,
    /// Metadata.
    pub metadata: Pairs,
    /// Addresses by network.
    pub addresses: BTreeMap<String, Vec<Address>>,
    /// Attached volumes.
    pub volumes: Vec<Id>,
    /// When it was made.
    pub created: Option<Timestamp>,
}
/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub address: String,
    /// 4 or 6.
    pub version: u8,
    /// Nova's word for where it comes from: `fixed` or `floating`.
    pub origin: String,
}
/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Id.
    pub id: Id,
    /// Name; not unique.
    pub name: String,
    /// Network.
    pub network: Id,
    /// What it is plugged into; empty if nothing.
    pub device: String,
    /// Tags.
    pub tags: BTreeSet<String>,
    /// Description.
    pub description: String,
    /// Security groups.
    pub security_groups: BTreeSet<Id>,
    /// Administrative state.
    pub up: bool,
    /// Subnets and addresses.
    pub fixed_ips: Vec<(Id, String)>,
    /// When it was made.
    pub created: Option<Timestamp>,
}
/// A trunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trunk {
    /// Id.
    pub id: Id,
    /// Name.
    pub name: String,
    /// The port it stands on; a port has at most one.
    pub port: Id,
    /// Description.
    pub description: String,
    /// Tags.
    pub tags: BTreeSet<String>,
    /// Ports that ride on it.
    pub sub_ports: Vec<Id>,
    /// When it was made.
    pub created: Option<Timestamp>,
}
/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Id.
    pub id: Id,
    /// Name; not unique.
    pub name: String,
    /// Cinder's word for its state.
    pub status: String,
    /// Size in GiB.
    pub size: i64,
    /// Metadata.
    pub metadata: Pairs,
    /// Servers it is attached to.
    pub servers: Vec<Id>,
    /// When it was made.
    pub created: Option<Timestamp>,
}
/// A floating IP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FloatingIp {
    /// Id.
    pub id: Id,
    /// The address.
    pub address: String,
    /// The external network.
    pub network: Id,
    /// The port it leads to.
    pub port: Option<Id>,
    /// Description.
    pub description: String,
    /// When it was made.
    pub created: Option<Timestamp>,
}

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A port.
    Port(Port),
    /// A volume.
    Volume(Volume),
    /// A trunk.
    Trunk(Trunk),
    /// A server.
    Server(Server),
    /// A floating IP.
    FloatingIp(FloatingIp),
}
impl Item {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Item::Port(_) => Kind::Port,
            Item::Volume(_) => Kind::Volume,
            Item::Trunk(_) => Kind::Trunk,
            Item::Server(_) => Kind::Server,
            Item::FloatingIp(_) => Kind::FloatingIp,
        }
    }
    /// Its id.
    pub fn id(&self) -> &Id {
        match self {
            Item::Port(it) => &it.id,
            Item::Volume(it) => &it.id,
            Item::Trunk(it) => &it.id,
            Item::Server(it) => &it.id,
            Item::FloatingIp(it) => &it.id,
        }
    }
    /// What people call it.
    pub fn name(&self) -> &str {
        match self {
            Item::Port(it) => &it.name,
            Item::Volume(it) => &it.name,
            Item::Trunk(it) => &it.name,
            Item::Server(it) => &it.name,
            Item::FloatingIp(it) => &it.address,
        }
    }
    /// When it was made.
    pub fn created(&self) -> Option<Timestamp> {
        match self {
            Item::Port(it) => it.created,
            Item::Volume(it) => it.created,
            Item::Trunk(it) => it.created,
            Item::Server(it) => it.created,
            Item::FloatingIp(it) => it.created,
        }
    }
    /// The natural key it occupies: where a piece would stand.
    pub fn key(&self) -> String {
        match self {
            Item::Port(it) => port_key(&it.network, &it.name),
            Item::Volume(it) => format!("volume {}", it.name),
            Item::Trunk(it) => trunk_key(&it.port),
            Item::Server(it) => server_key(&it.name),
            Item::FloatingIp(it) => format!("address {}", it.address),
        }
    }
    /// What it says of its owner: in metadata, or in words of its description.
    pub fn mark(&self) -> MarkSeen {
        let pairs: Vec<(&str, &str)> = match self {
            Item::Server(it) => it.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
            Item::Volume(it) => it.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
            Item::Port(it) => words(&it.description).collect(),
            Item::Trunk(it) => words(&it.description).collect(),
            Item::FloatingIp(it) => words(&it.description).collect(),
        };
        MarkSeen::from_tags(&KEYS, pairs)
    }
}
/// Where a port of this name would stand.
pub fn port_key(network: &str, name: &str) -> String {
    format!("port {name} in {network}")
}
/// Where a trunk on this port would stand.
pub fn trunk_key(port: &str) -> String {
    format!("trunk on {port}")
}
/// Where a server of this name would stand.
pub fn server_key(name: &str) -> String {
    format!("server {name}")
}

/// The words of a mark in a description.
fn words(description: &str) -> impl Iterator<Item = (&str, &str)> {
    description.split_whitespace().filter_map(|word| word.split_once('=')).filter(|(key, _)| KEYS.all().contains(key))
}
/// Longest description in Neutron.
const MOST_DESCRIPTION: usize = 255;
/// A description with these words of a mark in place of any others, its own words kept as far as there is room.
pub fn describe(description: &str, mark: &Pairs) -> String {
    let own: Vec<&str> = description.split_whitespace().filter(|word| words(word).next().is_none()).collect();
    let mark: Vec<String> = mark.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mark = mark.join(" ");
    let room = MOST_DESCRIPTION.saturating_sub(mark.len() + 1);
    let own = own.join(" ");
    let own: String = own
        .chars()
        .scan(0, |used, c| {
            *used += c.len_utf8();
            (*used <= room).then_some(c)
        })
        .collect();
    format!("{own} {mark}").trim().to_owned()
}
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
/// A port is trusted by an attribute of its own.
pub const TRUSTED_PORTS: &str = "port-trusted-vif";

/// One project of a cloud.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Who we are. Asks once.
    async fn identity(&self) -> Result<Identity, Fault>;
    /// What Neutron can do. Asks once an hour.
    async fn extensions(&self) -> Result<Extensions, Fault>;
    /// The newest microversion of Nova that is used here: minor number of 2.x. Asks once.
    async fn compute_version(&self) -> Result<u32, Fault>;
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
    /// What is left of the quotas, for people: name, used, most.
    async fn quotas(&self) -> Result<Vec<(String, i64, i64)>, Fault>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::identity::{Mark, OwnerId, Place};

    fn mark() -> Mark {
        Mark {
            owner: OwnerId::from_bits([7; 16]),
            place: Place::of("here", "openstack", "OpenStackServer", "ns", "a"),
            slot: "port-0".parse().unwrap(),
            adopted: None,
        }
    }

    #[test]
    fn every_carrier_gives_the_mark_back_among_other_words() {
        let pairs = mark().to_tags(&KEYS);
        let described = describe("the first port", &pairs);
        let things = [
            Item::Port(Port { description: described.clone(), ..Port::default() }),
            Item::Trunk(Trunk { description: described.clone(), ..Trunk::default() }),
            Item::FloatingIp(FloatingIp { description: described, ..FloatingIp::default() }),
            Item::Server(Server { metadata: pairs.clone(), ..Server::default() }),
            Item::Volume(Volume { metadata: pairs, ..Volume::default() }),
        ];
        for thing in things {
            assert_eq!(thing.mark(), MarkSeen::Whole(mark()), "{thing:?}");
        }
    }
    #[test]
    fn a_new_mark_takes_the_place_of_the_old_one_and_an_empty_one_takes_it_off() {
        let pairs = mark().to_tags(&KEYS);
        let mut other = mark();
        other.owner = OwnerId::from_bits([9; 16]);
        let twice = describe(&describe("mine", &pairs), &other.to_tags(&KEYS));
        assert_eq!(
            Item::Trunk(Trunk { description: twice.clone(), ..Trunk::default() }).mark(),
            MarkSeen::Whole(other)
        );
        assert_eq!(describe(&twice, &Pairs::new()), "mine");
    }
    #[test]
    fn a_long_description_gives_way_to_the_mark() {
        let described = describe(&"é".repeat(300), &mark().to_tags(&KEYS));
        assert!(described.len() <= 255, "{}", described.len());
        assert_eq!(Item::Trunk(Trunk { description: described, ..Trunk::default() }).mark(), MarkSeen::Whole(mark()));
    }
}
