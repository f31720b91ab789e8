//! Which other policies require an object. Built from the cache of policies, and only what changed is read again.
use super::decide::required;
use crate::api::{ConfigurationPolicy, ObjectRef, Prune};
use common::runtime::object::{Kept, Key, Version};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// A policy that requires an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirer {
    /// Which policy.
    pub key: Key,
    /// Its uid.
    pub uid: String,
    /// What it does with its objects.
    pub prune: Prune,
}
type Place = (String, String, String, String);
fn place(object: &ObjectRef) -> Place {
    let (name, namespace) = (object.metadata.name.clone(), object.metadata.namespace.clone());
    (object.group().to_owned(), object.kind.clone(), namespace, name)
}

#[derive(Default)]
struct Index {
    /// What was read, and when it was last seen.
    versions: HashMap<Key, (Arc<str>, Version, u64)>,
    looks: u64,
    policies: HashMap<Key, (Requirer, Vec<Place>)>,
    places: HashMap<Place, HashSet<Key>>,
}
/// The index.
#[derive(Default)]
pub struct Others(Mutex<Index>);
impl Others {
    /// Brings the index up to date with the policies there are now; `show_all` shows every one of them.
    pub fn refresh(&self, show_all: impl FnOnce(&mut dyn FnMut(&Key, &Kept))) {
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        index.looks += 1;
        let (look, mut present) = (index.looks, 0);
        show_all(&mut |key, kept| {
            present += 1;
            // Nearly all of them, nearly every time: no copy is made of what did not change.
            if let Some((uid, version, seen)) = index.versions.get_mut(key)
                && *version == kept.version
                && *uid == kept.uid
            {
                *seen = look;
                return;
            }
            index.take_out(key);
            index.versions.insert(key.clone(), (kept.uid.clone(), kept.version, look));
            if let Ok(policy) = kept.decode::<ConfigurationPolicy>() {
                index.add(key, &policy);
            }
        });
        if index.versions.len() > present {
            let gone: Vec<Key> = index.versions.extract_if(|_, known| known.2 != look).map(|(key, _)| key).collect();
            for key in gone {
                index.take_out(&key);
            }
        }
    }
    /// Who else requires this object.
    pub fn requiring(&self, object: &ObjectRef, except: &Key) -> Vec<Requirer> {
        let index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = index.places.get(&place(object)).into_iter().flatten().filter(|key| *key != except);
        let mut found: Vec<Requirer> = keys.filter_map(|key| index.policies.get(key)).map(|(r, _)| r.clone()).collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }
}
impl Index {
    fn take_out(&mut self, key: &Key) {
        let Some((_, places)) = self.policies.remove(key) else { return };
        for place in places {
            if let Some(keys) = self.places.get_mut(&place) {
                keys.remove(key);
                if keys.is_empty() {
                    self.places.remove(&place);
                }
            }
        }
    }
    fn add(&mut self, key: &Key, policy: &ConfigurationPolicy) {
        if policy.metadata.deletion_timestamp.is_some() {
            return;
        }
        let related = policy.status.as_ref().map(|s| s.related_objects.as_slice()).unwrap_or_default();
        let places: Vec<Place> = required(&policy.spec, related).iter().map(place).collect();
        for place in &places {
            self.places.entry(place.clone()).or_default().insert(key.clone());
        }
        let requirer = Requirer {
            key: key.clone(),
            uid: policy.metadata.uid.clone().unwrap_or_default(),
            prune: policy.spec.prune(),
        };
        self.policies.insert(key.clone(), (requirer, places));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::runtime::object::Arrived;
    use common::runtime::trigger::Trigger;
    use serde_json::{Value, json};

    fn kept(name: &str, version: u32, action: &str, deleting: bool) -> (Key, Kept) {
        let definition = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "n"}});
        let mut metadata = json!({"name": name, "namespace": "p", "uid": name, "resourceVersion": version.to_string()});
        if deleting {
            metadata["deletionTimestamp"] = json!("2026-11-16T08:00:00Z");
        }
        let spec: Value = json!({"remediationAction": action, "object-templates": [{"complianceType": "musthave", "objectDefinition": definition}]});
        let arrived: Arrived = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        (arrived.key(), Kept::new(&arrived, Trigger::default()))
    }
    fn requiring(others: &Others, all: &[(Key, Kept)]) -> Vec<String> {
        others.refresh(|show| all.iter().for_each(|(key, kept)| show(key, kept)));
        let object = ObjectRef::new("v1", "Pod", "n", "x");
        others.requiring(&object, &Key::new("p", "a")).iter().map(|r| r.key.name.to_string()).collect()
    }

    #[test]
    fn live_enforced_policies_require_and_the_index_follows_them() {
        let others = Others::default();
        let all = [kept("a", 1, "enforce", false), kept("b", 1, "enforce", false), kept("c", 1, "inform", false)];
        assert_eq!(requiring(&others, &all), ["b"]);
        assert!(requiring(&others, &[kept("a", 1, "enforce", false), kept("b", 2, "enforce", true)]).is_empty());
        assert_eq!(requiring(&others, &[kept("c", 2, "enforce", false)]), ["c"]);
        assert!(requiring(&others, &[]).is_empty());
    }
}
