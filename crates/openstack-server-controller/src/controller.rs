//! The controller in its process: what the runtime calls, and what is told to people after each visit.
use crate::api::{IdentityType, OpenStackCluster, OpenStackServer};
use crate::args::{OpenStackArgs, Part};
use crate::bastion;
use crate::follow::Follow;
use crate::keeper::Keeper;
use crate::kube_inputs::KubeInputs;
use crate::names::{MANAGER, PEERS};
use crate::reconcile::{Reconciler, Subject, unserved};
use crate::servers::KubeServers;
use crate::session::Sessions;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::owner::OwnerView;
use common::engine::report::{Progress, Report};
use common::engine::rules::Rulebook;
use common::engine::{Engine, Settings};
use common::names::reason;
use common::peer::Guard;
use common::process::run::{Context, Desk, Failure};
use common::runtime::next::Next;
use common::runtime::runner;
use common::status::{Wish, Written, write};
use kube::api::ApiResource;
use serde_json::{Value, json};
use std::sync::Arc;

/// Serves the parts that were asked for until the process is told to stop.
pub async fn serve(context: Context, args: OpenStackArgs) -> Result<(), Failure> {
    let inputs = Arc::new(KubeInputs::new(context.client.clone(), context.clock.clone()));
    let sessions = Arc::new(args.sessions(&context.clock, Some(context.metrics.clone())));
    let servers = serve_servers(&context, &args, &sessions, &inputs);
    let clusters = serve_clusters(&context, &args, &sessions, &inputs);
    tokio::select! {
        () = async { tokio::join!(servers, clusters); } => {}
        () = context.stop.cancelled(), if args.parts.is_empty() => {}
    }
    Ok(())
}

/// OpenStackServers.
async fn serve_servers(context: &Context, args: &OpenStackArgs, sessions: &Arc<Sessions>, inputs: &Arc<KubeInputs>) {
    if !args.serves(Part::Server) {
        return;
    }
    let engine = Arc::new(Engine::new(
        args.settings(&context.installation),
        context.clock.clone(),
        context.random.clone(),
        context.fence.clone(),
        Rulebook::production(),
    ));
    let desk = context.desk(ApiResource::erase::<OpenStackServer>(&()));
    let reconciler = Reconciler::new(
        engine,
        sessions.clone(),
        inputs.clone(),
        context.fence.clone(),
        context.clock.clone(),
        args.policy(),
    );
    let keeper = Arc::new(Keeper::new(context.client.clone()));
    let servers = Servers { reconciler, keeper: keeper.clone(), desk: desk.clone(), clock: context.clock.clone() };
    let runner = context.runner(&desk, Arc::new(servers));
    let follow = Follow {
        client: context.client.clone(),
        namespace: context.filter.namespace.clone(),
        clock: context.clock.clone(),
        inputs: inputs.clone(),
        keeper,
        servers: runner.handle(),
    };
    tokio::select! {
        () = context.drive(&desk, runner) => {}
        () = follow.run() => {}
    }
}

/// Bastions of OpenStackClusters.
async fn serve_clusters(context: &Context, args: &OpenStackArgs, sessions: &Arc<Sessions>, inputs: &Arc<KubeInputs>) {
    if !args.serves(Part::Bastion) {
        return;
    }
    // A controller of its own: its ledger, finalizer and place are others than those of servers.
    let mut context = context.clone();
    context.identity.controller = bastion::CONTROLLER;
    let peers = Guard { peers: PEERS, companion: false, managed_by: Some(MANAGER) };
    let settings = Settings {
        controller: bastion::CONTROLLER,
        kind: bastion::KIND.to_owned(),
        peers,
        ..args.settings(&context.installation)
    };
    let (clock, random, fence) = (context.clock.clone(), context.random.clone(), context.fence.clone());
    let engine = Arc::new(Engine::new(settings, clock.clone(), random, fence, Rulebook::production()));
    let desk = context.desk(ApiResource::erase::<OpenStackCluster>(&()));
    let servers = Arc::new(KubeServers(context.client.clone()));
    let adopt_all = args.policy().adopt_all;
    let reconciler = bastion::reconcile::Reconciler::new(
        engine,
        sessions.clone(),
        inputs.clone(),
        servers,
        clock.clone(),
        adopt_all,
    );
    let clusters = bastion::controller::Clusters { reconciler, desk: desk.clone(), clock };
    context.serve(&desk, Arc::new(clusters)).await;
}

struct Servers {
    reconciler: Reconciler,
    keeper: Arc<Keeper>,
    desk: Desk,
    clock: SharedClock,
}

#[async_trait]
impl runner::Reconciler for Servers {
    type Object = OpenStackServer;

    async fn reconcile(&self, object: &OpenStackServer, view: &OwnerView, status: &Value) -> Next {
        let paused = self.desk.pauses.reason(view);
        let identity = &object.spec.identity_ref;
        // From the moment that something can be made until it is gone.
        if !view.deleting && identity.type_ == IdentityType::Secret && !view.finalizers.is_empty() {
            self.keeper.hold(&view.namespace, &identity.name).await;
        }
        let subject = Subject { view, spec: &object.spec, status: Some(status) };
        let visit = self.reconciler.visit(subject, paused, &*self.desk.api).await;
        self.desk.tell(view, &visit.report);
        after(&visit.report, &visit.written)
    }

    async fn invalid(&self, view: &OwnerView, status: &Value, why: &str) -> Next {
        let progress = Progress::Blocked { reason: reason::INVALID_OBJECT, message: why.to_owned() };
        let report = unserved(view, progress);
        let fields = json!({});
        let wish = Wish { current: Some(status), ..Wish::new(crate::names::CONTROLLER, view.generation, &fields) };
        let written = write(&*self.desk.api, &report, &wish, self.clock.wall()).await;
        after(&report, &written)
    }

    fn gone(&self, uid: &str) {
        self.reconciler.forget(uid);
        self.desk.forget(uid);
    }
}

/// A status that could not be written is written by the next visit, soon.
pub(crate) fn after(report: &Report, written: &Written) -> Next {
    match (Next::from(report), written) {
        (Next::Done, Written::Later(why)) => Next::Retry(why.clone()),
        (next, _) => next,
    }
}
