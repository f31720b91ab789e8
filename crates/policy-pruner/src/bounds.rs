//! A status that fits beside its policy, and says so where it had to be cut. Pure.
use crate::api::{ConfigurationPolicy, PolicyStatus, RelatedObject};
use crate::names::reason;
use crate::standing::{NON_COMPLIANT, cut};
use serde::Serialize;

/// Bytes of a policy with its status; the API server takes a million and a half.
const MOST_WHOLE: usize = 1_400_000;
/// Bytes of a status, however short its policy is.
const MOST_STATUS: usize = 1_000_000;
/// A status of so few bytes fits beside anything that fits itself.
const SMALL: usize = 50_000;
/// Bytes of a message that is cut, at most and at least.
const MESSAGE: (usize, usize) = (4096, 60);
/// How a message ends that is cut.
pub const CUT: &str = "...[truncated]";
/// How the note begins that follows the first message of a status that is cut.
const NOTE: &str = " (the status of this policy is too long, left out are ";
const ADVICE: &str = "; split the policy)";

fn size(part: &impl Serialize) -> usize {
    serde_json::to_string(part).map_or(0, |text| text.len())
}
/// A message as it was before a note was put behind it.
pub fn without_note(message: &str) -> &str {
    message.rfind(NOTE).filter(|_| message.ends_with(ADVICE)).map_or(message, |at| &message[..at])
}
/// Does the old message say the same, as far as it had room?
pub fn says_same(old: &str, new: &str) -> bool {
    let old = without_note(old);
    old == new || old.strip_suffix(CUT).is_some_and(|beginning| new.starts_with(beginning))
}

