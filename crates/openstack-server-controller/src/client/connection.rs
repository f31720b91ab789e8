//! One project of one cloud over HTTP: token, catalog, limits, and every kind of answer. Decides nothing.
//!
//! Reads are repeated a little, because a read can do no harm. Writes are sent once; only a refused token, which is the
//! service's word that nothing happened, is replaced and the call sent again, once.
use super::reply::{self, Complaint, Unreadable};
use crate::clouds::{CloudConfig, Credential, Domain, Method as Proof, Named};
use crate::names::reason;
use common::clock::{Boot, SharedClock};
use common::engine::estate::{Fault, Outcome};
use common::names::reason::INVALID_REQUEST;
use common::transport::{Request, Response, Transport, TransportError};
use http::{HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};

/// How much one call may take, and how many there may be at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A read is not begun again after this.
    pub read: Duration,
    /// How often a read is repeated.
    pub retries: u32,
    /// Pause before the first repetition; doubles.
    pub pause: Duration,
    /// Things per page.
    pub page: u32,
    /// Pages per list: more means that paging does not end.
    pub pages: u32,
    /// Calls to one service at the same time.
    pub at_once: usize,
}
impl Default for Limits {
    fn default() -> Self {
        let pause = Duration::from_millis(200);
        Limits { read: Duration::from_secs(15), retries: 2, pause, page: 1000, pages: 10_000, at_once: 8 }
    }
}

/// The services in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Glance.
    Image,
    /// Cinder.
    BlockStorage,
    /// Octavia.
    LoadBalancer,
}
impl Service {
    const COUNT: usize = 5;
    fn index(self) -> usize {
        match self {
            Service::Compute => 0,
            Service::Network => 1,
            Service::Image => 2,
            Service::BlockStorage => 3,
            Service::LoadBalancer => 4,
        }
    }
    /// Its type in the catalog, the first of [`Service::types`].
    pub fn name(self) -> &'static str {
        self.types()[0]
    }
    fn types(self) -> &'static [&'static str] {
        match self {
            Service::Compute => &["compute"],
            Service::Network => &["network"],
            Service::Image => &["image"],
            Service::BlockStorage => &["block-storage", "volumev3", "volume", "block-store"],
            Service::LoadBalancer => &["load-balancer"],
        }
    }
    /// Catalogs write some endpoints without their version.
    fn versioned(self, url: &str) -> String {
        let url = url.trim_end_matches('/');
        let missing = |version: &str| !url.ends_with(version);
        match self {
            Service::Network | Service::LoadBalancer if missing("/v2.0") => format!("{url}/v2.0"),
            Service::Image if missing("/v2") => format!("{url}/v2"),
            _ => url.to_owned(),
        }
    }
}

#[derive(Deserialize)]
struct TokenReply {
    token: TokenBody,
}
#[derive(Deserialize)]
struct TokenBody {
    expires_at: Timestamp,
    #[serde(default)]
    project: Option<NamedReply>,
    user: NamedReply,
    #[serde(default)]
    catalog: Vec<CatalogEntry>,
}
#[derive(Clone, Deserialize)]
struct NamedReply {
    id: String,
    #[serde(default)]
    name: String,
}
#[derive(Clone, Deserialize)]
struct CatalogEntry {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    endpoints: Vec<EndpointReply>,
}
#[derive(Clone, Deserialize)]
struct EndpointReply {
    interface: String,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    region_id: Option<String>,
    url: String,
}
impl EndpointReply {
    fn region(&self) -> &str {
        self.region_id.as_deref().or(self.region.as_deref()).unwrap_or_default()
    }
    fn is_in(&self, region: &str) -> bool {
        self.region_id.as_deref() == Some(region) || self.region.as_deref() == Some(region)
    }
}

/// A token, and what came with it.
pub struct Token {
    value: HeaderValue,
    /// Project id.
    pub project: String,
    /// User name.
    pub user: String,
    /// Region in use.
    pub region: String,
    /// The cloud's date when it was given.
    pub date: Timestamp,
    catalog: Vec<CatalogEntry>,
    renew_at: Boot,
}

