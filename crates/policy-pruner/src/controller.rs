//! The controller in its process: what the runtime calls, and who is woken by what.
use crate::api::{ConfigurationPolicy, ObjectRef, PolicyStatus, Prune};
use crate::args::ControllerArgs;
use crate::cluster::kinds::Kinds;
use crate::cluster::kube_wire::KubeWire;
use crate::cluster::objects::Objects;
use crate::cluster::spaces::Book;
use crate::cluster::watches::{Shared, Watches};
use crate::cluster::wire::Trouble;
use crate::desk::{Desk, Dirt, Memories, has_finalizer};
use crate::evaluate::templates::refused;
use crate::memory::patience;
use crate::metrics::PolicyMetrics;
use crate::names::{self, FINALIZER, LEDGER_LABEL};
use crate::prune::container::Container;
use crate::prune::ledgers::{self, Ledgers};
use crate::prune::others::{Inside, Neighbours, Others, Requirer};
use crate::reconcile;
use crate::report::{self, Notices, Reporter};
use crate::standing;
use crate::surroundings::Surroundings;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::owner::OwnerView;
use common::process::run::{Context, Failure};
use common::process::server::Server;
use common::runtime::gate::Gate;
use common::runtime::next::Next;
use common::runtime::object::{Arrived, Kept, Key};
use common::runtime::runner::{self, Ground, Handle, Runner};
use common::runtime::watch::{self, News, Source};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::{info, warn};

/// A deletion waits so long for the list of policies before it says what it waits for.
const FIRST_LIST: Duration = Duration::from_secs(5);

/// Serves policies until the process is told to stop.
pub async fn serve(context: Context, args: ControllerArgs) -> Result<(), Failure> {
    for words in args.peer.unserved() {
        warn!("{words}");
    }
    let clock = context.clock.clone();
    let wire = Arc::new(KubeWire::new(context.client.clone(), clock.clone(), context.fence.clone()));
    let objects = Objects(wire.clone());
    let kinds = Arc::new(Kinds::new(wire, clock.clone()));
    let settings = args.settings();
    let watches = Watches::new(context.client.clone(), clock.clone(), objects.clone(), kinds.clone());
    let book = Book::new(settings.take_terminating, clock.clone());
    let ledgers = Arc::new(Ledgers::new(objects.clone(), context.random.clone()));
    let metrics = Arc::new(PolicyMetrics::new(&context.metrics)?);
    let gate = Arc::new(Gate::new("custody.dev/none"));
    let (notices, sending) = Notices::start(objects.clone());
    let sending = tokio::spawn(sending);
    let post: Arc<Post> = Arc::default();

    let reporter = Reporter {
        objects: objects.clone(),
        notices,
        clock: clock.clone(),
        random: context.random.clone(),
        instance: context.pod.clone(),
    };
    let desk = Arc::new(Desk {
        objects: objects.clone(),
        kinds,
        eyes: Some(Arc::new(Shared(watches.clone()))),
        spaces: book.clone(),
        ledgers: ledgers.clone(),
        surroundings: Arc::new(Surroundings::new(objects, deployment(&args, &context))),
        reporter,
        clock: clock.clone(),
        settings,
        metrics: Some(metrics),
        gate: gate.clone(),
        others: Box::new(Cached { others: Others::new(book.clone()), post: post.clone() }),
        memories: Memories::default(),
    });
    let controller = Arc::new(Controller { desk: desk.clone(), post: post.clone(), known: Mutex::default() });

    let mut running = Vec::new();
    let namespaces = args.namespaces()?;
    for namespace in &namespaces {
        let ground = Ground {
            clock: clock.clone(),
            random: context.random.clone(),
            metrics: context.metrics.clone(),
            readiness: context.readiness.clone(),
        };
        let runner = Runner::new(controller.clone(), gate.clone(), context.bounds, ground);
        post.handles.lock().unwrap_or_else(PoisonError::into_inner).push(runner.handle());
        let resource = report::mapping().resource();
        let source = Source {
            namespace: namespace.clone(),
            labels: context.filter.selector(),
            ..Source::new(context.client.clone(), resource)
        };
        running.push(runner.run(source, context.stop.clone()));
    }
    // Set once, here.
    let _ = post.desk.set(desk);
    let wake = post.clone();
    watches.on_change(move |policy| wake.wake(policy, Dirt::Followed));
    let wake = post.clone();
    let spaces = tokio::spawn(book.follow(context.client.clone(), move |policy| wake.wake(policy, Dirt::Always)));
    let books = tokio::spawn(follow_ledgers(context.clone(), namespaces, ledgers, post));

    let extra = match args.metrics_address()? {
        Some(address) => {
            let server = Server::bind(address, context.readiness.clone(), context.metrics.clone()).await?;
            info!(listen = %server.address()?, "metrics");
            Some(tokio::spawn(server.serve(context.stop.clone())))
        }
        None => None,
    };
    futures::future::join_all(running).await;
    for task in [sending, spaces, books] {
        task.abort();
    }
    if let Some(extra) = extra {
        extra.abort();
    }
    Ok(())
}

