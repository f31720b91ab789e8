//! An API server in memory: versions, guards, generations, finalizers, and a log for watches.
use crate::engine::owner::{OwnerPatch, OwnerView, Patched};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Namespace and name.
pub type Key = (String, String);

/// One version of an owner, whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// Metadata and conditions.
    pub view: OwnerView,
    /// The spec.
    pub spec: Value,
    /// Status without conditions.
    pub fields: Map<String, Value>,
}

/// One entry of the watch log.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which object.
    pub key: Key,
    /// The object now; `None` if it is gone.
    pub object: Option<Arc<Object>>,
}

/// One API server.
#[derive(Debug)]
pub struct Server {
    /// The installation id of the controllers on it.
    pub installation: String,
    /// Everything that ever happened, oldest first. The index is the resourceVersion less one.
    pub log: Vec<Change>,
    /// Writes by controllers that changed something.
    pub writes: u64,
    /// Those of them that changed status.
    pub status_writes: u64,
    /// How many entries of the log the watches have been told of.
    pub announced: usize,
    objects: BTreeMap<Key, Arc<Object>>,
    prefix: String,
    born: u64,
}

impl Server {
    /// An empty server; `prefix` begins its uids, so that no two servers share one.
    pub fn new(installation: &str, prefix: &str) -> Self {
        Server {
            installation: installation.into(),
            log: Vec::new(),
            writes: 0,
            status_writes: 0,
            announced: 0,
            objects: BTreeMap::new(),
            prefix: prefix.into(),
            born: 0,
        }
    }
    /// The newest version.
    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }
    /// All objects.
    pub fn objects(&self) -> impl Iterator<Item = (&Key, &Arc<Object>)> {
        self.objects.iter()
    }
    fn store(&mut self, mut object: Object) -> Arc<Object> {
        object.view.resource_version = (self.log.len() + 1).to_string();
        let key = (object.view.namespace.clone(), object.view.name.clone());
        let gone = object.view.deleting && object.view.finalizers.is_empty();
        let object = Arc::new(object);
        if gone {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key.clone(), Arc::clone(&object));
        }
        self.log.push(Change { key, object: (!gone).then(|| Arc::clone(&object)) });
        object
    }
    /// A new object with a new uid, generation 1, not being deleted. False if the name is taken.
    pub fn create(&mut self, mut object: Object) -> bool {
        let key = (object.view.namespace.clone(), object.view.name.clone());
        if self.objects.contains_key(&key) {
            return false;
        }
        self.born += 1;
        object.view.uid = format!("{}-{}", self.prefix, self.born);
        object.view.generation = 1;
        object.view.deleting = false;
        self.store(object);
        true
    }
    /// A user's edit, unguarded. The generation follows the spec.
    pub fn edit(&mut self, key: &Key, change: impl FnOnce(&mut Object)) -> bool {
        let Some(old) = self.objects.get(key) else { return false };
        let mut new = Object::clone(old);
        change(&mut new);
        if new == **old {
            return false;
        }
        if new.spec != old.spec {
            new.view.generation = old.view.generation + 1;
        }
        self.store(new);
        true
    }
    /// Starts deletion: at once without finalizers.
    pub fn delete(&mut self, key: &Key) -> bool {
        let Some(old) = self.objects.get(key) else { return false };
        if old.view.deleting {
            return false;
        }
        let mut new = Object::clone(old);
        new.view.deleting = true;
        new.view.generation += 1;
        self.store(new);
        true
    }
    /// The object is lost, finalizers or not: the storage was.
    pub fn lose(&mut self, key: &Key) -> bool {
        let lost = self.objects.remove(key).is_some();
        if lost {
            self.log.push(Change { key: key.clone(), object: None });
        }
        lost
    }
    fn guarded(&self, view: &OwnerView) -> Result<Arc<Object>, Patched> {
        let key = (view.namespace.clone(), view.name.clone());
        let old = self.objects.get(&key).ok_or(Patched::Gone)?;
        // As in the real one: what is not said is not checked.
        let holds = |said: &str, is: &str| said.is_empty() || said == is;
        if holds(&view.uid, &old.view.uid) && holds(&view.resource_version, &old.view.resource_version) {
            Ok(Arc::clone(old))
        } else {
            Err(Patched::Conflict)
        }
    }
    fn finish(&mut self, old: &Object, new: Object) -> Patched {
        if new == *old {
            return Patched::Stored(Box::new(new.view));
        }
        self.writes += 1;
        Patched::Stored(Box::new(self.store(new).view.clone()))
    }
    /// A guarded change of metadata. What does not change anything makes no new version.
    pub fn patch(&mut self, view: &OwnerView, patch: &OwnerPatch) -> Patched {
        let old = match self.guarded(view) {
            Ok(old) => old,
            Err(answer) => return answer,
        };
        let mut new = Object::clone(&old);
        for (name, value) in &patch.annotations {
            match value {
                Some(value) => drop(new.view.annotations.insert(name.clone(), value.clone())),
                None => drop(new.view.annotations.remove(name)),
            }
        }
        if let Some(finalizers) = &patch.finalizers {
            if old.view.deleting && finalizers.iter().any(|f| !old.view.finalizers.contains(f)) {
                return Patched::Refused("no new finalizers can be added if the object is being deleted".into());
            }
            new.view.finalizers.clone_from(finalizers);
        }
        self.finish(&old, new)
    }
    /// A guarded change of status: conditions as a whole, other fields by merge.
    pub fn patch_status(&mut self, view: &OwnerView, conditions: &[Condition], fields: &Value) -> Patched {
        let old = match self.guarded(view) {
            Ok(old) => old,
            Err(answer) => return answer,
        };
        let mut new = Object::clone(&old);
        new.view.conditions = conditions.to_vec();
        if let Value::Object(fields) = fields {
            merge(&mut new.fields, fields);
        }
        self.status_writes += u64::from(new != *old);
        self.finish(&old, new)
    }
}

