//! Keystone: credentials in, tokens and the catalog out.
use super::kinds::Service;
use super::replies::Refused;
use crate::kit::dice::Dice;
use crate::kit::{Answer, Call, Principal, Principals, Request, Settings, later};
use http::StatusCode;
use http::header::{HOST, HeaderName, HeaderValue};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const LIFE: Duration = Duration::from_hours(24);

/// Tokens that were given out.
#[derive(Debug, Default)]
pub(super) struct Tokens(HashMap<String, (Arc<str>, Timestamp)>);

/// Who the body of a token request proves to be: the secret must be known, and name the same principal.
pub(super) fn prove(request: &Request, principals: &Principals) -> Option<Arc<Principal>> {
    let body: Value = serde_json::from_slice(request.body()).ok()?;
    let identity = &body["auth"]["identity"];
    let method = identity["methods"].as_array()?.first()?.as_str()?;
    let (secret, names) = match method {
        "application_credential" => {
            let it = &identity["application_credential"];
            // Its project is part of it: a scope is refused.
            if body["auth"].get("scope").is_some() {
                return None;
            }
            (it["secret"].as_str()?, [it["id"].as_str(), it["name"].as_str()])
        }
        "password" => {
            let it = &identity["password"]["user"];
            body["auth"].get("scope")?;
            (it["password"].as_str()?, [it["name"].as_str(), it["id"].as_str()])
        }
        _ => return None,
    };
    let principal = principals.by_token(secret)?;
    names.into_iter().flatten().any(|name| name == &*principal.name).then(|| principal.clone())
}

impl Tokens {
    pub(super) fn holder(&self, request: &Request, principals: &Principals) -> Option<Arc<Principal>> {
        let token = request.headers().get("x-auth-token")?.to_str().ok()?;
        let (name, _) = self.0.get(token)?;
        principals.all().into_iter().find(|it| it.name == *name)
    }
    pub(super) fn expired(&self, request: &Request, now: Timestamp) -> bool {
        let token = request.headers().get("x-auth-token").and_then(|it| it.to_str().ok()).unwrap_or_default();
        self.0.get(token).is_some_and(|(_, until)| *until <= now)
    }
    /// Takes all tokens back; credentials stay good.
    pub(super) fn revoke_all(&mut self) {
        self.0.clear();
    }
    pub(super) fn give(&mut self, settings: &Settings, dice: &mut Dice, call: Call<'_>) -> Result<Answer, Refused> {
        let until = later(call.now, LIFE);
        let token = format!("gAAAA{:08x}{:08x}", dice.id(), dice.id());
        self.0.insert(token.clone(), (call.principal.name.clone(), until));
        let base = base(call.request);
        let project = &*call.principal.account;
        let entry = |type_: &str, name: &str, url: String| {
            let endpoint = |interface: &str| json!({"interface": interface, "region": settings.region, "region_id": settings.region, "url": url});
            json!({"type": type_, "name": name, "endpoints": [endpoint("internal"), endpoint("public")]})
        };
        let mut catalog = vec![
            entry("identity", "keystone", format!("{base}/identity/v3")),
            entry("compute", "nova", format!("{base}/compute/v2.1")),
            entry("network", "neutron", format!("{base}/networking")),
            entry("image", "glance", format!("{base}/image")),
            entry("volumev3", "cinder", format!("{base}/volume/v3/{project}")),
        ];
        if !settings.lacks.contains("load-balancer") {
            catalog.push(entry("load-balancer", "octavia", format!("{base}/load-balancer")));
        }
        let body = json!({"token": {
            "methods": ["application_credential"],
            "expires_at": until,
            "issued_at": call.now,
            "project": {"id": project, "name": project, "domain": {"id": "default", "name": "Default"}},
            "user": {"id": format!("user-{}", call.principal.name), "name": &*call.principal.name},
            "roles": [{"id": "r", "name": "member"}],
            "catalog": catalog,
        }});
        let mut answer = Answer::new(StatusCode::CREATED, body.to_string().into_bytes());
        let value = HeaderValue::from_str(&token).map_err(|_| Refused::invalid(Service::Identity, "no token"))?;
        answer.header = Some((HeaderName::from_static("x-subject-token"), value));
        Ok(answer)
    }
}
/// How the client reached us.
fn base(request: &Request) -> String {
    let host = request.headers().get(HOST).and_then(|it| it.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str)).unwrap_or("localhost");
    format!("http://{host}")
}
