//! A proxy in front of the API server that answers wrongly on purpose: conflicts that are none, errors before and after the
//! deed, expired versions, cut connections, watches that end at once. Plain HTTP on loopback, on behalf of one account.
use crate::account::Account;
use crate::error::{Error, Result};
use common::clock::{Clock, SystemClock};
use common::random::Random;
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Every watch ends after this, as behind a proxy that cuts idle connections: so each is a new request that can be struck.
const WATCH: Duration = Duration::from_secs(1);
/// One that is struck ends after this.
const SHORT_WATCH: Duration = Duration::from_millis(300);
/// One request in so many is struck.
const ONE_IN: u64 = 4;
/// There are few watches, so one in so many of them.
const ONE_WATCH_IN: u64 = 2;

/// What can happen to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Answered with this status; the API server never sees the request.
    Refused(u16),
    /// Carried out, and answered with this status.
    DoneBut(u16),
    /// Carried out; the connection is cut without an answer.
    DoneAndCut,
    /// A watch that ends at once.
    ShortWatch,
}

/// What a request could meet. The statuses are those that a busy API server gives.
fn troubles(method: &Method, watch: bool) -> &'static [Trouble] {
    use Trouble::{DoneAndCut, DoneBut, Refused, ShortWatch};
    match (method, watch) {
        (_, true) => &[ShortWatch, ShortWatch, Refused(410), Refused(429), Refused(500)],
        (&Method::GET, _) => &[Refused(429), Refused(500), Refused(503)],
        _ => &[Refused(409), Refused(429), Refused(500), DoneBut(500), DoneBut(504), DoneAndCut],
    }
}

struct Shared {
    upstream: kube::Client,
    dice: Random,
    calm: AtomicBool,
    struck: Mutex<BTreeMap<Trouble, u64>>,
}

/// A running proxy. Ends when dropped.
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl FaultProxy {
    /// Starts one that lets everything through until [`FaultProxy::rage`].
    pub async fn start(account: &Account, seed: u64) -> Result<Self> {
        let no_port = |source| Error::Io { what: "no free port on 127.0.0.1".to_owned(), source };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(no_port)?;
        let address = listener.local_addr().map_err(no_port)?;
        let shared = Arc::new(Shared {
            upstream: account.client().await?,
            dice: Random::seeded(seed),
            calm: AtomicBool::new(true),
            struck: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, shared.clone()));
        Ok(FaultProxy { address, shared, serving })
    }
    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
    /// From now on requests are struck at random.
    pub fn rage(&self) {
        self.shared.calm.store(false, Ordering::Relaxed);
    }
    /// From now on none is.
    pub fn calm(&self) {
        self.shared.calm.store(true, Ordering::Relaxed);
    }
    /// Every trouble that there is.
    pub fn all_troubles() -> BTreeSet<Trouble> {
        let of = [(Method::GET, true), (Method::GET, false), (Method::POST, false)];
        of.iter().flat_map(|(method, watch)| troubles(method, *watch)).copied().collect()
    }
    /// How often what happened.
    pub fn struck(&self) -> BTreeMap<Trouble, u64> {
        self.shared.struck.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // Connections end with the task that accepts them.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let shared = shared.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, shared.clone()));
            // An error of the service is how a connection is cut: nothing to add.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Answer = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Cut>>;

/// The connection is cut.
#[derive(Debug, thiserror::Error)]
#[error("cut")]
struct Cut;

impl Shared {
    fn draw(&self, method: &Method, watch: bool) -> Option<Trouble> {
        let one_in = if watch { ONE_WATCH_IN } else { ONE_IN };
        if self.calm.load(Ordering::Relaxed) || !self.dice.one_in(one_in) {
            return None;
        }
        let mut struck = self.struck.lock().unwrap_or_else(PoisonError::into_inner);
        let possible = troubles(method, watch);
        // what has not happened yet comes first: every trouble is seen, however few requests there are
        let new: Vec<Trouble> = possible.iter().filter(|it| !struck.contains_key(it)).copied().collect();
        let from = if new.is_empty() { possible } else { &new[..] };
        let drawn = usize::try_from(self.dice.below(from.len() as u64)).ok().and_then(|at| from.get(at).copied())?;
        *struck.entry(drawn).or_insert(0) += 1;
        Some(drawn)
    }
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> std::result::Result<Answer, Cut> {
    let watch = request.uri().query().is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
    let trouble = shared.draw(request.method(), watch);
    if let Some(Trouble::Refused(code)) = trouble {
        return status(code);
    }
    let (mut parts, body) = request.into_parts();
    // The upstream client brings its own.
    parts.headers.remove(http::header::HOST);
    parts.headers.remove(http::header::AUTHORIZATION);
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    let answer = shared.upstream.send(Request::from_parts(parts, Body::from(body.to_vec()))).await.map_err(|_| Cut)?;
    match trouble {
        Some(Trouble::DoneBut(code)) => status(code),
        Some(Trouble::DoneAndCut) => Err(Cut),
        other => {
            let end = watch.then_some(if other == Some(Trouble::ShortWatch) { SHORT_WATCH } else { WATCH });
            let (mut parts, body) = answer.into_parts();
            parts.headers.remove(http::header::TRANSFER_ENCODING);
            let frames = http_body_util::BodyStream::new(body).map(|frame| frame.map_err(|_| Cut));
            let frames: futures::stream::BoxStream<'static, std::result::Result<Frame<Bytes>, Cut>> = match end {
                None => frames.boxed(),
                Some(after) => frames.take_until(SystemClock.sleep_until(SystemClock.boot() + after)).boxed(),
            };
            Ok(Response::from_parts(parts, BodyExt::boxed_unsync(StreamBody::new(frames))))
        }
    }
}

fn status(code: u16) -> std::result::Result<Answer, Cut> {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": "on purpose"});
    let bytes = Bytes::from(body.to_string());
    let frames = futures::stream::iter([Ok(Frame::data(bytes))]);
    let mut answer = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)));
    *answer.status_mut() = StatusCode::from_u16(code).map_err(|_| Cut)?;
    let headers = answer.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    if matches!(code, 429 | 503) {
        headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
    }
    Ok(answer)
}
