//! One named object that is there: compare, ask a dry run where comparing cannot tell, mend.
use super::difference::{self, Place};
use super::rivals::{self, Rivals};
use super::templates::Ready;
use super::{Ground, Results};
use crate::api::ObjectRef;
use crate::cluster::kinds::Mapping;
use crate::cluster::objects::Deleted;
use crate::cluster::wire::Trouble;
use crate::compare::keys::{self, Outcome};
use crate::dialect::Dialect;
use crate::prune::mark;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::time::Duration;

/// Somebody else changes the object at the same time: so many tries.
const MOST_TRIES: usize = 5;
/// Waits for a deleted object to go, between tries to create it anew.
const RECREATE_TRIES: usize = 3;
const RECREATE_WAIT: Duration = Duration::from_secs(1);

/// What checking came to.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // independent answers, each told on its own
pub struct Checked {
    /// Not as specified.
    pub violation: bool,
    /// Why, where that needs words of its own.
    pub message: String,
    /// How it differs.
    pub diff: String,
    /// A change was tried.
    pub tried: bool,
    /// The object after a change.
    pub updated: Option<Value>,
    /// It differed at first sight only.
    pub after_dry_run: bool,
    /// Gone before it could be looked at: look again.
    pub vanished: bool,
    /// Trouble that may pass.
    pub retry: bool,
    /// It cannot be changed, only made anew.
    pub immutable: bool,
}

/// The object under check.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Its template.
    pub ready: &'a Ready,
    /// Its kind.
    pub mapping: &'a Mapping,
    /// As it should be.
    pub desired: &'a Value,
    /// Mend it?
    pub enforce: bool,
    /// Field manager of a recreate.
    pub manager: &'a str,
    /// Which template.
    pub index: usize,
    /// Other templates that want the same object.
    pub rivals: &'a Rivals<'a>,
}
impl Subject<'_> {
    fn place(&self) -> (&str, &str) {
        let text = |field: &str| self.desired["metadata"][field].as_str().unwrap_or_default();
        (text("namespace"), text("name"))
    }
    /// `pods [x] in namespace n`.
    pub fn title(&self) -> String {
        let (namespace, name) = self.place();
        let place = if self.mapping.namespaced { format!(" in namespace {namespace}") } else { String::new() };
        format!("{} [{name}]{place}", self.mapping.plural)
    }
    /// May it be deleted and created anew if it cannot be changed?
    pub fn may_recreate(&self) -> bool {
        matches!(self.ready.template.recreate_option.as_str(), "Always" | "IfRequired")
    }
    /// Which object.
    pub fn reference(&self) -> ObjectRef {
        let (namespace, name) = self.place();
        super::reference(self.mapping, namespace, name)
    }
    /// Tells templates apart.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.enforce.hash(&mut hasher);
        serde_json::to_string(&self.ready.template).unwrap_or_default().hash(&mut hasher);
        hasher.finish()
    }
}

/// Checks, and mends if asked to.
pub async fn check(ground: Ground<'_>, subject: Subject<'_>, live: &Value, results: &mut Results) -> Checked {
    let hash = subject.hash();
    let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (uid, version) = (text(live, "uid"), text(live, "resourceVersion"));
    if let Some(known) = results.get(&uid, hash, &version) {
        let status = ground.policy.status.as_ref();
        let before = status.into_iter().flat_map(|s| &s.related_objects);
        let before = before.filter_map(|r| r.properties.as_ref()).find(|p| p.uid == uid);
        return Checked {
            violation: !known.compliant,
            message: known.message.clone(),
            diff: before.map(|p| p.diff.clone()).unwrap_or_default(),
            after_dry_run: before.is_some_and(|p| p.matches_after_dry_run),
            ..Checked::default()
        };
    }
    let (checked, remember) = fresh(ground, subject, live).await;
    if remember {
        let now = checked.updated.as_ref().unwrap_or(live);
        results.put(&text(now, "uid"), hash, &text(now, "resourceVersion"), !checked.violation, &checked.message);
    }
    checked
}

