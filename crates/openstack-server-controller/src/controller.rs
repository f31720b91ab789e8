//! The controller in its process: which parts are served, what they share, and what wakes them.
use crate::api::{IdentityRef, IdentityType, OpenStackCluster, OpenStackMachine, OpenStackServer};
use crate::args::{OpenStackArgs, Part};
use crate::follow::Follow;
use crate::keeper::Keeper;
use crate::kube_inputs::KubeInputs;
use crate::machine::controller::{Machines, wake_owner};
use crate::machine::kube_nodes::KubeNodes;
use crate::names::MANAGER;
use crate::reconcile::{Reconciler, Subject, unserved};
use crate::secrets::{self, Users};
use crate::servers::KubeServers;
use crate::session::Sessions;
use crate::watching::Watching;
use crate::{bastion, machine};
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::owner::OwnerView;
use common::engine::report::Progress;
use common::engine::rules::Rulebook;
use common::engine::{Engine, Settings};
use common::names::reason;
use common::peer::Guard;
use common::process::run::{Context, Desk, Failure};
use common::runtime::next::Next;
use common::runtime::runner::{self, Handle};
use common::runtime::watch::News;
use common::status::{Wish, write};
use futures::future::BoxFuture;
use kube::api::ApiResource;
use serde_json::{Value, json};
use std::sync::Arc;

