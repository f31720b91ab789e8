//! The cloud over HTTP: authentication, paging, and what each answer means. Decides nothing.
//!
//! Reads are repeated a little, because a read can do no harm. Writes are sent once: whether to send a create again is
//! the engine's decision, which knows the token and the intent.
use crate::cloud::{Cloud, Creation, Identity, Inventory, Item, Kind, Tags};
use crate::credentials::Token;
use crate::wire::{self, Complaint, Unreadable};
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::estate::{Fault, Outcome};
use common::ledger::Id;
use common::names::reason::INVALID_REQUEST;
use common::transport::{Request, Response, Transport, TransportError};
use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How much one call may take.
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
}
impl Default for Limits {
    fn default() -> Self {
        let pause = Duration::from_millis(200);
        Limits { read: Duration::from_secs(10), retries: 2, pause, page: 100, pages: 10_000 }
    }
}

/// A client of one account: one endpoint, one token.
pub struct Client {
    transport: Arc<dyn Transport>,
    clock: SharedClock,
    endpoint: String,
    token: Token,
    limits: Limits,
}

/// A read that gave nothing.
enum ReadError {
    Complaint(Complaint),
    Transport(TransportError),
    Fault(Fault),
}

impl Client {
    /// A client of the cloud at `endpoint` (scheme, host and port).
    pub fn new(
        transport: Arc<dyn Transport>,
        clock: SharedClock,
        endpoint: &str,
        token: Token,
        limits: Limits,
    ) -> Self {
        Client { transport, clock, endpoint: endpoint.trim_end_matches('/').to_owned(), token, limits }
    }

    fn request(&self, method: Method, path: &str, token: Option<&str>, body: Option<&Value>) -> Result<Request, Fault> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.endpoint))
            .header(header::AUTHORIZATION, self.token.header()?)
            .header(header::ACCEPT, "application/json");
        if let Some(token) = token {
            request = request.header("Idempotency-Key", token);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        request.body(bytes).map_err(|e| Fault::Terminal {
            reason: INVALID_REQUEST,
            message: format!("no request can be made of {path}: {e}"),
        })
    }

    /// One GET, repeated while repeating may help.
    async fn read(&self, path: &str) -> Result<Response, ReadError> {
        let began = self.clock.boot();
        let mut pause = self.limits.pause;
        for attempt in 0.. {
            let request = self.request(Method::GET, path, None, None).map_err(ReadError::Fault)?;
            let error = match self.transport.exchange(request).await {
                Ok(response) if response.status() == StatusCode::OK => return Ok(response),
                Ok(response) => match wire::complaint(&response) {
                    Complaint::Perhaps(why) => ReadError::Complaint(Complaint::Perhaps(why)),
                    sure => return Err(ReadError::Complaint(sure)),
                },
                Err(error) => ReadError::Transport(error),
            };
            let next = self.clock.boot() + pause;
            if attempt >= self.limits.retries || next.since(began) >= self.limits.read {
                return Err(error);
            }
            self.clock.sleep_until(next).await;
            pause *= 2;
        }
        Err(ReadError::Fault(Fault::Transient("no attempt was made".into())))
    }

    /// One write, sent once.
    async fn write(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Response, Outcome<()>> {
        let request = self.request(method, path, token, body).map_err(Outcome::Refused)?;
        match self.transport.exchange(request).await {
            Ok(response) => Ok(response),
            Err(TransportError::NotSent(why)) => Err(Outcome::Refused(Fault::Transient(format!("not sent: {why}")))),
            Err(TransportError::NoReply(why)) => Err(Outcome::Unknown(format!("no reply: {why}"))),
        }
    }
}

