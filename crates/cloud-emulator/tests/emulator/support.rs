//! A client without a wire: calls the cloud directly, in virtual time.
use cloud_emulator::kit::{Delivery, EmulatedCloud, Handled, Lag, Request, Settings};
use cloud_emulator::sample::SampleCloud;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const TOKEN: &str = "secret-1";

pub(crate) struct World {
    pub(crate) cloud: SampleCloud,
    pub(crate) now: Timestamp,
}
/// Status, headers and body of a delivered reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Value,
}
impl Reply {
    pub(crate) fn code(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
    pub(crate) fn id(&self) -> String {
        self.body["id"].as_str().expect("a thing").to_owned()
    }
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Request {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default()).unwrap()
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        World::seeded(settings, 1)
    }
    pub(crate) fn seeded(settings: Settings, seed: u64) -> Self {
        let mut cloud = SampleCloud::new(settings, seed);
        cloud.kit_mut().admit("alice", TOKEN);
        World { cloud, now: "2026-01-01T00:00:00Z".parse().unwrap() }
    }
    pub(crate) fn calm() -> Self {
        World::new(Settings::default())
    }
    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }
    pub(crate) fn send(&mut self, request: Request) -> Handled {
        self.cloud.handle(self.now, request)
    }
    pub(crate) fn keyed(&mut self, method: &str, path: &str, key: &str, body: &Value) -> Reply {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", key)];
        delivered(self.send(request(method, path, &headers, Some(body))))
    }
    pub(crate) fn call(&mut self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let bearer = format!("Bearer {TOKEN}");
        delivered(self.send(request(method, path, &[("authorization", &bearer)], body)))
    }
    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.call("GET", path, None)
    }
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Reply {
        self.call("POST", path, Some(body))
    }
    pub(crate) fn put(&mut self, path: &str, body: &Value) -> Reply {
        self.call("PUT", path, Some(body))
    }
    pub(crate) fn delete(&mut self, path: &str) -> Reply {
        self.call("DELETE", path, None)
    }
    /// A new network's id.
    pub(crate) fn network(&mut self) -> String {
        self.post("/v1/networks", &json!({"name": "n", "cidr": "10.0.0.0/8"})).id()
    }
    /// A new disk's id.
    pub(crate) fn disk(&mut self) -> String {
        self.post("/v1/disks", &json!({"name": "d", "size_gb": 10})).id()
    }
    /// The items of a whole listing, all pages.
    pub(crate) fn list(&mut self, plural: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut page = String::new();
        loop {
            let reply = self.get(&format!("/v1/{plural}?limit=100{page}"));
            assert_eq!(reply.status, 200);
            items.extend(reply.body["items"].as_array().expect("items").iter().cloned());
            match reply.body["next"].as_str() {
                Some(next) => page = format!("&page={next}"),
                None => return items,
            }
        }
    }
    pub(crate) fn listed(&mut self, plural: &str) -> Vec<String> {
        self.list(plural).iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    }
}

pub(crate) fn delivered(handled: Handled) -> Reply {
    assert_eq!(handled.delivery, Delivery::Deliver);
    read(handled)
}
pub(crate) fn read(handled: Handled) -> Reply {
    let (parts, body) = handled.response.into_parts();
    let body = serde_json::from_slice(&body).expect("a JSON body");
    Reply { status: parts.status.as_u16(), headers: parts.headers, body }
}
pub(crate) fn seconds(seconds: u64) -> Lag {
    Lag::fixed(Duration::from_secs(seconds))
}
