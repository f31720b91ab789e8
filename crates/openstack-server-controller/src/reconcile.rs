//! One visit of one server, as a table of contents. No kube client and no socket in it: production and the simulator call
//! the same function.
use crate::adopt;
use crate::api::{IdentityRef, OpenStackServerSpec, ResolvedServer};
use crate::cloud::{Identity, Item, Kind};
use crate::estate::{Owned, Seen, ServerEstate};
use crate::floating::lead;
use crate::inputs::{Inputs, Missing};
use crate::names::{CAPO, CONTROLLER, FAILED, reason};
use crate::parents::{lives_here, missing};
use crate::plan::{Facts, Plan, problem, server_slot};
use crate::resolve::{Resolver, Unresolved, reason_of};
use crate::session::{Session, Sessions};
use crate::status::{Access, Floating, Scene, drift, fields, outside, statements};
use common::clock::{Boot, SharedClock};
use common::concern::Concern;
use common::conditions::{READY, find};
use common::engine::Engine;
use common::engine::estate::{Fault, Freshness, Ids};
use common::engine::fence::TOO_LATE;
use common::engine::owner::{OwnerApi, OwnerView};
use common::engine::report::{Progress, Report};
use common::ledger::Ledger;
use common::names::{self, reason as shared};
use common::peer::{Verdict, verdict};
use common::status::{Wish, Written, write};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A refused spec is hopeless after so many tries...
const HOPELESS_TRIES: u32 = 3;
/// ...over at least this time.
const HOPELESS_TIME: Duration = Duration::from_mins(10);

/// One version of an owner.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its metadata and conditions.
    pub view: &'a OwnerView,
    /// What it wants.
    pub spec: &'a OpenStackServerSpec,
    /// `.status` as last seen.
    pub status: Option<&'a Value>,
}

/// What one visit came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
    /// Of the engine, for events, metrics, logs and the next visit.
    pub report: Report,
    /// Of the status.
    pub written: Written,
}

/// Visits owners.
pub struct Reconciler {
    engine: Arc<Engine>,
    sessions: Arc<Sessions>,
    inputs: Arc<dyn Inputs>,
    clock: SharedClock,
    /// Specs that the cloud refused: how often, and since when.
    refusals: Mutex<HashMap<String, (u32, Boot)>>,
    /// Since when owners are known to be ready.
    ready: Mutex<HashMap<String, Boot>>,
}

/// Everything that one pass learned, for status.
struct Learned {
    report: Report,
    seen: Seen,
    resolved: Option<ResolvedServer>,
    access: Access,
    floating: Floating,
    drift: Option<Vec<String>>,
}
impl Learned {
    fn early(view: &OwnerView, progress: Progress, access: Access) -> Self {
        let report = unserved(view, progress);
        Learned { report, seen: Seen::default(), resolved: None, access, floating: Floating::Unasked, drift: None }
    }
}

