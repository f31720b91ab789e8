//! The status of a policy in the making: conditions, overall state, message, history. Pure: now is an argument.
use crate::api::{
    ConfigurationPolicy, HistoryEntry, ObjectRef, PolicySpec, PolicyStatus, RelatedObject, TemplateCondition,
    TemplateStatus,
};
use crate::bounds::{CUT, bounded, says_same};
use crate::dialect::Dialect;
use crate::evaluate::Fresh;
use crate::message::Verdict;
use crate::names::reason;
use crate::text::duration::{micros, seconds};
use jiff::Timestamp;

/// Entries of the history.
const MOST_HISTORY: usize = 10;
/// Bytes of a message.
const MOST_MESSAGE: usize = 4096;

/// All as it should be.
pub const COMPLIANT: &str = "Compliant";
/// Something is not.
pub const NON_COMPLIANT: &str = "NonCompliant";
/// The policy is being deleted.
pub const TERMINATING: &str = "Terminating";

/// Puts what a template came to into the status. True if that is news.
pub fn note(status: &mut PolicyStatus, spec: &PolicySpec, index: usize, verdict: &Verdict, now: Timestamp) -> bool {
    let cleanup = verdict.reason == reason::CLEANUP;
    let state = match (cleanup, verdict.compliant) {
        (true, _) => TERMINATING,
        (false, true) => COMPLIANT,
        (false, false) => NON_COMPLIANT,
    };
    let interval = &spec.evaluation_interval;
    let never = |which: &str| {
        format!(
            ". This policy will not be evaluated again due to spec.evaluationInterval.{which} being set to \"never\"."
        )
    };
    let mut message = verdict.message.clone();
    if verdict.compliant && interval.compliant == "never" {
        message.push_str(&never("compliant"));
    } else if !verdict.compliant && interval.noncompliant == "never" {
        message.push_str(&never("noncompliant"));
    }
    while status.compliancy_details.len() <= index {
        status.compliancy_details.push(TemplateStatus::default());
    }
    let detail = &mut status.compliancy_details[index];
    let mut news = detail.compliant != state;
    detail.compliant = state.into();
    let condition = TemplateCondition {
        kind: if state == COMPLIANT { "notification" } else { "violation" }.into(),
        status: "True".into(),
        reason: verdict.reason.clone(),
        message,
        last_transition_time: Some(seconds(now)),
    };
    let same = detail.conditions.last_mut().filter(|old| {
        (&old.status, &old.reason, &old.kind) == (&condition.status, &condition.reason, &condition.kind)
            && says_same(&old.message, &condition.message)
    });
    if let Some(old) = same {
        // What was cut is whole again until it is cut again.
        old.message = condition.message;
    } else {
        detail.conditions = vec![condition];
        news = true;
    }
    news
}

/// As [`note`], for what concerns the policy as a whole: other entries go.
pub fn note_whole(status: &mut PolicyStatus, spec: &PolicySpec, verdict: &Verdict, now: Timestamp) -> bool {
    let news = note(status, spec, 0, verdict, now);
    status.compliancy_details.truncate(1);
    news
}

/// The overall state.
pub fn overall(details: &[TemplateStatus], deleting: bool) -> &'static str {
    if deleting {
        TERMINATING
    } else if details.is_empty() {
        ""
    } else if details.iter().any(|d| d.compliant == NON_COMPLIANT) {
        NON_COMPLIANT
    } else {
        COMPLIANT
    }
}

/// What is said about the policy as a whole.
pub fn compliance_message(status: &PolicyStatus) -> String {
    if status.compliant.is_empty() {
        return "ComplianceState is still unknown".into();
    }
    let mut text = status.compliant.clone();
    for detail in &status.compliancy_details {
        text.push_str("; ");
        if let Some(condition) = detail.conditions.first() {
            text.push_str(&condition.kind);
            text.push_str(" - ");
            text.push_str(&condition.message);
        }
    }
    text
}

/// The message as events and history carry it: a person's own words if there are any, never too long.
pub fn told(spec: &PolicySpec, status: &PolicyStatus) -> String {
    let default = compliance_message(status);
    let custom = &spec.custom_message;
    let own = if status.compliant == COMPLIANT { &custom.compliant } else { &custom.noncompliant };
    let text = if own.is_empty() {
        default
    } else if own.contains("{{") {
        format!("{default} (failure processing the custom message: templates are not supported)")
    } else if own.starts_with(&format!("{}; ", status.compliant)) {
        own.clone()
    } else {
        format!("{}; {own}", status.compliant)
    };
    cut(&text, MOST_MESSAGE, CUT)
}

/// The note of the event on the policy itself.
pub fn note_text(status: &PolicyStatus) -> String {
    let messages = status.compliancy_details.iter().filter_map(|d| d.conditions.first()).map(|c| c.message.as_str());
    let text = format!("Policy status is {}: {}", status.compliant, messages.collect::<Vec<_>>().join("; "));
    cut(&text, 1024, "...")
}

