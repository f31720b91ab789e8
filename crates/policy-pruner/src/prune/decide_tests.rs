use super::*;
use crate::api::{ObjectTemplate, Properties};
use serde_json::json;

fn object(name: &str) -> ObjectRef {
    ObjectRef::new("v1", "Pod", "n", name)
}
fn spec(templates: &[Value]) -> PolicySpec {
    let templates: Vec<ObjectTemplate> = templates.iter().map(|t| serde_json::from_value(t.clone()).unwrap()).collect();
    PolicySpec { object_templates: Some(templates), remediation_action: "enforce".into(), ..PolicySpec::default() }
}
fn pod(name: &str) -> Value {
    json!({"complianceType": "musthave", "objectDefinition": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "n"}}})
}
fn seen(name: &str, created: Option<bool>, uid: &str) -> RelatedObject {
    let properties =
        created.map(|c| Properties { created_by_policy: Some(c), uid: uid.into(), ..Properties::default() });
    RelatedObject { object: object(name), properties, ..RelatedObject::default() }
}
fn live(uid: &str) -> Value {
    json!({"metadata": {"uid": uid}})
}
fn candidate(created: bool, uids: &[&str], managed: bool) -> Candidate {
    Candidate { object: object("a"), created, uids: uids.iter().map(|u| (*u).to_owned()).collect(), managed }
}

