//! What would be done for a policy, object by object, and why. Changes nothing.
use super::act::{Read, Seen, text};
use super::check::{self, Checked, Subject};
use super::rivals::{self, Rivals};
use super::{Ground, Results, reference};
use crate::api::ObjectRef;
use crate::compare::Compliance;
use crate::prune::sweep::finalizers;
use serde_json::Value;

/// What would be done with one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Which.
    pub object: ObjectRef,
    /// create, update, recreate, delete, none, or blocked.
    pub action: &'static str,
    /// Why.
    pub why: String,
    /// What it would wait for if it is to be deleted.
    pub finalizers: Vec<String>,
}
/// What would be done, and why pruning would be held.
pub async fn preview(ground: Ground<'_>, reads: &[Read]) -> (Vec<Preview>, Vec<String>) {
    let (mut previews, mut doubts) = (Vec::new(), Vec::new());
    let enforce = ground.policy.spec.enforces();
    let rivals = Rivals::among(reads.iter().flat_map(Read::claims).collect());
    for read in reads {
        let (mapping, planned) = match &read.planned {
            Err(refused) => {
                if refused.doubtful {
                    doubts.push(refused.happening.message.clone());
                }
                previews.push(blocked(&read.ready.template.object_definition, &refused.happening.message));
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
            let one = match &one.seen {
                _ if opposed.is_some() => {
                    let title = format!("{} [{name}]", mapping.plural);
                    say("blocked", &rivals::told(&title, index, opposed.unwrap_or_default()))
                }
                Seen::Failed(trouble) => {
                    let told = read.ready.told(trouble);
                    doubts.push(told.clone());
                    say("blocked", &told)
                }
                Seen::Matching(names, _, _) => {
                    let why = format!("matches {} objects; templates without a name only report", names.len());
                    let shown = if names.is_empty() { vec!["-".to_owned()] } else { names.clone() };
                    // One by one: what is matched does not drop out of the policy.
                    let each = |name: &String| reference(mapping, namespace, name);
                    previews.extend(shown.iter().map(|name| Preview { object: each(name), ..say("none", &why) }));
                    continue;
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
                    let checked = check::check(ground, subject, live, &mut Results::default()).await;
                    let (action, why) = intent(subject, enforce, checked);
                    let held = if action == "recreate" { finalizers(live) } else { Vec::new() };
                    Preview { finalizers: held, ..say(action, &why) }
                }
            };
            previews.push(one);
        }
    }
    (previews, doubts)
}

/// A template that cannot be evaluated, as far as it says what it means.
fn blocked(definition: &Value, why: &str) -> Preview {
    let part = |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
    let namespace = definition["metadata"]["namespace"].as_str().unwrap_or_default();
    let [api_version, kind, name] =
        [&definition["apiVersion"], &definition["kind"], &definition["metadata"]["name"]].map(part);
    let object = ObjectRef::new(&api_version, &kind, namespace, &name);
    Preview { object, action: "blocked", why: why.to_owned(), finalizers: Vec::new() }
}

/// What would be done with an object that is there, from what the API server said to a dry run.
fn intent(subject: Subject<'_>, enforce: bool, checked: Checked) -> (&'static str, String) {
    let always = subject.ready.template.recreate_option == "Always";
    let said = |action, why: &str| (action, why.to_owned());
    match checked {
        Checked { violation: false, .. } => said("none", "as specified"),
        Checked { message, .. } if !message.is_empty() => ("blocked", message),
        _ if !enforce => said("none", "not as specified; the policy only informs"),
        Checked { immutable: true, .. } if !subject.may_recreate() => ("blocked", check::unchangeable(subject)),
        Checked { immutable: true, .. } => said("recreate", "not as specified, and cannot be updated"),
        _ if always => said("recreate", "not as specified; recreateOption is Always"),
        _ => said("update", "not as specified"),
    }
}

#[cfg(test)]
#[path = "preview_tests.rs"]
mod tests;
