//! What an owner wants, as pieces for the engine. Pure: the spec and the ids known so far go in, pieces come out.
use crate::api::{Adopt, SampleOwnerSpec};
use crate::cloud::{Attributes, Item, Kind};
use crate::names::cloud_name;
use common::engine::estate::{Draft, Ids, Piece, Want};
use common::identity::{Slot, Then};
use common::ledger::Id;
use std::collections::{BTreeMap, BTreeSet};

/// Something in the spec that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// The name makes no slot.
    #[error("{kind} {name:?}: {why}")]
    Name {
        /// Of the item.
        kind: &'static str,
        /// Of the item.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// Two items have one name.
    #[error("two items are called {0}")]
    Twice(Slot),
    /// An item names another that is not there.
    #[error("{from} names {to}, which is not in the spec")]
    Dangling {
        /// The item.
        from: Slot,
        /// What it names.
        to: String,
    },
    /// Two items would be the same thing.
    #[error("{one} and {other} would be the same thing: {key}")]
    SameThing {
        /// One of them.
        one: Slot,
        /// The other.
        other: Slot,
        /// What they share.
        key: String,
    },
    /// An item says neither what to make nor what to use, or both.
    #[error("{0} must say either what to make or what to use")]
    Unclear(Slot),
}

/// Attributes whose references are still slots.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Template {
    Network { name: String, cidr: String },
    Disk { name: String, size_gb: i64 },
    Address { network: Slot, label: String },
    Route { network: Slot, destination: String, next_hop: String },
    Machine { name: String, network: Slot, disk: Option<Slot>, flavor: String },
}
impl Template {
    fn needs(&self) -> Vec<Slot> {
        match self {
            Template::Network { .. } | Template::Disk { .. } => Vec::new(),
            Template::Address { network, .. } | Template::Route { network, .. } => vec![network.clone()],
            Template::Machine { network, disk, .. } => {
                [Some(network), disk.as_ref()].into_iter().flatten().cloned().collect()
            }
        }
    }
    /// The attributes, once everything it needs has an id.
    fn resolve(&self, ids: &Ids) -> Option<Attributes> {
        let id = |slot: &Slot| ids.get(slot).cloned();
        Some(match self.clone() {
            Template::Network { name, cidr } => Attributes::Network { name, cidr },
            Template::Disk { name, size_gb } => Attributes::Disk { name, size_gb },
            Template::Address { network, label } => Attributes::Address { network_id: id(&network)?, label },
            Template::Route { network, destination, next_hop } => {
                Attributes::Route { network_id: id(&network)?, destination, next_hop }
            }
            Template::Machine { name, network, disk, flavor } => Attributes::Machine {
                name,
                network_id: id(&network)?,
                disk_id: match disk {
                    Some(disk) => Some(id(&disk)?),
                    None => None,
                },
                flavor,
            },
        })
    }
    /// What no two items may share.
    fn key(&self) -> String {
        match self {
            Template::Network { name, .. } => format!("network name {name}"),
            Template::Disk { name, .. } => format!("disk name {name}"),
            Template::Machine { name, .. } => format!("machine name {name}"),
            Template::Address { network, label } => format!("label {label} in {network}"),
            Template::Route { network, destination, .. } => format!("destination {destination} in {network}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wish {
    Make { template: Template, adopt: Option<Then> },
    Use { id: Id },
}

/// The wishes of one owner, read and checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    wishes: BTreeMap<Slot, Wish>,
    problems: BTreeSet<Problem>,
}

impl Plan {
    /// Reads a spec. What cannot be served is left out and listed as a problem.
    pub fn of(namespace: &str, owner: &str, spec: &SampleOwnerSpec) -> Self {
        let mut plan = Plan::default();
        let named =
            |given: &Option<String>, item: &str| given.clone().unwrap_or_else(|| cloud_name(namespace, owner, item));
        for n in &spec.networks {
            let make = n.cidr.clone().map(|cidr| Template::Network { name: named(&n.cloud_name, &n.name), cidr });
            plan.make_or_use(Kind::Network, &n.name, make, n.adopt, n.use_id.as_ref());
        }
        for d in &spec.disks {
            let make =
                d.size_gb.map(|size| Template::Disk { name: named(&d.cloud_name, &d.name), size_gb: size.into() });
            plan.make_or_use(Kind::Disk, &d.name, make, d.adopt, d.use_id.as_ref());
        }
        for a in &spec.addresses {
            let Some(slot) = plan.slot(Kind::Address, &a.name) else { continue };
            let Some(network) = plan.reference(&slot, Kind::Network, &a.network) else { continue };
            let template = Template::Address { network, label: a.label.clone() };
            plan.wish(slot, Wish::Make { template, adopt: a.adopt.map(then) });
        }
        for r in &spec.routes {
            let Some(slot) = plan.slot(Kind::Route, &r.name) else { continue };
            let Some(network) = plan.reference(&slot, Kind::Network, &r.network) else { continue };
            let (destination, next_hop) = (r.destination.clone(), r.next_hop.clone());
            plan.wish(slot, Wish::Make { template: Template::Route { network, destination, next_hop }, adopt: None });
        }
        for m in &spec.machines {
            let Some(slot) = plan.slot(Kind::Machine, &m.name) else { continue };
            let Some(network) = plan.reference(&slot, Kind::Network, &m.network) else { continue };
            let disk = match &m.disk {
                None => None,
                Some(name) => match plan.reference(&slot, Kind::Disk, name) {
                    None => continue,
                    disk => disk,
                },
            };
            let template = Template::Machine { name: named(&None, &m.name), network, disk, flavor: m.flavor.clone() };
            plan.wish(slot, Wish::Make { template, adopt: None });
        }
        plan
    }

    /// Everything in the spec that cannot be served, in one line; none if all can.
    pub fn problem(&self) -> Option<String> {
        let all: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
    /// The problems one by one.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter()
    }

    /// The pieces, given the ids known so far.
    pub fn pieces(&self, ids: &Ids) -> Vec<Piece> {
        let piece = |(slot, wish): (&Slot, &Wish)| match wish {
            Wish::Use { id } => Piece { slot: slot.clone(), needs: Vec::new(), want: Want::Use { id: id.clone() } },
            Wish::Make { template, adopt } => Piece {
                slot: slot.clone(),
                needs: template.needs(),
                want: Want::Make {
                    draft: template.resolve(ids).map(|it| Draft { key: it.key(), params: it.body() }),
                    adopt: *adopt,
                },
            },
        };
        self.wishes.iter().map(piece).collect()
    }

    /// The flavor that the machine in this slot should have.
    pub fn flavor(&self, slot: &Slot) -> Option<&str> {
        match self.wishes.get(slot)? {
            Wish::Make { template: Template::Machine { flavor, .. }, .. } => Some(flavor),
            _ => None,
        }
    }

    /// Could this thing be meant by a wish: is it used by id, or does it stand where a piece would stand? `networks` are
    /// the ids that the owner's networks may have.
    pub fn may_mean(&self, item: &Item, networks: &BTreeSet<&Id>) -> bool {
        self.wishes.values().any(|wish| match wish {
            Wish::Use { id } => *id == item.id,
            Wish::Make { template, .. } => match (template, &item.attributes) {
                (Template::Network { name, .. }, Attributes::Network { name: seen, .. })
                | (Template::Disk { name, .. }, Attributes::Disk { name: seen, .. })
                | (Template::Machine { name, .. }, Attributes::Machine { name: seen, .. }) => name == seen,
                (Template::Address { label, .. }, Attributes::Address { network_id, label: seen }) => {
                    label == seen && networks.contains(network_id)
                }
                (Template::Route { destination, .. }, Attributes::Route { network_id, destination: seen, .. }) => {
                    destination == seen && networks.contains(network_id)
                }
                _ => false,
            },
        })
    }

    fn make_or_use(&mut self, kind: Kind, name: &str, make: Option<Template>, adopt: Option<Adopt>, id: Option<&Id>) {
        let Some(slot) = self.slot(kind, name) else { return };
        match (make, id) {
            (Some(template), None) => self.wish(slot, Wish::Make { template, adopt: adopt.map(then) }),
            (None, Some(id)) => self.wish(slot, Wish::Use { id: id.clone() }),
            (Some(_), Some(_)) | (None, None) => {
                self.problems.insert(Problem::Unclear(slot));
            }
        }
    }
    fn slot(&mut self, kind: Kind, name: &str) -> Option<Slot> {
        match Slot::new(kind.singular(), Some(name)) {
            Ok(slot) => Some(slot),
            Err(e) => {
                let (kind, name, why) = (kind.singular(), name.to_owned(), e.to_string());
                self.problems.insert(Problem::Name { kind, name, why });
                None
            }
        }
    }
    fn reference(&mut self, from: &Slot, kind: Kind, name: &str) -> Option<Slot> {
        let found = Slot::new(kind.singular(), Some(name)).ok().filter(|slot| self.wishes.contains_key(slot));
        if found.is_none() {
            self.problems.insert(Problem::Dangling { from: from.clone(), to: format!("{} {name:?}", kind.singular()) });
        }
        found
    }
    fn wish(&mut self, slot: Slot, wish: Wish) {
        if self.wishes.contains_key(&slot) {
            self.problems.insert(Problem::Twice(slot));
            return;
        }
        if let Wish::Make { template, .. } = &wish {
            let key = template.key();
            let same = |other: &Wish| matches!(other, Wish::Make { template, .. } if template.key() == key);
            if let Some((other, _)) = self.wishes.iter().find(|(_, other)| same(other)) {
                self.problems.insert(Problem::SameThing { one: other.clone(), other: slot, key });
                return;
            }
        }
        self.wishes.insert(slot, wish);
    }
}

fn then(adopt: Adopt) -> Then {
    match adopt {
        Adopt::Delete => Then::Delete,
        Adopt::Release => Then::Release,
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
