//! The controller in its process: what the runtime calls, and what is told to people after each visit.
use crate::api::SampleOwner;
use crate::args::SampleArgs;
use crate::reconcile::{Reconciler, Subject};
use crate::session::Account;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::Engine;
use common::engine::owner::OwnerView;
use common::engine::report::{Progress, Report};
use common::engine::rules::Rulebook;
use common::names::reason;
use common::process::health::Readiness;
use common::process::metrics::Metrics;
use common::process::run::{Context, Desk, Failure};
use common::runtime::next::Next;
use common::runtime::runner;
use common::status::{Wish, Written, write};
use kube::api::ApiResource;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

const CLOUD: &str = "cloud credentials";
/// Between two tries of credentials that were not accepted.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Serves SampleOwners until the process is told to stop.
pub async fn serve(context: Context, args: SampleArgs) -> Result<(), Failure> {
    let account = Arc::new(args.account(&context.clock, Some(context.metrics.clone()))?);
    let engine = Arc::new(Engine::new(
        args.settings(&context.installation),
        context.clock.clone(),
        context.random.clone(),
        context.fence.clone(),
        Rulebook::production(),
    ));
    let desk = context.desk(ApiResource::erase::<SampleOwner>(&()));
    let controller = Controller {
        reconciler: Reconciler::new(engine, account.clone(), context.clock.clone()),
        desk: desk.clone(),
        clock: context.clock.clone(),
        metrics: context.metrics.clone(),
    };
    let ((), ()) = tokio::join!(context.serve(&desk, Arc::new(controller)), async {
        tokio::select! {
            () = try_credentials(&account, &context.clock, &context.readiness) => {}
            () = context.stop.cancelled() => {}
        }
    });
    Ok(())
}

/// Not ready before the cloud has accepted the token once.
async fn try_credentials(account: &Account, clock: &SharedClock, readiness: &Readiness) {
    readiness.missing(CLOUD, "not tried yet");
    loop {
        let identity = match account.session().await {
            Ok(session) => session.identity().await,
            Err(fault) => Err(fault),
        };
        match identity {
            Ok(who) => {
                info!(account = who.account, region = who.region, principal = who.principal, "the cloud knows us");
                return readiness.present(CLOUD);
            }
            Err(fault) => {
                warn!(why = %fault, "the cloud does not let us in");
                readiness.missing(CLOUD, &fault.to_string());
            }
        }
        clock.sleep_until(clock.boot() + TRY_AGAIN).await;
    }
}

struct Controller {
    reconciler: Reconciler,
    desk: Desk,
    clock: SharedClock,
    metrics: Arc<Metrics>,
}

#[async_trait]
impl runner::Reconciler for Controller {
    type Object = SampleOwner;

    async fn reconcile(&self, object: &SampleOwner, view: &OwnerView, status: &Value) -> Next {
        let paused = self.desk.pauses.reason(view);
        let subject = Subject { view, spec: &object.spec, status: Some(status) };
        let visit = self.reconciler.visit(subject, paused, &*self.desk.api).await;
        self.tell(view, &visit.report);
        after(&visit.report, &visit.written)
    }

    async fn invalid(&self, view: &OwnerView, status: &Value, why: &str) -> Next {
        let progress = Progress::Blocked { reason: reason::INVALID_OBJECT, message: why.to_owned() };
        let report = crate::reconcile::unserved(view, progress);
        let fields = json!({});
        let wish = Wish { current: Some(status), ..Wish::new(crate::names::CONTROLLER, view.generation, &fields) };
        let written = write(&*self.desk.api, &report, &wish, self.clock.wall()).await;
        after(&report, &written)
    }

    fn gone(&self, uid: &str) {
        self.reconciler.engine().forget(uid);
    }
}

impl Controller {
    /// Events, and the one counter that is about ownership itself.
    fn tell(&self, view: &OwnerView, report: &Report) {
        self.desk.events.publish(report.view.as_ref().unwrap_or(view), &report.notes);
        if matches!(report.progress, Progress::Blocked { reason: reason::OWNERSHIP_CONFLICT, .. }) {
            self.metrics.conflicts.with_label_values(&[self.metrics.controller()]).inc();
        }
    }
}

/// A status that could not be written is written by the next visit, soon.
fn after(report: &Report, written: &Written) -> Next {
    match (Next::from(report), written) {
        (Next::Done, Written::Later(why)) => Next::Retry(why.clone()),
        (next, _) => next,
    }
}
