//! One process from start to end. Order at the end: passes, then the Lease, then the server.
use super::cli::{self, KubeArgs, RunArgs};
use super::client;
use super::health::Readiness;
use super::leader::Candidate;
use super::metrics::Metrics;
use super::owned::Owned;
use super::server::Server;
use super::shutdown;
use super::telemetry::{self, LogFormat};
use crate::clock::{SharedClock, SystemClock};
use crate::engine::fence::{Fence, Open};
use crate::engine::owner::{OwnerApi, OwnerView};
use crate::engine::report::{Note, Progress, Report};
use crate::events::{Events, Reporter};
use crate::filter::Filter;
use crate::names::{self, reason};
use crate::owner_api::KubeOwnerApi;
use crate::pause::Pauses;
use crate::random::Random;
use crate::runtime::gate::Gate;
use crate::runtime::runner::{Bounds, Ground, Reconciler, Runner};
use crate::runtime::watch::Source;
use kube::Client;
use kube::api::ApiResource;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// Beyond the drain time, a controller gets this long to return.
const AFTER_DRAIN: Duration = Duration::from_secs(2);

/// Passes wait this long for the first word on Clusters; after that, owners with a Cluster count as paused.
const FIRST_PAUSES: Duration = Duration::from_secs(10);

/// What this process is.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Name of the controller.
    pub controller: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Longest mutating cloud call, retries included: the lease must leave room for it.
    pub call: Duration,
}

/// What a controller is given once it leads.
#[derive(Clone)]
pub struct Context {
    /// What this process is.
    pub identity: Identity,
    /// The API server.
    pub client: Client,
    /// The namespace this process lives in.
    pub namespace: String,
    /// Which installation this is.
    pub installation: String,
    /// Which objects are served.
    pub filter: Filter,
    /// Bounds of the runner.
    pub bounds: Bounds,
    /// Time.
    pub clock: SharedClock,
    /// Chance.
    pub random: Arc<Random>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// What is missing before this process is of use.
    pub readiness: Readiness,
    /// Asked before every mutating call.
    pub fence: Arc<dyn Fence>,
    /// Name of this pod.
    pub pod: String,
    /// Cancelled when it is time to go.
    pub stop: CancellationToken,
}

/// The API server for one kind of owner, with everything that belongs around it.
#[derive(Clone)]
pub struct Desk {
    /// Guarded calls, known to the gate.
    pub api: Arc<dyn OwnerApi>,
    /// Keeps passes off caches older than our own writes.
    pub gate: Arc<Gate>,
    /// Events.
    pub events: Events,
    /// Who is paused.
    pub pauses: Pauses,
    /// The kind.
    pub resource: ApiResource,
    owned: Owned,
    metrics: Arc<Metrics>,
}
impl Desk {
    /// Tells people what a pass came to: events, `ownership_conflicts_total`, `owned_resources`. Never fails, never waits.
    pub fn tell(&self, view: &OwnerView, report: &Report) {
        let owner = report.view.as_ref().unwrap_or(view);
        self.events.publish(owner, &report.notes);
        if self.pauses.reason(owner).is_none() {
            self.events.publish(owner, obstacle(report).as_slice());
        }
        if matches!(report.progress, Progress::Blocked { reason: reason::OWNERSHIP_CONFLICT, .. }) {
            self.metrics.conflicts.with_label_values(&[self.metrics.controller()]).inc();
        }
        match report.progress {
            Progress::Gone => self.owned.forget(&view.uid, &self.metrics),
            // Nothing was looked at.
            Progress::Stale(_) => {}
            _ if report.ids.is_empty() && report.mirror.is_none() => {}
            _ => self.owned.note(&view.uid, report, &self.metrics),
        }
    }
    /// The owner is no longer there.
    pub fn forget(&self, uid: &str) {
        self.owned.forget(uid, &self.metrics);
    }
}

/// What somebody has to do something about, as an event. A pause is wanted, and a peer may be.
fn obstacle(report: &Report) -> Option<Note> {
    let wanted = [reason::PAUSED, reason::PEER_CONTROLLER];
    let (why, message) = report.progress.obstacle().filter(|(why, _)| !wanted.contains(why))?;
    Some(Note { warning: true, reason: why, message })
}

