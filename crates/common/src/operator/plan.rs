//! What would be created, changed and deleted, as lines for people. What those are, [`crate::engine::preview`] finds out by
//! running the engine itself.
use super::Row;
use crate::engine::preview::{Act, Preview};
use crate::engine::report::Progress;
use serde::Serialize;

/// One line of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Namespace and name of the owner.
    pub owner: String,
    /// `create`, `mark`, `adopt`, `release`, `change` or `delete`; `blocked` or `failed` if the plan ends there.
    pub verb: &'static str,
    /// The slot.
    pub slot: String,
    /// The thing, if it is there already.
    pub id: String,
    /// What would be asked for, or why nothing can be.
    pub detail: String,
}
impl Row for Step {
    const HEADS: &'static [&'static str] = &["OWNER", "VERB", "SLOT", "ID", "DETAIL"];
    fn cells(&self) -> Vec<String> {
        vec![self.owner.clone(), self.verb.to_owned(), self.slot.clone(), self.id.clone(), self.detail.clone()]
    }
}

impl Step {
    /// An owner whose plan cannot even begin.
    pub fn blocked(owner: &str, why: &str) -> Self {
        let (slot, id) = (String::new(), String::new());
        Step { owner: owner.to_owned(), verb: "blocked", slot, id, detail: why.to_owned() }
    }
}

/// The lines of one owner's plan; none if everything is as wanted.
pub fn steps(owner: &str, preview: &Preview) -> Vec<Step> {
    let step = |verb, slot: &str, id: &str, detail: String| {
        let (owner, slot, id) = (owner.to_owned(), slot.to_owned(), id.to_owned());
        Step { owner, verb, slot, id, detail }
    };
    let of = |act: &Act| match act {
        Act::Create { slot, params } => step("create", slot, "", params.to_string()),
        Act::Mark { slot, id, adopted: true } => step("adopt", slot, id, String::new()),
        Act::Mark { slot, id, adopted: false } => step("mark", slot, id, String::new()),
        Act::Release { slot, id } => step("release", slot, id, String::new()),
        Act::Change { slot, what } => step("change", slot, "", what.clone()),
        Act::Delete { slot, id } => step("delete", slot, id, String::new()),
    };
    let end = match &preview.end.progress {
        Progress::Blocked { reason, message } => Some(step("blocked", "", "", format!("{reason}: {message}"))),
        Progress::Failed(fault) => Some(step("failed", "", "", fault.to_string())),
        Progress::Done | Progress::Gone | Progress::Waiting { .. } | Progress::Stale(_) => None,
    };
    preview.acts.iter().map(of).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::estate::Fault;
    use crate::engine::report::Report;
    use serde_json::json;

    fn preview(acts: Vec<Act>, progress: Progress) -> Preview {
        let end = Report {
            progress,
            view: None,
            standing: vec![],
            notes: vec![],
            kept: vec![],
            mirror: None,
            ids: [].into(),
        };
        Preview { acts, end }
    }

    #[test]
    fn a_converged_owner_has_no_lines() {
        assert_eq!(steps("ns/a", &preview(vec![], Progress::Done)), []);
    }
    #[test]
    fn every_act_is_a_line_and_so_is_what_stops_the_plan() {
        let (slot, id) = ("disk-a".to_owned(), "disk-1".to_owned());
        let acts = vec![
            Act::Create { slot: slot.clone(), params: json!({"size_gb": 1}) },
            Act::Mark { slot: slot.clone(), id: id.clone(), adopted: true },
            Act::Mark { slot: slot.clone(), id: id.clone(), adopted: false },
            Act::Release { slot: slot.clone(), id: id.clone() },
            Act::Change { slot: slot.clone(), what: "flavor".into() },
            Act::Delete { slot, id },
        ];
        let verbs = |progress| -> Vec<_> {
            steps("ns/a", &preview(acts.clone(), progress)).into_iter().map(|step| step.verb).collect()
        };
        let acts = ["create", "adopt", "mark", "release", "change", "delete"];
        assert_eq!(verbs(Progress::Done), acts);
        let fault = Progress::Failed(Fault::Denied("disks.create".into()));
        assert_eq!(verbs(fault), [&acts[..], &["failed"]].concat());
    }
}
