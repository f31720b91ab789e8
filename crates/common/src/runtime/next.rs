//! What comes after a pass.
use crate::engine::estate::Fault;
use crate::engine::report::{Progress, Report};
use crate::names::reason;
use crate::status::Written;
use std::time::Duration;

/// When a stale view is looked at again, if no newer one arrives by itself.
const AFTER_STALE: Duration = Duration::from_secs(1);

/// When a blocked owner is looked at again.
const AFTER_BLOCKED: Duration = Duration::from_mins(2);

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
impl Next {
    /// After a pass and the write of its status. What could not be written is written by the next visit, with a growing wait,
    /// also where the pass itself would go on at once: it goes on from what status says, and would only come to the same again.
    pub fn after(report: &Report, written: &Written) -> Next {
        match (Next::from(report), written) {
            (Next::Done | Next::Again(_), Written::Later(why)) => Next::Retry(why.clone()),
            (next, _) => next,
        }
    }
}
impl From<&Report> for Next {
    fn from(report: &Report) -> Next {
        match &report.progress {
            Progress::Done | Progress::Gone | Progress::Blocked { reason: reason::PAUSED, .. } => Next::Done,
            // What waits for a person is no failure of this process: Stalled says it to people. They may mend it in the
            // cloud, where no event tells of it.
            Progress::Blocked { .. } => Next::Again(AFTER_BLOCKED),
            Progress::Waiting { again, .. } => Next::Again(*again),
            Progress::Stale(_) => Next::Again(AFTER_STALE),
            Progress::Failed(Fault::Transient(why)) => Next::Retry(why.clone()),
            Progress::Failed(Fault::Throttled(after)) => Next::RetryAfter("throttled".into(), *after),
            // Permissions and quotas come back without any change of the object.
            Progress::Failed(fault @ (Fault::Denied(_) | Fault::Terminal { .. })) => Next::Stuck(fault.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(progress: Progress) -> Report {
        let ids = crate::engine::estate::Ids::new();
        Report { progress, view: None, standing: vec![], notes: vec![], kept: vec![], mirror: None, ids }
    }
    fn next(progress: Progress) -> Next {
        Next::from(&report(progress))
    }

    #[test]
    fn a_status_that_is_refused_is_tried_again_with_a_growing_wait() {
        let after = |progress, written| Next::after(&report(progress), &written);
        let stores = || Progress::Waiting { reason: "r", message: String::new(), again: Duration::ZERO };
        let refused = || Written::Later("403".into());
        assert_eq!(after(stores(), refused()), Next::Retry("403".into()));
        assert_eq!(after(Progress::Done, refused()), Next::Retry("403".into()));
        assert_eq!(after(stores(), Written::Unchanged), Next::Again(Duration::ZERO));
    }

    #[test]
    fn only_faults_are_errors() {
        let after = Duration::from_secs(7);
        let blocked = |reason| Progress::Blocked { reason, message: String::new() };
        assert_eq!(next(Progress::Done), Next::Done);
        assert_eq!(
            next(Progress::Waiting { reason: "Building", message: String::new(), again: after }),
            Next::Again(after)
        );
        assert_eq!(next(blocked(reason::PAUSED)), Next::Done);
        assert_eq!(next(blocked(reason::EXISTS_UNOWNED)).result(), "requeue_after");
        assert_eq!(next(Progress::Failed(Fault::Throttled(after))), Next::RetryAfter("throttled".into(), after));
        for fault in [Fault::Transient("x".into()), Fault::Denied("x".into()), Fault::Throttled(after)] {
            assert_eq!(next(Progress::Failed(fault)).result(), "error");
        }
    }
}
