//! `plan`, `audit`, `takeover`, `release`, `doctor`: reads the owners and the clouds, asks common's judgement, says the result.
//! Credentials belong to objects here, so an audit looks into every project that some object has credentials for.
use crate::api::OpenStackServer;
use crate::args::OpenStackArgs;
use crate::cloud::{Item, Kind};
use crate::grants::GRANTS;
use crate::kube_inputs::KubeInputs;
use crate::names::CONTROLLER;
use crate::reconcile::{Reconciler, Subject};
use crate::session::Session;
use common::clock::{SharedClock, SystemClock};
use common::engine::estate::Freshness;
use common::engine::fence::Open;
use common::engine::owner::{OwnerApi, OwnerView, Patched};
use common::engine::preview::{Act, preview};
use common::engine::report::Progress;
use common::engine::rules::Rulebook;
use common::engine::{Engine, Settings};
use common::names;
use common::operator::doctor::{Check, Health};
use common::operator::{Found, Owner, Row, audit, doctor, full_name, plan, release, render, takeover};
use common::owner_api::KubeOwnerApi;
use common::process::cli::{FAILED, Inspect, ORPHANS_FOUND, Output, PLAN_NOT_EMPTY, Release, Takeover, say};
use common::process::client;
use common::process::run::Failure;
use common::random::Random;
use common::runtime::object::{Arrived, Kept};
use common::runtime::trigger::Trigger;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

/// Everything a subcommand looks at.
struct Desk {
    client: Client,
    namespace: String,
    settings: Settings,
    reconciler: Reconciler,
    owners: Vec<(OpenStackServer, OwnerView, Value)>,
    clock: SharedClock,
    random: Arc<Random>,
    output: Output,
}

async fn connect(inspect: &Inspect<OpenStackArgs>) -> Result<Desk, Failure> {
    let config = client::config(inspect.kube.kubeconfig.as_deref()).await?;
    let namespace = config.default_namespace.clone();
    let client = client::connect(config, None)?;
    let installation = match inspect.kube.installation_id.clone().filter(|id| !id.is_empty()) {
        Some(id) => id,
        None => client::installation_id(&client).await?,
    };
    let clock: SharedClock = Arc::new(SystemClock);
    let random = Arc::new(Random::from_system()?);
    let settings = inspect.own.settings(&installation);
    let engine = Engine::new(settings.clone(), clock.clone(), random.clone(), Arc::new(Open), Rulebook::production());
    let inputs = KubeInputs::new(client.clone(), clock.clone()).read_only();
    let sessions = Arc::new(inspect.own.sessions(&clock, None));
    let (engine, policy) = (Arc::new(engine), inspect.own.policy());
    let reconciler = Reconciler::new(engine, sessions, Arc::new(inputs), Arc::new(Open), clock.clone(), policy);
    let mut desk =
        Desk { settings, random, owners: Vec::new(), output: inspect.output, client, namespace, reconciler, clock };
    desk.owners = desk.list(inspect).await?;
    Ok(desk)
}

impl Desk {
    /// All owners that the controller would serve.
    async fn list(
        &self,
        inspect: &Inspect<OpenStackArgs>,
    ) -> Result<Vec<(OpenStackServer, OwnerView, Value)>, Failure> {
        let filter = inspect.kube.filter();
        let resource = ApiResource::erase::<OpenStackServer>(&());
        let api: Api<Arrived> = match &filter.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let mut params = ListParams::default().limit(500);
        params.label_selector = filter.selector();
        let mut owners = Vec::new();
        loop {
            let page = api.list(&params).await?;
            for object in &page.items {
                let kept = Kept::new(object, Trigger::default());
                let (view, status) = kept.view();
                owners.push((kept.decode()?, view, status));
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return Ok(owners);
            }
        }
    }
    fn api(&self) -> KubeOwnerApi {
        KubeOwnerApi::new::<OpenStackServer>(self.client.clone(), CONTROLLER)
    }
    fn views(&self, name: Option<&str>) -> Vec<OwnerView> {
        let wanted = |view: &&OwnerView| name.is_none_or(|name| view.name == name || full_name(view) == name);
        self.owners.iter().map(|(_, view, _)| view).filter(wanted).cloned().collect()
    }
    fn known(&self) -> Vec<Owner> {
        self.owners.iter().map(|(_, view, _)| Owner::of(view, &self.settings)).collect()
    }
    /// One session for each project that an owner has credentials for, by scope; and why some cannot be looked into.
    async fn projects(&self) -> (BTreeMap<String, Arc<Session>>, Vec<String>) {
        let (mut projects, mut closed) = (BTreeMap::new(), Vec::new());
        for (object, view, _) in &self.owners {
            match self.reconciler.session_of(view, &object.spec).await {
                Ok((session, identity)) => drop(projects.entry(identity.scope()).or_insert(session)),
                Err(progress) => closed.push(format!("{}: {}", full_name(view), said(&progress))),
            }
        }
        (projects, closed)
    }
    /// Everything that the projects show.
    async fn found(&self, projects: &BTreeMap<String, Arc<Session>>) -> Result<Vec<Found>, Failure> {
        let kinds: BTreeSet<Kind> = Kind::ALL.into();
        let mut all = Vec::new();
        for session in projects.values() {
            let snapshots = session.snapshots(&kinds, Freshness::SentAfter(self.clock.boot())).await?;
            all.extend(snapshots.iter().flat_map(|snapshot| snapshot.items.iter().map(found)));
        }
        Ok(all)
    }
    fn say<R: Row>(&self, rows: &[R]) -> Result<(), Failure> {
        say(&render(rows, self.output)?);
        Ok(())
    }
}

