//! Counts and times every exchange with the cloud, under names from a closed set.
use crate::cloud::Kind;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::process::metrics::Metrics;
use common::transport::{Request, Response, Transport, TransportError};
use http::Method;
use std::sync::Arc;
use tracing::{debug, info};

const SERVICE: &str = "sample";

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

/// `<plural>.<verb>`, as the cloud's permissions are called; ids are never part of it.
fn operation(method: &Method, path: &str) -> String {
    let mut parts = path.trim_start_matches('/').split('/').skip(1);
    let (collection, thing, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.plural() == collection) else {
        return if collection == "whoami" { "whoami".to_owned() } else { "other".to_owned() };
    };
    let verb = match (method.as_str(), thing.is_some(), more.is_some()) {
        ("GET", false, _) => "list",
        ("GET", true, _) => "get",
        ("POST", ..) => "create",
        ("PUT", _, true) => "tag",
        ("PATCH", ..) => "update",
        ("DELETE", ..) => "delete",
        _ => "other",
    };
    format!("{}.{verb}", kind.plural())
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
        let id = reply.as_ref().ok().and_then(|r| r.headers().get("x-request-id")).and_then(|id| id.to_str().ok());
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
    fn operations_are_named_as_permissions_and_never_by_ids() {
        let name = |method: Method, path: &str| operation(&method, path);
        assert_eq!(name(Method::GET, "/v1/networks"), "networks.list");
        assert_eq!(name(Method::GET, "/v1/networks/network-1"), "networks.get");
        assert_eq!(name(Method::POST, "/v1/disks"), "disks.create");
        assert_eq!(name(Method::PUT, "/v1/addresses/address-1/tags"), "addresses.tag");
        assert_eq!(name(Method::PATCH, "/v1/machines/machine-1"), "machines.update");
        assert_eq!(name(Method::DELETE, "/v1/routes/route-1"), "routes.delete");
        assert_eq!(name(Method::GET, "/v1/whoami"), "whoami");
        assert_eq!(name(Method::GET, "/v1/secrets/x"), "other");
    }
}