impl Reconciler {
    /// One per process.
    pub fn new(engine: Arc<Engine>, sessions: Arc<Sessions>, inputs: Arc<dyn Inputs>, clock: SharedClock) -> Self {
        let (refusals, ready) = (Mutex::default(), Mutex::default());
        Reconciler { engine, sessions, inputs, clock, refusals, ready }
    }
    /// The engine, for what is not a visit.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
    /// The owner is gone for good.
    pub fn forget(&self, uid: &str) {
        self.engine.forget(uid);
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// One pass of the engine, then status. `paused` says why nothing may be written to the cloud.
    pub async fn visit(&self, subject: Subject<'_>, paused: Option<String>, api: &dyn OwnerApi) -> Visit {
        let Subject { view, spec, status } = subject;
        let learned = self.pass(subject, paused.clone(), api).await;
        let Learned { report, seen, resolved, access, floating, drift } = learned;
        // A pass that did not come to the pool's address, or was not answered, takes nothing back.
        let unseen = floating == Floating::Unasked || matches!(report.progress, Progress::Failed(_));
        let unseen = unseen && spec.floating_ip_pool_ref.is_some();
        let scene = Scene {
            report: &report,
            seen: &seen,
            resolved: resolved.as_ref(),
            deleting: view.deleting,
            access,
            known_outside: if unseen { outside(status) } else { Vec::new() },
            floating,
            hopeless: self.hopeless(&view.uid, &report.progress),
            drift,
        };
        let (fields, own) = (fields(&scene), statements(&scene, &view.conditions, spec));
        let wish = Wish {
            current: status,
            paused: paused.as_deref(),
            own: &own,
            sticky: &[READY],
            ..Wish::new(CONTROLLER, view.generation, &fields)
        };
        let written = write(api, &report, &wish, self.clock.wall()).await;
        Visit { report, written }
    }

    async fn pass(&self, subject: Subject<'_>, paused: Option<String>, api: &dyn OwnerApi) -> Learned {
        let Subject { view, spec, status } = subject;
        let ready = self.ready_since(view);
        let early = |progress, access| Learned::early(view, progress, access);
        // What cannot be read can still be taken down: things are known by their marks and by the ledger.
        if let Some(message) = problem(spec, None).filter(|_| !view.deleting) {
            return early(Progress::Blocked { reason: shared::INVALID_OBJECT, message }, Access::Unasked);
        }
        let (session, identity) = match self.session(view, &spec.identity_ref).await {
            Ok(found) => found,
            Err((progress, access)) => return early(progress, access),
        };
        let owned = owned(view);
        if let Some(failure) = failed(view).filter(|_| !view.deleting) {
            match self.look_again(view, &session, &owned, failure).await {
                Ok(()) => {}
                Err(learned) => return *learned,
            }
        }
        let held = paused.is_some() || matches!(verdict(view, self.engine.guard()), Verdict::Peer { .. });
        let prepared =
            if held { Ok(Prepared::default()) } else { self.prepare(subject, &session, &identity, &owned).await };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(progress) => return early(progress, Access::Granted),
        };
        let Prepared { facts_resolved, user_data, extensions, adopted, floating } = prepared;
        // Ids are stored before anything is made: what was asked for must not change between two tries.
        let stored: Option<ResolvedServer> = resolved_in(status);
        if let Some(resolved) = &facts_resolved
            && stored.as_ref() != Some(resolved)
        {
            let progress = waiting("stores what the names of the spec lead to", Duration::ZERO);
            return Learned { resolved: facts_resolved.clone(), ..early(progress, Access::Granted) };
        }
        let facts = Facts {
            resolved: facts_resolved.as_ref(),
            extensions: extensions.clone(),
            user_data: user_data.as_deref(),
            adopted,
        };
        let plan = Plan::of(&view.name, spec, &facts);
        let concern = Concern::of(view, CONTROLLER, self.engine.place_of(view));
        let estate = ServerEstate::new(session.clone(), plan, concern, owned, extensions);
        let mut report = self.engine.pass(view, paused, api, &estate).await;
        let mut seen = estate.seen();
        let floating = self.float(spec, &session, &mut seen, &mut report, floating).await;
        // A shared list can be older than the server, which is not yet shown on its ports there: only what was listed after the server
        // was well can have drifted.
        let settled =
            report.progress == Progress::Done && ready.zip(seen.listed).is_some_and(|(ready, at)| at >= ready);
        let drift = facts_resolved.as_ref().filter(|_| settled).map(|it| drift(spec, it, &report.ids, &seen));
        Learned { report, seen, resolved: facts_resolved, access: Access::Granted, floating, drift }
    }

    /// The first moment at which this process knew the owner to be ready.
    fn ready_since(&self, view: &OwnerView) -> Option<Boot> {
        let now = self.clock.boot();
        let is_ready = find(&view.conditions, READY).is_some_and(|it| it.status == "True");
        let mut known = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        is_ready.then(|| *known.entry(view.uid.clone()).or_insert(now))
    }

    /// The project as the engine would see it for this owner now; for a plan, which stores nothing.
    pub async fn estate(&self, subject: Subject<'_>) -> Result<(ServerEstate, Arc<Session>), Progress> {
        let Subject { view, spec, .. } = subject;
        if let Some(message) = problem(spec, None).filter(|_| !view.deleting) {
            return Err(Progress::Blocked { reason: shared::INVALID_OBJECT, message });
        }
        let (session, identity) = self.session(view, &spec.identity_ref).await.map_err(|(progress, _)| progress)?;
        let owned = owned(view);
        let prepared = self.prepare(subject, &session, &identity, &owned).await?;
        let facts = Facts {
            resolved: prepared.facts_resolved.as_ref(),
            extensions: prepared.extensions.clone(),
            user_data: prepared.user_data.as_deref(),
            adopted: prepared.adopted,
        };
        let plan = Plan::of(&view.name, spec, &facts);
        let concern = Concern::of(view, CONTROLLER, self.engine.place_of(view));
        Ok((ServerEstate::new(session.clone(), plan, concern, owned, prepared.extensions), session))
    }
    /// The session of an owner's credentials.
    pub async fn session_of(
        &self,
        view: &OwnerView,
        identity: &IdentityRef,
    ) -> Result<(Arc<Session>, Identity), Progress> {
        self.session(view, identity).await.map_err(|(progress, _)| progress)
    }