/// Cuts text at a character, so that it ends with `ending` within `most` bytes.
pub fn cut(text: &str, most: usize, ending: &str) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most.saturating_sub(ending.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ending}", &text[..end])
}

/// A status ready to be written, and whether it is news to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// As it will be.
    pub status: PolicyStatus,
    /// Events are due.
    pub tell: bool,
}

/// Closes a status: so that it fits, overall state, generation, history. `changed` says whether a condition is news.
pub fn close(
    policy: &ConfigurationPolicy,
    status: PolicyStatus,
    changed: bool,
    dialect: Dialect,
    now: Timestamp,
) -> Closing {
    let mut status = bounded(policy, status);
    let generation = policy.metadata.generation.unwrap_or_default();
    let state = overall(&status.compliancy_details, policy.metadata.deletion_timestamp.is_some());
    let tell = changed || status.compliant != state || status.last_evaluated_generation != generation;
    status.compliant = state.into();
    status.last_evaluated = seconds(now);
    status.last_evaluated_generation = generation;
    if dialect == Dialect::Earlier {
        // An earlier CRD drops these; kept here, they would look like a change for ever.
        status.history.clear();
        for properties in status.related_objects.iter_mut().filter_map(|r| r.properties.as_mut()) {
            properties.matches_after_dry_run = false;
        }
    } else {
        let message = told(&policy.spec, &status);
        if tell || status.history.first().is_none_or(|last| last.message != message) {
            status.history.insert(0, HistoryEntry { last_timestamp: Some(micros(now)), message });
            status.history.truncate(MOST_HISTORY);
        }
    }
    Closing { status, tell }
}

/// Does the new status only confirm what the old one did: created or updated then, found as specified now?
pub fn confirms(before: &PolicyStatus, now: &PolicyStatus) -> bool {
    let reasons = |status: &PolicyStatus| -> Vec<String> {
        status.compliancy_details.iter().flat_map(|d| &d.conditions).map(|c| c.reason.clone()).collect()
    };
    let found = |text: &String| text == "K8s `must have` object already exists";
    let done = |text: &String| text == reason::CREATED || text == reason::UPDATED;
    before.compliant == COMPLIANT
        && now.compliant == COMPLIANT
        && before.last_evaluated_generation == now.last_evaluated_generation
        && reasons(before).iter().any(done)
        && reasons(before).iter().all(|text| done(text) || found(text))
        && reasons(now).iter().all(found)
}

/// The same apart from when it was evaluated?
pub fn alike(a: &PolicyStatus, b: &PolicyStatus) -> bool {
    let blank = |status: &PolicyStatus| PolicyStatus { last_evaluated: String::new(), ..status.clone() };
    blank(a) == blank(b)
}

/// Adds what is known of an object; a later word on the same object replaces an earlier one that differs.
pub fn relate(list: &mut Vec<RelatedObject>, entry: RelatedObject) {
    match list.iter_mut().find(|known| known.object == entry.object) {
        None => list.push(entry),
        Some(known) => {
            if known.compliant != entry.compliant || known.properties != entry.properties {
                // What one template created is not un-created by another that finds it.
                let created = |e: &RelatedObject| e.properties.as_ref().and_then(|p| p.created_by_policy) == Some(true);
                let before = Some(&*known).filter(|known| created(known)).and_then(|known| known.properties.clone());
                *known = entry;
                match (&mut known.properties, before) {
                    (Some(now), Some(before)) if now.uid == before.uid => now.created_by_policy = Some(true),
                    // It had nothing to say about who made it: it saw nothing there, and came too late to create it.
                    (now @ None, before) => *now = before,
                    _ => {}
                }
            }
        }
    }
}

/// Sorts, and keeps what the last status knew of who created an object. `fresh` uids were made in this very evaluation: what was
/// recreated stays whose it was, so it is ours only if what was there before was.
pub fn settle_related(mut new: Vec<RelatedObject>, old: &[RelatedObject], fresh: &Fresh) -> Vec<RelatedObject> {
    let place = |e: &RelatedObject| -> (String, String, String) {
        let ObjectRef { kind, metadata, .. } = &e.object;
        (kind.clone(), metadata.namespace.clone(), metadata.name.clone())
    };
    new.sort_by_key(place);
    for entry in &mut new {
        let Some(properties) = &mut entry.properties else { continue };
        if properties.created_by_policy != Some(false) {
            continue;
        }
        let before = old.iter().find(|o| o.object.same(&entry.object)).and_then(|o| o.properties.as_ref());
        let Some(before) = before else { continue };
        match fresh.get(&properties.uid) {
            Some(former) if former.as_ref() != Some(&before.uid) => {}
            Some(_) => properties.created_by_policy = before.created_by_policy.or(Some(false)),
            None => {
                properties.created_by_policy = before.created_by_policy.or(Some(false));
                if !before.uid.is_empty() {
                    properties.uid.clone_from(&before.uid);
                }
            }
        }
    }
    new
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