/// Our own Deployment, if this process is one's pod.
fn deployment(args: &ControllerArgs, context: &Context) -> Option<(String, String)> {
    let name = Some(args.operator_name.clone()).filter(|name| !name.is_empty())?;
    if args.run_mode == "local" {
        return None;
    }
    let in_pod = !args.common.pod_name.is_empty();
    let namespace = args.operator_namespace.clone().or_else(|| in_pod.then(|| context.namespace.clone()))?;
    Some((namespace, name))
}

/// Where news about policies is delivered.
#[derive(Default)]
struct Post {
    handles: Mutex<Vec<Handle>>,
    desk: OnceLock<Arc<Desk>>,
    /// Policies whose ledgers are being let go of.
    parting: Mutex<HashSet<Key>>,
}
impl Post {
    fn parting(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.parting.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn handles(&self) -> Vec<Handle> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn wake(&self, policy: &Key, dirt: Dirt) {
        if let Some(desk) = self.desk.get() {
            desk.memories.soil(policy, dirt);
        }
        for handle in self.handles() {
            if handle.read(|cache| cache.get(policy).is_some()) {
                handle.enqueue(policy);
            }
        }
    }
    /// Waits until all policies are listed, but not for ever: one namespace may be closed to us.
    async fn listed(&self, clock: &SharedClock) {
        let handles = self.handles();
        tokio::select! {
            _ = futures::future::join_all(handles.iter().map(Handle::listed)) => {}
            () = clock.sleep_until(clock.boot() + FIRST_LIST) => {}
        }
    }
    fn show_policies(&self, show: &mut dyn FnMut(&Key, &Kept)) {
        for handle in self.handles() {
            handle.read(|cache| cache.iter().for_each(|(key, kept)| show(key, kept)));
        }
    }
}

/// What policies need, from the caches of all runners.
struct Cached {
    others: Others,
    post: Arc<Post>,
}
impl Neighbours for Cached {
    fn requiring(&self, object: &ObjectRef, except: &Key) -> Result<Vec<Requirer>, String> {
        self.fresh()?.requiring(object, except)
    }
    fn inside(&self, container: &Container, except: &Key) -> Result<Inside, String> {
        self.fresh()?.inside(container, except)
    }
}
impl Cached {
    fn fresh(&self) -> Result<&Others, String> {
        // Passes begin with the first page of a list: a policy on the last one may require what the first one prunes.
        if !self.post.handles().iter().all(Handle::is_listed) {
            return Err("not all policies are listed yet".into());
        }
        self.others.refresh(|show| self.post.show_policies(show));
        Ok(&self.others)
    }
}

/// Keeps ledgers in mind, and lets go of those whose policy is gone while somebody wants them gone.
async fn follow_ledgers(context: Context, namespaces: Vec<Option<String>>, ledgers: Arc<Ledgers>, post: Arc<Post>) {
    let (tell, mut news) = mpsc::channel(64);
    let mut watching = tokio::task::JoinSet::new();
    let mut left = namespaces.len();
    for namespace in namespaces {
        let source = Source {
            namespace,
            labels: Some(format!("{LEDGER_LABEL}=true")),
            ..Source::new(context.client.clone(), ledgers::mapping().resource())
        };
        watching.spawn(watch::watch(source, context.clock.clone(), tell.clone()));
    }
    drop(tell);
    while let Some(one) = news.recv().await {
        match one {
            News::Listed(object) | News::Changed(object) => {
                if let Some((policy, true)) = ledgers.saw(&object.value) {
                    tokio::spawn(let_go_of(policy, post.clone()));
                }
            }
            News::Gone(object) => ledgers.lost(&object.value),
            News::Complete => {
                left = left.saturating_sub(1);
                if left == 0 {
                    ledgers.complete();
                }
            }
            News::Begin | News::Trouble(_) => {}
        }
    }
}
/// A ledger that somebody deletes is written anew by its policy; without one that needs it, it goes. Tried until it is done: nothing
/// else would tell, and a namespace may wait for it.
async fn let_go_of(policy: Key, post: Arc<Post>) {
    let Some(desk) = post.desk.get() else { return };
    if !post.parting().insert(policy.clone()) {
        return;
    }
    let mut tries = 0;
    while let Err(why) = part(desk, &post, &policy).await {
        warn!(%policy, %why, "ledger not let go yet");
        tries += 1;
        desk.clock.sleep_until(desk.clock.boot() + patience(desk.settings.backoff, tries)).await;
    }
    post.parting().remove(&policy);
}
async fn part(desk: &Desk, post: &Post, policy: &Key) -> Result<(), Trouble> {
    let found = desk.objects.get(&report::mapping(), &policy.namespace, &policy.name).await?;
    let needs = |found: Value| {
        let read = serde_json::from_value::<ConfigurationPolicy>(found);
        read.map_or(true, |policy| has_finalizer(&policy) || policy.spec.prune() != Prune::None)
    };
    if found.is_some_and(needs) {
        post.wake(policy, Dirt::Always);
        return Ok(());
    }
    desk.ledgers.release_ending(policy).await
}

struct Controller {
    desk: Arc<Desk>,
    post: Arc<Post>,
    known: Mutex<Known>,
}
/// Which policy has which uid, both ways.
#[derive(Default)]
struct Known {
    keys: HashMap<String, Key>,
    uids: HashMap<Key, String>,
}
impl Known {
    fn note(&mut self, key: &Key, uid: &str) {
        if self.uids.get(key).is_none_or(|known| known != uid) {
            self.keys.insert(uid.to_owned(), key.clone());
            self.uids.insert(key.clone(), uid.to_owned());
        }
    }
    /// The policy that is gone, unless another one of its name has come: what is remembered is that one's.
    fn lose(&mut self, uid: &str) -> Option<Key> {
        let key = self.keys.remove(uid)?;
        if self.uids.get(&key).is_some_and(|known| known != uid) {
            return None;
        }
        self.uids.remove(&key);
        Some(key)
    }
}

impl Controller {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl runner::Reconciler for Controller {
    type Object = ConfigurationPolicy;