/// The second value says whether the answer holds until the object changes.
async fn fresh(ground: Ground<'_>, subject: Subject<'_>, live: &Value) -> (Checked, bool) {
    let template = &subject.ready.template;
    let mut current = live.clone();
    let mut sure = false;
    for _ in 0..MOST_TRIES {
        let compared = keys::compare(subject.desired, &current, template.compliance(), template.metadata_compliance());
        let outcome = match compared {
            Ok(outcome) => outcome,
            Err(text) => {
                let message = subject.ready.shown(text);
                return (Checked { violation: true, message, tried: true, ..Checked::default() }, false);
            }
        };
        if !outcome.differs && !outcome.doubtful {
            return (settled(ground, subject, &current, &outcome), true);
        }
        if !sure {
            // What a watch keeps is slim and may be late: whatever is written rests on the object itself.
            let (namespace, name) = subject.place();
            match ground.objects.get(subject.mapping, namespace, name).await {
                Ok(Some(now)) => current = now,
                Ok(None) => return (Checked { vanished: true, ..Checked::default() }, false),
                Err(trouble) => return (dry_run_failed(subject, &trouble), false),
            }
            sure = true;
            continue;
        }
        match attempt(ground, subject, &current, &outcome).await {
            Attempt::Over(checked, remember) => return (*checked, remember),
            Attempt::Again => sure = false,
        }
    }
    let message = format!("{} is changed by somebody else all the time", subject.title());
    (Checked { violation: true, message, tried: true, retry: true, ..Checked::default() }, false)
}

/// Nothing to mend; the status may still differ.
fn settled(ground: Ground<'_>, subject: Subject<'_>, current: &Value, outcome: &Outcome) -> Checked {
    let mut checked = Checked { violation: outcome.status_differs, ..Checked::default() };
    if outcome.status_differs {
        checked.diff = show(ground, subject, current, &outcome.merged);
    }
    checked
}

enum Attempt {
    Over(Box<Checked>, bool),
    Again,
}
fn over(checked: Checked, remember: bool) -> Attempt {
    Attempt::Over(Box::new(checked), remember)
}

async fn attempt(ground: Ground<'_>, subject: Subject<'_>, current: &Value, outcome: &Outcome) -> Attempt {
    if ground.policy.spec.enforces()
        && let Some(other) = subject.rivals.broken(subject.index, &subject.reference(), current, &outcome.merged)
    {
        let message = rivals::told(&subject.title(), subject.index, other);
        return over(Checked { violation: true, message, ..Checked::default() }, false);
    }
    let place = subject.place();
    let option = subject.ready.template.recreate_option.as_str();
    let dry = ground.objects.update(subject.mapping, place, &outcome.merged, true).await;
    let (diff, immutable) = match dry {
        Err(trouble) if trouble.is_conflict() => return Attempt::Again,
        Err(trouble) if trouble.is_invalid() => (String::new(), true),
        Err(trouble) => {
            let refused = trouble.code == 400;
            return over(dry_run_failed(subject, &trouble), refused);
        }
        Ok(mut updated) => {
            let mut before = current.clone();
            keys::strip(&mut before);
            keys::strip(&mut updated);
            if before == updated {
                let mut checked = settled(ground, subject, current, outcome);
                checked.after_dry_run = true;
                return over(checked, true);
            }
            (show(ground, subject, current, &updated), false)
        }
    };
    if immutable && (!subject.enforce || !subject.may_recreate()) {
        let diff = show(ground, subject, current, &outcome.merged);
        let message = if subject.enforce { unchangeable(subject) } else { String::new() };
        return over(Checked { violation: true, message, diff, immutable, ..Checked::default() }, true);
    }
    if !subject.enforce {
        return over(Checked { violation: true, diff, ..Checked::default() }, true);
    }
    let recreate = immutable || option == "Always";
    let done = if recreate {
        match recreate_object(ground, subject, current).await {
            Ok(done) => done,
            Err(message) => {
                return over(
                    Checked { violation: true, message, tried: true, retry: true, ..Checked::default() },
                    false,
                );
            }
        }
    } else {
        ground.objects.update(subject.mapping, place, &outcome.merged, false).await
    };
    match done {
        Ok(updated) => {
            ground.sight.wrote(subject.mapping, &updated);
            let violation = outcome.status_differs;
            let diff = if ground.dialect == Dialect::Earlier { String::new() } else { diff };
            let checked = Checked { violation, diff, tried: true, updated: Some(updated), ..Checked::default() };
            over(checked, !violation)
        }
        Err(trouble) if trouble.is_conflict() => Attempt::Again,
        Err(trouble) => {
            let action = if recreate { "recreate" } else { "update" };
            let message = common_refusal(subject, &trouble).unwrap_or_else(|| {
                let told = subject.ready.told(&trouble);
                format!("{} failed to {action} with the error `{told}`", subject.title())
            });
            over(Checked { violation: true, message, diff, tried: true, retry: true, ..Checked::default() }, false)
        }
    }
}

