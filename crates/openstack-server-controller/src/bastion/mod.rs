//! The bastion of an OpenStackCluster: an OpenStackServer of its own, and a floating IP that outlives its replacements.
mod address;
pub mod controller;
pub mod estate;
mod networks;
pub mod reconcile;
mod standing;

use crate::api::{
    ApiServerSpec, FailureDomain, IdentityRef, OpenStackClusterSpec, OpenStackServer, OpenStackServerSpec,
};
use crate::derive::{differing, spec_hash, spec_hash_without_region};
use crate::names::{ENDPOINT_READY, reason};
use crate::parents::{held_by_capo, request_adoption};
use crate::servers::{is_owned, was_ready};
use common::conditions::{Statement, Tri};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The controller of bastions: in annotations, finalizer and place.
pub const CONTROLLER: &str = "openstack-bastion";
/// The kind it serves.
pub const KIND: &str = "OpenStackCluster";
/// Hash of the spec that a bastion's server was made from.
pub const SPEC_HASH: &str = "custody.dev/openstack-bastion-spec";

/// What is to be done about the server of the bastion.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// There is none, and there shall be none.
    Nothing,
    /// Make it.
    Create,
    /// Remove it, for this reason.
    Delete(String),
    /// Not now.
    Wait(String),
    /// It is of no use as it is, and nothing helps but a person.
    Refuse(String),
    /// It is there.
    Use,
}

/// Decides. `wanted` is the spec of the server, if there shall be one; `adopts`: what the Go provider made is asked for.
pub fn decide(
    wanted: Option<&OpenStackServerSpec>,
    found: Option<&OpenStackServer>,
    cluster_uid: &str,
    adopts: bool,
) -> Step {
    let (wanted, found) = match (wanted, found) {
        (None, None) => return Step::Nothing,
        (Some(_), None) => return Step::Create,
        (wanted, Some(found)) => (wanted, found),
    };
    if !is_owned(found, cluster_uid) {
        return match wanted {
            None => Step::Nothing,
            Some(_) => Step::Refuse(format!("OpenStackServer {} belongs to somebody else", found.name_any())),
        };
    }
    if found.metadata.deletion_timestamp.is_some() {
        return Step::Wait("the previous bastion is being deleted".into());
    }
    let unwanted = wanted.map_or(Some("no bastion is wanted".to_owned()), |wanted| change(wanted, found, adopts));
    if let Some(why) = unwanted {
        // Deleted now, it would never go: nobody would take the other provider's finalizer off.
        let early = adopts && held_by_capo(found);
        return if early {
            Step::Wait(format!("it is taken over before it is deleted: {why}"))
        } else {
            Step::Delete(why)
        };
    }
    if let Some(("True", reason, message)) = crate::servers::said(found, crate::names::FAILED) {
        return Step::Refuse(format!("{reason}: {message}"));
    }
    if was_ready(found) {
        return Step::Use;
    }
    let why = crate::servers::said(found, crate::names::INSTANCE_READY).map_or("", |it| it.2);
    Step::Wait(if why.is_empty() { "the server is being made".into() } else { why.to_owned() })
}

/// Why a server is no longer the one that is wanted.
fn change(wanted: &OpenStackServerSpec, found: &OpenStackServer, adopts: bool) -> Option<String> {
    let differs = || format!("its spec changed: {}", differing(wanted, &found.spec).join(", "));
    match found.annotations().get(SPEC_HASH) {
        Some(hash) => {
            // Servers are not replaced for being stamped before the region counted.
            let here = wanted.identity_ref.region == found.spec.identity_ref.region;
            let same = *hash == spec_hash(wanted) || here && *hash == spec_hash_without_region(wanted);
            (!same).then(differs)
        }
        // The Go provider's versions derive one spec in several ways; what is taken over is taken as it stands.
        None if adopts => None,
        None => (!differing(wanted, &found.spec).is_empty()).then(differs),
    }
}
/// What must be written on a server of ours before anything else is done with it: who is asked to take it over, and what it
/// is compared with from now on, and other credentials.
pub fn mend(
    found: &OpenStackServer,
    wanted: Option<&OpenStackServerSpec>,
    identity: Option<&IdentityRef>,
    adopts: bool,
) -> Option<Value> {
    let mut patch = request_adoption(found).filter(|_| adopts).unwrap_or_else(|| json!({}));
    if let Some(wanted) = wanted
        && found.metadata.deletion_timestamp.is_none()
        && !found.annotations().contains_key(SPEC_HASH)
        && change(wanted, found, adopts).is_none()
    {
        patch["metadata"]["annotations"][SPEC_HASH] = json!(spec_hash(wanted));
    }
    if let Some(identity) = identity {
        patch["spec"]["identityRef"] = json!(identity);
    }
    (patch != json!({})).then_some(patch)
}

