//! Which other policies require an object. Built from the cache of policies, and only what changed is read again.
use super::container::Container;
use super::needs::Needs;
use crate::api::{ConfigurationPolicy, ObjectRef, Prune};
use crate::namespaces::Atlas;
use common::runtime::object::{Kept, Key, Version};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
/// Something in a container that another policy requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lodger {
    /// What.
    pub object: ObjectRef,
    /// Who requires it.
    pub requirer: Requirer,
    /// It is in there only if its kind lives in namespaces: the policy names none, and a selector leads there.
    pub if_namespaced: bool,
}
/// What others require in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// What they name, in the order of who does.
    pub lodgers: Vec<Lodger>,
    /// Why there may be more. It counts where none of those is really in there.
    pub doubt: Option<String>,
}
/// What other policies need. An error says why that cannot be told; then nothing may be pruned.
pub trait Neighbours: Send + Sync {
    /// Who else requires this object.
    fn requiring(&self, object: &ObjectRef, except: &Key) -> Result<Vec<Requirer>, String>;
    /// What somebody else requires in there.
    fn inside(&self, container: &Container, except: &Key) -> Result<Inside, String>;
}
/// Why nobody can tell.
const UNRESOLVED: &str = "only a template tells that is not resolved here";

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
    policies: HashMap<Key, (Requirer, Needs)>,
    /// Without a namespace where a policy names none.
    places: HashMap<Place, HashSet<Key>>,
    /// Policies that do not say which objects they require.
    vague: HashSet<Key>,
}
/// The index.
pub struct Others {
    index: Mutex<Index>,
    atlas: Arc<dyn Atlas>,
}
impl Others {
    /// Of nobody yet. `atlas`: the namespaces, for policies that select them.
    pub fn new(atlas: Arc<dyn Atlas>) -> Self {
        Others { index: Mutex::default(), atlas }
    }
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Brings the index up to date with the policies there are now; `show_all` shows every one of them.
    pub fn refresh(&self, show_all: impl FnOnce(&mut dyn FnMut(&Key, &Kept))) {
        let mut index = self.index();
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
    pub fn of<'a>(policies: impl IntoIterator<Item = &'a ConfigurationPolicy>, atlas: Arc<dyn Atlas>) -> Self {
        let mut index = Index::default();
        for policy in policies {
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            let key = Key::new(&text(&policy.metadata.namespace), &text(&policy.metadata.name));
            index.add(&key, policy);
        }
        Others { index: Mutex::new(index), atlas }
    }
}
impl Neighbours for Others {
    fn requiring(&self, object: &ObjectRef, except: &Key) -> Result<Vec<Requirer>, String> {
        let index = self.index();
        let others = |place: &Place| index.places.get(place).into_iter().flatten().filter(|key| *key != except);
        let exactly = place(object);
        let mut found: BTreeSet<&Key> = others(&exactly).collect();
        let mut doubts: BTreeMap<&Key, String> = BTreeMap::new();
        let namespace = object.metadata.namespace.as_str();
        if !namespace.is_empty() {
            let (group, kind, _, name) = exactly;
            for key in others(&(group, kind, String::new(), name)) {
                let Some((_, needs)) = index.policies.get(key) else { continue };
                match needs.takes_in(namespace, &*self.atlas) {
                    Ok(true) => drop(found.insert(key)),
                    Ok(false) => {}
                    Err(why) => drop(doubts.insert(key, why)),
                }
            }
        }
        // Who requires it for certain keeps it anyway.
        if found.is_empty() {
            let may = |key: &&Key| index.policies.get(*key).is_some_and(|(_, needs)| needs.may_mean(object));
            let template = index.vague.iter().filter(|key| *key != except).filter(may).min();
            let unresolved = template.map(|key| {
                format!("policy {key} may require it: that one is enforced, and which objects of this kind it means {UNRESOLVED}")
            });
            let unknown = doubts
                .first_key_value()
                .map(|(key, why)| format!("policy {key} may require it: that one is enforced, and {why}"));
            if let Some(why) = unresolved.or(unknown) {
                return Err(why);
            }
        }
        Ok(found.into_iter().filter_map(|key| index.policies.get(key)).map(|(r, _)| r.clone()).collect())
    }
    fn inside(&self, container: &Container, except: &Key) -> Result<Inside, String> {
        let index = self.index();
        // Containers are few, and go rarely: every policy is looked at.
        let others = || index.policies.iter().filter(|(key, _)| *key != except);
        let mut found = Vec::new();
        let mut doubts: BTreeMap<&Key, String> = BTreeMap::new();
        for (key, (requirer, needs)) in others() {
            let lodger = |object: &ObjectRef, if_namespaced| {
                let (object, requirer) = (object.clone(), requirer.clone());
                Lodger { object, requirer, if_namespaced }
            };
            found.extend(needs.objects.iter().filter(|o| container.holds(o)).map(|o| lodger(o, false)));
            let Container::Namespace(namespace) = container else { continue };
            let mut anywhere = needs.objects.iter().filter(|o| o.metadata.namespace.is_empty()).peekable();
            if anywhere.peek().is_none() {
                continue;
            }
            match needs.takes_in(namespace, &*self.atlas) {
                Ok(true) => found.extend(anywhere.map(|o| {
                    let mut object = o.clone();
                    object.metadata.namespace.clone_from(namespace);
                    lodger(&object, true)
                })),
                Ok(false) => {}
                Err(why) => drop(doubts.insert(key, why)),
            }
        }
        found.sort_by(|a, b| (&a.requirer.key, a.if_namespaced).cmp(&(&b.requirer.key, b.if_namespaced)));
        let may = |(key, (_, needs)): &(&Key, &(Requirer, Needs))| {
            index.vague.contains(*key) && needs.may_be_in(container, &*self.atlas)
        };
        let template = others().filter(may).map(|(key, _)| key).min();
        let unresolved = template.map(|key| (key, format!("which objects it means {UNRESOLVED}")));
        let doubt = unresolved
            .or_else(|| doubts.pop_first())
            .map(|(key, why)| format!("policy {key} may require something in it: that one is enforced, and {why}"));
        Ok(Inside { lodgers: found, doubt })
    }
}
impl Index {
    fn take_out(&mut self, key: &Key) {
        self.vague.remove(key);
        let Some((_, needs)) = self.policies.remove(key) else { return };
        for place in needs.objects.iter().map(place) {
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
        if needs.is_vague() {
            self.vague.insert(key.clone());
        }
        for place in needs.objects.iter().map(place) {
            self.places.entry(place).or_default().insert(key.clone());
        }
        let requirer = Requirer {
            key: key.clone(),
            uid: policy.metadata.uid.clone().unwrap_or_default(),
            prune: policy.spec.prune(),
        };
        self.policies.insert(key.clone(), (requirer, needs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespaces::Namespace;
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
        let others = Others::new(Arc::new(Vec::new()));
        let all = [kept("a", 1, "enforce", false), kept("b", 1, "enforce", false), kept("c", 1, "inform", false)];
        assert_eq!(requiring(&others, &all), ["b"]);
        assert!(requiring(&others, &[kept("a", 1, "enforce", false), kept("b", 2, "enforce", true)]).is_empty());
        assert_eq!(requiring(&others, &[kept("c", 2, "enforce", false)]), ["c"]);
        assert!(requiring(&others, &[]).is_empty());
    }
    #[test]
    fn what_others_require_in_a_namespace_is_found() {
        let others = Others::new(Arc::new(Vec::new()));
        others.refresh(|show| [kept("b", 1, "enforce", false)].iter().for_each(|(key, kept)| show(key, kept)));
        let inside = |namespace: &str, except: &str| {
            let found = others.inside(&Container::Namespace(namespace.into()), &Key::new("p", except)).unwrap();
            found
                .lodgers
                .into_iter()
                .next()
                .map(|lodger| (lodger.object.metadata.name, lodger.requirer.key.to_string()))
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
        let others = Others::new(Arc::new(Vec::new()));
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
        assert!(others.inside(&pods, &Key::new("p", "a")).unwrap().doubt.unwrap().contains("p/b"));
        assert_eq!(others.inside(&pods, &Key::new("p", "b")), Ok(Inside::default()), "its own objects");
    }
    #[test]
    fn what_a_selector_of_namespaces_leads_to_is_required_before_there_is_a_status() {
        let policy = |selector: Value, namespace: &str| -> ConfigurationPolicy {
            let definition =
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": namespace}});
            let template = json!({"complianceType": "musthave", "objectDefinition": definition});
            serde_json::from_value(json!({
                "metadata": {"name": "b", "namespace": "p", "uid": "b"},
                "spec": {"remediationAction": "enforce", "namespaceSelector": selector, "object-templates": [template]},
            }))
            .unwrap()
        };
        let known = |name: &str, labels: Value| Namespace { name: name.into(), labels, terminating: false };
        let atlas = || Arc::new(vec![known("shop", json!({"team": "x"})), known("other", json!({}))]);
        let (team, except) = (json!({"matchLabels": {"team": "x"}}), Key::new("p", "a"));
        for (selector, namespace, place, found) in [
            (json!({"include": ["sho*"]}), "", "shop", Some(1)),
            (json!({"include": ["sho*"]}), "", "other", Some(0)),
            (json!({"include": ["*"]}), "other", "shop", Some(0)),
            (team.clone(), "", "shop", Some(1)),
            (team.clone(), "", "other", Some(0)),
            (team, "", "new", None),
            (json!(null), "", "shop", Some(0)),
        ] {
            let others = Others::of([&policy(selector.clone(), namespace)], atlas());
            let asked = others.requiring(&ObjectRef::new("v1", "Pod", place, "x"), &except);
            assert_eq!(asked.as_ref().ok().map(Vec::len), found, "{selector} {place}: {asked:?}");
            let Inside { lodgers, doubt } = others.inside(&Container::Namespace(place.into()), &except).unwrap();
            assert_eq!((lodgers.len(), doubt.is_none()), (found.unwrap_or(0), found.is_some()), "{selector} {place}");
            assert!(lodgers.iter().all(|l| l.if_namespaced && l.object.metadata.namespace == place));
        }
    }
}
