//! Status is written once per pass, and only if it changes anything.
use crate::conditions::{self, Scene, Statement};
use crate::engine::estate::Ids;
use crate::engine::owner::{OwnerApi, OwnerView, Patched};
use crate::engine::report::{Note, Progress, Report};
use crate::names::{self, reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

/// What a controller wants in status beside what the report says.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// Name of the controller.
    pub controller: &'a str,
    /// The generation the pass decided on. Not that of the report's view, which may be newer than the decision.
    pub generation: i64,
    /// Other fields of status, merged; `null` takes one off. `observedGeneration` is added here.
    pub fields: &'a Value,
    /// `.status` as last seen, to leave out a write that changes nothing. Without it, fields are always written.
    pub current: Option<&'a Value>,
    /// Why the owner is paused, if it is.
    pub paused: Option<&'a str>,
    /// The controller's own conditions.
    pub own: &'a [Statement],
    /// Condition types never lowered once they were True.
    pub sticky: &'a [&'a str],
}
impl<'a> Wish<'a> {
    /// Fields only.
    pub fn new(controller: &'a str, generation: i64, fields: &'a Value) -> Self {
        Wish { controller, generation, fields, current: None, paused: None, own: &[], sticky: &[] }
    }
    fn scene(&self, now: Timestamp) -> Scene<'a> {
        Scene {
            controller: self.controller,
            generation: self.generation,
            now,
            paused: self.paused,
            own: self.own,
            sticky: self.sticky,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// It already says so, or there is nothing to write on.
    Unchanged,
    /// Stored; this is the owner now.
    Stored(Box<OwnerView>),
    /// Not this time; the next pass says it again.
    Later(String),
}

/// The conditions after a pass. Pure; [`conditions::compose`] with nothing of the controller's own.
pub fn conditions(
    report: &Report,
    old: &[Condition],
    generation: i64,
    controller: &str,
    now: Timestamp,
) -> Vec<Condition> {
    conditions::compose(report, old, &Scene::new(controller, generation, now))
}

/// The report of a pass over an object that does not fit its own type.
pub fn invalid(view: &OwnerView, why: &str) -> Report {
    let message = format!("the object does not fit its type: {why}");
    Report {
        progress: Progress::Blocked { reason: reason::INVALID_OBJECT, message: message.clone() },
        view: Some(view.clone()),
        standing: Vec::new(),
        notes: vec![Note { warning: true, reason: reason::INVALID_OBJECT, message }],
        kept: Vec::new(),
        mirror: None,
        ids: Ids::new(),
    }
}

/// Writes conditions and fields on the report's view. After a conflict: one uncached read, composed anew, one more try.
pub async fn write(api: &dyn OwnerApi, report: &Report, wish: &Wish<'_>, now: Timestamp) -> Written {
    let Some(view) = &report.view else { return Written::Unchanged };
    if let Progress::Gone | Progress::Stale(_) = report.progress {
        return Written::Unchanged;
    }
    let fields = with_generation(wish);
    let fields_change = wish.current.is_none_or(|current| merge_changes(current, &fields));
    match attempt(api, report, view, wish, &fields, fields_change, now).await {
        Ok(written) => written,
        Err(()) => match api.get(&view.namespace, &view.name).await {
            Ok(Some(newer)) if newer.uid == view.uid && renamed(report, &newer, wish.controller) => {
                Written::Later("another owner id was stored meanwhile".into())
            }
            Ok(Some(newer)) if newer.uid == view.uid => {
                let second = attempt(api, report, &newer, wish, &fields, fields_change, now).await;
                second.unwrap_or_else(|()| Written::Later("changed twice while it was written".into()))
            }
            Ok(_) => Written::Unchanged,
            Err(error) => Written::Later(error.to_string()),
        },
    }
}

/// Does the owner carry another id than the one this report is about? Two processes may have minted one each, between two edits:
/// status must know the one that was stored last.
fn renamed(report: &Report, view: &OwnerView, controller: &str) -> bool {
    let stored = view.annotations.get(&names::owner_id(controller));
    report.mirror.as_ref().zip(stored).is_some_and(|(mirror, stored)| *stored != mirror.owner.to_string())
}

/// `Err` is a conflict.
async fn attempt(
    api: &dyn OwnerApi,
    report: &Report,
    view: &OwnerView,
    wish: &Wish<'_>,
    fields: &Value,
    fields_change: bool,
    now: Timestamp,
) -> Result<Written, ()> {
    let new = conditions::compose(report, &view.conditions, &wish.scene(now));
    if !fields_change && !conditions::differ(&view.conditions, &new) {
        return Ok(Written::Unchanged);
    }
    match api.patch_status(view, &new, fields).await {
        Patched::Stored(view) => Ok(Written::Stored(view)),
        Patched::Gone => Ok(Written::Unchanged),
        Patched::Conflict => Err(()),
        Patched::Refused(why) | Patched::Unknown(why) => Ok(Written::Later(why)),
    }
}

fn with_generation(wish: &Wish<'_>) -> Value {
    let mut fields = wish.fields.as_object().cloned().unwrap_or_default();
    fields.entry("observedGeneration").or_insert_with(|| json!(wish.generation));
    Value::Object(fields)
}

/// Would this merge patch (RFC 7396) change anything?
fn merge_changes(current: &Value, patch: &Value) -> bool {
    let empty = Map::new();
    match patch {
        Value::Object(patch) => {
            let current_is_object = current.is_object();
            let fields = current.as_object().unwrap_or(&empty);
            let changes = patch.iter().any(|(key, value)| match (fields.get(key), value) {
                (None, Value::Null) => false,
                (None, _) | (Some(_), Value::Null) => true,
                (Some(old), new) => merge_changes(old, new),
            });
            changes || (!current_is_object && !current.is_null())
        }
        other => current != other,
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
