//! The way to the API server.
use super::metrics::Metrics;
use http::{Request, Response};
use k8s_openapi::api::core::v1::Namespace;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::{Layer, Service};

/// No way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig file, or the surroundings in a pod, make no sense.
    #[error("configuration: {0}")]
    Config(String),
    /// The client cannot be built.
    #[error("client: {0}")]
    Client(#[from] kube::Error),
}

/// Where the API server is: a kubeconfig file if one is named, else what kubectl would use, else the pod's own.
pub async fn config(kubeconfig: Option<&Path>) -> Result<Config, ConnectError> {
    let wrong = |e: &dyn std::fmt::Display| ConnectError::Config(e.to_string());
    let mut config = match kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|e| wrong(&e))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(|e| wrong(&e))?
        }
        None => Config::infer().await.map_err(|e| wrong(&e))?,
    };
    config.connect_timeout = Some(Duration::from_secs(5));
    config.write_timeout = Some(Duration::from_secs(30));
    // Longer than any watch stays silent: what is cut by this is dead.
    config.read_timeout = Some(Duration::from_secs(330));
    config.reset_reader_on_write = true;
    // kube would repeat writes after 429, 503 and 504 behind our back, for minutes. A 504 may have been carried out; only
    // the ledger can tell. Reads and watches are repeated by queue and watch, in the open.
    config.default_retry = false;
    Ok(config)
}

/// A client that counts its requests.
pub fn connect(config: Config, metrics: Option<Arc<Metrics>>) -> Result<Client, ConnectError> {
    let host = config.cluster_url.authority().map_or_else(String::new, ToString::to_string);
    let builder = ClientBuilder::try_from(config)?;
    Ok(match metrics {
        Some(metrics) => builder.with_layer(&CountLayer { metrics, host: host.into() }).build(),
        None => builder.build(),
    })
}

/// The UID of kube-system: an installation's name, unless it was given another.
pub async fn installation_id(client: &Client) -> kube::Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    Ok(namespaces.get("kube-system").await?.metadata.uid.unwrap_or_default())
}

/// Counts requests as `rest_client_requests_total`.
#[derive(Clone)]
pub struct CountLayer {
    /// Where to count.
    pub metrics: Arc<Metrics>,
    /// The label `host`.
    pub host: Arc<str>,
}
impl<S> Layer<S> for CountLayer {
    type Service = Count<S>;
    fn layer(&self, inner: S) -> Count<S> {
        Count { inner, layer: self.clone() }
    }
}
/// See [`CountLayer`].
#[derive(Clone)]
pub struct Count<S> {
    inner: S,
    layer: CountLayer,
}
impl<S, B> Service<Request<Body>> for Count<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (layer, method) = (self.layer.clone(), request.method().clone());
        let reply = self.inner.call(request);
        Box::pin(async move {
            let reply = reply.await;
            let code = reply.as_ref().map_or_else(|_| "<error>".to_owned(), |r| r.status().as_u16().to_string());
            layer.metrics.rest_requests.with_label_values(&[code.as_str(), method.as_str(), &layer.host]).inc();
            reply
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower::ServiceExt as _;

    #[tokio::test]
    async fn requests_are_counted_by_code_method_and_host() {
        let metrics = Arc::new(Metrics::new("sample", "0").unwrap());
        let server = tower::service_fn(|_: Request<Body>| {
            std::future::ready(Ok::<_, std::convert::Infallible>(Response::builder().status(429).body(()).unwrap()))
        });
        let counted = CountLayer { metrics: metrics.clone(), host: "h:1".into() }.layer(server);
        counted.oneshot(Request::get("/x").body(Body::empty()).unwrap()).await.unwrap();
        let text = metrics.render().unwrap();
        assert!(text.contains("rest_client_requests_total{code=\"429\",host=\"h:1\",method=\"GET\"} 1"), "{text}");
    }
}
