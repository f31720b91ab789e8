//! May this object be deleted? Pure: what was recorded, what is there, who else needs it.
use super::ledger::Ledger;
use crate::api::{ObjectRef, PolicySpec, Prune, RelatedObject};
use crate::compare::Compliance;
use serde_json::Value;

/// An object that may have to go, and what is recorded about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub object: ObjectRef,
    /// Status or ledger say that the policy created it.
    pub created: bool,
    /// Uids recorded with that.
    pub uids: Vec<String>,
    /// It was named or selected, not only matched.
    pub managed: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing left to do.
    Gone,
    /// Delete exactly this uid.
    Delete(String),
    /// It is being deleted already: wait.
    Ending,
    /// It stays, and why.
    Keep(Kept),
}
/// Why an object stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// This policy did not create it.
    NotCreated,
    /// Somebody else deleted it and created it anew.
    Replaced,
    /// It was only ever matched by a template without a name.
    OnlyMatched,
}
impl Kept {
    /// For people.
    pub fn why(self) -> &'static str {
        match self {
            Kept::NotCreated => "it existed before the policy",
            Kept::Replaced => "somebody else created it anew",
            Kept::OnlyMatched => "it was only matched, never named, by the policy",
        }
    }
}

/// Everything recorded that the policy (any longer) has no use for.
pub fn candidates(
    spec: &PolicySpec,
    old: &[RelatedObject],
    ledger: Option<&Ledger>,
    still: &[ObjectRef],
) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for entry in old.iter().filter(|entry| entry.object.metadata.name != "-") {
        let properties = entry.properties.clone().unwrap_or_default();
        let created = properties.created_by_policy == Some(true);
        let managed = created || named(spec, &entry.object);
        let uids = if created && !properties.uid.is_empty() { vec![properties.uid] } else { Vec::new() };
        all.push(Candidate { object: entry.object.clone(), created, uids, managed });
    }
    for entry in ledger.into_iter().flat_map(|ledger| &ledger.entries) {
        let uid = Some(entry.uid.clone()).filter(|uid| entry.created && !uid.is_empty());
        match all.iter_mut().find(|c| c.object.same(&entry.object)) {
            Some(known) => {
                known.created |= entry.created;
                known.managed = true;
                known.uids.extend(uid);
            }
            None => all.push(Candidate {
                object: entry.object.clone(),
                created: entry.created,
                uids: uid.into_iter().collect(),
                managed: true,
            }),
        }
    }
    all.retain(|candidate| !still.iter().any(|object| object.same(&candidate.object)));
    all
}

/// Does a template name this object, or select it by label?
fn named(spec: &PolicySpec, object: &ObjectRef) -> bool {
    spec.templates().iter().any(|template| {
        let definition = &template.object_definition;
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        let group = text(&definition["apiVersion"]);
        let group = group.split_once('/').map_or("", |(group, _)| group);
        let name = text(&definition["metadata"]["name"]);
        let same_kind = group == object.group() && text(&definition["kind"]) == object.kind;
        same_kind && if name.is_empty() { template.object_selector.is_some() } else { name == object.metadata.name }
    })
}

/// The verdict. `live` is an uncached read, or a version that the delete will name. `like_upstream`: DeleteAll also takes what was only matched.
pub fn decide(
    prune: Prune,
    candidate: &Candidate,
    ledger: Option<&Ledger>,
    live: Option<&Value>,
    like_upstream: bool,
) -> Verdict {
    let Some(live) = live else { return Verdict::Gone };
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    let ending = live["metadata"]["deletionTimestamp"].is_string();
    let go = || if ending { Verdict::Ending } else { Verdict::Delete(uid.to_owned()) };
    match prune {
        Prune::None => Verdict::Keep(Kept::NotCreated),
        Prune::All if candidate.managed || like_upstream => go(),
        Prune::All => Verdict::Keep(Kept::OnlyMatched),
        Prune::IfCreated if !candidate.created => Verdict::Keep(Kept::NotCreated),
        Prune::IfCreated => {
            let vouched = ledger.is_some_and(|ledger| {
                ledger.find(&candidate.object).is_some_and(|entry| entry.created && ledger.marks(entry, live))
            });
            if candidate.uids.iter().any(|known| known == uid) || vouched {
                go()
            } else {
                Verdict::Keep(Kept::Replaced)
            }
        }
    }
}

/// Is the live object the one that this policy created? What `DeleteAll` takes along need not be.
pub fn is_own(candidate: &Candidate, ledger: Option<&Ledger>, live: Option<&Value>) -> bool {
    matches!(decide(Prune::IfCreated, candidate, ledger, live, false), Verdict::Delete(_))
}

/// Did this policy create the live object, as far as the ledger can tell? `None`: only an uncached read can.
pub fn created(ledger: &Ledger, object: &ObjectRef, live_uid: &str, live: Option<&Value>) -> Option<bool> {
    let Some(entry) = ledger.find(object).filter(|entry| entry.created) else { return Some(false) };
    if !entry.uid.is_empty() && entry.uid == live_uid {
        return Some(true);
    }
    live.map(|live| ledger.marks(entry, live))
}

/// Objects go in this order: those inside namespaces, then namespaces, then definitions of kinds.
pub fn rank(object: &ObjectRef) -> u8 {
    match (object.group(), object.kind.as_str()) {
        ("", "Namespace") => 1,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => 2,
        _ => 0,
    }
}

/// Objects that a policy requires to be there, as far as spec and status tell. Only an enforced one requires.
pub fn required(spec: &PolicySpec, related: &[RelatedObject]) -> Vec<ObjectRef> {
    if !spec.enforces() {
        return Vec::new();
    }
    let wanted = || spec.templates().iter().filter(|t| t.compliance() != Compliance::MustNotHave);
    let mut all = Vec::new();
    for template in wanted() {
        let definition = &template.object_definition;
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        let name = text(&definition["metadata"]["name"]);
        if !name.is_empty() {
            let namespace = text(&definition["metadata"]["namespace"]);
            all.push(ObjectRef::new(&text(&definition["apiVersion"]), &text(&definition["kind"]), &namespace, &name));
        }
    }
    let only: PolicySpec = PolicySpec { object_templates: Some(wanted().cloned().collect()), ..spec.clone() };
    for entry in related.iter().filter(|entry| entry.properties.is_some()) {
        if named(&only, &entry.object) && !all.iter().any(|known| known.same(&entry.object)) {
            all.push(entry.object.clone());
        }
    }
    all
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
