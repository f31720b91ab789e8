//! What bastion and machine share: each is an object of Cluster API that has a server made for it.
use crate::api::{IdentityRef, OpenStackServer};
use crate::inputs::Missing;
use crate::names::{CAPO, CAPO_SERVER_FINALIZER, INSTANCE_READY, reason};
use crate::servers::{is_owned, said};
use common::engine::estate::Fault;
use common::engine::owner::OwnerView;
use common::engine::report::Progress;
use common::identity::Place;
use common::ledger::{Id, Ledger};
use common::names::{self, reason as shared};
use common::peer::{Guard, Verdict, verdict};
use serde_json::{Value, json};
use std::time::Duration;

/// The latest that a server that is being made or removed is looked at; a watch usually tells sooner.
pub const LOOK: Duration = Duration::from_secs(15);

/// May a server be made or removed for this object? Only where the engine serves it, too: our finalizer is on, nobody else
/// serves it, it lives here, and the credentials see the project that its ledger was written for.
pub fn serves(view: &OwnerView, controller: &str, place: &Place, guard: &Guard, scope: Option<&str>) -> bool {
    let ledger = ledger(view, controller);
    let here = ledger.as_ref().is_some_and(|it| it.place == *place);
    let same = ledger.is_some_and(|it| it.scope.is_empty() || scope.is_none_or(|scope| it.scope == scope));
    here && same
        && view.finalizers.contains(&names::finalizer(controller))
        && !view.annotations.contains_key(names::DELETE_FOR_MOVE)
        && verdict(view, guard) == Verdict::Ours
}
/// Was the ledger written here, if there is one?
pub fn lives_here(view: &OwnerView, controller: &str, place: &Place) -> bool {
    let text = view.annotations.get(&names::ledger(controller));
    text.is_none_or(|text| Ledger::parse(text).is_ok_and(|it| it.place == *place))
}
/// The ledger on this version of the object, if it can be read.
pub fn ledger(view: &OwnerView, controller: &str) -> Option<Ledger> {
    view.annotations.get(&names::ledger(controller)).and_then(|text| Ledger::parse(text).ok())
}
/// Does the Go provider still hold this server?
pub fn held_by_capo(server: &OpenStackServer) -> bool {
    server.metadata.finalizers.iter().flatten().any(|it| it == CAPO_SERVER_FINALIZER)
}
/// What a parent on its way out waits for: its server, and whatever that waits for.
pub fn on_its_way_out(server: Option<&OpenStackServer>, adopts: bool) -> String {
    let going = server.is_some_and(|it| it.metadata.deletion_timestamp.is_some());
    let held = adopts && !going && server.is_some_and(held_by_capo);
    let what = if held { "the server is taken over before it is deleted" } else { "the server is being deleted" };
    match server.and_then(|it| said(it, INSTANCE_READY)) {
        Some(("False" | "Unknown", why, message)) if held || going => format!("{what}: {why}: {message}"),
        _ => what.to_owned(),
    }
}
/// A server that the Go provider still holds is asked for, once. On its way out it can take no other finalizer.
pub fn request_adoption(server: &OpenStackServer) -> Option<Value> {
    let asked = server.metadata.annotations.iter().flatten().any(|(key, _)| key == names::ADOPT_FROM);
    let stays = server.metadata.deletion_timestamp.is_none();
    (held_by_capo(server) && stays && !asked).then(|| json!({"metadata": {"annotations": {names::ADOPT_FROM: CAPO}}}))
}
/// Other credentials for the server of an object, if it shall have other ones: they are needed for the end, too. A region is
/// for life.
pub fn rotated<'a>(found: &OpenStackServer, uid: &str, wanted: Option<&'a IdentityRef>) -> Option<&'a IdentityRef> {
    let has = &found.spec.identity_ref;
    wanted.filter(|wanted| is_owned(found, uid) && *wanted != has && wanted.region == has.region)
}
/// The Cluster that an object belongs to; itself, if it names none.
pub fn cluster_name(view: &OwnerView) -> String {
    view.labels.get(names::CLUSTER_NAME).cloned().unwrap_or_else(|| view.name.clone())
}
/// All ports of a server, as far as they are told.
pub fn ports_of(server: &OpenStackServer) -> Vec<Id> {
    let resources = server.status.as_ref().and_then(|it| it.resources.as_ref());
    resources.map(|it| it.ports.iter().map(|port| port.id.clone()).collect()).unwrap_or_default()
}
/// The port of a server in the network of the cluster.
pub fn management_port(server: &OpenStackServer, network: &str) -> Option<String> {
    let status = server.status.as_ref()?;
    let ports = &status.resolved.as_ref()?.ports;
    let index = ports.iter().position(|port| port.network_id == network).unwrap_or(0);
    status.resources.as_ref()?.ports.get(index).map(|it| it.id.clone())
}
/// What a Kubernetes object that is not there, or not as it should be, means for a pass.
pub fn missing(missing: Missing) -> Progress {
    match missing {
        Missing::Unusable(message) => Progress::Blocked { reason: reason::INVALID_SPEC, message },
        Missing::Pending(why) | Missing::Unavailable(why) => Progress::Failed(Fault::Transient(why)),
    }
}
/// Work is under way elsewhere.
pub fn waiting(message: String) -> Progress {
    Progress::Waiting { reason: shared::PROGRESSING, message, again: LOOK }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::PEERS;
    use common::ledger::Writer;

    fn view(scope: &str) -> (OwnerView, Place) {
        let place = Place::of("here", "c", "K", "ns", "a");
        let mut ledger = Ledger::empty("uid", &place, Writer { process: 1, number: 1 });
        scope.clone_into(&mut ledger.scope);
        let mut view = OwnerView { finalizers: vec![names::finalizer("c")], ..OwnerView::default() };
        view.annotations.insert(names::ledger("c"), ledger.to_text());
        (view, place)
    }

    #[test]
    fn a_server_is_touched_only_where_the_engine_would_act() {
        let guard = Guard { peers: PEERS, ..Guard::NONE };
        let (whole, place) = view("p/r");
        assert!(serves(&whole, "c", &place, &guard, Some("p/r")));
        assert!(serves(&whole, "c", &place, &guard, None));
        assert!(!serves(&whole, "c", &place, &guard, Some("other/r")), "other credentials");
        assert!(!serves(&whole, "c", &Place::of("there", "c", "K", "ns", "a"), &guard, None), "moved here");
        assert!(!serves(&whole, "other", &place, &guard, None), "another controller's");
        let change = |change: &dyn Fn(&mut OwnerView)| {
            let mut view = whole.clone();
            change(&mut view);
            serves(&view, "c", &place, &guard, None)
        };
        assert!(!change(&|view| view.finalizers.clear()));
        assert!(!change(&|view| view.finalizers.push(crate::names::CAPO_MACHINE_FINALIZER.into())));
        assert!(!change(&|view| drop(view.annotations.insert(names::DELETE_FOR_MOVE.into(), String::new()))));
    }
}