/// What one call is about.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Which service.
    pub service: Service,
    /// HTTP method.
    pub method: Method,
    /// Path and query below the endpoint.
    pub path: String,
    /// Body.
    pub body: Option<&'a Value>,
    /// Header and value of a microversion.
    pub version: Option<String>,
}
impl Ask<'_> {
    /// A read.
    pub fn get(service: Service, path: String) -> Self {
        Ask { service, method: Method::GET, path, body: None, version: None }
    }
}

/// A read that gave nothing.
pub enum ReadError {
    /// The service said so.
    Complaint(Complaint),
    /// Something else.
    Fault(Fault),
}
impl ReadError {
    /// As a fault.
    pub fn fault(self) -> Fault {
        match self {
            ReadError::Complaint(complaint) => complaint.fault(),
            ReadError::Fault(fault) => fault,
        }
    }
}

/// A connection.
pub struct Connection {
    transport: Arc<dyn Transport>,
    /// Time.
    pub clock: SharedClock,
    config: CloudConfig,
    /// Bounds.
    pub limits: Limits,
    token: Mutex<Option<Arc<Token>>>,
    lanes: [Semaphore; Service::COUNT],
}

impl Connection {
    /// Nothing is asked yet.
    pub fn new(transport: Arc<dyn Transport>, clock: SharedClock, config: CloudConfig, limits: Limits) -> Self {
        let lanes = std::array::from_fn(|_| Semaphore::new(limits.at_once));
        Connection { transport, clock, config, limits, token: Mutex::new(None), lanes }
    }

    /// The token; a new one shortly before the old one ends. One asks, the others wait for it.
    pub async fn token(&self) -> Result<Arc<Token>, Fault> {
        let mut held = self.token.lock().await;
        if let Some(token) = &*held
            && self.clock.boot() < token.renew_at
        {
            return Ok(token.clone());
        }
        let token = Arc::new(self.authenticate().await?);
        *held = Some(token.clone());
        Ok(token)
    }
    /// This token was refused: the next call asks for another.
    async fn discard(&self, token: &Arc<Token>) {
        let mut held = self.token.lock().await;
        if held.as_ref().is_some_and(|known| Arc::ptr_eq(known, token)) {
            *held = None;
        }
    }

    async fn authenticate(&self) -> Result<Token, Fault> {
        let base = if self.config.auth_url.ends_with("/v3") {
            self.config.auth_url.clone()
        } else {
            format!("{}/v3", self.config.auth_url)
        };
        let body = proof(&self.config.method).to_string().into_bytes();
        let asked = self.clock.boot();
        let mut pause = self.limits.pause;
        for attempt in 0.. {
            let request = http::Request::builder()
                .method(Method::POST)
                .uri(format!("{base}/auth/tokens"))
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json")
                .body(body.clone())
                .map_err(|_| Fault::Denied("auth_url is no address that can be asked".into()))?;
            let why = match self.transport.exchange(request).await {
                Ok(response) if response.status() == StatusCode::CREATED => return self.read_token(&response, asked),
                Ok(response) => match reply::complaint(&response) {
                    Complaint::Perhaps(why) => why,
                    Complaint::Unauthorized(why) => {
                        return Err(Fault::Denied(format!("the credentials are not accepted: {why}")));
                    }
                    other => return Err(other.fault()),
                },
                Err(error) => error.to_string(),
            };
            let next = self.clock.boot() + pause;
            if attempt >= self.limits.retries || next.since(asked) >= self.limits.read {
                return Err(Fault::Transient(format!("Keystone: {why}")));
            }
            self.clock.sleep_until(next).await;
            pause *= 2;
        }
        Err(Fault::Transient("no attempt was made".into()))
    }

