//! The client against recorded HTTP, written by hand from the cloud's page: what is sent, and what each answer means.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use async_trait::async_trait;
use common::clock::{Boot, Clock, SharedClock, SystemClock};
use common::engine::estate::{Fault, Outcome};
use common::names::reason;
use common::transport::{Request, Response, Transport, TransportError};
use sample_controller::client::{Client, Limits};
use sample_controller::cloud::{Attributes, Cloud, Creation, Kind, State, Tags};
use sample_controller::credentials::Token;
use sample_controller::wire::QUOTA_EXCEEDED;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Answer = Result<Response, TransportError>;
type Check = Box<dyn Fn(&Fault) -> bool>;

/// Answers in order, and keeps what was asked.
#[derive(Default)]
struct Recorded {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Request>>,
}
#[async_trait]
impl Transport for Recorded {
    async fn exchange(&self, request: Request) -> Answer {
        self.asked.lock().unwrap().push(request);
        self.answers.lock().unwrap().pop_front().expect("an answer for every request")
    }
}
impl Recorded {
    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|r| format!("{} {}", r.method(), r.uri().path_and_query().unwrap())).collect()
    }
    fn body(&self, n: usize) -> Value {
        serde_json::from_slice(self.asked.lock().unwrap()[n].body()).unwrap()
    }
    fn header(&self, n: usize, name: &str) -> Option<String> {
        self.asked.lock().unwrap()[n].headers().get(name).map(|v| v.to_str().unwrap().to_owned())
    }
}
fn client(answers: impl IntoIterator<Item = Answer>) -> (Client, Arc<Recorded>) {
    let recorded = Arc::new(Recorded { answers: Mutex::new(answers.into_iter().collect()), ..Recorded::default() });
    let clock: SharedClock = Arc::new(SystemClock);
    let limits = Limits { pause: Duration::ZERO, ..Limits::default() };
    (Client::new(recorded.clone(), clock, "http://cloud.test/", Token::new("s3cret\n"), limits), recorded)
}
#[allow(clippy::unnecessary_wraps)] // an answer is what a transport returns, and a transport can fail
fn reply(status: u16, body: impl Display) -> Answer {
    let response = http::Response::builder().status(status);
    let response = response.header("Date", "Mon, 16 Nov 2026 04:05:06 GMT").header("X-Request-Id", "req-7");
    Ok(response.body(body.to_string().into_bytes()).unwrap())
}
fn error(status: u16, code: &str) -> Answer {
    reply(status, json!({"code": code, "message": "words of the cloud"}))
}
fn no_reply() -> Answer {
    Err(TransportError::NoReply("cut".into()))
}
fn network(id: &str) -> Value {
    json!({"id": id, "kind": "network", "created_at": "2026-11-16T04:05:06.007Z", "created_by": "me", "state": "ready",
           "state_reason": null, "tags": {"a": "b"}, "name": "n", "cidr": "10.0.0.0/16", "brand_new_field": 1})
}
fn later() -> Boot {
    SystemClock.boot() + Duration::from_hours(1)
}
fn creation<'a>(fields: &'a Value, tags: Option<&'a Tags>, token: Option<&'a str>) -> Creation<'a> {
    Creation { fields, tags, token, not_after: later() }
}

#[tokio::test]
async fn a_list_follows_the_pages_and_is_dated_by_the_first_reply() {
    let mut second = reply(200, json!({"items": [network("network-2"), network("network-1")], "next": null})).unwrap();
    second.headers_mut().insert("Date", "Mon, 16 Nov 2026 05:00:00 GMT".parse().unwrap());
    let first = reply(200, json!({"items": [network("network-1")], "next": "a/b=&c"}));
    let (client, recorded) = client([first, Ok(second)]);

    let list = client.list(Kind::Network).await.unwrap();

    assert_eq!(recorded.asked(), ["GET /v1/networks?limit=100", "GET /v1/networks?limit=100&page=a%2Fb%3D%26c"]);
    assert_eq!(list.date.to_string(), "2026-11-16T04:05:06Z");
    let ids: Vec<_> = list.items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids, ["network-1", "network-2"], "a thing shown on two pages is one thing");
    assert_eq!(recorded.header(0, "authorization").as_deref(), Some("Bearer s3cret"));
    assert_eq!(list.items[0].attributes, Attributes::Network { name: "n".into(), cidr: "10.0.0.0/16".into() });
    assert_eq!(list.items[0].created_at.to_string(), "2026-11-16T04:05:06.007Z");
}

