//! Creates of each kind, checked as the services check them.
use super::fields::{Fields, Order};
use super::kinds::{Kind, Service};
use super::replies::{self, Refused};
use super::store::Maker;
use super::{OpenStackState, has, version_of};
use crate::kit::dice::Dice;
use crate::kit::{Answer, Call, Phase, Settings, later};
use http::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;

/// The compute host tells Neutron of its port some time after the server was accepted.
const PLUG_DELAY: Duration = Duration::from_secs(2);

impl OpenStackState {
    pub(super) fn create(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        kind: Kind,
        call: Call<'_>,
    ) -> Result<Answer, Refused> {
        let project = &*call.principal.account;
        let version = version_of(call.request);
        let order = match kind {
            Kind::Port => self.port(settings, dice, call)?,
            Kind::Trunk => self.trunk(call)?,
            Kind::Volume => self.volume(call)?,
            Kind::Server => self.server(call, version)?,
            Kind::FloatingIp => self.floating_ip(call)?,
            Kind::Member => self.member(call)?,
            other => return Err(Refused::invalid(other.service(), "this cloud's administrator makes these")),
        };
        self.too_much(settings, kind, &order.body, project, call.now).map_or(Ok(()), Err)?;
        let failure = self.failures.get_mut(kind.index()).and_then(std::collections::VecDeque::pop_front);
        if kind == Kind::Port
            && let Some(why) = &failure
        {
            return Err(Refused::conflict(Service::Network, "IpAddressGenerationFailure", why.clone()));
        }
        let maker =
            Maker { project: Some(project.into()), name: call.principal.name.clone(), planted: false, born: call.now };
        let id = self.store.make(settings, dice, maker, kind, order.body, failure);
        let plugged = later(call.now, PLUG_DELAY);
        for port in order.ports {
            if let Some(port) = self.store.get_mut(&port, call.now) {
                port.server = Some((id.clone(), plugged));
            }
        }
        for (volume, goes) in order.volumes {
            if let Some(volume) = self.store.get_mut(&volume, call.now) {
                volume.server = Some((id.clone(), call.now));
                volume.goes_with_server = goes;
            }
        }
        let (status, shown) = if kind == Kind::Server {
            // Nova tells little more than the id.
            let told = json!({"id": id, "links": [], "OS-DCF:diskConfig": "MANUAL", "security_groups": []});
            (StatusCode::ACCEPTED, told)
        } else {
            let status = if kind == Kind::Volume { StatusCode::ACCEPTED } else { StatusCode::CREATED };
            let made = self.store.get(kind, &id, call.now);
            let shown = made.map(|it| super::show::thing(&self.store, it, project, call.now, false, version));
            let mut shown = shown.unwrap_or_default();
            if let Some(volume) = shown.as_object_mut() {
                volume.remove("os-vol-tenant-attr:tenant_id");
            }
            (status, shown)
        };
        let mut answer = replies::one(status, kind, shown);
        (answer.effect, answer.thing) = (true, Some(id));
        Ok(answer)
    }

