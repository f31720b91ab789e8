//! One watched object: a small head, and the rest as packed JSON text.
//!
//! Text, not a tree: ten thousand objects of 4 KB would cost 150 to 250 MB as trees, 40 MB as text, and about half of that
//! packed. It is unpacked and decoded for a pass and forgotten after it, some microseconds beside the calls that a pass makes; an
//! object that does not fit its type fails its own pass and nobody's watch.
use super::trigger::Trigger;
use crate::engine::owner::OwnerView;
use crate::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Carries the whole object once more, for kubectl alone.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Namespace and name. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}
impl Key {
    /// A key.
    pub fn new(namespace: &str, name: &str) -> Self {
        Key { namespace: namespace.into(), name: name.into() }
    }
}
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// An object as it comes off the wire, managedFields and last-applied left out before anything is kept.
#[derive(Clone)]
pub struct Arrived {
    /// Only what kube's watcher asks for.
    metadata: ObjectMeta,
    /// Everything else, pruned.
    pub value: Value,
}

impl<'de> Deserialize<'de> for Arrived {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::Object(deserializer.deserialize_map(Pruned { depth: Depth::Object })?);
        let text = |key: &str| value["metadata"][key].as_str().map(str::to_owned);
        let metadata = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(Arrived { metadata, value })
    }
}

/// Where in an object we are, as far as pruning goes.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Object,
    Metadata,
    Annotations,
}
impl Depth {
    fn drops(self, key: &str) -> bool {
        matches!((self, key), (Depth::Metadata, "managedFields") | (Depth::Annotations, LAST_APPLIED))
    }
    fn into(self, key: &str) -> Option<Depth> {
        match (self, key) {
            (Depth::Object, "metadata") => Some(Depth::Metadata),
            (Depth::Metadata, "annotations") => Some(Depth::Annotations),
            _ => None,
        }
    }
}
/// Reads a map, and never builds what is dropped.
struct Pruned {
    depth: Depth,
}
impl<'de> Visitor<'de> for Pruned {
    type Value = Map<String, Value>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if self.depth.drops(&key) {
                access.next_value::<IgnoredAny>()?;
            } else if let Some(depth) = self.depth.into(&key) {
                map.insert(key, Value::Object(access.next_value_seed(Pruned { depth })?));
            } else {
                map.insert(key, access.next_value()?);
            }
        }
        Ok(map)
    }
    /// `annotations: null`.
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Map::new())
    }
}
impl<'de> DeserializeSeed<'de> for Pruned {
    type Value = Map<String, Value>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl kube::Resource for Arrived {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;
    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.kind)
    }
    fn group(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.group)
    }
    fn version(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.version)
    }
    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.plural)
    }
    fn api_version(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.api_version)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
impl Arrived {
    /// Its key.
    pub fn key(&self) -> Key {
        let text = |t: &Option<String>| t.as_deref().unwrap_or_default().into();
        Key { namespace: text(&self.metadata.namespace), name: text(&self.metadata.name) }
    }
    /// Its uid.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }
    /// Its resourceVersion.
    pub fn version(&self) -> Version {
        Version::parse(self.metadata.resource_version.as_deref().unwrap_or_default())
    }
}

/// Without its content, which may be a Secret's.
impl fmt::Debug for Arrived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arrived({} {:?})", self.key(), self.version())
    }
}

/// A resourceVersion, comparable as Kubernetes promises since 1.35. One that is no number is older than none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Version(u64);
impl Version {
    /// Reads one.
    pub fn parse(text: &str) -> Self {
        Version(text.parse().unwrap_or(u64::MAX))
    }
}

