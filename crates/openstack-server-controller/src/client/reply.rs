//! What an answer that is no success means. Only a service's own words count as "nothing happened" and as "not found": a 404
//! in HTML comes from something in between, which knows nothing of things.
use crate::names::reason;
use common::engine::estate::Fault;
use common::names::reason::INVALID_REQUEST;
use common::transport::Response;
use http::StatusCode;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// Used when the cloud asks to slow down without saying for how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(5);
/// A longer pause than this is a mistake of somebody.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);
/// Longest text of a service that is passed on.
const MOST_TEXT: usize = 512;

/// A reply that means nothing to us. What was asked for may have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// What the cloud said about a call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// The service's word that nothing happened.
    Nothing(Fault),
    /// There is no such thing, in the service's own words.
    NotFound(String),
    /// The token is not accepted, in the service's own words.
    Unauthorized(String),
    /// Something is in the way that may pass.
    Conflict(String),
    /// The request is wrong, in the service's own words.
    Invalid(String),
    /// It may have happened.
    Perhaps(String),
}

/// A header's text.
pub fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}
/// Status and request id, for messages.
pub fn about(response: &Response) -> String {
    let id = ["x-openstack-request-id", "x-compute-request-id"].iter().find_map(|name| header(response, name));
    format!("HTTP {}, request {}", response.status().as_u16(), id.unwrap_or("none"))
}
/// The cloud's own date.
pub fn date(response: &Response) -> Result<Timestamp, Unreadable> {
    let text = header(response, "date").ok_or_else(|| Unreadable(format!("{}: no Date header", about(response))))?;
    let wrong = |e: jiff::Error| Unreadable(format!("{}: Date header: {e}", about(response)));
    Ok(jiff::fmt::rfc2822::parse(text).map_err(wrong)?.timestamp())
}
/// A body that must be of this shape.
pub fn decode<T: DeserializeOwned>(response: &Response) -> Result<T, Unreadable> {
    serde_json::from_slice(response.body()).map_err(|e| Unreadable(format!("{}: {e}", about(response))))
}
fn cut(text: &str) -> String {
    common::conditions::cut(text.trim(), MOST_TEXT)
}

/// A service's error: its own word for it, and its text.
struct Said {
    word: String,
    text: String,
}
/// Reads the shapes of Keystone, Nova, Neutron, Cinder, Glance and Octavia.
fn said(response: &Response) -> Option<Said> {
    let body: Value = serde_json::from_slice(response.body()).ok()?;
    let object = body.as_object()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(neutron) = object.get("NeutronError") {
        let word = neutron.get("type").and_then(text).unwrap_or_else(|| "NeutronError".to_owned());
        let message = neutron.get("message").and_then(text).or_else(|| text(neutron)).unwrap_or_default();
        return Some(Said { word, text: message });
    }
    // Octavia: `{"faultcode", "faultstring", "debuginfo"}`; what was not found is told by the status alone.
    if let (Some(message), Some(word)) =
        (object.get("faultstring").and_then(text), object.get("faultcode").and_then(text))
    {
        let word = if response.status() == StatusCode::NOT_FOUND { "NotFound".to_owned() } else { word };
        return Some(Said { word, text: message });
    }
    // Glance: `{"message", "code", "title"}` at the top.
    if let (Some(message), Some(_)) = (object.get("message").and_then(text), object.get("code")) {
        let word = object.get("title").and_then(text).unwrap_or_default();
        return Some(Said { word, text: message });
    }
    // Nova and Cinder: one key, the word. Keystone: the key `error`, the word is the title.
    let (key, inner) = object.iter().next().filter(|_| object.len() == 1)?;
    let message = inner.get("message").and_then(text)?;
    inner.get("code").filter(|code| code.is_number())?;
    let word = if key == "error" { inner.get("title").and_then(text).unwrap_or_default() } else { key.clone() };
    Some(Said { word, text: message })
}

/// How the services say that a project has as much as it may have. Cinder says it with the status of a rate limit, and with a
/// `Retry-After` of nothing.
const QUOTA_TEXTS: [&str; 6] = [
    "quota exceeded",
    "quota has been met",
    "exceeded for quota",
    "exceeds allowed",
    "larger than maximum allowed limit",
    "over quota",
];
fn is_quota(said: &Said) -> bool {
    let text = said.text.to_lowercase();
    said.word == "OverQuota" || QUOTA_TEXTS.iter().any(|it| text.contains(it))
}
/// Neutron's words for an address that somebody else has.
const TAKEN: [&str; 3] = ["IpAddressAlreadyAllocated", "IpAddressInUse", "MacAddressInUse"];
fn terminal(reason: &'static str, message: String) -> Complaint {
    Complaint::Nothing(Fault::Terminal { reason, message })
}

