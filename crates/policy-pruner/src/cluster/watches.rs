//! Watches for whatever policies look at. One object has a watch of its own; once several of a kind and namespace are
//! looked at, one watch serves them all and keeps only those; once many namespaces are, one watch serves the cluster.
use super::kinds::{Kinds, Mapping};
use super::objects::Objects;
use super::scopes::{Interest, Scope, choose};
use super::sight::{Eyes, Sight};
use super::watched::Store;
use super::wire::Trouble;
use crate::text::selector::Selector;
use async_trait::async_trait;
use common::clock::{Boot, SharedClock};
use common::runtime::object::{Arrived, Key};
use common::runtime::watch::{self, News, Source};
use kube::Client;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch as signal};
use tokio::task::AbortHandle;
use tracing::{debug, warn};

/// The first list of a watch is waited for this long.
const FIRST_LIST: Duration = Duration::from_secs(20);
const NEWS: usize = 64;
/// A watch that is refused twice within this time is taken to be refused for good, and tried again after it.
const REFUSED: Duration = Duration::from_mins(1);
/// After a refusal, a list is believed once its watch has not been refused for this long.
const GRACE: Duration = Duration::from_secs(1);

struct Watch {
    store: Mutex<Store>,
    ready: signal::Sender<u64>,
    task: OnceLock<AbortHandle>,
    /// Its predecessor was refused: a list that is granted says nothing about the watch behind it.
    doubted: AtomicBool,
    /// Something wider would have served if it had not been refused.
    narrowed: bool,
    /// Refused again, since this moment. It may well watch again later, but nothing would tell.
    stuck: OnceLock<Boot>,
}
impl Watch {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

#[derive(Default)]
struct State {
    watches: HashMap<Scope, Arc<Watch>>,
    interests: HashMap<Key, HashMap<Interest, Scope>>,
    /// Too wide for what this process may read, as of then.
    denied: HashMap<Scope, Boot>,
    /// Refused a moment ago, after they had served.
    refused: HashMap<Scope, Boot>,
}

type Wake = Box<dyn Fn(&Key) + Send + Sync>;

/// All watches of this process.
pub struct Watches {
    client: Client,
    clock: SharedClock,
    objects: Objects,
    kinds: Arc<Kinds>,
    state: Mutex<State>,
    wake: OnceLock<Wake>,
}

impl Watches {
    /// None yet.
    pub fn new(client: Client, clock: SharedClock, objects: Objects, kinds: Arc<Kinds>) -> Arc<Self> {
        Arc::new(Watches { client, clock, objects, kinds, state: Mutex::default(), wake: OnceLock::new() })
    }
    /// Who is called when a policy must be looked at again. Once.
    pub fn on_change(&self, wake: impl Fn(&Key) + Send + Sync + 'static) {
        if self.wake.set(Box::new(wake)).is_err() {
            warn!("watches wake somebody already");
        }
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wake_all(&self, policies: &HashSet<Key>) {
        if let Some(wake) = self.wake.get() {
            policies.iter().for_each(wake);
        }
    }
    /// How many watches there are.
    pub fn len(&self) -> usize {
        self.state().watches.len()
    }
    /// None.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn keep_only(&self, policy: &Key, used: &HashSet<Interest>) {
        let mut state = self.state();
        let State { watches, interests, .. } = &mut *state;
        let Some(own) = interests.get_mut(policy) else { return };
        let dropped: Vec<(Interest, Scope)> = own.extract_if(|interest, _| !used.contains(interest)).collect();
        if own.is_empty() {
            interests.remove(policy);
        }
        for (interest, scope) in dropped {
            leave(watches, &scope, &interest, policy);
        }
    }