impl Context {
    /// Everything a reconciler of this kind needs. Make one, give it to the reconciler, then [`Context::serve`].
    pub fn desk(&self, resource: ApiResource) -> Desk {
        let gate = Arc::new(Gate::new(names::ledger(self.identity.controller)));
        let plain = KubeOwnerApi::dynamic(self.client.clone(), resource.clone(), self.identity.controller);
        let api = Arc::new(gate.watching(Arc::new(plain)));
        let reporter = Reporter { controller: self.identity.controller.into(), instance: self.pod.clone() };
        let (events, sending) =
            Events::start(self.client.clone(), resource.clone(), reporter, self.clock.clone(), self.random.clone());
        tokio::spawn(sending);
        Desk {
            api,
            gate,
            events,
            pauses: Pauses::default(),
            resource,
            owned: Owned::default(),
            metrics: self.metrics.clone(),
        }
    }
    /// Serves owners of a kind until it is time to go.
    pub async fn serve<R: Reconciler>(&self, desk: &Desk, reconciler: Arc<R>) {
        let runner = self.runner(desk, reconciler);
        self.drive(desk, runner).await;
    }
    /// A runner of its own, for those who need its handle (to bring passes about when a Secret changes) before they
    /// [`Context::drive`] it.
    pub fn runner<R: Reconciler>(&self, desk: &Desk, reconciler: Arc<R>) -> Runner<R> {
        let ground = Ground {
            clock: self.clock.clone(),
            random: self.random.clone(),
            metrics: self.metrics.clone(),
            readiness: self.readiness.clone(),
        };
        Runner::new(reconciler, desk.gate.clone(), self.bounds, ground)
    }
    /// Runs a runner until it is time to go.
    pub async fn drive<R: Reconciler>(&self, desk: &Desk, runner: Runner<R>) {
        let source = Source {
            client: self.client.clone(),
            resource: desk.resource.clone(),
            namespace: self.filter.namespace.clone(),
            labels: self.filter.selector(),
            fields: None,
        };
        let (namespace, clock) = (self.filter.namespace.clone(), self.clock.clone());
        let following = desk.pauses.clone().follow(self.client.clone(), namespace, clock.clone(), runner.handle());
        let running = async {
            tokio::select! {
                () = desk.pauses.settled() => {}
                () = clock.sleep_until(clock.boot() + FIRST_PAUSES) => warn!("Clusters cannot be read yet"),
                () = self.stop.cancelled() => return,
            }
            runner.run(source, self.stop.clone()).await;
        };
        tokio::select! {
            () = running => {}
            () = following => error!("the watch of Clusters ended"),
        }
    }
}

/// Why a process cannot go on.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Sets logs up, does what was asked for, and says why it could not be done.
pub async fn carry_out(
    format: LogFormat,
    filter: &str,
    work: impl Future<Output = Result<ExitCode, Failure>>,
) -> ExitCode {
    if let Err(why) = telemetry::init(format, filter) {
        // there is no log yet that could say it
        let _ = writeln!(std::io::stderr(), "error: {why}");
        return ExitCode::from(cli::FAILED);
    }
    work.await.unwrap_or_else(|why| {
        error!(%why, "failed");
        ExitCode::from(cli::FAILED)
    })
}

/// Runs a controller: server, client, leadership, then `controller` until the first signal. Logs are set up by the caller.
pub async fn run<F>(
    identity: Identity,
    args: &RunArgs,
    kube: &KubeArgs,
    controller: impl FnOnce(Context) -> F,
) -> ExitCode
where
    F: Future<Output = Result<(), Failure>>,
{
    match whole_life(identity, args, kube, controller).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            error!(why = %why, "giving up");
            ExitCode::from(cli::FAILED)
        }
    }
}

