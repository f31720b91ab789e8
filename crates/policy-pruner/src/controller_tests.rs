use super::*;
use crate::cluster::wire::{Call, Wire};
use crate::testing::clock::SimClock;
use crate::testing::server::SimServer;
use crate::testing::{histories, scene};
use common::clock::SystemClock;
use common::process::health::Readiness;
use common::process::metrics::Metrics;
use common::random::Random;
use common::runtime::runner::Bounds;
use kube::client::Body;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// Does nothing.
struct Idle;
#[async_trait]
impl runner::Reconciler for Idle {
    type Object = Value;
    async fn reconcile(&self, _: &Value, _: &OwnerView, _: &Value) -> Next {
        Next::Done
    }
    async fn invalid(&self, _: &OwnerView, _: &Value, _: &str) -> Next {
        Next::Done
    }
    fn gone(&self, _: &str) {}
}
fn idle() -> Runner<Idle> {
    let ground = Ground {
        clock: Arc::new(SystemClock),
        random: Arc::new(Random::seeded(1)),
        metrics: Arc::new(Metrics::new("policy-pruner", "0").unwrap()),
        readiness: Readiness::default(),
    };
    let long = Duration::from_secs(5);
    let bounds = Bounds { concurrency: 1, pass: long, resync: long, drain: long };
    Runner::new(Arc::new(Idle), Arc::new(Gate::new("custody.dev/none")), bounds, ground)
}
fn source(policies: &[Value]) -> Source {
    let list = json!({"kind": "List", "metadata": {"resourceVersion": "9"}, "items": policies}).to_string();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let watching = request.uri().query().unwrap_or_default().contains("watch=true");
        let body = if watching { Vec::new() } else { list.clone().into_bytes() };
        std::future::ready(Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(body))))
    });
    Source::new(kube::Client::new(service, "default"), report::mapping().resource())
}

#[tokio::test]
async fn nobody_is_said_to_require_nothing_before_every_runner_has_listed() {
    let object = ObjectRef::new("v1", "Pod", "n", "x");
    let template = json!({"complianceType": "musthave", "objectDefinition": {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "n"}}});
    let policy = json!({"metadata": {"name": "b", "namespace": "p", "uid": "b", "resourceVersion": "1"},
        "spec": {"remediationAction": "enforce", "object-templates": [template]}});
    // given two namespaces, and a policy in the second
    let (first, second, post, stop) = (idle(), idle(), Arc::new(Post::default()), CancellationToken::new());
    let handles = [first.handle(), second.handle()];
    post.handles.lock().unwrap().extend(handles.clone());
    let cached = Cached { others: Others::new(Arc::new(Vec::new())), post: post.clone() };
    let asked = || cached.requiring(&object, &Key::new("o", "a"));
    assert!(asked().is_err());
    // when only the first is listed, then nobody can tell; when both are, everybody is found
    let first = tokio::spawn(first.run(source(&[]), stop.clone()));
    handles[0].listed().await;
    assert!(asked().is_err());
    let second = tokio::spawn(second.run(source(&[policy]), stop.clone()));
    post.listed(&(Arc::new(SystemClock) as SharedClock)).await;
    assert_eq!(asked().unwrap().len(), 1);
    stop.cancel();
    first.await.unwrap();
    second.await.unwrap();
}

#[test]
fn a_policy_that_came_again_under_its_name_is_not_forgotten_with_the_former_one() {
    let mut known = Known::default();
    let (a, b) = (Key::new("n", "a"), Key::new("n", "b"));
    known.note(&a, "1");
    known.note(&b, "2");
    known.note(&a, "3");
    assert_eq!(known.lose("1"), None);
    assert_eq!(known.lose("3"), Some(a));
    assert_eq!((known.lose("2"), known.lose("2")), (Some(b), None));
    assert!(known.keys.is_empty() && known.uids.is_empty());
}

/// An API server that does not answer at first.
struct Away(SimServer, AtomicUsize);
#[async_trait]
impl Wire for Away {
    async fn call(&self, call: Call) -> Result<Value, Trouble> {
        if self.1.fetch_add(1, Ordering::SeqCst) < 3 {
            return Err(Trouble::silent("no reply"));
        }
        self.0.call(call).await
    }
}
#[tokio::test]
async fn a_ledger_is_let_go_of_however_often_that_fails_unless_a_policy_needs_it() {
    for (spec, held) in [(None, false), (Some("None"), false), (Some("DeleteIfCreated"), true)] {
        // given a ledger that somebody deletes, and a policy of its name or none
        let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
        let (mut desk, policy) = (histories::desk(&server, &clock, 1, 0), scene::key("policy"));
        let mut ledger = desk.ledgers.begin(&policy, "uid");
        desk.ledgers.save(&policy, &mut ledger).await.unwrap();
        let path = ledgers::mapping().path_of("n", &names::ledger_name("policy"));
        server.lock().world.delete(&path, None).unwrap();
        if let Some(prune) = spec {
            let object =
                json!({"metadata": {"name": "policy", "namespace": "n"}, "spec": {"pruneObjectBehavior": prune}});
            server.lock().world.create(&scene::policy_path("policy"), object, "user").unwrap();
        }
        // when the API server is away for a while
        desk.objects = Objects(Arc::new(Away(server.clone(), AtomicUsize::new(0))));
        desk.ledgers = Arc::new(Ledgers::new(desk.objects.clone(), Arc::new(Random::seeded(1))));
        let post = Arc::new(Post::default());
        assert!(post.desk.set(Arc::new(desk)).is_ok());
        let_go_of(policy, post.clone()).await;
        // then it goes all the same, or is written anew by who needs it
        assert_eq!(server.lock().world.objects.contains_key(&path), held, "{spec:?}");
        assert!(post.parting().is_empty());
    }
}