/// What somebody else has made already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    /// Security groups, of whichever role.
    pub security_groups: bool,
    /// The load balancer of the API server.
    pub balancer: bool,
}
/// Why a cluster cannot be served: networks, routers and load balancers are not made here.
pub fn unsupported(spec: &OpenStackClusterSpec, made: Made) -> Option<String> {
    let balancer = spec.api_server.as_ref().is_some_and(ApiServerSpec::wants_balancer);
    let refused = [
        (!spec.managed_subnets.is_empty(), "managedSubnets"),
        (spec.managed_network.is_some(), "managedNetwork"),
        (spec.managed_router.is_some(), "managedRouter"),
        (balancer && !made.balancer, "apiServer.managedLoadBalancer"),
        (spec.managed_security_groups.is_some() && !made.security_groups, "managedSecurityGroups"),
    ];
    let named: Vec<&str> = refused.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect();
    if !named.is_empty() {
        return Some(format!(
            "{} cannot be served: networks, routers, security groups and load balancers must exist",
            named.join(", ")
        ));
    }
    (spec.network.is_none() && spec.subnets.is_empty()).then(|| "spec names neither a network nor subnets".to_owned())
}

/// What Cluster API is told of the zones. Named zones are for the control plane, or else all of them, unless none is to be named.
pub fn failure_domains(spec: &OpenStackClusterSpec, zones: &BTreeSet<String>) -> Vec<FailureDomain> {
    let named = &spec.control_plane_availability_zones;
    let omitted = spec.control_plane_omit_availability_zone == Some(true);
    let for_control_plane = |zone: &String| if named.is_empty() { !omitted } else { named.contains(zone) };
    zones.iter().map(|zone| FailureDomain { name: zone.clone(), control_plane: for_control_plane(zone) }).collect()
}
/// Whether the API server of the cluster can be reached, as far as the spec tells.
pub fn endpoint(spec: &OpenStackClusterSpec) -> Statement {
    match &spec.control_plane_endpoint {
        Some(endpoint) if !endpoint.host.is_empty() && endpoint.port > 0 => {
            Statement::new(ENDPOINT_READY, Tri::True, reason::READY, "")
        }
        _ => {
            let message = "controlPlaneEndpoint is not given: name host and port that lead to the API server, unless the control plane \
                           brings its own; floating IPs and load balancers for it are not made here";
            Statement::new(ENDPOINT_READY, Tri::False, reason::ENDPOINT_NOT_GIVEN, message)
        }
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // json!s are written in place
mod tests {
    use super::*;

    fn spec(flavor: &str) -> OpenStackServerSpec {
        OpenStackServerSpec { flavor: Some(flavor.into()), ..OpenStackServerSpec::default() }
    }
    fn found(flavor: &str, status: Value, more: Value) -> OpenStackServer {
        let mut metadata = json!({"name": "c-bastion", "namespace": "n", "annotations": {SPEC_HASH: spec_hash(&spec(flavor))},
            "ownerReferences": [{"apiVersion": "v", "kind": "k", "name": "c", "uid": "u"}]});
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let value = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
            "metadata": metadata, "spec": spec(flavor), "status": status});
        serde_json::from_value(value).unwrap()
    }
    fn condition(type_: &str, reason: &str) -> Value {
        json!({"conditions": [{"type": type_, "status": "True", "reason": reason, "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    }

    #[test]
    fn a_bastion_is_made_waited_for_and_used() {
        let wanted = spec("a");
        assert_eq!(decide(Some(&wanted), None, "u", false), Step::Create);
        assert!(matches!(decide(Some(&wanted), Some(&found("a", json!({}), json!({}))), "u", false), Step::Wait(_)));
        assert_eq!(
            decide(Some(&wanted), Some(&found("a", condition("Ready", "Reconciled"), json!({}))), "u", false),
            Step::Use
        );
        assert!(matches!(
            decide(Some(&wanted), Some(&found("a", condition("Failed", "InstanceNotFound"), json!({}))), "u", false),
            Step::Refuse(_)
        ));
    }
    #[test]
    fn another_spec_or_no_wish_removes_it() {
        let ready = found("a", condition("Ready", "Reconciled"), json!({}));
        assert_eq!(decide(Some(&spec("b")), Some(&ready), "u", false), Step::Delete("its spec changed: flavor".into()));
        assert!(matches!(decide(None, Some(&ready), "u", false), Step::Delete(_)));
        assert_eq!(decide(None, None, "u", false), Step::Nothing);
    }
    #[test]
    fn one_that_is_going_is_never_used_and_a_strangers_is_never_touched() {
        let going = found("a", condition("Ready", "Reconciled"), json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert!(matches!(decide(Some(&spec("a")), Some(&going), "u", false), Step::Wait(_)));
        let stranger = found("a", condition("Ready", "Reconciled"), json!({}));
        assert!(matches!(decide(Some(&spec("a")), Some(&stranger), "other", false), Step::Refuse(_)));
        assert_eq!(decide(None, Some(&stranger), "other", false), Step::Nothing);
    }
    #[test]
    fn another_region_replaces_a_bastion_and_an_older_stamp_does_not() {
        let ready = |hash: String, region: Option<&str>| {
            let mut server = found("a", condition("Ready", "Reconciled"), json!({"annotations": {SPEC_HASH: hash}}));
            server.spec.identity_ref.region = region.map(str::to_owned);
            server
        };
        let in_region = |region: Option<&str>| {
            let mut wanted = spec("a");
            wanted.identity_ref.region = region.map(str::to_owned);
            wanted
        };
        for region in [None, Some("one")] {
            let wanted = in_region(region);
            for hash in [spec_hash(&wanted), spec_hash_without_region(&wanted)] {
                assert_eq!(decide(Some(&wanted), Some(&ready(hash.clone(), region)), "u", false), Step::Use);
                let moved = decide(Some(&in_region(Some("two"))), Some(&ready(hash, region)), "u", false);
                assert_eq!(moved, Step::Delete("its spec changed: identityRef.region".into()));
            }
        }
        // what was taken over in another region than the spec names is taken as it stands
        let adopted = ready(spec_hash(&in_region(Some("two"))), None);
        assert_eq!(decide(Some(&in_region(Some("two"))), Some(&adopted), "u", true), Step::Use);
    }
    /// As the Go provider left it.
    fn of_capo(spec: &OpenStackServerSpec, annotations: Value) -> OpenStackServer {
        let finalizers = [crate::names::CAPO_SERVER_FINALIZER];
        let more = json!({"annotations": annotations, "finalizers": finalizers});
        OpenStackServer { spec: spec.clone(), ..found("a", condition("Ready", "Reconciled"), more) }
    }
    #[test]
    fn a_server_of_the_go_provider_is_kept_if_it_is_as_wanted() {
        let mut capo = found("a", condition("Ready", "Reconciled"), json!({}));
        capo.metadata.annotations = None;
        assert_eq!(decide(Some(&spec("a")), Some(&capo), "u", false), Step::Use);
        assert!(matches!(decide(Some(&spec("b")), Some(&capo), "u", false), Step::Delete(_)));
        // tags are a set: the other provider keeps them as they came
        let tagged = |tags: [&str; 2]| OpenStackServerSpec { tags: tags.map(str::to_owned).into(), ..spec("a") };
        capo.spec = tagged(["b", "a"]);
        assert_eq!(decide(Some(&tagged(["a", "b"])), Some(&capo), "u", false), Step::Use);
    }
    #[test]
    fn what_is_taken_over_is_taken_as_it_stands_and_compared_from_then_on() {
        let capo = of_capo(&spec("other"), json!({}));
        assert_eq!(decide(Some(&spec("a")), Some(&capo), "u", true), Step::Use);
        let patch = mend(&capo, Some(&spec("a")), None, true).unwrap();
        assert_eq!(
            patch["metadata"]["annotations"],
            json!({"custody.dev/adopt-from": "capo", SPEC_HASH: spec_hash(&spec("a"))})
        );
        // when it was stamped, then another wish is a change; it waits until the server is ours to delete
        let stamped = of_capo(&spec("other"), patch["metadata"]["annotations"].clone());
        assert_eq!(mend(&stamped, Some(&spec("a")), None, true), None);
        assert_eq!(decide(Some(&spec("a")), Some(&stamped), "u", true), Step::Use);
        assert!(matches!(decide(Some(&spec("b")), Some(&stamped), "u", true), Step::Wait(_)));
        assert!(matches!(decide(None, Some(&capo), "u", true), Step::Wait(_)));
        let mut ours = stamped;
        ours.metadata.finalizers = Some(vec!["custody.dev/openstack".into()]);
        assert!(matches!(decide(Some(&spec("b")), Some(&ours), "u", true), Step::Delete(_)));
        assert!(matches!(decide(None, Some(&ours), "u", true), Step::Delete(_)));
        // what differs and is not taken over is not stamped: it would pass for what is wanted
        assert_eq!(mend(&of_capo(&spec("other"), json!({})), Some(&spec("a")), None, false), None);
    }
    #[test]
    fn zones_are_for_the_control_plane_unless_others_are_named_or_none_is() {
        let told = |fields: Value| {
            let mut whole = json!({"identityRef": {"name": "n", "cloudName": "c"}});
            whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let spec: OpenStackClusterSpec = serde_json::from_value(whole).unwrap();
            let all = failure_domains(&spec, &["a".to_owned(), "b".to_owned()].into());
            all.into_iter().map(|it| (it.name, it.control_plane)).collect::<Vec<_>>()
        };
        let both = |a, b| vec![("a".to_owned(), a), ("b".to_owned(), b)];
        assert_eq!(told(json!({})), both(true, true));
        assert_eq!(told(json!({"controlPlaneOmitAvailabilityZone": true})), both(false, false));
        let named = json!({"controlPlaneAvailabilityZones": ["b", "gone"], "controlPlaneOmitAvailabilityZone": true});
        assert_eq!(told(named), both(false, true));
    }
    #[test]
    fn what_is_not_made_here_is_refused_loudly() {
        let said = |fields: Value| {
            let mut whole = json!({"identityRef": {"name": "n", "cloudName": "c"}, "network": {"id": "n"}});
            whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let spec: OpenStackClusterSpec = serde_json::from_value(whole).unwrap();
            unsupported(&spec, Made::default()).unwrap_or_default()
        };
        assert_eq!(said(json!({})), "");
        for field in ["managedNetwork", "managedRouter", "managedSecurityGroups"] {
            assert!(said(json!({field: {}})).contains(field));
        }
        assert!(said(json!({"managedSubnets": [{"cidr": "10.0.0.0/8"}]})).contains("managedSubnets"));
        assert!(said(json!({"apiServer": {"managedLoadBalancer": {"enabled": true}}})).contains("LoadBalancer"));
        assert_eq!(said(json!({"apiServer": {"managedLoadBalancer": {"enabled": false}}})), "");
        assert!(said(json!({"network": null})).contains("neither"));
    }
}
