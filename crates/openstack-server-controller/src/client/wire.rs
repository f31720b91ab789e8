//! OpenStack's JSON, read strictly where a misreading could cost somebody a thing, and passing over what is new.
use super::reply::Unreadable;
use crate::cloud::{Address, Flavor, FloatingIp, Found, Item, Kind, Member, Pairs, Port, Server, Trunk, Volume};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct WireServer {
    id: String,
    name: String,
    status: String,
    #[serde(default, rename = "OS-EXT-STS:task_state")]
    task: Option<String>,
    #[serde(default)]
    fault: Option<WireFault>,
    // Without it a marked server would pass for an unmarked one.
    metadata: Pairs,
    #[serde(default)]
    addresses: BTreeMap<String, Vec<WireAddress>>,
    #[serde(default, rename = "os-extended-volumes:volumes_attached")]
    volumes: Vec<WireId>,
    #[serde(default)]
    flavor: WireFlavor,
    #[serde(default)]
    created: Option<String>,
}
#[derive(Default, Deserialize)]
struct WireFlavor {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    original_name: Option<String>,
}
#[derive(Deserialize)]
struct WireFault {
    #[serde(default)]
    message: String,
}
#[derive(Deserialize)]
struct WireAddress {
    addr: String,
    #[serde(default)]
    version: u8,
    #[serde(default, rename = "OS-EXT-IPS:type")]
    origin: String,
}
#[derive(Deserialize)]
struct WireId {
    id: String,
}
#[derive(Deserialize)]
struct WirePort {
    id: String,
    #[serde(default)]
    name: String,
    network_id: String,
    #[serde(default)]
    device_id: String,
    #[serde(default)]
    tags: Option<Vec<String>>,
    // Without it a marked port would pass for an unmarked one.
    description: String,
    #[serde(default)]
    security_groups: Vec<String>,
    #[serde(default)]
    admin_state_up: bool,
    #[serde(default)]
    fixed_ips: Vec<WireFixedIp>,
    #[serde(default)]
    allowed_address_pairs: Vec<WirePair>,
    #[serde(default)]
    created_at: Option<String>,
}
#[derive(Deserialize)]
struct WireFixedIp {
    subnet_id: String,
    #[serde(default)]
    ip_address: String,
}
#[derive(Deserialize)]
struct WirePair {
    ip_address: String,
    #[serde(default)]
    mac_address: String,
}
#[derive(Deserialize)]
struct WireTrunk {
    id: String,
    #[serde(default)]
    name: String,
    port_id: String,
    description: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    sub_ports: Vec<WireSubPort>,
    #[serde(default)]
    created_at: Option<String>,
}
#[derive(Deserialize)]
struct WireSubPort {
    port_id: String,
}
#[derive(Deserialize)]
struct WireVolume {
    id: String,
    #[serde(default)]
    name: Option<String>,
    status: String,
    size: i64,
    metadata: Pairs,
    #[serde(default)]
    attachments: Vec<WireAttachment>,
    #[serde(default)]
    created_at: Option<String>,
}
#[derive(Deserialize)]
struct WireAttachment {
    #[serde(default)]
    server_id: Option<String>,
}
#[derive(Deserialize)]
struct WireFloatingIp {
    id: String,
    floating_ip_address: String,
    floating_network_id: String,
    #[serde(default)]
    port_id: Option<String>,
    description: String,
    #[serde(default)]
    created_at: Option<String>,
}
#[derive(Deserialize)]
struct WireMember {
    #[serde(default)]
    name: String,
    address: String,
    protocol_port: i64,
    provisioning_status: String,
    // Without it a marked member would pass for an unmarked one.
    tags: Vec<String>,
    #[serde(default)]
    created_at: Option<String>,
}
#[derive(Deserialize)]
struct WireFound {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    network_id: Option<String>,
    #[serde(default)]
    cidr: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    vcpus: i64,
    #[serde(default)]
    ram: i64,
}

/// Nova and Neutron write a zone, Cinder writes none and means UTC.
fn time(text: Option<&str>) -> Option<Timestamp> {
    let text = text?;
    let plain =
        || jiff::civil::DateTime::strptime("%Y-%m-%dT%H:%M:%S%.f", text).ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    text.parse().ok().or_else(|| plain().map(|at| at.timestamp()))
}
fn read<T: DeserializeOwned>(kind: &str, value: Value) -> Result<T, Unreadable> {
    serde_json::from_value(value).map_err(|e| Unreadable(format!("a {kind} that cannot be read: {e}")))
}

