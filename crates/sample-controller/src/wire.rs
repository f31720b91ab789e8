//! The sample cloud's JSON, read strictly where a misreading could cost somebody a thing, and passing over what is new.
use crate::cloud::{Attributes, Identity, Item, Kind, State, Tags};
use common::engine::estate::Fault;
use common::names::reason;
use common::transport::Response;
use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The account has as many of the kind as it may have.
pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
/// Used when the cloud asks to slow down without saying for how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(5);
/// A longer pause than this is a mistake of somebody.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// A reply that means nothing to us. What was asked for may have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// What the cloud said about a call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// The cloud's word that nothing happened.
    Nothing(Fault),
    /// There is no such thing.
    NotFound(String),
    /// It may have happened.
    Perhaps(String),
}

#[derive(Deserialize)]
struct WireError {
    code: String,
    message: String,
}

#[derive(Deserialize)]
struct WireThing {
    id: String,
    kind: String,
    created_at: Timestamp,
    created_by: String,
    state: WireState,
    state_reason: Option<String>,
    tags: Option<Tags>,
    name: Option<String>,
    cidr: Option<String>,
    size_gb: Option<i64>,
    network_id: Option<String>,
    label: Option<String>,
    destination: Option<String>,
    next_hop: Option<String>,
    disk_id: Option<String>,
    flavor: Option<String>,
}
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WireState {
    Building,
    Ready,
    Failed,
    Deleting,
}

#[derive(Deserialize)]
struct WirePage {
    items: Vec<WireThing>,
    next: Option<String>,
}
#[derive(Deserialize)]
struct WireIdentity {
    account: String,
    region: String,
    principal: String,
}

/// One page of a list.
pub struct Page {
    /// Its things.
    pub items: Vec<Item>,
    /// Token of the next page.
    pub next: Option<String>,
}

fn decode<T: DeserializeOwned>(response: &Response) -> Result<T, Unreadable> {
    serde_json::from_slice(response.body()).map_err(|e| Unreadable(format!("{}: {e}", about(response))))
}

/// Status and request id, for messages.
pub fn about(response: &Response) -> String {
    let request = header(response, "x-request-id").unwrap_or("none");
    format!("HTTP {}, request {request}", response.status().as_u16())
}
fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

/// The cloud's own date. Without it a listing cannot be used: inference compares birth dates with it.
pub fn date(response: &Response) -> Result<Timestamp, Unreadable> {
    let text = header(response, "date").ok_or_else(|| Unreadable(format!("{}: no Date header", about(response))))?;
    let wrong = |e: jiff::Error| Unreadable(format!("{}: Date header: {e}", about(response)));
    Ok(jiff::fmt::rfc2822::parse(text).map_err(wrong)?.timestamp())
}

/// A page of a list.
pub fn page(kind: Kind, response: &Response) -> Result<Page, Unreadable> {
    let page: WirePage = decode(response)?;
    let items = page.items.into_iter().map(|thing| item(kind, thing)).collect::<Result<_, _>>();
    let items = items.map_err(|Unreadable(what)| Unreadable(format!("{}: {what}", about(response))))?;
    Ok(Page { items, next: page.next })
}
/// One thing.
pub fn thing(kind: Kind, response: &Response) -> Result<Item, Unreadable> {
    item(kind, decode(response)?).map_err(|Unreadable(what)| Unreadable(format!("{}: {what}", about(response))))
}
/// Who the credentials are.
pub fn identity(response: &Response) -> Result<Identity, Unreadable> {
    let WireIdentity { account, region, principal } = decode(response)?;
    if account.is_empty() || region.is_empty() {
        return Err(Unreadable(format!("{}: an account or region without a name", about(response))));
    }
    Ok(Identity { account, region, principal, date: date(response)? })
}

fn item(kind: Kind, wire: WireThing) -> Result<Item, Unreadable> {
    if wire.kind != kind.singular() {
        return Err(Unreadable(format!("{} is a {}, not a {}", wire.id, wire.kind, kind.singular())));
    }
    let need = |field: &str, value: Option<String>| {
        value.ok_or_else(|| Unreadable(format!("{} of {} has no {field}", kind.singular(), wire.id)))
    };
    let attributes = match kind {
        Kind::Network => Attributes::Network { name: need("name", wire.name)?, cidr: need("cidr", wire.cidr)? },
        Kind::Disk => Attributes::Disk {
            name: need("name", wire.name)?,
            size_gb: wire.size_gb.ok_or_else(|| Unreadable(format!("disk {} has no size_gb", wire.id)))?,
        },
        Kind::Address => {
            Attributes::Address { network_id: need("network_id", wire.network_id)?, label: need("label", wire.label)? }
        }
        Kind::Route => Attributes::Route {
            network_id: need("network_id", wire.network_id)?,
            destination: need("destination", wire.destination)?,
            next_hop: need("next_hop", wire.next_hop)?,
        },
        Kind::Machine => Attributes::Machine {
            name: need("name", wire.name)?,
            network_id: need("network_id", wire.network_id)?,
            disk_id: wire.disk_id,
            flavor: need("flavor", wire.flavor)?,
        },
    };
    // A kind with tags shown without them must not pass for "unmarked".
    if kind != Kind::Route && wire.tags.is_none() {
        return Err(Unreadable(format!("{} {} is shown without tags", kind.singular(), wire.id)));
    }
    Ok(Item {
        attributes,
        tags: wire.tags,
        created_at: wire.created_at,
        created_by: wire.created_by,
        state: match wire.state {
            WireState::Building => State::Building,
            WireState::Ready => State::Ready,
            WireState::Failed => State::Failed,
            WireState::Deleting => State::Deleting,
        },
        state_reason: wire.state_reason,
        id: wire.id,
    })
}

/// Sorts a reply that is no success. Only the cloud's own words count as "nothing happened": a 404 in HTML comes from
/// something in between, which knows nothing of things.
pub fn complaint(response: &Response) -> Complaint {
    let at = about(response);
    let Ok(WireError { code, message }) = serde_json::from_slice::<WireError>(response.body()) else {
        return Complaint::Perhaps(format!("{at}: not an answer of the cloud"));
    };
    let said = format!("{code}: {message} ({at})");
    let terminal = |reason| Complaint::Nothing(Fault::Terminal { reason, message: said.clone() });
    match (response.status(), code.as_str()) {
        (StatusCode::BAD_REQUEST, "InvalidRequest") | (StatusCode::CONFLICT, "TokenMismatch") => {
            terminal(reason::INVALID_REQUEST)
        }
        (StatusCode::UNAUTHORIZED, "Unauthorized") | (StatusCode::FORBIDDEN, "Forbidden") => {
            Complaint::Nothing(Fault::Denied(said))
        }
        (StatusCode::FORBIDDEN, "QuotaExceeded") => terminal(QUOTA_EXCEEDED),
        (StatusCode::NOT_FOUND, "NotFound") => Complaint::NotFound(said),
        // Whose it is, and whether it passes, is for the next listing to say.
        (StatusCode::CONFLICT, "InUse" | "KeyTaken") => Complaint::Nothing(Fault::Transient(said)),
        (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests") => Complaint::Nothing(Fault::Throttled(pause(response))),
        _ => Complaint::Perhaps(said),
    }
}
fn pause(response: &Response) -> Duration {
    let told = header(response, "retry-after").and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    told.unwrap_or(DEFAULT_PAUSE).min(LONGEST_PAUSE)
}
