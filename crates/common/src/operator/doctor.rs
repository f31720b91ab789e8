//! Is everything there before the first create? Permissions, clocks, and whether another installation calls itself the same.
use super::{Found, Owner, Row};
use crate::identity::{MarkSeen, Place};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Serialize;

/// More than this between two clocks makes dates in messages useless and leases unsafe to read for people.
const MOST_SKEW: SignedDuration = SignedDuration::from_secs(30);

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Health {
    /// Nothing will work until this is mended.
    Bad,
    /// Somebody should look.
    Doubtful,
    /// As it should be.
    Good,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// How it went.
    pub health: Health,
    /// What was checked.
    pub what: String,
    /// More for people.
    pub note: String,
}
impl Check {
    /// A check.
    pub fn new(health: Health, what: impl Into<String>, note: impl Into<String>) -> Self {
        Check { health, what: what.into(), note: note.into() }
    }
}
impl Row for Check {
    const HEADS: &'static [&'static str] = &["HEALTH", "WHAT", "NOTE"];
    fn cells(&self) -> Vec<String> {
        vec![format!("{:?}", self.health), self.what.clone(), self.note.clone()]
    }
}

/// Something the controller must be allowed to do at the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grant {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Resource, plural.
    pub resource: &'static str,
    /// Subresource; empty for none.
    pub subresource: &'static str,
    /// Verb.
    pub verb: &'static str,
    /// Only on the object of this name; empty for all.
    pub name: &'static str,
    /// Only in the controller's own namespace.
    pub own_namespace: bool,
}
impl Grant {
    /// What an election needs: these verbs on the Lease of this name, and a create, which cannot be bound to a name.
    pub const fn lease(verb: &'static str, name: &'static str) -> Grant {
        Grant { group: "coordination.k8s.io", resource: "leases", subresource: "", verb, name, own_namespace: true }
    }
}

/// Does the cloud's clock agree with ours? Pure.
pub fn clock(cloud: Timestamp, wall: Timestamp) -> Check {
    let skew = wall.duration_since(cloud).abs();
    let note = format!("the cloud says {cloud}, this machine {wall}");
    Check::new(if skew > MOST_SKEW { Health::Doubtful } else { Health::Good }, "clock", note)
}

/// Do things exist that say they are of this installation but belong to nobody here? Pure.
pub fn installation(found: &[Found], owners: &[Owner], installation: &str) -> Check {
    let ours = Place::installation_part(installation);
    let what = "installation id";
    let marks = found.iter().filter_map(|thing| match &thing.mark {
        MarkSeen::Whole(mark) if mark.place.installation() == ours => Some((thing, mark)),
        _ => None,
    });
    let (mut twins, mut strays) = (Vec::new(), Vec::new());
    for (thing, mark) in marks {
        match owners.iter().find(|owner| owner.place == mark.place) {
            Some(owner) if owner.id.is_none() || owner.has(mark.owner) => {}
            Some(owner) => twins.push(format!("{} {} for {}", thing.kind, thing.id, owner.name)),
            None => strays.push(format!("{} {}", thing.kind, thing.id)),
        }
    }
    if !twins.is_empty() {
        let note = format!("another installation seems to use {installation:?} too: {}", some_of(&twins));
        return Check::new(Health::Bad, what, note);
    }
    if !strays.is_empty() {
        let note = format!("orphans, or another installation with the same id: {}", some_of(&strays));
        return Check::new(Health::Doubtful, what, note);
    }
    Check::new(Health::Good, what, installation)
}
fn some_of(things: &[String]) -> String {
    let shown = things.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    if things.len() > 5 { format!("{shown} and {} more", things.len() - 5) } else { shown }
}

/// Asks the API server about each grant.
pub async fn access(client: &Client, grants: &[Grant], watched: Option<&str>, own: &str) -> Vec<Check> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut checks = Vec::new();
    for grant in grants {
        let namespace = if grant.own_namespace { Some(own) } else { watched };
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let attributes = ResourceAttributes {
            group: text(grant.group),
            resource: text(grant.resource),
            subresource: text(grant.subresource),
            verb: text(grant.verb),
            name: text(grant.name),
            namespace: namespace.map(str::to_owned),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), non_resource_attributes: None },
            ..SelfSubjectAccessReview::default()
        };
        let slash = if grant.subresource.is_empty() { "" } else { "/" };
        let what = format!("API server: {} {}{slash}{} {}", grant.verb, grant.resource, grant.subresource, grant.name);
        let what = what.trim_end();
        checks.push(match api.create(&PostParams::default(), &review).await {
            Ok(reply) if reply.status.as_ref().is_some_and(|status| status.allowed) => {
                Check::new(Health::Good, what, "")
            }
            Ok(_) => Check::new(Health::Bad, what, "not allowed"),
            Err(error) => Check::new(Health::Bad, what, error.to_string()),
        });
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Mark, OwnerId};

    fn place(name: &str) -> Place {
        Place::of("here", "c", "K", "ns", name)
    }
    fn found(owner: u8, place: Place) -> Found {
        let owner = OwnerId::from_bits([owner; 16]);
        let mark = MarkSeen::Whole(Mark { owner, place, slot: "disk".parse().unwrap(), adopted: None });
        Found { kind: "disk", id: "disk-1".into(), mark, name: String::new(), parent: None }
    }
    fn owner(id: Option<u8>) -> Owner {
        let id = id.map(|id| OwnerId::from_bits([id; 16]));
        Owner { name: "ns/a".into(), place: place("a"), id, mirrored: None, ledger: None }
    }

    #[test]
    fn clocks_may_differ_a_little() {
        let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let (near, far) = (noon + SignedDuration::from_secs(20), noon - SignedDuration::from_secs(40));
        assert_eq!(clock(noon, near).health, Health::Good);
        assert_eq!(clock(noon, far).health, Health::Doubtful);
    }
    #[test]
    fn the_same_place_under_two_owner_ids_betrays_a_second_installation() {
        let health = |found: &[Found], owners: &[Owner]| installation(found, owners, "here").health;
        assert_eq!(health(&[found(1, place("a"))], &[owner(Some(1))]), Health::Good);
        assert_eq!(health(&[found(1, place("a"))], &[owner(None)]), Health::Good);
        assert_eq!(health(&[found(2, place("a"))], &[owner(Some(1))]), Health::Bad);
        assert_eq!(health(&[found(2, place("b"))], &[owner(Some(1))]), Health::Doubtful);
        let elsewhere = Place::of("there", "c", "K", "ns", "b");
        assert_eq!(health(&[found(2, elsewhere)], &[owner(Some(1))]), Health::Good);
    }
}
