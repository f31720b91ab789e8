//! Clusters in the process: what the runtime calls.
use super::reconcile::{Reconciler, Subject};
use crate::api::OpenStackCluster;
use crate::controller::after;
use crate::reconcile::unserved;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::engine::owner::OwnerView;
use common::engine::report::Progress;
use common::names::reason;
use common::process::run::Desk;
use common::runtime::next::Next;
use common::runtime::runner;
use common::status::{Wish, write};
use serde_json::{Value, json};

/// Serves clusters.
pub struct Clusters {
    /// The visits.
    pub reconciler: Reconciler,
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
        let visit = self.reconciler.visit(Subject { view, spec: &object.spec, status }, paused, &*self.desk.api).await;
        self.desk.tell(view, &visit.report);
        after(&visit.report, &visit.written)
    }
    async fn invalid(&self, view: &OwnerView, status: &Value, why: &str) -> Next {
        let progress = Progress::Blocked { reason: reason::INVALID_OBJECT, message: why.to_owned() };
        let report = unserved(view, progress);
        let fields = json!({});
        let wish = Wish { current: Some(status), ..Wish::new(super::CONTROLLER, view.generation, &fields) };
        let written = write(&*self.desk.api, &report, &wish, self.clock.wall()).await;
        after(&report, &written)
    }
    fn gone(&self, uid: &str) {
        self.reconciler.engine().forget(uid);
        self.desk.forget(uid);
    }
}
