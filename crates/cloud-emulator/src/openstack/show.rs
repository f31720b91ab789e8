//! A thing as its service shows it, and lists of them.
use super::kinds::{Kind, Service};
use super::replies::Refused;
use super::store::{Store, Thing};
use crate::kit::{Answer, Call, Phase, Settings, strict};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Nova and Neutron write whole seconds with a zone, Cinder a fraction without one.
fn time(at: Timestamp, kind: Kind) -> String {
    let zoned = at.to_zoned(jiff::tz::TimeZone::UTC);
    match kind {
        Kind::Volume => zoned.strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string(),
        _ => zoned.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }
}

/// One thing, for one project, at one time.
pub(super) fn thing(store: &Store, it: &Thing, project: &str, now: Timestamp, as_alive: bool, version: u32) -> Value {
    let mut body = it.body.clone();
    body.insert("id".into(), json!(it.id));
    let phase = if as_alive { it.phase_alive(now) } else { it.phase(now) };
    let owner = it.project.as_deref().unwrap_or(project);
    match it.kind {
        Kind::Server => server(store, it, &mut body, phase, owner, now, version),
        Kind::Volume => {
            let status = match phase {
                Phase::Building => "creating",
                Phase::Failed => "error",
                Phase::Deleting | Phase::Gone => "deleting",
                Phase::Ready if it.server.is_some() => "in-use",
                Phase::Ready => "available",
            };
            body.entry("status").or_insert_with(|| json!(status));
            let attached = it
                .server
                .iter()
                .map(|(server, _)| json!({"server_id": server, "volume_id": it.id, "device": "/dev/vda"}));
            body.insert("attachments".into(), attached.collect());
            body.insert("created_at".into(), json!(time(it.born, it.kind)));
            body.insert("os-vol-tenant-attr:tenant_id".into(), json!(owner));
        }
        Kind::Port => {
            body.insert("device_id".into(), json!(it.plugged(now).unwrap_or(it.text("device_id"))));
            let plugged = it.plugged(now).is_some();
            if plugged {
                body.insert("device_owner".into(), json!("compute:nova"));
            }
            body.insert("status".into(), json!(if plugged { "ACTIVE" } else { "DOWN" }));
            dated(it, &mut body, owner);
            // Shown to administrators only.
            for hidden in ["binding:host_id", "binding:profile", "propagate_uplink_status"] {
                body.remove(hidden);
            }
        }
        Kind::Trunk | Kind::FloatingIp | Kind::Network | Kind::Router => {
            body.entry("status").or_insert_with(|| json!("ACTIVE"));
            dated(it, &mut body, owner);
        }
        Kind::Subnet | Kind::SecurityGroup => dated(it, &mut body, owner),
        Kind::Member => {
            let status = match phase {
                Phase::Building => "PENDING_CREATE",
                Phase::Failed => "ERROR",
                Phase::Deleting | Phase::Gone => "PENDING_DELETE",
                Phase::Ready => "ACTIVE",
            };
            body.insert("provisioning_status".into(), json!(status));
            body.insert("created_at".into(), json!(time(it.born, Kind::Volume)));
            body.insert("project_id".into(), json!(owner));
            body.remove("pool_id");
        }
        Kind::Balancer | Kind::Listener | Kind::Pool => {
            body.insert("project_id".into(), json!(owner));
            body.insert("provisioning_status".into(), json!("ACTIVE"));
            body.insert("created_at".into(), json!(time(it.born, Kind::Volume)));
        }
        // Its id is a number that nobody uses.
        Kind::Keypair => drop(body.remove("id")),
        Kind::Image | Kind::Flavor | Kind::ServerGroup => {}
    }
    Value::Object(body)
}
fn dated(it: &Thing, body: &mut Map<String, Value>, owner: &str) {
    body.insert("created_at".into(), json!(time(it.born, it.kind)));
    body.insert("updated_at".into(), json!(time(it.born, it.kind)));
    body.insert("project_id".into(), json!(owner));
    body.insert("tenant_id".into(), json!(owner));
    body.entry("tags").or_insert_with(|| json!([]));
    body.entry("description").or_insert_with(|| json!(""));
    body.insert("revision_number".into(), json!(1));
}
fn server(
    store: &Store,
    it: &Thing,
    body: &mut Map<String, Value>,
    phase: Phase,
    owner: &str,
    now: Timestamp,
    version: u32,
) {
    let status = match phase {
        _ if it.soft_deleted => "SOFT_DELETED",
        Phase::Building => "BUILD",
        Phase::Failed => "ERROR",
        Phase::Ready | Phase::Deleting | Phase::Gone => "ACTIVE",
    };
    let status = body.get("status").and_then(Value::as_str).unwrap_or(status).to_owned();
    let deleting = matches!(phase, Phase::Deleting | Phase::Gone);
    if status == "ERROR" {
        let message = it.failure.clone().unwrap_or_else(|| "unknown".to_owned());
        body.insert("fault".into(), json!({"code": 500, "created": time(it.born, it.kind), "message": message}));
    }
    body.insert("status".into(), json!(status));
    body.insert("OS-EXT-STS:task_state".into(), if deleting { json!("deleting") } else { Value::Null });
    body.insert("created".into(), json!(time(it.born, it.kind)));
    body.insert("tenant_id".into(), json!(owner));
    let volumes = store.of_kind(Kind::Volume).filter(|v| v.server.as_ref().is_some_and(|(id, _)| *id == it.id));
    let volumes = volumes.map(|v| json!({"id": v.id, "delete_on_termination": v.goes_with_server}));
    body.insert("os-extended-volumes:volumes_attached".into(), volumes.collect());
    let mut addresses: Map<String, Value> = Map::new();
    for port in store.of_kind(Kind::Port).filter(|p| p.server.as_ref().is_some_and(|(id, _)| *id == it.id)) {
        if now < it.built {
            continue;
        }
        let network = store.get(Kind::Network, port.text("network_id"), now).map_or("unknown", |net| net.text("name"));
        let mut list: Vec<Value> = Vec::new();
        for fixed in port.body.get("fixed_ips").and_then(Value::as_array).into_iter().flatten() {
            let address = fixed["ip_address"].as_str().unwrap_or_default();
            let ip = if address.contains(':') { 6 } else { 4 };
            list.push(json!({"addr": address, "version": ip, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": port.text("mac_address")}));
        }
        for floating in store.of_kind(Kind::FloatingIp).filter(|f| f.text("port_id") == port.id && !f.gone(now)) {
            list.push(json!({"addr": floating.text("floating_ip_address"), "version": 4, "OS-EXT-IPS:type": "floating", "OS-EXT-IPS-MAC:mac_addr": port.text("mac_address")}));
        }
        let entry = addresses.entry(network.to_owned()).or_insert_with(|| json!([]));
        if let Some(all) = entry.as_array_mut() {
            all.extend(list);
        }
    }
    body.insert("addresses".into(), Value::Object(addresses));
    if version < 26 {
        body.remove("tags");
    }
}

/// Does a thing fit a query? `Err` names a parameter that nothing has.
fn fits(kind: Kind, shown: &Value, query: &[(String, String)]) -> Result<bool, String> {
    let tags: Vec<&str> = shown["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, value) in query {
        let wanted: Vec<&str> = value.split(',').collect();
        let ok = match key.as_str() {
            "limit" | "marker" | "sort_key" | "sort_dir" => true,
            "tags" => wanted.iter().all(|tag| tags.contains(tag)),
            "tags-any" => wanted.iter().any(|tag| tags.contains(tag)),
            "not-tags" => !wanted.iter().all(|tag| tags.contains(tag)),
            "not-tags-any" => !wanted.iter().any(|tag| tags.contains(tag)),
            "tag" if kind == Kind::Image => tags.contains(&value.as_str()),
            "loadbalancer_id" => {
                shown["loadbalancers"].as_array().into_iter().flatten().any(|it| it["id"] == value.as_str())
            }
            // Nova's names are patterns: here only those that begin and end are known.
            "name" if kind == Kind::Server => {
                let plain = value.trim_start_matches('^').trim_end_matches('$').replace('\\', "");
                shown["name"].as_str().is_some_and(|name| name.contains(&plain))
            }
            other => match shown.get(other) {
                Some(Value::String(is)) => is == value,
                Some(Value::Bool(is)) => (*is).to_string() == value.to_lowercase(),
                Some(Value::Number(is)) => is.to_string() == *value,
                Some(Value::Null) => value.is_empty(),
                _ => return Err(format!("['{other}'] is invalid attribute for filtering")),
            },
        };
        if !ok {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A list, in pages.
pub(super) fn list(
    store: &Store,
    settings: &Settings,
    kind: Kind,
    call: Call<'_>,
    version: u32,
) -> Result<Answer, Refused> {
    let now = call.now;
    let project = &*call.principal.account;
    let query = strict::query_repeated(call.request).map_err(|why| Refused::invalid(kind.service(), why))?;
    let of = |key: &str| query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    let mut limit = usize::try_from(settings.paging.max).unwrap_or(usize::MAX);
    if let Some(text) = of("limit") {
        let asked: usize = text.parse().map_err(|_| Refused::invalid(kind.service(), "limit is no number"))?;
        limit = limit.min(asked);
    }
    if kind.service() == Service::Image {
        limit = limit.min(25);
    }
    let mut items = Vec::new();
    let pool = if kind == Kind::Member { super::balancers::pool_in(call.request) } else { String::new() };
    if kind == Kind::Member && store.seen(project, Kind::Pool, &pool, now).is_none() {
        return Err(Refused::not_found(Kind::Pool, &pool));
    }
    for it in store.of_kind(kind).filter(|it| kind != Kind::Member || it.text("pool_id") == pool) {
        let visible = it.project.as_deref().is_none_or(|of| of == project) && it.listed_from <= now;
        let ended = it.end.as_ref().is_some_and(|end| end.ghost_until <= now);
        if !visible || ended {
            continue;
        }
        let alive = it.end.as_ref().is_some_and(|end| end.looks_alive);
        let shown = thing(store, it, project, now, alive, version);
        if fits(kind, &shown, &query).map_err(|why| Refused::invalid(kind.service(), why))? {
            items.push(shown);
        }
    }
    if let Some(marker) = of("marker") {
        let at = items.iter().position(|it| it["id"] == marker);
        // The marker may have gone meanwhile: what it stood before is told by its number, which ids do not show.
        let at = at.ok_or_else(|| Refused::invalid(kind.service(), format!("marker {marker} could not be found.")))?;
        items.drain(..=at);
    }
    let more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().and_then(|it| it["id"].as_str()).unwrap_or_default().to_owned();
    let mut body = json!({ kind.many(): items });
    if more {
        let path = call.request.uri().path();
        match kind.service() {
            Service::Image => body["next"] = json!(format!("/v2/images?marker={last}")),
            // As behind a proxy: the host of the link is not to be believed.
            _ => {
                body[format!("{}_links", kind.many())] = json!([{"rel": "next", "href": format!("http://internal.invalid{path}?limit={limit}&marker={last}")}]);
            }
        }
    }
    Ok(Answer::new(StatusCode::OK, body.to_string().into_bytes()))
}
