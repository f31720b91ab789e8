use super::*;
use crate::clock::Clock;
use axum::body::Body as Reply;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

fn at(seconds: u64) -> Boot {
    Boot(Duration::from_secs(seconds))
}
fn sight(holder: &str, since: u64) -> Sight {
    let record = Record { resource_version: "1".into(), holder: holder.into(), duration: Duration::from_secs(30) };
    Sight { record, since: at(since) }
}

#[test]
fn a_lease_is_taken_when_free_ours_or_unchanged_for_its_whole_duration() {
    assert_eq!(decide("me", None, at(0)), Step::Create);
    assert_eq!(decide("me", Some(&sight("", 0)), at(0)), Step::Take);
    assert_eq!(decide("me", Some(&sight("me", 0)), at(0)), Step::Take);
    assert_eq!(decide("me", Some(&sight("you", 10)), at(39)), Step::Wait(at(40)));
    assert_eq!(decide("me", Some(&sight("you", 10)), at(40)), Step::Take);
}
#[test]
fn a_renewed_record_starts_the_wait_anew() {
    let old = sight("you", 0);
    let same = Sight::update(Some(old.clone()), old.record.clone(), at(20));
    assert_eq!(same.since, at(0));
    let renewed = Record { resource_version: "2".into(), ..old.record.clone() };
    assert_eq!(Sight::update(Some(old), renewed, at(20)).since, at(20));
}
#[test]
fn terms_must_leave_room_for_a_call() {
    assert!(Terms::default().check(Duration::from_secs(15)).is_ok());
    assert!(Terms::default().check(Duration::from_secs(16)).is_err());
    assert!(Terms { retry: Duration::from_secs(15), ..Terms::default() }.check(Duration::ZERO).is_err());
}

#[test]
fn the_end_of_a_lease_is_not_slept_through() {
    let (retry, seen) = (Duration::from_secs(3), sight("you", 0));
    assert_eq!(next_look("me", Some(&seen), at(10), retry), at(13));
    assert_eq!(next_look("me", Some(&seen), at(28), retry), at(30));
    assert_eq!(next_look("me", Some(&seen), at(30), retry), at(33));
    assert_eq!(next_look("me", None, at(0), retry), at(3));
}

/// A clock the test moves; sleepers are woken by every step.
#[derive(Default)]
struct Hand(Mutex<Duration>, Arc<tokio::sync::Notify>);
impl Hand {
    fn advance(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
        self.1.notify_waiters();
    }
}
struct HandClock(Arc<Hand>);
impl Clock for HandClock {
    fn boot(&self) -> Boot {
        Boot(*self.0.0.lock().unwrap())
    }
    fn wall(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
    fn sleep_until(&self, until: Boot) -> BoxFuture<'static, ()> {
        let hand = self.0.clone();
        Box::pin(async move {
            loop {
                let woken = hand.1.notified();
                if *hand.0.lock().unwrap() >= until.0 {
                    return;
                }
                woken.await;
            }
        })
    }
}

/// One Lease with compare-and-swap, which can be cut off, and watched if there is somebody to tell.
#[derive(Default)]
struct Store {
    lease: Mutex<Option<Value>>,
    cut: AtomicBool,
    log: Mutex<Vec<String>>,
    watch: Option<tokio::sync::broadcast::Sender<Value>>,
    /// Watches stand, and tell nothing.
    mute: AtomicBool,
}
impl Store {
    fn client(self: &Arc<Self>) -> Client {
        let store = self.clone();
        Client::new(
            tower::service_fn(move |request: Request<Body>| {
                let store = store.clone();
                async move { Ok::<_, std::convert::Infallible>(store.answer(request).await) }
            }),
            "default",
        )
    }
    async fn answer(&self, request: Request<Body>) -> Response<Reply> {
        let (head, body) = request.into_parts();
        let body: Value = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap_or_default();
        if self.cut.load(Ordering::SeqCst) {
            return reply(503, &json!({"kind": "Status", "code": 503, "message": "away"}));
        }
        self.log.lock().unwrap().push(format!("{} {}", head.method, head.uri.path()));
        if head.uri.query().is_some_and(|query| query.contains("watch=true")) {
            return self.watched();
        }
        let mut lease = self.lease.lock().unwrap();
        let version = lease.as_ref().map(|l| l["metadata"]["resourceVersion"].clone());
        match (head.method, version) {
            (Method::GET, Some(_)) => reply(200, lease.as_ref().unwrap()),
            (Method::GET | Method::PUT, None) => reply(404, &status(404)),
            (Method::POST, None) => self.stored(&mut lease, body, 1, 201),
            (Method::PUT, Some(version)) if version == body["metadata"]["resourceVersion"] => {
                let next = version.as_str().unwrap().parse::<u64>().unwrap() + 1;
                self.stored(&mut lease, body, next, 200)
            }
            _ => reply(409, &status(409)),
        }
    }
    fn watched(&self) -> Response<Reply> {
        let Some(watch) = &self.watch else { return reply(403, &status(403)) };
        let told = futures::stream::unfold(watch.subscribe(), async |mut events| {
            let event = events.recv().await.ok()?;
            Some((Ok::<_, std::convert::Infallible>(format!("{event}\n")), events))
        });
        Response::new(Reply::from_stream(told))
    }
    fn stored(&self, lease: &mut Option<Value>, mut body: Value, version: u64, code: u16) -> Response<Reply> {
        body["metadata"]["resourceVersion"] = json!(version.to_string());
        *lease = Some(body.clone());
        if !self.mute.load(Ordering::SeqCst) {
            self.tell("MODIFIED", &body);
        }
        reply(code, &body)
    }
    fn tell(&self, type_: &str, object: &Value) {
        if let Some(watch) = &self.watch {
            let _nobody_listens = watch.send(json!({"type": type_, "object": object}));
        }
    }
    fn holder(&self) -> String {
        self.lease
            .lock()
            .unwrap()
            .as_ref()
            .map_or(String::new(), |l| l["spec"]["holderIdentity"].as_str().unwrap().into())
    }
}
fn status(code: u16) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": "Conflict", "message": "", "details": {"name": "l"}})
}
fn reply(code: u16, body: &Value) -> Response<Reply> {
    Response::builder().status(code).body(Reply::from(body.to_string())).unwrap()
}

