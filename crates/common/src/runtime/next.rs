//! What comes after a pass.
use crate::engine::estate::Fault;
use crate::engine::report::{Progress, Report};
use std::time::Duration;

/// When a stale view is looked at again, if no newer one arrives by itself.
const AFTER_STALE: Duration = Duration::from_secs(1);

/// What comes after a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes, or the resync.
    Done,
    /// Look again. Not an error.
    Again(Duration),
    /// It will pass: backoff by the number of failures in a row.
    Retry(String),
    /// Told to slow down.
    RetryAfter(String, Duration),
    /// Nothing more until somebody changes something, or the resync.
    Stuck(String),
}
impl Next {
    /// The label `result` of `controller_runtime_reconcile_total`.
    pub fn result(&self) -> &'static str {
        match self {
            Next::Done => "success",
            Next::Again(_) => "requeue_after",
            Next::Retry(_) | Next::RetryAfter(..) | Next::Stuck(_) => "error",
        }
    }
}
impl From<&Report> for Next {
    fn from(report: &Report) -> Next {
        match &report.progress {
            // A report that waits for a person is no failure of this process: Stalled says it to people.
            Progress::Done | Progress::Gone | Progress::Blocked { .. } => Next::Done,
            Progress::Waiting { again, .. } => Next::Again(*again),
            Progress::Stale(_) => Next::Again(AFTER_STALE),
            Progress::Failed(Fault::Transient(why)) => Next::Retry(why.clone()),
            Progress::Failed(Fault::Throttled(after)) => Next::RetryAfter("throttled".into(), *after),
            // Permissions and quotas come back without any change of the object.
            Progress::Failed(fault @ (Fault::Denied(_) | Fault::Terminal { .. })) => Next::Stuck(fault.to_string()),
        }
    }
}
