//! The namespaces of the cluster, and which policies must be looked at again when they change.
use super::kinds::Mapping;
use super::objects::Objects;
use super::wire::Trouble;
use crate::api::NamespaceSelector;
use crate::dialect::Dialect;
use crate::namespaces::{self, Atlas, Namespace};
use crate::text::selector::Selector;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::runtime::object::{Arrived, Key};
use common::runtime::watch::{self, News, Source};
use kube::Client;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch as signal};

/// The first list is waited for this long.
const FIRST_LIST: Duration = Duration::from_secs(20);

/// The kind.
pub fn mapping() -> Mapping {
    Mapping::known("", "v1", "Namespace", "namespaces", false)
}
/// Reads the little that matters.
pub fn read(object: &Value) -> Namespace {
    Namespace {
        name: object["metadata"]["name"].as_str().unwrap_or_default().into(),
        labels: object["metadata"]["labels"].clone(),
        terminating: object["metadata"]["deletionTimestamp"].is_string() || object["status"]["phase"] == "Terminating",
    }
}

/// Tells the namespaces of the cluster.
#[async_trait]
pub trait Spaces: Send + Sync {
    /// All of them.
    async fn all(&self) -> Result<Vec<Namespace>, Trouble>;
    /// A policy's selector came to this.
    fn selected(&self, _policy: &Key, _selector: &NamespaceSelector, _names: &[String], _dialect: Dialect) {}
    /// A policy no longer asks.
    fn forget(&self, _policy: &Key) {}
}

/// Asks every time.
pub struct Asked(pub Objects);
#[async_trait]
impl Spaces for Asked {
    async fn all(&self) -> Result<Vec<Namespace>, Trouble> {
        Ok(self.0.list(&mapping(), "", &Selector::default()).await?.iter().map(read).collect())
    }
}

struct Follower {
    selector: NamespaceSelector,
    names: Vec<String>,
    dialect: Dialect,
}
#[derive(Default)]
struct State {
    known: BTreeMap<String, Namespace>,
    listed: HashSet<String>,
    complete: bool,
    followers: HashMap<Key, Follower>,
}

/// Follows all namespaces by one watch.
pub struct Book {
    state: Mutex<State>,
    ready: signal::Sender<bool>,
    take_terminating: bool,
    clock: SharedClock,
}
impl Book {
    /// Nothing is known yet.
    pub fn new(take_terminating: bool, clock: SharedClock) -> Arc<Self> {
        Arc::new(Book { state: Mutex::default(), ready: signal::Sender::new(false), take_terminating, clock })
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Follows until dropped; calls back with policies whose selection changed.
    pub async fn follow(self: Arc<Self>, client: Client, wake: impl Fn(&Key) + Send + Sync) {
        let (tell, mut news) = mpsc::channel(64);
        let watching = watch::watch(Source::new(client, mapping().resource()), self.clock.clone(), tell);
        let hearing = async {
            while let Some(one) = news.recv().await {
                for policy in self.heard(&one) {
                    wake(&policy);
                }
            }
        };
        tokio::select! {
            () = watching => {}
            () = hearing => {}
        }
    }
    fn heard(&self, news: &News) -> Vec<Key> {
        let mut state = self.state();
        let changed = match news {
            News::Begin => {
                state.listed.clear();
                false
            }
            News::Listed(object) | News::Changed(object) => apply(&mut state, object),
            News::Gone(object) => state.known.remove(&*object.key().name).is_some(),
            News::Complete => {
                let State { known, listed, .. } = &mut *state;
                let before = known.len();
                known.retain(|name, _| listed.contains(name));
                let changed = known.len() != before || !state.complete;
                state.complete = true;
                self.ready.send_replace(true);
                changed
            }
            News::Trouble(_) => false,
        };
        if !changed || !state.complete {
            return Vec::new();
        }
        let all: Vec<Namespace> = state.known.values().cloned().collect();
        let moved = |f: &Follower| {
            let now = namespaces::select(Some(&f.selector), &all, self.take_terminating, f.dialect);
            now.is_ok_and(|names| names != f.names)
        };
        state.followers.iter().filter(|(_, f)| moved(f)).map(|(key, _)| key.clone()).collect()
    }
}
impl Atlas for Book {
    fn find(&self, name: &str) -> Option<Namespace> {
        self.state().known.get(name).cloned()
    }
}
fn apply(state: &mut State, object: &Arrived) -> bool {
    let now = read(&object.value);
    state.listed.insert(now.name.clone());
    state.known.insert(now.name.clone(), now.clone()).is_none_or(|before| before != now)
}
#[async_trait]
impl Spaces for Book {
    async fn all(&self) -> Result<Vec<Namespace>, Trouble> {
        let mut ready = self.ready.subscribe();
        let deadline = self.clock.boot() + FIRST_LIST;
        tokio::select! {
            ended = ready.wait_for(|ready| *ready) => {
                ended.map_err(|_| Trouble::silent("namespaces are no longer watched"))?;
            }
            () = self.clock.sleep_until(deadline) => {
                return Err(Trouble::silent("the namespaces cannot be listed yet"));
            }
        }
        Ok(self.state().known.values().cloned().collect())
    }
    fn selected(&self, policy: &Key, selector: &NamespaceSelector, names: &[String], dialect: Dialect) {
        let follower = Follower { selector: selector.clone(), names: names.to_vec(), dialect };
        self.state().followers.insert(policy.clone(), follower);
    }
    fn forget(&self, policy: &Key) {
        self.state().followers.remove(policy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::clock::SystemClock;
    use serde_json::json;

    fn news(name: &str, labels: &Value) -> Box<Arrived> {
        let metadata = json!({"name": name, "uid": name, "resourceVersion": "1", "labels": labels});
        Box::new(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
    }

    #[tokio::test]
    async fn only_a_changed_selection_wakes() {
        let book = Book::new(true, Arc::new(SystemClock));
        let policy = Key::new("p", "a");
        book.heard(&News::Begin);
        book.heard(&News::Listed(news("a", &json!({"team": "x"}))));
        book.heard(&News::Complete);
        assert_eq!(book.all().await.unwrap().len(), 1);
        let selector: NamespaceSelector = serde_json::from_value(json!({"matchLabels": {"team": "x"}})).unwrap();
        book.selected(&policy, &selector, &["a".into()], Dialect::Current);
        assert!(book.heard(&News::Changed(news("a", &json!({"team": "x", "other": "1"})))).is_empty());
        assert!(book.heard(&News::Changed(news("b", &json!({"team": "y"})))).is_empty());
        assert_eq!(book.heard(&News::Changed(news("c", &json!({"team": "x"})))), std::slice::from_ref(&policy));
        book.forget(&policy);
        assert!(book.heard(&News::Gone(news("a", &json!({})))).is_empty());
    }
}
