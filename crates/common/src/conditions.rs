//! Conditions: what people and tools read. A pure function of the report, the old conditions, the generation and now.
//!
//! | the pass came to | Ready | Reconciling | Stalled |
//! |---|---|---|---|
//! | done | True | – | – |
//! | waiting | False; stays True if it was True for this generation | True | – |
//! | a fault that passes | unchanged, else Unknown | True | – |
//! | blocked, denied, terminal | False | – | True |
//! | paused | unchanged, else Unknown | – | – |
//! | deleting | False, `Deleting`, with what is left | True, unless stalled | as above |
//! | stale | everything as it was | | |
//!
//! `Reconciling` and `Stalled` are there only while they are true, as kstatus wants it. `Paused` is always there.
use crate::engine::estate::Fault;
use crate::engine::report::{Mirror, Progress, Report, Standing};
use crate::names::{self, reason};
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Everything is as wanted.
pub const READY: &str = "Ready";
/// Work is going on.
pub const RECONCILING: &str = "Reconciling";
/// Nothing more happens until somebody changes something.
pub const STALLED: &str = "Stalled";
/// Cluster API: the object is not touched.
pub const PAUSED: &str = "Paused";

/// Longest message of a condition of ours.
const MOST_MESSAGE: usize = 4 * 1024;
/// How many pieces a message names before it only counts them.
const MOST_NAMED: usize = 8;

/// One statement about an object, before it has a time and a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Condition type.
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: Tri,
    /// CamelCase.
    pub reason: String,
    /// For people.
    pub message: String,
}
impl Statement {
    /// A statement.
    pub fn new(type_: &str, status: Tri, reason: &str, message: impl Into<String>) -> Self {
        Statement { type_: type_.into(), status, reason: reason.into(), message: message.into() }
    }
}

/// The three values of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tri {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can say.
    Unknown,
}
impl Tri {
    /// As stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Tri::True => "True",
            Tri::False => "False",
            Tri::Unknown => "Unknown",
        }
    }
}

/// What conditions depend on beside the report and the old ones.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// Name of the controller: names the ledger condition.
    pub controller: &'a str,
    /// The generation the pass decided on.
    pub generation: i64,
    /// Now, for people.
    pub now: Timestamp,
    /// Why the owner is paused, if it is.
    pub paused: Option<&'a str>,
    /// The controller's own statements.
    pub own: &'a [Statement],
    /// Types that are never lowered once they were True.
    pub sticky: &'a [&'a str],
}
impl<'a> Scene<'a> {
    /// Without a pause, statements of the controller's own, or sticky types.
    pub fn new(controller: &'a str, generation: i64, now: Timestamp) -> Self {
        Scene { controller, generation, now, paused: None, own: &[], sticky: &[] }
    }
}

/// The whole new list: ours as the report says, others' as they are, sorted by type.
pub fn compose(report: &Report, old: &[Condition], scene: &Scene<'_>) -> Vec<Condition> {
    if let Progress::Stale(_) = report.progress {
        return old.to_vec();
    }
    let mut new: Vec<Condition> = Vec::new();
    for statement in statements(report, old, scene) {
        let before = old.iter().find(|c| c.type_ == statement.type_);
        new.push(dated(statement, before, scene));
    }
    let kept = |c: &&Condition| {
        let replaced = new.iter().any(|n| n.type_ == c.type_);
        let ended = c.type_ == RECONCILING || c.type_ == STALLED;
        !replaced && !ended
    };
    let others: Vec<Condition> = old.iter().filter(kept).cloned().collect();
    new.extend(others);
    // Stable: two foreign entries of one type, which no API server should hold, keep their order.
    new.sort_by(|a, b| a.type_.cmp(&b.type_));
    new
}

/// True if writing `new` over `old` would change anything but the order.
pub fn differ(old: &[Condition], new: &[Condition]) -> bool {
    let sorted = |list: &[Condition]| {
        let mut list = list.to_vec();
        list.sort_by(|a, b| a.type_.cmp(&b.type_));
        list
    };
    sorted(old) != sorted(new)
}

/// A condition of the list, by type.
pub fn find<'a>(list: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    list.iter().find(|c| c.type_ == type_)
}