/// What to tell of an object that cannot be changed and must not be made anew.
pub fn unchangeable(subject: Subject<'_>) -> String {
    format!(
        "{} cannot be updated, likely due to immutable fields not matching, you may set spec[\"object-templates\"][].recreateOption to recreate the object",
        subject.title()
    )
}

/// Deletes this very object and creates it anew. The outer error is a message.
async fn recreate_object(
    ground: Ground<'_>,
    subject: Subject<'_>,
    current: &Value,
) -> Result<Result<Value, Trouble>, String> {
    let (namespace, name) = subject.place();
    let uid = current["metadata"]["uid"].as_str();
    let deleted = ground.objects.delete(subject.mapping, (namespace, name), uid).await;
    if let Err(trouble) = &deleted {
        let told = subject.ready.told(trouble);
        return Err(format!("{} failed to delete when recreating with the error {told}", subject.title()));
    }
    let mut tries = usize::from(deleted != Ok(Deleted::Gone));
    loop {
        let body = mark::marked(subject.desired, subject.manager);
        let created = ground.objects.create(subject.mapping, namespace, &body, subject.manager).await;
        match created {
            Err(trouble) if trouble.is_taken() || is_ending(&trouble) => {
                tries += 1;
                if tries >= RECREATE_TRIES {
                    return Err(format!(
                        "{} timed out waiting for the object to delete during recreate, will retry on the next policy evaluation",
                        subject.title()
                    ));
                }
                ground.clock.sleep_until(ground.clock.boot() + RECREATE_WAIT).await;
            }
            other => return Ok(other),
        }
    }
}
fn is_ending(trouble: &Trouble) -> bool {
    trouble.code == 409 && trouble.message.contains("object is being deleted")
}

fn common_refusal(subject: Subject<'_>, trouble: &Trouble) -> Option<String> {
    if trouble.is_missing() {
        return Some(format!("`{}` is not present and must be created", subject.mapping.kind));
    }
    let ((_, name), told) = (subject.place(), subject.ready.told(trouble));
    trouble
        .message
        .contains("strict decoding error:")
        .then(|| format!("Error validating the object {name}, the error is `{told}`"))
}
fn dry_run_failed(subject: Subject<'_>, trouble: &Trouble) -> Checked {
    let ((_, name), told) = (subject.place(), subject.ready.told(trouble));
    let message = common_refusal(subject, trouble).unwrap_or_else(|| {
        format!("Error issuing a dry run update request for the object `{name}`, the error is `{told}`")
    });
    Checked { violation: true, message, tried: true, retry: trouble.code != 400, ..Checked::default() }
}

fn show(ground: Ground<'_>, subject: Subject<'_>, existing: &Value, updated: &Value) -> String {
    let place = difference::place(subject.ready);
    match place {
        Place::None => return String::new(),
        Place::Redacted => return difference::REDACTED.to_owned(),
        Place::Status | Place::Log => {}
    }
    let (mut existing, mut updated) = (existing.clone(), updated.clone());
    keys::strip(&mut existing);
    keys::strip(&mut updated);
    let text = difference::text(&existing, &updated);
    if place == Place::Log {
        log(ground, subject, &text);
        return String::new();
    }
    text
}
/// On lines of its own, as people look for it, and not inside a line of JSON.
fn log(ground: Ground<'_>, subject: Subject<'_>, diff: &str) {
    let (namespace, name) = subject.place();
    let policy = ground.policy.metadata.name.as_deref().unwrap_or_default();
    let resource = &subject.mapping.plural;
    let fields = match ground.dialect {
        Dialect::Earlier => {
            format!(
                "{{\"policy\": {policy:?}, \"name\": {name:?}, \"namespace\": {namespace:?}, \"resource\": {resource:?}}}"
            )
        }
        Dialect::Current => format!(
            "{{\"name\": {policy:?}, \"objName\": {name:?}, \"objNamespace\": {namespace:?}, \"resource\": {resource:?}}}"
        ),
    };
    let mut out = std::io::stderr().lock();
    // A closed log is no reason to fail.
    let _ = write!(out, "Logging the diff:\n{diff}\t{fields}\n").and_then(|()| out.flush());
}
