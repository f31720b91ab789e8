//! Events for people: best effort, aggregated, bounded. No pass ever waits for one or fails by one.
use crate::clock::{Boot, SharedClock};
use crate::conditions::{cut, without_request_ids};
use crate::engine::owner::OwnerView;
use crate::engine::report::Note;
use crate::random::Random;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{ApiResource, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::debug;

/// Events waiting to be sent.
const QUEUED: usize = 256;
/// The API server refuses longer notes.
const MOST_NOTE: usize = 1000;
const CALL: Duration = Duration::from_secs(5);

/// Repeats within this time are one event with a count.
const WINDOW: Duration = Duration::from_mins(10);
/// A repeated event is written at most this often at first; the pause doubles with every time...
const BUMP: Duration = Duration::from_secs(30);
/// ...up to this, so that what stands in the way for days costs two writes an hour.
const MOST_BUMP: Duration = Duration::from_mins(30);
/// New events: so many at once, then one per refill.
const BURST: u32 = 50;
const REFILL: Duration = Duration::from_secs(2);
/// Events remembered.
const MOST_KNOWN: usize = 8192;

/// What to do about an event. Pure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write a new one.
    Create,
    /// Write the count on this one.
    Bump(String, u32),
    /// Write nothing.
    Hold,
}
#[derive(Debug)]
struct Known {
    name: String,
    count: u32,
    last: Boot,
    written: Boot,
    /// How long it is held back after it was written.
    pause: Duration,
}
/// Sorts new events from repeats and keeps both within bounds. Pure: time is an argument.
#[derive(Debug)]
pub struct Aggregator {
    known: HashMap<u64, Known>,
    tokens: u32,
    refilled: Boot,
}
impl Aggregator {
    /// With a full bucket.
    pub fn new(now: Boot) -> Self {
        Aggregator { known: HashMap::new(), tokens: BURST, refilled: now }
    }
    /// An event came up; `name` is what it will be called if it is new.
    pub fn offer(&mut self, digest: u64, name: &str, now: Boot) -> Verdict {
        self.refill(now);
        if let Some(known) = self.known.get_mut(&digest).filter(|k| now.since(k.last) < WINDOW) {
            known.count = known.count.saturating_add(1);
            known.last = now;
            if now.since(known.written) < known.pause {
                return Verdict::Hold;
            }
            known.written = now;
            known.pause = (known.pause * 2).min(MOST_BUMP);
            return Verdict::Bump(known.name.clone(), known.count);
        }
        if self.tokens == 0 {
            return Verdict::Hold;
        }
        self.tokens -= 1;
        self.make_room(now);
        self.known.insert(digest, Known { name: name.to_owned(), count: 1, last: now, written: now, pause: BUMP });
        Verdict::Create
    }
    /// The event could not be written, or is gone: the next one starts anew.
    pub fn forget(&mut self, digest: u64) {
        self.known.remove(&digest);
    }
    fn refill(&mut self, now: Boot) {
        let due = now.since(self.refilled).as_millis() / REFILL.as_millis();
        let due = u32::try_from(due).unwrap_or(u32::MAX);
        if due > 0 {
            self.tokens = self.tokens.saturating_add(due).min(BURST);
            self.refilled = self.refilled + REFILL * due.min(1_000_000);
        }
    }
    fn make_room(&mut self, now: Boot) {
        if self.known.len() >= MOST_KNOWN {
            self.known.retain(|_, k| now.since(k.last) < WINDOW);
        }
        if self.known.len() >= MOST_KNOWN {
            let oldest = self.known.iter().min_by_key(|(_, k)| k.last).map(|(digest, _)| *digest);
            oldest.and_then(|digest| self.known.remove(&digest));
        }
    }
}

struct Order {
    regarding: ObjectReference,
    note: Note,
}

/// Takes events. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    sender: mpsc::Sender<Order>,
    resource: ApiResource,
}
/// Who reports.
#[derive(Clone, Debug)]
pub struct Reporter {
    /// Name of the controller.
    pub controller: String,
    /// Name of the pod.
    pub instance: String,
}
impl Events {
    /// For owners of this kind. The future does the sending; it ends when every [`Events`] is dropped.
    pub fn start(
        client: Client,
        resource: ApiResource,
        reporter: Reporter,
        clock: SharedClock,
        random: Arc<Random>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, orders) = mpsc::channel(QUEUED);
        (Events { sender, resource }, send_all(client, reporter, clock, random, orders))
    }
    /// Leaves notes about an owner. What does not fit in the queue is dropped.
    pub fn publish(&self, owner: &OwnerView, notes: &[Note]) {
        for note in notes {
            let regarding = ObjectReference {
                api_version: Some(self.resource.api_version.clone()),
                kind: Some(self.resource.kind.clone()),
                namespace: Some(owner.namespace.clone()).filter(|n| !n.is_empty()),
                name: Some(owner.name.clone()),
                uid: Some(owner.uid.clone()),
                ..ObjectReference::default()
            };
            if self.sender.try_send(Order { regarding, note: note.clone() }).is_err() {
                debug!(reason = note.reason, "event dropped: too many are waiting");
            }
        }
    }
}