    fn read_token(&self, response: &Response, asked: Boot) -> Result<Token, Fault> {
        let transient = |Unreadable(what): Unreadable| Fault::Transient(format!("Keystone: {what}"));
        let TokenReply { token } = reply::decode(response).map_err(transient)?;
        let date = reply::date(response).map_err(transient)?;
        let mut value = response
            .headers()
            .get("x-subject-token")
            .cloned()
            .ok_or_else(|| Fault::Transient("Keystone: a reply without a token".into()))?;
        value.set_sensitive(true);
        let project = token.project.ok_or_else(|| Fault::Denied("the credentials are for no project".into()))?;
        // The cloud's clock and ours need not agree: only the length of its life counts.
        let life = token.expires_at.duration_since(date);
        let life = Duration::try_from(life).unwrap_or_default();
        let mut token = Token {
            value,
            project: project.id,
            user: if token.user.name.is_empty() { token.user.id } else { token.user.name },
            region: String::new(),
            date,
            catalog: token.catalog,
            renew_at: asked + life.mul_f64(0.8),
        };
        token.region = match &self.config.region {
            Some(region) => region.clone(),
            None => token.endpoints(Service::Compute).next().map(|it| it.region().to_owned()).unwrap_or_default(),
        };
        Ok(token)
    }

    /// Does the cloud have this service for us?
    pub async fn offers(&self, service: Service) -> Result<bool, Fault> {
        let token = self.token().await?;
        Ok(self.endpoint(&token, service).is_ok())
    }

    /// Where a service answers.
    fn endpoint(&self, token: &Token, service: Service) -> Result<String, Fault> {
        if let Some(url) = self.config.overrides.get(service.name()) {
            return Ok(url.trim_end_matches('/').to_owned());
        }
        let fits = |it: &&EndpointReply| {
            it.interface == self.config.interface && (token.region.is_empty() || it.is_in(&token.region))
        };
        let found = token.endpoints(service).find(fits);
        found.map(|it| service.versioned(&it.url)).ok_or_else(|| Fault::Terminal {
            reason: reason::NOT_SUPPORTED,
            message: format!(
                "the catalog has no {} endpoint of service {} in region {:?}",
                self.config.interface,
                service.name(),
                token.region
            ),
        })
    }

    fn request(&self, token: &Token, ask: &Ask<'_>) -> Result<Request, Fault> {
        let endpoint = self.endpoint(token, ask.service)?;
        let mut request = http::Request::builder()
            .method(ask.method.clone())
            .uri(format!("{endpoint}{}", ask.path))
            .header("x-auth-token", token.value.clone())
            .header(header::ACCEPT, "application/json");
        if let Some(version) = &ask.version {
            request = request.header("openstack-api-version", version.as_str());
            if let Some(number) = version.strip_prefix("compute ") {
                request = request.header("x-openstack-nova-api-version", number);
            }
        }
        if ask.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let bytes = ask.body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        request.body(bytes).map_err(|e| Fault::Terminal {
            reason: INVALID_REQUEST,
            message: format!("no request can be made of {}: {e}", ask.path),
        })
    }

    /// One GET, repeated while repeating may help.
    pub async fn read(&self, ask: &Ask<'_>) -> Result<Response, ReadError> {
        let began = self.clock.boot();
        let mut pause = self.limits.pause;
        let mut renewed = false;
        let mut attempt = 0;
        loop {
            let token = self.token().await.map_err(ReadError::Fault)?;
            let request = self.request(&token, ask).map_err(ReadError::Fault)?;
            let sent = {
                let _lane = self.lanes[ask.service.index()].acquire().await;
                self.transport.exchange(request).await
            };
            let error = match sent {
                Ok(response) if response.status() == StatusCode::OK => return Ok(response),
                Ok(response) => match reply::complaint(&response) {
                    Complaint::Perhaps(why) => ReadError::Complaint(Complaint::Perhaps(why)),
                    Complaint::Unauthorized(_) if !renewed => {
                        renewed = true;
                        self.discard(&token).await;
                        continue;
                    }
                    sure => return Err(ReadError::Complaint(sure)),
                },
                Err(error) => ReadError::Fault(Fault::Transient(error.to_string())),
            };
            let next = self.clock.boot() + pause;
            if attempt >= self.limits.retries || next.since(began) >= self.limits.read {
                return Err(error);
            }
            self.clock.sleep_until(next).await;
            pause *= 2;
            attempt += 1;
        }
    }

