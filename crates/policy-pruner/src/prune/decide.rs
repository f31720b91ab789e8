//! May this object be deleted? Pure: what was recorded, what is there, who else needs it.
use super::ledger::Ledger;
use crate::api::{ObjectRef, ObjectTemplate, PolicySpec, Prune, RelatedObject};
use crate::compare::Compliance;
use crate::namespaces;
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

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default().trim()
}
fn is_of_kind(template: &ObjectTemplate, object: &ObjectRef) -> bool {
    let definition = &template.object_definition;
    let group = text(&definition["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    group == object.group() && text(&definition["kind"]) == object.kind
}
/// Does the template name this object? Where it names no namespace, a selector of namespaces may have led there.
fn names(template: &ObjectTemplate, object: &ObjectRef) -> bool {
    let metadata = &template.object_definition["metadata"];
    let (name, namespace) = (text(&metadata["name"]), text(&metadata["namespace"]));
    let place = &object.metadata;
    // What lives in no namespace is not in the one that is written there all the same.
    let there = namespace.is_empty() || place.namespace.is_empty() || namespace == place.namespace;
    is_of_kind(template, object) && !name.is_empty() && name == place.name && there
}
/// Does a template name this object, as far as the spec tells today? What was only selected by label is known to the ledger alone: the
/// spec cannot tell it from what was merely matched.
fn named(spec: &PolicySpec, object: &ObjectRef) -> bool {
    let place = &object.metadata.namespace;
    let led_there =
        || place.is_empty() || namespaces::may_take(spec.namespace_selector.as_ref(), place).unwrap_or_default();
    spec.templates().iter().filter(|template| names(template, object)).any(|template| {
        let written = !text(&template.object_definition["metadata"]["namespace"]).is_empty();
        written || led_there()
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

/// Objects that a policy requires to be there, as far as spec and status tell; without a namespace where the spec names none. Only an
/// enforced one requires.
pub fn required(spec: &PolicySpec, related: &[RelatedObject]) -> Vec<ObjectRef> {
    if !spec.enforces() {
        return Vec::new();
    }
    let wanted = || spec.templates().iter().filter(|t| t.compliance() != Compliance::MustNotHave);
    let mut all = Vec::new();
    for definition in wanted().map(|template| &template.object_definition) {
        let [name, namespace] = ["name", "namespace"].map(|part| text(&definition["metadata"][part]));
        if !name.is_empty() {
            all.push(ObjectRef::new(text(&definition["apiVersion"]), text(&definition["kind"]), namespace, name));
        }
    }
    let selects = |t: &ObjectTemplate, object: &ObjectRef| {
        let unnamed = text(&t.object_definition["metadata"]["name"]).is_empty();
        unnamed && t.object_selector.is_some() && is_of_kind(t, object)
    };
    for entry in related.iter().filter(|entry| entry.properties.is_some()) {
        let object = &entry.object;
        let asked_for = wanted().any(|t| names(t, object) || selects(t, object));
        if asked_for && !all.iter().any(|known| known.same(object)) {
            all.push(object.clone());
        }
    }
    all
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