/// Sorts a reply that is no success.
pub fn complaint(response: &Response) -> Complaint {
    let at = about(response);
    let status = response.status();
    let Some(said) = said(response) else {
        // Keystone's middleware says 401 in plain text too, and signs it by this header.
        if status == StatusCode::UNAUTHORIZED
            && header(response, "www-authenticate").is_some_and(|it| it.starts_with("Keystone"))
        {
            return Complaint::Unauthorized(format!("the token is not accepted ({at})"));
        }
        return Complaint::Perhaps(format!("{at}: not an answer of the service"));
    };
    let text = format!("{}: {} ({at})", said.word, cut(&said.text));
    match status {
        StatusCode::UNAUTHORIZED => Complaint::Unauthorized(text),
        StatusCode::NOT_FOUND
            if said.word == "itemNotFound" || said.word.ends_with("NotFound") || said.word == "Not Found" =>
        {
            Complaint::NotFound(text)
        }
        StatusCode::FORBIDDEN | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::CONFLICT if is_quota(&said) => {
            terminal(reason::QUOTA_EXCEEDED, text)
        }
        StatusCode::FORBIDDEN => Complaint::Nothing(Fault::Denied(text)),
        StatusCode::CONFLICT if said.word == "IpAddressGenerationFailure" => terminal(reason::SUBNET_FULL, text),
        StatusCode::CONFLICT if TAKEN.contains(&said.word.as_str()) => terminal(reason::CREATE_REFUSED, text),
        StatusCode::CONFLICT => Complaint::Conflict(text),
        // What the cloud cannot do is no fault of what was asked for.
        StatusCode::NOT_ACCEPTABLE | StatusCode::NOT_IMPLEMENTED => terminal(reason::NOT_SUPPORTED, text),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Complaint::Invalid(text),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYLOAD_TOO_LARGE => {
            Complaint::Nothing(Fault::Throttled(pause(response)))
        }
        _ => Complaint::Perhaps(text),
    }
}
fn pause(response: &Response) -> Duration {
    let told = header(response, "retry-after").and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    told.unwrap_or(DEFAULT_PAUSE).min(LONGEST_PAUSE)
}

