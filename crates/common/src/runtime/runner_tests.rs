//! A runner against an API server made of canned replies: one list, one watch that stays silent or closes.
use super::*;
use crate::clock::SystemClock;
use crate::engine::owner::{ApiUnavailable, OwnerApi, OwnerPatch, Patched};
use http::{Request, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Client;
use kube::api::ApiResource;
use kube::client::Body;
use serde::Deserialize;
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};

fn item(name: &str, version: u32, spec: &Value) -> Value {
    json!({"apiVersion": "a/v1", "kind": "Thing", "spec": spec,
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": version.to_string(), "generation": 1}})
}
/// Answers each list with the next reply, the last one for ever; watches end at once with the events given.
fn server(lists: Vec<(u16, Value)>, events: Vec<Value>) -> (Client, Arc<AtomicU32>) {
    let listed = Arc::new(AtomicU32::new(0));
    let count = listed.clone();
    let first_watch = Arc::new(AtomicU32::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let watching = request.uri().query().unwrap_or_default().contains("watch=true");
        let (code, body) = if watching {
            let first = first_watch.fetch_add(1, Ordering::SeqCst) == 0;
            let lines: Vec<String> = events.iter().filter(|_| first).map(ToString::to_string).collect();
            (200, lines.join("\n"))
        } else {
            let n = count.fetch_add(1, Ordering::SeqCst) as usize;
            let (code, body) = lists[n.min(lists.len() - 1)].clone();
            (code, body.to_string())
        };
        let response = Response::builder().status(code).body(Body::from(body.into_bytes())).unwrap();
        std::future::ready(Ok::<_, std::convert::Infallible>(response))
    });
    (Client::new(service, "default"), listed)
}
fn list(items: &[Value]) -> (u16, Value) {
    (200, json!({"kind": "ThingList", "apiVersion": "a/v1", "metadata": {"resourceVersion": "50"}, "items": items}))
}

#[derive(Deserialize)]
struct Thing {
    spec: Spec,
}
#[derive(Deserialize)]
struct Spec {
    size: u32,
}
/// Writes down what it was asked to do.
#[derive(Default)]
struct Notebook {
    lines: Mutex<Vec<String>>,
    wrote: Notify,
}
impl Notebook {
    fn line(&self, text: String) {
        self.lines.lock().unwrap().push(text);
        self.wrote.notify_one();
    }
    async fn until(&self, wanted: &str) {
        loop {
            if self.lines.lock().unwrap().iter().any(|l| l == wanted) {
                return;
            }
            self.wrote.notified().await;
        }
    }
}
#[async_trait]
impl Reconciler for Notebook {
    type Object = Thing;
    async fn reconcile(&self, object: &Thing, view: &OwnerView, _: &Value) -> Next {
        self.line(format!("{} size {}", view.name, object.spec.size));
        assert!(object.spec.size != 13, "thirteen brings bad luck");
        Next::Done
    }
    async fn invalid(&self, view: &OwnerView, _: &Value, _: &str) -> Next {
        self.line(format!("{} invalid", view.name));
        Next::Stuck("invalid".into())
    }
    fn gone(&self, uid: &str) {
        self.line(format!("{uid} gone"));
    }
}
fn ground() -> Ground {
    Ground {
        clock: Arc::new(SystemClock),
        random: Arc::new(Random::seeded(1)),
        metrics: Arc::new(Metrics::new("sample", "0").unwrap()),
        readiness: Readiness::default(),
    }
}
fn bounds() -> Bounds {
    Bounds {
        concurrency: 2,
        pass: Duration::from_secs(5),
        resync: Duration::from_mins(10),
        drain: Duration::from_secs(5),
    }
}
fn source(client: Client) -> Source {
    let resource = ApiResource {
        group: "a".into(),
        version: "v1".into(),
        api_version: "a/v1".into(),
        kind: "Thing".into(),
        plural: "things".into(),
    };
    Source::new(client, resource)
}
fn started(client: Client, ground: &Ground) -> (Arc<Notebook>, CancellationToken, tokio::task::JoinHandle<()>) {
    let (notebook, stop) = (Arc::new(Notebook::default()), CancellationToken::new());
    let gate = Arc::new(Gate::new("custody.dev/sample-ledger"));
    let runner = Runner::new(notebook.clone(), gate, bounds(), ground.clone());
    let running = tokio::spawn(runner.run(source(client), stop.clone()));
    (notebook, stop, running)
}

#[tokio::test]
async fn objects_that_do_not_fit_or_panic_stop_nobody_else() {
    let items = [
        item("bad", 1, &json!({"size": "large"})),
        item("unlucky", 2, &json!({"size": 13})),
        item("good", 3, &json!({"size": 1})),
    ];
    let ground = ground();
    let (client, _) = server(vec![list(&items)], vec![]);
    let (notebook, stop, running) = started(client, &ground);
    for line in ["bad invalid", "unlucky size 13", "good size 1"] {
        notebook.until(line).await;
    }
    assert!(ground.readiness.is_ready());
    let panics = ground.metrics.panics.with_label_values(&["sample"]);
    while panics.get() == 0 {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    running.await.unwrap();
    let metrics = ground.metrics.render().unwrap();
    assert!(metrics.contains("controller_runtime_max_concurrent_reconciles{controller=\"sample\"} 2"), "{metrics}");
    assert!(metrics.contains("invalid_objects_total{controller=\"sample\"} 1"), "{metrics}");
}

#[tokio::test]
async fn whoever_needs_all_objects_can_tell_when_they_are_listed() {
    let items: Vec<Value> = ["a", "b"].iter().map(|n| item(n, 1, &json!({"size": 1}))).collect();
    let (client, _) = server(vec![list(&items)], vec![]);
    let (notebook, stop) = (Arc::new(Notebook::default()), CancellationToken::new());
    let runner = Runner::new(notebook, Arc::new(Gate::new("custody.dev/sample-ledger")), bounds(), ground());
    let handle = runner.handle();
    // given a runner that has heard nothing, then an empty cache does not mean that there is nothing
    assert!(!handle.is_listed());
    // when its first list is complete, then everything is in the cache and those who waited go on
    let running = tokio::spawn(runner.run(source(client), stop.clone()));
    handle.listed().await;
    assert!(handle.is_listed() && handle.read(Cache::len) == 2);
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn changes_and_ends_are_heard_and_status_echoes_are_not() {
    let mut echo = item("a", 4, &json!({"size": 1}));
    echo["status"] = json!({"phase": "up"});
    let events = vec![
        json!({"type": "MODIFIED", "object": echo}),
        json!({"type": "MODIFIED", "object": item("b", 5, &json!({"size": 2}))}),
        json!({"type": "DELETED", "object": item("c", 6, &json!({"size": 1}))}),
    ];
    let items: Vec<Value> = ["a", "b", "c"].iter().map(|n| item(n, 1, &json!({"size": 1}))).collect();
    let (client, _) = server(vec![list(&items)], events);
    let (notebook, stop, running) = started(client, &ground());
    for line in ["a size 1", "b size 2", "c gone"] {
        notebook.until(line).await;
    }
    stop.cancel();
    running.await.unwrap();
    let lines = notebook.lines.lock().unwrap().clone();
    assert_eq!(lines.iter().filter(|l| l.starts_with("a size")).count(), 1, "{lines:?}");
}

#[tokio::test]
async fn an_api_server_in_trouble_is_waited_out() {
    let sorry = |code: u16| {
        (code, json!({"kind": "Status", "status": "Failure", "code": code, "reason": "Busy", "message": ""}))
    };
    let good = list(&[item("a", 1, &json!({"size": 1}))]);
    let ground = ground();
    let (client, listed) = server(vec![sorry(500), sorry(429), good], vec![]);
    let (notebook, stop, running) = started(client, &ground);
    notebook.until("a size 1").await;
    stop.cancel();
    running.await.unwrap();
    assert_eq!(listed.load(Ordering::SeqCst), 3);
    assert!(ground.metrics.render().unwrap().contains("watch_troubles_total{controller=\"sample\"} 2"));
}

/// Answers reads with one version and stores nothing.
struct Newest(OwnerView);
#[async_trait]
impl OwnerApi for Newest {
    async fn get(&self, _: &str, _: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
        Ok(Some(self.0.clone()))
    }
    async fn patch(&self, _: &OwnerView, _: &OwnerPatch) -> Patched {
        Patched::Conflict
    }
    async fn patch_status(&self, _: &OwnerView, _: &[Condition], _: &Value) -> Patched {
        Patched::Conflict
    }
}

#[tokio::test]
async fn no_pass_runs_on_a_cache_that_is_behind_until_it_has_caught_up() {
    let (notebook, ground) = (Arc::new(Notebook::default()), ground());
    let gate = Arc::new(Gate::new("custody.dev/sample-ledger"));
    let mut runner = Runner::new(notebook.clone(), gate.clone(), bounds(), ground.clone());
    let arrived = |version| Box::new(serde_json::from_value(item("a", version, &json!({"size": 1}))).unwrap());
    let skips = || ground.metrics.stale_skips.with_label_values(&["sample"]).get();

    // Given an object that had its pass, and that this process knows in a newer version than its cache,
    runner.heard(News::Listed(arrived(1)), "list");
    runner.dispatch();
    let ended = runner.passes.join_next().await.unwrap();
    runner.ended(ended);
    let newest = OwnerView { uid: "a".into(), resource_version: "9".into(), ..OwnerView::default() };
    gate.watching(Arc::new(Newest(newest))).get("n", "a").await.unwrap();

    // when a pass is asked for, it is put off,
    runner.handle().enqueue(&Key::new("n", "a"));
    runner.dispatch();
    assert_eq!((runner.passes.len(), skips()), (0, 1));

    // also after news that is still too old,
    runner.heard(News::Changed(arrived(8)), "list");
    runner.dispatch();
    assert_eq!(runner.passes.len(), 0);

    // and runs once the cache has caught up, although nothing that matters changed.
    runner.heard(News::Changed(arrived(9)), "list");
    runner.dispatch();
    assert_eq!((runner.passes.len(), skips()), (1, 1));
}

/// Answers each list with the next reply; watches say nothing for ever.
fn deaf(lists: Vec<(u16, Value)>) -> (Client, Arc<AtomicU32>) {
    let listed = Arc::new(AtomicU32::new(0));
    let count = listed.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let watching = request.uri().query().unwrap_or_default().contains("watch=true");
        let n = if watching { 0 } else { count.fetch_add(1, Ordering::SeqCst) as usize };
        let (code, body) = lists[n.min(lists.len() - 1)].clone();
        async move {
            if watching {
                std::future::pending::<()>().await;
            }
            let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap();
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    (Client::new(service, "default"), listed)
}
/// Time as the test runtime has it: it jumps to the next alarm when nobody has anything to do.
struct Jumping(tokio::time::Instant);
impl crate::clock::Clock for Jumping {
    fn boot(&self) -> Boot {
        Boot(self.0.elapsed())
    }
    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }
    #[allow(clippy::disallowed_methods)] // a clock of its own
    fn sleep_until(&self, until: Boot) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(until.since(self.boot())))
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_our_own_write_from_us_is_started_over() {
    // Given an object that had its pass, an API server whose watch says nothing,
    let (notebook, ground) =
        (Arc::new(Notebook::default()), Ground { clock: Arc::new(Jumping(tokio::time::Instant::now())), ..ground() });
    let gate = Arc::new(Gate::new("custody.dev/sample-ledger"));
    let lists = vec![list(&[item("a", 1, &json!({"size": 1}))]), list(&[item("a", 9, &json!({"size": 2}))])];
    let (client, listed) = deaf(lists);
    let stop = CancellationToken::new();
    let runner = Runner::new(notebook.clone(), gate.clone(), bounds(), ground.clone());
    let handle = runner.handle();
    let running = tokio::spawn(runner.run(source(client), stop.clone()));
    notebook.until("a size 1").await;

    // when this process knows a newer version and the watch does not tell it,
    let newest = OwnerView { uid: "a".into(), resource_version: "9".into(), ..OwnerView::default() };
    gate.watching(Arc::new(Newest(newest))).get("n", "a").await.unwrap();
    handle.enqueue(&Key::new("n", "a"));

    // then the list is asked for once more, and the pass runs on what it shows.
    notebook.until("a size 2").await;
    stop.cancel();
    running.await.unwrap();
    assert_eq!(listed.load(Ordering::SeqCst), 2);
}
