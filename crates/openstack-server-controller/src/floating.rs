//! Puts the address that a pool gave on the port of the server that can be reached by it.
use crate::cloud::{Item, Kind, Server};
use crate::plan::port_slot;
use crate::session::Session;
use crate::status::Floating;
use common::clock::Boot;
use common::engine::estate::{Fault, Freshness, Ids, Outcome};
use common::engine::fence::Fence;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a write needs beside the cloud.
pub struct Leave<'a> {
    /// Asked before every write.
    pub fence: &'a dyn Fence,
    /// Now.
    pub now: Boot,
    /// Longest call.
    pub call: Duration,
}

/// Looks whether the address leads to the server; if not, makes it do so.
pub async fn lead(
    session: &Session,
    address: &str,
    server: &Server,
    ids: &Ids,
    leave: Leave<'_>,
) -> Result<Floating, Fault> {
    let shown = server.addresses.values().flatten().any(|it| it.address == address);
    if shown {
        return Ok(Floating::Ready);
    }
    let kinds = BTreeSet::from([Kind::FloatingIp, Kind::Port]);
    let snapshots = session.snapshots(&kinds, Freshness::SentAfter(leave.now)).await?;
    let items = || snapshots.iter().flat_map(|it| &it.items);
    let found = items().find_map(|item| match item {
        Item::FloatingIp(it) if it.address == address => Some(it),
        _ => None,
    });
    let Some(floating) = found else {
        return Ok(Floating::Failed(format!("there is no floating IP {address} in this project")));
    };
    // In the order of the spec: the first port that can be reached is taken.
    let ours: Vec<_> = (0..ids.len()).filter_map(|index| ids.get(&port_slot(index)?)).collect();
    if floating.port.as_ref().is_some_and(|port| ours.contains(&port)) {
        return Ok(Floating::Ready);
    }
    if let Some(other) = &floating.port {
        return Ok(Floating::Failed(format!(
            "floating IP {address} leads to port {other}, which is not of this server"
        )));
    }
    for id in ours {
        let network = items().find_map(|item| match item {
            Item::Port(port) if port.id == *id => Some(port.network.clone()),
            _ => None,
        });
        let Some(network) = network else { continue };
        if !session.cloud().gateways(&network).await?.contains(&floating.network) {
            continue;
        }
        if !leave.fence.holds_until(leave.now + leave.call) {
            return Err(Fault::Transient("the lease ends too soon for another write".into()));
        }
        return match session.cloud().point(&floating.id, Some(id)).await {
            Outcome::Done(()) => Ok(Floating::Ready),
            Outcome::Refused(fault) => Err(fault),
            Outcome::Unknown(why) => Err(Fault::Transient(why)),
        };
    }
    Ok(Floating::Failed(format!("no port of the server stands behind a router to the network of {address}")))
}
