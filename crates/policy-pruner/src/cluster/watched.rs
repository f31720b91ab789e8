//! One watch and what it has seen. Pure: news in, the policies to wake out.
use crate::text::selector::Selector;
use common::runtime::object::{Arrived, Kept, Key, Version};
use common::runtime::trigger::Trigger;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What is known of one object.
#[derive(Clone, Debug)]
enum Held {
    There(Kept, u32),
    /// Gone at this version, or never there.
    Gone(Version),
}

fn digest(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// The objects of one watch.
#[derive(Debug, Default)]
pub struct Store {
    objects: HashMap<Key, Held>,
    /// Everything is kept, not only what somebody follows.
    pub all: bool,
    /// Hashes of everything there is, kept or not: what is not among them is not there.
    present: HashMap<u64, u32>,
    followers: HashMap<Key, HashSet<Key>>,
    lists: HashSet<(String, Selector, Key)>,
    round: u32,
    /// A list was complete, and nothing has put that in doubt since.
    pub complete: bool,
    /// Why the list is not complete.
    pub trouble: Option<(u16, String)>,
}
impl Store {
    /// Empty; `all` keeps everything, not only what somebody follows.
    pub fn keeping(all: bool) -> Self {
        Store { all, ..Store::default() }
    }
    /// A policy follows one object.
    pub fn follow(&mut self, object: &Key, policy: &Key) {
        self.followers.entry(object.clone()).or_default().insert(policy.clone());
    }
    /// A policy follows all objects of a namespace (or of all) that match.
    pub fn follow_list(&mut self, namespace: &str, selector: &Selector, policy: &Key) {
        self.lists.insert((namespace.to_owned(), selector.clone(), policy.clone()));
    }
    /// A policy no longer follows an object.
    pub fn leave(&mut self, object: &Key, policy: &Key) {
        if let Some(policies) = self.followers.get_mut(object) {
            policies.remove(policy);
            if policies.is_empty() {
                self.followers.remove(object);
                if !self.all {
                    self.objects.remove(object);
                }
            }
        }
    }
    /// A policy no longer follows a list.
    pub fn leave_list(&mut self, namespace: &str, selector: &Selector, policy: &Key) {
        self.lists.remove(&(namespace.to_owned(), selector.clone(), policy.clone()));
    }
    /// Nobody follows anything.
    pub fn is_idle(&self) -> bool {
        self.followers.is_empty() && self.lists.is_empty()
    }
    /// Every policy that follows anything here.
    pub fn everybody(&self) -> HashSet<Key> {
        let lists = self.lists.iter().map(|(_, _, policy)| policy);
        self.followers.values().flatten().chain(lists).cloned().collect()
    }
    fn wanted(&self, object: &Key) -> bool {
        self.all || self.followers.contains_key(object)
    }
    /// One object: outer `None` if this watch cannot tell.
    #[allow(clippy::option_option)] // there, not there, not known
    pub fn get(&self, object: &Key) -> Option<Option<Value>> {
        match self.objects.get(object) {
            Some(Held::There(kept, _)) => Some(kept.decode().ok()),
            Some(Held::Gone(_)) => Some(None),
            None => (self.complete && (self.all || !self.present.contains_key(&digest(object)))).then_some(None),
        }
    }
    /// All that match; `None` if this watch cannot tell. It may have been emptied by a refusal since it could.
    pub fn list(&self, namespace: &str, selector: &Selector) -> Option<Vec<Value>> {
        if !self.complete {
            return None;
        }
        let inside = self.objects.iter().filter(|(key, _)| namespace.is_empty() || *key.namespace == *namespace);
        let there = inside.filter_map(|(_, held)| match held {
            Held::There(kept, _) => kept.decode::<Value>().ok(),
            Held::Gone(_) => None,
        });
        let mut found: Vec<Value> = there.filter(|v| selector.matches(&v["metadata"]["labels"])).collect();
        found.sort_by_key(|v| {
            let text = |field: &str| v["metadata"][field].as_str().unwrap_or_default().to_owned();
            (text("namespace"), text("name"))
        });
        Some(found)
    }
    /// A list begins.
    pub fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
    }
    /// An object, from a list, a change, our own write or read. Returns whom to wake.
    pub fn apply(&mut self, arrived: &Arrived) -> HashSet<Key> {
        let key = arrived.key();
        let round = self.round;
        self.present.insert(digest(&key), round);
        let known = match self.objects.get_mut(&key) {
            Some(Held::There(kept, seen)) => {
                *seen = round;
                Some(kept.version)
            }
            Some(Held::Gone(version)) => Some(*version),
            None => None,
        };
        if known.is_some_and(|version| arrived.version() <= version) {
            return HashSet::new();
        }
        if self.wanted(&key) {
            self.objects.insert(key.clone(), Held::There(Kept::new(arrived, Trigger::default()), round));
        }
        self.interested(&key, arrived)
    }
    fn interested(&self, key: &Key, arrived: &Arrived) -> HashSet<Key> {
        let labels = &arrived.value["metadata"]["labels"];
        let by_list = self.lists.iter().filter(|(namespace, selector, _)| {
            (namespace.is_empty() || **namespace == *key.namespace) && selector.matches(labels)
        });
        let by_name = self.followers.get(key).into_iter().flatten();
        by_name.chain(by_list.map(|(_, _, policy)| policy)).cloned().collect()
    }
    /// An object is gone.
    pub fn remove(&mut self, arrived: &Arrived) -> HashSet<Key> {
        let key = arrived.key();
        self.present.remove(&digest(&key));
        if self.followers.contains_key(&key) {
            self.objects.insert(key.clone(), Held::Gone(arrived.version()));
        } else {
            self.objects.remove(&key);
        }
        self.interested(&key, arrived)
    }
    /// An uncached read found nothing.
    pub fn absent(&mut self, key: &Key) {
        if self.wanted(key) && !self.objects.contains_key(key) {
            self.objects.insert(key.clone(), Held::Gone(Version::default()));
        }
    }
    /// The list is complete: what it did not mention is gone.
    pub fn finish(&mut self) -> HashSet<Key> {
        let round = self.round;
        let mut woken = HashSet::new();
        let first = !self.complete;
        self.present.retain(|_, seen| *seen == round);
        let lost: Vec<(Key, Version)> = self
            .objects
            .iter()
            .filter_map(|(key, held)| match held {
                Held::There(kept, seen) if *seen != round => Some((key.clone(), kept.version)),
                _ => None,
            })
            .collect();
        for (key, version) in lost {
            woken.extend(self.followers.get(&key).into_iter().flatten().cloned());
            woken.extend(self.lists.iter().map(|(_, _, policy)| policy.clone()));
            if self.followers.contains_key(&key) {
                self.objects.insert(key, Held::Gone(version));
            } else {
                self.objects.remove(&key);
            }
        }
        // One that is followed since the list went by it is there, and only not known.
        for key in self.followers.keys().filter(|key| !self.present.contains_key(&digest(key))) {
            self.objects.entry(key.clone()).or_insert(Held::Gone(Version::default()));
        }
        self.complete = true;
        // Who waited through trouble must hear that it is over.
        if first && self.trouble.take().is_some() {
            woken.extend(self.everybody());
        }
        woken
    }
    /// List or watch failed. A kind that is gone, or a right, puts everything in doubt: whoever relied on it must hear of it,
    /// once, because nothing else will tell.
    pub fn failed(&mut self, code: u16, why: &str) -> HashSet<Key> {
        let mut woken = HashSet::new();
        if matches!(code, 403 | 404) && self.complete {
            self.complete = false;
            self.objects.clear();
            self.present.clear();
            woken = self.everybody();
        }
        if !self.complete {
            self.trouble = Some((code, why.to_owned()));
        }
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use serde_json::json;

    fn object(name: &str, version: u32) -> Arrived {
        let metadata = json!({"name": name, "namespace": "n", "uid": name, "resourceVersion": version.to_string(), "labels": {"l": name}});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }
    fn key(name: &str) -> Key {
        Key::new("n", name)
    }
    fn policy() -> Key {
        Key::new("p", "policy")
    }

    #[test]
    fn only_what_is_followed_is_kept_and_wakes() {
        let mut store = Store::default();
        store.follow(&key("a"), &policy());
        store.begin();
        assert_eq!(store.apply(&object("a", 1)), [policy()].into());
        assert!(store.apply(&object("b", 1)).is_empty());
        store.finish();
        assert!(store.get(&key("a")).unwrap().is_some());
        assert!(store.get(&key("b")).is_none(), "not followed: there, and not known");
        assert_eq!(store.get(&key("c")), Some(None), "not in the list: not there");
    }
    #[test]
    fn what_is_followed_since_its_list_went_by_is_not_known_rather_than_gone() {
        for lists in 1..=2 {
            let mut store = Store::default();
            store.follow(&key("b"), &policy());
            for _ in 0..lists {
                store.begin();
                store.apply(&object("a", 1));
            }
            store.follow(&key("a"), &policy());
            store.finish();
            assert_eq!(store.get(&key("a")), None, "there, and not known");
            assert_eq!(store.get(&key("b")), Some(None), "not in the list: not there");
            assert_eq!(store.apply(&object("a", 1)), [policy()].into(), "a look makes it known");
            assert!(store.get(&key("a")).unwrap().is_some());
        }
    }
    #[test]
    fn older_news_is_not_believed_also_after_the_end() {
        let mut store = Store::default();
        store.follow(&key("a"), &policy());
        store.apply(&object("a", 5));
        assert!(store.apply(&object("a", 4)).is_empty());
        assert_eq!(store.remove(&object("a", 6)), [policy()].into());
        assert!(store.apply(&object("a", 5)).is_empty());
        assert_eq!(store.get(&key("a")), Some(None));
        assert!(!store.apply(&object("a", 7)).is_empty(), "created anew");
    }
    #[test]
    fn a_new_list_takes_away_what_it_does_not_mention() {
        let mut store = Store { all: true, ..Store::default() };
        let all = Selector::parse(&std::collections::BTreeMap::new(), &[], Dialect::Current).unwrap();
        store.follow_list("n", &all, &policy());
        store.begin();
        store.apply(&object("a", 1));
        store.apply(&object("b", 1));
        store.finish();
        assert_eq!(store.list("n", &all).unwrap().len(), 2);
        store.begin();
        store.apply(&object("b", 1));
        assert_eq!(store.finish(), [policy()].into());
        assert_eq!(store.list("", &all).unwrap().len(), 1);
        assert!(store.list("other", &all).unwrap().is_empty());
    }
    #[test]
    fn a_kind_that_vanishes_puts_everything_in_doubt() {
        let mut store = Store::default();
        store.follow(&key("a"), &policy());
        store.begin();
        store.apply(&object("a", 1));
        store.finish();
        assert!(store.failed(500, "x").is_empty() && store.complete, "trouble alone is waited out");
        assert_eq!(store.failed(404, "no such kind"), [policy()].into());
        assert!(!store.complete && store.get(&key("a")).is_none());
        store.begin();
        assert_eq!(store.finish(), [policy()].into(), "whoever waited is told");
        assert_eq!(store.get(&key("a")), Some(None));
    }
    #[test]
    fn a_right_that_is_taken_away_is_told_once() {
        let mut store = Store::default();
        store.follow(&key("a"), &policy());
        store.begin();
        store.finish();
        assert_eq!(store.failed(403, "forbidden"), [policy()].into());
        assert!(!store.complete && store.failed(403, "forbidden").is_empty(), "asking again wakes nobody again");
        store.begin();
        assert_eq!(store.finish(), [policy()].into(), "given back");
    }
    #[test]
    fn whoever_leaves_takes_his_objects_along() {
        let mut store = Store::default();
        store.follow(&key("a"), &policy());
        store.apply(&object("a", 1));
        store.leave(&key("a"), &policy());
        assert!(store.is_idle() && store.get(&key("a")).is_none(), "not kept any more");
    }
}
