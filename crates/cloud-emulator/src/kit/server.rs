//! A cloud over HTTP/1.1. The connection is driven by hand so that a reply can be lost as networks lose it: an error out of the
//! service closes the connection without a status line, an error out of a body closes it in mid-reply.
use super::clock::CloudClock;
use super::{Delivery, EmulatedCloud, Handled, Request, Spared, admin};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderValue};
use http::{StatusCode, request};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const LONGEST_BODY: usize = 1 << 20;
const PIECES: u32 = 10;
/// How long open calls may go on after a stop.
const GRACE: Duration = Duration::from_secs(2);
/// A pause before a connection is cut, so that what was sent before has left.
const BREATH: Duration = Duration::from_millis(20);

/// A cloud, its clock, and the key to its administration.
pub struct Host {
    state: Mutex<State>,
    admin_token: Option<String>,
}
struct State {
    cloud: Box<dyn EmulatedCloud>,
    clock: CloudClock,
}
impl Host {
    /// Without an admin token there is no administration.
    pub fn new(cloud: Box<dyn EmulatedCloud>, clock: CloudClock, admin_token: Option<String>) -> Arc<Self> {
        Arc::new(Host { state: Mutex::new(State { cloud, clock }), admin_token })
    }
    /// Looks at the cloud, or changes it, between two calls.
    pub fn with<T>(&self, act: impl FnOnce(&mut dyn EmulatedCloud, &mut CloudClock) -> T) -> T {
        let mut state = self.state();
        let State { cloud, clock } = &mut *state;
        act(cloud.as_mut(), clock)
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn handle(&self, request: Request) -> Handled {
        self.with(|cloud, clock| cloud.handle(clock.now(), request))
    }
    fn administer(&self, request: &Request) -> super::Response {
        let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let right = self.admin_token.as_ref().map(|token| format!("Bearer {token}"));
        if right.is_none() || given != right.as_deref() {
            let mut response = super::Response::new(br#"{"message": "the admin token is missing or wrong"}"#.to_vec());
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            return response;
        }
        self.with(|cloud, clock| admin::administer(cloud, clock, request))
    }
}

/// Serves until told to stop; then lets open calls end, for a short while.
pub async fn serve(listener: TcpListener, host: Arc<Host>, stop: CancellationToken) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&host), stop.clone()));
                }
                // Out of file descriptors, or a client that left the queue: neither ends the service.
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    pause(BREATH).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("some calls were still open");
    }
    Ok(())
}

async fn connection(stream: TcpStream, host: Arc<Host>, stop: CancellationToken) {
    let answering = service_fn(move |request| exchange(Arc::clone(&host), request));
    let serving = http1::Builder::new().auto_date_header(false).serve_connection(TokioIo::new(stream), answering);
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// The connection ends here, on purpose.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("cut on purpose")]
struct Cut;

async fn exchange(host: Arc<Host>, incoming: http::Request<Incoming>) -> Result<http::Response<Reply>, Cut> {
    let (parts, body) = incoming.into_parts();
    let body = Limited::new(body, LONGEST_BODY).collect().await.map_err(|_| Cut)?.to_bytes().to_vec();
    if parts.uri.path().starts_with("/admin/") {
        let response = host.administer(&Request::from_parts(parts, body));
        return Ok(response.map(Reply::whole));
    }
    let again = Again::of(&parts, &body);
    let Handled { response, delivery } = host.handle(Request::from_parts(parts, body));
    match delivery {
        Delivery::Deliver => Ok(response.map(Reply::whole)),
        Delivery::DropReply | Delivery::CutBefore => Err(Cut),
        Delivery::Silence(time) => {
            pause(time).await;
            Err(Cut)
        }
        Delivery::Delay(time) => {
            pause(time).await;
            Ok(response.map(Reply::whole))
        }
        Delivery::CutMidBody => Ok(in_pieces(response, |body, pieces| async move {
            let _ = pieces.send(Ok(body.slice(..body.len() / 2))).await;
            pause(BREATH).await;
            let _ = pieces.send(Err(Cut)).await;
        })),
        Delivery::Slow(time) => Ok(in_pieces(response, move |body, pieces| async move {
            let step = body.len().div_ceil(PIECES as usize).max(1);
            for from in (0..body.len()).step_by(step) {
                pause(time / PIECES).await;
                let _ = pieces.send(Ok(body.slice(from..(from + step).min(body.len())))).await;
            }
        })),
        // In a task of its own: the call is carried out even if the client hangs up before.
        Delivery::Postpone(time) => {
            let late = tokio::spawn(async move {
                pause(time).await;
                host.handle(again.request()).response
            });
            late.await.map(|response| response.map(Reply::whole)).map_err(|_| Cut)
        }
    }
}

/// A request that may have to be carried out later.
struct Again {
    parts: request::Parts,
    body: Vec<u8>,
}
impl Again {
    fn of(parts: &request::Parts, body: &[u8]) -> Self {
        Again { parts: parts.clone(), body: body.to_vec() }
    }
    fn request(self) -> Request {
        let mut request = Request::from_parts(self.parts, self.body);
        request.extensions_mut().insert(Spared);
        request
    }
}

/// A reply's body: at once, or piece by piece.
enum Reply {
    Whole(Option<Bytes>),
    Pieces(mpsc::Receiver<Result<Bytes, Cut>>),
}
impl Reply {
    fn whole(body: Vec<u8>) -> Self {
        Reply::Whole(Some(Bytes::from(body)))
    }
}
impl Body for Reply {
    type Data = Bytes;
    type Error = Cut;
    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Reply::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Reply::Pieces(pieces) => pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data))),
        }
    }
    fn is_end_stream(&self) -> bool {
        matches!(self, Reply::Whole(None))
    }
    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Reply::Whole(body) => hyper::body::SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64),
            Reply::Pieces(_) => hyper::body::SizeHint::default(),
        }
    }
}

/// A reply that promises its whole length and is then fed by `feed`.
fn in_pieces<F>(
    response: super::Response,
    feed: impl FnOnce(Bytes, mpsc::Sender<Result<Bytes, Cut>>) -> F,
) -> http::Response<Reply>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (parts, body) = response.into_parts();
    let (sender, receiver) = mpsc::channel(1);
    let mut response = http::Response::from_parts(parts, Reply::Pieces(receiver));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    tokio::spawn(feed(Bytes::from(body), sender));
    response
}

#[allow(clippy::disallowed_methods)] // a wire that is slow on purpose; nothing decides by it
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
