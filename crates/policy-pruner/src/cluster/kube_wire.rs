//! Requests over kube's client: paced, fenced, bounded in time, and repeated where the API server says that nothing was done.
use super::pace::{self, Pace, Sign};
use super::wire::{CALL, Call, Trouble, Verb, Wanted, Wire};
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::fence::Fence;
use common::runtime::object::Arrived;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

/// Told to come back later, a request is repeated so often before its pass hears of it.
const MOST_WAITS: u32 = 5;
/// Bytes of an answer that is no Status, as people get to see it.
const MOST_TEXT: usize = 512;

/// Over kube's client. Nothing is changed without leadership that outlasts the request.
pub struct KubeWire {
    client: Client,
    clock: SharedClock,
    fence: Arc<dyn Fence>,
    pace: Pace,
}
impl KubeWire {
    /// A wire.
    pub fn new(client: Client, clock: SharedClock, fence: Arc<dyn Fence>) -> Self {
        KubeWire { client, clock, fence, pace: Pace::default() }
    }

    /// One request, one answer.
    async fn once(&self, call: &Call) -> Reply {
        let ends = self.clock.boot() + CALL;
        if call.mutates() && !self.fence.holds_until(ends) {
            return Reply::none("leadership does not outlast the request", Sign::None);
        }
        let request = match request(call) {
            Ok(request) => request,
            Err(why) => return Reply::none(&why, Sign::None),
        };
        tokio::select! {
            reply = self.send(request, call.wanted) => reply,
            () = self.clock.sleep_until(ends) => Reply::none("no reply in time", Sign::TooMuch),
        }
    }
    async fn send(&self, request: http::Request<Body>, wanted: Wanted) -> Reply {
        let reply = match self.client.send(request).await {
            Ok(reply) => reply,
            Err(error) => return Reply::none(&error, Sign::None),
        };
        let (code, good) = (reply.status().as_u16(), reply.status().is_success());
        let after = retry_after(reply.headers());
        let body = match reply.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Reply::none(&error, Sign::None),
        };
        let sign = if matches!(code, 429 | 503 | 504) { Sign::TooMuch } else { Sign::Fine };
        let answer = if good {
            // Without the text: it may be a Secret's.
            decode(&body, wanted).map_err(|error| Trouble::silent(format!("unreadable answer: {error}")))
        } else {
            Err(refusal(code, &body))
        };
        Reply { answer, after, sign }
    }
}

/// What a request came to.
struct Reply {
    answer: Result<Value, Trouble>,
    /// The API server asks to wait so long.
    after: Option<Duration>,
    sign: Sign,
}
impl Reply {
    fn none(why: &(impl std::fmt::Display + ?Sized), sign: Sign) -> Self {
        Reply { answer: Err(Trouble::silent(why.to_string())), after: None, sign }
    }
}

#[async_trait]
impl Wire for KubeWire {
    async fn call(&self, call: Call) -> Result<Value, Trouble> {
        let mut place = self.pace.enter().await;
        let mut told_to_wait = 0;
        loop {
            let Reply { answer, after, sign } = self.once(&call).await;
            place.learn(sign);
            match answer {
                // Nothing was carried out, so anything may be repeated. The place is kept: one less asks meanwhile.
                Err(trouble) if trouble.code == 429 && told_to_wait < MOST_WAITS => {
                    told_to_wait += 1;
                    let wait = pace::wait(after, told_to_wait);
                    debug!(at_once = self.pace.limit(), ?wait, "the API server asks to wait");
                    self.clock.sleep_until(self.clock.boot() + wait).await;
                }
                answer => return answer,
            }
        }
    }
}

fn request(call: &Call) -> Result<http::Request<Body>, String> {
    let body = call.body.as_ref().map(serde_json::to_vec).transpose().map_err(|e| e.to_string())?.unwrap_or_default();
    let content = if call.verb == Verb::Patch { "application/json-patch+json" } else { "application/json" };
    http::Request::builder()
        .method(call.verb.method())
        .uri(call.uri())
        .header(http::header::CONTENT_TYPE, content)
        .header(http::header::ACCEPT, "application/json")
        .body(Body::from(body))
        .map_err(|e| e.to_string())
}

fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn decode(body: &[u8], wanted: Wanted) -> serde_json::Result<Value> {
    #[derive(Serialize, Deserialize)]
    struct Head {
        metadata: HeadMeta,
    }
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct HeadMeta {
        namespace: String,
        name: String,
        uid: String,
        resource_version: String,
    }
    match wanted {
        Wanted::Whole => serde_json::from_slice(body),
        Wanted::Slim => serde_json::from_slice::<Arrived>(body).map(|arrived| arrived.value),
        Wanted::Head => serde_json::from_slice::<Head>(body).and_then(serde_json::to_value),
    }
}