#[tokio::test]
async fn a_list_that_cannot_be_read_whole_is_no_list() {
    let page = |item: Value| reply(200, json!({"items": [item], "next": null}));
    let without = |field: &str| {
        let mut thing = network("network-1");
        thing.as_object_mut().unwrap().remove(field);
        thing
    };
    let mut odd_state = network("network-1");
    odd_state["state"] = json!("melting");
    let mut odd_kind = network("network-1");
    odd_kind["kind"] = json!("disk");
    let mut undated = page(network("network-1")).unwrap();
    undated.headers_mut().remove("Date");
    let cases = [
        page(without("tags")),
        page(without("name")),
        page(without("created_at")),
        page(odd_state),
        page(odd_kind),
        Ok(undated),
        reply(200, "<html>"),
        reply(204, ""),
    ];
    for case in cases {
        let described = format!("{case:?}");
        // A reply that is no list is asked for again; the same comes back.
        let (client, _) = client([case.clone(), case.clone(), case]);
        assert!(matches!(client.list(Kind::Network).await, Err(Fault::Transient(_))), "{described}");
    }
}

#[tokio::test]
async fn a_read_is_repeated_a_little_and_a_page_in_the_middle_too() {
    let good = || reply(200, json!({"items": [], "next": null}));
    let (client, recorded) = client([no_reply(), error(503, "Internal"), good()]);
    assert!(client.list(Kind::Disk).await.unwrap().items.is_empty());
    assert_eq!(recorded.asked().len(), 3);

    let (client, recorded) = super_client(4);
    assert!(matches!(client.list(Kind::Disk).await, Err(Fault::Transient(_))));
    assert_eq!(recorded.asked().len(), 3, "one try and two repetitions");
}
fn super_client(n: usize) -> (Client, Arc<Recorded>) {
    client((0..n).map(|_| no_reply()))
}

#[tokio::test]
async fn only_the_clouds_own_word_makes_a_thing_absent() {
    let (named, _) = client([error(404, "NotFound")]);
    assert_eq!(named.get(Kind::Disk, "disk-1").await, Ok(None));
    let (page, _) = client((0..3).map(|_| reply(404, "<html>no such page</html>")));
    assert!(matches!(page.get(Kind::Disk, "disk-1").await, Err(Fault::Transient(_))));
    let (other, _) = client((0..3).map(|_| error(404, "NoSuchRoute")));
    assert!(matches!(other.get(Kind::Disk, "disk-1").await, Err(Fault::Transient(_))));
}

#[tokio::test]
async fn a_create_is_one_call_with_tags_and_token() {
    let (client, recorded) = client([reply(201, network("network-1"))]);
    let tags = Tags::from([("k".to_owned(), "v".to_owned())]);
    let fields = json!({"name": "n", "cidr": "10.0.0.0/16"});
    let outcome = client.create(Kind::Network, creation(&fields, Some(&tags), Some("tok-1"))).await;
    assert_eq!(outcome, Outcome::Done("network-1".into()));
    assert_eq!(recorded.asked(), ["POST /v1/networks"]);
    assert_eq!(recorded.body(0), json!({"name": "n", "cidr": "10.0.0.0/16", "tags": {"k": "v"}}));
    assert_eq!(recorded.header(0, "idempotency-key").as_deref(), Some("tok-1"));
    assert_eq!(recorded.header(0, "content-type").as_deref(), Some("application/json"));
}