    async fn reconcile(&self, object: &ConfigurationPolicy, view: &OwnerView, _: &Value) -> Next {
        let key = Key::new(&view.namespace, &view.name);
        self.known().note(&key, &view.uid);
        if view.deleting {
            // Before, nothing is pruned; after a start a moment's patience spares a status that says so.
            self.post.listed(&self.desk.clock).await;
        }
        reconcile::pass(&self.desk, &key, object).await
    }

    async fn invalid(&self, view: &OwnerView, status: &Value, why: &str) -> Next {
        let mut policy = ConfigurationPolicy::default();
        policy.metadata.name = Some(view.name.clone());
        policy.metadata.namespace = Some(view.namespace.clone());
        policy.metadata.uid = Some(view.uid.clone());
        policy.metadata.generation = Some(view.generation);
        policy.metadata.finalizers = Some(view.finalizers.clone());
        if view.deleting {
            // What it asked for cannot be read, so nothing is pruned.
            let held = view.finalizers.iter().any(|f| f == FINALIZER);
            return match self.desk.remove_finalizer(&policy).await {
                Err(trouble) if held => Next::Retry(trouble.to_string()),
                _ => Next::Done,
            };
        }
        let before: PolicyStatus = serde_json::from_value(status.clone()).unwrap_or_default();
        let now = self.desk.clock.wall();
        let mut next = before.clone();
        let verdict = refused(names::reason::INVALID, format!("the policy does not fit its type: {why}"));
        let news = standing::note_whole(&mut next, &policy.spec, &verdict, now);
        let dialect = self.desk.surroundings.dialect().await;
        let closing = standing::close(&policy, next, news, dialect, now);
        if standing::alike(&closing.status, &before) {
            return Next::Done;
        }
        match self.desk.reporter.write(&policy, &closing, dialect, false).await {
            Ok(stored) => {
                self.desk.stored(&stored);
                Next::Done
            }
            Err(trouble) => Next::Retry(trouble.to_string()),
        }
    }

    fn gone(&self, uid: &str) {
        let gone = self.known().lose(uid);
        if let Some(key) = gone {
            self.desk.forget(&key);
            // Somebody wanted its ledger gone while the policy was still there.
            if self.desk.ledgers.is_ending(&key) {
                tokio::spawn(let_go_of(key, self.post.clone()));
            }
        }
    }

    /// The framework takes the state away when it wants to hear it again.
    fn wakes(&self, before: &Kept, now: &Arrived) -> bool {
        let state = |value: &Value| value["status"]["compliant"].as_str().is_some_and(|text| !text.is_empty());
        !state(&now.value) && before.decode::<Value>().is_ok_and(|value| state(&value))
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
