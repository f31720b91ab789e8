//! `plan`, `audit`, `takeover`, `release`, `doctor`: reads the owners and the cloud, asks common's judgement, says the result.
use crate::api::SampleOwner;
use crate::args::SampleArgs;
use crate::cloud::Kind;
use crate::estate::SampleEstate;
use crate::grants::GRANTS;
use crate::inventory::found;
use crate::names::{CONTROLLER, readable};
use crate::plan::Plan;
use crate::session::Session;
use common::clock::{SharedClock, SystemClock};
use common::concern::Concern;
use common::engine::Settings;
use common::engine::estate::Fault;
use common::engine::owner::{OwnerApi, OwnerView, Patched};
use common::engine::preview::preview;
use common::identity::Place;
use common::operator::doctor::{Check, Health};
use common::operator::{Found, Owner, Row, audit, doctor, full_name, plan, release, render, takeover};
use common::owner_api::KubeOwnerApi;
use common::pause;
use common::process::cli::{FAILED, Inspect, ORPHANS_FOUND, Output, PLAN_NOT_EMPTY, Release, Takeover, say};
use common::process::client;
use common::process::run::Failure;
use common::random::Random;
use common::runtime::object::{Arrived, Kept};
use common::runtime::trigger::Trigger;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, ListParams, PostParams};
use kube::{Api, Client};
use std::process::ExitCode;
use std::sync::Arc;

/// Everything a subcommand looks at.
struct Desk {
    client: Client,
    namespace: String,
    settings: Settings,
    session: Arc<Session>,
    owners: Vec<(SampleOwner, OwnerView)>,
    clock: SharedClock,
    random: Arc<Random>,
    output: Output,
}

async fn connect(inspect: &Inspect<SampleArgs>) -> Result<Desk, Failure> {
    let config = client::config(inspect.kube.kubeconfig.as_deref()).await?;
    let namespace = config.default_namespace.clone();
    let client = client::connect(config, None)?;
    let installation = match inspect.kube.installation_id.clone().filter(|id| !id.is_empty()) {
        Some(id) => id,
        None => client::installation_id(&client).await?,
    };
    let clock: SharedClock = Arc::new(SystemClock);
    let session = inspect.own.account(&clock, None)?.session().await?;
    let mut desk = Desk {
        settings: inspect.own.settings(&installation),
        random: Arc::new(Random::from_system()?),
        owners: Vec::new(),
        output: inspect.output,
        client,
        namespace,
        session,
        clock,
    };
    desk.owners = desk.list(inspect).await?;
    Ok(desk)
}

impl Desk {
    /// All owners that the controller would serve.
    async fn list(&self, inspect: &Inspect<SampleArgs>) -> Result<Vec<(SampleOwner, OwnerView)>, Failure> {
        let filter = inspect.kube.filter();
        let resource = ApiResource::erase::<SampleOwner>(&());
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
                owners.push((kept.decode()?, kept.view().0));
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return Ok(owners);
            }
        }
    }
    fn api(&self) -> KubeOwnerApi {
        KubeOwnerApi::new::<SampleOwner>(self.client.clone(), CONTROLLER)
    }
    fn views(&self, name: Option<&str>) -> Vec<OwnerView> {
        let wanted = |view: &&OwnerView| name.is_none_or(|name| view.name == name || full_name(view) == name);
        self.owners.iter().map(|(_, view)| view).filter(wanted).cloned().collect()
    }
    fn known(&self) -> Vec<Owner> {
        self.owners.iter().map(|(_, view)| Owner::of(view, &self.settings)).collect()
    }
    async fn found(&self) -> Result<Vec<Found>, Fault> {
        found(&self.session, self.clock.boot()).await
    }
    fn say<R: Row>(&self, rows: &[R]) -> Result<(), Failure> {
        say(&render(rows, self.output)?);
        Ok(())
    }
}

/// What would be created, changed and deleted.
pub async fn plan(inspect: &Inspect<SampleArgs>) -> Result<ExitCode, Failure> {
    let desk = connect(inspect).await?;
    let clusters = pause::look(&desk.client, inspect.kube.filter().namespace.as_deref()).await;
    let mut steps = Vec::new();
    for (object, view) in &desk.owners {
        let wishes = Plan::of(&view.namespace, &view.name, &object.spec);
        if let Some(problem) = wishes.problem().filter(|_| !view.deleting) {
            steps.push(plan::Step::blocked(&full_name(view), &problem));
            continue;
        }
        let Settings { controller, kind, installation, .. } = &desk.settings;
        let place = Place::of(installation, controller, kind, &view.namespace, &view.name);
        let concern = Concern::of(view, controller, place);
        let estate = SampleEstate::new(desk.session.clone(), wishes, concern, readable(&view.namespace, &view.name));
        let paused = pause::reason(view, &clusters);
        let preview = preview(&desk.settings, &desk.clock, &desk.random, view, paused, &estate).await;
        steps.extend(plan::steps(&full_name(view), &preview));
    }
    desk.say(&steps)?;
    Ok(if steps.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(PLAN_NOT_EMPTY) })
}

/// Every thing that carries our kind of mark, and whether its owner lives.
pub async fn audit(inspect: &Inspect<SampleArgs>) -> Result<ExitCode, Failure> {
    if inspect.kube.filter() != common::filter::Filter::default() {
        return Err(
            "an audit of some owners would call the things of all others orphans: run it without filters".into()
        );
    }
    let desk = connect(inspect).await?;
    let findings = audit::judge(&desk.found().await?, &desk.known(), &desk.settings.installation);
    desk.say(&findings)?;
    let orphans = findings.iter().any(|finding| finding.verdict.is_orphan());
    Ok(if orphans { ExitCode::from(ORPHANS_FOUND) } else { ExitCode::SUCCESS })
}

/// Asks owners that came from another installation to be taken over.
pub async fn takeover(args: &Takeover<SampleArgs>) -> Result<ExitCode, Failure> {
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
pub async fn release(args: &Release<SampleArgs>) -> Result<ExitCode, Failure> {
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

/// Permissions, clock and installation id, before the first create.
pub async fn doctor(inspect: &Inspect<SampleArgs>) -> Result<ExitCode, Failure> {
    let desk = connect(inspect).await?;
    let filter = inspect.kube.filter();
    let mut checks = doctor::access(&desk.client, GRANTS, filter.namespace.as_deref(), &desk.namespace).await;
    match desk.session.identity().await {
        Ok(who) => {
            let note = format!("{} in {}/{}", who.principal, who.account, who.region);
            checks.push(Check::new(Health::Good, "cloud: credentials", note));
            checks.push(doctor::clock(who.date, desk.clock.wall()));
        }
        Err(fault) => checks.push(Check::new(Health::Bad, "cloud: credentials", fault.to_string())),
    }
    for kind in Kind::ALL {
        for (permission, allowed) in desk.session.cloud().permissions(kind).await {
            checks.push(match allowed {
                Ok(()) => Check::new(Health::Good, format!("cloud: {permission}"), ""),
                Err(fault) => Check::new(Health::Bad, format!("cloud: {permission}"), fault.to_string()),
            });
        }
    }
    if let Ok(found) = desk.found().await {
        checks.push(doctor::installation(&found, &desk.known(), &desk.settings.installation));
    }
    desk.say(&checks)?;
    let bad = checks.iter().any(|check| check.health == Health::Bad);
    Ok(if bad { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// The definition of the custom resource.
pub fn crd() -> Result<ExitCode, Failure> {
    say(&crate::crd::yaml()?);
    Ok(ExitCode::SUCCESS)
}
