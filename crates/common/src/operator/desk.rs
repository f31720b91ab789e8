//! What every subcommand looks at, and those that are the same for all controllers.
use super::audit::{self, Finding};
use super::doctor::{Check, Health};
use super::plan::Step;
use super::{Found, Owner, Row, full_name, release, render, takeover};
use crate::clock::{SharedClock, SystemClock};
use crate::engine::Settings;
use crate::engine::owner::{OwnerApi, OwnerView, Patched};
use crate::filter::Filter;
use crate::names::reason;
use crate::owner_api::KubeOwnerApi;
use crate::process::cli::{FAILED, Inspect, ORPHANS_FOUND, Output, PLAN_NOT_EMPTY, say};
use crate::process::client;
use crate::process::run::Failure;
use crate::random::Random;
use crate::runtime::object::{Arrived, Kept};
use crate::runtime::trigger::Trigger;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, ListParams, PostParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;

/// An owner as a subcommand sees it.
pub struct Seen<K> {
    /// The object.
    pub object: K,
    /// What the engine reads of it.
    pub view: OwnerView,
    /// Its status.
    pub status: Value,
}

/// Everything a subcommand looks at.
pub struct Desk<K> {
    /// The API server.
    pub client: Client,
    /// The namespace that this program runs in or that the kubeconfig names.
    pub namespace: String,
    /// Which owners were asked for.
    pub filter: Filter,
    /// As the controller has them.
    pub settings: Settings,
    /// All owners that the controller would serve.
    pub owners: Vec<Seen<K>>,
    /// Owners that do not fit their type, and why. What they own is as much theirs.
    misfits: Vec<(OwnerView, String)>,
    /// Time.
    pub clock: SharedClock,
    /// Chance.
    pub random: Arc<Random>,
    output: Output,
}

