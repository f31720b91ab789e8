//! Waiting until something is seen, and saying what was seen instead.
use crate::error::{Error, Result};
use common::clock::{Clock, SystemClock};
use kube::api::{Api, ApiResource, DynamicObject};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// How often to look. Short, because everything is on this machine.
const EVERY: Duration = Duration::from_millis(50);

/// What one look came to.
#[derive(Debug)]
pub enum Seen<T> {
    /// It is there.
    Yes(T),
    /// Not yet; this is there instead.
    NotYet(String),
}

/// Looks until it is there, or fails with what was seen last. An error of `look` ends the wait at once.
pub async fn until<T, L, F>(what: &str, patience: Duration, look: L) -> Result<T>
where
    L: FnMut() -> F,
    F: Future<Output = Result<Seen<T>>>,
{
    until_every(EVERY, what, patience, look).await
}

/// The same with fewer looks, where a look costs so much that it would slow down what is looked at.
pub async fn until_every<T, L, F>(every: Duration, what: &str, patience: Duration, mut look: L) -> Result<T>
where
    L: FnMut() -> F,
    F: Future<Output = Result<Seen<T>>>,
{
    let deadline = SystemClock.boot() + patience;
    loop {
        match look().await? {
            Seen::Yes(found) => return Ok(found),
            Seen::NotYet(seen) if SystemClock.boot() >= deadline => {
                return Err(Error::Timeout { what: what.to_owned(), patience, seen });
            }
            Seen::NotYet(_) => SystemClock.sleep_until(SystemClock.boot() + every).await,
        }
    }
}

/// Waits until the object named `name` is as `wanted`; `None` stands for "there is no such object".
/// An API server that does not answer is waited for, too: some tests take it away.
pub async fn wait_for<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    patience: Duration,
    wanted: impl Fn(Option<&K>) -> bool,
) -> Result<Option<K>>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let wanted = &wanted;
    until(what, patience, || async move {
        Ok(match api.get_opt(name).await {
            Ok(object) if wanted(object.as_ref()) => Seen::Yes(object),
            Ok(Some(object)) => {
                Seen::NotYet(serde_saphyr::to_string(&object).unwrap_or_else(|_| format!("{object:?}")))
            }
            Ok(None) => Seen::NotYet(format!("no object named {name}")),
            Err(error) => Seen::NotYet(error.to_string()),
        })
    })
    .await
}

/// Waits until the object named `name` exists and is as `wanted`.
pub async fn wait_for_object<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    patience: Duration,
    wanted: impl Fn(&K) -> bool,
) -> Result<K>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    wait_for(api, name, what, patience, |object| object.is_some_and(&wanted))
        .await?
        .ok_or_else(|| Error::other(format!("{name} vanished")))
}

/// Waits until there is no object named `name`.
pub async fn wait_until_gone<K>(api: &Api<K>, name: &str, patience: Duration) -> Result<()>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    wait_for(api, name, &format!("{name} to be gone"), patience, |object| object.is_none()).await.map(drop)
}

/// An API for a kind that the test knows only by name, such as `cluster.x-k8s.io/v1beta2`, `Cluster`, `clusters`.
pub fn dynamic_api(
    client: kube::Client,
    namespace: &str,
    api_version: &str,
    kind: &str,
    plural: &str,
) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    Api::namespaced_with(client, namespace, &resource)
}

/// True if `.status.conditions` has `kind` with `status`.
pub fn has_condition(object: &DynamicObject, kind: &str, status: &str) -> bool {
    object
        .data
        .pointer("/status/conditions")
        .and_then(|list| list.as_array())
        .is_some_and(|list| list.iter().any(|condition| condition["type"] == kind && condition["status"] == status))
}
