//! One visit of one machine, as a table of contents: what Cluster API says, the server, the load balancer, what Cluster API is told.
use super::estate::{Look, MachineEstate, Wish as Wanted};
use super::nodes::{Node, Nodes};
use super::{Asking, CONTROLLER, KIND, Step, addresses, balanced_ports, balancer, decide, defaults, provider_id};
use crate::api::{GROUP, IdentityRef, OpenStackMachineSpec, OpenStackServer, OpenStackServerSpec};
use crate::cloud::{Item, Kind};
use crate::derive::server_spec;
use crate::inputs::{Inputs, Missing};
use crate::names::{CAPO, INSTANCE_READY, reason};
use crate::parents::{self, held_by_capo, management_port, missing, request_adoption, rotated, serves, waiting};
use crate::reconcile::unserved;
use crate::servers::{Parent, Servers, is_owned, said, server};
use crate::session::{Session, Sessions};
use common::clock::SharedClock;
use common::concern::Concern;
use common::conditions::{Statement, Tri};
use common::engine::Engine;
use common::engine::estate::{Fault, Freshness};
use common::engine::fence::TOO_LATE;
use common::engine::owner::{OwnerApi, OwnerView};
use common::engine::report::{Note, Progress, Report};
use common::names::{self, reason as shared};
use common::status::{Wish, Written, write};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// One version of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its metadata and conditions.
    pub view: &'a OwnerView,
    /// Who owns it.
    pub owners: &'a [OwnerReference],
    /// What it wants.
    pub spec: &'a OpenStackMachineSpec,
    /// `.status` as last seen.
    pub status: &'a Value,
}
/// What one visit came to.
#[derive(Clone, Debug)]
pub struct Visit {
    /// For events, logs and the next visit.
    pub report: Report,
    /// Of the status.
    pub written: Written,
}

/// Visits machines.
pub struct Reconciler {
    /// The engine of members.
    pub engine: Arc<Engine>,
    /// Clouds.
    pub sessions: Arc<Sessions>,
    /// Credentials.
    pub inputs: Arc<dyn Inputs>,
    /// OpenStackServers.
    pub servers: Arc<dyn Servers>,
    /// Cluster API's objects.
    pub nodes: Arc<dyn Nodes>,
    /// Time.
    pub clock: SharedClock,
}

/// What a pass learned, for status.
struct Learned {
    report: Report,
    node: Option<Node>,
    server: Option<OpenStackServer>,
    step: Step,
}

impl Reconciler {
    /// One pass, then status.
    pub async fn visit(&self, subject: Subject<'_>, paused: Option<String>, api: &dyn OwnerApi) -> Visit {
        let learned = match self.pass(subject, paused.clone(), api).await {
            Ok(learned) => learned,
            Err(progress) => {
                let step = early_step(&progress);
                Learned { report: unserved(subject.view, progress), node: None, server: None, step }
            }
        };
        let Learned { report, node, server, step } = learned;
        if let Some(id) = self.new_provider_id(subject, &step, server.as_ref()).filter(|_| paused.is_none()) {
            return self.identify(subject, report, &id).await;
        }
        let fields = fields(subject, node.as_ref(), server.as_ref(), &step);
        let own: Vec<Statement> = instance_ready(subject.view.deleting, server.as_ref(), &step).into_iter().collect();
        let wish = Wish {
            current: Some(subject.status),
            paused: paused.as_deref(),
            own: &own,
            ..Wish::new(CONTROLLER, subject.view.generation, &fields)
        };
        let written = write(api, &report, &wish, self.clock.wall()).await;
        Visit { report, written }
    }

    /// The provider id that is to be written, if none is.
    fn new_provider_id(&self, subject: Subject<'_>, step: &Step, server: Option<&OpenStackServer>) -> Option<String> {
        let place = self.engine.place_of(subject.view);
        let ours = serves(subject.view, CONTROLLER, &place, self.engine.guard(), None);
        let instance = server.filter(|_| *step == Step::Use && ours)?.status.as_ref()?.instance_id.as_ref()?;
        subject.spec.provider_id.is_none().then(|| provider_id(subject.spec, instance))
    }
    /// Cluster API reads the provider id once it is told that the machine is provisioned: it is written before.
    async fn identify(&self, subject: Subject<'_>, mut report: Report, id: &str) -> Visit {
        let view = report.view.as_ref().unwrap_or(subject.view);
        report.progress = match self.nodes.set_provider_id(view, id).await {
            Ok(()) => Progress::Waiting {
                reason: shared::PROGRESSING,
                message: "providerID is stored".into(),
                again: Duration::ZERO,
            },
            Err(why) => Progress::Failed(Fault::Transient(format!("providerID: {why}"))),
        };
        Visit { report, written: Written::Unchanged }
    }

