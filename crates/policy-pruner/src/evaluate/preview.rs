//! What would be done for a policy, object by object, and why. Changes nothing.
use super::act::{Read, Seen, text};
use super::check::{self, Subject};
use super::rivals::{self, Rivals};
use super::{Ground, Results, reference};
use crate::api::ObjectRef;
use crate::compare::Compliance;
use crate::prune::sweep::finalizers;

/// What would be done with one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Which.
    pub object: ObjectRef,
    /// create, update, delete, none, or blocked.
    pub action: &'static str,
    /// Why.
    pub why: String,
    /// What it would wait for if it is to be deleted.
    pub finalizers: Vec<String>,
}
/// What would be done, and why pruning would be held.
pub async fn preview(ground: Ground<'_>, reads: &[Read], results: &mut Results) -> (Vec<Preview>, Vec<String>) {
    let (mut previews, mut doubts) = (Vec::new(), Vec::new());
    let enforce = ground.policy.spec.enforces();
    let rivals = Rivals::among(reads.iter().flat_map(Read::claims).collect());
    for read in reads {
        let (mapping, planned) = match &read.planned {
            Err(refused) => {
                if refused.doubtful {
                    doubts.push(refused.happening.message.clone());
                }
                continue;
            }
            Ok((mapping, planned, _)) => (mapping, planned),
        };
        for one in planned {
            let forbidden = read.ready.template.compliance() == Compliance::MustNotHave;
            let (namespace, name) = (text(&one.desired, "namespace"), text(&one.desired, "name"));
            let say = |action, why: &str| Preview {
                object: reference(mapping, namespace, name),
                action,
                why: why.to_owned(),
                finalizers: Vec::new(),
            };
            let index = read.index;
            let opposed = if enforce { rivals.opposed(index, &reference(mapping, namespace, name)) } else { None };
            previews.push(match &one.seen {
                _ if opposed.is_some() => {
                    let title = format!("{} [{name}]", mapping.plural);
                    say("blocked", &rivals::told(&title, index, opposed.unwrap_or_default()))
                }
                Seen::Failed(trouble) => {
                    doubts.push(trouble.to_string());
                    say("blocked", &trouble.to_string())
                }
                Seen::Matching(names, _, _) => {
                    let why = format!("matches {} objects; templates without a name only report", names.len());
                    let shown = if names.is_empty() { "-".to_owned() } else { names.join(",") };
                    Preview { object: reference(mapping, namespace, &shown), ..say("none", &why) }
                }
                Seen::Named(None) if forbidden => say("none", "missing as expected"),
                Seen::Named(None) if enforce => say("create", "missing"),
                Seen::Named(None) => say("none", "missing; the policy only informs"),
                Seen::Named(Some(live)) if forbidden && enforce => {
                    Preview { finalizers: finalizers(live), ..say("delete", "must not be there") }
                }
                Seen::Named(Some(_)) if forbidden => say("none", "must not be there; the policy only informs"),
                Seen::Named(Some(live)) => {
                    let subject = Subject {
                        ready: &read.ready,
                        mapping,
                        desired: &one.desired,
                        enforce: false,
                        manager: "",
                        index,
                        rivals: &rivals,
                    };
                    let checked = check::check(ground, subject, live, results).await;
                    match (checked.violation, enforce) {
                        (false, _) => say("none", "as specified"),
                        (true, _) if !checked.message.is_empty() => say("blocked", &checked.message),
                        (true, true) => say("update", "not as specified"),
                        (true, false) => say("none", "not as specified; the policy only informs"),
                    }
                }
            });
        }
    }
    (previews, doubts)
}