#[tokio::test]
async fn a_token_used_before_brings_the_thing_that_is_there() {
    let (client, _) = client([reply(200, network("network-1"))]);
    let outcome = client.create(Kind::Network, creation(&json!({}), None, Some("tok-1"))).await;
    assert_eq!(outcome, Outcome::Done("network-1".into()));
}

#[tokio::test]
async fn a_create_after_its_window_is_not_sent() {
    let (client, recorded) = client([]);
    let late = Creation { not_after: Boot::default(), ..creation(&Value::Null, None, None) };
    assert!(matches!(client.create(Kind::Disk, late).await, Outcome::Refused(Fault::Transient(_))));
    assert!(recorded.asked().is_empty());
}

/// Every answer to a create, and what may be believed after it.
#[tokio::test]
async fn each_answer_to_a_create_says_whether_anything_happened() {
    let refused = |reason| move |fault: &Fault| matches!(fault, Fault::Terminal { reason: r, .. } if *r == reason);
    let transient = |fault: &Fault| matches!(fault, Fault::Transient(_));
    let denied = |fault: &Fault| matches!(fault, Fault::Denied(what) if what.contains("words of the cloud"));
    let surely: [(Answer, Check); 10] = [
        (error(400, "InvalidRequest"), Box::new(refused(reason::INVALID_REQUEST))),
        (error(401, "Unauthorized"), Box::new(denied)),
        (error(403, "Forbidden"), Box::new(denied)),
        (error(403, "QuotaExceeded"), Box::new(refused(QUOTA_EXCEEDED))),
        (error(404, "NotFound"), Box::new(transient)),
        (error(409, "InUse"), Box::new(transient)),
        (error(409, "KeyTaken"), Box::new(transient)),
        (error(409, "TokenMismatch"), Box::new(refused(reason::INVALID_REQUEST))),
        (error(429, "TooManyRequests"), Box::new(|fault| *fault == Fault::Throttled(Duration::from_secs(5)))),
        (Err(TransportError::NotSent("refused".into())), Box::new(transient)),
    ];
    for (answer, check) in surely {
        let (client, recorded) = client([answer.clone()]);
        match client.create(Kind::Disk, creation(&json!({}), None, None)).await {
            Outcome::Refused(fault) => assert!(check(&fault), "{answer:?} became {fault:?}"),
            other => panic!("{answer:?} became {other:?}"),
        }
        assert_eq!(recorded.asked().len(), 1, "a write is never repeated here");
    }
    let perhaps = [
        error(500, "InternalError"),
        error(502, "BadGateway"),
        error(503, "Unavailable"),
        error(504, "Timeout"),
        reply(403, "<html>a proxy speaks</html>"),
        reply(408, ""),
        reply(302, ""),
        reply(201, "{\"id\": \"disk-"),
        reply(200, network("network-1")),
        no_reply(),
    ];
    for answer in perhaps {
        let (client, recorded) = client([answer.clone()]);
        let outcome = client.create(Kind::Disk, creation(&json!({}), None, None)).await;
        assert!(matches!(outcome, Outcome::Unknown(_)), "{answer:?} became {outcome:?}");
        assert_eq!(recorded.asked().len(), 1, "a write is never repeated here");
    }
}

#[tokio::test]
async fn the_cloud_says_how_long_to_wait_within_reason() {
    for (told, waits) in [("7", 7), ("86400", 600), ("soon", 5)] {
        let mut answer = error(429, "TooManyRequests").unwrap();
        answer.headers_mut().insert("Retry-After", told.parse().unwrap());
        let (client, recorded) = client([Ok(answer)]);
        assert_eq!(client.list(Kind::Disk).await, Err(Fault::Throttled(Duration::from_secs(waits))));
        assert_eq!(recorded.asked().len(), 1, "who is told to wait does not ask again at once");
    }
}