    async fn pass(
        &self,
        subject: Subject<'_>,
        paused: Option<String>,
        api: &dyn OwnerApi,
    ) -> Result<Learned, Progress> {
        let Subject { view, spec, status, .. } = subject;
        let node = self.nodes.node(view, subject.owners).await.map_err(missing)?;
        let found = self.servers.get(&view.namespace, &view.name).await.map_err(missing)?;
        let ledger = parents::ledger(view, CONTROLLER);
        let empty = ledger.as_ref().is_none_or(|it| it.records.is_empty() && it.removing.is_empty());
        let had_instance = spec.provider_id.is_some() || status["instanceID"].is_string();
        let asking = Asking { uid: &view.uid, name: &view.name, deleting: view.deleting, had_instance };
        let mut step = decide(asking, found.as_ref());
        let balancer = node.as_ref().and_then(balancer);
        let place = self.engine.place_of(view);
        let mut notes = Vec::new();

        let wanted = match (&step, &node) {
            (Step::Create, node) => Some(wanted(spec, node.as_ref())?),
            _ => None,
        };
        let look = match (&balancer, empty) {
            (Some(id), _) => Look::Balancer(id.clone()),
            (None, true) => Look::Nowhere { scope: ledger.map(|it| it.scope).unwrap_or_default() },
            // Where they were can no longer be told.
            (None, false) => Look::Everywhere,
        };
        // Nothing was ever put into the cloud for it: its end needs no credentials.
        let blind = view.deleting && matches!(look, Look::Nowhere { .. });
        let session = if blind { None } else { Some(self.session(subject, node.as_ref(), found.as_ref()).await?) };
        let scope = match &session {
            Some(session) => Some(session.cloud().identity().await.map_err(Progress::Failed)?.scope()),
            None => None,
        };
        // Members go before the server, so that nobody is sent to a machine that is not there any more. A pass that begins
        // with records never takes the finalizer off.
        let members_first = view.deleting && !empty;
        let served = serves(view, CONTROLLER, &place, self.engine.guard(), scope.as_deref());
        if paused.is_none() && served && !members_first {
            let identity = identity(subject, node.as_ref());
            self.carry_out(subject, &step, wanted, identity, found.as_ref(), &mut notes).await?;
        }
        // Where the engine would not act yet, it says why, or mends what it can.
        if view.deleting
            && served
            && paused.is_none()
            && !members_first
            && matches!(step, Step::Delete | Step::Wait { .. })
        {
            let why = parents::on_its_way_out(found.as_ref(), self.engine.guard().adopts(view, CAPO));
            let report = Report { notes, ..unserved(view, waiting(why)) };
            return Ok(Learned { report, node, server: found, step });
        }
        let usable = found.filter(|_| step == Step::Use);
        let wishes = match (&session, &balancer, &node) {
            (Some(session), Some(id), Some(node)) if !view.deleting => {
                self.wishes(session, id, node, usable.as_ref()).await?
            }
            _ => Vec::new(),
        };
        let estate = MachineEstate {
            session,
            look,
            wishes,
            name: view.name.clone(),
            adopts: self.engine.guard().adopts(view, CAPO),
            concern: Concern::of(view, CONTROLLER, place),
            clock: self.clock.clone(),
        };
        let mut report = self.engine.pass(view, paused, api, &estate).await;
        report.notes.extend(notes);
        settle(&mut report, &mut step, view.deleting);
        Ok(Learned { report, node, server: usable, step })
    }

    /// The machine's own credentials, else those of its cluster, else those of its server, which outlives the cluster.
    async fn session(
        &self,
        subject: Subject<'_>,
        node: Option<&Node>,
        server: Option<&OpenStackServer>,
    ) -> Result<Arc<Session>, Progress> {
        let view = subject.view;
        let identity = identity(subject, node).or_else(|| server.map(|it| &it.spec.identity_ref));
        let blocked = |message: String| Progress::Blocked { reason: reason::AUTHENTICATION_FAILED, message };
        let identity = identity.ok_or_else(|| waiting_for_cluster("its cluster names no credentials yet"))?;
        let config = self.inputs.cloud(&view.namespace, identity).await.map_err(|it| match it {
            Missing::Unavailable(why) => Progress::Failed(Fault::Transient(why)),
            other => blocked(other.to_string()),
        })?;
        self.sessions.of(&config).map_err(Progress::Failed)
    }

