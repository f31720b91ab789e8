//! One request to the API server. Production sends it with kube's client; tests answer it from memory.
use async_trait::async_trait;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Longest request, and so the time that leadership must outlast.
pub const CALL: Duration = Duration::from_secs(10);

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read.
    Get,
    /// Create.
    Post,
    /// Replace.
    Put,
    /// Change by a JSON patch.
    Patch,
    /// Delete.
    Delete,
}
impl Verb {
    /// In HTTP's words.
    pub fn method(self) -> http::Method {
        match self {
            Verb::Get => http::Method::GET,
            Verb::Post => http::Method::POST,
            Verb::Put => http::Method::PUT,
            Verb::Patch => http::Method::PATCH,
            Verb::Delete => http::Method::DELETE,
        }
    }
}

/// How much of an answer is looked at. What nobody looks at is not even built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    Whole,
    /// Without managedFields and kubectl's copy.
    Slim,
    /// Namespace, name, uid and version.
    Head,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What to do.
    pub verb: Verb,
    /// Where, without the query.
    pub path: String,
    /// Query parameters, not yet encoded.
    pub query: Vec<(&'static str, String)>,
    /// What to send.
    pub body: Option<Value>,
    /// What to hear.
    pub wanted: Wanted,
}
impl Call {
    /// A request without query and body.
    pub fn new(verb: Verb, path: impl Into<String>) -> Self {
        let wanted = if verb == Verb::Get { Wanted::Whole } else { Wanted::Slim };
        Call { verb, path: path.into(), query: Vec::new(), body: None, wanted }
    }
    /// Hearing no more than this.
    #[must_use]
    pub fn hearing(mut self, wanted: Wanted) -> Self {
        self.wanted = wanted;
        self
    }
    /// With a parameter.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.query.push((key, value.into()));
        self
    }
    /// With a body.
    #[must_use]
    pub fn sending(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }
    /// Does it change anything?
    pub fn mutates(&self) -> bool {
        self.verb != Verb::Get && !self.query.iter().any(|(key, _)| *key == "dryRun")
    }
    /// Path and query.
    pub fn uri(&self) -> String {
        let pairs: Vec<String> = self.query.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
        if pairs.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, pairs.join("&")) }
    }
}
/// Percent-encodes everything but letters, digits and `-._~`.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The API server said no, or nothing.
#[derive(Clone, Debug, Default, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Trouble {
    /// HTTP status; 0 if there was no answer.
    pub code: u16,
    /// `reason` of the Status.
    pub reason: String,
    /// `message` of the Status.
    pub message: String,
    /// `details` of the Status.
    pub details: Value,
}
impl Trouble {
    /// No answer.
    pub fn silent(message: impl Into<String>) -> Self {
        Trouble { message: message.into(), ..Trouble::default() }
    }
    /// 404.
    pub fn is_missing(&self) -> bool {
        self.code == 404
    }
    /// Somebody changed it meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.code == 409 && self.reason != "AlreadyExists"
    }
    /// Somebody created it already.
    pub fn is_taken(&self) -> bool {
        self.code == 409 && self.reason == "AlreadyExists"
    }
    /// 422.
    pub fn is_invalid(&self) -> bool {
        self.code == 422
    }
    /// The namespace of the object is not there, or on its way out.
    pub fn is_namespace(&self) -> bool {
        let missing = self.code == 404 && self.details["kind"] == "namespaces";
        missing || self.is_namespace_ending()
    }
    /// The namespace of the object is on its way out.
    pub fn is_namespace_ending(&self) -> bool {
        self.code == 403 && self.details["causes"][0]["reason"] == "NamespaceTerminating"
    }
}
/// Sends requests.
#[async_trait]
pub trait Wire: Send + Sync {
    /// One request, one answer.
    async fn call(&self, call: Call) -> Result<Value, Trouble>;
}
/// A wire many parts share.
pub type SharedWire = Arc<dyn Wire>;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_written_down_encoded() {
        let call = Call::new(Verb::Get, "/api/v1/pods").with("labelSelector", "a in (x,y)");
        assert_eq!(call.uri(), "/api/v1/pods?labelSelector=a%20in%20%28x%2Cy%29");
        assert!(!call.mutates());
        assert!(Call::new(Verb::Delete, "/x").mutates());
        assert!(!Call::new(Verb::Put, "/x").with("dryRun", "All").mutates());
    }
    #[test]
    fn trouble_is_told_apart() {
        let trouble =
            |code, reason: &str, details| Trouble { code, reason: reason.into(), message: "m".into(), details };
        assert!(trouble(409, "AlreadyExists", Value::Null).is_taken());
        assert!(trouble(409, "Conflict", Value::Null).is_conflict());
        assert!(trouble(404, "NotFound", json!({"kind": "namespaces"})).is_namespace());
        assert!(!trouble(404, "NotFound", json!({"kind": "pods"})).is_namespace());
        assert!(trouble(403, "Forbidden", json!({"causes": [{"reason": "NamespaceTerminating"}]})).is_namespace());
    }
}