    fn port(&mut self, settings: &Settings, dice: &mut Dice, call: Call<'_>) -> Result<Order, Refused> {
        let mut fields = Fields::of(&call, Service::Network, "port")?;
        let network = fields.need("network_id")?;
        let project = &*call.principal.account;
        if self.store.seen(project, Kind::Network, &network, call.now).is_none() {
            return Err(Refused::not_found(Kind::Network, &network));
        }
        let tags = fields.take("tags");
        if tags.is_some() && !has(settings, "tag-ports-during-bulk-creation") {
            return Err(Refused::invalid(Service::Network, "Unrecognized attribute(s) 'tags'"));
        }
        let mut body = json!({"network_id": network, "tags": tags.unwrap_or_else(|| json!([])), "device_id": "", "device_owner": ""});
        body["name"] = json!(fields.text("name")?.unwrap_or_default());
        body["description"] = json!(fields.text("description")?.unwrap_or_default());
        let mac = [dice.id(), dice.id()];
        body["mac_address"] = match fields.text("mac_address")? {
            Some(mac) => json!(mac),
            None => json!(format!("fa:16:3e:{:02x}:{:02x}:{:02x}", mac[0] & 0xff, mac[1] & 0xff, (mac[1] >> 8) & 0xff)),
        };
        body["admin_state_up"] = fields.take("admin_state_up").unwrap_or(json!(true));
        body["port_security_enabled"] = fields.take("port_security_enabled").unwrap_or(json!(true));
        let secure = body["port_security_enabled"] == json!(true);
        let groups = fields.take("security_groups");
        if !secure && groups.as_ref().and_then(Value::as_array).is_some_and(|it| !it.is_empty()) {
            let message =
                "Port security must be enabled and port must have an IP address in order to use security groups.";
            let word = "PortSecurityAndIPRequiredForSecurityGroups";
            return Err(Refused::new(Service::Network, StatusCode::BAD_REQUEST, word, message.to_owned()));
        }
        let standard = self.store.of_kind(Kind::SecurityGroup).find(|it| it.text("name") == "default");
        let default = standard.filter(|_| secure).map_or(json!([]), |group| json!([group.id]));
        body["security_groups"] = groups.unwrap_or(default);
        body["allowed_address_pairs"] = fields.take("allowed_address_pairs").unwrap_or(json!([]));
        body["binding:vnic_type"] = json!(fields.text("binding:vnic_type")?.unwrap_or_else(|| "normal".into()));
        body["binding:host_id"] = json!(fields.text("binding:host_id")?.unwrap_or_default());
        body["binding:profile"] = fields.take("binding:profile").unwrap_or(json!({}));
        body["propagate_uplink_status"] = fields.take("propagate_uplink_status").unwrap_or(json!(true));
        for known in ["trusted", "qos_policy_id", "dns_name", "hints", "device_profile"] {
            if let Some(value) = fields.take(known) {
                body[known] = value;
            }
        }
        body["fixed_ips"] = self.addresses(&network, fields.take("fixed_ips"), call)?;
        fields.finish()?;
        Ok(Order::plain(body))
    }
    /// Addresses as asked for, or the next of the network's first subnet.
    fn addresses(&mut self, network: &str, asked: Option<Value>, call: Call<'_>) -> Result<Value, Refused> {
        let subnets: Vec<(String, String)> = self
            .store
            .of_kind(Kind::Subnet)
            .filter(|it| it.text("network_id") == network)
            .map(|it| (it.id.clone(), it.text("cidr").to_owned()))
            .collect();
        let asked = match asked {
            Some(Value::Array(list)) if !list.is_empty() => list,
            _ => subnets.first().map(|(id, _)| json!({"subnet_id": id})).into_iter().collect(),
        };
        let mut out = Vec::new();
        for one in asked {
            let subnet =
                one["subnet_id"].as_str().map(str::to_owned).or_else(|| subnets.first().map(|it| it.0.clone()));
            let Some((id, cidr)) = subnet.and_then(|id| subnets.iter().find(|it| it.0 == id)) else {
                return Err(Refused::invalid(
                    Service::Network,
                    format!(
                        "Failed to create port on network {network}, because fixed_ips included invalid subnet {}.",
                        one["subnet_id"]
                    ),
                ));
            };
            let address = if let Some(address) = one["ip_address"].as_str() {
                address.to_owned()
            } else {
                self.next_address += 1;
                let start = cidr.split('/').next().unwrap_or_default();
                let head: Vec<&str> = start.split('.').take(2).collect();
                format!("{}.{}.{}", head.join("."), self.next_address / 250 % 250, self.next_address % 250 + 2)
            };
            let taken = self.store.of_kind(Kind::Port).filter(|it| !it.gone(call.now)).any(|it| {
                it.text("network_id") == network
                    && it
                        .body
                        .get("fixed_ips")
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten()
                        .any(|ip| ip["ip_address"] == address)
            });
            if taken {
                let message = format!("IP address {address} already allocated in subnet {id}");
                return Err(Refused::conflict(Service::Network, "IpAddressAlreadyAllocated", message));
            }
            out.push(json!({"subnet_id": id, "ip_address": address}));
        }
        Ok(Value::Array(out))
    }

