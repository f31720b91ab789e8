//! Which other policies require an object. Built from the cache of policies, and only what changed is read again.
use super::container::Container;
use super::needs::Needs;
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
/// What other policies need. An error says why that cannot be told; then nothing may be pruned.
pub trait Neighbours: Send + Sync {
    /// Who else requires this object.
    fn requiring(&self, object: &ObjectRef, except: &Key) -> Result<Vec<Requirer>, String>;
    /// An object in there that somebody else requires, and who.
    fn inside(&self, container: &Container, except: &Key) -> Result<Option<(ObjectRef, Requirer)>, String>;
}
type Place = (String, String, String, String);
fn place(object: &ObjectRef) -> Place {
    let (name, namespace) = (object.metadata.name.clone(), object.metadata.namespace.clone());
    (object.group().to_owned(), object.kind.clone(), namespace, name)
}
/// Which version it was required in is not kept.
fn object((group, kind, namespace, name): &Place) -> ObjectRef {
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/*") };
    ObjectRef::new(&api_version, kind, namespace, name)
}

#[derive(Default)]
struct Index {
    /// What was read, and when it was last seen.
    versions: HashMap<Key, (Arc<str>, Version, u64)>,
    looks: u64,
    policies: HashMap<Key, (Requirer, Vec<Place>)>,
    places: HashMap<Place, HashSet<Key>>,
    /// Policies that do not say which objects they require.
    vague: HashMap<Key, Needs>,
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
    /// Of exactly these.
    pub fn of<'a>(policies: impl IntoIterator<Item = &'a ConfigurationPolicy>) -> Self {
        let mut index = Index::default();
        for policy in policies {
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            let key = Key::new(&text(&policy.metadata.namespace), &text(&policy.metadata.name));
            index.add(&key, policy);
        }
        Others(Mutex::new(index))
    }
}
impl Neighbours for Others {
    fn requiring(&self, object: &ObjectRef, except: &Key) -> Result<Vec<Requirer>, String> {
        let index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = index.places.get(&place(object)).into_iter().flatten().filter(|key| *key != except);
        let mut found: Vec<Requirer> = keys.filter_map(|key| index.policies.get(key)).map(|(r, _)| r.clone()).collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        // Who requires it for certain keeps it anyway.
        let others = index.vague.iter().filter(|(key, needs)| *key != except && needs.may_mean(object));
        match others.map(|(key, _)| key).min().filter(|_| found.is_empty()) {
            None => Ok(found),
            Some(key) => Err(format!(
                "policy {key} may require it: that one is enforced, and which objects of this kind it means only a template tells that is not resolved here"
            )),
        }
    }
    fn inside(&self, container: &Container, except: &Key) -> Result<Option<(ObjectRef, Requirer)>, String> {
        let index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Containers are few, and go rarely: every policy is looked at.
        let others = index.policies.iter().filter(|(key, _)| *key != except);
        let found = others.filter_map(|(_, (requirer, places))| {
            let object = places.iter().map(object).find(|object| container.holds(object))?;
            Some((object, requirer.clone()))
        });
        if let Some(found) = found.min_by(|a, b| a.1.key.cmp(&b.1.key)) {
            return Ok(Some(found));
        }
        let others = index.vague.iter().filter(|(key, needs)| *key != except && needs.may_be_in(container));
        match others.map(|(key, _)| key).min() {
            None => Ok(None),
            Some(key) => Err(format!(
                "policy {key} may require something in it: that one is enforced, and which objects it means only a template tells that is not resolved here"
            )),
        }
    }
}
impl Index {
    fn take_out(&mut self, key: &Key) {
        self.vague.remove(key);
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
        let needs = Needs::of(policy);
        let places: Vec<Place> = needs.objects.iter().map(place).collect();
        if needs.is_vague() {
            self.vague.insert(key.clone(), needs);
        }
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
        others.requiring(&object, &Key::new("p", "a")).unwrap().iter().map(|r| r.key.name.to_string()).collect()
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
    #[test]
    fn what_others_require_in_a_namespace_is_found() {
        let others = Others::default();
        others.refresh(|show| [kept("b", 1, "enforce", false)].iter().for_each(|(key, kept)| show(key, kept)));
        let inside = |namespace: &str, except: &str| {
            let found = others.inside(&Container::Namespace(namespace.into()), &Key::new("p", except)).unwrap();
            found.map(|(object, requirer)| (object.metadata.name, requirer.key.to_string()))
        };
        assert_eq!(inside("n", "a"), Some(("x".to_owned(), "p/b".to_owned())));
        assert_eq!((inside("n", "b"), inside("other", "a")), (None, None));
    }
    #[test]
    fn a_policy_that_does_not_say_what_it_requires_is_a_doubt_until_it_is_gone() {
        let raw = "{{ range $x := list }}\n- objectDefinition: {kind: Pod}\n{{ end }}\n";
        let policy = |spec: Value| {
            let metadata = json!({"name": "b", "namespace": "p", "uid": "b", "resourceVersion": "1"});
            let arrived: Arrived = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
            (arrived.key(), Kept::new(&arrived, Trigger::default()))
        };
        let vague = policy(json!({"remediationAction": "enforce", "object-templates-raw": raw}));
        let others = Others::default();
        let ask = |all: &[(Key, Kept)], kind: &str, except: &str| {
            others.refresh(|show| all.iter().for_each(|(key, kept)| show(key, kept)));
            others.requiring(&ObjectRef::new("v1", kind, "n", "x"), &Key::new("p", except)).map(|found| found.len())
        };
        assert!(ask(std::slice::from_ref(&vague), "Pod", "a").unwrap_err().contains("p/b"));
        assert_eq!(ask(std::slice::from_ref(&vague), "Pod", "b"), Ok(0), "its own objects");
        assert_eq!(ask(std::slice::from_ref(&vague), "Secret", "a"), Ok(0));
        assert_eq!(ask(&[vague, kept("c", 1, "enforce", false)], "Pod", "a"), Ok(1), "kept anyway");
        assert_eq!(ask(&[], "Pod", "a"), Ok(0));
        // So it is for what has others in it.
        let pods = Container::Kind { group: String::new(), kind: "Pod".into() };
        let vague = policy(json!({"remediationAction": "enforce", "object-templates-raw": raw}));
        others.refresh(|show| show(&vague.0, &vague.1));
        assert!(others.inside(&pods, &Key::new("p", "a")).unwrap_err().contains("p/b"));
        assert_eq!(others.inside(&pods, &Key::new("p", "b")), Ok(None), "its own objects");
    }
}
