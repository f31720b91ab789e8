//! Spec and ids become pieces: ports, trunks, volumes and the server, each with the body of its create call. Pure.
use crate::api::{
    HintType, OpenStackServerSpec, PortOpts, ResolvedPort, ResolvedServer, StorageType, VolumeZone, ZoneSource,
};
use crate::cloud::{Extensions, Item, Kind, TRUSTED_PORTS, port_key, server_key, trunk_key};
use crate::names::MOST_USER_DATA;
use crate::resolve::wants_trunk;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::engine::estate::{Draft, Ids, Piece, Want};
use common::identity::{Slot, Then};
use common::ledger::Id;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Keys of a port that no valueSpec may set.
const NEVER: [&str; 2] = ["shared", "tenant_id"];

/// What of the cloud the plan depends on.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    /// Ids of what the spec names; none while they are not known, or when the owner goes.
    pub resolved: Option<&'a ResolvedServer>,
    /// What Neutron can do.
    pub extensions: Extensions,
    /// User data, as it is in the Secret.
    pub user_data: Option<&'a [u8]>,
    /// Things of somebody else's making that stand for our slots.
    pub adopted: BTreeMap<Slot, Id>,
}

/// One piece before ids are known.
#[derive(Clone, Debug)]
struct Wish {
    needs: Vec<Slot>,
    key: Key,
    body: Value,
}
/// Where a piece stands, once the ids it needs are known.
#[derive(Clone, Debug)]
enum Key {
    Known(String),
    TrunkOn(Slot),
}

/// The wishes of one owner.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    wishes: BTreeMap<Slot, Option<Wish>>,
    adopted: BTreeMap<Slot, Id>,
    tags: BTreeMap<Slot, BTreeSet<String>>,
    names: BTreeMap<Slot, String>,
}

fn slot(kind: Kind, suffix: &str) -> Option<Slot> {
    Slot::new(kind.name(), Some(suffix)).ok()
}
/// The slot of the server.
pub fn server_slot() -> Option<Slot> {
    Slot::new(Kind::Server.name(), None).ok()
}
/// The slot of a port.
pub fn port_slot(index: usize) -> Option<Slot> {
    slot(Kind::Port, &index.to_string())
}

/// Everything in the spec that cannot be served, in one line; none if all can. The schema says the same; an object may be older.
pub fn problem(spec: &OpenStackServerSpec, user_data: Option<&[u8]>) -> Option<String> {
    let mut problems = Vec::new();
    if spec.ports.is_empty() {
        problems.push("ports must not be empty".to_owned());
    }
    if spec.flavor.is_none() && spec.flavor_id.is_none() {
        problems.push("at least one of flavor or flavorID must be set".to_owned());
    }
    for (index, port) in spec.ports.iter().enumerate() {
        if port.network.is_none() && port.fixed_ips.is_empty() {
            problems.push(format!("port {index} names neither a network nor a subnet"));
        }
        if port.enable_port_security == Some(false) && !port.security_groups.is_empty() {
            problems.push(format!("port {index} has security groups, and port security disabled"));
        }
        let mut keys = BTreeSet::new();
        for spec in &port.value_specs {
            if NEVER.contains(&spec.key.as_str()) {
                problems.push(format!("port {index}: the key {} cannot be set", spec.key));
            } else if !keys.insert(&spec.key) {
                problems.push(format!("port {index}: the key {} is set twice", spec.key));
            }
        }
    }
    let mut names = BTreeSet::new();
    for device in &spec.additional_block_devices {
        if device.name == "root" || !names.insert(&device.name) {
            problems.push(format!("the device name {} is taken", device.name));
        }
    }
    if let Some(metadata) = spec.server_metadata.iter().find(|it| it.key.starts_with("custody-")) {
        problems.push(format!("the metadata key {} marks whose a server is", metadata.key));
    }
    if let Some(data) = user_data
        && STANDARD.encode(data).len() > MOST_USER_DATA
    {
        problems.push(format!("user data is longer than {MOST_USER_DATA} characters in base64"));
    }
    (!problems.is_empty()).then(|| problems.join("; "))
}

