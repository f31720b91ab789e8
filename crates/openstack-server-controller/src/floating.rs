//! Puts the address that a pool gave on the port of the server that can be reached by it.
use crate::cloud::{Address, Item, Kind, Port, Server};
use crate::plan::port_slot;
use crate::session::Session;
use crate::status::Floating;
use common::clock::Boot;
use common::engine::Engine;
use common::engine::estate::{Fault, Freshness, Ids, Outcome};
use common::engine::fence::TOO_LATE;
use std::collections::BTreeSet;

/// Looks whether the address leads to the server; if not, makes it do so. The server as seen has the address then.
pub async fn lead(
    engine: &Engine,
    session: &Session,
    address: &str,
    (server, ids): (&mut Server, &Ids),
    now: Boot,
) -> Result<Floating, Fault> {
    let shown = server.addresses.values().flatten().any(|it| it.address == address);
    if shown {
        return Ok(Floating::Ready);
    }
    let kinds = BTreeSet::from([Kind::FloatingIp, Kind::Port]);
    let snapshots = session.snapshots(&kinds, Freshness::SentAfter(now)).await?;
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
    let port_of = |id: &str| items().find_map(|item| as_port(item, id));
    if let Some(port) = &floating.port {
        if !ours.contains(&port) {
            let why = format!("floating IP {address} leads to port {port}, which is not of this server");
            return Ok(Floating::Failed(why));
        }
        show(server, port_of(port), address);
        return Ok(Floating::Ready);
    }
    for port in ours.into_iter().filter_map(|id| port_of(id)) {
        if !session.cloud().gateways(&port.network).await?.contains(&floating.network) {
            continue;
        }
        if !engine.in_lease() {
            return Err(Fault::Transient(TOO_LATE.into()));
        }
        return match session.cloud().point(&floating.id, Some(&port.id)).await {
            Outcome::Done(()) => {
                show(server, Some(port), address);
                Ok(Floating::Ready)
            }
            Outcome::Refused(fault) => Err(fault),
            Outcome::Unknown(why) => Err(Fault::Transient(why)),
        };
    }
    Ok(Floating::Failed(format!("no port of the server stands behind a router to the network of {address}")))
}
fn as_port<'i>(item: &'i Item, id: &str) -> Option<&'i Port> {
    match item {
        Item::Port(port) if port.id == *id => Some(port),
        _ => None,
    }
}
/// Nova tells of the address a while later, and shared lists later still: until then nobody else would say it.
fn show(server: &mut Server, port: Option<&Port>, address: &str) {
    let fixed_ips = port.map(|it| it.fixed_ips.as_slice()).unwrap_or_default();
    let of_port = |it: &Address| fixed_ips.iter().any(|(_, fixed)| *fixed == it.address);
    if let Some(network) = server.addresses.values_mut().find(|list| list.iter().any(of_port)) {
        let version = if address.contains(':') { 6 } else { 4 };
        network.push(Address { address: address.to_owned(), version, origin: "floating".to_owned() });
    }
}
