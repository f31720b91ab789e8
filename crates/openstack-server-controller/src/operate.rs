//! `plan`, `audit`, `takeover`, `release`, `doctor`: what is special about them here. Credentials belong to objects, so an
//! audit looks into every project that some object has credentials for.
use crate::api::{OpenStackCluster, OpenStackMachine, OpenStackServer};
use crate::args::OpenStackArgs;
use crate::grants::GRANTS;
use crate::keeper::Keeper;
use crate::kube_inputs::KubeInputs;
use crate::preflight::look_ahead;
use crate::quota::Needs;
use crate::reconcile::{Reconciler, Subject};
use crate::secrets::named;
use crate::session::Session;
use crate::sight::Sight;
use crate::{bastion, machine};
use common::engine::estate::Freshness;
use common::engine::fence::Open;
use common::engine::owner::OwnerView;
use common::engine::preview::{Act, preview};
use common::engine::report::Progress;
use common::engine::rules::Rulebook;
use common::engine::{Engine, Settings};
use common::names;
use common::operator::audit::judge;
use common::operator::desk::{self, Seen, refuse_filters};
use common::operator::doctor::{Check, Health};
use common::operator::{Owner, doctor, full_name, plan, render};
use common::process::cli::{FAILED, Inspect, ORPHANS_FOUND, Release, Takeover, say};
use common::process::run::Failure;
use kube::api::ObjectMeta;
use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

/// The owners, and the clouds behind them.
struct Desk {
    owners: desk::Desk<OpenStackServer>,
    clusters: desk::Desk<OpenStackCluster>,
    machines: desk::Desk<OpenStackMachine>,
    reconciler: Reconciler,
}

async fn connect(inspect: &Inspect<OpenStackArgs>) -> Result<Desk, Failure> {
    let owners = desk::Desk::connect(inspect, |installation| inspect.own.settings(installation)).await?;
    let of = |controller, kind: &str, installation: &str| {
        let kind = kind.to_owned();
        Settings { controller, kind, ..inspect.own.settings(installation) }
    };
    let clusters = desk::Desk::connect(inspect, |it| of(bastion::CONTROLLER, bastion::KIND, it)).await?;
    let machines = desk::Desk::connect(inspect, |it| of(machine::CONTROLLER, machine::KIND, it)).await?;
    let (clock, settings) = (owners.clock.clone(), owners.settings.clone());
    let engine = Engine::new(settings, clock.clone(), owners.random.clone(), Arc::new(Open), Rulebook::production());
    let inputs = KubeInputs::new(owners.client.clone(), clock.clone()).read_only();
    let sessions = Arc::new(inspect.own.sessions(&clock, None));
    let reconciler = Reconciler::new(Arc::new(engine), sessions, Arc::new(inputs), clock);
    Ok(Desk { owners, clusters, machines, reconciler })
}

