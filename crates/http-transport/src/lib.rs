//! One HTTP exchange on a real socket, and whether a failed one can have reached the other side.
use async_trait::async_trait;
use common::transport::{Request, Response, Transport, TransportError};
use std::error::Error;
use std::time::Duration;

/// More than a page of a thousand things ever needs; keeps a broken peer from filling the memory.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Connecting is the part whose failure says for sure that nothing was sent.
const CONNECT: Duration = Duration::from_secs(5);

/// How to reach and believe the other side.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Who calls, as the other side's logs show it.
    pub user_agent: &'a str,
    /// A whole call is over after this time.
    pub call: Duration,
    /// PEM certificates of an authority to believe besides the usual ones.
    pub authority: Option<&'a str>,
    /// Anybody is believed: only if the user said so.
    pub anybody: bool,
}

/// HTTP over reqwest.
#[derive(Clone, Debug)]
pub struct Http {
    client: reqwest::Client,
}
impl Http {
    /// A pool of connections.
    pub fn new(settings: &Settings<'_>) -> Result<Self, String> {
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT.min(settings.call))
            .timeout(settings.call)
            // A redirected write would be sent twice.
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .user_agent(settings.user_agent);
        if let Some(pem) = settings.authority {
            let wrong = |_| "the authority holds something that is no certificate in PEM".to_owned();
            for certificate in reqwest::Certificate::from_pem_bundle(pem.as_bytes()).map_err(wrong)? {
                builder = builder.add_root_certificate(certificate);
            }
        }
        if settings.anybody {
            builder = builder.danger_accept_invalid_certs(true);
        }
        builder.build().map(|client| Http { client }).map_err(why)
    }
}

/// The chain of causes, without the address: it may carry what somebody put there.
fn why(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
fn sort(error: reqwest::Error) -> TransportError {
    // A request that could not be built or a connection that could not be made has sent no byte of it.
    let unsent = error.is_builder() || error.is_connect();
    let text = why(error);
    if unsent { TransportError::NotSent(text) } else { TransportError::NoReply(text) }
}

#[async_trait]
impl Transport for Http {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let request = reqwest::Request::try_from(request).map_err(sort)?;
        let mut reply = self.client.execute(request).await.map_err(sort)?;
        let mut response = http::Response::builder().status(reply.status());
        if let Some(headers) = response.headers_mut() {
            headers.extend(reply.headers().clone());
        }
        let mut body = Vec::new();
        while let Some(chunk) = reply.chunk().await.map_err(|e| TransportError::NoReply(why(e)))? {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(TransportError::NoReply(format!("the reply is longer than {MOST_BYTES} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        response.body(body).map_err(|e| TransportError::NoReply(e.to_string()))
    }
}
