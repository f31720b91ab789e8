//! The emulator against reality: one list of requests goes to both, and status codes and shapes of JSON are compared. Whatever
//! the emulator shows must be shown by a real OpenStack too, as the same type; whatever it refuses must be refused there in the
//! same words.
use crate::{seen, tell};
use common::clock::{Clock, SystemClock};
use e2e::{EmulatorProcess, Error, Result, TemporaryNamespace, binaries, env, process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(3);

/// One cloud, as an ordinary client sees it.
struct Side {
    http: reqwest::Client,
    auth_url: String,
    token: String,
    endpoints: BTreeMap<&'static str, String>,
    known: BTreeMap<String, String>,
}
struct Answer {
    status: u16,
    body: Value,
}

impl Side {
    async fn enter(auth: &Value, known: &[(&str, &str)]) -> Result<Self> {
        let http = reqwest::Client::builder().timeout(Duration::from_mins(1)).build()?;
        let text = |key: &str| auth[key].as_str().unwrap_or_default().to_owned();
        let auth_url = text("auth_url");
        let mut known: BTreeMap<String, String> =
            known.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        known.insert("credential".into(), text("application_credential_id"));
        known.insert("secret".into(), text("application_credential_secret"));
        let mut side = Side { http, auth_url, token: String::new(), endpoints: BTreeMap::new(), known };
        let body = side.fill(&json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": {"id": "{credential}", "secret": "{secret}"}}}}));
        let reply = side.http.post(format!("{}/auth/tokens", side.auth_url)).json(&body).send().await?;
        side.token =
            reply.headers().get("x-subject-token").and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
        let body: Value = reply.json().await?;
        side.known.insert("project".into(), body["token"]["project"]["id"].as_str().unwrap_or_default().to_owned());
        for entry in body["token"]["catalog"].as_array().into_iter().flatten() {
            let public = entry["endpoints"].as_array().into_iter().flatten().find(|it| it["interface"] == "public");
            let url = public.and_then(|it| it["url"].as_str()).unwrap_or_default().trim_end_matches('/');
            let (name, url) = match entry["type"].as_str().unwrap_or_default() {
                "compute" => ("compute", url.to_owned()),
                "network" => ("network", format!("{}/v2.0", url.trim_end_matches("/v2.0"))),
                "image" => ("image", format!("{}/v2", url.trim_end_matches("/v2"))),
                "volumev3" | "block-storage" => ("volume", url.to_owned()),
                _ => continue,
            };
            side.endpoints.insert(name, url);
        }
        side.endpoints.insert("identity", side.auth_url.clone());
        Ok(side)
    }
    /// Puts what is known in the place of `{names}`.
    fn fill(&self, template: &Value) -> Value {
        match template {
            Value::String(text) => json!(self.fill_text(text)),
            Value::Array(list) => list.iter().map(|it| self.fill(it)).collect(),
            Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), self.fill(v))).collect()),
            other => other.clone(),
        }
    }
    fn fill_text(&self, text: &str) -> String {
        self.known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }
    async fn ask(&self, step: &Step) -> Result<Answer> {
        let (service, method) = (step.service, step.method);
        let url = format!("{}{}", self.endpoints.get(service).cloned().unwrap_or_default(), self.fill_text(step.path));
        let method = reqwest::Method::from_bytes(method.as_bytes()).map_err(Error::other)?;
        let mut request = self.http.request(method, url).header("accept", "application/json");
        if service != "identity" {
            request = request.header("x-auth-token", &self.token);
        }
        if service == "compute" {
            request =
                request.header("openstack-api-version", "compute 2.60").header("x-openstack-nova-api-version", "2.60");
        }
        if !step.body.is_null() {
            request = request.json(&self.fill(&step.body));
        }
        let reply = request.send().await?;
        let status = reply.status().as_u16();
        let text = reply.text().await?;
        Ok(Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::Null) })
    }
    /// Asks until a pointer in the answer has this value.
    async fn until(&self, path: &str, service: &'static str, pointer: &str, wanted: &str) -> Result<()> {
        let deadline = SystemClock.boot() + PATIENCE;
        let step = Step { service, ..step("GET", "compute", "", Value::Null) };
        loop {
            let path: &'static str = Box::leak(self.fill_text(path).into_boxed_str());
            let answer = self.ask(&Step { path, ..step.clone() }).await?;
            let is = answer
                .body
                .pointer(pointer)
                .and_then(Value::as_str)
                .map_or_else(|| answer.status.to_string(), str::to_owned);
            if is == wanted {
                return Ok(());
            }
            if SystemClock.boot() > deadline {
                return Err(Error::other(format!("{path} {pointer} is {is}, not {wanted}")));
            }
            SystemClock.sleep_until(SystemClock.boot() + Duration::from_millis(500)).await;
        }
    }
}

