//! The call log: what was asked, by whom, and whether anything happened.
use super::pattern;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::VecDeque;
use std::sync::Arc;

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallRecord {
    /// 1 for the first call ever, never used twice.
    pub seq: u64,
    /// When, on the cloud's clock.
    pub at: Timestamp,
    /// Who; none if the token was unknown.
    #[serde(serialize_with = "name")]
    pub principal: Option<Arc<str>>,
    /// HTTP method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Kind of thing, empty if the path names none.
    pub kind: &'static str,
    /// What was to be done with it.
    pub verb: &'static str,
    /// A call of this verb can change something.
    pub mutating: bool,
    /// Status of the reply; none if no reply was sent.
    pub status: Option<u16>,
    /// Something did change.
    pub effect: bool,
    /// The thing concerned.
    pub thing: Option<String>,
    /// As in the reply's header.
    pub request_id: String,
    /// The fault that struck, if one did.
    pub fault: Option<&'static str>,
}
#[allow(clippy::ref_option)] // the shape that the derive asks for
fn name<S: Serializer>(name: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    name.as_deref().serialize(serializer)
}

/// Which calls to look at: all whose every named property matches.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallFilter {
    /// By this principal.
    pub principal: Option<String>,
    /// With this method.
    pub method: Option<String>,
    /// On paths that fit this pattern.
    pub path: Option<String>,
    /// On this kind.
    pub kind: Option<String>,
    /// Of this verb.
    pub verb: Option<String>,
    /// Answered with this status.
    pub status: Option<u16>,
    /// That changed something, or did not.
    pub effect: Option<bool>,
    /// That could have changed something, or could not.
    pub mutating: Option<bool>,
    /// Concerning this thing.
    pub thing: Option<String>,
    /// After this sequence number.
    pub after: Option<u64>,
}
impl CallFilter {
    /// Does it let this call through?
    pub fn admits(&self, call: &CallRecord) -> bool {
        fn same<T: PartialEq>(wanted: Option<&T>, is: &T) -> bool {
            wanted.is_none_or(|wanted| wanted == is)
        }
        self.principal.as_deref().is_none_or(|name| call.principal.as_deref() == Some(name))
            && same(self.method.as_ref(), &call.method)
            && self.path.as_deref().is_none_or(|path| pattern::fits(path, &call.path))
            && self.kind.as_deref().is_none_or(|kind| kind == call.kind)
            && self.verb.as_deref().is_none_or(|verb| verb == call.verb)
            && self.status.is_none_or(|status| call.status == Some(status))
            && same(self.effect.as_ref(), &call.effect)
            && same(self.mutating.as_ref(), &call.mutating)
            && self.thing.as_deref().is_none_or(|thing| call.thing.as_deref() == Some(thing))
            && self.after.is_none_or(|after| call.seq > after)
    }
}

/// The last calls.
#[derive(Debug)]
pub struct CallLog {
    calls: VecDeque<CallRecord>,
    most: usize,
    last: u64,
    forgotten: u64,
}
impl CallLog {
    /// Keeps at most this many.
    pub fn new(most: usize) -> Self {
        CallLog { calls: VecDeque::new(), most, last: 0, forgotten: 0 }
    }
    /// From now on keeps at most this many.
    pub fn keep(&mut self, most: usize) {
        self.most = most;
        self.trim();
    }
    /// The sequence number of the call that is coming in.
    pub(crate) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
    pub(crate) fn push(&mut self, call: CallRecord) {
        self.calls.push_back(call);
        self.trim();
    }
    fn trim(&mut self) {
        while self.calls.len() > self.most {
            self.calls.pop_front();
            self.forgotten += 1;
        }
    }
    /// The calls that a filter lets through, oldest first.
    pub fn matching(&self, filter: &CallFilter) -> impl Iterator<Item = &CallRecord> {
        self.calls.iter().filter(|call| filter.admits(call))
    }
    /// How many a filter lets through.
    pub fn count(&self, filter: &CallFilter) -> usize {
        self.matching(filter).count()
    }
    /// How many fell off the end since the log was last cleared: a count is whole only if this is 0.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
    /// The sequence number of the latest call.
    pub fn latest(&self) -> u64 {
        self.last
    }
    /// Empties the log; sequence numbers go on.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.forgotten = 0;
    }
}