/// RFC 7396.
fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (_, Value::Null) => drop(into.remove(name)),
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => drop(into.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> (Server, Key) {
        let mut server = Server::new("test", "u");
        let key: Key = ("ns".into(), "a".into());
        let view = OwnerView { namespace: key.0.clone(), name: key.1.clone(), ..OwnerView::default() };
        assert!(server.create(Object { view, ..Object::default() }));
        (server, key)
    }
    fn view(server: &Server, key: &Key) -> OwnerView {
        server.get(key).expect("there").view.clone()
    }
    fn holding(name: &str) -> OwnerPatch {
        OwnerPatch { finalizers: Some(vec![name.into()]), ..OwnerPatch::default() }
    }

    #[test]
    fn a_write_on_an_old_version_conflicts_and_changes_nothing() {
        let (mut server, key) = one();
        let old = view(&server, &key);
        assert!(matches!(server.patch(&old, &holding("f")), Patched::Stored(_)));
        assert_eq!(server.patch(&old, &holding("g")), Patched::Conflict);
        assert_eq!(view(&server, &key).finalizers, ["f"]);
    }

    #[test]
    fn a_write_that_changes_nothing_makes_no_version() {
        let (mut server, key) = one();
        assert!(matches!(server.patch(&view(&server, &key), &holding("f")), Patched::Stored(_)));
        let before = view(&server, &key);
        assert!(matches!(server.patch(&before, &holding("f")), Patched::Stored(_)));
        assert_eq!((view(&server, &key), server.writes), (before, 1));
    }

    #[test]
    fn a_deleted_object_stays_until_its_last_finalizer_goes() {
        let (mut server, key) = one();
        server.patch(&view(&server, &key), &holding("f"));
        assert!(server.delete(&key));
        let deleting = view(&server, &key);
        assert_eq!((deleting.deleting, deleting.generation), (true, 2));
        assert!(matches!(server.patch(&deleting, &holding("g")), Patched::Refused(_)));
        let patch = OwnerPatch { finalizers: Some(vec![]), ..OwnerPatch::default() };
        assert!(matches!(server.patch(&deleting, &patch), Patched::Stored(_)));
        assert!(server.get(&key).is_none());
        assert_eq!(server.patch(&deleting, &patch), Patched::Gone);
    }

    #[test]
    fn status_and_metadata_are_separate_and_only_the_spec_makes_a_generation() {
        let (mut server, key) = one();
        server.patch_status(&view(&server, &key), &[], &serde_json::json!({"a": {"b": 1}}));
        server.patch_status(&view(&server, &key), &[], &serde_json::json!({"a": {"c": 2}}));
        server.patch(&view(&server, &key), &holding("f"));
        let object = server.get(&key).expect("there");
        assert_eq!(Value::Object(object.fields.clone()), serde_json::json!({"a": {"b": 1, "c": 2}}));
        assert_eq!(object.view.generation, 1);
        server.edit(&key, |o| o.spec = serde_json::json!({"x": 1}));
        assert_eq!(view(&server, &key).generation, 2);
    }
}
