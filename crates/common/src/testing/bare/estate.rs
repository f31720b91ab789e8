//! The bare cloud as the engine sees it: one call per step, nothing decided here.
use super::cloud::{BareCloud, Wanted};
use super::spec::Spec;
use super::{KINDS, kind_of};
use crate::clock::{Boot, SharedClock};
use crate::engine::estate::{
    CreateOrder, Estate, Fault, Freshness, Ids, Kind, Listing, Markable, Outcome, Piece, Sighting, Thing,
};
use crate::identity::Mark;
use crate::ledger::Id;
use crate::names::reason;
use crate::testing::calendar::Millis;
use crate::testing::sim::{Sim, State};
use crate::testing::sim_clock::millis;
use crate::testing::wire::{Call, Heard, Target};
use async_trait::async_trait;
use jiff::Timestamp;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What all owners of one process share: the newest listing, and who we are in the cloud.
#[derive(Default)]
pub(super) struct Shared {
    snapshot: Mutex<Option<Arc<Snapshot>>>,
    scope: Mutex<Option<(Boot, String)>>,
}
struct Snapshot {
    sent: Boot,
    date: Timestamp,
    things: Vec<(Sighting, Option<String>)>,
}

/// The cloud for one owner.
pub(super) struct BareEstate {
    pub(super) sim: Sim,
    pub(super) clock: SharedClock,
    pub(super) call: Duration,
    pub(super) interval: Duration,
    pub(super) spec: Spec,
    pub(super) shared: Arc<Shared>,
    /// Of this process's credentials.
    pub(super) account: String,
}

fn on<R>(s: &mut State, account: &str, act: impl FnOnce(&mut BareCloud, Millis) -> R) -> Option<R> {
    let now = s.now();
    let cloud: &mut dyn Any = s.cloud.as_mut();
    let done = cloud.downcast_mut::<BareCloud>().map(|cloud| {
        cloud.called_by(account);
        act(cloud, now)
    });
    s.judge_deeds();
    done
}

/// What was heard of a write; an answer that is none says nothing.
fn outcome<T>(heard: Heard<Option<Result<T, Fault>>>) -> Outcome<T> {
    match heard {
        Heard::Reply(Some(Ok(done))) => Outcome::Done(done),
        Heard::Reply(Some(Err(fault))) => Outcome::Refused(fault),
        Heard::NotSent => Outcome::Refused(Fault::Transient("connection refused".into())),
        Heard::Status(code) => Outcome::Unknown(format!("status {code}")),
        Heard::NoReply | Heard::Garbage | Heard::Reply(None) => Outcome::Unknown("no answer".into()),
    }
}
fn read<T>(heard: Heard<Option<T>>) -> Result<T, Fault> {
    match heard {
        Heard::Reply(Some(answer)) => Ok(answer),
        Heard::Status(429) => Err(Fault::Throttled(Duration::from_secs(1))),
        other => Err(Fault::Transient(match other {
            Heard::Status(code) => format!("status {code}"),
            _ => "no answer".into(),
        })),
    }
}

impl BareEstate {
    fn call(&self, writes: bool) -> Call {
        Call { target: Target::Cloud, writes, timeout: millis(self.call) }
    }
    async fn fetch(&self) -> Result<Arc<Snapshot>, Fault> {
        let (sent, account) = (self.clock.boot(), self.account.clone());
        let effect = move |s: &mut State| {
            let date = s.date();
            on(s, &account, |cloud, now| (date, cloud.list(now)))
        };
        let (date, things) = read(self.sim.call(self.call(false), || "cloud list".into(), effect).await)?;
        // whole seconds, as a Date header has
        let date = Timestamp::from_second(date.as_second()).unwrap_or(date);
        let snapshot = Arc::new(Snapshot { sent, date, things });
        let mut newest = self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.as_ref().is_none_or(|old| old.sent < sent) {
            *newest = Some(Arc::clone(&snapshot));
        }
        Ok(snapshot)
    }
}

