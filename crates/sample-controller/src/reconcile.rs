//! One visit of one owner, as a table of contents. No kube client and no socket in it: production and the simulator call
//! the same function.
use crate::api::SampleOwnerSpec;
use crate::estate::SampleEstate;
use crate::names::{CONTROLLER, readable};
use crate::plan::Plan;
use crate::session::Account;
use crate::status::fields;
use common::clock::SharedClock;
use common::concern::Concern;
use common::engine::Engine;
use common::engine::owner::{OwnerApi, OwnerView};
use common::engine::report::{Progress, Report};
use common::names::reason;
use common::status::{Wish, Written, write};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One version of an owner.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its metadata and conditions.
    pub view: &'a OwnerView,
    /// What it wants.
    pub spec: &'a SampleOwnerSpec,
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
    account: Arc<Account>,
    clock: SharedClock,
}
impl Reconciler {
    /// One per process.
    pub fn new(engine: Arc<Engine>, account: Arc<Account>, clock: SharedClock) -> Self {
        Reconciler { engine, account, clock }
    }
    /// The engine, for what is not a visit.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// One pass of the engine, then status. `paused` says why nothing may be written to the cloud.
    pub async fn visit(&self, subject: Subject<'_>, paused: Option<String>, api: &dyn OwnerApi) -> Visit {
        let report = self.pass(subject, paused.clone(), api).await;
        let fields = fields(&report);
        let wish = Wish {
            current: subject.status,
            paused: paused.as_deref(),
            ..Wish::new(CONTROLLER, subject.view.generation, &fields)
        };
        let written = write(api, &report, &wish, self.clock.wall()).await;
        Visit { report, written }
    }

    async fn pass(
        &self,
        Subject { view, spec, .. }: Subject<'_>,
        paused: Option<String>,
        api: &dyn OwnerApi,
    ) -> Report {
        let plan = Plan::of(&view.namespace, &view.name, spec);
        // What cannot be read can still be taken down: things are known by their marks and by the ledger.
        if let Some(message) = plan.problem().filter(|_| !view.deleting) {
            return unserved(view, Progress::Blocked { reason: reason::INVALID_OBJECT, message });
        }
        let session = match self.account.session().await {
            Ok(session) => session,
            Err(fault) => return unserved(view, Progress::Failed(fault)),
        };
        let concern = Concern::of(view, CONTROLLER, self.engine.place_of(view));
        let estate = SampleEstate::new(session, plan, concern, readable(&view.namespace, &view.name));
        self.engine.pass(view, paused, api, &estate).await
    }
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
