//! Machines in the process: what the runtime calls, and what wakes them.
use super::kube_nodes::{CAPI, CAPI_VERSIONS};
use super::reconcile::{Reconciler, Subject};
use crate::api::{OpenStackCluster, OpenStackMachine, OpenStackServer};
use crate::controller::{hold, say_invalid};
use crate::keeper::Keeper;
use crate::kube_inputs::resource;
use crate::watching::Watching;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::owner::OwnerView;
use common::names::CLUSTER_NAME;
use common::process::run::Desk;
use common::runtime::next::Next;
use common::runtime::object::{Arrived, Key};
use common::runtime::runner::{self, Handle};
use common::runtime::watch::News;
use kube::api::ApiResource;
use serde_json::Value;
use std::sync::Arc;

/// Serves machines.
pub struct Machines {
    /// The visits.
    pub reconciler: Reconciler,
    /// Who holds on to credentials.
    pub keeper: Arc<Keeper>,
    /// The API server.
    pub desk: Desk,
    /// Time.
    pub clock: SharedClock,
}

#[async_trait]
impl runner::Reconciler for Machines {
    type Object = OpenStackMachine;

    async fn reconcile(&self, object: &OpenStackMachine, view: &OwnerView, status: &Value) -> Next {
        let paused = self.desk.pauses.reason(view);
        if let Some(identity) = &object.spec.identity_ref {
            hold(&self.keeper, view, identity).await;
        }
        let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
        let subject = Subject { view, owners, spec: &object.spec, status };
        let visit = Box::pin(self.reconciler.visit(subject, paused, &*self.desk.api)).await;
        self.desk.tell(view, &visit.report);
        Next::after(&visit.report, &visit.written)
    }
    async fn invalid(&self, view: &OwnerView, status: &Value, why: &str) -> Next {
        say_invalid(&self.desk, super::CONTROLLER, &self.clock, view, status, why).await
    }
    fn gone(&self, uid: &str) {
        self.reconciler.engine.forget(uid);
        self.desk.forget(uid);
    }
}

/// Wakes machines when their server, their Machine or their cluster changes.
pub async fn follow(watching: &Watching, machines: &Handle) {
    let of_server = |news: &News| wake_owner(news, super::KIND, machines);
    let of_machine = |news: &News| {
        if let News::Changed(arrived) | News::Gone(arrived) = news
            && let Some(name) = arrived.value["spec"]["infrastructureRef"]["name"].as_str()
        {
            machines.enqueue(&Key::new(&arrived.key().namespace, name));
        }
    };
    let of_cluster = |news: &News| {
        if let News::Changed(arrived) | News::Gone(arrived) = news {
            let key = arrived.key();
            let named = arrived.value["metadata"]["labels"][CLUSTER_NAME].as_str().unwrap_or(&key.name).to_owned();
            machines.enqueue_where(|owner, kept| {
                owner.namespace == key.namespace && kept.cluster.as_deref() == Some(named.as_str())
            });
        }
    };
    let machine = resource((CAPI, CAPI_VERSIONS[0]), "Machine");
    tokio::join!(
        watching.every(ApiResource::erase::<OpenStackServer>(&()), of_server),
        watching.every(ApiResource::erase::<OpenStackCluster>(&()), of_cluster),
        watching.optional(machine, &CAPI_VERSIONS, of_machine),
    );
}
/// Wakes the owner of an object, if it is of this kind.
pub(crate) fn wake_owner(news: &News, kind: &str, owners: &Handle) {
    if let News::Changed(arrived) | News::Gone(arrived) = news {
        let wake = |arrived: &Arrived| {
            let references = arrived.value["metadata"]["ownerReferences"].as_array()?;
            let owner = references.iter().find(|it| it["kind"] == kind)?["name"].as_str()?;
            owners.enqueue(&Key::new(&arrived.key().namespace, owner));
            Some(())
        };
        wake(arrived);
    }
}