    async fn carry_out(
        &self,
        Subject { view, .. }: Subject<'_>,
        step: &Step,
        wanted: Option<OpenStackServerSpec>,
        identity: Option<&IdentityRef>,
        found: Option<&OpenStackServer>,
        notes: &mut Vec<Note>,
    ) -> Result<(), Progress> {
        // A leader that was frozen on the way may decide nothing any more.
        if !self.engine.in_lease() {
            return Err(Progress::Stale(TOO_LATE.into()));
        }
        let adopts = self.engine.guard().adopts(view, CAPO);
        let note = |reason, what: &str| Note { warning: false, reason, message: format!("OpenStackServer {what}") };
        match (step, wanted, found) {
            (Step::Create, Some(spec), _) => {
                let api_version = format!("{GROUP}/v1beta2");
                let cluster = parents::cluster_name(view);
                let parent = Parent { view, api_version: &api_version, kind: KIND, cluster: &cluster };
                let asked = adopts.then(|| (names::ADOPT_FROM.to_owned(), CAPO.to_owned()));
                let annotations: BTreeMap<String, String> = asked.into_iter().collect();
                self.servers.create(&server(parent, &view.name, spec, annotations)).await.map_err(missing)?;
                notes.push(note("ServerCreated", &view.name));
            }
            (_, _, Some(found)) if let Some(identity) = rotated(found, &view.uid, identity) => {
                let patch = json!({"spec": {"identityRef": identity}});
                self.servers.patch(found, &patch).await.map_err(missing)?;
                notes.push(note("CredentialsReplaced", &view.name));
            }
            // Deleted before it is taken over, it would never go: nobody would take the other provider's finalizer off.
            (_, _, Some(found)) if adopts && held_by_capo(found) && is_owned(found, &view.uid) => {
                if let Some(patch) = request_adoption(found) {
                    self.servers.patch(found, &patch).await.map_err(missing)?;
                }
            }
            (Step::Delete, _, Some(found)) => {
                self.servers.delete(found).await.map_err(missing)?;
                notes.push(note("ServerDeleted", &view.name));
            }
            _ => {}
        }
        Ok(())
    }

    /// The members that the machine shall have. While it has no address they are wanted, and cannot be made.
    async fn wishes(
        &self,
        session: &Session,
        balancer: &str,
        node: &Node,
        server: Option<&OpenStackServer>,
    ) -> Result<Vec<Wanted>, Progress> {
        let Some(cluster) = &node.cluster else { return Ok(Vec::new()) };
        let ports = balanced_ports(&cluster.spec);
        let unmade = |port: &i64| Wanted { port: *port, pool: None, address: None };
        let Some(server) = server else { return Ok(ports.iter().map(unmade).collect()) };
        let network = cluster.status.as_ref().and_then(|it| it.network.as_ref()).map_or("", |it| it.id.as_str());
        let address = match management_port(server, network) {
            Some(port) => address_of(session, &port).await.map_err(Progress::Failed)?,
            None => None,
        };
        let backends = session.backends(balancer).await.map_err(Progress::Failed)?;
        let mut wishes = Vec::new();
        for port in ports {
            let Some(backend) = backends.iter().find(|it| it.port == port) else {
                let message = format!("load balancer {balancer} has no listener with a pool on port {port}");
                return Err(Progress::Blocked { reason: reason::DEPENDENCY_FAILED, message });
            };
            wishes.push(Wanted { port, pool: Some(backend.pool.clone()), address: address.clone() });
        }
        Ok(wishes)
    }
}

