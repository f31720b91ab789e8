use super::*;
use crate::cluster::kube_wire::KubeWire;
use crate::testing::clock::SimClock;
use common::engine::fence::Open;
use kube::client::Body;

/// Watches of an API server that never answers: the test brings the news.
fn watches() -> (Arc<Watches>, Arc<SimClock>, impl Fn() -> Vec<Key>) {
    let server = tower::service_fn(|_: http::Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, std::convert::Infallible>>()
    });
    let (client, time) = (Client::new(server, "default"), Arc::new(SimClock::default()));
    let clock: SharedClock = time.clone();
    let wire = Arc::new(KubeWire::new(client.clone(), clock.clone(), Arc::new(Open)));
    let kinds = Arc::new(Kinds::new(wire.clone(), clock.clone()));
    let watches = Watches::new(client, clock, Objects(wire), kinds);
    let woken: Arc<Mutex<Vec<Key>>> = Arc::default();
    let heard = woken.clone();
    watches.on_change(move |policy| heard.lock().unwrap().push(policy.clone()));
    let woken = move || {
        let mut told = std::mem::take(&mut *woken.lock().unwrap());
        told.sort();
        told
    };
    (watches, time, woken)
}
fn pod(name: &str) -> Interest {
    Interest::Object(Mapping::known("", "v1", "Pod", "pods", true), "n".into(), name.into())
}

fn policy(name: &str) -> Key {
    Key::new("p", name)
}
fn lists(watches: &Watches, scope: &Scope, watch: &Watch) {
    for news in [News::Begin, News::Complete] {
        watches.heard(scope, watch, news);
    }
}
fn refuses(watches: &Watches, scope: &Scope, watch: &Watch) {
    watches.heard(scope, watch, News::Trouble("watch: 403 pods is forbidden".into()));
}

#[tokio::test]
async fn whoever_shared_a_watch_that_is_refused_is_woken_and_chooses_another() {
    let (watches, _, woken) = watches();
    for name in ["a", "b", "c"] {
        watches.serve(&policy("first"), &pod(name));
    }
    let (watch, shared) = watches.serve(&policy("first"), &pod("d"));
    assert_eq!(watches.serve(&policy("second"), &pod("e")).1, shared);
    lists(&watches, &shared, &watch);
    assert!(watches.answer(&watch).await.is_ok() && woken().is_empty());
    refuses(&watches, &shared, &watch);
    assert_eq!(woken(), [policy("first"), policy("second")]);
    // The same once more, and then something narrower.
    let (second, scope) = watches.serve(&policy("second"), &pod("e"));
    assert!(scope == shared && !Arc::ptr_eq(&second, &watch));
    refuses(&watches, &shared, &watch);
    assert!(watches.state().watches.contains_key(&shared) && woken().is_empty(), "the former one has no say");
    lists(&watches, &shared, &second);
    refuses(&watches, &shared, &second);
    assert_eq!(woken(), [policy("second")]);
    assert_eq!(watches.serve(&policy("second"), &pod("e")).1.name, "e");
}
#[tokio::test]
async fn what_was_too_wide_is_tried_again_after_a_while() {
    // given objects that have a watch each, because the one that would serve them all was refused
    let (watches, clock, _) = watches();
    for name in ["a", "b", "c"] {
        watches.serve(&policy(name), &pod(name));
    }
    let (watch, shared) = watches.serve(&policy("d"), &pod("d"));
    refuses(&watches, &shared, &watch);
    for name in ["d", "e"] {
        assert_eq!(watches.serve(&policy(name), &pod(name)).1.name, name);
    }
    assert_eq!(watches.len(), 5);
    // when the right may have been given meanwhile, then they share one as they are looked at
    clock.pass(REFUSED);
    for name in ["d", "e", "f"] {
        assert_eq!(watches.serve(&policy(name), &pod(name)).1, shared);
    }
    assert_eq!(watches.len(), 4, "those that it was refused for have left theirs");
}
#[tokio::test]
async fn a_watch_of_its_own_that_is_refused_says_so_and_is_tried_again() {
    let (watches, clock, woken) = watches();
    let (watch, scope) = watches.serve(&policy("p"), &pod("a"));
    lists(&watches, &scope, &watch);
    refuses(&watches, &scope, &watch);
    assert_eq!(woken(), [policy("p")]);
    // Roles were applied anew: it works again.
    let (watch, _) = watches.serve(&policy("p"), &pod("a"));
    lists(&watches, &scope, &watch);
    assert!(watches.answer(&watch).await.is_ok());
    // The right is gone: told, and neither woken nor listed again for a while.
    refuses(&watches, &scope, &watch);
    assert_eq!(woken(), [policy("p")]);
    refuses(&watches, &scope, &watch);
    let (same, _) = watches.serve(&policy("p"), &pod("a"));
    assert!(Arc::ptr_eq(&same, &watch) && woken().is_empty());
    assert_eq!(watches.answer(&same).await.unwrap_err().message, "pods is forbidden");
    clock.pass(REFUSED);
    assert!(!Arc::ptr_eq(&watches.serve(&policy("p"), &pod("a")).0, &watch));
}
#[tokio::test]
async fn a_list_that_is_refused_after_it_could_answer_is_in_doubt() {
    let (watches, _, _) = watches();
    let all = Selector::parse(&std::collections::BTreeMap::new(), &[], crate::dialect::Dialect::Current).unwrap();
    let pods = Interest::List(Mapping::known("", "v1", "Pod", "pods", true), "n".into(), all.clone());
    let (watch, scope) = watches.serve(&policy("p"), &pods);
    // given a watch that can answer
    lists(&watches, &scope, &watch);
    assert!(watches.answer(&watch).await.is_ok() && watch.store().list("n", &all).is_some());
    // when its right is taken away before it is asked, then it does not say that there is nothing
    refuses(&watches, &scope, &watch);
    assert_eq!(watch.store().list("n", &all), None);
}
#[test]
fn codes_are_read_from_trouble() {
    assert_eq!(code_of("list: 403 pods is forbidden"), 403);
    assert_eq!(code_of("watch: something else"), 0);
    assert_eq!(code_of("the watch ended; it starts over"), 0);
}
