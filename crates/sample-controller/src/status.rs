//! The fields of status beside the conditions. Pure.
use common::engine::report::{Progress, Report, Standing};
use serde_json::{Map, Value, json};

/// What is merged into status after a pass.
pub fn fields(report: &Report) -> Value {
    let mut fields = Map::new();
    // Set once and never lowered: Cluster API reads it as "was there once".
    if report.progress == Progress::Done {
        fields.insert("initialization".to_owned(), json!({"provisioned": true}));
    }
    // A pass that ended before it looked knows nothing about resources, which is not the same as "none".
    if !report.standing.is_empty() || report.progress == Progress::Done {
        let ready = report.standing.iter().filter(|it| it.state == READY).count();
        fields.insert("summary".to_owned(), json!(format!("{ready}/{}", report.standing.len())));
        fields.insert("resources".to_owned(), report.standing.iter().map(resource).collect());
    }
    Value::Object(fields)
}

const READY: &str = "ready";

fn resource(standing: &Standing) -> Value {
    let mut resource = json!({"slot": standing.slot, "state": standing.state});
    if let Some(id) = &standing.id {
        resource["id"] = json!(id);
    }
    if !standing.message.is_empty() {
        resource["message"] = json!(standing.message);
    }
    resource
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::SampleOwnerStatus;
    use std::collections::BTreeMap;

    fn report(progress: Progress, standing: &[(&str, Option<&str>, &'static str)]) -> Report {
        let standing = standing.iter().map(|(slot, id, state)| Standing {
            slot: slot.parse().unwrap(),
            id: id.map(str::to_owned),
            state,
            message: String::new(),
        });
        let (standing, ids) = (standing.collect(), BTreeMap::new());
        Report { progress, view: None, standing, notes: vec![], kept: vec![], mirror: None, ids }
    }
    fn waiting() -> Progress {
        Progress::Waiting { reason: "Progressing", message: String::new(), again: std::time::Duration::ZERO }
    }

    #[test]
    fn a_finished_pass_says_provisioned_and_counts_what_is_ready() {
        let fields = fields(&report(Progress::Done, &[("disk-a", Some("disk-1"), "ready")]));
        let status: SampleOwnerStatus = serde_json::from_value(fields).unwrap();
        assert!(status.initialization.is_some_and(|it| it.provisioned));
        assert_eq!(status.summary.as_deref(), Some("1/1"));
        assert_eq!(status.resources[0].id.as_deref(), Some("disk-1"));
    }
    #[test]
    fn work_under_way_neither_raises_nor_lowers_provisioned() {
        let fields = fields(&report(waiting(), &[("disk-a", None, "creating"), ("disk-b", Some("x"), "ready")]));
        assert_eq!(fields.get("initialization"), None);
        assert_eq!(fields["summary"], "1/2");
    }
    #[test]
    fn a_pass_that_saw_nothing_leaves_the_list_of_resources_as_it_was() {
        assert_eq!(fields(&report(waiting(), &[])), json!({}));
    }
}
