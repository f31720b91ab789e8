//! Tells people: the status, compliance events for the parent policy, events on the policy itself.
use crate::api::{ConfigurationPolicy, PolicyStatus};
use crate::cluster::kinds::Mapping;
use crate::cluster::objects::Objects;
use crate::cluster::wire::{Call, Trouble, Verb, Wanted};
use crate::dialect::Dialect;
use crate::names::{EVENT_SOURCE, GROUP, KIND, MANAGER, PLURAL, VERSION};
use crate::standing::{self, COMPLIANT, Closing, NON_COMPLIANT};
use crate::text::duration::seconds;
use common::clock::SharedClock;
use common::random::Random;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;
use tracing::{debug, warn};

/// Events waiting to be sent; more are dropped.
const QUEUED: usize = 4096;

/// Characters of an owner's name in the name of an event: both and a moment in hexadecimal fit into 253.
const MOST_TITLE: usize = 230;

/// Policies.
pub fn mapping() -> Mapping {
    Mapping::known(GROUP, VERSION, KIND, PLURAL, true)
}

/// Sends events on policies, one after the other, and never keeps a pass waiting.
#[derive(Clone)]
pub struct Notices(Option<mpsc::Sender<Call>>);
impl Notices {
    /// Nobody listens.
    pub fn silent() -> Self {
        Notices(None)
    }
    /// A queue, and the task that empties it.
    pub fn start(objects: Objects) -> (Self, impl Future<Output = ()>) {
        let (send, mut receive) = mpsc::channel::<Call>(QUEUED);
        let sending = async move {
            while let Some(call) = receive.recv().await {
                if let Err(why) = objects.0.call(call).await {
                    debug!(%why, "event not written");
                }
            }
        };
        (Notices(Some(send)), sending)
    }
    fn send(&self, call: Call) {
        if let Some(queue) = &self.0
            && queue.try_send(call).is_err()
        {
            debug!("too many events: one is dropped");
        }
    }
}

