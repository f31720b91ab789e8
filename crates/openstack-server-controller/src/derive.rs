//! From what a machine or bastion asks for to the spec of its server: defaults of the cluster are filled in here, because a
//! server knows of no cluster. Pure.
use crate::api::{
    FixedIp, IdentityRef, LocalRef, NetworkParam, OpenStackMachineSpec, OpenStackServerSpec, PortOpts,
    SecurityGroupParam, SubnetParam,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// What the cluster gives to its servers.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// Credentials, unless the machine has its own.
    pub identity: IdentityRef,
    /// Tags beside the machine's own.
    pub tags: Vec<String>,
    /// Network of ports that name none.
    pub network: Option<String>,
    /// Subnets of ports that name neither network nor subnet.
    pub subnets: Vec<SubnetParam>,
    /// Security group of ports that have port security and name none.
    pub security_group: Option<String>,
    /// Availability zone.
    pub zone: Option<String>,
    /// Secret with user data.
    pub user_data: Option<String>,
}

/// The spec of the server.
pub fn server_spec(machine: &OpenStackMachineSpec, defaults: &Defaults) -> Result<OpenStackServerSpec, String> {
    let asked = if machine.ports.is_empty() { vec![PortOpts::default()] } else { machine.ports.clone() };
    let ports = asked.into_iter().map(|port| fill_port(port, machine, defaults)).collect::<Result<Vec<_>, _>>()?;
    let tags: BTreeSet<&String> = machine.tags.iter().chain(&defaults.tags).collect();
    Ok(OpenStackServerSpec {
        additional_block_devices: machine.additional_block_devices.clone(),
        availability_zone: defaults.zone.clone(),
        config_drive: machine.config_drive,
        flavor: machine.flavor.filter.as_ref().and_then(|filter| filter.name.clone()),
        flavor_id: machine.flavor.id.clone(),
        floating_ip_pool_ref: machine.floating_ip_pool_ref.clone(),
        identity_ref: machine.identity_ref.clone().unwrap_or_else(|| defaults.identity.clone()),
        image: machine.image.clone(),
        ports,
        root_volume: machine.root_volume.clone(),
        scheduler_hint_additional_properties: machine.scheduler_hint_additional_properties.clone(),
        security_groups: Vec::new(),
        server_group: machine.server_group.clone(),
        server_metadata: machine.server_metadata.clone(),
        ssh_key_name: machine.ssh_key_name.clone().unwrap_or_default(),
        tags: tags.into_iter().cloned().collect(),
        trunk: machine.trunk.then_some(true),
        user_data_ref: defaults.user_data.clone().map(|name| LocalRef { name }),
    })
}
fn fill_port(mut port: PortOpts, machine: &OpenStackMachineSpec, defaults: &Defaults) -> Result<PortOpts, String> {
    let names_subnet = port.fixed_ips.iter().any(|it| it.subnet.is_some());
    // A port that names a subnet tells its network by it; what people wrote down is never replaced.
    if port.network.is_none() && !names_subnet {
        let network = defaults.network.clone().ok_or("the cluster has no network, and a port names none")?;
        port.network = Some(NetworkParam { id: Some(network), filter: None });
        if port.fixed_ips.is_empty() {
            let fixed = |subnet: &SubnetParam| FixedIp { subnet: Some(subnet.clone()), ip_address: None };
            port.fixed_ips = defaults.subnets.iter().map(fixed).collect();
        }
    }
    if port.enable_port_security == Some(false) {
        return Ok(port);
    }
    if port.security_groups.is_empty()
        && let Some(id) = &defaults.security_group
    {
        port.security_groups.push(SecurityGroupParam { id: Some(id.clone()), filter: None });
    }
    port.security_groups.extend(machine.security_groups.iter().cloned());
    Ok(port)
}

/// Tells two specs apart. Of the credentials only the region counts: the rest may be changed in place.
pub fn spec_hash(spec: &OpenStackServerSpec) -> String {
    let mut value = without_identity(spec);
    value["region"] = json!(spec.identity_ref.region);
    hash(&value)
}
/// As it was written when the region did not count.
pub fn spec_hash_without_region(spec: &OpenStackServerSpec) -> String {
    hash(&without_identity(spec))
}
fn without_identity(spec: &OpenStackServerSpec) -> Value {
    let mut value = serde_json::to_value(spec).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("identityRef");
    }
    value
}
fn hash(value: &Value) -> String {
    hex::encode(&Sha256::digest(value.to_string().as_bytes())[..16])
}
/// The fields in which two specs differ; of the credentials only the region. Tags are a set.
pub fn differing(one: &OpenStackServerSpec, other: &OpenStackServerSpec) -> Vec<String> {
    let sorted = |spec: &OpenStackServerSpec| {
        let tags: BTreeSet<String> = spec.tags.iter().cloned().collect();
        OpenStackServerSpec { tags: tags.into_iter().collect(), ..spec.clone() }
    };
    let fields = |spec: &OpenStackServerSpec| match serde_json::to_value(sorted(spec)) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (a, b) = (fields(one), fields(other));
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).filter(|key| *key != "identityRef").collect();
    let region = (one.identity_ref.region != other.identity_ref.region).then(|| "identityRef.region".to_owned());
    keys.into_iter().filter(|key| a.get(*key) != b.get(*key)).cloned().chain(region).collect()
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // json!s are written in place
mod tests {
    use super::*;