fn read_fault(error: ReadError) -> Fault {
    match error {
        ReadError::Fault(fault) | ReadError::Complaint(Complaint::Nothing(fault)) => fault,
        ReadError::Complaint(Complaint::NotFound(why) | Complaint::Perhaps(why)) => Fault::Transient(why),
        ReadError::Transport(error) => Fault::Transient(error.to_string()),
    }
}
fn unreadable(Unreadable(what): Unreadable) -> Fault {
    Fault::Transient(what)
}
/// The outcome of a write that did not succeed; a missing thing counts as refused.
fn failed<T>(response: &Response) -> Outcome<T> {
    match wire::complaint(response) {
        Complaint::Nothing(fault) => Outcome::Refused(fault),
        Complaint::NotFound(why) => Outcome::Refused(Fault::Transient(why)),
        Complaint::Perhaps(why) => Outcome::Unknown(why),
    }
}
/// A success counts only in the cloud's own words: something in between can answer 200 to anything.
fn acknowledged(kind: Kind, id: &str, response: &Response) -> Outcome<()> {
    match wire::thing(kind, response) {
        Ok(item) if item.id == id => Outcome::Done(()),
        Ok(item) => Outcome::Unknown(format!("{}: the answer is about {}, not {id}", wire::about(response), item.id)),
        Err(Unreadable(what)) => Outcome::Unknown(what),
    }
}
/// Passes on what is no success; there is no other use for a unit.
fn recast<T>(outcome: Outcome<()>) -> Outcome<T> {
    match outcome {
        Outcome::Refused(fault) => Outcome::Refused(fault),
        Outcome::Unknown(why) => Outcome::Unknown(why),
        Outcome::Done(()) => Outcome::Unknown("done without a reply".into()),
    }
}

#[async_trait]
impl Cloud for Client {
    async fn whoami(&self) -> Result<Identity, Fault> {
        let response = self.read("/v1/whoami").await.map_err(read_fault)?;
        wire::identity(&response).map_err(unreadable)
    }

    async fn list(&self, kind: Kind) -> Result<Inventory, Fault> {
        let (mut date, mut items, mut seen) = (None, Vec::new(), BTreeSet::new());
        let mut next: Option<String> = None;
        for _ in 0..self.limits.pages {
            let page = next.as_deref().map(|token| format!("&page={}", encode(token))).unwrap_or_default();
            let path = format!("/v1/{}?limit={}{page}", kind.plural(), self.limits.page);
            let response = self.read(&path).await.map_err(read_fault)?;
            if date.is_none() {
                date = Some(wire::date(&response).map_err(unreadable)?);
            }
            let page = wire::page(kind, &response).map_err(unreadable)?;
            // Things that came or went between two pages can push one onto both.
            items.extend(page.items.into_iter().filter(|item| seen.insert(item.id.clone())));
            match (page.next, date) {
                (None, Some(date)) => return Ok(Inventory { date, items }),
                (token, _) => next = token,
            }
        }
        Err(Fault::Transient(format!("the list of {} does not end after {} pages", kind.plural(), self.limits.pages)))
    }

    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Item>, Fault> {
        match self.read(&format!("/v1/{}/{}", kind.plural(), encode(id))).await {
            Ok(response) => wire::thing(kind, &response).map(Some).map_err(unreadable),
            Err(ReadError::Complaint(Complaint::NotFound(_))) => Ok(None),
            Err(error) => Err(read_fault(error)),
        }
    }

    async fn create(&self, kind: Kind, creation: Creation<'_>) -> Outcome<Id> {
        let Creation { fields, tags, token, not_after } = creation;
        let mut body = fields.clone();
        if let (Some(tags), Some(object)) = (tags, body.as_object_mut()) {
            object.insert("tags".to_owned(), json!(tags));
        }
        if self.clock.boot() > not_after {
            return Outcome::Refused(Fault::Transient("too late to be sent: decided on an old listing".into()));
        }
        let response = match self.write(Method::POST, &format!("/v1/{}", kind.plural()), token, Some(&body)).await {
            Ok(response) => response,
            Err(outcome) => return recast(outcome),
        };
        // 200 is the answer to a token that was used before: the thing is there already.
        let known = response.status() == StatusCode::OK && token.is_some();
        if response.status() != StatusCode::CREATED && !known {
            return failed(&response);
        }
        match wire::thing(kind, &response) {
            Ok(item) => Outcome::Done(item.id),
            Err(Unreadable(what)) => Outcome::Unknown(what),
        }
    }