fn found(item: &Item) -> Found {
    let parent = match item {
        Item::Trunk(trunk) => Some(trunk.port.clone()),
        _ => None,
    };
    Found { kind: item.kind().name(), id: item.id().clone(), mark: item.mark(), name: item.name().to_owned(), parent }
}
fn said(progress: &Progress) -> String {
    match progress {
        Progress::Waiting { reason, message, .. } | Progress::Blocked { reason, message } => {
            format!("{reason}: {message}")
        }
        Progress::Failed(fault) => fault.to_string(),
        Progress::Stale(why) => why.clone(),
        Progress::Done | Progress::Gone => String::new(),
    }
}
/// User data is somebody's secret.
fn veil(act: &mut Act) {
    if let Act::Create { params, .. } = act
        && let Some(data) = params.pointer_mut("/server/user_data")
    {
        let length = data.as_str().map_or(0, str::len);
        *data = json!(format!("({length} characters)"));
    }
}

/// What would be created, adopted, changed and deleted, and whether the quotas allow it.
pub async fn plan(inspect: &Inspect<OpenStackArgs>) -> Result<ExitCode, Failure> {
    let desk = connect(inspect).await?;
    let mut steps = Vec::new();
    let mut creates: BTreeMap<String, (Arc<Session>, BTreeMap<&'static str, i64>)> = BTreeMap::new();
    for (object, view, status) in &desk.owners {
        let subject = Subject { view, spec: &object.spec, status: Some(status) };
        let (estate, session) = match desk.reconciler.estate(subject).await {
            Ok(found) => found,
            Err(progress) => {
                steps.push(plan::Step::blocked(&full_name(view), &said(&progress)));
                continue;
            }
        };
        let paused = view.annotations.contains_key(names::PAUSED).then(|| "paused by its annotation".to_owned());
        let mut preview = preview(&desk.settings, &desk.clock, &desk.random, view, paused, &estate).await;
        let scope = session.cloud().identity().await?.scope();
        for act in &mut preview.acts {
            if let Act::Create { slot, .. } = act {
                let counts = &mut creates.entry(scope.clone()).or_insert_with(|| (session.clone(), BTreeMap::new())).1;
                let name = if slot.starts_with("server") {
                    "instances"
                } else if slot.starts_with("port") {
                    "ports"
                } else {
                    continue;
                };
                *counts.entry(name).or_default() += 1;
            }
            veil(act);
        }
        steps.extend(plan::steps(&full_name(view), &preview));
    }
    for (scope, (session, wanted)) in creates {
        let quotas = session.cloud().quotas().await?;
        for (name, used, most) in quotas.iter().filter(|(_, _, most)| *most >= 0) {
            let more = wanted.get(name.as_str()).copied().unwrap_or_default();
            if used + more > *most {
                steps.push(plan::Step::blocked(
                    &scope,
                    &format!("quota of {name}: {used} of {most} used, {more} more would be made"),
                ));
            }
        }
    }
    desk.say(&steps)?;
    Ok(if steps.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(PLAN_NOT_EMPTY) })
}

/// Every thing that carries our kind of mark, and whether its owner lives.
pub async fn audit(inspect: &Inspect<OpenStackArgs>) -> Result<ExitCode, Failure> {
    if inspect.kube.filter() != common::filter::Filter::default() {
        return Err(
            "an audit of some owners would call the things of all others orphans: run it without filters".into()
        );
    }
    let desk = connect(inspect).await?;
    let (projects, closed) = desk.projects().await;
    for why in &closed {
        tracing::warn!(why, "its project was not looked into");
    }
    let findings = audit::judge(&desk.found(&projects).await?, &desk.known(), &desk.settings.installation);
    desk.say(&findings)?;
    let orphans = findings.iter().any(|finding| finding.verdict.is_orphan());
    Ok(if orphans { ExitCode::from(ORPHANS_FOUND) } else { ExitCode::SUCCESS })
}