/// The machine's own credentials, or else those of its cluster.
fn identity<'a>(Subject { spec, .. }: Subject<'a>, node: Option<&'a Node>) -> Option<&'a IdentityRef> {
    let of_cluster = node.and_then(|it| it.cluster.as_ref()).map(|it| &it.spec.identity_ref);
    spec.identity_ref.as_ref().or(of_cluster)
}
async fn address_of(session: &Session, port: &str) -> Result<Option<String>, Fault> {
    let kinds = BTreeSet::from([Kind::Port]);
    let first = |item: &Item| match item {
        Item::Port(it) if it.id == port => it.fixed_ips.first().map(|(_, address)| address.clone()),
        _ => None,
    };
    let listed = session.snapshots(&kinds, Freshness::Any).await?;
    if let Some(address) = listed.iter().flat_map(|it| &it.items).find_map(first) {
        return Ok(Some(address));
    }
    // Made after the list was read.
    Ok(session.cloud().get(Kind::Port, port).await?.as_ref().and_then(first))
}
/// The spec of the server, or what it waits for.
fn wanted(spec: &OpenStackMachineSpec, node: Option<&Node>) -> Result<OpenStackServerSpec, Progress> {
    let Some(node) = node else {
        return Err(hold(reason::WAITING_FOR_MACHINE, "no Machine owns it yet"));
    };
    let defaults =
        defaults(node).ok_or_else(|| waiting_for_cluster("the infrastructure of the cluster is not ready"))?;
    if defaults.user_data.is_none() {
        return Err(hold(reason::WAITING_FOR_BOOTSTRAP, "the Machine names no bootstrap data yet"));
    }
    let blocked = |message: String| Progress::Blocked { reason: reason::INVALID_SPEC, message };
    server_spec(spec, &defaults).map_err(blocked)
}
fn hold(why: &'static str, message: &str) -> Progress {
    Progress::Waiting { reason: why, message: message.to_owned(), again: parents::LOOK }
}
fn waiting_for_cluster(message: &str) -> Progress {
    hold(reason::WAITING_FOR_CLUSTER, message)
}
/// A pass that ended early, in the words of the server's condition.
fn early_step(progress: &Progress) -> Step {
    match progress {
        Progress::Waiting { reason, message, .. } => {
            Step::Wait { reason: (*reason).to_owned(), message: message.clone() }
        }
        Progress::Blocked { reason, message } => {
            Step::Refuse { stalled: reason, reason: (*reason).to_owned(), message: message.clone() }
        }
        _ => Step::Nothing,
    }
}
/// What the engine is done with is not all: the server has a say.
fn settle(report: &mut Report, step: &mut Step, deleting: bool) {
    if deleting || report.progress != Progress::Done {
        return;
    }
    report.progress = match step {
        Step::Create => waiting("the server is being made".into()),
        Step::Wait { message, .. } => waiting(message.clone()),
        Step::Refuse { stalled, message, .. } => Progress::Blocked { reason: stalled, message: message.clone() },
        Step::Delete | Step::Nothing | Step::Use => return,
    };
}
/// How the instance is, in the server's own words.
fn instance_ready(deleting: bool, server: Option<&OpenStackServer>, step: &Step) -> Option<Statement> {
    let say = |status, why: &str, message: &str| Some(Statement::new(INSTANCE_READY, status, why, message));
    match step {
        _ if deleting => say(Tri::False, shared::DELETING, ""),
        Step::Create => say(Tri::False, reason::INSTANCE_NOT_READY, "the server is being made"),
        Step::Wait { reason, message } | Step::Refuse { reason, message, .. } => say(Tri::False, reason, message),
        Step::Use => {
            let (status, why, message) = said(server?, INSTANCE_READY)?;
            let status = match status {
                "True" => Tri::True,
                "False" => Tri::False,
                _ => Tri::Unknown,
            };
            say(status, why, message)
        }
        Step::Delete | Step::Nothing => None,
    }
}
/// What Cluster API is told, in both of its contracts.
fn fields(subject: Subject<'_>, node: Option<&Node>, server: Option<&OpenStackServer>, step: &Step) -> Value {
    let mut fields = Map::new();
    let status = server.and_then(|it| it.status.as_ref());
    if let (Some(status), Step::Use) = (status, step) {
        fields.extend(status.instance_id.as_ref().map(|id| ("instanceID".to_owned(), json!(id))));
        fields.extend(server.map(|it| ("addresses".to_owned(), json!(addresses(it)))));
        fields.insert("ready".into(), json!(status.ready));
        // Never lowered: it says that there was a machine once.
        fields.extend(
            subject.spec.provider_id.is_some().then(|| ("initialization".to_owned(), json!({"provisioned": true}))),
        );
        let zone = node.and_then(|it| it.failure_domain.as_ref());
        fields.extend(zone.map(|zone| ("failureDomain".to_owned(), json!(zone))));
    } else if subject.status.get("ready").is_none_or(|it| *it == true && matches!(step, Step::Refuse { .. })) {
        fields.insert("ready".into(), json!(false));
    }
    Value::Object(fields)
}