    /// One write, sent once, and not after `not_after`. The error is what came of it.
    pub async fn write(&self, ask: &Ask<'_>, not_after: Option<Boot>) -> Result<Response, Outcome<()>> {
        for last in [false, true] {
            let token = self.token().await.map_err(Outcome::Refused)?;
            let request = self.request(&token, ask).map_err(Outcome::Refused)?;
            let _lane = self.lanes[ask.service.index()].acquire().await;
            if not_after.is_some_and(|limit| self.clock.boot() > limit) {
                let why = "too late to be sent: decided on an old listing";
                return Err(Outcome::Refused(Fault::Transient(why.into())));
            }
            match self.transport.exchange(request).await {
                Ok(response) if response.status() != StatusCode::UNAUTHORIZED => return Ok(response),
                Ok(response) => match reply::complaint(&response) {
                    Complaint::Unauthorized(_) if !last => self.discard(&token).await,
                    _ => return Ok(response),
                },
                Err(TransportError::NotSent(why)) => {
                    return Err(Outcome::Refused(Fault::Transient(format!("not sent: {why}"))));
                }
                Err(TransportError::NoReply(why)) => return Err(Outcome::Unknown(format!("no reply: {why}"))),
            }
        }
        Err(Outcome::Refused(Fault::Denied("a new token is refused too".into())))
    }
}

impl Token {
    fn endpoints(&self, service: Service) -> impl Iterator<Item = &EndpointReply> {
        let entries = service.types().iter().filter_map(|name| self.catalog.iter().find(|entry| entry.type_ == *name));
        entries.flat_map(|entry| &entry.endpoints)
    }
}

fn domain(domain: &Domain) -> Value {
    match domain {
        Domain::Id(id) => json!({"id": id}),
        Domain::Name(name) => json!({"name": name}),
    }
}
fn named(who: &Named) -> Value {
    match who {
        Named::Id(id) => json!({"id": id}),
        Named::Name(name, within) => json!({"name": name, "domain": domain(within)}),
    }
}
/// The body of the call that asks for a token.
fn proof(method: &Proof) -> Value {
    match method {
        Proof::Password { user, password, project } => {
            let mut user = named(user);
            user["password"] = json!(password);
            json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": {"project": named(project)}}})
        }
        Proof::ApplicationCredential { credential, secret } => {
            let credential = match credential {
                Credential::Id(id) => json!({"id": id, "secret": secret}),
                Credential::Name(name, user) => json!({"name": name, "user": named(user), "secret": secret}),
            };
            json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": credential}}})
        }
        Proof::Token { token, project } => {
            let mut auth = json!({"auth": {"identity": {"methods": ["token"], "token": {"id": token}}}});
            if let Some(project) = project {
                auth["auth"]["scope"] = json!({"project": named(project)});
            }
            auth
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_credential_is_sent_without_a_scope() {
        let method = Proof::ApplicationCredential { credential: Credential::Id("ac".into()), secret: "s".into() };
        let wanted = json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": {"id": "ac", "secret": "s"}}}});
        assert_eq!(proof(&method), wanted);
    }
    #[test]
    fn a_password_is_sent_with_domains_and_a_project() {
        let user = Named::Name("u".into(), Domain::Name("Default".into()));
        let method = Proof::Password { user, password: "p".into(), project: Named::Id("x".into()) };
        let sent = proof(&method);
        assert_eq!(
            sent["auth"]["identity"]["password"]["user"],
            json!({"name": "u", "domain": {"name": "Default"}, "password": "p"})
        );
        assert_eq!(sent["auth"]["scope"], json!({"project": {"id": "x"}}));
    }
    #[test]
    fn endpoints_without_a_version_get_one() {
        assert_eq!(Service::Network.versioned("http://n:9696/"), "http://n:9696/v2.0");
        assert_eq!(Service::Network.versioned("http://n/networking/v2.0"), "http://n/networking/v2.0");
        assert_eq!(Service::Image.versioned("http://g"), "http://g/v2");
        assert_eq!(Service::Compute.versioned("http://c/v2.1/"), "http://c/v2.1");
        assert_eq!(Service::BlockStorage.versioned("http://b/v3/p"), "http://b/v3/p");
    }
}