impl Plan {
    /// Reads a spec. Without `resolved` it only says which slots there are, which is all that the way down needs.
    pub fn of(name: &str, spec: &OpenStackServerSpec, facts: &Facts<'_>) -> Self {
        let mut plan = Plan { adopted: facts.adopted.clone(), ..Plan::default() };
        let mut needed = Vec::new();
        for (index, port) in spec.ports.iter().enumerate() {
            let Some(port_slot) = port_slot(index) else { continue };
            let resolved = facts.resolved.and_then(|it| it.ports.get(index));
            let body = resolved.map(|resolved| port_body(port, resolved, &facts.extensions));
            let key = resolved.map(|it| Key::Known(port_key(&it.network_id, &it.name)));
            plan.wish(&port_slot, Vec::new(), key, body);
            needed.push(port_slot.clone());
            if let Some(resolved) = resolved {
                plan.tags.insert(port_slot.clone(), resolved.tags.iter().cloned().collect());
                plan.names.insert(port_slot.clone(), resolved.name.clone());
            }
            if wants_trunk(spec, port)
                && let Some(trunk_slot) = slot(Kind::Trunk, &index.to_string())
            {
                let body = resolved.map(|it| json!({"name": it.name, "sub_ports": []}));
                let key = resolved.map(|_| Key::TrunkOn(port_slot.clone()));
                plan.wish(&trunk_slot, vec![port_slot.clone()], key, body);
                if let Some(resolved) = resolved {
                    plan.tags.insert(trunk_slot.clone(), resolved.tags.iter().cloned().collect());
                    plan.names.insert(trunk_slot.clone(), resolved.name.clone());
                }
                needed.push(trunk_slot);
            }
        }
        for volume in volumes(name, spec, facts.resolved) {
            let key = volume.body.as_ref().map(|_| Key::Known(format!("volume {}", volume.name)));
            plan.wish(&volume.slot, Vec::new(), key, volume.body);
            plan.names.insert(volume.slot.clone(), volume.name);
            needed.push(volume.slot);
        }
        if let Some(server_slot) = server_slot() {
            let body = facts.resolved.map(|resolved| server_body(name, spec, resolved, facts.user_data));
            let key = body.as_ref().map(|_| Key::Known(server_key(name)));
            plan.wish(&server_slot, needed, key, body);
            plan.names.insert(server_slot, name.to_owned());
        }
        plan
    }
    fn wish(&mut self, slot: &Slot, needs: Vec<Slot>, key: Option<Key>, body: Option<Value>) {
        let wish = key.zip(body).map(|(key, body)| Wish { needs, key, body });
        self.wishes.insert(slot.clone(), wish);
    }

    /// The kinds that this owner can have things of.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        self.wishes.keys().filter_map(Kind::of).collect()
    }
    /// The slots.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.wishes.keys()
    }
    /// The tags that the spec asks for.
    pub fn tags(&self, slot: &Slot) -> Option<&BTreeSet<String>> {
        self.tags.get(slot)
    }
    /// Was this thing chosen to be adopted?
    pub fn is_chosen(&self, id: &str) -> bool {
        self.adopted.values().any(|chosen| chosen == id)
    }
    /// Could this thing be meant by a wish: does it stand where a piece would stand?
    pub fn may_mean(&self, item: &Item) -> bool {
        let kind = item.kind();
        self.is_chosen(item.id())
            || self.wishes.iter().any(|(slot, wish)| match wish {
                _ if Kind::of(slot) != Some(kind) => false,
                Some(Wish { key: Key::Known(key), .. }) => *key == item.key(),
                // Which port it is may not be known yet: the name will do.
                Some(Wish { key: Key::TrunkOn(_), .. }) => self.names.get(slot).is_some_and(|name| name == item.name()),
                None => false,
            })
    }

    /// The pieces, given the ids known so far.
    pub fn pieces(&self, ids: &Ids) -> Vec<Piece> {
        self.wishes.iter().map(|(slot, wish)| self.piece(slot, wish.as_ref(), ids)).collect()
    }
    fn piece(&self, slot: &Slot, wish: Option<&Wish>, ids: &Ids) -> Piece {
        let Some(wish) = wish else {
            return Piece { slot: slot.clone(), needs: Vec::new(), want: Want::Make { draft: None, adopt: None } };
        };
        let chosen = self.adopted.get(slot);
        let draft = match chosen {
            Some(id) => Some(Draft { key: chosen_key(id), params: wish.body.clone() }),
            None => draft(slot, wish, ids),
        };
        let adopt = chosen.map(|_| Then::Delete);
        Piece { slot: slot.clone(), needs: wish.needs.clone(), want: Want::Make { draft, adopt } }
    }
}
/// The natural key of a thing that was chosen to be adopted.
pub fn chosen_key(id: &str) -> String {
    format!("chosen {id}")
}

