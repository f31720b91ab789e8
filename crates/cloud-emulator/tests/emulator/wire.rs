//! Over a real socket, with a raw client that sees every byte.
use cloud_emulator::kit::clock::CloudClock;
use cloud_emulator::kit::server::{Host, serve};
use cloud_emulator::kit::{Action, CallFilter, EmulatedCloud, Fault, Match, Settings};
use cloud_emulator::sample::SampleCloud;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

struct Served {
    host: Arc<Host>,
    address: SocketAddr,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}
impl Served {
    async fn start() -> Self {
        let mut cloud = SampleCloud::new(Settings::default(), 1);
        cloud.kit_mut().admit("alice", "secret-1");
        let host = Host::new(Box::new(cloud), CloudClock::REAL, Some("boss".to_owned()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(listener, Arc::clone(&host), stop.clone()));
        Served { host, address, stop, task }
    }
    fn fault(&self, action: Action) {
        self.host.with(|cloud, _| cloud.kit_mut().faults.add(Fault::once(Match::default(), action)));
    }
    fn things(&self) -> usize {
        self.host.with(|cloud, clock| cloud.truth(clock.now()).len())
    }
    /// Every byte until the server closes the connection. A reset counts as an end, too.
    async fn bytes(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8(bytes).unwrap()
    }
    async fn create(&self) -> String {
        let body = r#"{"name": "d", "size_gb": 1}"#;
        self.bytes(&raw("POST", "/v1/disks", "secret-1", body)).await
    }
}
/// Waits for what must come; the bound only turns a test that would hang into one that fails.
async fn until(what: &str, mut come: impl FnMut() -> bool) {
    let waiting = async {
        while !come() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect(what);
}
fn raw(method: &str, path: &str, token: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: cloud\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_call_and_its_reply() {
    let served = Served::start().await;
    let reply = served.create().await;
    assert!(reply.starts_with("HTTP/1.1 201 Created\r\n"), "{reply}");
    assert_eq!(reply.to_lowercase().matches("\r\ndate: ").count(), 1, "{reply}");
    assert!(reply.ends_with('}') && reply.contains("\"kind\":\"disk\""), "{reply}");
}

#[tokio::test]
async fn a_dropped_reply_is_not_a_byte_and_the_thing_is_there() {
    let served = Served::start().await;
    served.fault(Action::Cut { effect: true });
    assert_eq!(served.create().await, "");
    assert_eq!(served.things(), 1);
}

#[tokio::test]
async fn a_cut_before_is_not_a_byte_and_nothing_is_there() {
    let served = Served::start().await;
    served.fault(Action::Cut { effect: false });
    assert_eq!(served.create().await, "");
    assert_eq!(served.things(), 0);
}

#[tokio::test]
async fn a_truncated_reply_ends_in_the_middle_of_its_body() {
    let served = Served::start().await;
    served.fault(Action::Truncated);
    let reply = served.create().await;
    let (head, body) = reply.split_once("\r\n\r\n").expect("a whole head");
    let promised: usize = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    assert!(head.starts_with("HTTP/1.1 201"), "{head}");
    assert_eq!(body.len(), promised / 2);
    assert_eq!(served.things(), 1);
}

#[tokio::test]
async fn slow_and_delayed_replies_arrive_whole() {
    let served = Served::start().await;
    for action in [Action::Slow { ms: 20 }, Action::Delay { ms: 20 }] {
        served.fault(action);
        let reply = served.create().await;
        assert!(reply.starts_with("HTTP/1.1 201") && reply.ends_with('}'), "{reply}");
    }
}

#[tokio::test]
async fn silence_ends_without_a_byte() {
    let served = Served::start().await;
    served.fault(Action::Hang { ms: 20, effect: true });
    assert_eq!(served.create().await, "");
    assert_eq!(served.things(), 1);
}

#[tokio::test]
async fn a_late_call_is_carried_out_though_its_client_has_gone() {
    let served = Served::start().await;
    served.fault(Action::Late { ms: 50 });
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let body = r#"{"name": "d", "size_gb": 1}"#;
    stream.write_all(raw("POST", "/v1/disks", "secret-1", body).as_bytes()).await.unwrap();
    let logged = || served.host.with(|cloud, _| cloud.kit().calls.latest());
    until("the call has come", || logged() > 0).await;
    assert_eq!(served.things(), 0, "not yet");
    drop(stream);
    let carried_out = CallFilter { effect: Some(true), ..CallFilter::default() };
    let done = || served.host.with(|cloud, _| cloud.kit().calls.count(&carried_out)) > 0;
    until("the call is carried out", done).await;
    assert_eq!(served.things(), 1);
}

#[tokio::test]
async fn a_connection_serves_several_calls() {
    let served = Served::start().await;
    let get = "GET /v1/whoami HTTP/1.1\r\nHost: cloud\r\nAuthorization: Bearer secret-1\r\n\r\n";
    let reply = served.bytes(&format!("{get}{get}{}", raw("GET", "/v1/whoami", "secret-1", ""))).await;
    assert_eq!(reply.matches("HTTP/1.1 200 OK").count(), 3, "{reply}");
}

#[tokio::test]
async fn the_administration_wants_its_own_token() {
    let served = Served::start().await;
    for (token, status) in [("boss", "200"), ("secret-1", "401"), ("", "401")] {
        let reply = served.bytes(&raw("GET", "/admin/things", token, "")).await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{token}: {reply}");
    }
    let advance = raw("POST", "/admin/clock", "boss", r#"{"advance_ms": 1000}"#);
    assert!(served.bytes(&advance).await.contains("\"now\""));
    assert!(served.bytes(&raw("GET", "/v1/disks", "boss", "")).await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn a_stop_lets_an_open_call_end() {
    let served = Served::start().await;
    served.fault(Action::Delay { ms: 50 });
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(raw("POST", "/v1/disks", "secret-1", r#"{"name": "d", "size_gb": 1}"#).as_bytes()).await.unwrap();
    until("the disk is made", || served.things() > 0).await;
    served.stop.cancel();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 201"), "{reply}");
    served.task.await.unwrap().unwrap();
    assert!(TcpStream::connect(served.address).await.is_err(), "nobody listens any more");
}
