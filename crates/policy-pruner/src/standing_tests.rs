use super::*;
use crate::api::Properties;

fn verdict(compliant: bool, message: &str) -> Verdict {
    Verdict { compliant, reason: "r".into(), message: message.into() }
}
fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}
fn now() -> Timestamp {
    at("2026-11-16T08:00:00Z")
}
fn related(name: &str, created: Option<bool>, uid: &str) -> RelatedObject {
    RelatedObject {
        compliant: COMPLIANT.into(),
        object: ObjectRef::new("v1", "Pod", "n", name),
        properties: created.map(|c| Properties {
            created_by_policy: Some(c),
            uid: uid.into(),
            ..Properties::default()
        }),
        reason: String::new(),
    }
}

#[test]
fn a_condition_changes_only_with_what_it_says() {
    let (mut status, spec) = (PolicyStatus::default(), PolicySpec::default());
    assert!(note(&mut status, &spec, 0, &verdict(true, "m"), now()));
    let first = status.clone();
    assert!(!note(&mut status, &spec, 0, &verdict(true, "m"), at("2026-11-16T09:00:00Z")));
    assert_eq!(status, first, "the time of the last change stays");
    assert!(note(&mut status, &spec, 0, &verdict(false, "m"), now()));
    assert_eq!(status.compliancy_details[0].conditions[0].kind, "violation");
}
#[test]
fn earlier_entries_are_unknown_until_told() {
    let (mut status, spec) = (PolicyStatus::default(), PolicySpec::default());
    note(&mut status, &spec, 1, &verdict(true, "m"), now());
    assert_eq!(status.compliancy_details[0].compliant, "");
    assert_eq!(overall(&status.compliancy_details, false), COMPLIANT);
}
#[test]
fn never_is_said_in_the_message() {
    let mut spec = PolicySpec::default();
    spec.evaluation_interval.compliant = "never".into();
    let mut status = PolicyStatus::default();
    note(&mut status, &spec, 0, &verdict(true, "m"), now());
    assert_eq!(
        status.compliancy_details[0].conditions[0].message,
        "m. This policy will not be evaluated again due to spec.evaluationInterval.compliant being set to \"never\"."
    );
}
#[test]
fn the_whole_policy_has_one_entry() {
    let (mut status, spec) = (PolicyStatus::default(), PolicySpec::default());
    note(&mut status, &spec, 2, &verdict(true, "m"), now());
    let cleanup = Verdict { compliant: false, reason: reason::CLEANUP.into(), message: "x".into() };
    assert!(note_whole(&mut status, &spec, &cleanup, now()));
    assert_eq!(status.compliancy_details.len(), 1);
    assert_eq!(status.compliancy_details[0].compliant, TERMINATING);
}
#[test]
fn the_overall_state() {
    let detail = |state: &str| TemplateStatus { compliant: state.into(), ..TemplateStatus::default() };
    assert_eq!(overall(&[], false), "");
    assert_eq!(overall(&[detail(COMPLIANT), detail(NON_COMPLIANT)], false), NON_COMPLIANT);
    assert_eq!(overall(&[detail(COMPLIANT), detail("")], false), COMPLIANT);
    assert_eq!(overall(&[detail(COMPLIANT)], true), TERMINATING);
}
#[test]
fn messages_are_joined_and_cut() {
    let (mut status, spec) = (PolicyStatus::default(), PolicySpec::default());
    assert_eq!(compliance_message(&status), "ComplianceState is still unknown");
    note(&mut status, &spec, 0, &verdict(true, "one"), now());
    note(&mut status, &spec, 1, &verdict(false, "two"), now());
    status.compliant = NON_COMPLIANT.into();
    assert_eq!(compliance_message(&status), "NonCompliant; notification - one; violation - two");
    note(&mut status, &spec, 1, &verdict(false, &"x".repeat(5000)), now());
    let text = told(&spec, &status);
    assert!(text.len() == 4096 && text.ends_with(CUT));
}
#[test]
fn text_is_cut_between_characters() {
    assert_eq!(cut("äöü", 5, "."), "äö.");
    assert_eq!(cut("abc", 3, "."), "abc");
}
#[test]
fn a_persons_own_words_come_behind_the_state() {
    let mut spec = PolicySpec::default();
    spec.custom_message.noncompliant = "call me".into();
    let status = PolicyStatus { compliant: NON_COMPLIANT.into(), ..PolicyStatus::default() };
    assert_eq!(told(&spec, &status), "NonCompliant; call me");
    spec.custom_message.noncompliant = "{{ .X }}".into();
    assert!(told(&spec, &status).contains("failure processing the custom message"));
}
#[test]
fn one_entry_of_history_per_change_and_per_generation() {
    let mut policy = ConfigurationPolicy::default();
    policy.metadata.generation = Some(1);
    let mut status = PolicyStatus::default();
    note(&mut status, &policy.spec, 0, &verdict(true, "m"), now());
    let first = close(&policy, status, true, Dialect::Current, now());
    assert!(first.tell && first.status.history.len() == 1);
    let same = close(&policy, first.status.clone(), false, Dialect::Current, now());
    assert!(!same.tell && same.status.history.len() == 1 && alike(&same.status, &first.status));
    policy.metadata.generation = Some(2);
    let next = close(&policy, first.status, false, Dialect::Current, now());
    assert!(next.tell && next.status.history.len() == 2);
    let mut many = next.status;
    for _ in 0..20 {
        many = close(&policy, many, true, Dialect::Current, now()).status;
    }
    assert_eq!(many.history.len(), 10);
    assert!(close(&policy, many, true, Dialect::Earlier, now()).status.history.is_empty());
}
#[test]
fn found_after_created_is_only_a_confirmation() {
    let with = |state: &str, reason: &str| {
        let condition = TemplateCondition { reason: reason.into(), ..TemplateCondition::default() };
        let detail =
            TemplateStatus { compliant: state.into(), conditions: vec![condition], ..TemplateStatus::default() };
        PolicyStatus { compliant: state.into(), compliancy_details: vec![detail], ..PolicyStatus::default() }
    };
    let found = with(COMPLIANT, "K8s `must have` object already exists");
    assert!(confirms(&with(COMPLIANT, reason::CREATED), &found));
    assert!(!confirms(&found, &found) && !confirms(&with(NON_COMPLIANT, "x"), &found));
    assert!(!confirms(&with(COMPLIANT, reason::CREATED), &with(NON_COMPLIANT, "x")));
}
#[test]
fn who_created_an_object_is_remembered() {
    let old = [related("a", Some(true), "1"), related("b", Some(false), "2")];
    let new = settle_related(vec![related("b", Some(false), "9"), related("a", Some(false), "8")], &old, &Fresh::new());
    let names: Vec<&str> = new.iter().map(|e| e.object.metadata.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let a = new[0].properties.as_ref().unwrap();
    assert_eq!((a.created_by_policy, a.uid.as_str()), (Some(true), "1"), "recreated by somebody: the old uid stays");
    let created = settle_related(vec![related("a", Some(true), "8")], &old, &Fresh::new());
    assert_eq!(created[0].properties.as_ref().unwrap().uid, "8");
    let recreated = |former: &str| {
        let fresh = Fresh::from([("8".to_owned(), Some(former.to_owned()))]);
        settle_related(vec![related("a", Some(false), "8")], &old, &fresh)[0].properties.clone().unwrap()
    };
    let a = recreated("1");
    assert_eq!((a.created_by_policy, a.uid.as_str()), (Some(true), "8"), "recreated by us: the new uid counts");
    let a = recreated("7");
    assert_eq!(
        (a.created_by_policy, a.uid.as_str()),
        (Some(false), "8"),
        "it was somebody else's before, and stays so"
    );
}
#[test]
fn a_second_template_does_not_take_the_first_ones_creation_away() {
    let mut list = vec![related("a", Some(true), "1")];
    relate(&mut list, related("a", Some(false), "1"));
    assert_eq!(list[0].properties.as_ref().unwrap().created_by_policy, Some(true));
    relate(&mut list, related("a", Some(false), "2"));
    assert_eq!(list[0].properties.as_ref().unwrap().created_by_policy, Some(false));
}
#[test]
fn what_one_template_created_stays_so_if_another_came_too_late_to_create_it() {
    let mut list = vec![related("a", Some(true), "1")];
    let late = RelatedObject { compliant: NON_COMPLIANT.into(), ..related("a", None, "") };
    relate(&mut list, late.clone());
    assert_eq!(list, [RelatedObject { compliant: NON_COMPLIANT.into(), ..related("a", Some(true), "1") }]);
    // What nobody created has nothing to keep.
    let mut list = vec![related("a", Some(false), "1")];
    relate(&mut list, late.clone());
    assert_eq!(list, [late]);
}
