//! `plan`, `audit`, `takeover`, `release`, `doctor`: what is special about them in the sample cloud.
use crate::api::SampleOwner;
use crate::args::SampleArgs;
use crate::cloud::Kind;
use crate::estate::SampleEstate;
use crate::grants::GRANTS;
use crate::inventory::found;
use crate::names::readable;
use crate::plan::Plan;
use crate::session::Session;
use common::concern::Concern;
use common::engine::Settings;
use common::engine::preview::preview;
use common::identity::Place;
use common::operator::desk::{Desk, Seen, refuse_filters};
use common::operator::doctor::{Check, Health};
use common::operator::{doctor, full_name, plan};
use common::pause;
use common::process::cli::{Inspect, Release, Takeover, say};
use common::process::run::Failure;
use std::process::ExitCode;
use std::sync::Arc;

async fn connect(inspect: &Inspect<SampleArgs>) -> Result<(Desk<SampleOwner>, Arc<Session>), Failure> {
    let desk = Desk::connect(inspect, |installation| inspect.own.settings(installation)).await?;
    let session = inspect.own.account(&desk.clock, None)?.session().await?;
    Ok((desk, session))
}

/// What would be created, changed and deleted.
pub async fn plan(inspect: &Inspect<SampleArgs>) -> Result<ExitCode, Failure> {
    let (desk, session) = connect(inspect).await?;
    let clusters = pause::look(&desk.client, desk.filter.namespace.as_deref()).await;
    let mut steps = Vec::new();
    for Seen { object, view, .. } in &desk.owners {
        let wishes = Plan::of(&view.namespace, &view.name, &object.spec);
        if let Some(problem) = wishes.problem().filter(|_| !view.deleting) {
            steps.push(plan::Step::blocked(&full_name(view), &problem));
            continue;
        }
        let Settings { controller, kind, installation, .. } = &desk.settings;
        let place = Place::of(installation, controller, kind, &view.namespace, &view.name);
        let concern = Concern::of(view, controller, place);
        let estate = SampleEstate::new(session.clone(), wishes, concern, readable(&view.namespace, &view.name));
        let paused = pause::reason(view, &clusters);
        let preview = preview(&desk.settings, &desk.clock, &desk.random, view, paused, &estate).await;
        steps.extend(plan::steps(&full_name(view), &preview));
    }
    desk.end_plan(&steps)
}

/// Every thing that carries our kind of mark, and whether its owner lives.
pub async fn audit(inspect: &Inspect<SampleArgs>) -> Result<ExitCode, Failure> {
    refuse_filters(&inspect.kube.filter())?;
    let (desk, session) = connect(inspect).await?;
    desk.end_audit(&found(&session, desk.clock.boot()).await?).await
}

/// Asks owners that came from another installation to be taken over.
pub async fn takeover(args: &Takeover<SampleArgs>) -> Result<ExitCode, Failure> {
    connect(&args.inspect).await?.0.takeover(&args.from, args.name.as_deref(), args.dry_run).await
}

/// Lets owners go; what they owned stays and is listed.
pub async fn release(args: &Release<SampleArgs>) -> Result<ExitCode, Failure> {
    connect(&args.inspect).await?.0.release(args.name.as_deref(), args.dry_run).await
}

/// Permissions, clock and installation id, before the first create.
pub async fn doctor(inspect: &Inspect<SampleArgs>) -> Result<ExitCode, Failure> {
    let (desk, session) = connect(inspect).await?;
    let mut checks = doctor::access(&desk.client, GRANTS, desk.filter.namespace.as_deref(), &desk.namespace).await;
    match session.identity().await {
        Ok(who) => {
            let note = format!("{} in {}/{}", who.principal, who.account, who.region);
            checks.push(Check::new(Health::Good, "cloud: credentials", note));
            checks.push(doctor::clock(who.date, desk.clock.wall()));
        }
        Err(fault) => checks.push(Check::new(Health::Bad, "cloud: credentials", fault.to_string())),
    }
    for kind in Kind::ALL {
        for (permission, allowed) in session.cloud().permissions(kind).await {
            checks.push(match allowed {
                Ok(()) => Check::new(Health::Good, format!("cloud: {permission}"), ""),
                Err(fault) => Check::new(Health::Bad, format!("cloud: {permission}"), fault.to_string()),
            });
        }
    }
    if let Ok(found) = found(&session, desk.clock.boot()).await {
        checks.push(doctor::installation(&found, &desk.known(), &desk.settings.installation));
    }
    desk.end_doctor(&checks)
}

/// The definition of the custom resource.
pub fn crd() -> Result<ExitCode, Failure> {
    say(&crate::crd::yaml()?);
    Ok(ExitCode::SUCCESS)
}
