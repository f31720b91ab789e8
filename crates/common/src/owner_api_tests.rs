//! The contract on the wire: verb, path, patch type, guard; and how each reply is sorted.
use super::*;
use http::{Request, Response};
use kube::client::Body;
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug, Default, PartialEq)]
struct Sent {
    method: String,
    path: String,
    content_type: String,
    body: Value,
}
type Log = Arc<Mutex<Vec<Sent>>>;

/// An API server that gives one answer and remembers what it was asked.
fn answering(code: u16, body: Value) -> (KubeOwnerApi, Log) {
    let log = Log::default();
    let seen = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, reply) = (seen.clone(), body.to_string());
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await.unwrap();
            seen.lock().unwrap().push(Sent {
                method: head.method.to_string(),
                path: head.uri.to_string(),
                content_type: head.headers.get("content-type").map_or(String::new(), |v| v.to_str().unwrap().into()),
                body: serde_json::from_slice(&bytes).unwrap_or_default(),
            });
            let response = Response::builder().status(code).body(Body::from(reply.into_bytes())).unwrap();
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let resource = ApiResource {
        group: "sample.custody.dev".into(),
        version: "v1alpha1".into(),
        api_version: "sample.custody.dev/v1alpha1".into(),
        kind: "SampleOwner".into(),
        plural: "sampleowners".into(),
    };
    (KubeOwnerApi::dynamic(Client::new(service, "default"), resource, "sample"), log)
}
fn object() -> Value {
    json!({
        "apiVersion": "sample.custody.dev/v1alpha1", "kind": "SampleOwner",
        "metadata": {"name": "o", "namespace": "n", "uid": "u-1", "resourceVersion": "8", "generation": 3,
            "annotations": {"a": "1"}, "finalizers": ["custody.dev/sample"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"no": "condition"}]}
    })
}
fn status(code: u16, reason: &str, name: Option<&str>) -> Value {
    let details = name.map(|n| json!({"name": n}));
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "m",
        "details": details})
}
fn before() -> OwnerView {
    OwnerView {
        namespace: "n".into(),
        name: "o".into(),
        uid: "u-1".into(),
        resource_version: "7".into(),
        ..OwnerView::default()
    }
}
const PATH: &str = "/apis/sample.custody.dev/v1alpha1/namespaces/n/sampleowners/o";

#[tokio::test]
async fn a_patch_is_a_guarded_merge_patch() {
    let (api, log) = answering(200, object());
    let patch = OwnerPatch {
        annotations: [("x".to_owned(), Some("1".to_owned())), ("y".to_owned(), None)].into(),
        finalizers: Some(vec!["f".into()]),
    };
    let Patched::Stored(now) = api.patch(&before(), &patch).await else { panic!("not stored") };

    assert_eq!((now.resource_version.as_str(), now.generation, now.deleting), ("8", 3, true));
    assert_eq!(now.conditions.len(), 1, "what is no condition is left out");
    let sent = log.lock().unwrap()[0].clone();
    assert_eq!(sent.method, "PATCH");
    assert_eq!(sent.path, format!("{PATH}?&fieldManager=sample"));
    assert_eq!(sent.content_type, "application/merge-patch+json");
    let metadata =
        json!({"resourceVersion": "7", "uid": "u-1", "annotations": {"x": "1", "y": null}, "finalizers": ["f"]});
    assert_eq!(sent.body, json!({ "metadata": metadata }));
}

#[tokio::test]
async fn a_status_patch_goes_to_the_subresource_with_the_same_guard() {
    let (api, log) = answering(200, object());
    let conditions = view_of(&ObjectMeta::default(), object().get("status")).conditions;
    api.patch_status(&before(), &conditions, &json!({"phase": "up"})).await;
    let sent = log.lock().unwrap()[0].clone();
    assert_eq!(sent.path, format!("{PATH}/status?&fieldManager=sample"));
    assert_eq!(sent.body["metadata"], json!({"resourceVersion": "7", "uid": "u-1"}));
    assert_eq!(
        (&sent.body["status"]["phase"], &sent.body["status"]["conditions"][0]["type"]),
        (&json!("up"), &json!("Ready"))
    );
}

#[tokio::test]
async fn replies_to_writes_are_sorted_by_what_happened() {
    let outcome = async |code, body| {
        let (api, log) = answering(code, body);
        let patched = api.patch(&before(), &OwnerPatch::default()).await;
        assert_eq!(log.lock().unwrap().len(), 1, "nothing is sent twice");
        patched
    };
    assert_eq!(outcome(409, status(409, "Conflict", Some("o"))).await, Patched::Conflict);
    assert_eq!(outcome(404, status(404, "NotFound", Some("o"))).await, Patched::Gone);
    let mut another = status(422, "Invalid", Some("o"));
    another["details"]["causes"] = json!([{"reason": "FieldValueInvalid", "field": "metadata.uid"}]);
    assert_eq!(outcome(422, another).await, Patched::Conflict);
    for code in [400, 403, 422] {
        assert!(matches!(outcome(code, status(code, "No", Some("o"))).await, Patched::Refused(_)), "{code}");
    }
    for code in [401, 404, 429, 500, 503, 504] {
        assert!(matches!(outcome(code, status(code, "Hm", None)).await, Patched::Unknown(_)), "{code}");
    }
    assert!(
        matches!(outcome(200, json!("cut sho")).await, Patched::Unknown(_)),
        "an unreadable reply may follow a write"
    );
}

#[tokio::test]
async fn absence_is_believed_only_if_it_names_the_object() {
    let (api, _) = answering(404, status(404, "NotFound", Some("o")));
    assert_eq!(api.get("n", "o").await, Ok(None));
    let (api, _) = answering(404, json!("404 page not found"));
    assert!(api.get("n", "o").await.is_err());
    let (api, log) = answering(200, object());
    assert_eq!(api.get("n", "o").await.unwrap().unwrap().uid, "u-1");
    assert_eq!(log.lock().unwrap()[0].path, PATH, "no resourceVersion=0: the read is not from a cache");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_given_up_on() {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, std::convert::Infallible>>()
    });
    let (template, _) = answering(200, object());
    let api = KubeOwnerApi { client: Client::new(service, "default"), ..template };
    assert!(matches!(api.patch(&before(), &OwnerPatch::default()).await, Patched::Unknown(_)));
    assert!(api.get("n", "o").await.is_err());
}