    fn trunk(&mut self, call: Call<'_>) -> Result<Order, Refused> {
        let mut fields = Fields::of(&call, Service::Network, "trunk")?;
        let port = fields.need("port_id")?;
        if self.store.seen(&call.principal.account, Kind::Port, &port, call.now).is_none() {
            return Err(Refused::not_found(Kind::Port, &port));
        }
        if self.store.of_kind(Kind::Trunk).any(|it| it.text("port_id") == port && !it.gone(call.now)) {
            let message = format!("Port {port} is currently in use and is not eligible for use as a parent port.");
            return Err(Refused::conflict(Service::Network, "ParentPortInUse", message));
        }
        let body = json!({
            "port_id": port, "name": fields.text("name")?.unwrap_or_default(), "description": fields.text("description")?.unwrap_or_default(),
            "sub_ports": fields.take("sub_ports").unwrap_or(json!([])), "admin_state_up": fields.take("admin_state_up").unwrap_or(json!(true)), "tags": [],
        });
        fields.finish()?;
        Ok(Order::plain(body))
    }

    fn volume(&mut self, call: Call<'_>) -> Result<Order, Refused> {
        let mut fields = Fields::of(&call, Service::Volume, "volume")?;
        let size = fields.take("size").and_then(|it| it.as_i64()).filter(|size| *size > 0);
        let size = size.ok_or_else(|| Refused::invalid(Service::Volume, "Invalid input for field/attribute size."))?;
        let image = fields.text("imageRef")?;
        if let Some(image) = &image
            && self.store.seen(&call.principal.account, Kind::Image, image, call.now).is_none()
        {
            return Err(Refused::invalid(Service::Volume, format!("Invalid imageRef provided: {image}")));
        }
        let volume_type = fields.text("volume_type")?.unwrap_or_else(|| "__DEFAULT__".into());
        let body = json!({
            "size": size, "name": fields.text("name")?.unwrap_or_default(), "description": fields.text("description")?.unwrap_or_default(),
            "metadata": fields.pairs("metadata")?, "volume_type": volume_type, "multiattach": volume_type == "multiattach",
            "availability_zone": fields.text("availability_zone")?.unwrap_or_else(|| "nova".into()),
            "bootable": image.is_some().to_string(), "encrypted": false,
        });
        // Cinder passes over what it does not know.
        Ok(Order::plain(body))
    }

