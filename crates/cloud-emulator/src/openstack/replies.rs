//! How each service says no, and what a page of a list looks like.
use super::kinds::{Kind, Service};
use crate::kit::Answer;
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use serde_json::{Value, json};

/// A refused call.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    status: StatusCode,
    body: Value,
}
fn nova_word(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "badRequest",
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "itemNotFound",
        StatusCode::CONFLICT => "conflictingRequest",
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => "overLimit",
        _ => "computeFault",
    }
}
impl Refused {
    /// In the words of a service; `word` is Neutron's type of the error.
    #[allow(clippy::needless_pass_by_value)] // most callers have just made the text
    pub(super) fn new(service: Service, status: StatusCode, word: &str, message: String) -> Self {
        let code = status.as_u16();
        let body = match service {
            Service::Network => json!({"NeutronError": {"type": word, "message": message, "detail": ""}}),
            Service::Identity => {
                json!({"error": {"code": code, "title": status.canonical_reason().unwrap_or_default(), "message": message}})
            }
            Service::Image => {
                json!({"message": message, "code": format!("{status}"), "title": status.canonical_reason()})
            }
            Service::Balancer => json!({"faultcode": "Client", "faultstring": message, "debuginfo": null}),
            Service::Compute | Service::Volume => json!({ nova_word(status): {"code": code, "message": message} }),
        };
        Refused { status, body }
    }
    pub(super) fn invalid(service: Service, message: impl Into<String>) -> Self {
        Refused::new(service, StatusCode::BAD_REQUEST, "HTTPBadRequest", message.into())
    }
    pub(super) fn not_found(kind: Kind, id: &str) -> Self {
        let (word, message) = match kind {
            Kind::Server => ("", format!("Instance {id} could not be found.")),
            Kind::Volume => ("", format!("Volume {id} could not be found.")),
            Kind::Port => ("PortNotFound", format!("Port {id} could not be found.")),
            Kind::Trunk => ("TrunkNotFound", format!("Trunk {id} could not be found.")),
            Kind::FloatingIp => ("FloatingIPNotFound", format!("Floating IP {id} could not be found")),
            Kind::Network => ("NetworkNotFound", format!("Network {id} could not be found.")),
            Kind::Subnet => ("SubnetNotFound", format!("Subnet {id} could not be found.")),
            Kind::Keypair => ("", format!("Keypair {id} not found for user")),
            Kind::Pool => ("", format!("Pool {id} not found.")),
            Kind::Member => ("", format!("Member {id} not found.")),
            other => ("HTTPNotFound", format!("{} {id} could not be found.", other.one())),
        };
        Refused::new(kind.service(), StatusCode::NOT_FOUND, word, message)
    }
    pub(super) fn conflict(service: Service, word: &str, message: String) -> Self {
        Refused::new(service, StatusCode::CONFLICT, word, message)
    }
    pub(super) fn unauthorized() -> Self {
        let message = "The request you have made requires authentication.".to_owned();
        Refused::new(Service::Identity, StatusCode::UNAUTHORIZED, "", message)
    }
    pub(super) fn forbidden(permission: &str) -> Self {
        let kind = permission.split('.').next().and_then(Kind::by_word);
        let service = kind.map_or(Service::Compute, Kind::service);
        let message = format!("Policy doesn't allow {permission} to be performed.");
        Refused::new(service, StatusCode::FORBIDDEN, "PolicyNotAuthorized", message)
    }
    pub(super) fn quota(kind: Kind, most: u64) -> Self {
        match kind {
            Kind::Server => {
                let message =
                    format!("Quota exceeded for instances: Requested 1, but already used {most} of {most} instances");
                Refused::new(Service::Compute, StatusCode::FORBIDDEN, "", message)
            }
            Kind::Volume => {
                let message = format!(
                    "VolumeLimitExceeded: Maximum number of volumes allowed ({most}) exceeded for quota 'volumes'."
                );
                Refused::cinder_quota(message)
            }
            Kind::Member => {
                let message = "Quota has been met for resources: Member".to_owned();
                Refused::new(Service::Balancer, StatusCode::FORBIDDEN, "", message)
            }
            other => {
                let message = format!("Quota exceeded for resources: ['{}'].", other.one());
                Refused::new(Service::Network, StatusCode::CONFLICT, "OverQuota", message)
            }
        }
    }
    /// Every quota of Cinder is refused as a rate limit would be, with a wait of nothing.
    pub(super) fn cinder_quota(message: String) -> Self {
        let mut refused = Refused::new(Service::Volume, StatusCode::PAYLOAD_TOO_LARGE, "", message);
        refused.body["overLimit"]["retryAfter"] = json!("0");
        refused
    }
    /// What a fault says: known words of a service where there are any, else what a proxy in front of it would answer.
    pub(super) fn of_status(status: StatusCode) -> Answer {
        match status {
            StatusCode::UNAUTHORIZED => Refused::unauthorized().into(),
            StatusCode::BAD_REQUEST
            | StatusCode::FORBIDDEN
            | StatusCode::CONFLICT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR => {
                Refused::new(Service::Compute, status, "", "a fault on purpose".to_owned()).into()
            }
            other => Answer::new(other, format!("<html><body><h1>{other}</h1></body></html>").into_bytes()),
        }
    }
}
impl From<Refused> for Answer {
    fn from(refused: Refused) -> Answer {
        let mut answer = Answer::new(refused.status, refused.body.to_string().into_bytes());
        let again = refused.body["overLimit"]["retryAfter"].as_str().and_then(|it| HeaderValue::from_str(it).ok());
        answer.header = again.map(|value| (RETRY_AFTER, value));
        answer
    }
}

/// A body of one thing.
pub(super) fn one(status: StatusCode, kind: Kind, value: Value) -> Answer {
    let body = if kind == Kind::Image { value } else { json!({ kind.one(): value }) };
    Answer::new(status, body.to_string().into_bytes())
}
