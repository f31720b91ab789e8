//! Things as plain structs, and the marks they carry.
use super::{KEYS, Kind, Pairs};
use common::identity::MarkSeen;
use common::ledger::Id;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

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
    /// Its flavor, as far as Nova tells: a recent one tells the name, an old one the id.
    pub flavor: Flavor,
    /// When it was made.
    pub created: Option<Timestamp>,
}
/// The flavor of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flavor {
    /// Id.
    pub id: Option<String>,
    /// Name.
    pub name: Option<String>,
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
    /// Addresses that it may use beside, and with which MAC.
    pub pairs: Vec<(String, String)>,
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

/// A member of a pool of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// `<pool>/<member>`: its own id leads nowhere without that of its pool.
    pub id: Id,
    /// Name; not unique.
    pub name: String,
    /// Its pool.
    pub pool: Id,
    /// Where it leads; a pool has at most one member of an address and port.
    pub address: String,
    /// TCP port.
    pub port: i64,
    /// Octavia's word for how far it is.
    pub status: String,
    /// Tags.
    pub tags: BTreeSet<String>,
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
    /// A member of a pool.
    Member(Member),
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
            Item::Member(_) => Kind::Member,
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
            Item::Member(it) => &it.id,
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
            Item::Member(it) => &it.name,
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
            Item::Member(it) => it.created,
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
            Item::Member(it) => member_key(&it.pool, &it.address, it.port),
        }
    }
    /// What it says of its owner: in metadata, in words of its description, or in tags.
    pub fn mark(&self) -> MarkSeen {
        let pairs: Vec<(&str, &str)> = match self {
            Item::Server(it) => it.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
            Item::Volume(it) => it.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
            Item::Port(it) => words(&it.description).collect(),
            Item::Trunk(it) => words(&it.description).collect(),
            Item::FloatingIp(it) => words(&it.description).collect(),
            Item::Member(it) => it.tags.iter().filter_map(|tag| tag.split_once('=')).collect(),
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

/// Where a member would stand.
pub fn member_key(pool: &str, address: &str, port: i64) -> String {
    format!("member {address}:{port} in {pool}")
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
/// Tags with these words of a mark in place of any others; people's own stay.
pub fn retagged(tags: &BTreeSet<String>, mark: &Pairs) -> BTreeSet<String> {
    let ours = |tag: &&String| tag.split_once('=').is_some_and(|(key, _)| KEYS.all().contains(&key));
    let words = mark.iter().map(|(key, value)| format!("{key}={value}"));
    tags.iter().filter(|tag| !ours(tag)).cloned().chain(words).collect()
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
            Item::Volume(Volume { metadata: pairs.clone(), ..Volume::default() }),
            Item::Member(Member {
                tags: retagged(&BTreeSet::from(["team=x".to_owned()]), &pairs),
                ..Member::default()
            }),
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