fn draft(slot: &Slot, wish: &Wish, ids: &Ids) -> Option<Draft> {
    let mut params = wish.body.clone();
    let key = match &wish.key {
        Key::Known(key) => key.clone(),
        Key::TrunkOn(port) => {
            let port = ids.get(port)?;
            params["port_id"] = json!(port);
            trunk_key(port)
        }
    };
    if Kind::of(slot) == Some(Kind::Server) {
        if !wish.needs.iter().all(|need| ids.contains_key(need)) {
            return None;
        }
        let server = params.get_mut("server")?;
        let of_kind = |kind: Kind| wish.needs.iter().filter(move |need| Kind::of(need) == Some(kind));
        let mut ports: Vec<(usize, &Id)> =
            of_kind(Kind::Port).filter_map(|need| Some((index_of(need)?, ids.get(need)?))).collect();
        ports.sort_unstable();
        server["networks"] = ports.iter().map(|(_, id)| json!({"port": id})).collect();
        for device in server.get_mut("block_device_mapping_v2").and_then(Value::as_array_mut).into_iter().flatten() {
            // Until now the volume is named by its slot.
            if device["source_type"] == "volume"
                && let Some(slot) = device["uuid"].as_str().and_then(|text| text.parse::<Slot>().ok())
            {
                device["uuid"] = json!(ids.get(&slot)?);
            }
        }
    }
    Some(Draft { key, params })
}
fn index_of(slot: &Slot) -> Option<usize> {
    slot.as_str().rsplit('-').next()?.parse().ok()
}

fn port_body(port: &PortOpts, resolved: &ResolvedPort, extensions: &Extensions) -> Value {
    let mut body = Map::new();
    body.insert("name".into(), json!(resolved.name));
    body.insert("network_id".into(), json!(resolved.network_id));
    body.insert("description".into(), json!(resolved.description));
    if !resolved.tags.is_empty() {
        body.insert("tags".into(), json!(resolved.tags));
    }
    if !resolved.fixed_ips.is_empty() {
        let fixed = resolved.fixed_ips.iter().map(|it| {
            let mut fixed = Map::new();
            fixed.extend(it.subnet.as_ref().map(|subnet| ("subnet_id".to_owned(), json!(subnet))));
            fixed.extend(it.ip_address.as_ref().map(|address| ("ip_address".to_owned(), json!(address))));
            Value::Object(fixed)
        });
        body.insert("fixed_ips".into(), fixed.collect());
    }
    if !resolved.security_groups.is_empty() {
        body.insert("security_groups".into(), json!(resolved.security_groups));
    }
    if port.enable_port_security != Some(false) && !port.allowed_address_pairs.is_empty() {
        let pairs = port.allowed_address_pairs.iter().map(|pair| match &pair.mac_address {
            Some(mac) => json!({"ip_address": pair.ip_address, "mac_address": mac}),
            None => json!({"ip_address": pair.ip_address}),
        });
        body.insert("allowed_address_pairs".into(), pairs.collect());
    }
    let optional = [
        ("admin_state_up", port.admin_state_up.map(Value::from)),
        ("mac_address", port.mac_address.clone().map(Value::from)),
        ("propagate_uplink_status", port.propagate_uplink_status.map(Value::from)),
        ("port_security_enabled", port.enable_port_security.map(Value::from)),
        ("binding:host_id", port.host_id.clone().map(Value::from)),
        ("binding:vnic_type", port.vnic_type.clone().map(Value::from)),
    ];
    body.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    let mut profile = Map::new();
    let asked = port.profile.clone().unwrap_or_default();
    if asked.ovs_hw_offload == Some(true) {
        profile.insert("capabilities".into(), json!(["switchdev"]));
    }
    if asked.trusted_vf == Some(true) {
        if extensions.contains(TRUSTED_PORTS) {
            body.insert("trusted".into(), json!(true));
        } else {
            profile.insert("trusted".into(), json!(true));
        }
    }
    if !profile.is_empty() {
        body.insert("binding:profile".into(), Value::Object(profile));
    }
    for spec in &port.value_specs {
        // What the port says itself is not overwritten.
        body.entry(spec.key.clone()).or_insert_with(|| json!(spec.value));
    }
    Value::Object(body)
}

