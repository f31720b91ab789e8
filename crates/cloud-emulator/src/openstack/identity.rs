//! Keystone: credentials in, tokens and the catalog out.
use super::kinds::Service;
use super::replies::Refused;
use crate::kit::dice::Dice;
use crate::kit::{Answer, Call, Principal, Principals, Request, Settings, later};
use http::StatusCode;
use http::header::{HOST, HeaderName, HeaderValue};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

const LIFE: Duration = Duration::from_hours(24);

/// Tokens that were given out here.
#[derive(Debug, Default)]
pub(super) struct Tokens(HashSet<String>);

/// What a token says, as a Fernet token does: whoever knows the cloud can read it without asking where it was given.
struct Told<'t> {
    region: &'t str,
    until: Timestamp,
    user: &'t str,
}
impl<'t> Told<'t> {
    fn write(&self, dice: &mut Dice) -> String {
        let Told { region, until, user } = self;
        format!("gAAAA{:08x}{:08x}/{region}/{}/{user}", dice.id(), dice.id(), until.as_second())
    }
    fn read(token: &'t str) -> Option<Self> {
        let mut parts = token.strip_prefix("gAAAA")?.splitn(4, '/').skip(1);
        let (region, until, user) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Told { region, until: Timestamp::from_second(until.parse().ok()?).ok()?, user })
    }
}
fn token_of(request: &Request) -> Option<&str> {
    request.headers().get("x-auth-token")?.to_str().ok()
}

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
    /// Who a token was given to.
    pub(super) fn holder(request: &Request, principals: &Principals) -> Option<Arc<Principal>> {
        let told = Told::read(token_of(request)?)?;
        principals.all().into_iter().find(|it| &*it.name == told.user)
    }
    /// Is the token good? One of another region of the same cloud is as good as one that was given here.
    pub(super) fn accepts(&self, settings: &Settings, request: &Request, now: Timestamp) -> bool {
        let Some(token) = token_of(request) else { return false };
        let Some(told) = Told::read(token) else { return false };
        now < told.until && (self.0.contains(token) || settings.regions.contains_key(told.region))
    }
    /// Takes back all tokens that were given here; credentials stay good.
    pub(super) fn revoke_all(&mut self) {
        self.0.clear();
    }
    pub(super) fn give(&mut self, settings: &Settings, dice: &mut Dice, call: Call<'_>) -> Result<Answer, Refused> {
        let until = later(call.now, LIFE);
        let token = Told { region: &settings.region, until, user: &call.principal.name }.write(dice);
        self.0.insert(token.clone());
        let base = base(call.request);
        let project = &*call.principal.account;
        let catalog = catalog(settings, &base, project);
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
/// All services in all regions, ours first. There is one Keystone for all.
fn catalog(settings: &Settings, base: &str, project: &str) -> Vec<Value> {
    let ours = (settings.region.as_str(), base);
    let others = settings.regions.iter().map(|(region, base)| (region.as_str(), base.as_str()));
    let regions: Vec<(&str, &str)> = iter::once(ours).chain(others).collect();
    let entry = |type_: &str, name: &str, path: &str| {
        let endpoints = |(region, at): &(&str, &str)| {
            let at = if type_ == "identity" { base } else { at };
            let (region, url) = (json!(region), format!("{at}{path}"));
            ["internal", "public"]
                .map(|interface| json!({"interface": interface, "region": region, "region_id": region, "url": url}))
        };
        json!({"type": type_, "name": name, "endpoints": regions.iter().flat_map(endpoints).collect::<Vec<_>>()})
    };
    let mut catalog = vec![
        entry("identity", "keystone", "/identity/v3"),
        entry("compute", "nova", "/compute/v2.1"),
        entry("network", "neutron", "/networking"),
        entry("image", "glance", "/image"),
    ];
    if !settings.lacks.contains("block-storage") {
        catalog.push(entry("volumev3", "cinder", &format!("/volume/v3/{project}")));
    }
    if !settings.lacks.contains("load-balancer") {
        catalog.push(entry("load-balancer", "octavia", "/load-balancer"));
    }
    catalog
}
/// How the client reached us.
fn base(request: &Request) -> String {
    let host = request.headers().get(HOST).and_then(|it| it.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str)).unwrap_or("localhost");
    format!("http://{host}")
}