/// One thing. `id` is how we call it, where that is more than the cloud's own word.
pub fn item(kind: Kind, id: &str, value: Value) -> Result<Item, Unreadable> {
    Ok(match kind {
        Kind::Server => {
            let wire: WireServer = read("server", value)?;
            let address = |it: WireAddress| Address { address: it.addr, version: it.version, origin: it.origin };
            let addresses =
                wire.addresses.into_iter().map(|(net, list)| (net, list.into_iter().map(address).collect()));
            Item::Server(Server {
                id: wire.id,
                name: wire.name,
                status: wire.status,
                task: wire.task,
                fault: wire.fault.map(|fault| fault.message),
                metadata: wire.metadata,
                addresses: addresses.collect(),
                volumes: wire.volumes.into_iter().map(|it| it.id).collect(),
                flavor: Flavor { id: wire.flavor.id, name: wire.flavor.original_name },
                created: time(wire.created.as_deref()),
            })
        }
        Kind::Port => {
            let wire: WirePort = read("port", value)?;
            Item::Port(Port {
                id: wire.id,
                name: wire.name,
                network: wire.network_id,
                device: wire.device_id,
                tags: wire.tags.into_iter().flatten().collect(),
                description: wire.description,
                security_groups: wire.security_groups.into_iter().collect(),
                up: wire.admin_state_up,
                fixed_ips: wire.fixed_ips.into_iter().map(|it| (it.subnet_id, it.ip_address)).collect(),
                pairs: wire.allowed_address_pairs.into_iter().map(|it| (it.ip_address, it.mac_address)).collect(),
                created: time(wire.created_at.as_deref()),
            })
        }
        Kind::Trunk => {
            let wire: WireTrunk = read("trunk", value)?;
            Item::Trunk(Trunk {
                id: wire.id,
                name: wire.name,
                port: wire.port_id,
                description: wire.description,
                tags: wire.tags.into_iter().collect(),
                sub_ports: wire.sub_ports.into_iter().map(|it| it.port_id).collect(),
                created: time(wire.created_at.as_deref()),
            })
        }
        Kind::Volume => {
            let wire: WireVolume = read("volume", value)?;
            Item::Volume(Volume {
                id: wire.id,
                name: wire.name.unwrap_or_default(),
                status: wire.status,
                size: wire.size,
                metadata: wire.metadata,
                servers: wire.attachments.into_iter().filter_map(|it| it.server_id).collect(),
                created: time(wire.created_at.as_deref()),
            })
        }
        Kind::FloatingIp => {
            let wire: WireFloatingIp = read("floating IP", value)?;
            Item::FloatingIp(FloatingIp {
                id: wire.id,
                address: wire.floating_ip_address,
                network: wire.floating_network_id,
                port: wire.port_id,
                description: wire.description,
                created: time(wire.created_at.as_deref()),
            })
        }
        Kind::Member => {
            let wire: WireMember = read("member", value)?;
            Item::Member(Member {
                pool: id.split('/').next().unwrap_or_default().to_owned(),
                id: id.to_owned(),
                name: wire.name,
                address: wire.address,
                port: wire.protocol_port,
                status: wire.provisioning_status,
                tags: wire.tags.into_iter().collect(),
                created: time(wire.created_at.as_deref()),
            })
        }
    })
}

/// One thing that a spec can name.
pub fn found(value: Value) -> Result<Found, Unreadable> {
    let wire: WireFound = read("thing", value)?;
    let name = wire.name.unwrap_or_default();
    let (network, cidr, status) = (wire.network_id, wire.cidr, wire.status);
    Ok(Found { id: wire.id, name, network, cidr, status, cores: wire.vcpus, ram: wire.ram })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dates_of_all_services_are_read() {
        let wanted: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
        assert_eq!(time(Some("2026-11-16T08:00:00Z")), Some(wanted));
        assert!(time(Some("2026-11-16T08:00:00.000000")).is_some_and(|at| at == wanted));
        assert_eq!(time(Some("yesterday")), None);
    }
    #[test]
    fn a_server_is_read_as_nova_shows_it() {
        let shown = json!({
            "id": "s", "name": "n", "status": "ERROR", "OS-EXT-STS:task_state": null, "metadata": {"a": "b"}, "tags": [],
            "fault": {"code": 500, "message": "No valid host was found.", "created": "x"}, "created": "2026-11-16T08:00:00Z",
            "addresses": {"net": [{"addr": "10.0.0.3", "version": 4, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": "x"}]},
            "os-extended-volumes:volumes_attached": [{"id": "v", "delete_on_termination": true}], "flavor": {"vcpus": 1},
        });
        let Item::Server(server) = item(Kind::Server, "", shown).unwrap() else { panic!() };
        assert_eq!(server.fault.as_deref(), Some("No valid host was found."));
        assert_eq!(server.volumes, ["v"]);
        assert_eq!(server.addresses["net"][0].origin, "fixed");
    }
    #[test]
    fn what_is_shown_without_its_carrier_is_not_taken_for_unmarked() {
        assert!(item(Kind::Server, "", json!({"id": "s", "name": "n", "status": "ACTIVE"})).is_err());
        assert!(item(Kind::Volume, "", json!({"id": "v", "status": "available", "size": 1})).is_err());
        assert!(item(Kind::Port, "", json!({"id": "p", "network_id": "n"})).is_err());
        assert!(item(Kind::Trunk, "", json!({"id": "t", "port_id": "p"})).is_err());
        let member = json!({"id": "m", "address": "10.0.0.5", "protocol_port": 6443, "provisioning_status": "ACTIVE"});
        assert!(item(Kind::Member, "pool/m", member).is_err());
    }
}
