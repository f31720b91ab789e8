//! What stands in every project from the start: networks, a router, an image, flavors, a key. Everybody sees them.
use super::OpenStackState;
use super::kinds::Kind;
use super::store::Maker;
use crate::kit::Settings;
use crate::kit::dice::Dice;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The scenery: kind, id, body.
fn all() -> Vec<(Kind, &'static str, Value)> {
    let image = |name: &str, tags: Value| json!({"name": name, "status": "active", "tags": tags, "visibility": "public", "min_disk": 0, "size": 1});
    let flavor =
        |name: &str| json!({"name": name, "vcpus": 1, "ram": 512, "disk": 1, "os-flavor-access:is_public": true});
    let network = |name: &str, external: bool| json!({"name": name, "router:external": external, "shared": true, "admin_state_up": true, "tags": if name == "tagged" { json!(["blue", "team"]) } else { json!([]) }});
    let subnet = |name: &str, network: &str, cidr: &str| json!({"name": name, "network_id": network, "cidr": cidr, "ip_version": 4, "gateway_ip": null, "enable_dhcp": false});
    let (private, other, tagged, public) = (
        "7e700000-0000-4000-8000-000000000001",
        "7e700000-0000-4000-8000-000000000002",
        "7e700000-0000-4000-8000-000000000003",
        "7e700000-0000-4000-8000-00000000000e",
    );
    let (balancer, pool) = ("1b000000-0000-4000-8000-000000000001", "b0010000-0000-4000-8000-000000000001");
    let second = "b0010000-0000-4000-8000-000000000002";
    let behind = json!([{"id": balancer}]);
    let router = "70700000-0000-4000-8000-000000000001";
    vec![
        (Kind::Flavor, "1", flavor("m1.tiny")),
        (Kind::Flavor, "2", flavor("m1.small")),
        (Kind::Image, "1a600000-0000-4000-8000-000000000001", image("cirros", json!(["os-small"]))),
        (Kind::Image, "1a600000-0000-4000-8000-000000000002", image("twice", json!([]))),
        (Kind::Image, "1a600000-0000-4000-8000-000000000003", image("twice", json!([]))),
        (Kind::Network, private, network("private", false)),
        (Kind::Network, other, network("other", false)),
        (Kind::Network, tagged, network("tagged", false)),
        (Kind::Network, public, network("public", true)),
        (Kind::Subnet, "5b700000-0000-4000-8000-000000000001", subnet("private-subnet", private, "10.0.0.0/16")),
        (Kind::Subnet, "5b700000-0000-4000-8000-000000000002", subnet("other-subnet", other, "10.1.0.0/16")),
        (Kind::Subnet, "5b700000-0000-4000-8000-000000000003", subnet("tagged-subnet", tagged, "10.2.0.0/16")),
        (Kind::Subnet, "5b700000-0000-4000-8000-000000000004", subnet("tagged-second", tagged, "10.3.0.0/16")),
        (Kind::Subnet, "5b700000-0000-4000-8000-00000000000e", subnet("public-subnet", public, "203.0.113.0/24")),
        (
            Kind::SecurityGroup,
            "5ec00000-0000-4000-8000-000000000001",
            json!({"name": "default", "description": "Default security group"}),
        ),
        (Kind::SecurityGroup, "5ec00000-0000-4000-8000-000000000002", json!({"name": "web", "description": "web"})),
        (Kind::Router, router, json!({"name": "router", "external_gateway_info": {"network_id": public}})),
        (
            Kind::ServerGroup,
            "5e600000-0000-4000-8000-000000000001",
            json!({"name": "group", "policies": ["soft-anti-affinity"], "members": [], "metadata": {}}),
        ),
        (Kind::Balancer, balancer, json!({"name": "api", "vip_address": "10.0.0.9"})),
        (
            Kind::Listener,
            "115e0000-0000-4000-8000-000000000001",
            json!({"name": "api-6443", "protocol": "TCP", "protocol_port": 6443, "default_pool_id": pool, "loadbalancers": behind}),
        ),
        (
            Kind::Pool,
            pool,
            json!({"name": "api-6443", "protocol": "TCP", "loadbalancer_id": balancer, "loadbalancers": behind}),
        ),
        (
            Kind::Listener,
            "115e0000-0000-4000-8000-000000000002",
            json!({"name": "api-9345", "protocol": "TCP", "protocol_port": 9345, "default_pool_id": second, "loadbalancers": behind}),
        ),
        (
            Kind::Pool,
            second,
            json!({"name": "api-9345", "protocol": "TCP", "loadbalancer_id": balancer, "loadbalancers": behind}),
        ),
        (Kind::Keypair, "key", json!({"name": "key", "fingerprint": "x"})),
        (
            Kind::Port,
            "b0700000-0000-4000-8000-000000000001",
            json!({"name": "", "network_id": private, "device_id": router, "device_owner": "network:router_interface", "fixed_ips": [{"subnet_id": "5b700000-0000-4000-8000-000000000001", "ip_address": "10.0.0.1"}], "security_groups": [], "tags": [], "description": "", "admin_state_up": true}),
        ),
    ]
}

/// The group of an id that differs from region to region; in the region that is nobody's choice, ids are as written above.
fn variant(region: &str) -> String {
    if region == Settings::default().region {
        return "8000".to_owned();
    }
    let sum = region.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(u16::from(byte)));
    format!("{:04x}", 0x8000 | (sum & 0x3fff))
}
fn vary(text: &str, variant: &str) -> String {
    text.replace("-4000-8000-", &format!("-4000-{variant}-"))
}
/// The ids in a body lead to the same region's things.
fn vary_within(value: &mut Value, variant: &str) {
    match value {
        Value::String(text) => *text = vary(text, variant),
        Value::Array(items) => items.iter_mut().for_each(|it| vary_within(it, variant)),
        Value::Object(fields) => fields.values_mut().for_each(|it| vary_within(it, variant)),
        _ => {}
    }
}

impl OpenStackState {
    /// Puts the scenery up.
    pub(super) fn furnish(&mut self, settings: &Settings, dice: &mut Dice) {
        let variant = variant(&settings.region);
        for (kind, id, mut body) in all() {
            vary_within(&mut body, &variant);
            let maker = Maker { project: None, name: "cloud".into(), planted: true, born: Timestamp::UNIX_EPOCH };
            let body = if let Value::Object(map) = body { map } else { Map::new() };
            self.store.put(settings, dice, maker, kind, &vary(id, &variant), body, None);
        }
    }
}
