//! What a policy created, written down before it is created. Pure.
//!
//! The ledger lives in a ConfigMap of its own: status is lost in restores and reset by the framework, and so are the
//! annotations of a policy. Its id is random and also part of the field manager of every create, so that ledger and child
//! vouch for each other.
use super::mark;
use crate::api::ObjectRef;
use crate::names::{CREATE_MANAGER, LEDGER_DATA, LEDGER_FINALIZER, LEDGER_LABEL, ledger_name};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Bytes of a ledger at most; the API server takes a little more than a million.
const MOST_BYTES: usize = 900_000;

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Which.
    pub object: ObjectRef,
    /// This policy created it, or was about to.
    #[serde(default)]
    pub created: bool,
    /// Its uid, once that is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}
/// The objects of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Of this format.
    pub version: u32,
    /// Name of the policy.
    pub policy: String,
    /// Uid of the policy.
    pub uid: String,
    /// Random; part of the field manager of creates.
    pub id: String,
    /// The objects.
    #[serde(default)]
    pub entries: Vec<Entry>,
    /// The version of the ConfigMap that this was read from; none if it was not written yet.
    #[serde(skip)]
    pub stored: Option<String>,
}
/// The format of today.
pub const FORMAT: u32 = 1;

impl Ledger {
    /// An empty one.
    pub fn new(policy: &str, uid: &str, id: [u8; 16]) -> Self {
        let (policy, uid, id) = (policy.into(), uid.into(), hex::encode(id));
        Ledger { version: FORMAT, policy, uid, id, entries: Vec::new(), stored: None }
    }
    /// Field manager of creates.
    pub fn manager(&self) -> String {
        format!("{CREATE_MANAGER}{}", self.id)
    }
    /// What is written down about an object.
    pub fn find(&self, object: &ObjectRef) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.object.same(object))
    }
    /// Writes an object down. A creation is never un-written by this; a known uid stays.
    pub fn put(&mut self, object: &ObjectRef, created: bool, uid: &str) {
        match self.entries.iter_mut().find(|entry| entry.object.same(object)) {
            Some(entry) => {
                entry.created |= created;
                entry.object = object.clone();
                if !uid.is_empty() {
                    uid.clone_into(&mut entry.uid);
                }
            }
            None => self.entries.push(Entry { object: object.clone(), created, uid: uid.to_owned() }),
        }
    }
    /// What is written down about an object becomes what it was.
    pub fn restore(&mut self, object: &ObjectRef, before: Option<&Entry>) {
        self.remove(object);
        self.entries.extend(before.cloned());
    }
    /// The same, whatever versions they were read from.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let Ledger { version, policy, uid, id, entries, stored: _ } = self;
        (version, policy, uid, id, entries) == (&other.version, &other.policy, &other.uid, &other.id, &other.entries)
    }
    /// Takes an object out.
    pub fn remove(&mut self, object: &ObjectRef) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| !entry.object.same(object));
        self.entries.len() != before
    }
    /// It turned out that somebody else made an object. `named`: that the policy names it is still worth knowing.
    pub fn disprove(&mut self, object: &ObjectRef, named: bool) {
        self.remove(object);
        if named {
            self.put(object, false, "");
        }
    }
    /// Does the live object carry this ledger's mark? Only an uncached read shows all of it.
    pub fn marks(&self, entry: &Entry, live: &Value) -> bool {
        let manager = self.manager();
        mark::is_manager(live, &manager) || (entry.uid.is_empty() && mark::is_generated(live, &manager))
    }
    /// As the data of a ConfigMap; an error if it is too long.
    pub fn write(&self) -> Result<String, String> {
        let text = serde_json::to_string(self).map_err(|e| e.to_string())?;
        if text.len() > MOST_BYTES {
            return Err(format!(
                "the ledger of this policy is full ({} objects): split the policy",
                self.entries.len()
            ));
        }
        Ok(text)
    }
    /// From a ConfigMap.
    pub fn read(config_map: &Value) -> Option<Self> {
        let text = config_map["data"][LEDGER_DATA].as_str()?;
        let ledger: Ledger = serde_json::from_str(text).ok()?;
        let stored = config_map["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        (ledger.version == FORMAT && !ledger.id.is_empty()).then_some(Ledger { stored, ..ledger })
    }
    /// The whole ConfigMap: of this version, or to be made.
    pub fn config_map(&self, namespace: &str, version: Option<&str>) -> Result<Value, String> {
        let mut metadata = json!({
            "name": ledger_name(&self.policy), "namespace": namespace,
            "labels": {LEDGER_LABEL: "true"}, "finalizers": [LEDGER_FINALIZER],
        });
        if let Some(version) = version {
            metadata["resourceVersion"] = version.into();
        }
        let data = json!({ LEDGER_DATA: self.write()? });
        Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> ObjectRef {
        ObjectRef::new("v1", "Pod", "n", name)
    }

    #[test]
    fn a_ledger_reads_back() {
        let mut ledger = Ledger::new("p", "u", [7; 16]);
        ledger.put(&object("a"), true, "");
        ledger.put(&object("b"), false, "2");
        let map = ledger.config_map("n", Some("5")).unwrap();
        let read = Ledger::read(&map).unwrap();
        assert!(read.says_the_same(&ledger) && read.stored.as_deref() == Some("5"));
        assert_eq!(map["metadata"]["finalizers"][0], LEDGER_FINALIZER);
        assert!(ledger.manager().len() <= 128);
    }
    #[test]
    fn a_creation_is_never_unwritten_and_versions_do_not_matter() {
        let mut ledger = Ledger::new("p", "u", [7; 16]);
        ledger.put(&ObjectRef::new("apps/v1beta1", "X", "n", "a"), true, "1");
        ledger.put(&ObjectRef::new("apps/v1", "X", "n", "a"), false, "");
        assert_eq!(ledger.entries.len(), 1);
        let entry = ledger.find(&ObjectRef::new("apps/v2", "X", "n", "a")).unwrap();
        assert!(entry.created && entry.uid == "1" && entry.object.api_version == "apps/v1");
        assert!(ledger.remove(&ObjectRef::new("apps/v9", "X", "n", "a")) && ledger.entries.is_empty());
    }
    #[test]
    fn the_mark_is_in_the_managed_fields() {
        let ledger = Ledger::new("p", "u", [7; 16]);
        let live = json!({"metadata": {"managedFields": [{"manager": "kubectl"}, {"manager": ledger.manager()}]}});
        let entry = Entry::default();
        assert!(ledger.marks(&entry, &live));
        assert!(!Ledger::new("p", "u", [8; 16]).marks(&entry, &live) && !ledger.marks(&entry, &Value::Null));
    }
    #[test]
    fn odd_ledgers_are_none() {
        for odd in [
            json!({}),
            json!({"data": {LEDGER_DATA: "{"}}),
            json!({"data": {LEDGER_DATA: "{\"version\":9,\"policy\":\"\",\"uid\":\"\",\"id\":\"x\"}"}}),
        ] {
            assert_eq!(Ledger::read(&odd), None);
        }
    }
    #[test]
    fn a_ledger_has_an_end() {
        let mut ledger = Ledger::new("p", "u", [7; 16]);
        for n in 0..10_000 {
            ledger.entries.push(Entry {
                object: object(&format!("{n}{}", "x".repeat(100))),
                created: true,
                uid: String::new(),
            });
        }
        assert!(ledger.write().unwrap_err().contains("is full"));
    }
}
