//! An API server and a cloud that only pretend: they start as the real ones are, and take every write in memory.
use crate::clock::{Boot, Clock};
use crate::engine::estate::{
    Adjusted, CreateOrder, Estate, Fault, Freshness, Ids, Kind, Listing, Markable, Outcome, Phase, Piece, Sighting,
    Thing,
};
use crate::engine::owner::{ApiUnavailable, OwnerApi, OwnerPatch, OwnerView, Patched};
use crate::identity::{Mark, MarkSeen};
use crate::ledger::Id;
use async_trait::async_trait;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time that passes only when told to: nobody waits for a settle time to see a plan.
pub(super) struct ShadowClock {
    wall: Timestamp,
    now: Mutex<Duration>,
}
impl ShadowClock {
    pub(super) fn new(wall: Timestamp) -> Self {
        // Not at the beginning of time: "one settle ago" must be a moment too.
        ShadowClock { wall, now: Mutex::new(Duration::from_hours(24)) }
    }
    pub(super) fn advance(&self, by: Duration) {
        *lock(&self.now) += by;
    }
    fn elapsed(&self) -> Duration {
        lock(&self.now).saturating_sub(Duration::from_hours(24))
    }
}
impl Clock for ShadowClock {
    fn boot(&self) -> Boot {
        Boot(*lock(&self.now))
    }
    fn wall(&self) -> Timestamp {
        self.wall.saturating_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }
    fn sleep_until(&self, until: Boot) -> BoxFuture<'static, ()> {
        self.advance(until.since(self.boot()));
        Box::pin(std::future::ready(()))
    }
}

/// One owner, in memory.
pub(super) struct ShadowApi(Mutex<Option<OwnerView>>);
impl ShadowApi {
    pub(super) fn new(view: &OwnerView) -> Self {
        ShadowApi(Mutex::new(Some(view.clone())))
    }
    pub(super) fn current(&self) -> Option<OwnerView> {
        lock(&self.0).clone()
    }
    fn change(&self, view: &OwnerView, change: impl FnOnce(&mut OwnerView)) -> Patched {
        let mut stored = lock(&self.0);
        let Some(now) = stored.as_mut() else { return Patched::Gone };
        if now.resource_version != view.resource_version {
            return Patched::Conflict;
        }
        change(now);
        now.resource_version.push('+');
        let after = now.clone();
        if after.deleting && after.finalizers.is_empty() {
            *stored = None;
        }
        Patched::Stored(Box::new(after))
    }
}
#[async_trait]
impl OwnerApi for ShadowApi {
    async fn get(&self, _: &str, _: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
        Ok(self.current())
    }
    async fn patch(&self, view: &OwnerView, patch: &OwnerPatch) -> Patched {
        self.change(view, |now| {
            for (key, value) in &patch.annotations {
                match value {
                    Some(value) => now.annotations.insert(key.clone(), value.clone()),
                    None => now.annotations.remove(key),
                };
            }
            if let Some(finalizers) = &patch.finalizers {
                now.finalizers.clone_from(finalizers);
            }
        })
    }
    async fn patch_status(&self, view: &OwnerView, conditions: &[Condition], _: &Value) -> Patched {
        self.change(view, |now| now.conditions = conditions.to_vec())
    }
}

/// A write that would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deed {
    pub(super) verb: &'static str,
    pub(super) slot: String,
    pub(super) id: Id,
    pub(super) detail: String,
}

#[derive(Default)]
struct Changes {
    deeds: Vec<Deed>,
    /// What would be there, or would look otherwise.
    overlay: BTreeMap<Id, Sighting>,
    gone: BTreeSet<Id>,
    adjusted: BTreeSet<Id>,
    listing: Option<Listing>,
}

/// A cloud that answers reads as the real one and keeps writes to itself.
pub(super) struct ShadowEstate<'a> {
    real: &'a dyn Estate,
    clock: Arc<ShadowClock>,
    changes: Mutex<Changes>,
}
impl<'a> ShadowEstate<'a> {
    pub(super) fn new(real: &'a dyn Estate, clock: Arc<ShadowClock>) -> Self {
        ShadowEstate { real, clock, changes: Mutex::default() }
    }
    pub(super) fn deeds(&self) -> Vec<Deed> {
        lock(&self.changes).deeds.clone()
    }
    fn kind(&self, name: &str) -> Option<&'static Kind> {
        self.real.kinds().iter().find(|kind| kind.name == name)
    }
    fn did(&self, verb: &'static str, thing: &Thing, detail: impl Into<String>) {
        let (slot, id) = (thing.slot.to_string(), thing.id.clone());
        lock(&self.changes).deeds.push(Deed { verb, slot, id, detail: detail.into() });
    }
    async fn remark(&self, thing: &Thing, mark: MarkSeen) -> Outcome<()> {
        match self.get(thing).await {
            Ok(Some(seen)) => {
                lock(&self.changes).overlay.insert(thing.id.clone(), Sighting { mark, ..seen });
                Outcome::Done(())
            }
            Ok(None) => Outcome::Refused(Fault::Transient(format!("{} is not there", thing.id))),
            Err(fault) => Outcome::Refused(fault),
        }
    }
}

