//! One HTTP exchange. A client written on this runs on a socket in production and on the simulator's wire in tests.
use async_trait::async_trait;

/// A request with its body in memory.
pub type Request = http::Request<Vec<u8>>;
/// A response with its body in memory.
pub type Response = http::Response<Vec<u8>>;

/// The exchange failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No byte reached the other side.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The request may have been carried out: time-out, connection cut, reply unreadable.
    #[error("no reply: {0}")]
    NoReply(String),
}

/// Sends one request, waits for one response. No retries: those belong to the client, which knows what is safe to repeat.
#[async_trait]
pub trait Transport: Send + Sync {
    /// One exchange.
    async fn exchange(&self, request: Request) -> Result<Response, TransportError>;
}