async fn whole_life<F>(
    identity: Identity,
    args: &RunArgs,
    kube: &KubeArgs,
    controller: impl FnOnce(Context) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let stop = shutdown::on_signals()?;
    let clock: SharedClock = Arc::new(SystemClock);
    let random = Arc::new(Random::from_system()?);
    let metrics = Arc::new(Metrics::new(identity.controller, identity.version)?);
    let readiness = Readiness::default();
    readiness.missing("API server", "not reached yet");

    let server = Server::bind(args.listen, readiness.clone(), metrics.clone()).await?;
    info!(controller = identity.controller, version = identity.version, listen = %server.address()?, "starting");
    let server_stop = CancellationToken::new();
    let mut serving = tokio::spawn(server.serve(server_stop.clone()));

    let config = client::config(kube.kubeconfig.as_deref()).await?;
    let namespace = config.default_namespace.clone();
    let api = client::connect(config.clone(), Some(metrics.clone()))?;
    let installation = tokio::select! {
        id = installation(kube, &api, &clock, &readiness) => id,
        () = stop.cancelled() => return Ok(()),
    };
    readiness.present("API server");
    info!(installation, "API server reached");

    let pod = if args.pod_name.is_empty() { identity.controller.to_owned() } else { args.pod_name.clone() };
    let mut candidate = None;
    let mut fence: Arc<dyn Fence> = Arc::new(Open);
    let lease = args.lease_name.as_deref().unwrap_or(identity.controller);
    let leading = metrics.leading.with_label_values(&[lease]);
    if args.leader_elect {
        args.terms().check(identity.call)?;
        // A client of its own: no busy connection of the other one can hold a renewal up.
        let own = client::connect(config, Some(metrics.clone()))?;
        let me = format!("{pod}_{:016x}", random.bits64());
        let lease_namespace = args.lease_namespace.as_deref().unwrap_or(&namespace);
        let mut elect = Candidate::new(own, lease_namespace, lease, me, args.terms(), clock.clone());
        leading.set(0);
        info!(lease, namespace = lease_namespace, "waiting to lead");
        tokio::select! {
            () = elect.win() => {}
            () = stop.cancelled() => return Ok(()),
        }
        info!(lease, "leading");
        leading.set(1);
        fence = elect.fence();
        candidate = Some(elect);
    }

    let context = Context {
        identity,
        client: api,
        namespace,
        installation,
        filter: kube.filter(),
        bounds: args.bounds(),
        clock: clock.clone(),
        random,
        metrics: metrics.clone(),
        readiness,
        fence,
        pod,
        stop: stop.clone(),
    };
    let ended = {
        let keeping = async {
            match &mut candidate {
                Some(elect) => elect.keep().await,
                None => std::future::pending().await,
            }
        };
        let overdue = async {
            stop.cancelled().await;
            clock.sleep_until(clock.boot() + args.drain_timeout + AFTER_DRAIN).await;
        };
        tokio::select! {
            ended = controller(context) => match ended {
                Ok(()) if stop.is_cancelled() => Ok(()),
                Ok(()) => Err("the controller ended by itself".into()),
                Err(why) => Err(why),
            },
            why = keeping => Err(format!("leadership lost: {why}").into()),
            () = overdue => Err("the controller did not end in time".into()),
            _ = &mut serving => return Err("the server ended by itself".into()),
        }
    };
    leading.set(0);
    // Not after a cut: what is still on the wire must end inside the lease.
    if let (Ok(()), Some(elect)) = (&ended, &mut candidate) {
        elect.release().await;
    }
    server_stop.cancel();
    serving.await??;
    info!("stopped");
    ended
}

/// The id given, or that of the cluster: asked for until there is an answer.
async fn installation(kube: &KubeArgs, api: &Client, clock: &SharedClock, readiness: &Readiness) -> String {
    let given = kube.installation_id.clone().filter(|id| !id.is_empty());
    loop {
        // Asked even if an id was given: it says whether the API server can be reached at all.
        match (client::installation_id(api).await, &given) {
            (Ok(_), Some(id)) => return id.clone(),
            (Ok(uid), None) => return uid,
            // Without the right to read kube-system a given id is enough.
            (Err(kube::Error::Api(status)), Some(id)) if status.code == 403 => return id.clone(),
            (Err(why), _) => {
                error!(%why, "kube-system cannot be read; it names the installation unless --installation-id does");
                readiness.missing("API server", &crate::conditions::cut(&why.to_string(), 200));
            }
        }
        clock.sleep_until(clock.boot() + Duration::from_secs(3)).await;
    }
}
