//! One visit of one cluster, as a table of contents: the network is found, the cluster is ready, then comes the bastion.
use super::address::Scene;
use super::estate::{BastionEstate, Wish as Address, slot};
use super::networks::{Networks, Survey, address_inside};
use super::standing::{Addresses, Bastion, Shown, reason_for, stand, trouble, whole};
use super::{CONTROLLER, KIND, Made, SPEC_HASH, Step, decide, endpoint, failure_domains, mend, unsupported};
use crate::api::{
    GROUP, IdentityRef, OpenStackClusterSpec, OpenStackClusterStatus, OpenStackServer, OpenStackServerSpec,
};
use crate::cloud::Kind;
use crate::derive::{Defaults, differing, server_spec, spec_hash};
use crate::inputs::{Inputs, Missing};
use crate::names::{BASTION_READY, CAPO, reason};
use crate::parents::{
    cluster_name, ledger, management_port, missing, on_its_way_out, ports_of, rotated, serves, waiting,
};
use crate::servers::{Parent, Servers, is_owned, server};
use crate::session::{Session, Sessions};
use common::clock::SharedClock;
use common::concern::Concern;
use common::conditions::{Statement, Tri};
use common::engine::Engine;
use common::engine::estate::{Fault, Freshness};
use common::engine::fence::TOO_LATE;
use common::engine::owner::{OwnerApi, OwnerView};
use common::engine::report::{Note, Progress, Report};
use common::ledger::Id;
use common::names::{self, reason as shared};
use common::peer::{Verdict, verdict};
use common::status::{Wish, Written, write};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One version of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its metadata and conditions.
    pub view: &'a OwnerView,
    /// What it wants.
    pub spec: &'a OpenStackClusterSpec,
    /// `.status` as last seen.
    pub status: &'a Value,
}
/// What one visit came to.
#[derive(Clone, Debug)]
pub struct Visit {
    /// For events, logs and the next visit: what is really going on.
    pub report: Report,
    /// Of the status.
    pub written: Written,
}

/// Visits clusters.
pub struct Reconciler {
    engine: Arc<Engine>,
    sessions: Arc<Sessions>,
    inputs: Arc<dyn Inputs>,
    servers: Arc<dyn Servers>,
    clock: SharedClock,
}

/// Does somebody else serve the cluster, or is it not to be told yet whose it is?
fn unserved_here(progress: &Progress) -> bool {
    const REASONS: [&str; 7] = [
        shared::PEER_CONTROLLER,
        shared::TAKEOVER_REQUIRED,
        shared::MOVE_UNFINISHED,
        shared::IDENTITY_MISMATCH,
        shared::LEDGER_UNREADABLE,
        shared::LEDGER_TOO_NEW,
        shared::OWNER_ID_INVALID,
    ];
    matches!(progress, Progress::Blocked { reason, .. } if REASONS.contains(reason))
}