/// Asks owners that came from another installation to be taken over.
pub async fn takeover(args: &Takeover<OpenStackArgs>) -> Result<ExitCode, Failure> {
    let desk = connect(&args.inspect).await?;
    let views = desk.views(args.name.as_deref());
    let orders = if args.dry_run {
        takeover::orders(&views, &desk.settings, &args.from)
    } else {
        takeover::ask(&desk.api(), &views, &desk.settings, &args.from).await
    };
    desk.say(&orders)?;
    let failed = orders.iter().any(|order| order.failed);
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Lets owners go; what they owned stays and is listed.
pub async fn release(args: &Release<OpenStackArgs>) -> Result<ExitCode, Failure> {
    let desk = connect(&args.inspect).await?;
    let views = desk.views(args.name.as_deref());
    if views.is_empty() {
        return Err("no such owner".into());
    }
    let (mut all, mut failed) = (Vec::new(), false);
    for view in &views {
        match release_one(&desk, view, args.dry_run).await {
            Ok(survivors) => all.extend(survivors),
            Err(why) => {
                failed = true;
                tracing::error!(owner = full_name(view), %why, "not released");
            }
        }
    }
    desk.say(&all)?;
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}
async fn release_one(desk: &Desk, view: &OwnerView, dry_run: bool) -> Result<Vec<release::Survivor>, Failure> {
    let (survivors, patch) = release::release(view, &desk.settings)?;
    if dry_run {
        return Ok(survivors);
    }
    // The receipt first: nothing may be forgotten before it is written down.
    let receipt = release::receipt(view, &desk.settings, &survivors, &desk.namespace, desk.clock.wall())?;
    let receipts: Api<ConfigMap> = Api::namespaced(desk.client.clone(), &desk.namespace);
    match receipts.create(&PostParams::default(), &receipt).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(why) => return Err(why.into()),
    }
    match desk.api().patch(view, &patch).await {
        Patched::Stored(_) | Patched::Gone => Ok(survivors),
        Patched::Conflict => Err("changed meanwhile, run again".into()),
        Patched::Refused(why) | Patched::Unknown(why) => Err(why.into()),
    }
}

/// Permissions, credentials, clock, extensions and installation id, before the first create.
pub async fn doctor(inspect: &Inspect<OpenStackArgs>) -> Result<ExitCode, Failure> {
    let desk = connect(inspect).await?;
    let filter = inspect.kube.filter();
    let mut checks = doctor::access(&desk.client, GRANTS, filter.namespace.as_deref(), &desk.namespace).await;
    let (projects, closed) = desk.projects().await;
    checks.extend(closed.into_iter().map(|why| Check::new(Health::Bad, "cloud: credentials", why)));
    for (scope, session) in &projects {
        let cloud = session.cloud();
        let who = cloud.identity().await?;
        checks.push(Check::new(Health::Good, format!("cloud: {scope}"), who.user.clone()));
        checks.push(doctor::clock(who.date, desk.clock.wall()));
        match cloud.extensions().await {
            Ok(extensions) if extensions.contains(crate::cloud::TAGS) => {
                checks.push(Check::new(Health::Good, "cloud: Neutron", "has tags"));
            }
            Ok(_) => {
                checks.push(Check::new(Health::Good, "cloud: Neutron", "has no tags: those of specs are left out"));
            }
            Err(fault) => checks.push(Check::new(Health::Bad, "cloud: Neutron", fault.to_string())),
        }
        checks.push(match cloud.compute_version().await {
            Ok(version) if version >= 52 => {
                Check::new(Health::Good, "cloud: Nova", format!("microversion 2.{version}"))
            }
            Ok(version) => {
                Check::new(Health::Bad, "cloud: Nova", format!("microversion 2.{version}: no tags on servers"))
            }
            Err(fault) => Check::new(Health::Bad, "cloud: Nova", fault.to_string()),
        });
    }
    if let Ok(found) = desk.found(&projects).await {
        checks.push(doctor::installation(&found, &desk.known(), &desk.settings.installation));
    }
    desk.say(&checks)?;
    let bad = checks.iter().any(|check| check.health == Health::Bad);
    Ok(if bad { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// The definitions of the custom resources.
pub fn crd() -> Result<ExitCode, Failure> {
    say(&crate::crd::yaml()?);
    Ok(ExitCode::SUCCESS)
}