/// An object in the cache.
#[derive(Clone)]
pub struct Kept {
    /// Its uid.
    pub uid: Arc<str>,
    /// Its resourceVersion.
    pub version: Version,
    /// What passes are triggered by.
    pub trigger: Trigger,
    /// Its ledger is what this process wrote last.
    pub own_ledger: bool,
    /// The Cluster it says it belongs to.
    pub cluster: Option<Arc<str>>,
    packed: Arc<[u8]>,
}
impl Kept {
    /// Keeps what arrived.
    pub fn new(arrived: &Arrived, trigger: Trigger) -> Self {
        let cluster = arrived.value["metadata"]["labels"][names::CLUSTER_NAME].as_str().map(Into::into);
        // A tree of strings, numbers and maps with string keys always serialises.
        let json = serde_json::to_vec(&arrived.value).unwrap_or_default();
        let packed = lz4_flex::block::compress_prepend_size(&json).into();
        Kept { uid: arrived.uid().into(), version: arrived.version(), trigger, own_ledger: false, cluster, packed }
    }
    /// What this process packed it can unpack.
    fn json(&self) -> Vec<u8> {
        lz4_flex::block::decompress_size_prepended(&self.packed).unwrap_or_default()
    }
    /// The whole object, for one pass.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, serde_json::Error> {
        serde_json::from_slice(&self.json())
    }
    /// What the engine reads, and `.status`. Never fails: an owner whose spec does not fit its type can still be taken down.
    pub fn view(&self) -> (OwnerView, Value) {
        let read: Result<Readable, _> = serde_json::from_slice(&self.json());
        read.map(|r| (crate::owner_api::view_of(&r.metadata, Some(&r.status)), r.status)).unwrap_or_default()
    }
}
/// Without its content, which may be a Secret's.
impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({} {:?} {} bytes)", self.uid, self.version, self.packed.len())
    }
}
#[derive(Deserialize)]
struct Readable {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Value,
}

/// Conditions of a status.
pub fn conditions_of(status: &Value) -> Vec<Condition> {
    crate::owner_api::view_of(&ObjectMeta::default(), Some(status)).conditions
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::json;

    fn wire() -> Value {
        json!({
            "apiVersion": "a/v1", "kind": "K",
            "metadata": {"name": "o", "namespace": "n", "uid": "u", "resourceVersion": "12", "generation": 2,
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
                "labels": {"cluster.x-k8s.io/cluster-name": "c"},
                "annotations": {LAST_APPLIED: "{}", "kept": "yes"}},
            "spec": {"size": 3, "managedFields": "not metadata: stays"},
            "status": {"phase": "up"}
        })
    }

    #[test]
    fn what_nobody_reads_is_dropped_and_the_rest_kept() {
        let arrived: Arrived = serde_json::from_value(wire()).unwrap();
        let kept = Kept::new(&arrived, Trigger { rest: 7, ledger: 0 });
        let back: Value = kept.decode().unwrap();
        assert_eq!(back["metadata"]["managedFields"], Value::Null);
        assert_eq!(back["metadata"]["annotations"], json!({"kept": "yes"}));
        assert_eq!(back["spec"], wire()["spec"]);
        assert_eq!((arrived.key().to_string().as_str(), &*kept.uid, kept.version), ("n/o", "u", Version(12)));
        assert_eq!(kept.cluster.as_deref(), Some("c"));
    }

    #[test]
    fn lists_and_watch_events_are_read_alike() {
        let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "20"}, "items": [wire(), wire()]});
        let list: ObjectList<Arrived> = serde_json::from_str(&list.to_string()).unwrap();
        let event = json!({"type": "ADDED", "object": wire()});
        let event: WatchEvent<Arrived> = serde_json::from_str(&event.to_string()).unwrap();
        let WatchEvent::Added(one) = event else { panic!("not added") };
        assert_eq!(list.items[1].value, one.value);
    }

    #[test]
    fn an_object_that_does_not_fit_its_type_still_has_a_view() {
        #[derive(Debug, Deserialize)]
        struct Typed {
            #[allow(dead_code)]
            spec: u32,
        }
        let arrived: Arrived = serde_json::from_value(wire()).unwrap();
        let kept = Kept::new(&arrived, Trigger::default());
        assert!(kept.decode::<Typed>().is_err());
        let (view, status) = kept.view();
        assert_eq!((view.name.as_str(), view.generation, status), ("o", 2, json!({"phase": "up"})));
    }

    #[test]
    fn what_an_object_holds_never_reaches_a_log() {
        let mut secret = wire();
        secret["data"] = json!({"password": "hunter2"});
        let arrived: Arrived = serde_json::from_value(secret).unwrap();
        let shown = format!("{arrived:?} {:?}", Kept::new(&arrived, Trigger::default()));
        assert!(shown.contains("n/o") && !shown.contains("hunter2") && !shown.contains("password"), "{shown}");
    }

    #[test]
    fn strange_metadata_does_not_stop_the_list() {
        let odd = json!({"metadata": {"name": "o", "annotations": null}, "spec": null});
        let arrived: Arrived = serde_json::from_value(odd).unwrap();
        assert_eq!(arrived.key().to_string(), "o");
    }
}
