//! What the projects show, for people: every thing of every kind, and what could not be looked at.
use crate::cloud::{Item, Kind};
use crate::session::Session;
use common::engine::estate::{Fault, Freshness};
use common::operator::Found;
use std::collections::BTreeSet;

/// Everything that is seen.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// The things.
    pub found: Vec<Found>,
    /// Kinds that a project cannot have.
    pub absent: Vec<String>,
    /// What could not be looked at, and why: there may be things.
    pub unseen: Vec<String>,
}
impl Sight {
    /// Adds what one project shows. A kind that the cloud does not offer is no failure, and one that fails hides no other.
    pub async fn look(&mut self, scope: &str, session: &Session, freshness: Freshness) {
        for kind in Kind::ALL {
            match items(session, kind, freshness).await {
                Ok(Some(found)) => self.found.extend(found),
                Ok(None) => self.absent.push(format!("{scope} has no {}", word(kind))),
                Err(fault) => self.unseen.push(format!("{scope}: {}: {fault}", word(kind))),
            }
        }
    }
}
/// All of a kind; none where the cloud does not offer it.
async fn items(session: &Session, kind: Kind, freshness: Freshness) -> Result<Option<Vec<Found>>, Fault> {
    if !session.cloud().offers(kind).await? {
        return Ok(None);
    }
    let snapshots = session.snapshots(&BTreeSet::from([kind]), freshness).await?;
    Ok(Some(snapshots.iter().flat_map(|snapshot| snapshot.items.iter().map(found)).collect()))
}
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Port => "ports",
        Kind::Volume => "volumes",
        Kind::Trunk => "trunks",
        Kind::Server => "servers",
        Kind::FloatingIp => "floating IPs",
        Kind::Member => "load balancers",
    }
}
fn found(item: &Item) -> Found {
    let parent = match item {
        Item::Trunk(trunk) => Some(trunk.port.clone()),
        _ => None,
    };
    Found { kind: item.kind().name(), id: item.id().clone(), mark: item.mark(), name: item.name().to_owned(), parent }
}