#[test]
fn the_table_of_pruning() {
    let delete = || Verdict::Delete("1".into());
    for (prune, recorded, upstream, verdict) in [
        (Prune::IfCreated, candidate(true, &["1"], true), false, delete()),
        (Prune::IfCreated, candidate(true, &["0"], true), false, Verdict::Keep(Kept::Replaced)),
        (Prune::IfCreated, candidate(true, &[], true), false, Verdict::Keep(Kept::Replaced)),
        (Prune::IfCreated, candidate(false, &[], true), false, Verdict::Keep(Kept::NotCreated)),
        (Prune::IfCreated, candidate(false, &[], true), true, Verdict::Keep(Kept::NotCreated)),
        (Prune::All, candidate(true, &["0"], true), false, delete()),
        (Prune::All, candidate(false, &[], true), false, delete()),
        (Prune::All, candidate(false, &[], false), false, Verdict::Keep(Kept::OnlyMatched)),
        (Prune::All, candidate(false, &[], false), true, delete()),
        (Prune::None, candidate(true, &["1"], true), true, Verdict::Keep(Kept::NotCreated)),
    ] {
        assert_eq!(decide(prune, &recorded, None, Some(&live("1")), upstream), verdict, "{prune:?} {recorded:?}");
        assert_eq!(decide(prune, &recorded, None, None, upstream), Verdict::Gone);
    }
}
#[test]
fn what_is_ending_is_waited_for_only_if_it_would_be_deleted() {
    let ending = json!({"metadata": {"uid": "1", "deletionTimestamp": "2026-11-16T08:00:00Z"}});
    assert_eq!(decide(Prune::IfCreated, &candidate(true, &["1"], true), None, Some(&ending), false), Verdict::Ending);
    let foreign = candidate(false, &[], true);
    assert_eq!(decide(Prune::IfCreated, &foreign, None, Some(&ending), false), Verdict::Keep(Kept::NotCreated));
}
#[test]
fn a_new_uid_is_ours_only_if_ledger_and_mark_agree() {
    let mut ledger = Ledger::new("p", "u", [7; 16]);
    let marked = json!({"metadata": {"uid": "9", "managedFields": [{"manager": ledger.manager()}]}});
    let recorded = candidate(true, &["1"], true);
    let judge = |ledger: &Ledger, live: &Value| decide(Prune::IfCreated, &recorded, Some(ledger), Some(live), false);
    assert_eq!(judge(&ledger, &marked), Verdict::Keep(Kept::Replaced), "the mark alone does not do");
    ledger.put(&object("a"), true, "");
    assert_eq!(judge(&ledger, &marked), Verdict::Delete("9".into()));
    assert_eq!(judge(&ledger, &live("9")), Verdict::Keep(Kept::Replaced), "the ledger alone does not do");
}
#[test]
fn what_delete_all_takes_is_not_for_that_our_own() {
    let replaced = candidate(true, &["0"], true);
    assert_eq!(decide(Prune::All, &replaced, None, Some(&live("1")), false), Verdict::Delete("1".into()));
    assert!(!is_own(&replaced, None, Some(&live("1"))));
    assert!(is_own(&candidate(true, &["1"], true), None, Some(&live("1"))));
    assert!(!is_own(&candidate(false, &["1"], true), None, Some(&live("1"))));
}
#[test]
fn candidates_come_from_status_and_ledger_without_what_is_still_wanted() {
    let mut ledger = Ledger::new("p", "u", [7; 16]);
    ledger.put(&object("b"), true, "2");
    ledger.put(&object("c"), true, "");
    let old = [seen("a", Some(false), "1"), seen("b", None, ""), seen("-", None, ""), seen("d", Some(true), "4")];
    let found = candidates(&spec(&[pod("a")]), &old, Some(&ledger), &[object("d")]);
    let names: Vec<_> = found.iter().map(|c| (c.object.metadata.name.as_str(), c.created, c.managed)).collect();
    assert_eq!(names, [("a", false, true), ("b", true, true), ("c", true, true)]);
    assert_eq!(found[1].uids, ["2"]);
}
#[test]
fn only_matched_objects_are_told_from_named_ones() {
    let template = |metadata: Value| json!({"complianceType": "musthave", "objectDefinition": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}});
    let matching = template(json!({}));
    let mut selecting = matching.clone();
    selecting["objectSelector"] = json!({"matchLabels": {}});
    // given an object that is there, `a` in namespace `n`, and what the policy asks for beside matching it
    for (beside, include, managed) in [
        (matching.clone(), "*", false),
        // Which ones were selected the ledger knows; the spec says nothing about this one.
        (selecting, "*", false),
        (template(json!({"name": "a", "namespace": "n"})), "*", true),
        (template(json!({"name": "a", "namespace": "m"})), "*", false),
        (template(json!({"name": "a"})), "*", true),
        (template(json!({"name": "a"})), "m*", false),
        (template(json!({"name": "b"})), "*", false),
    ] {
        let mut spec = spec(&[matching.clone(), beside.clone()]);
        spec.namespace_selector = serde_json::from_value(json!({ "include": [include] })).unwrap();
        let found = candidates(&spec, &[seen("a", Some(false), "1")], None, &[]);
        assert_eq!(found[0].managed, managed, "{beside} {include}");
    }
    // What was selected is in the ledger.
    let mut ledger = Ledger::new("p", "u", [7; 16]);
    ledger.put(&object("a"), false, "");
    assert!(candidates(&spec(&[matching]), &[seen("a", Some(false), "1")], Some(&ledger), &[])[0].managed);
}
#[test]
fn what_has_no_namespace_is_named_whatever_namespace_is_written_there() {
    let role = |metadata: Value| json!({"complianceType": "musthave", "objectDefinition": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata}});
    let object = ObjectRef::new("rbac.authorization.k8s.io/v1", "ClusterRole", "", "a");
    let old = [RelatedObject { object, ..RelatedObject::default() }];
    for metadata in [json!({"name": "a"}), json!({"name": "a", "namespace": "n"})] {
        assert!(candidates(&spec(&[role(metadata.clone())]), &old, None, &[])[0].managed, "{metadata}");
    }
}
#[test]
fn another_version_of_an_object_is_the_same_object() {
    let old =
        [RelatedObject { object: ObjectRef::new("apps/v1beta1", "Deployment", "n", "a"), ..RelatedObject::default() }];
    let still = [ObjectRef::new("apps/v1", "Deployment", "n", "a")];
    assert!(candidates(&spec(&[]), &old, None, &still).is_empty());
}
#[test]
fn ownership_by_ledger() {
    let mut ledger = Ledger::new("p", "u", [7; 16]);
    assert_eq!(created(&ledger, &object("a"), "1", None), Some(false));
    ledger.put(&object("a"), true, "");
    assert_eq!(created(&ledger, &object("a"), "1", None), None);
    assert_eq!(created(&ledger, &object("a"), "1", Some(&live("1"))), Some(false));
    ledger.put(&object("a"), true, "1");
    assert_eq!(created(&ledger, &object("a"), "1", None), Some(true));
}
#[test]
fn namespaces_go_after_what_is_in_them_and_definitions_last() {
    let crd = ObjectRef::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "x");
    assert_eq!([rank(&object("a")), rank(&ObjectRef::new("v1", "Namespace", "", "n")), rank(&crd)], [0, 1, 2]);
}
#[test]
fn only_enforced_policies_require() {
    let mut asks = spec(&[pod("a")]);
    let known = [seen("a", Some(true), "1"), seen("b", Some(true), "2"), seen("a", None, "")];
    let found = required(&asks, &known);
    assert!(found.iter().any(|o| o.same(&object("a"))) && !found.iter().any(|o| o.metadata.name == "b"));
    asks.remediation_action = "inform".into();
    assert!(required(&asks, &known).is_empty());
    let forbids = json!({"complianceType": "mustnothave", "objectDefinition": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}});
    assert!(required(&spec(&[forbids]), &known).is_empty());
}

#[test]
fn a_copied_text_of_a_bare_object_is_not_ours_once_the_uid_is_known() {
    let object = ObjectRef::new("v1", "ServiceAccount", "n", "x");
    let mut ledger = Ledger::new("p", "u", [7; 16]);
    ledger.put(&object, true, "");
    let copy = json!({"metadata": {"uid": "2", "generateName": format!("{}-", ledger.manager())}});
    assert_eq!(created(&ledger, &object, "2", Some(&copy)), Some(true), "killed before the uid was written down");
    ledger.put(&object, true, "1");
    assert_eq!(created(&ledger, &object, "2", Some(&copy)), Some(false));
    let candidate = Candidate { object, created: true, uids: vec!["1".into()], managed: true };
    assert_eq!(decide(Prune::IfCreated, &candidate, Some(&ledger), Some(&copy), false), Verdict::Keep(Kept::Replaced));
}