fn statements(report: &Report, old: &[Condition], scene: &Scene<'_>) -> Vec<Statement> {
    let deleting = report.view.as_ref().is_some_and(|v| v.deleting);
    let pause = pause_of(report, scene);
    let verdict = verdict(&report.progress);
    let mut out = Vec::new();

    let ready = if deleting {
        Some(Statement::new(READY, Tri::False, reason::DELETING, what_is_left(&verdict, &report.standing)))
    } else {
        ready(&verdict, pause.as_deref().filter(|_| !stranded(&report.progress)), old, scene.generation)
    };
    out.extend(ready);
    // A paused owner is neither worked on nor stuck: somebody asked for it. A stranded one is, paused or not.
    if pause.is_none() || stranded(&report.progress) {
        match &verdict {
            Verdict::Stalled(why, message) => out.push(Statement::new(STALLED, Tri::True, why, message.clone())),
            Verdict::Working(why, message) | Verdict::Passing(why, message) => {
                let why = if deleting && *why == reason::PROGRESSING { reason::DELETING } else { why };
                out.push(Statement::new(RECONCILING, Tri::True, why, message.clone()));
            }
            Verdict::Done => {}
        }
    }
    out.push(match pause {
        Some(why) => Statement::new(PAUSED, Tri::True, reason::PAUSED, why),
        None => Statement::new(PAUSED, Tri::False, "NotPaused", ""),
    });
    out.extend(mirror_statement(report.mirror.as_ref(), old, scene.controller));
    out.extend(scene.own.iter().cloned());

    let was_true = |type_: &str| find(old, type_).is_some_and(|c| c.status == "True");
    out.retain(|s| s.status == Tri::True || !(scene.sticky.contains(&s.type_.as_str()) && was_true(&s.type_)));
    out
}

/// A report boiled down to what conditions ask for.
enum Verdict<'a> {
    Done,
    Working(&'a str, String),
    Passing(&'a str, String),
    Stalled(&'a str, String),
}
fn verdict(progress: &Progress) -> Verdict<'_> {
    if let Some((why, message)) = progress.obstacle() {
        return Verdict::Stalled(why, message);
    }
    match progress {
        Progress::Waiting { reason, message, .. } => Verdict::Working(reason, message.clone()),
        Progress::Stale(message) => Verdict::Passing(reason::PROGRESSING, message.clone()),
        Progress::Failed(Fault::Transient(message)) => Verdict::Passing(reason::UNAVAILABLE, message.clone()),
        Progress::Failed(Fault::Throttled(_)) => Verdict::Passing(reason::THROTTLED, "asked to slow down".into()),
        _ => Verdict::Done,
    }
}

/// The scene's word, or a report that says so itself.
fn pause_of(report: &Report, scene: &Scene<'_>) -> Option<String> {
    match &report.progress {
        Progress::Waiting { reason, message, .. } | Progress::Blocked { reason, message }
            if *reason == reason::PAUSED =>
        {
            Some(message.clone())
        }
        _ => scene.paused.map(str::to_owned),
    }
}

/// Not served here at all: taking the pause off would not change that, so a pause must not hide it.
fn stranded(progress: &Progress) -> bool {
    let reasons = [reason::MOVE_UNFINISHED, reason::TAKEOVER_REQUIRED, reason::PEER_CONTROLLER];
    matches!(progress, Progress::Blocked { reason, .. } if reasons.contains(reason))
}

/// `None` leaves the old condition as it is, its generation included.
fn ready(verdict: &Verdict<'_>, pause: Option<&str>, old: &[Condition], generation: i64) -> Option<Statement> {
    let before = find(old, READY);
    match verdict {
        Verdict::Done => Some(Statement::new(READY, Tri::True, reason::RECONCILED, "")),
        _ if pause.is_some() => match before {
            Some(_) => None,
            None => Some(Statement::new(READY, Tri::Unknown, reason::PAUSED, pause.unwrap_or_default())),
        },
        Verdict::Working(why, message) => match before {
            Some(c) if c.status == "True" && c.observed_generation == Some(generation) => None,
            _ => Some(Statement::new(READY, Tri::False, why, message.clone())),
        },
        Verdict::Passing(why, message) => match before {
            Some(_) => None,
            None => Some(Statement::new(READY, Tri::Unknown, why, message.clone())),
        },
        Verdict::Stalled(why, message) => Some(Statement::new(READY, Tri::False, why, message.clone())),
    }
}

fn what_is_left(verdict: &Verdict<'_>, standing: &[Standing]) -> String {
    let said = match verdict {
        Verdict::Done => String::new(),
        Verdict::Working(_, m) | Verdict::Passing(_, m) | Verdict::Stalled(_, m) => m.clone(),
    };
    if standing.is_empty() {
        return said;
    }
    let name = |s: &Standing| match &s.id {
        Some(id) => format!("{} ({id}, {})", s.slot, s.state),
        None => format!("{} ({})", s.slot, s.state),
    };
    let mut named: Vec<String> = standing.iter().take(MOST_NAMED).map(name).collect();
    if standing.len() > MOST_NAMED {
        named.push(format!("{} more", standing.len() - MOST_NAMED));
    }
    let left = format!("{} left: {}", standing.len(), named.join(", "));
    if said.is_empty() { left } else { format!("{left}; {said}") }
}

/// Never taken off, never with a lower seq, and for another owner id only with a higher one, which is ours: recovery and the
/// detection of rollbacks and forged ids rest on it.
fn mirror_statement(mirror: Option<&Mirror>, old: &[Condition], controller: &str) -> Option<Statement> {
    let mirror = mirror?;
    let type_ = names::ledger_condition(controller);
    let outlives = |m: Mirror| m.seq > mirror.seq || m.seq == mirror.seq && m.owner != mirror.owner;
    let kept = mirror_in(old, controller).is_some_and(outlives);
    (!kept).then(|| Statement::new(&type_, Tri::True, "Recorded", format_mirror(mirror)))
}

fn dated(statement: Statement, before: Option<&Condition>, scene: &Scene<'_>) -> Condition {
    let status = statement.status.as_str();
    let since = before.filter(|c| c.status == status).map(|c| c.last_transition_time.0);
    let message = cut(&statement.message, MOST_MESSAGE);
    // The same trouble met again under another request id is no news.
    let message = before.map(|c| &c.message).filter(|said| alike(said, &message)).cloned().unwrap_or(message);
    Condition {
        type_: statement.type_,
        status: status.into(),
        reason: statement.reason,
        message,
        last_transition_time: Time(whole_seconds(since.unwrap_or(scene.now))),
        observed_generation: Some(scene.generation),
    }
}

/// Equal but for the ids of requests.
fn alike(one: &str, other: &str) -> bool {
    without_request_ids(one).eq(without_request_ids(other))
}
/// The words of a message, less those that follow `request`.
pub fn without_request_ids(message: &str) -> impl Iterator<Item = &str> {
    let words = message.split_ascii_whitespace();
    let before = std::iter::once("").chain(words.clone());
    words.zip(before).filter(|(_, before)| *before != "request").map(|(word, _)| word)
}

/// The API server stores no fraction: a time with one would never compare equal to what was stored.
pub fn whole_seconds(at: Timestamp) -> Timestamp {
    at.round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Trunc)).unwrap_or(at)
}

