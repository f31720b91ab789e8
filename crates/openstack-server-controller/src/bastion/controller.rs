//! Clusters in the process: what the runtime calls.
use super::reconcile::{Reconciler, Subject};
use crate::api::OpenStackCluster;
use crate::controller::{hold, say_invalid};
use crate::keeper::Keeper;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::owner::OwnerView;
use common::process::run::Desk;
use common::runtime::next::Next;
use common::runtime::runner;
use serde_json::Value;
use std::sync::Arc;

/// Serves clusters.
pub struct Clusters {
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
impl runner::Reconciler for Clusters {
    type Object = OpenStackCluster;

    async fn reconcile(&self, object: &OpenStackCluster, view: &OwnerView, status: &Value) -> Next {
        let paused = self.desk.pauses.reason(view);
        hold(&self.keeper, view, &object.spec.identity_ref).await;
        let visit = self.reconciler.visit(Subject { view, spec: &object.spec, status }, paused, &*self.desk.api).await;
        self.desk.tell(view, &visit.report);
        Next::after(&visit.report, &visit.written)
    }
    async fn invalid(&self, view: &OwnerView, status: &Value, why: &str) -> Next {
        say_invalid(&self.desk, super::CONTROLLER, &self.clock, view, status, why).await
    }
    fn gone(&self, uid: &str) {
        self.reconciler.engine().forget(uid);
        self.desk.forget(uid);
    }
}
