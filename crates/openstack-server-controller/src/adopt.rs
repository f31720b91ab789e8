//! What may be adopted from the Go provider: the one server that bears the name of the spec, and what is attached to it.
//! Names of ports changed between its versions, so attachment decides, not names. Pure.
use crate::api::{OpenStackServerSpec, ResolvedServer, StorageType};
use crate::cloud::{Item, Kind, Port, Server, Trunk, Volume};
use crate::plan::{port_slot, server_slot};
use crate::resolve::wants_trunk;
use common::concern::Concern;
use common::identity::{MarkSeen, Slot};
use common::ledger::Id;
use std::collections::BTreeMap;

/// Things that stand for slots.
pub type Chosen = BTreeMap<Slot, Id>;

fn free(item: &Item, concern: &Concern) -> bool {
    let mark = item.mark();
    mark == MarkSeen::Nothing || concern.touches(&mark)
}
/// We made it ourselves: there is nothing to adopt.
fn made_by_us(item: &Item) -> bool {
    matches!(item.mark(), MarkSeen::Whole(mark) if mark.adopted.is_none())
}

/// Chooses. An error says what does not fit; then nothing is adopted and nothing is made.
pub fn choose<'a>(
    name: &str,
    spec: &OpenStackServerSpec,
    resolved: &ResolvedServer,
    items: impl Iterator<Item = &'a Item> + Clone,
    concern: &Concern,
) -> Result<Chosen, String> {
    let servers: Vec<&Server> = items
        .clone()
        .filter(|item| free(item, concern))
        .filter_map(|item| match item {
            Item::Server(server) if server.name == name && !made_by_us(item) => Some(server),
            _ => None,
        })
        .collect();
    let server = match servers[..] {
        [] => return Ok(Chosen::new()),
        [server] => server,
        _ => return Err(format!("{} servers are called {name}: adopt none", servers.len())),
    };
    let mut chosen = Chosen::new();
    chosen.extend(server_slot().map(|slot| (slot, server.id.clone())));
    let ports: Vec<&Port> =
        items.clone().filter_map(|item| if let Item::Port(it) = item { Some(it) } else { None }).collect();
    for (index, port) in pair_ports(spec, resolved, server, &ports)?.into_iter().enumerate() {
        chosen.extend(port_slot(index).map(|slot| (slot, port.id.clone())));
        let trunk = items.clone().find_map(|item| match item {
            Item::Trunk(trunk @ Trunk { .. }) if trunk.port == port.id => Some(trunk.id.clone()),
            _ => None,
        });
        if spec.ports.get(index).is_some_and(|it| wants_trunk(spec, it)) {
            let slot = Slot::new(Kind::Trunk.name(), Some(&index.to_string())).ok();
            chosen.extend(slot.zip(trunk));
        }
    }
    let volumes: Vec<&Volume> = items
        .filter_map(|item| match item {
            Item::Volume(volume) if server.volumes.contains(&volume.id) || volume.servers.contains(&server.id) => {
                Some(volume)
            }
            _ => None,
        })
        .collect();
    for (suffix, volume) in wanted_volumes(name, spec) {
        let found = volumes.iter().find(|it| it.name == volume);
        let found = found.ok_or_else(|| format!("server {} has no volume called {volume}", server.id))?;
        let slot = Slot::new(Kind::Volume.name(), Some(&suffix)).ok();
        chosen.extend(slot.map(|slot| (slot, found.id.clone())));
    }
    Ok(chosen)
}

fn wanted_volumes(name: &str, spec: &OpenStackServerSpec) -> Vec<(String, String)> {
    let root = spec.root_volume.iter().map(|_| ("root".to_owned(), format!("{name}-root")));
    let devices = spec.additional_block_devices.iter().enumerate();
    let devices = devices.filter(|(_, device)| device.storage.type_ == StorageType::Volume);
    root.chain(devices.map(|(index, device)| (index.to_string(), format!("{name}-{}", device.name)))).collect()
}

/// One attached port for each of the spec: by name first, then by network.
fn pair_ports<'a>(
    spec: &OpenStackServerSpec,
    resolved: &ResolvedServer,
    server: &Server,
    ports: &[&'a Port],
) -> Result<Vec<&'a Port>, String> {
    let mut left: Vec<&Port> = ports.iter().copied().filter(|port| port.device == server.id).collect();
    left.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
    if left.len() != spec.ports.len() {
        return Err(format!("server {} has {} ports, the spec asks for {}", server.id, left.len(), spec.ports.len()));
    }
    let mut pairs: BTreeMap<usize, &Port> = BTreeMap::new();
    for by_name in [true, false] {
        for (index, wanted) in resolved.ports.iter().enumerate() {
            if pairs.contains_key(&index) {
                continue;
            }
            let fits = |port: &&Port| port.network == wanted.network_id && (!by_name || port.name == wanted.name);
            if let Some(at) = left.iter().position(fits) {
                pairs.insert(index, left.remove(at));
            }
        }
    }
    if pairs.len() != spec.ports.len() {
        return Err(format!("the ports of server {} are in other networks than the spec asks for", server.id));
    }
    Ok(pairs.into_values().collect())
}
