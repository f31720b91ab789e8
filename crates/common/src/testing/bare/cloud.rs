//! The bare cloud: late listings, late marks, slow deletes, tokens. Knows the truth for the checks.
use super::kind_of;
use crate::engine::estate::{Draft, Fault, Kind, Markable, Phase, Sighting, hash_params};
use crate::identity::{Mark, MarkSeen, Slot};
use crate::ledger::Id;
use crate::names::reason;
use crate::operator::Found;
use crate::testing::calendar::Millis;
use crate::testing::chance::Chance;
use crate::testing::cloud::{Deed, Lags, SimCloud, Truth, Twin};
use crate::testing::sim::date_of;
use crate::transport::{Request, Response};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Thing {
    id: Id,
    /// The account it lives in: credentials of another one do not see it.
    account: String,
    kind: &'static Kind,
    key: String,
    params: Value,
    token: Option<String>,
    by_controller: bool,
    born: Millis,
    readable: Option<String>,
    /// True from, seen from, what.
    marks: Vec<(Millis, Millis, MarkSeen)>,
    listed_from: Millis,
    got_from: Millis,
    ready_from: Millis,
    fails: bool,
    gone_at: Option<Millis>,
    ghost_until: Millis,
}
impl Thing {
    fn gone(&self, now: Millis) -> bool {
        self.gone_at.is_some_and(|at| at <= now)
    }
    fn sighting(&self, now: Millis) -> Sighting {
        let mark = self.marks.iter().rev().find(|m| m.1 <= now).map_or(MarkSeen::Nothing, |m| m.2.clone());
        let phase = match () {
            () if self.gone_at.is_some() => Phase::Deleting,
            () if self.ready_from > now => Phase::Building,
            () if self.fails => Phase::Failed("no capacity".into()),
            () => Phase::Ready,
        };
        Sighting {
            kind: self.kind.name,
            id: self.id.clone(),
            mark,
            readable: false,
            key: Some(self.key.clone()),
            params: Some(hash_params(&self.key, &self.params)),
            // whole seconds, as in most clouds
            born: Some(date_of(self.born / 1000 * 1000)),
            phase,
        }
    }
}

/// Where everything is, strangers' things included, unless credentials go astray.
const FIRST_ACCOUNT: &str = "acct-1";

/// A cloud of five kinds.
pub struct BareCloud {
    things: Vec<Thing>,
    deeds: Vec<Deed>,
    chance: Chance,
    lags: Lags,
    denied: BTreeSet<String>,
    refusals: u64,
    /// Of credentials handed out now.
    account: String,
    /// Of the credentials that the present call is made with.
    caller: String,
    fail_builds: bool,
    quota: Option<usize>,
}

/// What a create asks for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) kind: &'static Kind,
    pub(super) draft: Draft,
    pub(super) token: Option<String>,
    pub(super) mark: Option<Mark>,
    pub(super) readable: Option<String>,
}

