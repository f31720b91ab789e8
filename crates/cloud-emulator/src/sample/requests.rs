//! What a request asks for, read strictly.
use super::kinds::{Kind, Tagging, WHOAMI};
use super::store::Body;
use super::tags::{self, Change};
use crate::kit::strict::Fields;
use crate::kit::{Naming, Request, Tags};
use http::Method;
use serde_json::Value;

const LONGEST_KEY: usize = 64;
const MOST_GB: u64 = 16_384;

/// Names a request by method and path. An empty verb: the path may exist, this call does not.
pub(super) fn name(request: &Request) -> Naming<'_> {
    let mut naming = Naming { kind: "", verb: "", thing: None, mutating: request.method() != Method::GET };
    let Some(path) = request.uri().path().strip_prefix("/v1/") else { return naming };
    let mut parts = path.split('/');
    let (plural, id, tail, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next(), parts.next());
    if plural == WHOAMI && id.is_none() {
        naming.kind = WHOAMI;
        naming.verb = if request.method() == Method::GET { "get" } else { "" };
        return naming;
    }
    let Some(kind) = Kind::by_plural(plural) else { return naming };
    naming.kind = kind.plural();
    naming.thing = id;
    naming.verb = match (request.method().as_str(), id, tail, more) {
        ("GET", None, None, None) => "list",
        ("POST", None, None, None) => "create",
        (_, Some(""), _, _) => "",
        ("GET", Some(_), None, None) => "get",
        ("PUT", Some(_), Some("tags"), None) => "tag",
        ("PATCH", Some(_), None, None) => "update",
        ("DELETE", Some(_), None, None) => "delete",
        _ => "",
    };
    naming
}

/// The token of `Authorization: Bearer <token>`.
pub(super) fn bearer(request: &Request) -> Option<&str> {
    request.headers().get(http::header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// What a create asks for. Two orders are the same if every field is, whatever their spelling in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) body: Body,
    pub(super) tags: Tags,
}
impl Order {
    /// The order of a create call.
    pub(super) fn of_request(kind: Kind, request: &Request) -> Result<Self, String> {
        let mut fields = Fields::of_body(request)?;
        let tags = match (kind.tagging(), fields.take("tags")) {
            (_, None) => Tags::new(),
            (Tagging::AtCreate, Some(tags)) => tags::parse("tags", tags)?,
            (Tagging::Later | Tagging::Never, Some(_)) => {
                return Err(format!("unknown field tags: {} take none at create", kind.plural()));
            }
        };
        Ok(Order { body: body(kind, fields)?, tags })
    }
}
/// The fields of a kind, and no others.
pub(super) fn body(kind: Kind, mut fields: Fields) -> Result<Body, String> {
    let body = match kind {
        Kind::Network => Body::Network { name: fields.text("name")?, cidr: fields.text("cidr")? },
        Kind::Disk => Body::Disk { name: fields.text("name")?, size_gb: fields.number("size_gb", 1, MOST_GB)? },
        Kind::Address => Body::Address { network_id: fields.text("network_id")?, label: fields.text("label")? },
        Kind::Route => Body::Route {
            network_id: fields.text("network_id")?,
            destination: fields.text("destination")?,
            next_hop: fields.text("next_hop")?,
        },
        Kind::Machine => Body::Machine {
            name: fields.text("name")?,
            network_id: fields.text("network_id")?,
            disk_id: fields.optional_text("disk_id")?,
            flavor: fields.text("flavor")?,
        },
    };
    fields.finish()?;
    Ok(body)
}

/// The idempotency key of a create, if there is one.
pub(super) fn key(kind: Kind, request: &Request) -> Result<Option<String>, String> {
    let mut values = request.headers().get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    if !kind.takes_key() {
        // Passing over it would let a client believe that a repeat is safe.
        return Err(format!("{} take no Idempotency-Key", kind.plural()));
    }
    let right = |text: &&str| {
        (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    match (value.to_str().ok().filter(right), values.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => Err("Idempotency-Key is not 1 to 64 letters, digits and dashes".to_owned()),
    }
}

/// The change of a tag call.
pub(super) fn tag_change(request: &Request) -> Result<Change, String> {
    let mut fields = Fields::of_body(request)?;
    let set = fields.take("set").map_or_else(|| Ok(Tags::new()), |set| tags::parse("set", set))?;
    let remove = match fields.take("remove") {
        None => Vec::new(),
        Some(Value::Array(keys)) => keys
            .into_iter()
            .map(|key| {
                if let Value::String(key) = key { Ok(key) } else { Err("remove holds something that is not a string") }
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return Err("remove is not an array".to_owned()),
    };
    fields.finish()?;
    Ok(Change { set, remove })
}

/// The new flavor of an update call.
pub(super) fn flavor(request: &Request) -> Result<String, String> {
    let mut fields = Fields::of_body(request)?;
    let flavor = fields.text("flavor")?;
    fields.finish()?;
    Ok(flavor)
}