#[tokio::test]
async fn tags_are_set_and_taken_off_by_one_call_that_leaves_the_others() {
    let (client, recorded) = client([reply(200, network("network-1")), error(404, "NotFound"), error(500, "Internal")]);
    let set = Tags::from([("k".to_owned(), "v".to_owned())]);
    assert_eq!(client.tag(Kind::Network, "network-1", &set, &["old"]).await, Outcome::Done(()));
    assert_eq!(recorded.asked()[0], "PUT /v1/networks/network-1/tags");
    assert_eq!(recorded.body(0), json!({"set": {"k": "v"}, "remove": ["old"]}));
    let gone = client.tag(Kind::Network, "network-1", &set, &[]).await;
    assert!(matches!(gone, Outcome::Refused(Fault::Transient(_))));
    assert!(matches!(client.tag(Kind::Network, "network-1", &set, &[]).await, Outcome::Unknown(_)));
}

#[tokio::test]
async fn deleting_what_is_not_there_is_done_and_what_is_in_use_waits() {
    let (client, recorded) =
        client([reply(202, network("network-1")), error(404, "NotFound"), error(409, "InUse"), no_reply()]);
    assert_eq!(client.delete(Kind::Network, "network-1").await, Outcome::Done(()));
    assert_eq!(client.delete(Kind::Network, "network-1").await, Outcome::Done(()));
    assert!(matches!(client.delete(Kind::Network, "network-1").await, Outcome::Refused(Fault::Transient(_))));
    assert!(matches!(client.delete(Kind::Network, "network-1").await, Outcome::Unknown(_)));
    assert_eq!(recorded.asked()[0], "DELETE /v1/networks/network-1");
}

#[tokio::test]
async fn a_flavor_is_patched_and_an_id_cannot_leave_its_place_in_the_path() {
    let (client, recorded) = client([error(404, "NotFound")]);
    let outcome = client.resize("../networks/x?y", "large").await;
    assert!(matches!(outcome, Outcome::Refused(Fault::Transient(_))));
    assert_eq!(recorded.asked(), ["PATCH /v1/machines/..%2Fnetworks%2Fx%3Fy"]);
    assert_eq!(recorded.body(0), json!({"flavor": "large"}));
}

#[tokio::test]
async fn messages_carry_the_request_id_and_nothing_carries_the_token() {
    let (client, recorded) =
        client([error(403, "Forbidden"), reply(200, json!({"account": "a", "region": "r", "principal": "p"}))]);
    let Err(Fault::Denied(what)) = client.whoami().await else { panic!("a 403 is a denial") };
    assert!(what.contains("req-7") && !what.contains("s3cret"));
    let who = client.whoami().await.unwrap();
    assert_eq!((who.account.as_str(), who.region.as_str(), who.principal.as_str()), ("a", "r", "p"));
    let shown = format!("{:?} {:?}", recorded.asked.lock().unwrap(), Token::new("s3cret"));
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn states_and_optional_fields_are_read_as_they_are() {
    let machine = |state: &str, disk: Value| {
        json!({"id": "machine-1", "kind": "machine", "created_at": "2026-11-16T04:05:06.000Z", "created_by": "me",
               "state": state, "state_reason": "why", "tags": {}, "name": "m", "network_id": "network-1", "disk_id": disk,
               "flavor": "small"})
    };
    let cases = [
        ("building", State::Building),
        ("ready", State::Ready),
        ("failed", State::Failed),
        ("deleting", State::Deleting),
    ];
    for (word, state) in cases {
        let (client, _) = client([reply(200, machine(word, Value::Null)), reply(200, machine(word, json!("disk-1")))]);
        let without = client.get(Kind::Machine, "machine-1").await.unwrap().unwrap();
        assert_eq!((without.state, without.state_reason.as_deref()), (state, Some("why")));
        assert!(!without.attributes.body().as_object().unwrap().contains_key("disk_id"));
        let with = client.get(Kind::Machine, "machine-1").await.unwrap().unwrap();
        assert_eq!(with.attributes.body()["disk_id"], "disk-1");
    }
}
