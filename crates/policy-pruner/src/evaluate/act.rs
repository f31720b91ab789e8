//! Reads everything a policy means, then does what is due, object by object.
use super::check::{self, Checked, Subject};
use super::desired::{self, Desired};
use super::rivals::{self, Claim, Rivals};
use super::templates::Ready;
use super::{Evaluated, Ground, Results, TemplateResult, reference};
use crate::api::{ObjectRef, Properties, RelatedObject};
use crate::cluster::kinds::Mapping;
use crate::cluster::objects::Deleted;
use crate::cluster::wire::Trouble;
use crate::compare::Compliance;
use crate::compare::keys::fits;
use crate::dialect::Dialect;
use crate::message::{Happening, Outcome};
use crate::metrics::PolicyMetrics;
use crate::names::reason;
use crate::prune::mark;
use crate::standing::{COMPLIANT, NON_COMPLIANT, relate};
use crate::text::selector::Selector;
use serde_json::Value;

/// One desired object and what is there.
#[derive(Debug)]
pub struct Planned {
    pub(super) desired: Value,
    pub(super) seen: Seen,
}
#[derive(Debug)]
pub(super) enum Seen {
    Named(Option<Value>),
    /// Names that fit, whether there are others, and the one object if it is only one.
    Matching(Vec<String>, bool, Option<Value>),
    Failed(Trouble),
}
/// One template, read.
#[derive(Debug)]
pub struct Read {
    pub(super) index: usize,
    pub(super) ready: Ready,
    pub(super) planned: Result<(Mapping, Vec<Planned>, Vec<Outcome>), Box<desired::Refused>>,
}
impl Read {
    /// Objects that will be created if the policy is enforced.
    pub fn creations(&self) -> Vec<ObjectRef> {
        let Ok((mapping, planned, _)) = &self.planned else { return Vec::new() };
        if self.ready.template.compliance() == Compliance::MustNotHave {
            return Vec::new();
        }
        let missing = planned.iter().filter(|p| matches!(p.seen, Seen::Named(None)));
        missing.map(|p| reference(mapping, text(&p.desired, "namespace"), text(&p.desired, "name"))).collect()
    }
    /// What the template wants of objects that it names or selects.
    pub(super) fn claims(&self) -> Vec<(ObjectRef, Claim<'_>)> {
        let Ok((mapping, planned, _)) = &self.planned else { return Vec::new() };
        let template = &self.ready.template;
        let named = planned.iter().filter(|p| !text(&p.desired, "name").is_empty());
        named
            .map(|p| {
                let object = reference(mapping, text(&p.desired, "namespace"), text(&p.desired, "name"));
                let (compliance, metadata) = (template.compliance(), template.metadata_compliance());
                (object, Claim { index: self.index, desired: &p.desired, compliance, metadata })
            })
            .collect()
    }
    /// Objects that the template names or selects.
    pub fn managed(&self) -> Vec<ObjectRef> {
        let Ok((mapping, planned, _)) = &self.planned else { return Vec::new() };
        let named = planned.iter().filter(|p| !text(&p.desired, "name").is_empty());
        named.map(|p| reference(mapping, text(&p.desired, "namespace"), text(&p.desired, "name"))).collect()
    }
}
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Reads everything that the templates mean.
pub async fn read(ground: Ground<'_>, templates: Vec<Ready>) -> Vec<Read> {
    let mut all = Vec::with_capacity(templates.len());
    for (index, ready) in templates.into_iter().enumerate() {
        let planned = match desired::desired(ground, index, &ready).await {
            Err(refused) => Err(Box::new(refused)),
            Ok(Desired { mapping, objects, instead }) => {
                let mut planned = Vec::with_capacity(objects.len());
                for desired in objects {
                    let seen = look(ground, &ready, &mapping, &desired).await;
                    planned.push(Planned { desired, seen });
                }
                Ok((mapping, planned, instead))
            }
        };
        all.push(Read { index, ready, planned });
    }
    all
}
async fn look(ground: Ground<'_>, ready: &Ready, mapping: &Mapping, desired: &Value) -> Seen {
    let (namespace, name) = (text(desired, "namespace"), text(desired, "name"));
    if !name.is_empty() {
        return match ground.sight.get(mapping, namespace, name).await {
            Ok(live) => Seen::Named(live),
            Err(trouble) => Seen::Failed(trouble),
        };
    }
    match ground.sight.list(mapping, namespace, &Selector::default()).await {
        Err(trouble) => Seen::Failed(trouble),
        Ok(all) => {
            let compliance = ready.template.compliance();
            let fitting: Vec<&Value> = all.iter().filter(|live| fits(desired, live, compliance)).collect();
            let names = fitting.iter().map(|live| text(live, "name").to_owned()).collect();
            let one = if let [one] = fitting.as_slice() { Some((*one).clone()) } else { None };
            Seen::Matching(names, !all.is_empty(), one)
        }
    }
}