    async fn tag(&self, kind: Kind, id: &str, set: &Tags, remove: &[&str]) -> Outcome<()> {
        let path = format!("/v1/{}/{}/tags", kind.plural(), encode(id));
        let body = json!({"set": set, "remove": remove});
        match self.write(Method::PUT, &path, None, Some(&body)).await {
            Ok(response) if response.status() == StatusCode::OK => acknowledged(kind, id, &response),
            Ok(response) => failed(&response),
            Err(outcome) => outcome,
        }
    }

    async fn resize(&self, id: &str, flavor: &str) -> Outcome<()> {
        let path = format!("/v1/{}/{}", Kind::Machine.plural(), encode(id));
        match self.write(Method::PATCH, &path, None, Some(&json!({"flavor": flavor}))).await {
            Ok(response) if response.status() == StatusCode::OK => acknowledged(Kind::Machine, id, &response),
            Ok(response) => failed(&response),
            Err(outcome) => outcome,
        }
    }

    async fn delete(&self, kind: Kind, id: &str) -> Outcome<()> {
        let path = format!("/v1/{}/{}", kind.plural(), encode(id));
        match self.write(Method::DELETE, &path, None, None).await {
            Ok(response) if response.status() == StatusCode::ACCEPTED => acknowledged(kind, id, &response),
            Ok(response) => match wire::complaint(&response) {
                Complaint::NotFound(_) => Outcome::Done(()),
                _ => failed(&response),
            },
            Err(outcome) => outcome,
        }
    }

    async fn permissions(&self, kind: Kind) -> Vec<(String, Result<(), Fault>)> {
        let plural = kind.plural();
        let (all, one) = (format!("/v1/{plural}"), format!("/v1/{plural}/{NOBODY}"));
        let nothing = json!({});
        let mut probes = vec![
            ("list", Method::GET, format!("{all}?limit=1"), None),
            ("get", Method::GET, one.clone(), None),
            // Without its required fields a create can make nothing.
            ("create", Method::POST, all, Some(&nothing)),
            ("delete", Method::DELETE, one.clone(), None),
        ];
        if kind != Kind::Route {
            probes.push(("tag", Method::PUT, format!("{one}/tags"), Some(&nothing)));
        }
        if kind == Kind::Machine {
            probes.push(("update", Method::PATCH, one, Some(&nothing)));
        }
        let mut results = Vec::new();
        for (verb, method, path, body) in probes {
            let allowed = match self.write(method, &path, None, body).await {
                Ok(response) if response.status().is_success() => Ok(()),
                Ok(response) => match wire::complaint(&response) {
                    Complaint::NotFound(_) => Ok(()),
                    Complaint::Nothing(Fault::Terminal { reason, .. }) if reason == INVALID_REQUEST => Ok(()),
                    Complaint::Nothing(fault) => Err(fault),
                    Complaint::Perhaps(why) => Err(Fault::Transient(why)),
                },
                Err(Outcome::Refused(fault)) => Err(fault),
                Err(Outcome::Unknown(why)) => Err(Fault::Transient(why)),
                Err(Outcome::Done(())) => Ok(()),
            };
            results.push((format!("{plural}.{verb}"), allowed));
        }
        results
    }
}

/// No id of the cloud looks like this, so a call on it can only be refused: for lack of the thing, or of the permission.
const NOBODY: &str = "doctor";

/// Percent-encodes all but the unreserved characters: ids and page tokens are the cloud's words, not ours.
fn encode(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.extend(['%', char::from(DIGITS[usize::from(byte >> 4)]), char::from(DIGITS[usize::from(byte & 15)])]);
        }
    }
    out
}