/// Tells.
#[derive(Clone)]
pub struct Reporter {
    /// Writes.
    pub objects: Objects,
    /// Events on policies.
    pub notices: Notices,
    /// Time.
    pub clock: SharedClock,
    /// Names of events.
    pub random: Arc<Random>,
    /// Name of this process.
    pub instance: String,
}
impl Reporter {
    /// Writes a status, events first. Returns the head of the stored policy. A state that is over in a moment has no event of its own.
    pub async fn write(
        &self,
        policy: &ConfigurationPolicy,
        closing: &Closing,
        dialect: Dialect,
        passing: bool,
    ) -> Result<Value, Trouble> {
        if closing.tell {
            self.tell_parent(policy, &closing.status).await?;
        }
        let meta = &policy.metadata;
        let (namespace, name) =
            (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
        let path = format!("{}/status", mapping().path_of(namespace, name));
        let operations = json!([
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "add", "path": "/status", "value": closing.status},
        ]);
        let call = Call::new(Verb::Patch, path).with("fieldManager", MANAGER).sending(operations);
        let stored = self.objects.0.call(call.hearing(Wanted::Head)).await?;
        if closing.tell && !passing {
            let violation = closing.status.compliant == NON_COMPLIANT;
            let note = standing::note_text(&closing.status);
            self.note(policy, violation, dialect.update_reason(), "Policy status updated", &note);
        }
        Ok(stored)
    }
    /// An event on the policy.
    pub fn note(&self, policy: &ConfigurationPolicy, warning: bool, reason: &str, action: &str, note: &str) {
        let meta = &policy.metadata;
        let namespace = meta.namespace.clone().unwrap_or_default();
        let name = standing::cut(meta.name.as_deref().unwrap_or_default(), 200, "");
        let now = self.clock.wall();
        // Of the core group and without eventTime: with a count, as tools that watch policies expect it.
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("{name}.{:016x}", self.random.bits64()), "namespace": namespace},
            "involvedObject": reference(policy),
            "reason": standing::cut(reason, 128, ""), "action": standing::cut(action, 128, ""),
            "message": standing::cut(note, 1024, "..."),
            "source": {"component": EVENT_SOURCE, "host": self.instance},
            "firstTimestamp": seconds(now), "lastTimestamp": seconds(now), "count": 1,
            "reportingComponent": EVENT_SOURCE, "reportingInstance": self.instance,
            "type": if warning { "Warning" } else { "Normal" },
        });
        let path = format!("/api/v1/namespaces/{namespace}/events");
        self.notices.send(Call::new(Verb::Post, path).sending(event).hearing(Wanted::Head));
    }
    /// An event about the policy as a whole.
    pub fn info(&self, policy: &ConfigurationPolicy, status: &PolicyStatus, violation: bool, dialect: Dialect) {
        let (reason, action) = dialect.info(policy.metadata.name.as_deref().unwrap_or_default());
        self.note(policy, violation, &reason, &action, &standing::compliance_message(status));
    }
    /// The framework reads compliance from events on the parent policy: none may be lost.
    async fn tell_parent(&self, policy: &ConfigurationPolicy, status: &PolicyStatus) -> Result<(), Trouble> {
        let Some(event) = parent_event(policy, status, self.clock.wall(), &self.instance) else { return Ok(()) };
        let namespace = policy.metadata.namespace.as_deref().unwrap_or_default();
        let call = Call::new(Verb::Post, format!("/api/v1/namespaces/{namespace}/events"))
            .sending(event)
            .hearing(Wanted::Head);
        match self.objects.0.call(call).await {
            Ok(_) => Ok(()),
            // Nobody reads events of a namespace that goes; the status still says it. A name taken is the same event.
            Err(trouble) if trouble.is_namespace_ending() || trouble.is_taken() => Ok(()),
            // It will be refused next time, too, and the status must not be lost with it.
            Err(trouble) if trouble.is_invalid() => {
                warn!(%trouble, "event on the parent policy not written");
                Ok(())
            }
            Err(trouble) => Err(trouble),
        }
    }
}
fn reference(policy: &ConfigurationPolicy) -> Value {
    let meta = &policy.metadata;
    json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": KIND, "name": meta.name, "namespace": meta.namespace, "uid": meta.uid})
}
fn parent_event(policy: &ConfigurationPolicy, status: &PolicyStatus, now: Timestamp, instance: &str) -> Option<Value> {
    let meta = &policy.metadata;
    let owner = meta.owner_references.as_ref()?.first()?;
    let namespace = meta.namespace.clone().unwrap_or_default();
    let name = meta.name.clone().unwrap_or_default();
    let nanos = u64::try_from(now.as_nanosecond()).unwrap_or_default();
    // Not every name of an owner can be that of an event. Who is meant stands in `involvedObject`.
    let fitting = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' { c } else { '-' };
    let title: String = owner.name.chars().map(fitting).take(MOST_TITLE).collect();
    let title = title.trim_matches(['-', '.']);
    Some(json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{title}.{nanos:x}"), "namespace": namespace},
        "involvedObject": {"kind": owner.kind, "namespace": namespace, "name": owner.name, "uid": owner.uid, "apiVersion": owner.api_version},
        "reason": format!("policy: {namespace}/{name}"),
        "message": standing::told(&policy.spec, status),
        "source": {"component": EVENT_SOURCE, "host": instance},
        "firstTimestamp": seconds(now), "lastTimestamp": seconds(now), "count": 1,
        "type": if status.compliant == COMPLIANT { "Normal" } else { "Warning" },
        "action": "ComplianceStateUpdate",
        "related": reference(policy),
        "reportingComponent": EVENT_SOURCE, "reportingInstance": instance,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PolicySpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    #[test]
    fn the_parents_event_says_what_the_framework_reads() {
        let mut policy = ConfigurationPolicy::new("p", PolicySpec::default());
        policy.metadata.namespace = Some("managed".into());
        let now: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
        let status = PolicyStatus { compliant: NON_COMPLIANT.into(), ..PolicyStatus::default() };
        assert_eq!(parent_event(&policy, &status, now, "i"), None, "no parent, no event");
        let owner = OwnerReference {
            name: "parent".into(),
            kind: "Policy".into(),
            uid: "u".into(),
            ..OwnerReference::default()
        };
        policy.metadata.owner_references = Some(vec![owner]);
        let event = parent_event(&policy, &status, now, "i").unwrap();
        assert_eq!(event["reason"], "policy: managed/p");
        assert_eq!((&event["count"], &event["type"]), (&json!(1), &json!("Warning")));
        assert_eq!(event["metadata"]["name"], format!("parent.{:x}", now.as_nanosecond()));
        assert!(event.get("eventTime").is_none(), "with it the API server refuses long messages");
    }
    #[test]
    fn any_name_of_an_owner_makes_a_name_of_an_event() {
        let mut policy = ConfigurationPolicy::new("p", PolicySpec::default());
        let now: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
        let long = format!("{}.{}", "a".repeat(229), "b".repeat(20));
        for (name, expected) in
            [("ns.parent", "ns.parent"), ("system:Owner", "system--wner"), (long.as_str(), &long[..229])]
        {
            let owner = OwnerReference { name: name.into(), ..OwnerReference::default() };
            policy.metadata.owner_references = Some(vec![owner]);
            let event = parent_event(&policy, &PolicyStatus::default(), now, "i").unwrap();
            assert_eq!(event["metadata"]["name"], format!("{expected}.{:x}", now.as_nanosecond()));
            assert_eq!(event["involvedObject"]["name"], name);
        }
    }
}