    fn machine(fields: Value) -> OpenStackMachineSpec {
        let mut whole = json!({"flavor": {"filter": {"name": "small"}}, "image": {"id": "i"}});
        whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }
    fn defaults() -> Defaults {
        let subnet = |id: &str| SubnetParam { id: Some(id.into()), filter: None };
        Defaults {
            tags: vec!["cluster".into()],
            network: Some("net".into()),
            subnets: vec![subnet("s1"), subnet("s2")],
            security_group: Some("managed".into()),
            ..Defaults::default()
        }
    }

    #[test]
    fn a_machine_without_ports_gets_one_in_the_network_of_the_cluster() {
        let spec = server_spec(
            &machine(json!({"tags": ["own", "cluster"], "securityGroups": [{"id": "extra"}]})),
            &defaults(),
        )
        .unwrap();
        assert_eq!(spec.tags, ["cluster", "own"]);
        let port = &spec.ports[0];
        assert_eq!(port.network.as_ref().unwrap().id.as_deref(), Some("net"));
        let subnets: Vec<_> =
            port.fixed_ips.iter().map(|it| it.subnet.as_ref().unwrap().id.as_deref().unwrap()).collect();
        assert_eq!(subnets, ["s1", "s2"]);
        let groups: Vec<_> = port.security_groups.iter().map(|it| it.id.as_deref().unwrap()).collect();
        assert_eq!(groups, ["managed", "extra"]);
        assert!(spec.security_groups.is_empty());
    }
    #[test]
    fn what_people_wrote_down_is_never_replaced() {
        // the network is told by the subnet
        let spec =
            server_spec(&machine(json!({"ports": [{"fixedIPs": [{"subnet": {"id": "mine"}}]}]})), &defaults()).unwrap();
        assert_eq!(spec.ports[0].network, None);
        assert_eq!(spec.ports[0].fixed_ips.len(), 1);
        // an address without a subnet stays, in the network of the cluster
        let spec =
            server_spec(&machine(json!({"ports": [{"fixedIPs": [{"ipAddress": "10.0.0.5"}]}]})), &defaults()).unwrap();
        assert_eq!(spec.ports[0].fixed_ips[0].ip_address.as_deref(), Some("10.0.0.5"));
        assert!(spec.ports[0].network.is_some());
        // no groups where there is no port security
        let spec = server_spec(
            &machine(json!({"ports": [{"enablePortSecurity": false}], "securityGroups": [{"id": "x"}]})),
            &defaults(),
        )
        .unwrap();
        assert!(spec.ports[0].security_groups.is_empty());
    }
    #[test]
    fn without_any_network_nothing_can_be_made() {
        let none = Defaults { network: None, ..defaults() };
        assert!(server_spec(&machine(json!({})), &none).is_err());
        assert!(server_spec(&machine(json!({"ports": [{"network": {"id": "n"}}]})), &none).is_ok());
    }
    #[test]
    fn of_the_credentials_only_the_region_is_part_of_the_hash_and_everything_else_is() {
        let one = server_spec(&machine(json!({})), &defaults()).unwrap();
        let mut other = one.clone();
        other.identity_ref.name = "new".into();
        assert_eq!(spec_hash(&one), spec_hash(&other));
        assert!(differing(&one, &other).is_empty());
        other.flavor = Some("large".into());
        assert_ne!(spec_hash(&one), spec_hash(&other));
        assert_eq!(differing(&one, &other), ["flavor"]);
        other.identity_ref.region = Some("two".into());
        assert_eq!(differing(&one, &other), ["flavor", "identityRef.region"]);
        let moved = OpenStackServerSpec { flavor: one.flavor.clone(), ..other };
        assert_ne!(spec_hash(&one), spec_hash(&moved));
        assert_eq!(spec_hash_without_region(&one), spec_hash_without_region(&moved));
    }
}
