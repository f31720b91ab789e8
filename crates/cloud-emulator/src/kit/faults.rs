//! What goes wrong on purpose: scripts of faults, matched against each call.
use super::dice::Dice;
use super::emulator::Naming;
use super::{Vocabulary, pattern};
use serde::{Deserialize, Serialize};

/// Which calls a fault concerns: all whose every named property matches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// HTTP method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Path pattern; `*` stands for any run of characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Kind, as in the call log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Verb, as in the call log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// Principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Only calls that could change something, or only those that could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutating: Option<bool>,
}
impl Match {
    /// Calls of this verb on this kind.
    pub fn verb(kind: &str, verb: &str) -> Self {
        Match { kind: Some(kind.to_owned()), verb: Some(verb.to_owned()), ..Match::default() }
    }
    fn concerns(&self, method: &str, path: &str, principal: Option<&str>, naming: &Naming<'_>) -> bool {
        self.method.as_deref().is_none_or(|wanted| wanted == method)
            && self.path.as_deref().is_none_or(|wanted| pattern::fits(wanted, path))
            && self.kind.as_deref().is_none_or(|wanted| wanted == naming.kind)
            && self.verb.as_deref().is_none_or(|wanted| wanted == naming.verb)
            && self.principal.as_deref().is_none_or(|wanted| principal == Some(wanted))
            && self.mutating.is_none_or(|wanted| wanted == naming.mutating)
    }
}

/// What happens to a call that is struck. `effect` says whether the call is carried out first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Answered with this status.
    Status {
        /// The status.
        status: u16,
        /// The call is carried out first.
        #[serde(default)]
        effect: bool,
        /// `Retry-After`, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_s: Option<u64>,
    },
    /// The cloud's own "slow down".
    Throttle {
        /// `Retry-After`, in seconds.
        retry_after_s: u64,
    },
    /// The connection is cut without a reply.
    Cut {
        /// The call is carried out first.
        effect: bool,
    },
    /// No reply for so long, then the connection is cut.
    Hang {
        /// Milliseconds.
        ms: u64,
        /// The call is carried out first.
        effect: bool,
    },
    /// The reply's body is not what the cloud writes.
    Malformed {
        /// The call is carried out first.
        effect: bool,
    },
    /// The call is carried out; the connection is cut in the middle of the reply's body.
    Truncated,
    /// The call is carried out at once, the reply comes later.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// The call is carried out at once, the reply's body comes in small pieces.
    Slow {
        /// Milliseconds for the whole body.
        ms: u64,
    },
    /// The call is carried out only later, even if the client has gone by then. The log has it twice: when it came, and when it
    /// was carried out.
    Late {
        /// Milliseconds.
        ms: u64,
    },
}
impl Action {
    /// For the call log.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Status { .. } => "status",
            Action::Throttle { .. } => "throttle",
            Action::Cut { .. } => "cut",
            Action::Hang { .. } => "hang",
            Action::Malformed { .. } => "malformed",
            Action::Truncated => "truncated",
            Action::Delay { .. } => "delay",
            Action::Slow { .. } => "slow",
            Action::Late { .. } => "late",
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The calls it concerns.
    #[serde(default, rename = "match")]
    pub on: Match,
    /// It lets this many matching calls pass first.
    #[serde(default)]
    pub after: u64,
    /// It strikes at most so often; without a number, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// How likely it strikes a matching call.
    #[serde(default = "always")]
    pub probability: f64,
    /// What happens.
    pub action: Action,
}
fn always() -> f64 {
    1.0
}
impl Fault {
    /// Strikes the next matching call, once.
    pub fn once(on: Match, action: Action) -> Self {
        Fault { on, after: 0, times: Some(1), probability: 1.0, action }
    }
    /// Says what is wrong with it.
    pub fn check(&self, words: Vocabulary) -> Result<(), String> {
        if let Some(kind) = self.on.kind.as_ref().filter(|kind| !words.kinds.contains(&kind.as_str())) {
            return Err(format!("no kind {kind:?}; there are {:?}", words.kinds));
        }
        if let Some(verb) = self.on.verb.as_ref().filter(|verb| !words.verbs.contains(&verb.as_str())) {
            return Err(format!("no verb {verb:?}; there are {:?}", words.verbs));
        }
        if !(0.0..=1.0).contains(&self.probability) {
            return Err("a probability lies between 0 and 1".to_owned());
        }
        match self.action {
            Action::Status { status, .. } if !(400..=599).contains(&status) => Err("a status is 400 to 599".to_owned()),
            _ => Ok(()),
        }
    }
}

/// A fault and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Scripted {
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
    /// Matching calls so far.
    pub seen: u64,
    /// Calls struck so far.
    pub struck: u64,
}

/// The script: the first fault that strikes a call is the only one.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Scripted>);

impl Faults {
    /// Adds one at the end.
    pub fn add(&mut self, fault: Fault) {
        self.0.push(Scripted { fault, seen: 0, struck: 0 });
    }
    /// Takes all away.
    pub fn clear(&mut self) {
        self.0.clear();
    }
    /// All, with their counts.
    pub fn all(&self) -> &[Scripted] {
        &self.0
    }
    /// What strikes this call.
    pub(crate) fn strike(
        &mut self,
        dice: &mut Dice,
        method: &str,
        path: &str,
        principal: Option<&str>,
        naming: &Naming<'_>,
    ) -> Option<Action> {
        for script in &mut self.0 {
            if !script.fault.on.concerns(method, path, principal, naming) {
                continue;
            }
            script.seen += 1;
            let due = script.seen > script.fault.after && script.fault.times.is_none_or(|times| script.struck < times);
            if due && dice.happens(script.fault.probability) {
                script.struck += 1;
                return Some(script.fault.action.clone());
            }
        }
        None
    }
}