    /// Credentials, and who they are.
    async fn session(
        &self,
        view: &OwnerView,
        identity: &IdentityRef,
    ) -> Result<(Arc<Session>, Identity), (Progress, Access)> {
        let config = self.inputs.cloud(&view.namespace, identity).await.map_err(|missing| {
            let why = missing.to_string();
            let progress = match missing {
                Missing::Pending(_) | Missing::Unusable(_) => {
                    Progress::Blocked { reason: reason::AUTHENTICATION_FAILED, message: why.clone() }
                }
                Missing::Unavailable(_) => Progress::Failed(Fault::Transient(why.clone())),
            };
            (progress, Access::Refused(why))
        })?;
        let refused = |fault: Fault| {
            let access = match &fault {
                Fault::Denied(why) => Access::Refused(why.clone()),
                other => Access::Refused(format!("Keystone cannot be asked: {other}")),
            };
            (Progress::Failed(fault), access)
        };
        let session = self.sessions.of(&config).map_err(refused)?;
        let identity = session.cloud().identity().await.map_err(refused)?;
        Ok((session, identity))
    }

    /// A failed owner is only looked at, until somebody brings its instance back.
    async fn look_again(
        &self,
        view: &OwnerView,
        session: &Session,
        owned: &Owned,
        (why, message): (&'static str, String),
    ) -> Result<(), Box<Learned>> {
        let gone = [reason::INSTANCE_NOT_FOUND, reason::INSTANCE_DELETED].contains(&why);
        let stalled = if gone { shared::RESOURCE_LOST } else { shared::RESOURCE_FAILED };
        let blocked = || Progress::Blocked { reason: stalled, message: message.clone() };
        let early = |progress| Box::new(Learned::early(view, progress, Access::Granted));
        let Some(id) = &owned.server else { return Err(early(blocked())) };
        let kinds = BTreeSet::from([Kind::Server]);
        let snapshots =
            session.snapshots(&kinds, Freshness::Any).await.map_err(|fault| early(Progress::Failed(fault)))?;
        let items = snapshots.iter().flat_map(|it| &it.items);
        let server = items.into_iter().find_map(|item| match item {
            Item::Server(server) if server.id == *id => Some(server.clone()),
            _ => None,
        });
        let well = server
            .as_ref()
            .is_some_and(|server| !matches!(server.status.as_str(), "ERROR" | "DELETED" | "SOFT_DELETED"));
        if well {
            return Ok(());
        }
        let mut learned = early(blocked());
        learned.report.ids = recorded(view);
        if let Some(server) = server {
            learned.seen.items.insert((Kind::Server, id.clone()), Item::Server(server));
        }
        Err(learned)
    }

    /// Everything that must be known before the engine is asked.
    async fn prepare(
        &self,
        Subject { view, spec, status }: Subject<'_>,
        session: &Session,
        identity: &Identity,
        owned: &Owned,
    ) -> Result<Prepared, Progress> {
        let mut prepared = Prepared::default();
        let foreign = ledger(view).is_some_and(|ledger| !ledger.scope.is_empty() && ledger.scope != identity.scope());
        let here = lives_here(view, CONTROLLER, &self.engine.place_of(view));
        if view.deleting && here && spec.floating_ip_pool_ref.is_some() {
            self.check_lease()?;
            self.inputs.release(view).await.map_err(missing)?;
        }
        // Another project has other things of the same names: the engine says so, nothing is looked up there.
        if view.deleting || foreign {
            return Ok(prepared);
        }
        let cloud = session.cloud();
        prepared.extensions = cloud.extensions().await.map_err(Progress::Failed)?;
        let resolved = if let Some(resolved) = resolved_in(status).filter(|it| is_whole(it, spec)) {
            resolved
        } else {
            let resolver = Resolver { cloud, inputs: &*self.inputs, namespace: &view.namespace };
            let cluster = view.labels.get(names::CLUSTER_NAME).map(String::as_str);
            let found = resolver.server(&view.name, spec, cluster).await;
            found.map_err(|unresolved| progress_of(&unresolved))?
        };
        if let (Some(reference), None) = (&spec.user_data_ref, &owned.server) {
            let data =
                self.inputs.user_data(&view.namespace, &reference.name).await.map_err(|missing| match missing {
                    Missing::Pending(why) => waiting_for(reason::WAITING_FOR_DEPENDENCY, why),
                    Missing::Unusable(message) => Progress::Blocked { reason: reason::DEPENDENCY_FAILED, message },
                    Missing::Unavailable(why) => Progress::Failed(Fault::Transient(why)),
                })?;
            if let Some(message) = problem(spec, Some(&data)) {
                return Err(Progress::Blocked { reason: reason::TOO_LARGE, message });
            }
            prepared.user_data = Some(data);
        }
        // A copy of another owner takes no address from the pool: the engine says what it is.
        if let Some(pool) = spec.floating_ip_pool_ref.as_ref().filter(|_| here) {
            self.check_lease()?;
            match self.inputs.address(view, pool).await {
                Ok(Some(address)) => prepared.floating = Some(address),
                Ok(None) => {
                    let why = format!("waits for an address of {} {}", pool.kind, pool.name);
                    return Err(waiting_for(reason::WAITING_FOR_ADDRESS, why));
                }
                Err(Missing::Unavailable(why)) => return Err(Progress::Failed(Fault::Transient(why))),
                Err(missing) => {
                    let message = missing.to_string();
                    return Err(Progress::Blocked { reason: reason::FLOATING_IP_ERROR, message });
                }
            }
        }
        // The server is claimed last: once it is recorded everything was, and what is plugged or unplugged later is drift.
        if owned.server.is_none() && self.engine.guard().adopts(view, CAPO) {
            prepared.adopted = self.choose(view, spec, &resolved, session).await?;
        }
        prepared.facts_resolved = Some(resolved);
        Ok(prepared)
    }

    /// A leader that was frozen on the way may write nothing any more.
    fn check_lease(&self) -> Result<(), Progress> {
        if self.engine.in_lease() { Ok(()) } else { Err(Progress::Stale(TOO_LATE.into())) }
    }
    async fn choose(
        &self,
        view: &OwnerView,
        spec: &OpenStackServerSpec,
        resolved: &ResolvedServer,
        session: &Session,
    ) -> Result<adopt::Chosen, Progress> {
        let mut kinds = BTreeSet::from([Kind::Server, Kind::Port]);
        let plan = Plan::of(&view.name, spec, &Facts::default());
        kinds.extend(plan.kinds());
        let snapshots = session.snapshots(&kinds, Freshness::Any).await.map_err(Progress::Failed)?;
        let concern = Concern::of(view, CONTROLLER, self.engine.place_of(view));
        let items: Vec<&Item> = snapshots.iter().flat_map(|it| &it.items).collect();
        adopt::choose(&view.name, spec, resolved, items.iter().copied(), &concern)
            .map_err(|message| Progress::Blocked { reason: reason::ADOPTION_MISMATCH, message })
    }

    /// The pool's address, once the server can have it. The owner is not done before.
    async fn float(
        &self,
        spec: &OpenStackServerSpec,
        session: &Session,
        seen: &mut Seen,
        report: &mut Report,
        address: Option<String>,
    ) -> Floating {
        let (Some(_), Some(address)) = (&spec.floating_ip_pool_ref, address) else { return Floating::Unasked };
        if report.progress != Progress::Done {
            return Floating::Unasked;
        }
        let server = server_slot().and_then(|slot| seen.server_mut(report.ids.get(&slot)?));
        let Some(server) = server else { return Floating::Unasked };
        match lead(&self.engine, session, &address, (server, &report.ids), self.clock.boot()).await {
            Ok(Floating::Failed(why)) => {
                report.progress = Progress::Blocked { reason: reason::FLOATING_IP_ERROR, message: why.clone() };
                Floating::Failed(why)
            }
            Ok(other) => other,
            Err(fault) => {
                let why = fault.to_string();
                report.progress = Progress::Failed(fault);
                Floating::Failed(why)
            }
        }
    }

    /// A spec that cannot change and is refused again and again will never be served. Only creates are refused as invalid: what is
    /// wrong with credentials, reads or tags is not the spec's.
    fn hopeless(&self, uid: &str, progress: &Progress) -> Option<String> {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        match progress {
            Progress::Failed(Fault::Terminal { reason: shared::INVALID_REQUEST, message }) => {
                let now = self.clock.boot();
                let (tries, since) = refusals.entry(uid.to_owned()).or_insert((0, now));
                *tries += 1;
                (*tries >= HOPELESS_TRIES && now.since(*since) >= HOPELESS_TIME).then(|| message.clone())
            }
            Progress::Done | Progress::Gone => {
                refusals.remove(uid);
                None
            }
            _ => None,
        }
    }
}

#[derive(Default)]
struct Prepared {
    facts_resolved: Option<ResolvedServer>,
    user_data: Option<Vec<u8>>,
    extensions: crate::cloud::Extensions,
    adopted: adopt::Chosen,
    floating: Option<String>,
}

fn waiting(message: &str, again: Duration) -> Progress {
    Progress::Waiting { reason: shared::PROGRESSING, message: message.to_owned(), again }
}
/// For something that a watch tells of; the time is only for a watch that failed.
fn waiting_for(why: &'static str, message: String) -> Progress {
    Progress::Waiting { reason: why, message, again: Duration::from_mins(1) }
}
fn progress_of(unresolved: &Unresolved) -> Progress {
    let why = reason_of(unresolved);
    match unresolved {
        Unresolved::Failed(message) | Unresolved::Unsupported(message) => {
            Progress::Blocked { reason: why, message: message.clone() }
        }
        Unresolved::Pending(message) => waiting_for(why, message.clone()),
        Unresolved::Fault(fault) => Progress::Failed(fault.clone()),
    }
}
fn ledger(view: &OwnerView) -> Option<Ledger> {
    view.annotations.get(&names::ledger(CONTROLLER)).and_then(|text| Ledger::parse(text).ok())
}
fn recorded(view: &OwnerView) -> Ids {
    let records = ledger(view).map(|it| it.records).unwrap_or_default();
    records.into_iter().filter_map(|(slot, record)| Some((slot, record.id()?.clone()))).collect()
}
fn owned(view: &OwnerView) -> Owned {
    let ids = recorded(view);
    let removing = ledger(view).map(|it| it.removing).unwrap_or_default();
    let slots = ledger(view).map(|it| it.records.into_keys().collect::<Vec<_>>()).unwrap_or_default();
    let kinds = slots.iter().chain(removing.iter().map(|it| &it.slot)).filter_map(Kind::of);
    Owned {
        kinds: kinds.collect(),
        ports: ids.iter().filter(|(slot, _)| Kind::of(slot) == Some(Kind::Port)).map(|(_, id)| id.clone()).collect(),
        server: server_slot().and_then(|slot| ids.get(&slot).cloned()),
        deleting: view.deleting,
    }
}
/// The failure that status tells of. Reasons are a closed set.
fn failed(view: &OwnerView) -> Option<(&'static str, String)> {
    let condition = find(&view.conditions, FAILED).filter(|it| it.status == "True")?;
    let known = [
        reason::INSTANCE_NOT_FOUND,
        reason::INSTANCE_DELETED,
        reason::INSTANCE_STATE_ERROR,
        reason::NO_VALID_HOST,
        reason::INVALID_SPEC,
    ];
    let why = known.into_iter().find(|it| *it == condition.reason).unwrap_or(reason::INSTANCE_STATE_ERROR);
    Some((why, condition.message.clone()))
}
fn resolved_in(status: Option<&Value>) -> Option<ResolvedServer> {
    serde_json::from_value(status?.get("resolved")?.clone()).ok()
}
/// Status can be edited or cut: what it lacks is looked up again.
fn is_whole(resolved: &ResolvedServer, spec: &OpenStackServerSpec) -> bool {
    resolved.image_id.is_some()
        && resolved.flavor_id.is_some()
        && resolved.ports.len() == spec.ports.len()
        && resolved.server_group_id.is_some() == spec.server_group.is_some()
}

/// The report of a pass that ended before the engine was asked.
pub(crate) fn unserved(view: &OwnerView, progress: Progress) -> Report {
    Report {
        progress,
        view: Some(view.clone()),
        standing: Vec::new(),
        notes: Vec::new(),
        kept: Vec::new(),
        mirror: None,
        ids: BTreeMap::new(),
    }
}