impl<K> Desk<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    /// Connects and reads the owners. `settings` makes the engine's settings for an installation id.
    pub async fn connect<A: clap::Args>(
        inspect: &Inspect<A>,
        settings: impl FnOnce(&str) -> Settings,
    ) -> Result<Self, Failure> {
        let config = client::config(inspect.kube.kubeconfig.as_deref()).await?;
        let namespace = config.default_namespace.clone();
        let client = client::connect(config, None)?;
        let installation = match inspect.kube.installation_id.clone().filter(|id| !id.is_empty()) {
            Some(id) => id,
            None => client::installation_id(&client).await?,
        };
        let filter = inspect.kube.filter();
        let (owners, misfits) = list(&client, &filter).await?;
        Ok(Desk {
            owners,
            misfits,
            settings: settings(&installation),
            clock: Arc::new(SystemClock),
            random: Arc::new(Random::from_system()?),
            output: inspect.output,
            client,
            namespace,
            filter,
        })
    }
    fn api(&self) -> KubeOwnerApi {
        KubeOwnerApi::new::<K>(self.client.clone(), self.settings.controller)
    }
    fn all(&self) -> impl Iterator<Item = &OwnerView> {
        self.owners.iter().map(|seen| &seen.view).chain(self.misfits.iter().map(|(view, _)| view))
    }
    fn views(&self, name: Option<&str>) -> Vec<OwnerView> {
        let wanted = |view: &&OwnerView| name.is_none_or(|name| view.name == name || full_name(view) == name);
        self.all().filter(wanted).cloned().collect()
    }
    /// The owners, for telling whose things are.
    pub fn known(&self) -> Vec<Owner> {
        self.all().map(|view| Owner::of(view, &self.settings)).collect()
    }
    /// The owners as they are now, and those that were there at the beginning: whatever the cloud showed in between had its owner
    /// in one of the two.
    pub async fn known_since(&self) -> Result<Vec<Owner>, Failure> {
        let (owners, misfits) = list::<K>(&self.client, &self.filter).await?;
        let now: Vec<OwnerView> =
            owners.into_iter().map(|seen| seen.view).chain(misfits.into_iter().map(|(view, _)| view)).collect();
        let before = self.all().filter(|view| now.iter().all(|other| other.uid != view.uid));
        Ok(now.iter().chain(before).map(|view| Owner::of(view, &self.settings)).collect())
    }
    fn say<R: Row>(&self, rows: &[R]) -> Result<(), Failure> {
        say(&render(rows, self.output)?);
        Ok(())
    }

    /// Ends `plan`.
    pub fn end_plan(&self, steps: &[Step]) -> Result<ExitCode, Failure> {
        let misfits = self.misfits.iter().map(|(view, why)| Step::blocked(&full_name(view), &does_not_fit(why)));
        let steps: Vec<Step> = misfits.chain(steps.iter().cloned()).collect();
        self.say(&steps)?;
        Ok(if steps.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(PLAN_NOT_EMPTY) })
    }
    /// Ends `audit`: judges what the cloud shows.
    pub async fn end_audit(&self, found: &[Found]) -> Result<ExitCode, Failure> {
        let findings = audit::judge(found, &self.known_since().await?, &self.settings.installation);
        self.say(&findings)?;
        let orphan = |finding: &Finding| finding.verdict.is_orphan();
        Ok(if findings.iter().any(orphan) { ExitCode::from(ORPHANS_FOUND) } else { ExitCode::SUCCESS })
    }
    /// Ends `doctor`.
    pub fn end_doctor(&self, checks: &[Check]) -> Result<ExitCode, Failure> {
        self.say(checks)?;
        let bad = checks.iter().any(|check| check.health == Health::Bad);
        Ok(if bad { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
    }

    /// `takeover`: asks owners that came from the installation `from` to be taken over.
    pub async fn takeover(&self, from: &str, name: Option<&str>, dry_run: bool) -> Result<ExitCode, Failure> {
        let views = self.views(name);
        let orders = if dry_run {
            takeover::orders(&views, &self.settings, from)
        } else {
            takeover::ask(&self.api(), &views, &self.settings, from).await
        };
        self.say(&orders)?;
        let failed = orders.iter().any(|order| order.failed);
        Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
    }

    /// `release`: lets owners go; what they owned stays and is listed.
    pub async fn release(&self, name: Option<&str>, dry_run: bool) -> Result<ExitCode, Failure> {
        let views = self.views(name);
        if views.is_empty() {
            return Err("no such owner".into());
        }
        let (mut all, mut failed) = (Vec::new(), false);
        for view in &views {
            match self.release_one(view, dry_run).await {
                Ok(survivors) => all.extend(survivors),
                Err(why) => {
                    failed = true;
                    tracing::error!(owner = full_name(view), %why, "not released");
                }
            }
        }
        self.say(&all)?;
        Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
    }
    async fn release_one(&self, view: &OwnerView, dry_run: bool) -> Result<Vec<release::Survivor>, Failure> {
        let (survivors, patch) = release::release(view, &self.settings)?;
        if dry_run {
            return Ok(survivors);
        }
        // The receipt first: nothing may be forgotten before it is written down.
        let receipt = release::receipt(view, &self.settings, &survivors, &self.namespace, self.clock.wall())?;
        let receipts: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        match receipts.create(&PostParams::default(), &receipt).await {
            Ok(_) => {}
            // Of a release that did not get through; what it lists may have changed since.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let name = receipt.metadata.name.as_deref().unwrap_or_default();
                receipts.replace(name, &PostParams::default(), &receipt).await?;
            }
            Err(why) => return Err(why.into()),
        }
        match self.api().patch(view, &patch).await {
            Patched::Stored(_) | Patched::Gone => Ok(survivors),
            Patched::Conflict => Err("changed meanwhile, run again".into()),
            Patched::Refused(why) | Patched::Unknown(why) => Err(why.into()),
        }
    }
}

/// An audit needs all owners.
pub fn refuse_filters(filter: &Filter) -> Result<(), Failure> {
    if *filter == Filter::default() {
        return Ok(());
    }
    Err("an audit of some owners would call the things of all others orphans: run it without filters".into())
}

fn does_not_fit(why: &str) -> String {
    format!("{}: the object does not fit its type: {why}", reason::INVALID_OBJECT)
}

/// Those that fit their type, and those that do not.
type Listed<K> = (Vec<Seen<K>>, Vec<(OwnerView, String)>);

async fn list<K>(client: &Client, filter: &Filter) -> Result<Listed<K>, Failure>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let resource = ApiResource::erase::<K>(&());
    let api: Api<Arrived> = match &filter.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let mut params = ListParams::default().limit(500);
    params.label_selector = filter.selector();
    let (mut owners, mut misfits) = (Vec::new(), Vec::new());
    loop {
        let page = api.list(&params).await?;
        for object in &page.items {
            let kept = Kept::new(object, Trigger::default());
            let (view, status) = kept.view();
            match kept.decode() {
                Ok(object) => owners.push(Seen { object, view, status }),
                Err(why) => misfits.push((view, why.to_string())),
            }
        }
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok((owners, misfits));
        }
    }
}