    fn server(&mut self, call: Call<'_>, version: u32) -> Result<Order, Refused> {
        let invalid = |message: String| Refused::invalid(Service::Compute, message);
        let whole: Value =
            serde_json::from_slice(call.request.body()).map_err(|_| invalid("Malformed request body".into()))?;
        if let Some(hints) = whole.get("os:scheduler_hints")
            && hints.get("group").is_some_and(|group| !group.is_string())
        {
            return Err(invalid("Invalid input for field/attribute group. is not of type 'string'".into()));
        }
        let (project, now) = (&*call.principal.account, call.now);
        let mut fields = Fields::of(&call, Service::Compute, "server")?;
        let flavor = fields.need("flavorRef")?;
        let Some(flavor_name) =
            self.store.seen(project, Kind::Flavor, &flavor, now).map(|it| it.text("name").to_owned())
        else {
            return Err(invalid(format!("Flavor {flavor} could not be found.")));
        };
        if let Some(image) = fields.text("imageRef")?
            && self.store.seen(project, Kind::Image, &image, now).is_none()
        {
            return Err(invalid(format!("Image {image} could not be found.")));
        }
        let key = fields.map.get("key_name").cloned();
        if let Some(key) = fields.text("key_name")? {
            let known = self.store.of_kind(Kind::Keypair).any(|it| it.text("name") == key);
            if key.is_empty() || !known {
                return Err(invalid("Invalid key_name provided.".into()));
            }
        }
        if fields.map.get("availability_zone").is_some_and(|zone| zone == "") {
            return Err(invalid("Invalid input for field/attribute availability_zone. '' is too short".into()));
        }
        let zone = fields.text("availability_zone")?;
        let tags = fields.take("tags");
        if tags.is_some() && version < 52 {
            return Err(invalid("Additional properties are not allowed ('tags' was unexpected)".into()));
        }
        if fields.map.get("user_data").and_then(Value::as_str).is_some_and(|it| it.len() > 65_535) {
            return Err(invalid("Invalid input for field/attribute user_data. is too long".into()));
        }
        let user_data = fields.text("user_data")?;
        let mut ports = Vec::new();
        for network in fields.take("networks").and_then(|it| it.as_array().cloned()).unwrap_or_default() {
            let id = network["port"].as_str().unwrap_or_default().to_owned();
            let Some(port) = self.store.seen(project, Kind::Port, &id, now) else {
                return Err(invalid(format!("Port {id} could not be found.")));
            };
            if port.server.is_some() || !port.text("device_id").is_empty() {
                return Err(Refused::conflict(Service::Compute, "", format!("Port {id} is still in use.")));
            }
            ports.push(id);
        }
        if ports.is_empty() {
            return Err(invalid("Multiple possible networks found, use a Network ID to be more specific.".into()));
        }
        let mut volumes = Vec::new();
        for device in fields.take("block_device_mapping_v2").and_then(|it| it.as_array().cloned()).unwrap_or_default() {
            if device.get("tag").is_some() && version < 42 {
                return Err(invalid("Additional properties are not allowed ('tag' was unexpected)".into()));
            }
            if device["source_type"] != "volume" {
                continue;
            }
            let id = device["uuid"].as_str().unwrap_or_default().to_owned();
            let volume = self.store.seen(project, Kind::Volume, &id, now);
            let free = volume.is_some_and(|it| it.phase(now) == Phase::Ready && it.server.is_none());
            if !free {
                return Err(invalid(format!(
                    "Block Device Mapping is Invalid: failed to get volume {id}. Invalid volume: Volume {id} status must be 'available'"
                )));
            }
            if volume.is_some_and(|it| it.body.get("multiattach") == Some(&json!(true))) && version < 60 {
                let why = "Multiattach volumes are only supported starting with compute API version 2.60.";
                return Err(invalid(why.into()));
            }
            volumes.push((id, device["delete_on_termination"] == json!(true)));
        }
        let body = json!({
            "name": fields.need("name")?, "metadata": fields.pairs("metadata")?, "tags": tags.unwrap_or_else(|| json!([])), "key_name": key,
            "config_drive": fields.take("config_drive").map_or("", |it| if it == json!(true) { "True" } else { "" }),
            "OS-EXT-AZ:availability_zone": zone.unwrap_or_else(|| "nova".into()), "flavor": {"original_name": flavor_name},
            "OS-EXT-SRV-ATTR:user_data": user_data, "scheduler_hints": whole.get("os:scheduler_hints").cloned(),
        });
        fields.finish()?;
        Ok(Order { ports, volumes, ..Order::plain(body) })
    }

    fn floating_ip(&mut self, call: Call<'_>) -> Result<Order, Refused> {
        let mut fields = Fields::of(&call, Service::Network, "floatingip")?;
        let network = fields.need("floating_network_id")?;
        let found = self.store.seen(&call.principal.account, Kind::Network, &network, call.now);
        let Some(found) = found else { return Err(Refused::not_found(Kind::Network, &network)) };
        if found.body.get("router:external") != Some(&json!(true)) {
            let message = format!("Bad floatingip request: Network {network} is not a valid external network.");
            return Err(Refused::new(Service::Network, StatusCode::BAD_REQUEST, "BadRequest", message));
        }
        let port = fields.text("port_id")?;
        if let Some(port) = &port
            && self.store.seen(&call.principal.account, Kind::Port, port, call.now).is_none()
        {
            return Err(Refused::not_found(Kind::Port, port));
        }
        self.next_floating += 1;
        let address = match fields.text("floating_ip_address")? {
            Some(_) if &*call.principal.name != "admin" => return Err(Refused::forbidden("floatingips.create")),
            Some(address) => address,
            None => format!("203.0.113.{}", self.next_floating),
        };
        let body = json!({
            "floating_network_id": network, "floating_ip_address": address, "port_id": port, "description": fields.text("description")?.unwrap_or_default(),
            "tags": [], "router_id": null, "fixed_ip_address": null, "status": "DOWN",
        });
        fields.finish()?;
        Ok(Order::plain(body))
    }
}