/// At most `most` bytes, cut at a character.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most.saturating_sub(3)).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    format!("{}...", &text[..end])
}

/// The message of the ledger condition: `owner <32 hex> seq <n> in <scope>: <records>`.
pub fn format_mirror(mirror: &Mirror) -> String {
    let place = if mirror.scope.is_empty() { String::new() } else { format!(" in {}", mirror.scope) };
    cut(&format!("owner {} seq {}{place}: {}", mirror.owner, mirror.seq, mirror.records), MOST_MESSAGE)
}

/// Reads it back. Hostile until parsed: anybody who may write status can have written it.
pub fn parse_mirror(message: &str) -> Option<Mirror> {
    if message.len() > 2 * MOST_MESSAGE {
        return None;
    }
    let (head, records) = message.split_once(": ").or_else(|| Some((message.strip_suffix(':')?, "")))?;
    let (owner, rest) = head.strip_prefix("owner ")?.split_once(" seq ")?;
    let (seq, scope) = rest.split_once(" in ").unwrap_or((rest, ""));
    let plain = !seq.is_empty() && seq.len() <= 20 && seq.bytes().all(|b| b.is_ascii_digit());
    let seq = plain.then(|| seq.parse().ok()).flatten()?;
    Some(Mirror { owner: owner.parse().ok()?, seq, scope: scope.to_owned(), records: records.to_owned() })
}

/// The mirror of a controller in a list of conditions.
pub fn mirror_in(conditions: &[Condition], controller: &str) -> Option<Mirror> {
    find(conditions, &names::ledger_condition(controller)).and_then(|c| parse_mirror(&c.message))
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
