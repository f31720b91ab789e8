//! Bodies of replies: things, pages, and errors in the cloud's words.
use super::store::{Shown, Thing};
use crate::kit::Answer;
use http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;

/// A refusal: status, code, message.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
}
impl Refused {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Refused { status, code, message: message.into() }
    }
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidRequest", message)
    }
    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "the token is missing or unknown")
    }
    pub(super) fn forbidden(permission: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("the principal lacks the permission {permission}"))
    }
    pub(super) fn quota(kind: &str, most: u64) -> Self {
        Self::new(StatusCode::FORBIDDEN, "QuotaExceeded", format!("the account may have {most} {kind}"))
    }
    pub(super) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("no {what}"))
    }
    pub(super) fn in_use(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "InUse", message)
    }
    pub(super) fn key_taken(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "KeyTaken", message)
    }
    pub(super) fn token_mismatch() -> Self {
        let message = "the idempotency key was used with other parameters";
        Self::new(StatusCode::CONFLICT, "TokenMismatch", message)
    }
    pub(super) fn too_many_requests() -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "slow down")
    }
    /// What a fault asks for: the code that the facts give to this status.
    pub(super) fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            400 => Self::invalid("the request is wrong"),
            401 => Self::unauthorized(),
            403 => Self::new(status, "Forbidden", "the principal may not do this"),
            404 => Self::not_found("such thing"),
            409 => Self::in_use("something depends on it"),
            429 => Self::too_many_requests(),
            502 => Self::new(status, "InternalBadGateway", "bad gateway"),
            503 => Self::new(status, "InternalUnavailable", "service unavailable"),
            504 => Self::new(status, "InternalTimeout", "gateway timeout"),
            _ => Self::new(status, "InternalError", "something went wrong"),
        }
    }
}
impl From<Refused> for Answer {
    fn from(refused: Refused) -> Answer {
        #[derive(Serialize)]
        struct Body<'a> {
            code: &'a str,
            message: &'a str,
        }
        Answer::new(refused.status, json(&Body { code: refused.code, message: &refused.message }))
    }
}

/// One thing, as it is.
pub(super) fn thing(status: StatusCode, thing: &Thing, now: Timestamp) -> Answer {
    let mut answer = Answer::new(status, json(&Shown { thing, now, in_listing: false }));
    answer.thing = Some(thing.id.clone());
    answer
}

/// Serialisation into memory of values with string keys cannot fail; an empty body would show at once if it did.
pub(super) fn json<T: Serialize>(value: &T) -> Vec<u8> {
    let mut body = Vec::with_capacity(512);
    match serde_json::to_writer(&mut body, value) {
        Ok(()) => body,
        Err(_) => Vec::new(),
    }
}
