//! Which floating IP a bastion has. Pure.
use super::estate::Wish;
use crate::cloud::{FloatingIp, Item};
use common::concern::Concern;
use common::identity::MarkSeen;
use common::ledger::{Id, Record};
use std::collections::BTreeSet;

/// What it is decided on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    /// The network that addresses come from.
    pub(super) network: &'a str,
    /// The address that the spec names.
    pub(super) pinned: Option<&'a str>,
    /// What the ledger says of the address so far.
    pub(super) record: Option<&'a Record>,
    /// What the Go provider made is asked for.
    pub(super) adopts: bool,
    /// The port that the bastion stands behind, once it can be told.
    pub(super) target: Option<&'a str>,
    /// All ports of the bastion, once they can be told.
    pub(super) own: &'a BTreeSet<Id>,
    /// The address that status tells of.
    pub(super) before: Option<&'a str>,
    /// Whose marks count.
    pub(super) concern: &'a Concern,
}
/// Why an address that is not our own cannot be led to the bastion: it leads to a port of somebody else's, who would only take it
/// back.
pub(super) fn taken(address: &FloatingIp, own: &BTreeSet<Id>) -> Option<String> {
    let port = address.port.as_ref().filter(|port| !own.is_empty() && !own.contains(*port))?;
    Some(format!(
        "floatingIP {} leads to port {port}, which is not the bastion's: set it free, or name another",
        address.address
    ))
}
impl Scene<'_> {
    /// One of our own, made or taken over or about to be: it outlives every server that it leads to.
    fn has_own(&self) -> bool {
        matches!(self.record, Some(Record::Intended { .. } | Record::Created { .. } | Record::Adopted { .. }))
    }
    /// Must the floating IPs of the project be known?
    pub(super) fn needs_list(&self) -> bool {
        self.pinned.is_some() || self.adopts && !self.has_own()
    }
    /// Decides; `items` may be empty where no list is needed. An error says what cannot be had.
    pub(super) fn wish<'i>(&self, items: impl Iterator<Item = &'i Item>) -> Result<Wish, String> {
        let all: Vec<(&Item, &FloatingIp)> =
            items.filter_map(|item| if let Item::FloatingIp(it) = item { Some((item, it)) } else { None }).collect();
        let make = |adopt: Option<Id>| Wish::Make {
            network: self.network.to_owned(),
            address: self.pinned.map(str::to_owned),
            adopt,
        };
        if let Some(address) = self.pinned {
            return match all.iter().find(|(_, it)| it.address == address) {
                // One that we had to make ourselves stays ours.
                Some((item, _)) if self.concern.touches(&item.mark()) => Ok(make(None)),
                Some((_, it)) => taken(it, self.own).map_or_else(|| Ok(Wish::Use(it.id.clone())), Err),
                None => match all.iter().find(|(_, it)| self.record.and_then(Record::id) == Some(&it.id)) {
                    // Only an administrator may ask for a given address: the one there is is not risked for it.
                    Some((_, it)) if self.has_own() => Err(format!(
                        "floatingIP {address} does not exist, and {} was made for this bastion: disable the bastion first, or \
                         make the address",
                        it.address
                    )),
                    _ => Ok(make(None)),
                },
            };
        }
        if self.has_own() || !self.adopts {
            return Ok(make(None));
        }
        let legacy = all.iter().find(|(item, it)| {
            let ours = item.mark() == MarkSeen::Nothing || self.concern.touches(&item.mark());
            let leads = it.port.as_deref().is_some_and(|port| Some(port) == self.target);
            // One that was only named, and is not any more, stays its user's.
            let named = self.record.and_then(Record::id) == Some(&it.id);
            ours && !named && (leads || self.before == Some(it.address.as_str()))
        });
        // Without knowing where the bastion stands nothing can be told: a second address would be made beside its own.
        Ok(match legacy {
            None if self.target.is_none() => Wish::None,
            legacy => make(legacy.map(|(_, it)| it.id.clone())),
        })
    }
}