fn candidate(store: &Arc<Store>, me: &str, hand: &Arc<Hand>) -> Candidate {
    Candidate::new(store.client(), "n", "l", me.into(), Terms::default(), Arc::new(HandClock(hand.clone())))
}

#[tokio::test]
async fn the_first_creates_the_second_waits_for_the_whole_lease() {
    let (store, hand) = (Arc::new(Store::default()), Arc::new(Hand::default()));
    let (mut one, mut two) = (candidate(&store, "one", &hand), candidate(&store, "two", &hand));
    one.win().await;
    assert_eq!(
        store.log.lock().unwrap()[..2],
        [
            "GET /apis/coordination.k8s.io/v1/namespaces/n/leases/l",
            "POST /apis/coordination.k8s.io/v1/namespaces/n/leases"
        ]
    );
    let fence = one.fence();
    assert!(fence.holds_until(at(28)) && !fence.holds_until(at(29)), "one second is kept back");

    assert_eq!(two.turn(Duration::from_secs(5)).await, Ok(false));
    hand.advance(29);
    assert_eq!(two.turn(Duration::from_secs(5)).await, Ok(false));
    hand.advance(1);
    assert_eq!(two.turn(Duration::from_secs(5)).await, Ok(true));
    assert_eq!(store.holder(), "two");
    assert!(!fence.holds_until(at(30)), "the first may write no more, without having heard of it");
    assert_eq!(one.turn(Duration::from_secs(5)).await, Ok(false));
}

#[tokio::test]
async fn a_renewal_is_one_guarded_write_and_moves_the_deadline() {
    let (store, hand) = (Arc::new(Store::default()), Arc::new(Hand::default()));
    let mut one = candidate(&store, "one", &hand);
    one.win().await;
    hand.advance(10);
    assert_eq!(one.turn(Duration::from_secs(5)).await, Ok(true));
    assert_eq!(store.log.lock().unwrap().len(), 3);
    assert!(store.log.lock().unwrap()[2].starts_with("PUT "));
    assert!(one.fence().holds_until(at(38)) && !one.fence().holds_until(at(39)));
}

#[tokio::test]
async fn a_leader_cut_off_steps_down_before_its_lease_ends() {
    let (store, hand) = (Arc::new(Store::default()), Arc::new(Hand::default()));
    let mut one = candidate(&store, "one", &hand);
    one.win().await;
    let fence = one.fence();
    store.cut.store(true, Ordering::SeqCst);
    let keeping = tokio::spawn(async move { one.keep().await });
    while !keeping.is_finished() {
        hand.advance(1);
        tokio::task::yield_now().await;
    }
    assert!(keeping.await.unwrap().contains("not renewed within 15s"));
    assert!(!fence.holds_until(at(0)));
}

