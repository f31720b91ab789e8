//! Specs of servers, drawn. A server's spec never changes, so there is nothing to edit.
use common::identity::Slot;
use common::testing::{Chance, Variety};
use openstack_server_controller::api::{OpenStackServerSpec, ResolvedPort, ResolvedServer};
use openstack_server_controller::plan::port_slot;
use openstack_server_controller::resolve::{port_name, wants_trunk};
use serde_json::{Value, json};

const IMAGE: &str = "1a600000-0000-4000-8000-000000000001";
const NETWORKS: [&str; 2] = ["7e700000-0000-4000-8000-000000000001", "7e700000-0000-4000-8000-000000000002"];

/// A spec of the asked variety. Everything is named by id: names are resolved elsewhere.
pub(super) fn draw(variety: Variety, chance: &mut Chance) -> Value {
    let [ports, trunks, devices, root]: [u64; 4] = match variety {
        Variety::Fixed => [2, 1, 1, 1],
        Variety::Twelve => [4, 3, 3, 1],
        Variety::Plain | Variety::Everything => {
            let ports = 1 + chance.below(3);
            [ports, chance.below(ports + 1), chance.below(2), chance.below(2)]
        }
    };
    let port = |n: u64| json!({"network": {"id": NETWORKS[usize::from(n % 2 == 1)]}, "trunk": n < trunks, "tags": [format!("t{n}")]});
    let device = |n: u64| json!({"name": format!("d{n}"), "sizeGiB": 1, "storage": {"type": "Volume"}});
    let mut spec = json!({
        "identityRef": {"name": "creds", "cloudName": "c"}, "sshKeyName": "", "flavorID": "2", "image": {"id": IMAGE},
        "ports": (0..ports).map(port).collect::<Vec<_>>(),
        "additionalBlockDevices": (0..devices).map(device).collect::<Vec<_>>(),
    });
    if root == 1 {
        spec["rootVolume"] = json!({"sizeGiB": 2});
    }
    spec
}
/// The same with an address of a pool. Only the last port stands behind the router: it is the one that the address shall lead to.
pub(super) fn draw_pooled(variety: Variety, chance: &mut Chance) -> Value {
    let mut spec = draw(variety, chance);
    let [reached, unreached] = NETWORKS;
    if let Some(ports) = spec["ports"].as_array_mut() {
        let last = ports.len() - 1;
        for (n, port) in ports.iter_mut().enumerate() {
            port["network"]["id"] = json!(if n == last { reached } else { unreached });
        }
    }
    let pool =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackFloatingIPPool", "name": "pool"});
    spec["floatingIPPoolRef"] = pool;
    spec
}
/// The slot of the port that an address shall lead to.
pub(super) fn reached(spec: &OpenStackServerSpec) -> Option<Slot> {
    port_slot(spec.ports.len().checked_sub(1)?)
}
pub(super) fn read(spec: &Value) -> OpenStackServerSpec {
    serde_json::from_value(spec.clone()).unwrap_or_default()
}
/// What such a spec leads to.
pub(super) fn resolved(name: &str, spec: &OpenStackServerSpec) -> ResolvedServer {
    let port = |(index, port): (usize, &openstack_server_controller::api::PortOpts)| ResolvedPort {
        name: port_name(name, index, port),
        description: format!("Port of server {name}"),
        network_id: port.network.as_ref().and_then(|it| it.id.clone()).unwrap_or_default(),
        trunk: Some(wants_trunk(spec, port)),
        tags: port.tags.clone(),
        ..ResolvedPort::default()
    };
    ResolvedServer {
        image_id: Some(IMAGE.into()),
        flavor_id: Some("2".into()),
        ports: spec.ports.iter().enumerate().map(port).collect(),
        ..ResolvedServer::default()
    }
}
