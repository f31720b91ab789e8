//! Ledgers on the API server: read once, kept in mind, written with a guard.
use super::ledger::Ledger;
use crate::cluster::kinds::Mapping;
use crate::cluster::objects::{Deleted, Objects};
use crate::cluster::spaces;
use crate::cluster::wire::Trouble;
use crate::dialect::Dialect;
use crate::names::{LEDGER_FINALIZER, LEDGER_LABEL, MANAGER, ledger_name};
use crate::text::selector::Selector;
use common::random::Random;
use common::runtime::object::Key;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// ConfigMaps.
pub fn mapping() -> Mapping {
    Mapping::known("", "v1", "ConfigMap", "configmaps", true)
}

/// Every ConfigMap that is labelled as a ledger, in one namespace or all.
pub async fn labelled(objects: &Objects, namespace: &str) -> Result<Vec<Value>, Trouble> {
    let label = BTreeMap::from([(LEDGER_LABEL.to_owned(), "true".to_owned())]);
    let selector = Selector::parse(&label, &[], Dialect::Current).map_err(Trouble::silent)?;
    objects.list(&mapping(), namespace, &selector).await
}
/// Lets go of every ledger of a namespace: the controller goes, and nobody else would. They stay, and tell what they know.
pub async fn let_go_of_all(objects: &Objects, namespace: &str) -> Result<(), Trouble> {
    for map in labelled(objects, namespace).await? {
        let mut finalizers = map["metadata"]["finalizers"].as_array().into_iter().flatten();
        let Some(at) = finalizers.position(|finalizer| finalizer == LEDGER_FINALIZER) else { continue };
        let name = map["metadata"]["name"].as_str().unwrap_or_default();
        match objects.patch(mapping().path_of(namespace, name), without_finalizer(at)).await {
            Err(trouble) if !trouble.is_missing() => return Err(trouble),
            _ => {}
        }
    }
    Ok(())
}
/// A patch that takes our finalizer from its place in the list.
fn without_finalizer(at: usize) -> Value {
    let pointer = format!("/metadata/finalizers/{at}");
    json!([{"op": "test", "path": pointer, "value": LEDGER_FINALIZER}, {"op": "remove", "path": pointer}])
}

/// Reason of the trouble with a ledger that is there and cannot be read.
const UNREADABLE: &str = "UnreadableLedger";

/// A ledger as last seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// What it says.
    pub ledger: Ledger,
    version: String,
    uid: String,
    finalizers: Vec<String>,
    deleting: bool,
}
impl Held {
    fn read(object: &Value) -> Option<Self> {
        let metadata = &object["metadata"];
        let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
        Some(Held {
            ledger: Ledger::read(object)?,
            version: metadata["resourceVersion"].as_str()?.to_owned(),
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            finalizers: finalizers.filter_map(|f| f.as_str().map(str::to_owned)).collect(),
            deleting: metadata["deletionTimestamp"].is_string(),
        })
    }
    fn number(&self) -> u64 {
        self.version.parse().unwrap_or(u64::MAX)
    }
}

#[derive(Default)]
struct State {
    held: HashMap<Key, Held>,
    /// ConfigMaps in the place of ledgers that cannot be read: which policies they belong to only their names tell.
    odd: HashSet<Key>,
    /// Everything there is was listed: what is not held is not there.
    complete: bool,
}

