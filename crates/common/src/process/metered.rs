//! Counts, times and logs every exchange with a cloud, under names from a closed set.
use super::metrics::Metrics;
use crate::clock::SharedClock;
use crate::transport::{Request, Response, Transport, TransportError};
use async_trait::async_trait;
use http::Method;
use std::sync::Arc;
use tracing::{debug, info};

/// How the exchanges of one cloud are called.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The cloud.
    pub service: &'static str,
    /// The operation behind method and path: from a closed set, never with an id in it.
    pub operation: fn(&Method, &str) -> String,
    /// The header in which the cloud says the id of a request.
    pub request_id: &'static str,
}

/// A transport that counts.
pub struct Metered<T> {
    inner: T,
    names: Names,
    clock: SharedClock,
    metrics: Arc<Metrics>,
}
impl<T: Transport + 'static> Metered<T> {
    /// Around another transport; that one itself if nobody counts.
    pub fn around(inner: T, names: Names, clock: SharedClock, metrics: Option<Arc<Metrics>>) -> Arc<dyn Transport> {
        match metrics {
            Some(metrics) => Arc::new(Metered { inner, names, clock, metrics }),
            None => Arc::new(inner),
        }
    }
}

#[async_trait]
impl<T: Transport> Transport for Metered<T> {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let operation = (self.names.operation)(request.method(), request.uri().path());
        let (write, path) = (request.method() != Method::GET, request.uri().path().to_owned());
        let began = self.clock.boot();
        let reply = self.inner.exchange(request).await;
        let took = self.clock.boot().since(began);
        let code = match &reply {
            Ok(response) => response.status().as_u16().to_string(),
            Err(TransportError::NotSent(_)) => "not_sent".to_owned(),
            Err(TransportError::NoReply(_)) => "no_reply".to_owned(),
        };
        self.metrics.cloud_request(self.names.service, &operation, &code, took);
        let headers = reply.as_ref().ok().map(Response::headers);
        let request_id = headers.and_then(|h| h.get(self.names.request_id)?.to_str().ok()).unwrap_or_default();
        // A log of writes is an audit trail; reads are many and say little.
        if write {
            info!(operation, path, code, request_id, "cloud write");
        } else {
            debug!(operation, path, code, request_id, "cloud read");
        }
        reply
    }
}
