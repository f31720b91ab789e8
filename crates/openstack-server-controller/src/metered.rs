//! Counts and times every exchange with the cloud, under names from a closed set.
use async_trait::async_trait;
use common::clock::SharedClock;
use common::process::metrics::Metrics;
use common::transport::{Request, Response, Transport, TransportError};
use http::Method;
use std::sync::Arc;
use tracing::{debug, info};

const SERVICE: &str = "openstack";
/// Collections in use; anything else is `other`.
const COLLECTIONS: [&str; 18] = [
    "servers",
    "flavors",
    "os-server-groups",
    "os-keypairs",
    "ports",
    "trunks",
    "networks",
    "subnets",
    "security-groups",
    "floatingips",
    "routers",
    "extensions",
    "images",
    "volumes",
    "tokens",
    "limits",
    "quotas",
    "metadata",
];

/// A transport that counts.
pub struct Metered<T> {
    inner: T,
    clock: SharedClock,
    metrics: Arc<Metrics>,
}
impl<T> Metered<T> {
    /// Around another transport.
    pub fn new(inner: T, clock: SharedClock, metrics: Arc<Metrics>) -> Self {
        Metered { inner, clock, metrics }
    }
}

/// `<collection>.<verb>`; ids are never part of it.
fn operation(method: &Method, path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let Some(at) = parts.iter().position(|part| COLLECTIONS.contains(part)) else { return "version.get".to_owned() };
    let rest = &parts[at + 1..];
    let verb = match (method.as_str(), rest) {
        ("GET", [] | ["detail"]) => "list",
        ("GET", _) => "get",
        ("POST", []) => "create",
        ("DELETE", [_]) => "delete",
        ("PUT", [_]) => "update",
        (_, [_, "tags", ..]) => "tag",
        (_, [_, "metadata", ..]) => "mark",
        (_, [_, "action"]) => "action",
        (_, [_, "remove_subports"]) => "free",
        _ => "other",
    };
    format!("{}.{verb}", parts[at])
}

#[async_trait]
impl<T: Transport> Transport for Metered<T> {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let operation = operation(request.method(), request.uri().path());
        let (write, path) = (request.method() != Method::GET, request.uri().path().to_owned());
        let began = self.clock.boot();
        let reply = self.inner.exchange(request).await;
        let took = self.clock.boot().since(began);
        let code = match &reply {
            Ok(response) => response.status().as_u16().to_string(),
            Err(TransportError::NotSent(_)) => "not_sent".to_owned(),
            Err(TransportError::NoReply(_)) => "no_reply".to_owned(),
        };
        self.metrics.cloud_request(SERVICE, &operation, &code, took);
        let id = reply.as_ref().ok().and_then(|r| crate::client::reply::header(r, "x-openstack-request-id"));
        let request_id = id.unwrap_or_default();
        // A log of writes is an audit trail; reads are many and say little.
        if write {
            info!(operation, path, code, request_id, "cloud write");
        } else {
            debug!(operation, path, code, request_id, "cloud read");
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_by_collection_and_verb_and_never_by_ids() {
        let name = |method: Method, path: &str| operation(&method, path);
        assert_eq!(name(Method::GET, "/compute/v2.1/servers/detail"), "servers.list");
        assert_eq!(name(Method::GET, "/v2.1/servers/0f1e"), "servers.get");
        assert_eq!(name(Method::POST, "/v2.1/servers"), "servers.create");
        assert_eq!(name(Method::POST, "/v2.1/servers/0f1e/action"), "servers.action");
        assert_eq!(name(Method::POST, "/v2.1/servers/0f1e/metadata"), "servers.mark");
        assert_eq!(name(Method::PUT, "/v2.0/ports/0f1e/tags"), "ports.tag");
        assert_eq!(name(Method::PUT, "/v2.0/floatingips/0f1e"), "floatingips.update");
        assert_eq!(name(Method::DELETE, "/v3/0f1e/volumes/77"), "volumes.delete");
        assert_eq!(name(Method::POST, "/identity/v3/auth/tokens"), "tokens.create");
        assert_eq!(name(Method::GET, "/v2.1/"), "version.get");
    }
}
