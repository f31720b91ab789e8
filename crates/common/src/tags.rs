//! The difference between the tags a thing should have and those it has. Only keys we own are ever touched.
use std::collections::{BTreeMap, BTreeSet};

/// What to change. Keys outside the owned ones are in neither part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagPlan {
    /// To set, over whatever value is there.
    pub set: BTreeMap<String, String>,
    /// To take off.
    pub remove: BTreeSet<String>,
}
impl TagPlan {
    /// Nothing to do.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }
}

/// What brings the owned keys in `actual` in line with `desired`. A desired key that is not owned is left out: a plan
/// can then never overwrite a stranger's tag, whatever the spec asks for.
pub fn difference(
    desired: &BTreeMap<String, String>,
    actual: &BTreeMap<String, String>,
    owns: impl Fn(&str) -> bool,
) -> TagPlan {
    let wrong = |key: &str, value: &str| owns(key) && actual.get(key).map(String::as_str) != Some(value);
    TagPlan {
        set: desired.iter().filter(|(k, v)| wrong(k, v)).map(|(k, v)| (k.clone(), v.clone())).collect(),
        remove: actual.keys().filter(|k| owns(k) && !desired.contains_key(*k)).cloned().collect(),
    }
}

/// `actual` after the plan was carried out.
#[must_use]
pub fn applied(mut actual: BTreeMap<String, String>, plan: &TagPlan) -> BTreeMap<String, String> {
    actual.retain(|key, _| !plan.remove.contains(key));
    actual.extend(plan.set.clone());
    actual
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }
    fn ours(key: &str) -> bool {
        key.starts_with('o')
    }

    #[test]
    fn sets_what_is_missing_or_wrong_and_takes_off_what_is_no_longer_wanted() {
        let actual = tags(&[("o-kept", "1"), ("o-wrong", "1"), ("o-old", "1"), ("theirs", "1")]);
        let desired = tags(&[("o-kept", "1"), ("o-wrong", "2"), ("o-new", "3"), ("theirs", "mine now")]);
        let plan = difference(&desired, &actual, ours);
        assert_eq!(plan.set, tags(&[("o-new", "3"), ("o-wrong", "2")]));
        assert_eq!(plan.remove, BTreeSet::from(["o-old".to_owned()]));
    }

    proptest! {
        #[test]
        fn a_plan_touches_no_foreign_tag_and_one_round_is_enough(
            desired in prop::collection::btree_map("[a-z]{1,2}", "[a-z]{0,2}", 0..12),
            actual in prop::collection::btree_map("[a-z]{1,2}", "[a-z]{0,2}", 0..12),
            owned in prop::collection::btree_set("[a-z]{1,2}", 0..12),
        ) {
            let owns = |key: &str| owned.contains(key);
            let plan = difference(&desired, &actual, owns);
            prop_assert!(plan.set.keys().chain(&plan.remove).all(|k| owned.contains(k)));

            let after = applied(actual.clone(), &plan);
            for key in desired.keys().chain(actual.keys()) {
                let wanted = if owns(key) { desired.get(key) } else { actual.get(key) };
                prop_assert_eq!(after.get(key), wanted);
            }
            prop_assert!(difference(&desired, &after, owns).is_empty());
        }
    }
}
