//! One project of one cloud over HTTP: token, catalog, limits, and every kind of answer. Decides nothing.
//!
//! Reads are repeated a little, because a read can do no harm. Writes are sent once; only a refused token, which is the
//! service's word that nothing happened, is replaced and the call sent again, once.
use super::catalog::{Catalog, Service};
use super::reply::{self, Complaint, Unreadable};
use crate::clouds::{CloudConfig, Credential, Domain, Method as Proof, Named};
use crate::names::reason;
use common::clock::{Boot, SharedClock};
use common::engine::estate::{Fault, Outcome};
use common::transport::{Request, Response, Transport, TransportError};
use http::{HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
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
    catalog: Catalog,
}
#[derive(Clone, Deserialize)]
struct NamedReply {
    id: String,
    #[serde(default)]
    name: String,
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
    catalog: Catalog,
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
    /// The region of who names none, once it is known: what is looked after does not move when the catalog is sorted anew.
    first_region: OnceLock<String>,
    lanes: [Semaphore; Service::COUNT],
}

impl Connection {
    /// Nothing is asked yet.
    pub fn new(transport: Arc<dyn Transport>, clock: SharedClock, config: CloudConfig, limits: Limits) -> Self {
        let lanes = std::array::from_fn(|_| Semaphore::new(limits.at_once));
        Connection { transport, clock, config, limits, token: Mutex::new(None), first_region: OnceLock::new(), lanes }
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
                    Complaint::Unauthorized(why) | Complaint::Invalid(why) => {
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
        let region = self.config.region.clone();
        Ok(Token {
            value,
            project: project.id,
            user: if token.user.name.is_empty() { token.user.id } else { token.user.name },
            region: region.map_or_else(|| self.first_region(&token.catalog), Ok)?,
            date,
            catalog: token.catalog,
            renew_at: asked + life.mul_f64(0.8),
        })
    }

    /// A catalog that lacks servers for a moment tells no region: what is looked after would be nowhere, and stay there.
    fn first_region(&self, catalog: &Catalog) -> Result<String, Fault> {
        if let Some(known) = self.first_region.get() {
            return Ok(known.clone());
        }
        match catalog.first_region(&self.config.interface) {
            Some(first) => Ok(self.first_region.get_or_init(|| first.to_owned()).clone()),
            None if self.config.overrides.contains_key(Service::Compute.name()) => Ok(String::new()),
            None => Err(Fault::Transient("Keystone: the catalog names no endpoint of service compute".into())),
        }
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
        let found = token.catalog.endpoint(service, &self.config.interface, &token.region);
        found.map_err(|message| Fault::Terminal { reason: reason::NOT_SUPPORTED, message })
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
            reason: reason::CLOUD_UNAVAILABLE,
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
    use async_trait::async_trait;
    use common::clock::SystemClock;

    /// Gives a token with the next of these catalogs.
    struct Keystone(std::sync::Mutex<Vec<Value>>);
    #[async_trait]
    impl Transport for Keystone {
        async fn exchange(&self, _: Request) -> Result<Response, TransportError> {
            let catalog = self.0.lock().unwrap().remove(0);
            let token = json!({"expires_at": "2027-01-01T00:00:00Z", "project": {"id": "p"}, "user": {"id": "u"}, "catalog": catalog});
            let reply = http::Response::builder()
                .status(StatusCode::CREATED)
                .header("x-subject-token", "t")
                .header(header::DATE, "Fri, 01 Jan 2027 00:00:00 GMT");
            Ok(reply.body(json!({ "token": token }).to_string().into_bytes()).unwrap())
        }
    }
    #[tokio::test]
    async fn a_region_is_known_once_the_catalog_tells_of_servers_and_never_moves_then() {
        let entry = |type_: &str, region: &str| {
            let endpoint = json!({"interface": "public", "region": region, "region_id": region, "url": "http://x"});
            json!({"type": type_, "endpoints": [endpoint]})
        };
        let without = json!([entry("network", "a")]);
        let catalogs = vec![without.clone(), json!([entry("compute", "b")]), without, json!([entry("compute", "c")])];
        let clouds = "clouds: {c: {auth_type: v3applicationcredential, auth: {auth_url: 'http://k/v3', application_credential_id: i, application_credential_secret: s}}}";
        let config = crate::clouds::read(clouds, "c", None, None).unwrap();
        let keystone = Arc::new(Keystone(std::sync::Mutex::new(catalogs)));
        let connection = Connection::new(keystone, Arc::new(SystemClock), config, Limits::default());
        assert!(matches!(connection.token().await.err(), Some(Fault::Transient(_))));
        for _ in 0..3 {
            assert_eq!(connection.token().await.map(|it| it.region.clone()), Ok("b".to_owned()));
        }
    }

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
}
