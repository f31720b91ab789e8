//! Which resource a kind is: discovery of one group and version at a time, remembered for a while.
use super::wire::{Call, SharedWire, Trouble, Verb, encode};
use common::clock::{Boot, SharedClock};
use kube::api::ApiResource;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is there is believed for this long.
const REMEMBERED: Duration = Duration::from_mins(10);
/// What is not there is asked for again after this long.
const MISSED: Duration = Duration::from_secs(2);

/// A kind and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mapping {
    /// Group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Resource.
    pub plural: String,
    /// Lives in namespaces.
    pub namespaced: bool,
    /// Can be watched.
    pub watchable: bool,
}
impl Mapping {
    /// Group and version.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
    /// Path of all objects, or of one namespace's.
    pub fn path(&self, namespace: &str) -> String {
        let base = base(&self.api_version());
        let place = if self.namespaced && !namespace.is_empty() {
            format!("/namespaces/{}", encode(namespace))
        } else {
            String::new()
        };
        format!("{base}{place}/{}", self.plural)
    }
    /// Path of one object.
    pub fn path_of(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.path(namespace), encode(name))
    }
    /// For kube's watcher.
    pub fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }
    /// A kind known without asking.
    pub fn known(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        Mapping {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced,
            watchable: true,
        }
    }
}
fn base(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

struct Remembered {
    kinds: Arc<Vec<Mapping>>,
    at: Boot,
}

/// Kinds of the cluster.
pub struct Kinds {
    wire: SharedWire,
    clock: SharedClock,
    known: Mutex<HashMap<String, Remembered>>,
    /// One question per group and version at a time; a slow one keeps nobody else waiting.
    asking: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}
impl Kinds {
    /// Nothing is known yet.
    pub fn new(wire: SharedWire, clock: SharedClock) -> Self {
        Kinds { wire, clock, known: Mutex::default(), asking: Mutex::default() }
    }
    /// The kind; `None` if the API server has no such kind.
    pub async fn find(&self, api_version: &str, kind: &str) -> Result<Option<Mapping>, Trouble> {
        if let Some(answer) = self.remembered(api_version, kind) {
            return Ok(answer);
        }
        let lock = {
            let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
            asking.entry(api_version.to_owned()).or_default().clone()
        };
        let _one = lock.lock().await;
        if let Some(answer) = self.remembered(api_version, kind) {
            return Ok(answer);
        }
        let at = self.clock.boot();
        let kinds = match self.wire.call(Call::new(Verb::Get, base(api_version))).await {
            Ok(reply) => mappings(api_version, &reply),
            Err(trouble) if trouble.is_missing() => Vec::new(),
            Err(trouble) => return Err(trouble),
        };
        let found = pick(&kinds, kind);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(api_version.to_owned(), Remembered { kinds: Arc::new(kinds), at });
        Ok(found)
    }
    /// The kind in this version or, if that is not served any more, in another one of its group: the objects are the same.
    pub async fn find_served(&self, api_version: &str, kind: &str) -> Result<Option<Mapping>, Trouble> {
        if let Some(mapping) = self.find(api_version, kind).await? {
            return Ok(Some(mapping));
        }
        let Some((group, _)) = api_version.split_once('/') else { return Ok(None) };
        let reply = match self.wire.call(Call::new(Verb::Get, format!("/apis/{}", encode(group)))).await {
            Ok(reply) => reply,
            Err(trouble) if trouble.is_missing() => return Ok(None),
            Err(trouble) => return Err(trouble),
        };
        let served = reply["versions"].as_array().into_iter().flatten().filter_map(|v| v["groupVersion"].as_str());
        for other in served.filter(|other| *other != api_version) {
            if let Some(mapping) = self.find(other, kind).await? {
                return Ok(Some(mapping));
            }
        }
        Ok(None)
    }
    /// As [`Kinds::find_served`], where what is remembered led to nothing and may be out of date.
    pub async fn find_anew(&self, api_version: &str, kind: &str) -> Result<Option<Mapping>, Trouble> {
        let now = self.clock.boot();
        let is_old = |of: &String, known: &Remembered| of == api_version && now.since(known.at) >= MISSED;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|of, known| !is_old(of, known));
        self.find_served(api_version, kind).await
    }
    #[allow(clippy::option_option)] // there, not there, not known
    fn remembered(&self, api_version: &str, kind: &str) -> Option<Option<Mapping>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Remembered { kinds, at } = known.get(api_version)?;
        let age = self.clock.boot().since(*at);
        match pick(kinds, kind) {
            Some(mapping) => (age < REMEMBERED).then_some(Some(mapping)),
            None => (age < MISSED).then_some(None),
        }
    }
    /// A kind of this group and version turned out to be gone: ask anew.
    pub fn forget(&self, api_version: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(api_version);
    }
}

fn mappings(api_version: &str, reply: &Value) -> Vec<Mapping> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resources = reply["resources"].as_array().into_iter().flatten();
    let main = resources.filter(|r| r["name"].as_str().is_some_and(|name| !name.contains('/')));
    main.map(|r| Mapping {
        group: group.into(),
        version: version.into(),
        kind: r["kind"].as_str().unwrap_or_default().into(),
        plural: r["name"].as_str().unwrap_or_default().into(),
        namespaced: r["namespaced"] == true,
        watchable: r["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|v| v == "watch")),
    })
    .collect()
}
/// The first that can be watched, else the first.
fn pick(kinds: &[Mapping], kind: &str) -> Option<Mapping> {
    let fitting = || kinds.iter().filter(|m| m.kind == kind);
    fitting().find(|m| m.watchable).or_else(|| fitting().next()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn discovery_is_read() {
        let reply = json!({"resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["get", "watch"]},
            {"name": "pods/status", "kind": "Pod", "namespaced": true, "verbs": ["get"]},
            {"name": "reviews", "kind": "Review", "namespaced": false, "verbs": ["create"]},
        ]});
        let kinds = mappings("v1", &reply);
        let pod = pick(&kinds, "Pod").unwrap();
        assert_eq!(pod.path_of("n", "x"), "/api/v1/namespaces/n/pods/x");
        assert!(!pick(&kinds, "Review").unwrap().watchable && pick(&kinds, "None").is_none());
    }
    #[test]
    fn paths_cannot_be_escaped_from() {
        let mapping = Mapping::known("apps", "v1", "Deployment", "deployments", true);
        assert_eq!(mapping.path_of("n", "../x"), "/apis/apps/v1/namespaces/n/deployments/..%2Fx");
        assert_eq!(mapping.path(""), "/apis/apps/v1/deployments");
        let cluster = Mapping::known("", "v1", "Namespace", "namespaces", false);
        assert_eq!(cluster.path_of("ignored", "x"), "/api/v1/namespaces/x");
    }
}