impl Complaint {
    /// What a call that failed comes to, unless it was a create.
    pub fn fault(self) -> Fault {
        match self {
            Complaint::Nothing(fault) => fault,
            Complaint::NotFound(why) | Complaint::Conflict(why) | Complaint::Perhaps(why) => Fault::Transient(why),
            Complaint::Unauthorized(why) => Fault::Denied(why),
            // No spec has anything to do with it.
            Complaint::Invalid(message) => Fault::Terminal { reason: reason::CLOUD_UNAVAILABLE, message },
        }
    }
    /// What a create that was refused comes to. It alone carries what the spec asks for: only here a refusal can be the spec's.
    pub fn of_create(self) -> Fault {
        match self {
            Complaint::Invalid(message) => Fault::Terminal { reason: INVALID_REQUEST, message },
            // Something that it names by id is not there. It may still come.
            Complaint::NotFound(message) => Fault::Terminal { reason: reason::CREATE_REFUSED, message },
            other => other.fault(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // json!s are written in place
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Response {
        let mut response = Response::new(body.as_bytes().to_vec());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        response.headers_mut().insert("x-openstack-request-id", "req-1".parse().unwrap());
        response
    }
    fn reason_of(complaint: Complaint) -> &'static str {
        match complaint {
            Complaint::Nothing(Fault::Terminal { reason, .. }) => reason,
            Complaint::Nothing(Fault::Denied(_)) => "denied",
            Complaint::Nothing(Fault::Throttled(_)) => "throttled",
            Complaint::Nothing(Fault::Transient(_)) => "transient",
            Complaint::NotFound(_) => "not found",
            Complaint::Unauthorized(_) => "unauthorized",
            Complaint::Conflict(_) => "conflict",
            Complaint::Invalid(_) => "invalid",
            Complaint::Perhaps(_) => "perhaps",
        }
    }

    #[test]
    fn every_services_way_of_saying_no_is_understood() {
        let cases = [
            (404, r#"{"itemNotFound": {"code": 404, "message": "Instance x could not be found."}}"#, "not found"),
            (
                404,
                r#"{"NeutronError": {"type": "PortNotFound", "message": "Port x could not be found.", "detail": ""}}"#,
                "not found",
            ),
            (
                404,
                r#"{"NeutronError": {"type": "HTTPNotFound", "message": "The resource could not be found.", "detail": ""}}"#,
                "not found",
            ),
            (404, r#"{"faultcode": "Client", "faultstring": "Member x not found.", "debuginfo": null}"#, "not found"),
            (
                409,
                r#"{"faultcode": "Client", "faultstring": "Load Balancer x is immutable and cannot be updated.", "debuginfo": null}"#,
                "conflict",
            ),
            (404, "<html><body>404 Not Found</body></html>", "perhaps"),
            (404, r#"{"message": "no route"}"#, "perhaps"),
            (
                403,
                r#"{"forbidden": {"code": 403, "message": "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"}}"#,
                reason::QUOTA_EXCEEDED,
            ),
            (
                413,
                r#"{"overLimit": {"code": 413, "message": "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota."}}"#,
                reason::QUOTA_EXCEEDED,
            ),
            (
                413,
                r#"{"overLimit": {"code": 413, "message": "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota 'volumes'.", "retryAfter": "0"}}"#,
                reason::QUOTA_EXCEEDED,
            ),
            (
                413,
                r#"{"overLimit": {"code": 413, "message": "VolumeSizeExceedsLimit: Requested volume size 20G is larger than maximum allowed limit 10G.", "retryAfter": "0"}}"#,
                reason::QUOTA_EXCEEDED,
            ),
            (
                413,
                r#"{"overLimit": {"code": 413, "message": "This request was rate-limited.", "retryAfter": "3"}}"#,
                "throttled",
            ),
            (
                409,
                r#"{"NeutronError": {"type": "IpAddressAlreadyAllocated", "message": "IP address 10.0.0.5 already allocated in subnet x", "detail": ""}}"#,
                reason::CREATE_REFUSED,
            ),
            (
                409,
                r#"{"NeutronError": {"type": "MacAddressInUse", "message": "Unable to complete operation for network x. The mac address y is in use.", "detail": ""}}"#,
                reason::CREATE_REFUSED,
            ),
            (
                406,
                r#"{"computeFault": {"code": 406, "message": "Version 2.60 is not supported by the API."}}"#,
                reason::NOT_SUPPORTED,
            ),
            (
                409,
                r#"{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}"#,
                reason::QUOTA_EXCEEDED,
            ),
            (
                409,
                r#"{"NeutronError": {"type": "IpAddressGenerationFailure", "message": "No more IP addresses available on network x.", "detail": ""}}"#,
                reason::SUBNET_FULL,
            ),
            (
                409,
                r#"{"NeutronError": {"type": "PortInUseAsTrunkParent", "message": "in use", "detail": ""}}"#,
                "conflict",
            ),
            (
                403,
                r#"{"NeutronError": {"type": "PolicyNotAuthorized", "message": "rule:delete_port is disallowed by policy", "detail": ""}}"#,
                "denied",
            ),
            (400, r#"{"badRequest": {"code": 400, "message": "Invalid key_name provided."}}"#, "invalid"),
            (429, r#"{"overLimit": {"code": 429, "message": "slow down", "retryAfter": "3"}}"#, "throttled"),
            (
                401,
                r#"{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}"#,
                "unauthorized",
            ),
            (401, "Authentication required", "perhaps"),
            (500, r#"{"computeFault": {"code": 500, "message": "Unexpected API Error."}}"#, "perhaps"),
            (503, "", "perhaps"),
        ];
        for (status, body, wanted) in cases {
            assert_eq!(reason_of(complaint(&reply(status, body))), wanted, "{status} {body}");
        }
    }
    #[test]
    fn only_a_refused_create_says_something_of_the_spec() {
        let of = |fault: Fault| match fault {
            Fault::Terminal { reason, .. } => reason,
            _ => "passes",
        };
        let invalid = || Complaint::Invalid("x".into());
        assert_eq!((of(invalid().of_create()), of(invalid().fault())), (INVALID_REQUEST, reason::CLOUD_UNAVAILABLE));
        let missing = || Complaint::NotFound("x".into());
        assert_eq!((of(missing().of_create()), of(missing().fault())), (reason::CREATE_REFUSED, "passes"));
        assert_eq!(of(Complaint::Conflict("x".into()).of_create()), "passes");
    }
    #[test]
    fn a_plain_401_counts_if_keystones_middleware_signed_it() {
        let mut response = reply(401, "Authentication required");
        response.headers_mut().insert("www-authenticate", "Keystone uri=\"http://k\"".parse().unwrap());
        assert_eq!(reason_of(complaint(&response)), "unauthorized");
    }
    #[test]
    fn the_services_text_and_the_request_id_are_passed_on() {
        let Complaint::Invalid(text) =
            complaint(&reply(400, r#"{"badRequest": {"code": 400, "message": "Invalid key_name provided."}}"#))
        else {
            panic!()
        };
        assert_eq!(text, "badRequest: Invalid key_name provided. (HTTP 400, request req-1)");
    }
}
