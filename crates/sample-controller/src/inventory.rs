//! Everything the account shows, as an audit wants it.
use crate::cloud::{Attributes, Item};
use crate::estate::mark_of;
use crate::session::Session;
use common::clock::Boot;
use common::engine::estate::{Fault, Freshness};
use common::operator::Found;

/// Everything, listed afresh.
pub async fn found(session: &Session, now: Boot) -> Result<Vec<Found>, Fault> {
    let snapshots = session.snapshots(Freshness::SentAfter(now)).await?;
    Ok(snapshots.iter().flat_map(|snapshot| snapshot.items.iter().map(as_found)).collect())
}

fn as_found(item: &Item) -> Found {
    let name = match &item.attributes {
        Attributes::Network { name, .. } | Attributes::Disk { name, .. } | Attributes::Machine { name, .. } => name,
        Attributes::Address { label, .. } => label,
        Attributes::Route { destination, .. } => destination,
    };
    Found {
        kind: item.attributes.kind().singular(),
        id: item.id.clone(),
        mark: mark_of(item),
        name: name.clone(),
        parent: item.attributes.parent().cloned(),
    }
}
