//! `/livez`, `/readyz`, `/metrics`.
use super::health::Readiness;
use super::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
struct Shown {
    readiness: Readiness,
    metrics: Arc<Metrics>,
}

/// The three routes.
pub fn routes(readiness: Readiness, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(render))
        .with_state(Shown { readiness, metrics })
}
async fn readyz(State(shown): State<Shown>) -> (StatusCode, String) {
    let ready = shown.readiness.is_ready();
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, shown.readiness.describe())
}
async fn render(State(shown): State<Shown>) -> Response {
    match shown.metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// A server that has its port already, so that a taken port ends the process before it does anything.
pub struct Server {
    listener: TcpListener,
    routes: Router,
}
impl Server {
    /// Takes the port.
    pub async fn bind(address: SocketAddr, readiness: Readiness, metrics: Arc<Metrics>) -> std::io::Result<Self> {
        Ok(Server { listener: TcpListener::bind(address).await?, routes: routes(readiness, metrics) })
    }
    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
    /// Answers until `stop`.
    pub async fn serve(self, stop: CancellationToken) -> std::io::Result<()> {
        // No graceful shutdown: a scraper that keeps its connection open must not keep the process.
        let serving = axum::serve(self.listener, self.routes).into_future();
        tokio::select! {
            ended = serving => ended,
            () = stop.cancelled() => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn fetch(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn the_three_routes_answer_and_readyz_says_what_is_missing() {
        let readiness = Readiness::default();
        let metrics = Arc::new(Metrics::new("sample", "0").unwrap());
        let server = Server::bind(([127, 0, 0, 1], 0).into(), readiness.clone(), metrics).await.unwrap();
        let (address, stop) = (server.address().unwrap(), CancellationToken::new());
        let serving = tokio::spawn(server.serve(stop.clone()));

        readiness.missing("credentials", "not accepted yet");
        let reply = fetch(address, "/readyz").await;
        assert!(reply.starts_with("HTTP/1.1 503") && reply.contains("[-] credentials: not accepted yet"), "{reply}");
        assert!(fetch(address, "/livez").await.starts_with("HTTP/1.1 200"));
        readiness.present("credentials");
        assert!(fetch(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        assert!(fetch(address, "/metrics").await.contains("build_info"));

        stop.cancel();
        serving.await.unwrap().unwrap();
    }
}
