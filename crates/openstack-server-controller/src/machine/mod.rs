//! The machine: an OpenStackServer of its own with the defaults of its cluster, a member of the load balancer of the API server,
//! and what Cluster API wants to know of it.
pub mod controller;
pub mod estate;
pub mod kube_nodes;
pub mod nodes;
pub mod reconcile;

use crate::api::{NodeAddress, OpenStackClusterSpec, OpenStackMachineSpec, OpenStackServer};
use crate::derive::Defaults;
use crate::names::{FAILED, INSTANCE_READY, reason};
use crate::servers::{is_owned, said, was_ready};
use common::names::reason as shared;
use kube::ResourceExt;
use nodes::Node;
use std::collections::BTreeSet;

/// The controller of machines: in annotations, finalizer and place.
pub const CONTROLLER: &str = "openstack-machine";
/// The kind it serves.
pub const KIND: &str = "OpenStackMachine";
/// Port of an API server that nobody moved.
const API_PORT: i64 = 6443;

/// What is to be done about the server of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is none, and there shall be none.
    Nothing,
    /// Make it.
    Create,
    /// Remove it.
    Delete,
    /// Not now.
    Wait {
        /// For conditions.
        reason: String,
        /// For people.
        message: String,
    },
    /// It is of no use as it is, and nothing helps but a person.
    Refuse {
        /// For kstatus.
        stalled: &'static str,
        /// For conditions.
        reason: String,
        /// For people.
        message: String,
    },
    /// It is there.
    Use,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// UID of the machine.
    pub uid: &'a str,
    /// Name of its server.
    pub name: &'a str,
    /// It is on its way out.
    pub deleting: bool,
    /// It had an instance once.
    pub had_instance: bool,
}

/// Decides. A server is never compared with what would be asked for today: machines are replaced, not changed.
pub fn decide(asking: Asking<'_>, found: Option<&OpenStackServer>) -> Step {
    let ours = found.filter(|found| is_owned(found, asking.uid));
    if asking.deleting {
        return match ours {
            None => Step::Nothing,
            Some(found) if found.metadata.deletion_timestamp.is_some() => Step::Wait {
                reason: shared::DELETING.to_owned(),
                message: said(found, INSTANCE_READY).map_or("", |it| it.2).to_owned(),
            },
            Some(_) => Step::Delete,
        };
    }
    let refuse = |stalled, reason: &str, message: String| Step::Refuse { stalled, reason: reason.to_owned(), message };
    let Some(found) = ours else {
        return match found {
            Some(found) => {
                let message = format!("OpenStackServer {} belongs to somebody else", found.name_any());
                refuse(reason::DEPENDENCY_FAILED, reason::DEPENDENCY_FAILED, message)
            }
            // Another instance under the same name would be another node: machines are replaced by those who made them.
            None if asking.had_instance => {
                let message = format!("OpenStackServer {} is gone, and its instance with it", asking.name);
                refuse(shared::RESOURCE_LOST, reason::INSTANCE_NOT_FOUND, message)
            }
            None => Step::Create,
        };
    };
    if found.metadata.deletion_timestamp.is_some() {
        let message = format!("OpenStackServer {} is being deleted by somebody", found.name_any());
        return Step::Wait { reason: reason::INSTANCE_DELETED.to_owned(), message };
    }
    if let Some(("True", why, message)) = said(found, FAILED) {
        let lost = [reason::INSTANCE_NOT_FOUND, reason::INSTANCE_DELETED].contains(&why);
        let stalled = if lost { shared::RESOURCE_LOST } else { shared::RESOURCE_FAILED };
        return refuse(stalled, why, message.to_owned());
    }
    if was_ready(found) {
        return Step::Use;
    }
    match said(found, INSTANCE_READY) {
        Some(("False", why, message)) => Step::Wait { reason: why.to_owned(), message: message.to_owned() },
        _ => Step::Wait { reason: reason::INSTANCE_NOT_READY.to_owned(), message: "the server is being made".into() },
    }
}

/// What the cluster gives to the server of a machine. `None` until the cluster has a network.
pub fn defaults(node: &Node) -> Option<Defaults> {
    let cluster = node.cluster.as_ref()?;
    let status = cluster.status.as_ref().filter(|it| it.initialization.as_ref().is_some_and(|it| it.provisioned))?;
    let spec = &cluster.spec;
    let subnets = spec.primary_subnet.clone().map_or_else(|| spec.subnets.clone(), |it| vec![it]);
    let group = if node.control_plane { &status.control_plane_security_group } else { &status.worker_security_group };
    Some(Defaults {
        identity: spec.identity_ref.clone(),
        tags: spec.tags.clone(),
        network: status.network.as_ref().map(|it| it.id.clone()),
        subnets,
        security_group: group.as_ref().map(|it| it.id.clone()).filter(|id| !id.is_empty()),
        zone: node.failure_domain.clone(),
        user_data: node.bootstrap.clone(),
    })
}

/// The load balancer of the API server, if this machine stands behind it.
pub fn balancer(node: &Node) -> Option<String> {
    let cluster = node.cluster.as_ref().filter(|_| node.control_plane)?;
    let status = cluster.status.as_ref()?.api_server_load_balancer.as_ref()?;
    Some(status.id.clone()).filter(|id| !id.is_empty())
}
/// The ports that the API server answers on, behind its load balancer.
pub fn balanced_ports(spec: &OpenStackClusterSpec) -> BTreeSet<i64> {
    let server = spec.api_server.clone().unwrap_or_default();
    let endpoint = spec.control_plane_endpoint.as_ref().map(|it| i64::from(it.port)).filter(|port| *port > 0);
    let main = server.port.map(i64::from).filter(|port| *port > 0).or(endpoint).unwrap_or(API_PORT);
    server.additional_ports().into_iter().chain([main]).filter(|port| (1..=65_535).contains(port)).collect()
}

/// What nodes know a machine by.
pub fn provider_id(spec: &OpenStackMachineSpec, instance: &str) -> String {
    let region = spec.identity_ref.as_ref().and_then(|it| it.region.as_deref()).unwrap_or_default();
    format!("openstack://{region}/{instance}")
}
/// Addresses as a server's status has them.
pub fn addresses(server: &OpenStackServer) -> &[NodeAddress] {
    server.status.as_ref().map(|it| it.addresses.as_slice()).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // json!s are written in place
#[path = "tests.rs"]
mod tests;