async fn send_all(
    client: Client,
    reporter: Reporter,
    clock: SharedClock,
    random: Arc<Random>,
    mut orders: mpsc::Receiver<Order>,
) {
    let mut aggregator = Aggregator::new(clock.boot());
    while let Some(order) = orders.recv().await {
        let name = event_name(&order.regarding, random.bits64());
        let digest = digest(&order);
        let namespace = order.regarding.namespace.as_deref().unwrap_or("default");
        let api: Api<Event> = Api::namespaced(client.clone(), namespace);
        let sent = match aggregator.offer(digest, &name, clock.boot()) {
            Verdict::Hold => continue,
            Verdict::Create => {
                let event = new_event(&order, &name, namespace, &reporter, clock.wall());
                let params = PostParams::default();
                tokio::time::timeout(CALL, api.create(&params, &event)).await
            }
            Verdict::Bump(name, count) => {
                let series = json!({"series": {"count": count, "lastObservedTime": MicroTime(clock.wall())}});
                let params = PatchParams::default();
                tokio::time::timeout(CALL, api.patch(&name, &params, &Patch::Merge(&series))).await
            }
        };
        if !matches!(sent, Ok(Ok(_))) {
            debug!(reason = order.note.reason, "event not stored");
            aggregator.forget(digest);
        }
    }
}

fn digest(order: &Order) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&order.regarding.uid, order.note.warning, order.note.reason).hash(&mut hasher);
    // The same trouble met again under another request id is a repeat.
    without_request_ids(&order.note.message).for_each(|word| word.hash(&mut hasher));
    hasher.finish()
}
fn event_name(regarding: &ObjectReference, number: u64) -> String {
    let owner: String = regarding.name.as_deref().unwrap_or_default().chars().take(200).collect();
    format!("{owner}.{number:016x}")
}
fn new_event(order: &Order, name: &str, namespace: &str, reporter: &Reporter, now: jiff::Timestamp) -> Event {
    Event {
        metadata: ObjectMeta { name: Some(name.into()), namespace: Some(namespace.into()), ..ObjectMeta::default() },
        action: Some("Reconcile".into()),
        reason: Some(order.note.reason.into()),
        note: Some(cut(&order.note.message, MOST_NOTE)),
        type_: Some(if order.note.warning { "Warning" } else { "Normal" }.into()),
        event_time: Some(MicroTime(now)),
        regarding: Some(order.regarding.clone()),
        reporting_controller: Some(format!("{}{}", crate::names::PREFIX, reporter.controller)),
        reporting_instance: Some(cut(&reporter.instance, 120)),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Boot {
        Boot(Duration::from_secs(seconds))
    }

    #[test]
    fn repeats_are_counted_and_written_now_and_then() {
        let mut aggregator = Aggregator::new(at(0));
        assert_eq!(aggregator.offer(1, "a", at(0)), Verdict::Create);
        assert_eq!(aggregator.offer(1, "b", at(10)), Verdict::Hold);
        assert_eq!(aggregator.offer(1, "c", at(31)), Verdict::Bump("a".into(), 3));
        assert_eq!(aggregator.offer(1, "d", at(31 + 600)), Verdict::Create, "a new one after ten quiet minutes");
    }
    #[test]
    fn what_never_ends_is_written_ever_more_seldom() {
        let mut aggregator = Aggregator::new(at(0));
        let looks = (0..24 * 60).map(|minute| aggregator.offer(1, "a", at(60 * minute)));
        let writes = looks.filter(|verdict| *verdict != Verdict::Hold).count();
        assert!((48..60).contains(&writes), "{writes} writes in a day of one look a minute");
    }
    #[test]
    fn a_flood_of_different_events_is_bounded() {
        let mut aggregator = Aggregator::new(at(0));
        let created = (0..1000).filter(|n| aggregator.offer(*n, "x", at(0)) == Verdict::Create).count();
        assert_eq!(created, BURST as usize);
        assert_eq!(aggregator.offer(5000, "x", at(2)), Verdict::Create);
        assert_eq!(aggregator.offer(5001, "x", at(2)), Verdict::Hold);
    }
    #[test]
    fn memory_is_bounded() {
        let mut aggregator = Aggregator::new(at(0));
        for n in 0..50_000 {
            aggregator.offer(n, "x", at(2 * n));
        }
        assert!(aggregator.known.len() <= MOST_KNOWN);
    }
    #[test]
    fn a_lost_event_is_written_anew() {
        let mut aggregator = Aggregator::new(at(0));
        aggregator.offer(1, "a", at(0));
        aggregator.forget(1);
        assert_eq!(aggregator.offer(1, "b", at(1)), Verdict::Create);
    }
    #[test]
    fn trouble_under_another_request_id_is_a_repeat() {
        let order = |message: &str| Order {
            regarding: ObjectReference::default(),
            note: Note { warning: true, reason: "Quota", message: message.into() },
        };
        let first = digest(&order("no room (HTTP 403, request req-1)"));
        assert_eq!(first, digest(&order("no room (HTTP 403, request req-2)")));
        assert_ne!(first, digest(&order("no room (HTTP 409, request req-1)")));
    }
    #[test]
    fn an_event_keeps_within_the_api_servers_limits() {
        let note = Note { warning: true, reason: "Reason", message: "x".repeat(5000) };
        let regarding = ObjectReference { name: Some("o".repeat(253)), ..ObjectReference::default() };
        let name = event_name(&regarding, u64::MAX);
        let reporter = Reporter { controller: "sample".into(), instance: "p".repeat(300) };
        let event = new_event(&Order { regarding, note }, &name, "n", &reporter, jiff::Timestamp::UNIX_EPOCH);
        assert!(
            name.len() <= 253 && event.note.unwrap().len() <= 1024 && event.reporting_instance.unwrap().len() <= 128
        );
        assert_eq!(event.type_.as_deref(), Some("Warning"));
    }
}