impl Reconciler {
    /// One per process.
    pub fn new(
        engine: Arc<Engine>,
        sessions: Arc<Sessions>,
        inputs: Arc<dyn Inputs>,
        servers: Arc<dyn Servers>,
        clock: SharedClock,
    ) -> Self {
        Reconciler { engine, sessions, inputs, servers, clock }
    }
    /// The engine, for what is not a visit.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Finds the network, says that the cluster is ready, then serves the bastion.
    pub async fn visit(&self, subject: Subject<'_>, paused: Option<String>, api: &dyn OwnerApi) -> Visit {
        let (networks, bastion, report) = match self.pass(subject, paused.clone(), api).await {
            Ok((networks, bastion, report)) => (Some(networks), bastion, report),
            Err(progress) => (None, None, crate::reconcile::unserved(subject.view, progress)),
        };
        let deleting = subject.view.deleting;
        // Of what is not ours to serve nothing is said but why.
        let (networks, bastion) = if unserved_here(&report.progress) { (None, None) } else { (networks, bastion) };
        let mut fields = Map::new();
        if let Some(networks) = networks.as_ref().filter(|_| !deleting) {
            fields.insert("network".into(), json!(networks.network));
            // Taken away where there is none any more: the next visit believes what is written here.
            fields.insert("externalNetwork".into(), json!(networks.external));
            let zones = networks.zones.as_ref().map(|zones| failure_domains(subject.spec, zones));
            fields.extend(zones.map(|zones| ("failureDomains".to_owned(), json!(zones))));
            // Set once and never lowered: Cluster API reads it as "was there once".
            fields.insert("initialization".into(), json!({"provisioned": true}));
            fields.insert("ready".into(), json!(true));
        }
        let ours = !deleting && !unserved_here(&report.progress);
        let mut own: Vec<Statement> = ours.then(|| endpoint(subject.spec)).into_iter().collect();
        if let Some(bastion) = bastion {
            own.push(Statement::new(BASTION_READY, bastion.status, bastion.reason, bastion.message));
            match bastion.shown {
                Shown::AsBefore => {}
                Shown::Nothing => drop(fields.insert("bastion".to_owned(), Value::Null)),
                Shown::This(shown) => drop(fields.insert("bastion".to_owned(), whole(&shown))),
            }
        }
        // The cluster is ready when its network is there; how the bastion stands is said by a condition of its own.
        let mut told = report.clone();
        let passing = matches!(
            told.progress,
            Progress::Gone | Progress::Stale(_) | Progress::Blocked { reason: shared::PAUSED, .. }
        );
        if networks.is_some() && !deleting && !passing {
            told.progress = Progress::Done;
        }
        let fields = Value::Object(fields);
        let wish = Wish {
            current: Some(subject.status),
            paused: paused.as_deref(),
            own: &own,
            ..Wish::new(CONTROLLER, subject.view.generation, &fields)
        };
        let written = write(api, &told, &wish, self.clock.wall()).await;
        Visit { report, written }
    }

    async fn pass(
        &self,
        subject: Subject<'_>,
        paused: Option<String>,
        api: &dyn OwnerApi,
    ) -> Result<(Networks, Option<Bastion>, Report), Progress> {
        let Subject { view, spec, status } = subject;
        let known: OpenStackClusterStatus = serde_json::from_value(status.clone()).unwrap_or_default();
        let made = Made {
            security_groups: [
                &known.bastion_security_group,
                &known.control_plane_security_group,
                &known.worker_security_group,
            ]
            .into_iter()
            .any(Option::is_some),
            balancer: known.api_server_load_balancer.is_some(),
        };
        if let Some(message) = unsupported(spec, made).filter(|_| !view.deleting) {
            return Err(Progress::Blocked { reason: reason::NOT_SUPPORTED, message });
        }
        let session = self.session(view, spec).await?;
        let survey = Survey { cloud: session.cloud(), inputs: &*self.inputs, subject, known: &known };
        let networks = if view.deleting { Networks::default() } else { survey.networks().await? };
        let held = view.deleting || paused.is_some() || !self.is_ours(view);
        match self.bastion(subject, paused, api, &known, &networks, session).await {
            Ok((bastion, report)) => Ok((networks, Some(bastion), report)),
            // Trouble with the bastion is the bastion's alone, unless it is not to be told yet whose cluster this is.
            Err(progress) if !held => {
                let message = trouble(&progress).unwrap_or_default();
                let bastion =
                    Bastion { status: Tri::False, reason: reason_for(&progress), message, shown: Shown::AsBefore };
                Ok((networks, Some(bastion), crate::reconcile::unserved(view, progress)))
            }
            Err(progress) => Err(progress),
        }
    }
    /// New, or served here: nobody else serves it, and it was not moved or copied here.
    fn is_ours(&self, view: &OwnerView) -> bool {
        let new = !view.annotations.contains_key(&names::ledger(CONTROLLER));
        let nobodys = !matches!(verdict(view, self.engine.guard()), Verdict::Peer { .. });
        new && nobodys || serves(view, CONTROLLER, &self.engine.place_of(view), self.engine.guard(), None)
    }