struct VolumeWish {
    slot: Slot,
    name: String,
    body: Option<Value>,
}
fn zone(zone: Option<&VolumeZone>, spec: &OpenStackServerSpec) -> Option<String> {
    match zone {
        None => None,
        Some(VolumeZone { from: ZoneSource::Name, name }) => name.clone(),
        Some(VolumeZone { from: ZoneSource::Machine, .. }) => spec.availability_zone.clone(),
    }
    .filter(|zone| !zone.is_empty())
}
fn volumes(name: &str, spec: &OpenStackServerSpec, resolved: Option<&ResolvedServer>) -> Vec<VolumeWish> {
    let body = |volume: &str, size: i32, text: &str, type_: Option<&String>, zone: Option<String>| {
        let mut body = json!({"name": volume, "size": size, "description": format!("{text} {name}")});
        if let Some(type_) = type_.filter(|it| !it.is_empty()) {
            body["volume_type"] = json!(type_);
        }
        if let Some(zone) = zone {
            body["availability_zone"] = json!(zone);
        }
        body
    };
    let mut all = Vec::new();
    if let (Some(root), Some(slot)) = (&spec.root_volume, slot(Kind::Volume, "root")) {
        let volume = format!("{name}-root");
        let made = resolved.map(|resolved| {
            let zone = zone(root.availability_zone.as_ref(), spec);
            let mut body = body(&volume, root.size_gib, "Root volume of", root.type_.as_ref(), zone);
            body["imageRef"] = json!(resolved.image_id);
            body
        });
        all.push(VolumeWish { slot, name: volume, body: made });
    }
    for (index, device) in spec.additional_block_devices.iter().enumerate() {
        if device.storage.type_ != StorageType::Volume {
            continue;
        }
        let Some(slot) = slot(Kind::Volume, &index.to_string()) else { continue };
        let volume = format!("{name}-{}", device.name);
        let options = device.storage.volume.clone().unwrap_or_default();
        let made = resolved.map(|_| {
            let zone = zone(options.availability_zone.as_ref(), spec);
            body(&volume, device.size_gib, "Additional block device of", options.type_.as_ref(), zone)
        });
        all.push(VolumeWish { slot, name: volume, body: made });
    }
    all
}

fn server_body(name: &str, spec: &OpenStackServerSpec, resolved: &ResolvedServer, user_data: Option<&[u8]>) -> Value {
    let root = match &spec.root_volume {
        Some(_) => json!({"source_type": "volume", "uuid": "volume-root"}),
        None => json!({"source_type": "image", "uuid": resolved.image_id}),
    };
    let mut root = root;
    root["destination_type"] = json!(if spec.root_volume.is_some() { "volume" } else { "local" });
    root["boot_index"] = json!(0);
    root["delete_on_termination"] = json!(true);
    let mut devices = vec![root];
    for (index, device) in spec.additional_block_devices.iter().enumerate() {
        let mut mapping = match device.storage.type_ {
            StorageType::Volume => {
                json!({"source_type": "volume", "destination_type": "volume", "uuid": format!("volume-{index}")})
            }
            StorageType::Local => {
                json!({"source_type": "blank", "destination_type": "local", "volume_size": device.size_gib})
            }
        };
        mapping["boot_index"] = json!(-1);
        mapping["delete_on_termination"] = json!(true);
        mapping["tag"] = json!(device.name);
        devices.push(mapping);
    }
    let metadata: Map<String, Value> =
        spec.server_metadata.iter().map(|it| (it.key.clone(), json!(it.value))).collect();
    let mut server = json!({
        "name": name,
        "flavorRef": resolved.flavor_id,
        "metadata": metadata,
        "config_drive": spec.config_drive.unwrap_or(false),
        "block_device_mapping_v2": devices,
    });
    if spec.root_volume.is_none() {
        server["imageRef"] = json!(resolved.image_id);
    }
    if let Some(zone) = spec.availability_zone.as_ref().filter(|it| !it.is_empty()) {
        server["availability_zone"] = json!(zone);
    }
    if !spec.ssh_key_name.is_empty() {
        server["key_name"] = json!(spec.ssh_key_name);
    }
    if !spec.tags.is_empty() {
        let tags: BTreeSet<&String> = spec.tags.iter().collect();
        server["tags"] = json!(tags);
    }
    if let Some(data) = user_data.filter(|it| !it.is_empty()) {
        server["user_data"] = json!(STANDARD.encode(data));
    }
    let mut hints = Map::new();
    for hint in &spec.scheduler_hint_additional_properties {
        let value = match hint.value.type_ {
            HintType::Bool => json!(hint.value.bool),
            HintType::Number => json!(hint.value.number),
            HintType::String => json!(hint.value.string),
        };
        hints.insert(hint.name.clone(), value);
    }
    hints.extend(resolved.server_group_id.as_ref().map(|id| ("group".to_owned(), json!(id))));
    let mut body = json!({ "server": server });
    if !hints.is_empty() {
        body["os:scheduler_hints"] = Value::Object(hints);
    }
    body
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