impl Desk {
    /// One session for each project that an owner has credentials for, by scope; and why some cannot be looked into.
    async fn projects(&self) -> (BTreeMap<String, Arc<Session>>, Vec<String>) {
        let servers = self.owners.owners.iter().map(|it| (&it.view, &it.object.spec.identity_ref));
        // A cluster can have a floating IP, and a machine members, in a project where no server is left.
        let clusters = self.clusters.owners.iter().map(|it| (&it.view, &it.object.spec.identity_ref));
        let machines = self.machines.owners.iter();
        let machines = machines.filter_map(|it| Some((&it.view, it.object.spec.identity_ref.as_ref()?)));
        let (mut projects, mut closed) = (BTreeMap::new(), Vec::new());
        for (view, identity) in servers.chain(clusters).chain(machines) {
            match self.reconciler.session_of(view, identity).await {
                Ok((session, identity)) => drop(projects.entry(identity.scope()).or_insert(session)),
                Err(progress) => closed.push(format!("{}: {}", full_name(view), said(&progress))),
            }
        }
        (projects, closed)
    }
    /// All owners, for telling whose things are.
    fn known(&self) -> Vec<Owner> {
        [self.owners.known(), self.clusters.known(), self.machines.known()].concat()
    }
    /// The owners as they are now, beside those that were there when the look at the projects began.
    async fn known_since(&self) -> Result<Vec<Owner>, Failure> {
        let (owners, clusters) = (self.owners.known_since().await?, self.clusters.known_since().await?);
        Ok([owners, clusters, self.machines.known_since().await?].concat())
    }
    /// Everything that the projects show.
    async fn look(&self, projects: &BTreeMap<String, Arc<Session>>) -> Sight {
        let mut sight = Sight::default();
        for (scope, session) in projects {
            sight.look(scope, session, Freshness::SentAfter(self.owners.clock.boot())).await;
        }
        sight
    }
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
    let owners = &desk.owners;
    let mut steps = Vec::new();
    let mut projects: BTreeMap<String, (Arc<Session>, Needs)> = BTreeMap::new();
    for Seen { object, view, status } in &owners.owners {
        let subject = Subject { view, spec: &object.spec, status: Some(status) };
        let (estate, session) = match desk.reconciler.estate(subject).await {
            Ok(found) => found,
            Err(progress) => {
                steps.push(plan::Step::blocked(&full_name(view), &said(&progress)));
                continue;
            }
        };
        let paused = view.annotations.contains_key(names::PAUSED).then(|| "paused by its annotation".to_owned());
        let mut preview = preview(&owners.settings, &owners.clock, &owners.random, view, paused, &estate).await;
        let scope = session.cloud().identity().await?.scope();
        let (_, needs) = projects.entry(scope).or_insert_with(|| (session.clone(), Needs::default()));
        let lacking = look_ahead(session.cloud(), &preview.acts, needs).await;
        let lacking = lacking.unwrap_or_else(|fault| vec![format!("what it names cannot be looked up: {fault}")]);
        preview.acts.iter_mut().for_each(veil);
        steps.extend(plan::steps(&full_name(view), &preview));
        steps.extend(lacking.iter().map(|why| plan::Step::blocked(&full_name(view), why)));
    }
    for (scope, (session, needs)) in projects {
        let short = match session.cloud().quotas().await {
            Ok(quotas) => needs.short(&quotas),
            Err(fault) => vec![format!("quotas cannot be asked for: {fault}")],
        };
        steps.extend(short.iter().map(|why| plan::Step::blocked(&scope, why)));
    }
    owners.end_plan(&steps)
}

/// Every thing that carries our kind of mark, and whether its owner lives.
pub async fn audit(inspect: &Inspect<OpenStackArgs>) -> Result<ExitCode, Failure> {
    refuse_filters(&inspect.kube.filter())?;
    let desk = connect(inspect).await?;
    let (projects, mut closed) = desk.projects().await;
    let sight = desk.look(&projects).await;
    closed.extend(sight.unseen);
    for why in &closed {
        tracing::warn!(why, "was not looked into");
    }
    for what in &sight.absent {
        tracing::info!(what, "nothing to look at");
    }
    let findings = judge(&sight.found, &desk.known_since().await?, &desk.owners.settings.installation);
    say(&render(&findings, inspect.output)?);
    let orphans = findings.iter().any(|finding| finding.verdict.is_orphan());
    Ok(ExitCode::from(end_of_audit(orphans, closed.is_empty())))
}
/// What was not looked into may hold orphans: that is no clean bill.
fn end_of_audit(orphans: bool, complete: bool) -> u8 {
    match (orphans, complete) {
        (true, _) => ORPHANS_FOUND,
        (false, false) => FAILED,
        (false, true) => 0,
    }
}