/// What all parts share.
struct House {
    context: Context,
    args: OpenStackArgs,
    inputs: Arc<KubeInputs>,
    sessions: Arc<Sessions>,
    keeper: Arc<Keeper>,
    watching: Watching,
}
/// A part at work: its objects, as users of Secrets, and what is to be driven.
type Served = (Users, BoxFuture<'static, ()>);
/// Puts a part to work.
type Serve = fn(&House) -> Served;

/// Serves the parts that were asked for until the process is told to stop.
pub async fn serve(context: Context, args: OpenStackArgs) -> Result<(), Failure> {
    let (client, clock) = (context.client.clone(), context.clock.clone());
    let house = House {
        inputs: Arc::new(KubeInputs::new(client.clone(), clock.clone())),
        sessions: Arc::new(args.sessions(&clock, Some(context.metrics.clone()))),
        keeper: Arc::new(Keeper::new(client.clone())),
        watching: Watching { client, namespace: context.filter.namespace.clone(), clock },
        context,
        args,
    };
    let parts: [(Part, Serve); 3] =
        [(Part::Server, House::servers), (Part::Bastion, House::clusters), (Part::Machine, House::machines)];
    let served = parts.into_iter().filter(|(part, _)| house.args.serves(*part)).map(|(_, serve)| serve(&house));
    let (users, driven): (Vec<Users>, Vec<_>) = served.unzip();
    let stop = house.context.stop.clone();
    tokio::select! {
        () = async { drop(futures::future::join_all(driven).await) } => {}
        () = secrets::follow(&house.watching, &house.inputs, &house.keeper, &users) => {}
        () = stop.cancelled(), if house.args.parts.is_empty() => {}
    }
    Ok(())
}

impl House {
    /// The same process under another name: ledger, finalizer and place of each part are its own.
    fn of(&self, controller: &'static str) -> Context {
        let mut context = self.context.clone();
        context.identity.controller = controller;
        context
    }
    fn engine(&self, controller: &'static str, kind: &str, peers: Guard) -> Arc<Engine> {
        let context = &self.context;
        let settings =
            Settings { controller, kind: kind.to_owned(), peers, ..self.args.settings(&context.installation) };
        let (clock, random, fence) = (context.clock.clone(), context.random.clone(), context.fence.clone());
        Arc::new(Engine::new(settings, clock, random, fence, Rulebook::production()))
    }

    /// OpenStackServers.
    fn servers(&self) -> Served {
        let context = self.context.clone();
        let settings = self.args.settings(&context.installation);
        let engine = self.engine(settings.controller, &settings.kind, settings.peers);
        let desk = context.desk(ApiResource::erase::<OpenStackServer>(&()));
        let reconciler = Reconciler::new(engine, self.sessions.clone(), self.inputs.clone(), context.clock.clone());
        let (keeper, clock) = (self.keeper.clone(), context.clock.clone());
        let runner = context.runner(&desk, Arc::new(Servers { reconciler, keeper, desk: desk.clone(), clock }));
        let follow = Follow { watching: self.watching.clone(), servers: runner.handle() };
        let users = Users::of::<OpenStackServer>(&runner.handle());
        let driven = async move {
            tokio::select! {
                () = context.drive(&desk, runner) => {}
                () = follow.run() => {}
            }
        };
        (users, Box::pin(driven))
    }

    /// How clusters and machines live with those of the Go provider.
    fn parents(&self) -> Guard {
        Guard { managed_by: Some(MANAGER), ..self.args.guard() }
    }

    /// Bastions of OpenStackClusters.
    fn clusters(&self) -> Served {
        let context = self.of(bastion::CONTROLLER);
        let desk = context.desk(ApiResource::erase::<OpenStackCluster>(&()));
        let reconciler = bastion::reconcile::Reconciler::new(
            self.engine(bastion::CONTROLLER, bastion::KIND, self.parents()),
            self.sessions.clone(),
            self.inputs.clone(),
            Arc::new(KubeServers(context.client.clone())),
            context.clock.clone(),
        );
        let (keeper, clock) = (self.keeper.clone(), context.clock.clone());
        let clusters = bastion::controller::Clusters { reconciler, keeper, desk: desk.clone(), clock };
        let runner = context.runner(&desk, Arc::new(clusters));
        let (handle, watching) = (runner.handle(), self.watching.clone());
        let users = Users::of::<OpenStackCluster>(&handle);
        let driven = async move {
            tokio::select! {
                () = context.drive(&desk, runner) => {}
                () = follow_servers(&watching, bastion::KIND, &handle) => {}
            }
        };
        (users, Box::pin(driven))
    }

    /// OpenStackMachines.
    fn machines(&self) -> Served {
        let context = self.of(machine::CONTROLLER);
        let desk = context.desk(ApiResource::erase::<OpenStackMachine>(&()));
        let reconciler = machine::reconcile::Reconciler {
            engine: self.engine(machine::CONTROLLER, machine::KIND, self.parents()),
            sessions: self.sessions.clone(),
            inputs: self.inputs.clone(),
            servers: Arc::new(KubeServers(context.client.clone())),
            nodes: Arc::new(KubeNodes::new(context.client.clone())),
            clock: context.clock.clone(),
        };
        let (keeper, clock) = (self.keeper.clone(), context.clock.clone());
        let runner = context.runner(&desk, Arc::new(Machines { reconciler, keeper, desk: desk.clone(), clock }));
        let (handle, watching) = (runner.handle(), self.watching.clone());
        let users = Users::of::<OpenStackMachine>(&handle);
        let driven = async move {
            tokio::select! {
                () = context.drive(&desk, runner) => {}
                () = machine::controller::follow(&watching, &handle) => {}
            }
        };
        (users, Box::pin(driven))
    }
}
/// Wakes the owners of servers, if they are of this kind.
async fn follow_servers(watching: &Watching, kind: &str, owners: &Handle) {
    let hear = |news: &News| wake_owner(news, kind, owners);
    watching.every(ApiResource::erase::<OpenStackServer>(&()), hear).await;
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
        hold(&self.keeper, view, &object.spec.identity_ref).await;
        let subject = Subject { view, spec: &object.spec, status: Some(status) };
        let visit = self.reconciler.visit(subject, paused, &*self.desk.api).await;
        self.desk.tell(view, &visit.report);
        Next::after(&visit.report, &visit.written)
    }
    async fn invalid(&self, view: &OwnerView, status: &Value, why: &str) -> Next {
        say_invalid(&self.desk, crate::names::CONTROLLER, &self.clock, view, status, why).await
    }
    fn gone(&self, uid: &str) {
        self.reconciler.forget(uid);
        self.desk.forget(uid);
    }
}

/// Holds credentials from the moment that something can be made until the object is on its way out.
pub(crate) async fn hold(keeper: &Keeper, view: &OwnerView, identity: &IdentityRef) {
    if !view.deleting && identity.type_ == IdentityType::Secret && !view.finalizers.is_empty() {
        keeper.hold(&view.namespace, &identity.name).await;
    }
}
/// Says that an object does not fit its own type.
pub(crate) async fn say_invalid(
    desk: &Desk,
    controller: &str,
    clock: &SharedClock,
    view: &OwnerView,
    status: &Value,
    why: &str,
) -> Next {
    let progress = Progress::Blocked { reason: reason::INVALID_OBJECT, message: why.to_owned() };
    let report = unserved(view, progress);
    let fields = json!({});
    let wish = Wish { current: Some(status), ..Wish::new(controller, view.generation, &fields) };
    let written = write(&*desk.api, &report, &wish, clock.wall()).await;
    desk.tell(view, &report);
    Next::after(&report, &written)
}