/// Whether an object's template means creating it is a lasting matter: what to write on creates.
pub struct Doing<'a> {
    /// Field manager of creates.
    pub manager: &'a str,
    /// Creates are allowed; otherwise why not.
    pub creates: Result<(), String>,
    /// Where comparisons are counted.
    pub metrics: Option<&'a PolicyMetrics>,
}

/// Does what is due.
pub async fn act(ground: Ground<'_>, reads: &[Read], doing: &Doing<'_>, results: &mut Results) -> Evaluated {
    let mut evaluated = Evaluated::default();
    let rivals = Rivals::among(reads.iter().flat_map(Read::claims).collect());
    for read in reads {
        let mut result = TemplateResult { index: read.index, ..TemplateResult::default() };
        match &read.planned {
            Err(refused) => {
                result.resource = refused.mapping.as_ref().map(|m| m.plural.clone()).unwrap_or_default();
                result.outcomes.push(Outcome { happenings: vec![refused.happening.clone()], ..Outcome::default() });
                evaluated.retry |= refused.retry;
                evaluated.kind_missing |= refused.kind_missing;
                if refused.doubtful {
                    evaluated.doubts.push(refused.happening.message.clone());
                }
            }
            Ok((mapping, planned, instead)) => {
                result.resource.clone_from(&mapping.plural);
                result.outcomes.extend(instead.iter().cloned());
                evaluated.managed.extend(read.managed());
                for one in planned {
                    let outcome = handle(ground, (read, &rivals), mapping, one, doing, results, &mut evaluated).await;
                    result.outcomes.push(outcome);
                }
            }
        }
        evaluated.templates.push(result);
    }
    evaluated
}