/// Asks owners that came from another installation to be taken over: servers, clusters and machines alike.
pub async fn takeover(args: &Takeover<OpenStackArgs>) -> Result<ExitCode, Failure> {
    let desk = connect(&args.inspect).await?;
    let (from, name, dry) = (args.from.as_str(), args.name.as_deref(), args.dry_run);
    let ends = [
        desk.clusters.takeover(from, name, dry).await?,
        desk.machines.takeover(from, name, dry).await?,
        desk.owners.takeover(from, name, dry).await?,
    ];
    Ok(worst(&ends))
}

/// Lets owners go; what they owned stays and is listed. Those that others are made for come last, and credentials that nobody needs
/// any more are let go, too: after an uninstall nobody else would.
pub async fn release(args: &Release<OpenStackArgs>) -> Result<ExitCode, Failure> {
    let desk = connect(&args.inspect).await?;
    let name = args.name.as_deref();
    let mut ends = Vec::new();
    if has(&desk.machines.owners, name) {
        ends.push(desk.machines.release(name, args.dry_run).await?);
    }
    if has(&desk.clusters.owners, name) {
        ends.push(desk.clusters.release(name, args.dry_run).await?);
    }
    if ends.is_empty() || has(&desk.owners.owners, name) {
        ends.push(desk.owners.release(name, args.dry_run).await?);
    }
    if !args.dry_run {
        let_credentials_go(&desk.owners).await?;
    }
    Ok(worst(&ends))
}
fn has<K>(owners: &[Seen<K>], name: Option<&str>) -> bool {
    let called = |view: &OwnerView, name: &str| view.name == name || full_name(view) == name;
    owners.iter().any(|seen| name.is_none_or(|name| called(&seen.view, name)))
}
fn worst(ends: &[ExitCode]) -> ExitCode {
    ends.iter().find(|end| **end != ExitCode::SUCCESS).copied().unwrap_or(ExitCode::SUCCESS)
}
async fn let_credentials_go(desk: &desk::Desk<OpenStackServer>) -> Result<(), Failure> {
    let ours = |object: &ObjectMeta| object.finalizers.iter().flatten().any(|it| it.starts_with(names::PREFIX));
    let keeper = Keeper::new(desk.client.clone());
    for key in keeper.all_held(desk.filter.namespace.as_deref()).await? {
        if !named(&desk.client, &key, ours).await? {
            keeper.let_go(&key).await?;
        }
    }
    Ok(())
}

/// Permissions, credentials, clock, extensions and installation id, before the first create.
pub async fn doctor(inspect: &Inspect<OpenStackArgs>) -> Result<ExitCode, Failure> {
    let desk = connect(inspect).await?;
    let owners = &desk.owners;
    let mut checks =
        doctor::access(&owners.client, GRANTS, owners.filter.namespace.as_deref(), &owners.namespace).await;
    let (projects, closed) = desk.projects().await;
    checks.extend(closed.into_iter().map(|why| Check::new(Health::Bad, "cloud: credentials", why)));
    for (scope, session) in &projects {
        let cloud = session.cloud();
        let who = cloud.identity().await?;
        checks.push(Check::new(Health::Good, format!("cloud: {scope}"), who.user.clone()));
        checks.push(doctor::clock(who.date, owners.clock.wall()));
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
    let sight = desk.look(&projects).await;
    checks.extend(sight.absent.into_iter().map(|what| Check::new(Health::Good, "cloud: services", what)));
    checks.extend(sight.unseen.into_iter().map(|why| Check::new(Health::Bad, "cloud: lists", why)));
    checks.push(doctor::installation(&sight.found, &desk.known(), &owners.settings.installation));
    owners.end_doctor(&checks)
}

/// The definitions of the custom resources.
pub fn crd() -> Result<ExitCode, Failure> {
    say(&crate::crd::yaml()?);
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_that_did_not_see_everything_is_no_success() {
        assert_eq!(end_of_audit(false, true), 0);
        assert_eq!(end_of_audit(false, false), FAILED);
        assert_eq!((end_of_audit(true, true), end_of_audit(true, false)), (ORPHANS_FOUND, ORPHANS_FOUND));
    }
}