    /// The watch that serves an interest, started if there is none.
    fn serve(self: &Arc<Self>, policy: &Key, interest: &Interest) -> (Arc<Watch>, Scope) {
        let now = self.clock.boot();
        let mut state = self.state();
        // A right may have been given meanwhile.
        state.denied.retain(|_, at| now.since(*at) < REFUSED);
        let known = state.interests.get(policy).and_then(|own| own.get(interest)).cloned();
        let best = choose(&state.watches, &state.denied, interest);
        let scope = match known.as_ref().and_then(|scope| state.watches.get(scope).map(|watch| (scope, watch))) {
            Some((scope, watch)) if !watch.narrowed => scope.clone(),
            _ => best,
        };
        if let Some(former) = known.filter(|former| *former != scope) {
            leave(&mut state.watches, &former, interest, policy);
        }
        let stuck = |watch: &Arc<Watch>| watch.stuck.get().is_some_and(|at| now.since(*at) >= REFUSED);
        let again = state.watches.get(&scope).is_some_and(stuck);
        if again {
            state.watches.remove(&scope);
        }
        let doubted = again || state.refused.contains_key(&scope);
        let narrowed = !state.denied.is_empty() && choose(&state.watches, &HashMap::new(), interest) != scope;
        let start = || self.start(&scope, doubted, narrowed);
        let watch = state.watches.entry(scope.clone()).or_insert_with(start).clone();
        {
            let mut store = watch.store();
            match interest {
                Interest::Object(_, namespace, name) => store.follow(&Key::new(namespace, name), policy),
                Interest::List(_, namespace, selector) => store.follow_list(namespace, selector, policy),
            }
        }
        state.interests.entry(policy.clone()).or_default().insert(interest.clone(), scope.clone());
        (watch, scope)
    }
    fn start(self: &Arc<Self>, scope: &Scope, doubted: bool, narrowed: bool) -> Arc<Watch> {
        debug!(?scope, "watch starts");
        let store = Store::keeping(scope.all);
        let watch = Arc::new(Watch {
            store: Mutex::new(store),
            ready: signal::Sender::new(0),
            task: OnceLock::new(),
            doubted: AtomicBool::new(doubted),
            narrowed,
            stuck: OnceLock::new(),
        });
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let source = Source {
            client: self.client.clone(),
            resource: scope.mapping.resource(),
            namespace: if scope.mapping.namespaced { some(&scope.namespace) } else { None },
            labels: some(&scope.labels),
            fields: some(&scope.name).map(|name| format!("metadata.name={name}")),
        };
        let (weak, all, clock) = (Arc::downgrade(&watch), self.clone(), self.clock.clone());
        let scope = scope.clone();
        let task = tokio::spawn(async move {
            let (tell, mut news) = mpsc::channel(NEWS);
            let watching = watch::watch(source, clock, tell);
            let hearing = async {
                while let Some(one) = news.recv().await {
                    let Some(watch) = weak.upgrade() else { return };
                    all.heard(&scope, &watch, one);
                }
            };
            tokio::select! {
                () = watching => {}
                () = hearing => {}
            }
        });
        // Set once, here.
        let _ = watch.task.set(task.abort_handle());
        watch
    }
    fn heard(&self, scope: &Scope, watch: &Watch, news: News) {
        let mut tell = false;
        let woken = {
            let mut store = watch.store();
            match news {
                News::Begin => {
                    store.begin();
                    HashSet::new()
                }
                News::Listed(object) | News::Changed(object) => store.apply(&dressed(*object, &scope.mapping)),
                News::Gone(object) => store.remove(&object),
                News::Complete => {
                    tell = true;
                    store.finish()
                }
                News::Trouble(why) => {
                    tell = true;
                    let (code, served) = (code_of(&why), store.complete);
                    let woken = store.failed(code, &why);
                    drop(store);
                    match code {
                        403 => self.refused(scope, watch, served),
                        404 => self.kinds.forget(&scope.mapping.api_version()),
                        _ => {}
                    }
                    woken
                }
            }
        };
        if tell {
            watch.ready.send_modify(|turn| *turn += 1);
        }
        self.wake_all(&woken);
    }
    /// A watch may not be. Where it had served, its policies are woken, and look for another.
    fn refused(&self, scope: &Scope, watch: &Watch, served: bool) {
        let now = self.clock.boot();
        let mut state = self.state();
        if !state.watches.get(scope).is_some_and(|current| std::ptr::eq(Arc::as_ptr(current), watch)) {
            return;
        }
        state.refused.retain(|_, at| now.since(*at) < REFUSED);
        if served && !state.refused.contains_key(scope) {
            // Rights come and go in a moment when roles are applied anew. The watch would go on without a list, and so without
            // a sign that it does: it starts over.
            state.refused.insert(scope.clone(), now);
            state.watches.remove(scope);
        } else if scope.can_be_narrower() {
            state.denied.insert(scope.clone(), now);
            state.watches.remove(scope);
        } else if served {
            // Set once: it does not serve again.
            let _ = watch.stuck.set(now);
        }
    }