/// All ledgers this process knows.
pub struct Ledgers {
    objects: Objects,
    random: Arc<Random>,
    state: Mutex<State>,
}
impl Ledgers {
    /// Nothing is known yet.
    pub fn new(objects: Objects, random: Arc<Random>) -> Self {
        Ledgers { objects, random, state: Mutex::default() }
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A list of all ledgers was complete.
    pub fn complete(&self) {
        self.state().complete = true;
    }
    /// A ledger was seen. Returns the policy it belongs to, and whether somebody wants the ledger gone.
    pub fn saw(&self, object: &Value) -> Option<(Key, bool)> {
        let namespace = object["metadata"]["namespace"].as_str()?;
        let held = Held::read(object);
        let place = Key::new(namespace, object["metadata"]["name"].as_str().unwrap_or_default());
        if held.is_none() {
            self.state().odd.insert(place);
            return None;
        }
        self.state().odd.remove(&place);
        let held = held?;
        let key = Key::new(namespace, &held.ledger.policy);
        let deleting = held.deleting;
        let mut state = self.state();
        let newer = state.held.get(&key).is_none_or(|known| known.number() < held.number());
        if newer {
            state.held.insert(key.clone(), held);
        }
        Some((key, deleting))
    }
    /// A ledger is gone.
    pub fn lost(&self, object: &Value) {
        let Some(namespace) = object["metadata"]["namespace"].as_str() else { return };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        self.state().odd.remove(&Key::new(namespace, name));
        let Some(held) = Held::read(object) else { return };
        let key = Key::new(namespace, &held.ledger.policy);
        let mut state = self.state();
        if state.held.get(&key).is_some_and(|known| known.number() <= held.number()) {
            state.held.remove(&key);
        }
    }
    /// Does somebody want the ledger of this policy gone, as far as this process knows?
    pub fn is_ending(&self, policy: &Key) -> bool {
        self.state().held.get(policy).is_some_and(|held| held.deleting)
    }
    /// Is there a ledger of the policy with this very uid, as far as this process knows?
    pub fn is_of(&self, policy: &Key, uid: &str) -> bool {
        self.state().held.get(policy).is_some_and(|held| held.ledger.uid == uid)
    }
    /// The ledger of a policy, from memory if that can tell.
    pub async fn get(&self, policy: &Key) -> Result<Option<Ledger>, Trouble> {
        {
            let state = self.state();
            let odd = state.odd.contains(&Key::new(&policy.namespace, &ledger_name(&policy.name)));
            if let Some(held) = state.held.get(policy).filter(|_| !odd) {
                return Ok(Some(held.ledger.clone()));
            }
            if state.complete && !odd {
                return Ok(None);
            }
        }
        self.fetch(policy).await
    }
    /// The ledger of a policy, from the API server.
    pub async fn fetch(&self, policy: &Key) -> Result<Option<Ledger>, Trouble> {
        let found = self.objects.get(&mapping(), &policy.namespace, &ledger_name(&policy.name)).await?;
        let Some(object) = found else {
            self.state().held.remove(policy);
            return Ok(None);
        };
        let Some(held) = Held::read(&object) else {
            let message = format!(
                "the ConfigMap {} in namespace {} is no ledger that this version can read: mend it, or move it out of the way, finalizer and all",
                ledger_name(&policy.name),
                policy.namespace
            );
            return Err(Trouble { reason: UNREADABLE.to_owned(), message, ..Trouble::default() });
        };
        let ledger = held.ledger.clone();
        self.state().held.insert(policy.clone(), held);
        Ok(Some(ledger))
    }
    /// A new, empty ledger; not written yet.
    pub fn begin(&self, policy: &Key, uid: &str) -> Ledger {
        Ledger::new(&policy.name, uid, self.random.bits128())
    }
    /// Writes a ledger over the version that it was read from. A conflict forgets what was in mind: decide anew.
    pub async fn save(&self, policy: &Key, ledger: &mut Ledger) -> Result<(), Trouble> {
        self.write(policy, ledger, false).await
    }
    /// As [`Ledgers::save`], for a policy that is being deleted: a ledger that is to go as well lasts as long as it is needed.
    pub async fn save_to_the_end(&self, policy: &Key, ledger: &mut Ledger) -> Result<(), Trouble> {
        self.write(policy, ledger, true).await
    }
    async fn write(&self, policy: &Key, ledger: &mut Ledger, policy_ends: bool) -> Result<(), Trouble> {
        let known = self.state().held.get(policy).cloned();
        if known.as_ref().is_some_and(|held| held.ledger.says_the_same(ledger) && !held.deleting) {
            return Ok(());
        }
        // Another pass of this process may have written something in: what is to be written does not know of it.
        if known.as_ref().is_some_and(|held| ledger.stored.as_ref() != Some(&held.version)) {
            let message = "the ledger was written meanwhile: decided anew".to_owned();
            return Err(Trouble { code: 409, reason: "Conflict".to_owned(), message, ..Trouble::default() });
        }
        let known = match known {
            // Somebody wants it gone while its policy lives: let it go, and write it anew. Where nothing can be made any more it
            // would be gone for good.
            Some(held) if held.deleting && !policy_ends && !self.namespace_ends(policy).await? => {
                self.release(policy).await?;
                None
            }
            other => other,
        };
        if known.as_ref().is_some_and(|held| held.ledger.says_the_same(ledger)) {
            return Ok(());
        }
        let config_map = ledger
            .config_map(&policy.namespace, known.as_ref().map(|held| held.version.as_str()))
            .map_err(Trouble::silent)?;
        let written = match &known {
            Some(_) => {
                let place = (&*policy.namespace, &*ledger_name(&policy.name));
                self.objects.update(&mapping(), place, &config_map, false).await
            }
            None => self.objects.create(&mapping(), &policy.namespace, &config_map, MANAGER).await,
        };
        match written {
            Ok(object) => {
                if let Some(held) = Held::read(&object) {
                    ledger.stored = Some(held.version.clone());
                    self.state().held.insert(policy.clone(), held);
                }
                Ok(())
            }
            Err(trouble) => {
                if matches!(trouble.code, 404 | 409) {
                    self.state().held.remove(policy);
                    // Whatever is there now is read before the next decision.
                    let _ = self.fetch(policy).await;
                }
                Err(trouble)
            }
        }
    }
    async fn namespace_ends(&self, policy: &Key) -> Result<bool, Trouble> {
        let namespace = self.objects.get(&spaces::mapping(), "", &policy.namespace).await?;
        Ok(namespace.is_none_or(|namespace| namespace["metadata"]["deletionTimestamp"].is_string()))
    }
    /// Takes our finalizer off whatever there is; one that cannot be read is left as it is.
    pub async fn let_go(&self, policy: &Key) -> Result<(), Trouble> {
        match self.get(policy).await {
            Ok(Some(_)) => self.release(policy).await,
            Ok(None) => Ok(()),
            Err(trouble) if trouble.reason == UNREADABLE => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
    /// Takes our finalizer off a ledger that somebody wants gone; what is in mind may be older than a write that failed.
    pub async fn release_ending(&self, policy: &Key) -> Result<(), Trouble> {
        match self.fetch(policy).await {
            Ok(Some(_)) if self.is_ending(policy) => self.release(policy).await,
            Ok(_) => Ok(()),
            Err(trouble) if trouble.reason == UNREADABLE => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
    /// Takes our finalizer off; the ledger stays, unless somebody wanted it gone.
    pub async fn release(&self, policy: &Key) -> Result<(), Trouble> {
        let Some(held) = self.state().held.get(policy).cloned() else { return Ok(()) };
        let path = mapping().path_of(&policy.namespace, &ledger_name(&policy.name));
        if let Some(at) = held.finalizers.iter().position(|f| f == LEDGER_FINALIZER) {
            match self.objects.patch(path, without_finalizer(at)).await {
                Ok(object) => {
                    if let Some(held) = Held::read(&object) {
                        self.state().held.insert(policy.clone(), held);
                    }
                }
                Err(trouble) if trouble.is_missing() => {}
                Err(trouble) => {
                    self.state().held.remove(policy);
                    return Err(trouble);
                }
            }
        }
        if held.deleting {
            self.state().held.remove(policy);
        }
        Ok(())
    }
    /// The ledger is of no more use: away with it.
    pub async fn close(&self, policy: &Key) -> Result<(), Trouble> {
        match self.get(policy).await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            // Nothing is pruned by it any more; `audit` names it.
            Err(trouble) if trouble.reason == UNREADABLE => return Ok(()),
            Err(trouble) => return Err(trouble),
        }
        // This very one: another policy of the name may have begun its own.
        let uid = self.state().held.get(policy).map(|held| held.uid.clone());
        self.release(policy).await?;
        let name = ledger_name(&policy.name);
        match self.objects.delete(&mapping(), (&policy.namespace, &name), uid.as_deref()).await? {
            Deleted::Gone | Deleted::Ending(_) => {
                self.state().held.remove(policy);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
#[path = "ledgers_tests.rs"]
mod tests;