async fn handle(
    ground: Ground<'_>,
    (read, rivals): (&Read, &Rivals<'_>),
    mapping: &Mapping,
    planned: &Planned,
    doing: &Doing<'_>,
    results: &mut Results,
    evaluated: &mut Evaluated,
) -> Outcome {
    let desired = &planned.desired;
    let (namespace, name) = (text(desired, "namespace").to_owned(), text(desired, "name").to_owned());
    let forbidden = read.ready.template.compliance() == Compliance::MustNotHave;
    let enforce = ground.policy.spec.enforces() && !name.is_empty();
    let mut outcome = Outcome { namespace: namespace.clone(), name: name.clone(), ..Outcome::default() };
    let index = read.index;
    let subject = Subject { ready: &read.ready, mapping, desired, enforce, manager: doing.manager, index, rivals };
    let opposed = if enforce { rivals.opposed(index, &subject.reference()) } else { None };
    if let Some(other) = opposed {
        // Whatever is done, the other template undoes it: nothing is done, and nothing pruned that either of them means.
        let message = rivals::told(&subject.title(), index, other);
        outcome.names = vec![name.clone()];
        let happening = Happening::said(false, reason::UPDATE_ERROR, message);
        relate(&mut evaluated.related, related(mapping, &namespace, &name, &happening, None));
        outcome.happenings.push(happening);
        return outcome;
    }
    match &planned.seen {
        Seen::Failed(trouble) => {
            let told = read.ready.told(trouble);
            let message = format!("Error retrieving an object for object-template at index [{}]: {told}", read.index);
            evaluated.doubts.push(message.clone());
            evaluated.retry = true;
            outcome.happenings.push(Happening::said(false, reason::API_ERROR, message));
        }
        Seen::Matching(names, others, _) if names.len() != 1 => {
            outcome.names.clone_from(names);
            matched(mapping, &mut outcome, forbidden, *others, evaluated);
        }
        Seen::Named(live) | Seen::Matching(_, _, live) => {
            let name = live.as_ref().map_or(name.clone(), |live| text(live, "name").to_owned());
            outcome.names = vec![name.clone()];
            let properties = match (live, forbidden) {
                (None, false) => missing(ground, subject, doing, &mut outcome, evaluated).await,
                (None, true) => {
                    outcome.happenings.push(Happening::plain(true, reason::ABSENT));
                    None
                }
                (Some(live), true) => {
                    unwanted(ground, subject, live, &mut outcome, evaluated).await;
                    None
                }
                (Some(live), false) => {
                    let began = ground.clock.boot();
                    let mut named = desired.clone();
                    named["metadata"]["name"] = name.clone().into();
                    let subject = Subject { desired: &named, ..subject };
                    let checked = check::check(ground, subject, live, results).await;
                    if let Some(metrics) = doing.metrics {
                        let object = format!("{}.{name}", mapping.plural);
                        metrics.compared(ground.key, &namespace, &object, ground.clock.boot().since(began));
                    }
                    if checked.vanished {
                        missing(ground, subject, doing, &mut outcome, evaluated).await
                    } else {
                        let silent = !ground.policy.spec.enforces() && !checked.violation;
                        let properties = present(subject, live, checked, ground.dialect, &mut outcome, evaluated);
                        // Tools of the earlier generation expect none on what is only reported and as it should be.
                        Some(properties).filter(|_| !(silent && ground.dialect == Dialect::Earlier))
                    }
                }
            };
            if let Some(last) = outcome.happenings.last() {
                let entry = related(mapping, &namespace, &name, last, properties);
                relate(&mut evaluated.related, entry);
            }
        }
    }
    outcome
}

/// None or several of an unnamed template.
fn matched(mapping: &Mapping, outcome: &mut Outcome, forbidden: bool, others: bool, evaluated: &mut Evaluated) {
    let none = outcome.names.is_empty();
    let happening = match (none, forbidden) {
        (true, true) => Happening::plain(true, reason::ABSENT),
        (true, false) if others => Happening::plain(false, reason::NO_MATCH),
        (true, false) => Happening::plain(false, reason::MISSING),
        (false, true) => Happening::plain(false, reason::UNWANTED),
        (false, false) => Happening::plain(true, reason::FOUND),
    };
    outcome.names.sort_unstable();
    let names = if none { vec!["-".to_owned()] } else { outcome.names.clone() };
    for name in names {
        relate(&mut evaluated.related, related(mapping, &outcome.namespace, &name, &happening, None));
    }
    outcome.happenings.push(happening);
}

fn related(
    mapping: &Mapping,
    namespace: &str,
    name: &str,
    happening: &Happening,
    properties: Option<Properties>,
) -> RelatedObject {
    RelatedObject {
        compliant: if happening.compliant { COMPLIANT } else { NON_COMPLIANT }.into(),
        object: reference(mapping, namespace, name),
        properties,
        reason: happening.reason.clone(),
    }
}
fn identifier(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { format!("[{name}]") } else { format!("[{name}] in namespace {namespace}") }
}

async fn missing(
    ground: Ground<'_>,
    subject: Subject<'_>,
    doing: &Doing<'_>,
    outcome: &mut Outcome,
    evaluated: &mut Evaluated,
) -> Option<Properties> {
    let Subject { mapping, desired, enforce, .. } = subject;
    outcome.happenings.push(Happening::plain(false, reason::MISSING));
    if !enforce {
        return None;
    }
    let (namespace, name) = (text(desired, "namespace"), text(desired, "name"));
    let title = format!("{} {}", mapping.plural, identifier(namespace, name));
    let created = match &doing.creates {
        Err(why) => Err(Trouble::silent(why.clone())),
        Ok(()) => ground.objects.create(mapping, namespace, &mark::marked(desired, doing.manager), doing.manager).await,
    };
    match created {
        Ok(object) => {
            ground.sight.wrote(mapping, &object);
            let uid = text(&object, "uid").to_owned();
            evaluated.unmarked |= !mark::is_manager(&object, doing.manager);
            evaluated.created.push((reference(mapping, namespace, name), uid.clone()));
            evaluated.fresh.insert(uid.clone(), None);
            if subject.ready.template.object_definition.get("status").is_some() {
                let message = format!(
                    "{title} was created successfully, the status of the object will be verified in the next evaluation"
                );
                let why = format!("{}, status unchecked", reason::CREATED);
                outcome.happenings.push(Happening::said(false, &why, message));
            } else {
                outcome.happenings.push(Happening::plain(true, reason::CREATED));
            }
            Some(Properties { created_by_policy: Some(true), uid, ..Properties::default() })
        }
        Err(trouble) => {
            let told = subject.ready.told(&trouble);
            let message = format!("{title} is missing, and cannot be created, reason: `{told}`");
            outcome.happenings.push(Happening::said(false, reason::CREATE_ERROR, message));
            if ground.sight.follows() && mapping.namespaced && trouble.is_namespace() {
                // Looked at, and so followed: the policy comes back when the namespace does.
                let spaces = crate::cluster::spaces::mapping();
                evaluated.retry |= ground.sight.get(&spaces, "", namespace).await.is_err();
            } else {
                evaluated.retry = true;
            }
            None
        }
    }
}

async fn unwanted(
    ground: Ground<'_>,
    subject: Subject<'_>,
    live: &Value,
    outcome: &mut Outcome,
    evaluated: &mut Evaluated,
) {
    if !subject.enforce {
        outcome.happenings.push(Happening::plain(false, reason::UNWANTED));
        return;
    }
    let (namespace, name) = (text(live, "namespace"), text(live, "name"));
    // This very object: what somebody put in its place meanwhile is looked at anew.
    match ground.objects.delete(subject.mapping, (namespace, name), live["metadata"]["uid"].as_str()).await {
        Ok(Deleted::Gone | Deleted::Ending(_)) => outcome.happenings.push(Happening::plain(true, reason::DELETED)),
        Err(trouble) => {
            let title = format!("{} {}", subject.mapping.plural, identifier(namespace, name));
            let told = subject.ready.told(&trouble);
            let message = format!("{title} exists, and cannot be deleted, reason: `{told}`");
            outcome.happenings.push(Happening::said(false, reason::DELETE_ERROR, message));
            evaluated.retry = true;
        }
    }
}

fn present(
    subject: Subject<'_>,
    live: &Value,
    checked: Checked,
    dialect: Dialect,
    outcome: &mut Outcome,
    evaluated: &mut Evaluated,
) -> Properties {
    evaluated.retry |= checked.retry;
    if checked.tried && !checked.message.contains("Error validating the object") {
        outcome.happenings.push(Happening::plain(false, reason::NO_MATCH));
    }
    let happening = match (checked.violation, checked.message.is_empty()) {
        (true, false) => Happening::said(false, reason::UPDATE_ERROR, checked.message),
        (true, true) => Happening::plain(false, reason::NO_MATCH),
        (false, _) if subject.enforce && checked.updated.is_some() => Happening::plain(true, reason::UPDATED),
        (false, _) => Happening::plain(true, reason::FOUND),
    };
    outcome.happenings.push(happening);
    let before = text(live, "uid");
    let uid = checked.updated.as_ref().map_or(before, |now| text(now, "uid")).to_owned();
    let recreated = uid != before;
    if recreated {
        evaluated.fresh.insert(uid.clone(), Some(before.to_owned()));
    }
    Properties {
        // The earlier generation takes what it recreated for its own creation; today a recreated object stays whose it was.
        created_by_policy: Some(recreated && dialect == Dialect::Earlier),
        uid,
        diff: checked.diff,
        matches_after_dry_run: checked.after_dry_run,
    }
}