/// A status that fits: without differences, with fewer objects, with shorter messages, and at last with one message only. What is
/// pruned does not depend on it: ownership is in the ledger.
pub fn bounded(policy: &ConfigurationPolicy, mut status: PolicyStatus) -> PolicyStatus {
    for condition in status.compliancy_details.iter_mut().flat_map(|d| &mut d.conditions) {
        let whole = without_note(&condition.message).len();
        condition.message.truncate(whole);
    }
    let long = size(&status);
    if long <= SMALL {
        return status;
    }
    let most = MOST_WHOLE.saturating_sub(size(&policy.metadata) + size(&policy.spec)).clamp(SMALL, MOST_STATUS);
    if long <= most {
        return status;
    }
    let mut left_out = Vec::new();
    for properties in status.related_objects.iter_mut().filter_map(|r| r.properties.as_mut()) {
        properties.diff.clear();
    }
    left_out.push("differences".to_owned());
    if size(&status) > most {
        left_out.extend(fewer_objects(&mut status, most));
    }
    if size(&status) > most {
        left_out.extend(shorter_messages(&mut status, most));
    }
    if size(&status) > most {
        return only_one_message(policy, status);
    }
    if let Some(condition) = status.compliancy_details.first_mut().and_then(|d| d.conditions.last_mut()) {
        condition.message = format!("{}{NOTE}{}{ADVICE}", condition.message, left_out.join(", "));
    }
    status
}
/// As many as there is room for beside the messages, and for a quarter of the room even if there is none.
fn fewer_objects(status: &mut PolicyStatus, most: usize) -> Option<String> {
    let objects = std::mem::take(&mut status.related_objects);
    let room = most.saturating_sub(size(status)).max(most / 4);
    let (all, mut used) = (objects.len(), 0);
    let fits = |entry: &RelatedObject| {
        used += size(entry) + 1;
        used <= room
    };
    status.related_objects = objects.into_iter().take_while(fits).collect();
    let left = all - status.related_objects.len();
    (left > 0).then(|| format!("{left} of {all} objects"))
}
/// All messages together get what is left of the room.
fn shorter_messages(status: &mut PolicyStatus, most: usize) -> Option<String> {
    let messages = |status: &PolicyStatus| -> usize {
        status.compliancy_details.iter().flat_map(|d| &d.conditions).map(|c| size(&c.message)).sum()
    };
    let room = most.saturating_sub(size(status).saturating_sub(messages(status)));
    // Some air: what is escaped is longer than it looks, and the note comes, too.
    let each = (room * 9 / 10 / status.compliancy_details.len().max(1)).min(MESSAGE.0);
    if each < MESSAGE.1 {
        return None;
    }
    for condition in status.compliancy_details.iter_mut().flat_map(|d| &mut d.conditions) {
        condition.message = cut(&condition.message, each, CUT);
    }
    Some("the ends of messages".into())
}
fn only_one_message(policy: &ConfigurationPolicy, mut status: PolicyStatus) -> PolicyStatus {
    let templates = policy.spec.templates().len();
    let mut detail = status.compliancy_details.into_iter().next().unwrap_or_default();
    detail.compliant = NON_COMPLIANT.into();
    for condition in &mut detail.conditions {
        condition.kind = "violation".into();
        condition.reason = reason::INVALID.into();
        condition.message = format!(
            "what is to be said about {templates} object templates does not fit into a status: split the policy"
        );
    }
    status.compliancy_details = vec![detail];
    status.related_objects.clear();
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ObjectRef, PolicySpec, Properties, TemplateCondition, TemplateStatus};
    use proptest::prelude::*;

    fn policy() -> ConfigurationPolicy {
        ConfigurationPolicy::new("p", PolicySpec::default())
    }
    fn entry(n: usize, diff: usize) -> RelatedObject {
        RelatedObject {
            object: ObjectRef::new("v1", "Pod", "n", &format!("{n}{}", "x".repeat(200))),
            properties: Some(Properties { diff: "d".repeat(diff), ..Properties::default() }),
            ..RelatedObject::default()
        }
    }
    fn status(templates: usize, message: usize, objects: usize, diff: usize) -> PolicyStatus {
        let condition = TemplateCondition { message: "m".repeat(message), ..TemplateCondition::default() };
        let detail = TemplateStatus { conditions: vec![condition], ..TemplateStatus::default() };
        PolicyStatus {
            compliancy_details: vec![detail; templates],
            related_objects: (0..objects).map(|n| entry(n, diff)).collect(),
            ..PolicyStatus::default()
        }
    }
    fn message(status: &PolicyStatus) -> &str {
        &status.compliancy_details[0].conditions[0].message
    }

    #[test]
    fn what_fits_stays_and_what_does_not_says_so() {
        let small = status(2, 100, 10, 100);
        assert_eq!(bounded(&policy(), small.clone()), small);
        let diffs = bounded(&policy(), status(1, 100, 100, 20_000));
        assert_eq!(diffs.related_objects.len(), 100);
        assert!(
            message(&diffs)
                .ends_with(" (the status of this policy is too long, left out are differences; split the policy)")
        );
        let objects = bounded(&policy(), status(1, 100, 10_000, 0));
        let left = 10_000 - objects.related_objects.len();
        assert!(
            message(&objects).contains(&format!("differences, {left} of 10000 objects; split")),
            "{}",
            message(&objects)
        );
        let messages = bounded(&policy(), status(800, 1500, 3000, 0));
        assert!(message(&messages).contains("the ends of messages; split") && !messages.related_objects.is_empty());
        let hopeless = bounded(&policy(), status(15_000, 100, 1, 0));
        assert!(hopeless.compliancy_details.len() == 1 && message(&hopeless).ends_with("split the policy"));
        assert_eq!(hopeless.compliancy_details[0].compliant, NON_COMPLIANT);
    }
    #[test]
    fn to_cut_again_changes_nothing_and_is_no_news() {
        for long in [status(1, 100, 100, 20_000), status(800, 1500, 3000, 0)] {
            let first = bounded(&policy(), long.clone());
            assert_eq!(bounded(&policy(), long.clone()), first);
            assert!(says_same(message(&first), message(&long)));
            assert!(!says_same(message(&first), "another"));
        }
        assert!(says_same("a", "a") && !says_same("a", "ab"));
    }
    #[test]
    fn a_long_policy_leaves_less_room() {
        let mut long = policy();
        long.metadata.annotations = Some([("a".to_owned(), "x".repeat(1_000_000))].into());
        let wide = status(1, 100, 1500, 0);
        assert_eq!(bounded(&policy(), wide.clone()), wide);
        assert!(size(&bounded(&long, wide)) <= 400_200);
    }
    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn a_status_always_fits(templates in 0_usize..600, message in 0_usize..3000, objects in 0_usize..3000, diff in 0_usize..300) {
            let fits = bounded(&policy(), status(templates, message, objects, diff));
            prop_assert!(size(&fits) <= MOST_STATUS + 300);
        }
    }
}
