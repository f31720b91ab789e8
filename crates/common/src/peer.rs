//! The peer guard: another provider's finalizer on an object means that two controllers would fight over its things.
use crate::engine::owner::OwnerView;
use crate::names;

/// A provider that serves the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What `adopt-from` names it.
    pub name: &'static str,
    /// Its finalizers.
    pub finalizers: &'static [&'static str],
}

/// How this controller lives with its peers.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// Those that may be there.
    pub peers: &'static [Peer],
    /// We work beside the peer and never do its work: its finalizer is as it should be.
    pub companion: bool,
    /// What `managed-by` must say, on kinds where it counts.
    pub managed_by: Option<&'static str>,
    /// Objects of this peer are taken over without each being asked for.
    pub adopt: Option<&'static str>,
}

impl Guard {
    /// No other provider serves the kind.
    pub const NONE: Guard = Guard { peers: &[], companion: false, managed_by: None, adopt: None };

    /// Is what this peer made asked for: of this object, now or when it was taken over, or of all?
    pub fn adopts(&self, view: &OwnerView, peer: &str) -> bool {
        let says = |key: &str| view.annotations.get(key).is_some_and(|it| it == peer);
        self.adopt == Some(peer) || says(names::ADOPT_FROM) || says(names::ADOPTED_FROM)
    }
}

/// May the object be written on?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody else serves it.
    Ours,
    /// The user asked to take it over: these finalizers go in the patch that brings ours.
    Adopt {
        /// Whose they are.
        from: &'static str,
        /// The finalizers that go.
        finalizers: Vec<String>,
    },
    /// Somebody else serves it: nothing is written.
    Peer {
        /// For people.
        message: String,
    },
}

/// Looks at finalizers, labels and annotations.
pub fn verdict(view: &OwnerView, guard: &Guard) -> Verdict {
    if let Some(ours) = guard.managed_by {
        // Cluster API sets it as an annotation; older tools as a label.
        let said = view.annotations.get(names::MANAGED_BY).or_else(|| view.labels.get(names::MANAGED_BY));
        if let Some(other) = said.filter(|name| *name != ours) {
            let message = format!("{} says {other:?}, this controller is {ours:?}", names::MANAGED_BY);
            return Verdict::Peer { message };
        }
    }
    if guard.companion {
        return Verdict::Ours;
    }
    let on = |peer: &Peer| -> Vec<String> {
        view.finalizers.iter().filter(|f| peer.finalizers.contains(&f.as_str())).cloned().collect()
    };
    let present: Vec<(&Peer, Vec<String>)> =
        guard.peers.iter().map(|p| (p, on(p))).filter(|(_, found)| !found.is_empty()).collect();
    let asked = view.annotations.get(names::ADOPT_FROM).map(String::as_str).or(guard.adopt);
    match present.as_slice() {
        [] => Verdict::Ours,
        [(peer, found)] if asked == Some(peer.name) => Verdict::Adopt { from: peer.name, finalizers: found.clone() },
        several => {
            let named: Vec<String> =
                several.iter().map(|(p, found)| format!("{} ({})", p.name, found.join(", "))).collect();
            let message = format!(
                "served by {}; stop that provider and set {}={} to take the object over",
                named.join(" and "),
                names::ADOPT_FROM,
                several[0].0.name,
            );
            Verdict::Peer { message }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEERS: &[Peer] = &[
        Peer { name: "capx", finalizers: &["x.cluster.x-k8s.io", "x2.cluster.x-k8s.io"] },
        Peer { name: "capy", finalizers: &["y.cluster.x-k8s.io"] },
    ];
    const GUARD: Guard = Guard { peers: PEERS, ..Guard::NONE };

    fn view(finalizers: &[&str], annotations: &[(&str, &str)]) -> OwnerView {
        OwnerView {
            finalizers: finalizers.iter().map(|f| (*f).to_owned()).collect(),
            annotations: annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            ..OwnerView::default()
        }
    }

    #[test]
    fn an_object_without_a_peers_finalizer_is_ours() {
        assert_eq!(verdict(&view(&["custody.dev/sample", "other/finalizer"], &[]), &GUARD), Verdict::Ours);
        assert_eq!(verdict(&view(&[], &[(names::ADOPT_FROM, "capx")]), &GUARD), Verdict::Ours);
    }
    #[test]
    fn a_peers_finalizer_keeps_us_off_unless_adoption_names_that_peer() {
        let held = |asked: &[(&str, &str)]| verdict(&view(&["x.cluster.x-k8s.io"], asked), &GUARD);
        assert!(matches!(held(&[]), Verdict::Peer { message } if message.contains("capx")));
        assert!(matches!(held(&[(names::ADOPT_FROM, "capy")]), Verdict::Peer { .. }));
        let finalizers = vec!["x.cluster.x-k8s.io".to_owned()];
        assert_eq!(held(&[(names::ADOPT_FROM, "capx")]), Verdict::Adopt { from: "capx", finalizers });
    }
    #[test]
    fn all_objects_of_one_peer_can_be_asked_for_at_once() {
        let guard = Guard { adopt: Some("capx"), ..GUARD };
        let finalizers = vec!["x.cluster.x-k8s.io".to_owned()];
        assert_eq!(verdict(&view(&["x.cluster.x-k8s.io"], &[]), &guard), Verdict::Adopt { from: "capx", finalizers });
        assert!(matches!(verdict(&view(&["y.cluster.x-k8s.io"], &[]), &guard), Verdict::Peer { .. }));
    }
    #[test]
    fn two_peers_at_once_are_never_adopted_from() {
        let both = view(&["x.cluster.x-k8s.io", "y.cluster.x-k8s.io"], &[(names::ADOPT_FROM, "capx")]);
        assert!(matches!(verdict(&both, &GUARD), Verdict::Peer { .. }));
    }
    #[test]
    fn a_companion_lives_with_its_peer() {
        let guard = Guard { companion: true, ..GUARD };
        assert_eq!(verdict(&view(&["x.cluster.x-k8s.io"], &[]), &guard), Verdict::Ours);
    }
    #[test]
    fn managed_by_is_served_only_if_it_names_us() {
        let guard = Guard { managed_by: Some("us"), companion: true, ..GUARD };
        assert!(matches!(verdict(&view(&[], &[(names::MANAGED_BY, "them")]), &guard), Verdict::Peer { .. }));
        assert!(matches!(verdict(&view(&[], &[(names::MANAGED_BY, "")]), &guard), Verdict::Peer { .. }));
        assert_eq!(verdict(&view(&[], &[(names::MANAGED_BY, "us")]), &guard), Verdict::Ours);
        assert_eq!(verdict(&view(&[], &[(names::MANAGED_BY, "them")]), &GUARD), Verdict::Ours);
    }
}