#[tokio::test]
async fn a_released_lease_is_taken_at_once() {
    let (store, hand) = (Arc::new(Store::default()), Arc::new(Hand::default()));
    let (mut one, mut two) = (candidate(&store, "one", &hand), candidate(&store, "two", &hand));
    one.win().await;
    one.release().await;
    assert!(!one.fence().holds_until(at(0)));
    assert_eq!(two.turn(Duration::from_secs(5)).await, Ok(true));
    assert_eq!(store.lease.lock().unwrap().as_ref().unwrap()["spec"]["leaseTransitions"], 1);
}

/// Whoever waits for anything but the clock is done with it.
async fn everybody_waits() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
fn watched() -> Arc<Store> {
    Arc::new(Store { watch: Some(tokio::sync::broadcast::channel(16).0), ..Store::default() })
}
/// When the second candidate leads, if the first one renews once, two seconds after it began, and is silent from then on.
async fn succeeded_at(store: &Arc<Store>) -> u64 {
    let hand = Arc::new(Hand::default());
    let (mut one, mut two) = (candidate(store, "one", &hand), candidate(store, "two", &hand));
    one.win().await;
    let waiting = tokio::spawn(async move { two.win().await });
    for now in 0..100 {
        if now == 2 {
            assert_eq!(one.turn(Duration::from_secs(5)).await, Ok(true));
        }
        everybody_waits().await;
        if waiting.is_finished() {
            return now;
        }
        hand.advance(1);
    }
    panic!("nobody took over");
}
#[tokio::test]
async fn the_wait_begins_with_a_renewal_where_it_is_watched_and_else_with_the_next_look() {
    assert_eq!(succeeded_at(&watched()).await, 32);
    assert_eq!(succeeded_at(&Arc::new(Store::default())).await, 33);
}

#[tokio::test]
async fn one_who_lets_go_is_followed_at_once_where_it_is_watched() {
    let (store, hand) = (watched(), Arc::new(Hand::default()));
    let (mut one, mut two) = (candidate(&store, "one", &hand), candidate(&store, "two", &hand));
    one.win().await;
    let waiting = tokio::spawn(async move { two.win().await });
    everybody_waits().await;
    one.release().await;
    everybody_waits().await;
    assert!(waiting.is_finished() && store.holder() == "two", "no time has passed");
}

#[tokio::test]
async fn one_whose_lease_was_deleted_may_write_for_as_long_as_it_lasted() {
    let (store, hand) = (watched(), Arc::new(Hand::default()));
    let (mut one, mut two) = (candidate(&store, "one", &hand), candidate(&store, "two", &hand));
    one.win().await;
    let waiting = tokio::spawn(async move { two.win().await });
    everybody_waits().await;
    let gone = store.lease.lock().unwrap().take().unwrap();
    store.tell("DELETED", &gone);
    for _ in 0..29 {
        hand.advance(1);
        everybody_waits().await;
        assert!(!waiting.is_finished(), "the first does not know yet");
    }
    // one that lives would have made it anew by now; this one is dead
    hand.advance(1);
    everybody_waits().await;
    assert!(waiting.is_finished() && store.holder() == "two");
}

#[tokio::test]
async fn a_watch_that_falls_silent_or_breaks_off_does_not_hide_the_end_of_a_lease() {
    for event in [None, Some("ERROR")] {
        let (store, hand) = (watched(), Arc::new(Hand::default()));
        let (mut one, mut two) = (candidate(&store, "one", &hand), candidate(&store, "two", &hand));
        one.win().await;
        let waiting = tokio::spawn(async move { two.win().await });
        everybody_waits().await;
        // when the last renewal is not told of
        hand.advance(3);
        store.mute.store(true, Ordering::SeqCst);
        assert_eq!(one.turn(Duration::from_secs(5)).await, Ok(true));
        if let Some(type_) = event {
            let gone =
                json!({"kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired", "message": "too old"});
            store.tell(type_, &gone);
        }
        // then a look finds it within two of the pauses between renewals
        let mut seconds = 0;
        while !waiting.is_finished() {
            everybody_waits().await;
            hand.advance(1);
            seconds += 1;
            assert!(seconds < 100, "nobody took over");
        }
        let late = seconds - 31;
        assert!((0..=6).contains(&late), "{event:?}: {late} s after the end");
    }
}

#[tokio::test]
async fn a_renewal_whose_reply_was_lost_is_recognised() {
    let (store, hand) = (Arc::new(Store::default()), Arc::new(Hand::default()));
    let mut one = candidate(&store, "one", &hand);
    one.win().await;
    // The write arrived, the reply did not: the stored version is one ahead of what the leader knows.
    store.lease.lock().unwrap().as_mut().unwrap()["metadata"]["resourceVersion"] = json!("2");
    assert_eq!(one.turn(Duration::from_secs(5)).await, Ok(true));
    assert_eq!(store.holder(), "one");
}