/// One request, and what is remembered of its answer.
#[derive(Clone)]
struct Step {
    method: &'static str,
    service: &'static str,
    path: &'static str,
    body: Value,
    keep: Option<(&'static str, &'static str)>,
    wait: Option<(&'static str, &'static str, &'static str)>,
}
fn step(method: &'static str, service: &'static str, path: &'static str, body: Value) -> Step {
    Step { method, service, path, body, keep: None, wait: None }
}
impl Step {
    fn keep(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.keep = Some((name, pointer));
        self
    }
    /// Afterwards, waits until this path's pointer has this value.
    fn wait(mut self, path: &'static str, pointer: &'static str, value: &'static str) -> Self {
        self.wait = Some((path, pointer, value));
        self
    }
}

#[allow(clippy::too_many_lines)] // one list
fn requests() -> Vec<Step> {
    let get = |service, path| step("GET", service, path, Value::Null);
    let delete = |service, path| step("DELETE", service, path, Value::Null);
    let nobody = "00000000-0000-4000-8000-000000000000";
    let server = |name: &str, more: Value| {
        let mut server =
            json!({"name": name, "flavorRef": "{flavor}", "imageRef": "{image}", "networks": [{"port": "{port}"}]});
        server.as_object_mut().into_iter().for_each(|it| it.extend(more.as_object().cloned().unwrap_or_default()));
        json!({ "server": server })
    };
    let absent = |path: &'static str| path;
    vec![
        step("POST", "identity", "/auth/tokens", json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": {"id": "{credential}", "secret": "wrong"}}}})),
        get("compute", "/"),
        get("network", "/extensions"),
        get("compute", "/limits"),
        get("volume", "/limits"),
        get("volume", "/types"),
        get("compute", "/os-keypairs/key"),
        get("compute", "/os-keypairs/nobody"),
        get("compute", "/os-availability-zone"),
        get("network", "/quotas/{project}/details"),
        get("network", "/networks?name=private").keep("network", "/networks/0/id"),
        get("network", "/networks?name=other").keep("other", "/networks/0/id"),
        get("network", "/networks?name=nowhere"),
        get("network", "/networks?router:external=true").keep("external", "/networks/0/id"),
        get("network", "/networks?nonsense=1"),
        get("network", "/networks/{network}"),
        get("network", absent("/networks/00000000-0000-4000-8000-000000000000")),
        get("network", "/subnets?network_id={network}").keep("subnet", "/subnets/0/id"),
        get("network", "/subnets/{subnet}"),
        get("network", "/subnets/00000000-0000-4000-8000-000000000000"),
        get("network", "/security-groups?name=default&project_id={project}").keep("group", "/security_groups/0/id"),
        get("network", "/security-groups/{group}"),
        get("network", "/security-groups?name=nobody"),
        get("image", "/images?name={imagename}").keep("image", "/images/0/id"),
        get("image", "/images?name=nothing"),
        get("compute", "/flavors/detail").keep("flavor", "/flavors/0/id"),
        get("compute", "/flavors/{flavor}"),
        get("compute", "/flavors/nothing"),
        get("compute", "/os-server-groups").keep("servergroup", "/server_groups/0/id"),
        get("compute", "/servers/detail?limit=10"),
        get("compute", "/servers/00000000-0000-4000-8000-000000000000"),
        get("volume", "/volumes/detail?limit=10"),
        get("volume", "/volumes/00000000-0000-4000-8000-000000000000"),
        get("network", "/trunks?project_id={project}"),
        get("network", "/floatingips?project_id={project}"),
        step("POST", "network", "/ports", json!({"port": {"network_id": "{network}", "name": "p", "description": "d custody-owner=x", "allowed_address_pairs": [{"ip_address": "1.2.3.4"}]}})).keep("port", "/port/id"),
        step("POST", "network", "/ports", json!({"port": {"network_id": nobody}})),
        step("POST", "network", "/ports", json!({"port": {"network_id": "{network}", "nonsense": 1}})),
        step("POST", "network", "/ports", json!({"port": {"network_id": "{network}", "port_security_enabled": false, "security_groups": ["{group}"]}})),
        step("POST", "network", "/ports", json!({"port": {"network_id": "{other}", "name": "sub", "port_security_enabled": false}})).keep("subport", "/port/id"),
        get("network", "/ports/{port}"),
        get("network", "/ports?name=p&network_id={network}"),
        get("network", "/ports?project_id={project}"),
        get("network", "/ports/00000000-0000-4000-8000-000000000000"),
        step("PUT", "network", "/ports/{port}/tags", json!({"tags": ["b", "a"]})),
        step("PUT", "network", "/ports/{port}", json!({"port": {"description": "changed"}})),
        step("PUT", "network", "/ports/{port}", json!({"port": {"nonsense": 1}})),
        step("POST", "network", "/trunks", json!({"trunk": {"port_id": "{port}", "name": "t", "description": "d", "sub_ports": []}})).keep("trunk", "/trunk/id"),
        step("POST", "network", "/trunks", json!({"trunk": {"port_id": "{port}", "sub_ports": []}})),
        step("POST", "network", "/trunks", json!({"trunk": {"port_id": nobody}})),
        get("network", "/trunks/{trunk}"),
        get("network", "/trunks/00000000-0000-4000-8000-000000000000"),
        step("PUT", "network", "/trunks/{trunk}/tags", json!({"tags": ["a"]})),
        step("PUT", "network", "/trunks/{trunk}", json!({"trunk": {"description": "changed"}})),
        step("PUT", "network", "/trunks/{trunk}/add_subports", json!({"sub_ports": [{"port_id": "{subport}", "segmentation_type": "vlan", "segmentation_id": 7}]})),
        delete("network", "/ports/{port}"),
        delete("network", "/ports/{subport}"),
        step("PUT", "network", "/trunks/{trunk}/remove_subports", json!({"sub_ports": [{"port_id": "{subport}"}]})),
        delete("network", "/ports/{subport}"),
        step("POST", "volume", "/volumes", json!({"volume": {"name": "v", "size": 1, "imageRef": "{image}", "metadata": {"custody-owner": "x"}}})).keep("volume", "/volume/id").wait("/volumes/{volume}", "/volume/status", "available"),
        step("POST", "volume", "/volumes", json!({"volume": {"name": "v", "size": 0}})),
        // more than the project may have
        step("POST", "volume", "/volumes", json!({"volume": {"name": "v", "size": 20_000}})),
        step("POST", "volume", "/volumes", json!({"volume": {"name": "v", "size": 1, "nonsense": 1}})),
        get("volume", "/volumes/{volume}"),
        step("POST", "volume", "/volumes/{volume}/metadata", json!({"metadata": {"custody-slot": "y"}})),
        delete("volume", "/volumes/{volume}/metadata/custody-slot"),
        delete("volume", "/volumes/{volume}/metadata/nothing"),
        step("POST", "compute", "/servers", server("s", json!({"key_name": "nobody"}))),
        step("POST", "compute", "/servers", server("s", json!({"flavorRef": "nothing"}))),
        step("POST", "compute", "/servers", server("s", json!({"nonsense": 1}))),
        step("POST", "compute", "/servers", server("s", json!({"networks": [{"port": nobody}]}))),
        step("POST", "compute", "/servers", json!({"server": {"name": "s", "flavorRef": "{flavor}", "networks": [{"port": "{port}"}], "key_name": "key", "tags": ["a"], "metadata": {"custody-owner": "x"}, "config_drive": false,
            "block_device_mapping_v2": [{"source_type": "volume", "destination_type": "volume", "uuid": "{volume}", "boot_index": 0, "delete_on_termination": true, "tag": "root"}]}, "os:scheduler_hints": {"group": "{servergroup}"}}))
            .keep("server", "/server/id").wait("/servers/{server}", "/server/status", "ACTIVE"),
        get("compute", "/servers/{server}"),
        get("compute", "/servers/detail?limit=10"),
        get("network", "/ports/{port}"),
        get("volume", "/volumes/{volume}"),
        delete("volume", "/volumes/{volume}"),
        // Whether a trunk on a plugged port can go depends on the driver: it is not asked.
        delete("network", "/ports/{port}"),
        step("POST", "compute", "/servers", server("again", json!({}))),
        step("POST", "compute", "/servers/{server}/metadata", json!({"metadata": {"custody-slot": "y"}})),
        delete("compute", "/servers/{server}/metadata/custody-slot"),
        delete("compute", "/servers/{server}/metadata/nothing"),
        step("POST", "network", "/floatingips", json!({"floatingip": {"floating_network_id": "{external}", "description": "d"}})).keep("fip", "/floatingip/id"),
        step("POST", "network", "/floatingips", json!({"floatingip": {"floating_network_id": "{network}"}})),
        step("PUT", "network", "/floatingips/{fip}", json!({"floatingip": {"port_id": "{port}"}})),
        get("network", "/floatingips/{fip}"),
        step("PUT", "network", "/floatingips/{fip}", json!({"floatingip": {"port_id": null}})),
        delete("network", "/floatingips/{fip}"),
        delete("network", "/floatingips/{fip}"),
        delete("compute", "/servers/{server}").wait("/servers/{server}", "/nothing", "404"),
        delete("compute", "/servers/{server}"),
        delete("network", "/trunks/{trunk}"),
        delete("network", "/trunks/{trunk}"),
        delete("network", "/ports/{port}"),
        delete("network", "/ports/{port}"),
    ]
}

/// Fields that only the emulator shows, for tests to look at.
const OWN: [&str; 3] = ["scheduler_hints", "OS-EXT-SRV-ATTR:user_data", "fault"];

/// Where the emulator shows something else than reality. Missing values say nothing about types.
fn differences(path: &str, emulated: &Value, real: &Value, out: &mut Vec<String>) {
    match (emulated, real) {
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Object(a), Value::Object(b)) => {
            // Maps whose keys are data: addresses by network, metadata.
            let data = path.ends_with("/addresses") || path.ends_with("/metadata") || path.ends_with("/absolute");
            for (key, value) in a.iter().filter(|(key, _)| !OWN.contains(&key.as_str()) && !data) {
                match b.get(key) {
                    Some(other) => differences(&format!("{path}/{key}"), value, other, out),
                    None => out.push(format!("{path}/{key} is not there")),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            if let (Some(one), Some(other)) = (a.first(), b.first()) {
                differences(&format!("{path}/0"), one, other, out);
            }
        }
        (a, b) if std::mem::discriminant(a) != std::mem::discriminant(b) => {
            out.push(format!("{path} is {a} here and {b} there"));
        }
        _ => {}
    }
}
/// The service's own word for an error.
fn word(body: &Value) -> String {
    let Some(body) = body.as_object() else { return "no JSON".into() };
    if let Some(neutron) = body.get("NeutronError") {
        return neutron["type"].as_str().unwrap_or_default().to_owned();
    }
    body.keys().next().cloned().unwrap_or_default()
}

#[tokio::test]
async fn the_emulator_answers_as_a_real_openstack_does() {
    tell("the_emulator_answers_as_a_real_openstack_does", compare()).await;
}
async fn compare() -> Result<()> {
    let Some(root) = env::openstack_root() else {
        println!("no real OpenStack here: CUSTODY_OPENSTACK_ROOT is not set");
        return Ok(());
    };
    // given both clouds, entered by an application credential
    let cluster = &*e2e::cluster().await?;
    let namespace = TemporaryNamespace::create(cluster, "reality").await?;
    let script = binaries::root().join("e2e/openstack/prepare.py").display().to_string();
    let admin = root.join("etc/clouds.yaml").display().to_string();
    let text = process::output(&root.join("venv/bin/python"), [script.as_str(), &admin, namespace.name()]).await?;
    let prepared: Value = serde_json::from_str(text.trim()).map_err(Error::other)?;
    let emulator = EmulatorProcess::start(cluster, "openstack", "reality-cloud", &[("me", "my-secret")]).await?;
    let quotas = json!({"quotas": {"gigabytes": 10_000}});
    emulator.admin(reqwest::Method::PUT, "settings", &[], Some(&quotas)).await?;
    let auth = json!({"auth_url": format!("{}/identity/v3", emulator.url()), "application_credential_id": "me", "application_credential_secret": "my-secret"});
    let mut here = Side::enter(&auth, &[("imagename", "cirros")]).await?;
    let mut there = Side::enter(&prepared["clouds"]["clouds"]["c"]["auth"], &[("imagename", "tiny")]).await?;
    // when both are asked the same
    let (all, mut wrong) = (requests(), Vec::new());
    for step in &all {
        let (a, b) = (here.ask(step).await?, there.ask(step).await?);
        let name = format!("{} {} {}", step.method, step.service, step.path);
        if a.status != b.status {
            wrong.push(format!("{name}: {} here, {} there {}", a.status, b.status, b.body));
        } else if a.status >= 400 {
            if word(&a.body) != word(&b.body) {
                wrong.push(format!("{name}: {} here, {} there", word(&a.body), word(&b.body)));
            }
        } else {
            let mut different = Vec::new();
            differences("", &a.body, &b.body, &mut different);
            wrong.extend(different.into_iter().map(|it| format!("{name}: {it}")));
        }
        if let Some((known, pointer)) = step.keep {
            for (side, answer) in [(&mut here, &a), (&mut there, &b)] {
                if let Some(id) = answer.body.pointer(pointer).and_then(Value::as_str) {
                    side.known.insert(known.to_owned(), id.to_owned());
                }
            }
        }
        if let Some((path, pointer, value)) = step.wait {
            here.until(path, step.service, pointer, value).await?;
            there.until(path, step.service, pointer, value).await?;
        }
    }
    // then they answer alike
    assert!(wrong.is_empty(), "{} of {} requests differ:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    seen(&format!("{} requests answered alike by the emulator and by a real OpenStack", all.len()));
    namespace.finish(PATIENCE).await?;
    emulator.stop().await
}