    /// Waits until a watch can answer.
    async fn answer(&self, watch: &Watch) -> Result<(), Trouble> {
        self.listed(watch).await?;
        if watch.doubted.load(Ordering::SeqCst) {
            self.clock.sleep_until(self.clock.boot() + GRACE).await;
            self.listed(watch).await?;
            watch.doubted.store(false, Ordering::SeqCst);
        }
        Ok(())
    }
    async fn listed(&self, watch: &Watch) -> Result<(), Trouble> {
        let mut turns = watch.ready.subscribe();
        let deadline = self.clock.boot() + FIRST_LIST;
        loop {
            turns.mark_unchanged();
            {
                let store = watch.store();
                if store.complete {
                    return Ok(());
                }
                if let Some((code, why)) = &store.trouble {
                    let message = why.split_once(": ").map_or(why.as_str(), |(_, rest)| rest);
                    let message = message.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
                    return Err(Trouble { code: *code, message: message.to_owned(), ..Trouble::default() });
                }
            }
            tokio::select! {
                changed = turns.changed() => if changed.is_err() { return Err(Trouble::silent("the watch ended")) },
                () = self.clock.sleep_until(deadline) => return Err(Trouble::silent("the first list takes too long")),
            }
        }
    }
    /// The watch that serves an interest and can answer; something narrower where the first choice is refused.
    async fn answering(self: &Arc<Self>, policy: &Key, interest: &Interest) -> Result<Arc<Watch>, Trouble> {
        let (mut watch, scope) = self.serve(policy, interest);
        let mut answer = self.answer(&watch).await;
        if answer.as_ref().is_err_and(|t| t.code == 403) && scope.can_be_narrower() {
            watch = self.serve(policy, interest).0;
            answer = self.answer(&watch).await;
        }
        answer.map(|()| watch)
    }
    async fn object(
        self: &Arc<Self>,
        policy: &Key,
        interest: &Interest,
        place: (&Mapping, &str, &str),
    ) -> Result<Option<Value>, Trouble> {
        let (mapping, namespace, name) = place;
        let key = Key::new(namespace, name);
        let watch = self.answering(policy, interest).await?;
        if let Some(known) = watch.store().get(&key) {
            return Ok(known);
        }
        // Followed from now on, but listed before: one look closes the gap.
        let live = self.objects.get(mapping, namespace, name).await?;
        match &live {
            Some(object) => {
                let _ = watch.store().apply(&arrived(object)?);
            }
            None => watch.store().absent(&key),
        }
        Ok(watch.store().get(&key).unwrap_or(live))
    }
    /// This process wrote an object: nobody here should see an older one.
    fn wrote(&self, mapping: &Mapping, object: &Value) {
        let Ok(arrived) = arrived(object) else { return };
        let covering: Vec<Arc<Watch>> = {
            let state = self.state();
            let fits = |scope: &&Scope| {
                scope.mapping == *mapping
                    && (scope.namespace.is_empty() || *scope.namespace == *arrived.key().namespace)
                    && (scope.name.is_empty() || *scope.name == *arrived.key().name)
                    && scope.labels.is_empty()
            };
            state.watches.iter().filter(|(scope, _)| fits(scope)).map(|(_, watch)| watch.clone()).collect()
        };
        for watch in covering {
            let woken = watch.store().apply(&arrived);
            self.wake_all(&woken);
        }
    }
}

/// A policy no longer looks at something by this watch; one that nobody looks by ends.
fn leave(watches: &mut HashMap<Scope, Arc<Watch>>, scope: &Scope, interest: &Interest, policy: &Key) {
    let Some(watch) = watches.get(scope) else { return };
    let mut store = watch.store();
    match interest {
        Interest::Object(_, namespace, name) => store.leave(&Key::new(namespace, name), policy),
        Interest::List(_, namespace, selector) => store.leave_list(namespace, selector, policy),
    }
    let idle = store.is_idle();
    drop(store);
    if idle {
        watches.remove(scope);
    }
}
fn arrived(object: &Value) -> Result<Arrived, Trouble> {
    serde_json::from_value(object.clone()).map_err(|e| Trouble::silent(e.to_string()))
}
/// Items of a list do not say what they are.
fn dressed(mut object: Arrived, mapping: &Mapping) -> Arrived {
    if let Value::Object(map) = &mut object.value {
        map.entry("apiVersion").or_insert_with(|| mapping.api_version().into());
        map.entry("kind").or_insert_with(|| mapping.kind.clone().into());
    }
    object
}
/// `list: 403 pods is forbidden` -> 403.
fn code_of(why: &str) -> u16 {
    let behind = why.split_once(": ").map_or("", |(_, rest)| rest);
    behind.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Opens sights on shared watches.
pub struct Shared(pub Arc<Watches>);
impl Eyes for Shared {
    fn look(&self, policy: &Key) -> Arc<dyn Sight> {
        Arc::new(Watching { watches: self.0.clone(), policy: policy.clone(), used: Mutex::default() })
    }
    fn forget(&self, policy: &Key) {
        self.0.keep_only(policy, &HashSet::new());
    }
}

/// What one evaluation of one policy looks at.
pub struct Watching {
    watches: Arc<Watches>,
    policy: Key,
    used: Mutex<HashSet<Interest>>,
}
impl Watching {
    fn uses(&self, interest: &Interest) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(interest.clone());
    }
}
#[async_trait]
impl Sight for Watching {
    async fn get(&self, mapping: &Mapping, namespace: &str, name: &str) -> Result<Option<Value>, Trouble> {
        let namespace = if mapping.namespaced { namespace } else { "" };
        let interest = Interest::Object(mapping.clone(), namespace.to_owned(), name.to_owned());
        self.uses(&interest);
        self.watches.object(&self.policy, &interest, (mapping, namespace, name)).await
    }
    async fn list(&self, mapping: &Mapping, namespace: &str, selector: &Selector) -> Result<Vec<Value>, Trouble> {
        let namespace = if mapping.namespaced { namespace } else { "" };
        let interest = Interest::List(mapping.clone(), namespace.to_owned(), selector.clone());
        self.uses(&interest);
        let watch = self.watches.answering(&self.policy, &interest).await?;
        let found = watch.store().list(namespace, selector);
        found.ok_or_else(|| Trouble::silent("the list is in doubt"))
    }
    fn follows(&self) -> bool {
        true
    }
    fn wrote(&self, mapping: &Mapping, object: &Value) {
        self.watches.wrote(mapping, object);
    }
    fn finish(&self) {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.watches.keep_only(&self.policy, &used);
    }
}

#[cfg(test)]
#[path = "watches_tests.rs"]
mod tests;