impl BareCloud {
    /// An empty cloud.
    pub fn new(seed: u64, lags: Lags) -> Self {
        BareCloud {
            things: Vec::new(),
            deeds: Vec::new(),
            chance: Chance::new(seed ^ 0xC10D),
            lags,
            denied: BTreeSet::new(),
            refusals: 0,
            account: FIRST_ACCOUNT.into(),
            caller: FIRST_ACCOUNT.into(),
            fail_builds: false,
            quota: None,
        }
    }
    fn lag(&mut self, most: Millis) -> Millis {
        if self.lags.worst {
            most
        } else if self.chance.one_in(2) {
            0
        } else {
            self.chance.below(most + 1)
        }
    }
    fn may(&mut self, kind: &str, verb: &str) -> Result<(), Fault> {
        let permission = format!("{kind}.{verb}");
        if self.denied.contains(&permission) {
            self.refusals += 1;
            return Err(Fault::Denied(permission));
        }
        Ok(())
    }
    /// The calls that follow are made with credentials of this account.
    pub(super) fn called_by(&mut self, account: &str) {
        account.clone_into(&mut self.caller);
    }
    pub(super) fn whoami(&self) -> String {
        self.caller.clone()
    }
    fn shows(&self, thing: &Thing) -> bool {
        thing.account == self.caller
    }
    /// Everything that shows, with its readable tag.
    pub(super) fn list(&self, now: Millis) -> Vec<(Sighting, Option<String>)> {
        let seen = |t: &&Thing| now >= t.listed_from && (!t.gone(now) || now < t.ghost_until);
        self.things
            .iter()
            .filter(|t| self.shows(t))
            .filter(seen)
            .map(|t| (t.sighting(now), t.readable.clone()))
            .collect()
    }
    pub(super) fn get(&self, now: Millis, id: &str) -> Option<Sighting> {
        let seen = |t: &&Thing| t.id == id && self.shows(t) && now >= t.got_from && !t.gone(now);
        self.things.iter().find(seen).map(|t| t.sighting(now))
    }
    pub(super) fn create(&mut self, now: Millis, wanted: Wanted) -> Result<Id, Fault> {
        self.may(wanted.kind.name, "create")?;
        let id = self.make(now, wanted, true)?;
        Ok(id)
    }
    fn make(&mut self, now: Millis, wanted: Wanted, by_controller: bool) -> Result<Id, Fault> {
        let no = |message: &str| Err(Fault::Terminal { reason: reason::INVALID_REQUEST, message: message.into() });
        let Wanted { kind, draft, token, mark, readable } = wanted;
        if let Some(old) = self.things.iter().find(|t| token.is_some() && t.token == token && self.shows(t)) {
            return match () {
                () if old.params != draft.params || old.key != draft.key => no("token used with other parameters"),
                () if old.gone(now) => no("what this token made is gone"),
                () => Ok(old.id.clone()),
            };
        }
        let alive = |t: &&Thing| t.kind == kind && self.shows(t) && !t.gone(now);
        if self.quota.is_some_and(|most| self.things.iter().filter(alive).count() >= most) {
            return no("quota exceeded");
        }
        if kind.unique_key && self.things.iter().filter(alive).any(|t| t.key == draft.key) {
            return no("key taken");
        }
        let id = format!("{}-{:04}", kind.name, self.things.len() + 1);
        let (list, tag, get) = (self.lag(self.lags.list), self.lag(self.lags.tag), self.lag(self.lags.get));
        let build = if kind.name == super::BOX { self.lag(self.lags.build) } else { 0 };
        let mut marks = vec![(now, 0, MarkSeen::Nothing)];
        if let Some(mark) = mark {
            // the tags of a new thing may show later than the thing
            marks.push((now, now + list.max(tag), MarkSeen::Whole(mark)));
        }
        self.things.push(Thing {
            id: id.clone(),
            account: self.caller.clone(),
            kind,
            key: draft.key,
            params: draft.params,
            token,
            by_controller,
            born: now,
            readable,
            marks,
            listed_from: now + list,
            got_from: now + get,
            ready_from: now + build,
            fails: kind.name == super::BOX && self.fail_builds,
            gone_at: None,
            ghost_until: 0,
        });
        if by_controller {
            self.deeds.push(Deed::Created(id.clone()));
        }
        Ok(id)
    }
    pub(super) fn tag(&mut self, now: Millis, kind: &Kind, id: &str, mark: Option<&Mark>) -> Result<bool, Fault> {
        self.may(kind.name, "tag")?;
        if kind.markable == Markable::Never {
            return Err(Fault::Terminal { reason: reason::INVALID_REQUEST, message: "takes no tags".into() });
        }
        if !self.things.iter().any(|t| t.id == id && self.shows(t)) {
            return Ok(false);
        }
        self.deeds.push(Deed::Tagged(id.into()));
        Ok(self.set_mark(now, id, mark))
    }
    fn set_mark(&mut self, now: Millis, id: &str, mark: Option<&Mark>) -> bool {
        let lag = self.lag(self.lags.tag);
        let Some(thing) = self.things.iter_mut().find(|t| t.id == id && !t.gone(now)) else { return false };
        let seen = thing.marks.last().map_or(0, |m| m.1).max(now + lag);
        thing.marks.push((now, seen, mark.map_or(MarkSeen::Nothing, |m| MarkSeen::Whole(m.clone()))));
        true
    }
    pub(super) fn delete(&mut self, now: Millis, kind: &Kind, id: &str) -> Result<(), Fault> {
        self.may(kind.name, "delete")?;
        if self.things.iter().any(|t| t.id == id && self.shows(t)) && self.end(now, id) {
            self.deeds.push(Deed::Deleted(id.into()));
        }
        Ok(())
    }
    fn end(&mut self, now: Millis, id: &str) -> bool {
        let (takes, ghost) = (self.lag(self.lags.delete), self.lag(self.lags.ghost));
        let Some(thing) = self.things.iter_mut().find(|t| t.id == id && t.gone_at.is_none()) else { return false };
        thing.gone_at = Some(now + takes);
        thing.ghost_until = now + takes + ghost;
        true
    }
    /// Live things that people know by this readable tag: slot and id.
    pub(super) fn slots(&self, readable: &str) -> BTreeMap<Slot, Id> {
        let ours = self.things.iter().filter(|t| t.gone_at.is_none() && t.readable.as_deref() == Some(readable));
        let slot = |t: &Thing| match t.marks.last() {
            Some((_, _, MarkSeen::Whole(mark))) => Some(mark.slot.clone()),
            _ => None,
        };
        ours.filter_map(|t| Some((slot(t)?, t.id.clone()))).collect()
    }
    /// Everything alive, for an audit.
    pub(super) fn found(&self) -> Vec<Found> {
        let found = |t: &Thing| Found {
            kind: t.kind.name,
            id: t.id.clone(),
            mark: t.marks.last().map_or(MarkSeen::Nothing, |m| m.2.clone()),
            name: t.key.clone(),
            parent: t.params.pointer("/on/0").and_then(Value::as_str).map(str::to_owned),
        };
        self.things.iter().filter(|t| t.gone_at.is_none()).map(found).collect()
    }
    fn tell(thing: &Thing) -> Truth {
        Truth {
            id: thing.id.clone(),
            kind: thing.kind.name.into(),
            key: thing.key.clone(),
            by_controller: thing.by_controller,
            live: thing.gone_at.is_none(),
            marks: thing.marks.iter().map(|m| (m.0, m.2.clone())).collect(),
            born: thing.born,
            marked_at_create: thing.kind.markable == Markable::AtCreate,
            params: Some(hash_params(&thing.key, &thing.params)),
        }
    }
}

