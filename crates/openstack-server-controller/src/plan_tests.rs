//! What each spec comes to, as bodies of create calls.
#![allow(clippy::needless_pass_by_value)] // json!s are written in place

use super::*;
use crate::api::{ResolvedFixedIp, ResolvedServer};

fn spec(value: Value) -> OpenStackServerSpec {
    let mut whole = json!({
        "identityRef": {"name": "c", "cloudName": "c"}, "sshKeyName": "", "flavor": "small",
        "image": {"id": "img"}, "ports": [{"network": {"id": "net"}}],
    });
    for (key, value) in value.as_object().unwrap() {
        whole[key] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}
fn resolved(ports: usize) -> ResolvedServer {
    let port = |index: usize| ResolvedPort {
        name: format!("srv-{index}"),
        network_id: "net".into(),
        description: "d".into(),
        ..ResolvedPort::default()
    };
    ResolvedServer {
        image_id: Some("img".into()),
        flavor_id: Some("flv".into()),
        ports: (0..ports).map(port).collect(),
        ..ResolvedServer::default()
    }
}
fn ids(pairs: &[(&str, &str)]) -> Ids {
    pairs.iter().map(|(slot, id)| (slot.parse().unwrap(), (*id).to_owned())).collect()
}
fn draft_of(plan: &Plan, slot: &str, known: &Ids) -> Option<Draft> {
    let piece = plan.pieces(known).into_iter().find(|it| it.slot.as_str() == slot).expect(slot);
    match piece.want {
        Want::Make { draft, .. } => draft,
        Want::Use { .. } => None,
    }
}

#[test]
fn a_server_waits_for_all_its_ports_and_volumes_and_names_them_in_order() {
    let spec = spec(json!({
        "ports": [{"network": {"id": "net"}}, {"network": {"id": "net"}}], "rootVolume": {"sizeGiB": 10},
        "additionalBlockDevices": [
            {"name": "scratch", "sizeGiB": 5, "storage": {"type": "Local"}},
            {"name": "data", "sizeGiB": 7, "storage": {"type": "Volume", "volume": {"type": "fast", "availabilityZone": {"name": "z"}}}}],
        "tags": ["b", "a"], "serverMetadata": [{"key": "k", "value": "v"}], "sshKeyName": "key", "availabilityZone": "az",
        "configDrive": true,
    }));
    let resolved = resolved(2);
    let facts = Facts { resolved: Some(&resolved), user_data: Some(b"hello"), ..Facts::default() };
    let plan = Plan::of("srv", &spec, &facts);
    let some = ids(&[("port-0", "p0"), ("port-1", "p1"), ("volume-root", "vr")]);
    assert_eq!(draft_of(&plan, "server", &some), None);
    let mut all = some;
    all.insert("volume-1".parse().unwrap(), "v1".into());
    let draft = draft_of(&plan, "server", &all).unwrap();
    assert_eq!(draft.key, "server srv");
    let server = &draft.params["server"];
    assert_eq!(server["networks"], json!([{"port": "p0"}, {"port": "p1"}]));
    assert_eq!(server.get("imageRef"), None, "the image is on the volume");
    assert_eq!(server["user_data"], "aGVsbG8=");
    assert_eq!(server["tags"], json!(["a", "b"]));
    assert_eq!(
        (&server["key_name"], &server["availability_zone"], &server["config_drive"]),
        (&json!("key"), &json!("az"), &json!(true))
    );
    assert_eq!(
        server["block_device_mapping_v2"],
        json!([
            {"source_type": "volume", "destination_type": "volume", "uuid": "vr", "boot_index": 0, "delete_on_termination": true},
            {"source_type": "blank", "destination_type": "local", "volume_size": 5, "boot_index": -1, "delete_on_termination": true, "tag": "scratch"},
            {"source_type": "volume", "destination_type": "volume", "uuid": "v1", "boot_index": -1, "delete_on_termination": true, "tag": "data"},
        ])
    );
    let root = draft_of(&plan, "volume-root", &Ids::new()).unwrap();
    assert_eq!(
        (root.key.as_str(), &root.params["imageRef"], &root.params["size"]),
        ("volume srv-root", &json!("img"), &json!(10))
    );
    let data = draft_of(&plan, "volume-1", &Ids::new()).unwrap();
    assert_eq!((&data.params["volume_type"], &data.params["availability_zone"]), (&json!("fast"), &json!("z")));
    assert_eq!(data.params.get("imageRef"), None);
}

#[test]
fn without_a_root_volume_the_image_is_named_twice_as_nova_wants_it() {
    let resolved = resolved(1);
    let facts = Facts { resolved: Some(&resolved), ..Facts::default() };
    let plan = Plan::of("srv", &spec(json!({})), &facts);
    let draft = draft_of(&plan, "server", &ids(&[("port-0", "p")])).unwrap();
    let server = &draft.params["server"];
    assert_eq!(server["imageRef"], "img");
    assert_eq!(server["block_device_mapping_v2"][0]["source_type"], "image");
    for absent in ["key_name", "availability_zone", "tags", "user_data"] {
        assert_eq!(server.get(absent), None, "{absent}");
    }
    assert_eq!(draft.params.get("os:scheduler_hints"), None);
}

#[test]
fn hints_are_of_their_type_and_the_group_is_one_string() {
    let spec = spec(json!({
        "serverGroup": {"id": "g"},
        "schedulerHintAdditionalProperties": [
            {"name": "b", "value": {"type": "Bool", "bool": true}}, {"name": "n", "value": {"type": "Number", "number": 3}},
            {"name": "s", "value": {"type": "String", "string": "x"}}],
    }));
    let resolved = ResolvedServer { server_group_id: Some("g".into()), ..resolved(1) };
    let facts = Facts { resolved: Some(&resolved), ..Facts::default() };
    let draft = draft_of(&Plan::of("srv", &spec, &facts), "server", &ids(&[("port-0", "p")])).unwrap();
    assert_eq!(draft.params["os:scheduler_hints"], json!({"b": true, "n": 3, "s": "x", "group": "g"}));
}

#[test]
fn a_full_port_has_every_field() {
    let spec = spec(json!({"ports": [{
        "network": {"id": "net"}, "macAddress": "m", "adminStateUp": false, "hostID": "h", "vnicType": "direct",
        "propagateUplinkStatus": true, "enablePortSecurity": true, "profile": {"ovsHWOffload": true, "trustedVF": true},
        "allowedAddressPairs": [{"ipAddress": "1.2.3.4", "macAddress": "mm"}, {"ipAddress": "5.6.7.8"}],
        "valueSpecs": [{"name": "x", "key": "extra", "value": "y"}, {"name": "z", "key": "name", "value": "never"}],
    }]}));
    let mut resolved = resolved(1);
    resolved.ports[0].fixed_ips =
        vec![ResolvedFixedIp { subnet: Some("s".into()), ip_address: Some("10.0.0.9".into()) }];
    resolved.ports[0].security_groups = vec!["sg".into()];
    resolved.ports[0].tags = vec!["t".into()];
    let body = |extensions: &[&str]| {
        let extensions = extensions.iter().map(|it| (*it).to_owned()).collect();
        let facts = Facts { resolved: Some(&resolved), extensions, ..Facts::default() };
        draft_of(&Plan::of("srv", &spec, &facts), "port-0", &Ids::new()).unwrap().params
    };
    let port = body(&[]);
    assert_eq!(
        port,
        json!({
            "name": "srv-0", "network_id": "net", "description": "d", "tags": ["t"], "mac_address": "m", "admin_state_up": false,
            "fixed_ips": [{"subnet_id": "s", "ip_address": "10.0.0.9"}], "security_groups": ["sg"],
            "allowed_address_pairs": [{"ip_address": "1.2.3.4", "mac_address": "mm"}, {"ip_address": "5.6.7.8"}],
            "propagate_uplink_status": true, "port_security_enabled": true, "binding:host_id": "h", "binding:vnic_type": "direct",
            "binding:profile": {"capabilities": ["switchdev"], "trusted": true}, "extra": "y",
        })
    );
    let trusted = body(&["port-trusted-vif"]);
    assert_eq!(
        (&trusted["trusted"], &trusted["binding:profile"]),
        (&json!(true), &json!({"capabilities": ["switchdev"]}))
    );
}

#[test]
fn without_port_security_no_pairs_are_sent() {
    let spec = spec(
        json!({"ports": [{"network": {"id": "net"}, "enablePortSecurity": false, "allowedAddressPairs": [{"ipAddress": "1.2.3.4"}]}]}),
    );
    let resolved = resolved(1);
    let facts = Facts { resolved: Some(&resolved), ..Facts::default() };
    let port = draft_of(&Plan::of("srv", &spec, &facts), "port-0", &Ids::new()).unwrap().params;
    assert_eq!(port.get("allowed_address_pairs"), None);
    assert_eq!(port["port_security_enabled"], false);
}

#[test]
fn a_trunk_stands_on_its_port_and_a_port_can_refuse_one() {
    let spec =
        spec(json!({"trunk": true, "ports": [{"network": {"id": "net"}}, {"network": {"id": "net"}, "trunk": false}]}));
    let resolved = resolved(2);
    let facts = Facts { resolved: Some(&resolved), ..Facts::default() };
    let plan = Plan::of("srv", &spec, &facts);
    assert_eq!(plan.slots().map(Slot::as_str).collect::<Vec<_>>(), ["port-0", "port-1", "server", "trunk-0"]);
    assert_eq!(draft_of(&plan, "trunk-0", &Ids::new()), None);
    let trunk = draft_of(&plan, "trunk-0", &ids(&[("port-0", "p0")])).unwrap();
    assert_eq!(
        (trunk.key.as_str(), trunk.params),
        ("trunk on p0", json!({"name": "srv-0", "sub_ports": [], "port_id": "p0"}))
    );
}

#[test]
fn the_zone_of_a_volume_is_named_or_the_servers_or_none() {
    let zone = |value: Value, server: Option<&str>| {
        let mut fields = json!({"rootVolume": {"sizeGiB": 1, "availabilityZone": value}});
        if let Some(zone) = server {
            fields["availabilityZone"] = json!(zone);
        }
        let (spec, resolved) = (spec(fields), resolved(1));
        let facts = Facts { resolved: Some(&resolved), ..Facts::default() };
        let draft = draft_of(&Plan::of("srv", &spec, &facts), "volume-root", &Ids::new()).unwrap();
        draft.params.get("availability_zone").cloned()
    };
    assert_eq!(zone(json!({"name": "z"}), Some("az")), Some(json!("z")));
    assert_eq!(zone(json!({"from": "Machine"}), Some("az")), Some(json!("az")));
    assert_eq!(zone(json!({"from": "Machine"}), None), None);
}

#[test]
fn what_no_cloud_could_serve_is_said_before_it_is_asked() {
    let said = |fields: Value, data: Option<&[u8]>| problem(&spec(fields), data).unwrap_or_default();
    assert!(said(json!({"ports": []}), None).contains("must not be empty"));
    assert!(said(json!({"ports": [{}]}), None).contains("neither a network nor a subnet"));
    assert!(
        said(
            json!({"ports": [{"network": {"id": "n"}, "enablePortSecurity": false, "securityGroups": [{"id": "x"}]}]}),
            None
        )
        .contains("port security")
    );
    assert!(said(json!({"ports": [{"network": {"id": "n"}, "valueSpecs": [{"name": "a", "key": "tenant_id", "value": "x"}]}]}), None).contains("tenant_id"));
    assert!(
        said(json!({"additionalBlockDevices": [{"name": "root", "sizeGiB": 1, "storage": {"type": "Local"}}]}), None)
            .contains("root")
    );
    assert!(said(json!({"serverMetadata": [{"key": "custody-owner", "value": "x"}]}), None).contains("custody-owner"));
    assert!(said(json!({}), Some(&vec![0; 50_000])).contains("longer than 65535"));
    assert_eq!(said(json!({}), Some(&vec![0; 49_000])), "");
}

#[test]
fn without_ids_of_the_names_only_slots_are_known() {
    let plan = Plan::of("srv", &spec(json!({"rootVolume": {"sizeGiB": 1}})), &Facts::default());
    assert_eq!(plan.slots().map(Slot::as_str).collect::<Vec<_>>(), ["port-0", "server", "volume-root"]);
    assert!(plan.pieces(&Ids::new()).iter().all(|it| matches!(it.want, Want::Make { draft: None, .. })));
}