#[async_trait]
impl Estate for BareEstate {
    fn kinds(&self) -> &'static [Kind] {
        &KINDS
    }
    fn pieces(&self, ids: &Ids) -> Vec<Piece> {
        self.spec.pieces(ids)
    }
    async fn scope(&self) -> Result<String, Fault> {
        let known = self.shared.scope.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = self.clock.boot();
        if let Some((asked, scope)) = known
            && now.since(asked) < Duration::from_mins(1)
        {
            return Ok(scope);
        }
        let account = self.account.clone();
        let effect = move |s: &mut State| on(s, &account, |cloud, _| cloud.whoami());
        let scope = read(self.sim.call(self.call(false), || "cloud whoami".into(), effect).await)?;
        *self.shared.scope.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, scope.clone()));
        Ok(scope)
    }
    async fn list(&self, freshness: Freshness) -> Result<Listing, Fault> {
        let known = self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let from = match freshness {
            Freshness::Any => self.clock.boot().minus(self.interval),
            Freshness::SentAfter(moment) => moment,
        };
        let snapshot = match known {
            Some(known) if known.sent >= from => known,
            _ => self.fetch().await?,
        };
        let show = |(seen, readable): &(Sighting, Option<String>)| Sighting {
            readable: readable.as_deref() == Some(self.spec.name.as_str()),
            ..seen.clone()
        };
        Ok(Listing { sent: snapshot.sent, date: snapshot.date, things: snapshot.things.iter().map(show).collect() })
    }
    async fn get(&self, thing: &Thing) -> Result<Option<Sighting>, Fault> {
        let (id, account) = (thing.id.clone(), self.account.clone());
        let effect = move |s: &mut State| on(s, &account, |cloud, now| cloud.get(now, &id));
        read(self.sim.call(self.call(false), || format!("cloud get {}", thing.id), effect).await)
    }
    async fn create(&self, order: CreateOrder<'_>) -> Outcome<Id> {
        let Some(kind) = kind_of(order.slot.kind()) else {
            let message = format!("no kind {}", order.slot.kind());
            return Outcome::Refused(Fault::Terminal { reason: reason::INVALID_OBJECT, message });
        };
        if self.clock.boot() > order.not_after {
            return Outcome::Refused(Fault::Transient("too late to be sent".into()));
        }
        let wanted = Wanted {
            kind,
            draft: order.draft.clone(),
            token: order.token.map(str::to_owned),
            mark: (kind.markable == Markable::AtCreate).then(|| order.mark.clone()),
            readable: (kind.markable == Markable::AtCreate).then(|| self.spec.name.clone()),
        };
        let label = || format!("cloud create {} token {:?}", order.slot, order.token);
        let account = self.account.clone();
        let effect = move |s: &mut State| {
            let made = on(s, &account, |cloud, now| cloud.create(now, wanted));
            s.say(|| format!("  cloud: create -> {made:?}"));
            made
        };
        outcome(self.sim.call(self.call(true), label, effect).await)
    }
    async fn mark(&self, thing: &Thing, mark: &Mark) -> Outcome<()> {
        self.tag(thing, Some(mark.clone())).await
    }
    async fn unmark(&self, thing: &Thing) -> Outcome<()> {
        self.tag(thing, None).await
    }
    async fn delete(&self, thing: &Thing) -> Outcome<()> {
        let Some(kind) = kind_of(thing.slot.kind()) else { return Outcome::Done(()) };
        let (id, account) = (thing.id.clone(), self.account.clone());
        let effect = move |s: &mut State| {
            let done = on(s, &account, |cloud, now| cloud.delete(now, kind, &id));
            s.say(|| format!("  cloud: delete {id} -> {done:?}"));
            done
        };
        outcome(self.sim.call(self.call(true), || format!("cloud delete {}", thing.id), effect).await)
    }
}

impl BareEstate {
    async fn tag(&self, thing: &Thing, mark: Option<Mark>) -> Outcome<()> {
        let Some(kind) = kind_of(thing.slot.kind()) else { return Outcome::Done(()) };
        let id = thing.id.clone();
        let label = || format!("cloud tag {} {}", thing.id, if mark.is_some() { "on" } else { "off" });
        let (label, account) = (label(), self.account.clone());
        let effect = move |s: &mut State| {
            let done = on(s, &account, |cloud, now| cloud.tag(now, kind, &id, mark.as_ref()));
            s.say(|| format!("  cloud: tag {id} -> {done:?}"));
            done
        };
        match outcome(self.sim.call(self.call(true), || label, effect).await) {
            Outcome::Done(true) => Outcome::Done(()),
            Outcome::Done(false) => {
                Outcome::Refused(Fault::Terminal { reason: reason::RESOURCE_LOST, message: "not found".into() })
            }
            Outcome::Refused(fault) => Outcome::Refused(fault),
            Outcome::Unknown(why) => Outcome::Unknown(why),
        }
    }
}
