//! How a bastion stands: its condition, and what status shows of it. Pure.
use super::Step;
use crate::api::{BastionStatus, OpenStackServer};
use crate::names::reason;
use common::conditions::Tri;
use common::engine::report::Progress;
use common::names::reason as shared;
use serde_json::{Value, json};

/// How the bastion stands.
pub(super) struct Bastion {
    pub(super) status: Tri,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) shown: Shown,
}

/// What status says of the bastion.
pub(super) enum Shown {
    /// What it said before.
    AsBefore,
    /// Nothing any more.
    Nothing,
    /// This.
    This(Box<BastionStatus>),
}
/// Where the bastion is reached.
pub(super) struct Addresses {
    /// In the network of the cluster.
    pub(super) inside: Option<String>,
    /// From outside.
    pub(super) floating: Option<String>,
}

/// With everything that is told here: what the bastion has no longer is taken away, what others wrote beside it stays.
pub(super) fn whole(bastion: &BastionStatus) -> Value {
    let mut told = json!({"id": null, "name": null, "sshKeyName": null, "state": null, "ip": null, "floatingIP": null});
    if let (Value::Object(told), Value::Object(has)) = (&mut told, json!(bastion)) {
        told.extend(has);
    }
    told
}
/// The reason of a condition for what keeps a pass from being done.
pub(super) fn reason_for(progress: &Progress) -> &'static str {
    progress.obstacle().map_or(reason::CLOUD_UNAVAILABLE, |(why, _)| why)
}
/// What keeps a pass from being done, if something does.
pub(super) fn trouble(progress: &Progress) -> Option<String> {
    match progress {
        Progress::Blocked { reason, message } => (*reason != shared::PAUSED).then(|| message.clone()),
        Progress::Failed(fault) => Some(fault.to_string()),
        Progress::Done | Progress::Waiting { .. } | Progress::Gone | Progress::Stale(_) => None,
    }
}
/// What the condition says, and what status shows.
pub(super) fn stand(step: &Step, server: Option<&OpenStackServer>, told: Addresses, progress: &Progress) -> Bastion {
    let not = |message: String| Bastion {
        status: Tri::False,
        reason: reason::INSTANCE_NOT_READY,
        message,
        shown: Shown::AsBefore,
    };
    let server = match (step, server) {
        // What is left of it may not go yet.
        (Step::Nothing, _) if let Some(why) = trouble(progress) => {
            return Bastion { reason: reason::FLOATING_IP_ERROR, shown: Shown::Nothing, ..not(why) };
        }
        (Step::Nothing, _) => {
            return Bastion { status: Tri::True, reason: "NotWanted", message: String::new(), shown: Shown::Nothing };
        }
        (Step::Use, Some(server)) => server,
        (Step::Create | Step::Use, _) => return not("the server is being made".into()),
        (Step::Delete(why), _) => {
            return Bastion { shown: Shown::Nothing, ..not(format!("the server is being deleted: {why}")) };
        }
        (Step::Wait(why), _) => return not(why.clone()),
        (Step::Refuse(why), _) => return Bastion { reason: reason::INSTANCE_STATE_ERROR, ..not(why.clone()) },
    };
    let status = server.status.clone().unwrap_or_default();
    let shown = BastionStatus {
        id: status.instance_id,
        name: server.metadata.name.clone(),
        ssh_key_name: Some(server.spec.ssh_key_name.clone()).filter(|it| !it.is_empty()),
        state: status.instance_state,
        ip: told.inside,
        floating_ip: told.floating,
        ..BastionStatus::default()
    };
    let shown = Shown::This(Box::new(shown));
    match progress {
        Progress::Done => Bastion { status: Tri::True, reason: reason::READY, message: String::new(), shown },
        Progress::Blocked { message, .. } => {
            Bastion { reason: reason::FLOATING_IP_ERROR, shown, ..not(message.clone()) }
        }
        Progress::Failed(fault) => Bastion { reason: reason::FLOATING_IP_ERROR, shown, ..not(fault.to_string()) },
        Progress::Waiting { message, .. } => Bastion { shown, ..not(message.clone()) },
        Progress::Gone | Progress::Stale(_) => Bastion { shown: Shown::AsBefore, ..not(String::new()) },
    }
}
