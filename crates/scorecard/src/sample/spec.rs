//! Specs of sample owners, drawn and edited.
use common::testing::{Chance, Edit, Variety};
use sample_controller::api::{AddressSpec, Adopt, DiskSpec, MachineSpec, NetworkSpec, RouteSpec, SampleOwnerSpec};

fn network(n: u64) -> NetworkSpec {
    NetworkSpec { name: format!("n{n}"), cidr: Some(format!("10.{n}.0.0/16")), ..NetworkSpec::default() }
}
fn disk(n: u64) -> DiskSpec {
    DiskSpec { name: format!("d{n}"), size_gb: Some(10), ..DiskSpec::default() }
}
fn address(n: u64, network: &str) -> AddressSpec {
    AddressSpec { name: format!("a{n}"), network: network.into(), label: format!("l{n}"), adopt: None }
}
fn route(n: u64, network: &str) -> RouteSpec {
    let (destination, next_hop) = (format!("172.16.{n}.0/24"), "10.0.0.1".into());
    RouteSpec { name: format!("r{n}"), network: network.into(), destination, next_hop }
}
fn machine(n: u64, network: &str, disk: Option<&str>) -> MachineSpec {
    let disk = disk.map(str::to_owned);
    MachineSpec { name: format!("m{n}"), network: network.into(), disk, flavor: "small".into() }
}

/// A spec of the asked variety.
pub(super) fn draw(variety: Variety, chance: &mut Chance) -> SampleOwnerSpec {
    let [networks, disks, addresses, routes, machines]: [u64; 5] = match variety {
        Variety::Fixed => [1, 1, 1, 1, 1],
        Variety::Twelve => [2, 3, 3, 2, 2],
        Variety::Plain | Variety::Everything => {
            [1 + chance.below(2), chance.below(3), chance.below(3), chance.below(2), chance.below(2)]
        }
    };
    let mut spec = SampleOwnerSpec {
        networks: (0..networks).map(network).collect(),
        disks: (0..disks).map(disk).collect(),
        ..SampleOwnerSpec::default()
    };
    let mut on = || format!("n{}", chance.below(networks));
    spec.addresses = (0..addresses).map(|n| address(n, &on())).collect();
    spec.routes = (0..routes).map(|n| route(n, &on())).collect();
    spec.machines = (0..machines).map(|n| machine(n, &on(), (n < disks).then(|| format!("d{n}")).as_deref())).collect();
    if variety == Variety::Everything {
        let mut adopt = || match chance.below(8) {
            0 => Some(Adopt::Delete),
            1 => Some(Adopt::Release),
            _ => None,
        };
        spec.networks.iter_mut().for_each(|n| n.adopt = adopt());
        spec.disks.iter_mut().for_each(|d| d.adopt = adopt());
        spec.addresses.iter_mut().for_each(|a| a.adopt = adopt());
    }
    spec
}

/// Edits a spec so that it can still be served.
pub(super) fn edit(spec: &mut SampleOwnerSpec, edit: Edit, chance: &mut Chance) -> bool {
    match edit {
        Edit::Change => change(spec, chance),
        Edit::Remove => remove(spec, chance),
        Edit::Add => add(spec, chance),
        Edit::RemoveMost => {
            let many = spec.networks.len() + spec.disks.len() + spec.addresses.len() > 2;
            spec.networks.truncate(1);
            (spec.disks, spec.addresses) = (Vec::new(), Vec::new());
            (spec.routes, spec.machines) = (Vec::new(), Vec::new());
            many
        }
    }
}
fn change(spec: &mut SampleOwnerSpec, chance: &mut Chance) -> bool {
    match chance.below(3) {
        0 if !spec.machines.is_empty() => {
            let index = chance.index(spec.machines.len());
            spec.machines[index].flavor.push('x');
            true
        }
        1 if !spec.disks.is_empty() => {
            let index = chance.index(spec.disks.len());
            let size = spec.disks[index].size_gb;
            spec.disks[index].size_gb = size.map(|size| size + 1);
            size.is_some()
        }
        _ => {
            let index = chance.index(spec.networks.len());
            let Some(network) = spec.networks.get_mut(index) else { return false };
            let known = network.cidr.clone();
            network.cidr = known.as_ref().map(|cidr| cidr.replace(".0.0/16", ".128.0/17").replace("10.", "11."));
            network.cidr != known
        }
    }
}
fn remove(spec: &mut SampleOwnerSpec, chance: &mut Chance) -> bool {
    match chance.below(4) {
        0 => spec.addresses.pop().is_some(),
        1 => spec.routes.pop().is_some(),
        2 => spec.machines.pop().is_some(),
        _ => {
            let used = |d: &DiskSpec| spec.machines.iter().any(|m| m.disk.as_ref() == Some(&d.name));
            let free = spec.disks.iter().rposition(|d| !used(d));
            free.map(|n| spec.disks.remove(n)).is_some() || spec.addresses.pop().is_some()
        }
    }
}
fn add(spec: &mut SampleOwnerSpec, chance: &mut Chance) -> bool {
    let free = |taken: &dyn Fn(&str) -> bool, prefix: &str| (0..20).find(|n| !taken(&format!("{prefix}{n}")));
    let Some(first) = spec.networks.first().map(|n| n.name.clone()) else { return false };
    match chance.below(4) {
        0 => {
            free(&|x| spec.networks.iter().any(|n| n.name == x), "n").map(|n| spec.networks.push(network(n))).is_some()
        }
        1 => free(&|x| spec.disks.iter().any(|d| d.name == x), "d").map(|n| spec.disks.push(disk(n))).is_some(),
        2 => free(&|x| spec.addresses.iter().any(|a| a.name == x), "a")
            .map(|n| spec.addresses.push(address(n, &first)))
            .is_some(),
        _ => free(&|x| spec.routes.iter().any(|r| r.name == x), "r")
            .map(|n| spec.routes.push(route(n, &first)))
            .is_some(),
    }
}

/// Adds an item that uses somebody else's thing.
pub(super) fn refer(spec: &mut SampleOwnerSpec, kind: &str, id: &str) -> bool {
    let (name, use_id) = ("used".to_owned(), Some(id.to_owned()));
    match kind {
        "network" if !spec.networks.iter().any(|n| n.name == name) => {
            spec.networks.push(NetworkSpec { name, use_id, ..NetworkSpec::default() });
            true
        }
        "disk" if !spec.disks.iter().any(|d| d.name == name) => {
            spec.disks.push(DiskSpec { name, use_id, ..DiskSpec::default() });
            true
        }
        _ => false,
    }
}
