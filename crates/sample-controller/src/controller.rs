//! The controller in its process: what the runtime calls, and what is told to people after each visit.
use crate::api::SampleOwner;
use crate::args::SampleArgs;
use crate::inventory::found;
use crate::reconcile::{Reconciler, Subject};
use crate::session::Account;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::owner::OwnerView;
use common::engine::report::Progress;
use common::engine::rules::Rulebook;
use common::engine::{Engine, Settings};
use common::filter::Filter;
use common::names::reason;
use common::operator::{Owner, audit};
use common::process::health::Readiness;
use common::process::orphans::{self, Orphans};
use common::process::run::{Context, Desk, Failure};
use common::runtime::next::Next;
use common::runtime::object::Kept;
use common::runtime::runner::{self, Handle};
use common::status::{Wish, write};
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
    };
    let runner = context.runner(&desk, Arc::new(controller));
    let owners = runner.handle();
    let settings = args.settings(&context.installation);
    let beside = async {
        try_credentials(&account, &context.clock, &context.readiness).await;
        count_orphans(&context, &settings, &account, &owners).await;
    };
    let ((), ()) = tokio::join!(context.drive(&desk, runner), async {
        tokio::select! {
            () = beside => {}
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

/// Feeds the gauge `orphans`, where every owner is in sight: to a filtered process, others' things would look like orphans.
async fn count_orphans(context: &Context, settings: &Settings, account: &Account, owners: &Handle) {
    if context.filter != Filter::default() {
        return;
    }
    let mut orphans = Orphans::default();
    loop {
        context.clock.sleep_until(context.clock.boot() + orphans::INTERVAL).await;
        // The cloud before the owners: whatever it shows had its owner then.
        let found = match account.session().await {
            Ok(session) => found(&session, context.clock.boot()).await,
            Err(fault) => Err(fault),
        };
        match found {
            Ok(found) => {
                let living: Vec<Owner> =
                    owners.read(|cache| cache.iter().map(|(_, kept)| living(kept, settings)).collect());
                orphans.look(&audit::judge(&found, &living, &settings.installation), &context.metrics);
            }
            Err(fault) => warn!(why = %fault, "orphans were not counted"),
        }
    }
}
/// Enough to know an owner's things by. Ledgers of all owners at once would take more memory than everything else.
fn living(kept: &Kept, settings: &Settings) -> Owner {
    Owner { ledger: None, ..Owner::of(&kept.view().0, settings) }
}

struct Controller {
    reconciler: Reconciler,
    desk: Desk,
    clock: SharedClock,
}

#[async_trait]
impl runner::Reconciler for Controller {
    type Object = SampleOwner;

    async fn reconcile(&self, object: &SampleOwner, view: &OwnerView, status: &Value) -> Next {
        let paused = self.desk.pauses.reason(view);
        let subject = Subject { view, spec: &object.spec, status: Some(status) };
        let visit = self.reconciler.visit(subject, paused, &*self.desk.api).await;
        self.desk.tell(view, &visit.report);
        Next::after(&visit.report, &visit.written)
    }

    async fn invalid(&self, view: &OwnerView, status: &Value, why: &str) -> Next {
        let progress = Progress::Blocked { reason: reason::INVALID_OBJECT, message: why.to_owned() };
        let report = crate::reconcile::unserved(view, progress);
        let fields = json!({});
        let wish = Wish { current: Some(status), ..Wish::new(crate::names::CONTROLLER, view.generation, &fields) };
        let written = write(&*self.desk.api, &report, &wish, self.clock.wall()).await;
        self.desk.tell(view, &report);
        Next::after(&report, &written)
    }

    fn gone(&self, uid: &str) {
        self.reconciler.engine().forget(uid);
        self.desk.forget(uid);
    }
}