#[async_trait]
impl Estate for ShadowEstate<'_> {
    fn kinds(&self) -> &'static [Kind] {
        self.real.kinds()
    }
    fn pieces(&self, ids: &Ids) -> Vec<Piece> {
        self.real.pieces(ids)
    }
    async fn scope(&self) -> Result<String, Fault> {
        self.real.scope().await
    }
    async fn list(&self, _: Freshness) -> Result<Listing, Fault> {
        let known = lock(&self.changes).listing.clone();
        let real = match known {
            Some(listing) => listing,
            None => self.real.list(Freshness::Any).await?,
        };
        let mut changes = lock(&self.changes);
        changes.listing = Some(real.clone());
        let kept = real.things.into_iter().filter(|thing| !changes.overlay.contains_key(&thing.id));
        let things = kept.chain(changes.overlay.values().cloned()).filter(|thing| !changes.gone.contains(&thing.id));
        let date = real.date.saturating_add(self.clock.elapsed()).unwrap_or(Timestamp::MAX);
        Ok(Listing { sent: self.clock.boot(), date, things: things.collect() })
    }
    async fn get(&self, thing: &Thing) -> Result<Option<Sighting>, Fault> {
        {
            let changes = lock(&self.changes);
            if changes.gone.contains(&thing.id) {
                return Ok(None);
            }
            if let Some(seen) = changes.overlay.get(&thing.id) {
                return Ok(Some(seen.clone()));
            }
        }
        self.real.get(thing).await
    }
    async fn create(&self, order: CreateOrder<'_>) -> Outcome<Id> {
        let Some(kind) = self.kind(order.slot.kind()) else {
            return Outcome::Refused(Fault::Transient(format!("{} is of no known kind", order.slot)));
        };
        let thing = Thing { slot: order.slot.clone(), id: format!("(new {})", order.slot) };
        self.did("create", &thing, order.draft.params.to_string());
        let at_once = kind.markable == Markable::AtCreate;
        let seen = Sighting {
            kind: kind.name,
            id: thing.id.clone(),
            mark: if at_once { MarkSeen::Whole(order.mark.clone()) } else { MarkSeen::Nothing },
            readable: at_once,
            key: Some(order.draft.key.clone()),
            params: Some(order.draft.hash()),
            born: Some(self.clock.wall()),
            phase: Phase::Ready,
        };
        let mut changes = lock(&self.changes);
        changes.gone.remove(&thing.id);
        changes.overlay.insert(thing.id.clone(), seen);
        Outcome::Done(thing.id)
    }
    async fn mark(&self, thing: &Thing, mark: &Mark) -> Outcome<()> {
        self.did("mark", thing, "");
        self.remark(thing, MarkSeen::Whole(mark.clone())).await
    }
    async fn unmark(&self, thing: &Thing) -> Outcome<()> {
        self.did("unmark", thing, "");
        self.remark(thing, MarkSeen::Nothing).await
    }
    async fn delete(&self, thing: &Thing) -> Outcome<()> {
        self.did("delete", thing, "");
        lock(&self.changes).gone.insert(thing.id.clone());
        Outcome::Done(())
    }
    fn drift(&self, piece: &Piece, seen: &Sighting) -> Option<String> {
        self.real.drift(piece, seen)
    }
    async fn adjust(&self, piece: &Piece, seen: &Sighting) -> Result<Adjusted, Fault> {
        match self.drift(piece, seen) {
            Some(what) if lock(&self.changes).adjusted.insert(seen.id.clone()) => {
                self.did("change", &Thing { slot: piece.slot.clone(), id: seen.id.clone() }, what.clone());
                Ok(Adjusted::Changed(what))
            }
            _ => Ok(Adjusted::Unchanged),
        }
    }
}