/// A Status, or what stands in for one: priority and fairness answers in plain words.
fn refusal(code: u16, body: &[u8]) -> Trouble {
    #[derive(Deserialize)]
    struct Status {
        #[serde(default)]
        reason: String,
        message: String,
        #[serde(default)]
        details: Value,
    }
    if let Ok(status) = serde_json::from_slice::<Status>(body) {
        return Trouble { code, reason: status.reason, message: status.message, details: status.details };
    }
    let text = String::from_utf8_lossy(body.get(..MOST_TEXT).unwrap_or(body)).trim().to_owned();
    Trouble { code, message: text, ..Trouble::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::clock::SystemClock;
    use common::engine::fence::Open;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const BUSY: (u16, &str) = (429, "Too many requests, please try again later.\n");

    /// An API server that answers with each of these in turn, and counts.
    fn wire(answers: &'static [(u16, &'static str)]) -> (KubeWire, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let server = tower::service_fn(move |_: http::Request<Body>| {
            let (code, text) = answers[count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)];
            let reply = http::Response::builder().status(code).header("retry-after", "1");
            std::future::ready(Ok::<_, std::convert::Infallible>(
                reply.body(Body::from(text.as_bytes().to_vec())).unwrap(),
            ))
        });
        let wire = KubeWire::new(Client::new(server, "default"), Arc::new(SystemClock), Arc::new(Open));
        (wire, asked)
    }
    fn read() -> Call {
        Call::new(Verb::Get, "/api/v1/namespaces/n/pods/p")
    }

    #[tokio::test(start_paused = true)]
    async fn told_to_wait_it_waits_asks_again_and_asks_less() {
        let (wire, asked) = wire(&[BUSY, BUSY, (200, "{\"a\":1}")]);
        let before = wire.pace.limit();
        let began = tokio::time::Instant::now();
        assert_eq!(wire.call(read()).await.unwrap()["a"], 1);
        assert_eq!(asked.load(Ordering::SeqCst), 3);
        assert!(began.elapsed() >= Duration::from_secs(2), "a second each time, as told");
        assert!(wire.pace.limit() < before / 2.0, "halved twice: {}", wire.pace.limit());
    }
    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_always_says_wait_is_left_alone_in_the_end() {
        let (wire, asked) = wire(&[BUSY]);
        let trouble = wire.call(read()).await.unwrap_err();
        assert_eq!(trouble.code, 429, "{trouble:?}");
        assert_eq!(trouble.message, "Too many requests, please try again later.");
        assert_eq!(asked.load(Ordering::SeqCst), 6);
    }
    #[tokio::test]
    async fn what_may_have_been_carried_out_is_not_repeated() {
        let (wire, asked) = wire(&[(504, "{\"message\":\"timeout\"}")]);
        let trouble = wire.call(Call::new(Verb::Post, "/x")).await.unwrap_err();
        assert_eq!((trouble.code, trouble.message.as_str(), asked.load(Ordering::SeqCst)), (504, "timeout", 1));
        assert!(wire.pace.limit() < 8.0, "but it is a sign of too much");
    }
    #[tokio::test]
    async fn an_answer_that_cannot_be_read_is_not_repeated_to_anybody() {
        let (wire, _) = wire(&[(200, "{\"data\": \"hunter2\"")]);
        let trouble = wire.call(read()).await.unwrap_err();
        assert!(!trouble.message.contains("hunter2"), "{trouble}");
    }
    #[test]
    fn no_more_is_built_than_is_wanted() {
        let body = br#"{"kind":"Pod","metadata":{"name":"p","uid":"u","resourceVersion":"7","managedFields":[{"manager":"m"}]},"spec":{"a":1}}"#;
        let whole = decode(body, Wanted::Whole).unwrap();
        assert_eq!(whole["metadata"]["managedFields"][0]["manager"], "m");
        let slim = decode(body, Wanted::Slim).unwrap();
        assert!(
            slim["metadata"]["managedFields"].is_null() && slim["spec"]["a"] == 1 && slim["metadata"]["uid"] == "u"
        );
        let head = decode(body, Wanted::Head).unwrap();
        assert_eq!(
            head,
            serde_json::json!({"metadata": {"namespace": "", "name": "p", "uid": "u", "resourceVersion": "7"}})
        );
        let status = br#"{"kind":"Status","apiVersion":"v1","status":"Success","metadata":{}}"#;
        assert_eq!(decode(status, Wanted::Slim).unwrap()["kind"], "Status");
    }
    #[test]
    fn a_status_is_taken_apart() {
        let body = br#"{"kind":"Status","message":"pods \"p\" not found","reason":"NotFound","details":{"kind":"pods"},"code":404}"#;
        let trouble = refusal(404, body);
        assert_eq!((trouble.reason.as_str(), trouble.message.as_str()), ("NotFound", "pods \"p\" not found"));
        assert_eq!(trouble.details["kind"], "pods");
        assert!(refusal(500, &vec![b'x'; 9000]).message.len() <= MOST_TEXT);
    }
}
