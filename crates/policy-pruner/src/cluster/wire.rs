//! One request to the API server. Production sends it with kube's client; tests answer it from memory.
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::fence::Fence;
use kube::Client;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Longest request, and so the time that leadership must outlast.
pub const CALL: Duration = Duration::from_secs(10);

/// Told to come back later, a request is repeated so often before its pass hears of it.
const MOST_WAITS: u32 = 5;

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
    fn method(self) -> http::Method {
        match self {
            Verb::Get => http::Method::GET,
            Verb::Post => http::Method::POST,
            Verb::Put => http::Method::PUT,
            Verb::Patch => http::Method::PATCH,
            Verb::Delete => http::Method::DELETE,
        }
    }
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
}
impl Call {
    /// A request without query and body.
    pub fn new(verb: Verb, path: impl Into<String>) -> Self {
        Call { verb, path: path.into(), query: Vec::new(), body: None }
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
    /// Will it pass by itself?
    pub fn is_passing(&self) -> bool {
        matches!(self.code, 0 | 408 | 429 | 500..=599)
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
impl From<kube::Error> for Trouble {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Trouble {
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
                details: serde_json::to_value(&status.details).unwrap_or_default(),
            },
            other => Trouble::silent(other.to_string()),
        }
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

/// Over kube's client. Nothing is changed without leadership that outlasts the request.
pub struct KubeWire {
    client: Client,
    clock: SharedClock,
    fence: Arc<dyn Fence>,
}
impl KubeWire {
    /// A wire.
    pub fn new(client: Client, clock: SharedClock, fence: Arc<dyn Fence>) -> Self {
        KubeWire { client, clock, fence }
    }
}
impl KubeWire {
    async fn once(&self, call: &Call) -> Result<Value, Trouble> {
        let ends = self.clock.boot() + CALL;
        if call.mutates() && !self.fence.holds_until(ends) {
            return Err(Trouble::silent("leadership does not outlast the request"));
        }
        let body = call.body.as_ref().map(serde_json::to_vec).transpose();
        let body = body.map_err(|e| Trouble::silent(e.to_string()))?.unwrap_or_default();
        let content = if call.verb == Verb::Patch { "application/json-patch+json" } else { "application/json" };
        let request = http::Request::builder()
            .method(call.verb.method())
            .uri(call.uri())
            .header(http::header::CONTENT_TYPE, content)
            .header(http::header::ACCEPT, "application/json")
            .body(body)
            .map_err(|e| Trouble::silent(e.to_string()))?;
        tokio::select! {
            reply = self.client.request::<Value>(request) => Ok(reply?),
            () = self.clock.sleep_until(ends) => Err(Trouble::silent("no reply in time")),
        }
    }
}
#[async_trait]
impl Wire for KubeWire {
    async fn call(&self, call: Call) -> Result<Value, Trouble> {
        let mut told_to_wait = 0;
        loop {
            match self.once(&call).await {
                // The API server says when; nothing was carried out, so anything may be repeated.
                Err(trouble) if trouble.code == 429 && told_to_wait < MOST_WAITS => {
                    told_to_wait += 1;
                    self.clock.sleep_until(self.clock.boot() + wait(&trouble, told_to_wait)).await;
                }
                answer => return answer,
            }
        }
    }
}
/// As long as the API server says, at least a little, and longer each time.
fn wait(trouble: &Trouble, time: u32) -> Duration {
    let asked = trouble.details["retryAfterSeconds"].as_u64().unwrap_or(0).min(5);
    Duration::from_secs(asked).max(Duration::from_millis(250) * time)
}

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
    fn the_api_server_says_how_long_to_wait_within_reason() {
        let told =
            |seconds: u64| Trouble { code: 429, details: json!({"retryAfterSeconds": seconds}), ..Trouble::default() };
        assert_eq!(wait(&told(2), 1), Duration::from_secs(2));
        assert_eq!(wait(&told(600), 1), Duration::from_secs(5));
        assert_eq!(wait(&told(0), 3), Duration::from_millis(750));
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
        assert!(Trouble::silent("x").is_passing() && trouble(503, "", Value::Null).is_passing());
        assert!(!trouble(403, "Forbidden", Value::Null).is_passing());
    }
}