    async fn bastion(
        &self,
        subject: Subject<'_>,
        paused: Option<String>,
        api: &dyn OwnerApi,
        known: &OpenStackClusterStatus,
        networks: &Networks,
        session: Arc<Session>,
    ) -> Result<(Bastion, Report), Progress> {
        let Subject { view, spec, .. } = subject;
        let wanted = if view.deleting { None } else { Self::wanted(spec, known, networks)? };
        let name = server_name(view);
        let found = self.servers.get(&view.namespace, &name).await.map_err(missing)?;
        let adopts = self.engine.guard().adopts(view, CAPO);
        let step = decide(wanted.as_ref(), found.as_ref(), &view.uid, adopts);
        let mut notes = Vec::new();
        let scope = session.cloud().identity().await.map_err(Progress::Failed)?.scope();
        // While paused, and where the engine may not act, nothing is made or removed.
        let served = serves(view, CONTROLLER, &self.engine.place_of(view), self.engine.guard(), Some(&scope));
        if paused.is_none() && served {
            self.carry_out(subject, &step, wanted.as_ref(), found.as_ref(), &mut notes).await?;
        }
        // On the way out the server goes first, and with it everything that holds on to the address.
        // Where the engine would not act yet, it says why, or mends what it can.
        if view.deleting && served && paused.is_none() && matches!(step, Step::Delete(_) | Step::Wait(_)) {
            return Err(waiting(on_its_way_out(found.as_ref(), adopts)));
        }
        let usable = found.as_ref().filter(|_| step == Step::Use);
        let target = usable.and_then(|server| management_port(server, &networks.network.id));
        let own: BTreeSet<_> = usable.map(ports_of).unwrap_or_default().into_iter().chain(target.clone()).collect();
        let inside = match usable {
            Some(it) => address_inside(&session, it, target.as_deref()).await.map_err(Progress::Failed)?,
            None => None,
        };
        let leads = (target.as_deref(), &own);
        let address = self.address(subject, wanted.is_some(), networks, &session, leads, known).await?;
        let concern = Concern::of(view, CONTROLLER, self.engine.place_of(view));
        let estate = BastionEstate::new(session, address, concern, target, own);
        let mut report = self.engine.pass(view, paused, api, &estate).await;
        report.notes.extend(notes);
        let floating = slot().and_then(|slot| report.ids.get(&slot).cloned()).and_then(|id| estate.seen(&id));
        let told = Addresses { inside, floating: floating.map(|it| it.address) };
        let bastion = stand(&step, usable, told, &report.progress);
        if report.progress == Progress::Done && !matches!(step, Step::Use | Step::Nothing) {
            report.progress = waiting(bastion.message.clone());
        }
        Ok((bastion, report))
    }

    async fn session(&self, view: &OwnerView, spec: &OpenStackClusterSpec) -> Result<Arc<Session>, Progress> {
        let config = self.inputs.cloud(&view.namespace, &spec.identity_ref).await.map_err(|it| match it {
            Missing::Unavailable(why) => Progress::Failed(Fault::Transient(why)),
            other => Progress::Blocked { reason: reason::AUTHENTICATION_FAILED, message: other.to_string() },
        })?;
        self.sessions.of(&config).map_err(Progress::Failed)
    }

    /// The spec of the bastion's server, if there shall be one.
    fn wanted(
        spec: &OpenStackClusterSpec,
        known: &OpenStackClusterStatus,
        networks: &Networks,
    ) -> Result<Option<OpenStackServerSpec>, Progress> {
        let Some(bastion) = spec.bastion.as_ref().filter(|it| it.enabled) else { return Ok(None) };
        let blocked = |message: String| Progress::Blocked { reason: reason::INVALID_SPEC, message };
        let machine = bastion.spec.as_ref().ok_or_else(|| blocked("spec is required if bastion is enabled".into()))?;
        let subnets = spec.primary_subnet.clone().map_or_else(|| spec.subnets.clone(), |it| vec![it]);
        let defaults = Defaults {
            identity: spec.identity_ref.clone(),
            tags: spec.tags.clone(),
            network: Some(networks.network.id.clone()),
            subnets,
            security_group: known.bastion_security_group.as_ref().map(|it| it.id.clone()),
            zone: bastion.availability_zone.clone(),
            user_data: None,
        };
        server_spec(machine, &defaults).map(Some).map_err(blocked)
    }