impl SimCloud for BareCloud {
    fn exchange(&mut self, _now: Millis, _request: Request) -> Response {
        let mut response = Response::new(Vec::new());
        *response.status_mut() = http::StatusCode::NOT_IMPLEMENTED;
        response
    }
    fn deeds(&mut self) -> Vec<Deed> {
        std::mem::take(&mut self.deeds)
    }
    fn truth(&self) -> Vec<Truth> {
        self.things.iter().map(Self::tell).collect()
    }
    fn thing(&self, id: &str) -> Option<Truth> {
        self.things.iter().find(|t| t.id == id).map(Self::tell)
    }
    fn plant(&mut self, now: Millis, twin: &Twin, mark: Option<&Mark>) -> Option<Id> {
        let kind = kind_of(&twin.kind)?;
        let text = |name: &str| twin.params.get(name).and_then(Value::as_str).map(str::to_owned);
        let draft = Draft { key: text("key")?, params: twin.params.get("params")?.clone() };
        let mark = mark.filter(|_| kind.markable != Markable::Never).cloned();
        let wanted = Wanted { kind, draft, token: None, mark, readable: text("readable") };
        self.called_by(FIRST_ACCOUNT);
        self.make(now, wanted, false).ok()
    }
    fn remove(&mut self, now: Millis, id: &str) {
        self.end(now, id);
    }
    fn retag(&mut self, now: Millis, id: &str, mark: Option<&Mark>) {
        self.set_mark(now, id, mark);
    }
    fn deny(&mut self, permission: &str) {
        self.denied.insert(permission.into());
    }
    fn allow_all(&mut self) {
        self.denied.clear();
    }
    fn refusals(&self) -> u64 {
        self.refusals
    }
    fn account(&mut self, name: &str) {
        self.account = name.into();
    }
    fn current_account(&self) -> String {
        self.account.clone()
    }
    fn lags(&mut self, lags: Lags) {
        self.lags = lags;
    }
    fn fail_builds(&mut self, fail: bool) {
        self.fail_builds = fail;
    }
    fn quota(&mut self, most: Option<usize>) {
        self.quota = most;
    }
}