    async fn carry_out(
        &self,
        Subject { view, spec, .. }: Subject<'_>,
        step: &Step,
        wanted: Option<&OpenStackServerSpec>,
        found: Option<&OpenStackServer>,
        notes: &mut Vec<Note>,
    ) -> Result<(), Progress> {
        // A leader that was frozen on the way may decide nothing any more.
        if !self.engine.in_lease() {
            return Err(Progress::Stale(TOO_LATE.into()));
        }
        let adopts = self.engine.guard().adopts(view, CAPO);
        if let Some(found) = found.filter(|it| is_owned(it, &view.uid))
            && let Some(patch) = mend(found, wanted, rotated(found, &view.uid, identity(spec)), adopts)
        {
            self.servers.patch(found, &patch).await.map_err(missing)?;
            let stamped = patch["metadata"]["annotations"][SPEC_HASH].is_string();
            let differs = wanted.map(|wanted| differing(wanted, &found.spec)).unwrap_or_default();
            if stamped && !differs.is_empty() {
                let message = format!("it is kept as it is, though it differs from the spec: {}", differs.join(", "));
                notes.push(Note { warning: false, reason: "BastionAdopted", message });
            }
        }
        match (step, wanted, found) {
            (Step::Create, Some(wanted), _) => {
                let api_version = format!("{GROUP}/v1beta2");
                let cluster = cluster_name(view);
                let parent = Parent { view, api_version: &api_version, kind: KIND, cluster: &cluster };
                let mut annotations = BTreeMap::from([(SPEC_HASH.to_owned(), spec_hash(wanted))]);
                if adopts {
                    annotations.insert(names::ADOPT_FROM.to_owned(), CAPO.to_owned());
                }
                let object = server(parent, &server_name(view), wanted.clone(), annotations);
                self.servers.create(&object).await.map_err(missing)?;
                let message = format!("OpenStackServer {}", server_name(view));
                notes.push(Note { warning: false, reason: "BastionCreated", message });
            }
            (Step::Delete(why), _, Some(found)) => {
                self.servers.delete(found).await.map_err(missing)?;
                notes.push(Note { warning: false, reason: "BastionDeleted", message: why.clone() });
            }
            _ => {}
        }
        Ok(())
    }

    /// Which floating IP is wanted. It is kept while the server is replaced.
    async fn address(
        &self,
        Subject { view, spec, .. }: Subject<'_>,
        wanted: bool,
        networks: &Networks,
        session: &Session,
        (target, own): (Option<&str>, &BTreeSet<Id>),
        known: &OpenStackClusterStatus,
    ) -> Result<Address, Progress> {
        let Some(external) = networks.external.as_ref().filter(|_| wanted) else { return Ok(Address::None) };
        let ledger = ledger(view, CONTROLLER);
        let concern = Concern::of(view, CONTROLLER, self.engine.place_of(view));
        let scene = Scene {
            network: &external.id,
            pinned: spec.bastion.as_ref().and_then(|it| it.floating_ip.as_deref()),
            record: slot().and_then(|slot| ledger.as_ref()?.records.get(&slot)),
            adopts: self.engine.guard().adopts(view, CAPO),
            target,
            own,
            before: known.bastion.as_ref().and_then(|it| it.floating_ip.as_deref()),
            concern: &concern,
        };
        let kinds = BTreeSet::from([Kind::FloatingIp]);
        if !scene.needs_list() {
            return scene.wish(std::iter::empty()).map_err(refused_address);
        }
        let listed = session.snapshots(&kinds, Freshness::Any).await.map_err(Progress::Failed)?;
        if let Ok(wish) = scene.wish(listed.iter().flat_map(|it| &it.items)) {
            return Ok(wish);
        }
        // A port that is gone since, or an address that has come, is no reason to refuse.
        let now = Freshness::SentAfter(self.clock.boot());
        let listed = session.snapshots(&kinds, now).await.map_err(Progress::Failed)?;
        scene.wish(listed.iter().flat_map(|it| &it.items)).map_err(refused_address)
    }
}

fn refused_address(message: String) -> Progress {
    Progress::Blocked { reason: reason::FLOATING_IP_ERROR, message }
}
/// The bastion's own credentials, or else those of the cluster. None where the spec says nothing of the bastion any more: its
/// server ends with those it has.
fn identity(spec: &OpenStackClusterSpec) -> Option<&IdentityRef> {
    let machine = spec.bastion.as_ref()?.spec.as_ref()?;
    Some(machine.identity_ref.as_ref().unwrap_or(&spec.identity_ref))
}
/// What the server of the bastion is called.
pub fn server_name(view: &OwnerView) -> String {
    format!("{}-bastion", cluster_name(view))
}
