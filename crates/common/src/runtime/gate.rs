//! Read your writes: no pass acts on a version older than what this process has already written or read uncached.
use super::object::Version;
use crate::engine::owner::{ApiUnavailable, OwnerApi, OwnerPatch, OwnerView, Patched};
use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What this process knows of each object beyond the cache. One entry per live object that was written.
#[derive(Debug)]
pub struct Gate {
    annotation: String,
    known: Mutex<HashMap<String, Known>>,
}
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    seen: Version,
    /// Hash of the ledger's text as this process last wrote it.
    ledger: Option<u64>,
    /// Hash of the text on its way, or that nobody knows whether it arrived: a watch can be quicker than a reply.
    sent: Option<u64>,
}
impl Gate {
    /// `annotation` carries the ledger.
    pub fn new(annotation: impl Into<String>) -> Self {
        Gate { annotation: annotation.into(), known: Mutex::default() }
    }
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// True if the cache is behind.
    pub fn is_stale(&self, uid: &str, cached: Version) -> bool {
        self.lock().get(uid).is_some_and(|k| cached < k.seen)
    }
    /// Is this text of the ledger what this process wrote last, or is writing now?
    pub fn is_own(&self, uid: &str, text: Option<&str>) -> bool {
        let Some(known) = self.lock().get(uid).copied() else { return false };
        let text = text.map(digest);
        text.is_some() && (known.ledger == text || known.sent == text)
    }
    /// The ledger annotation.
    pub fn annotation(&self) -> &str {
        &self.annotation
    }
    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }
    /// How many objects are remembered.
    pub fn len(&self) -> usize {
        self.lock().len()
    }
    /// Nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
    /// This version was written, or read uncached, by other means than an [`OwnerApi`].
    pub fn note(&self, uid: &str, version: Version) {
        let mut known = self.lock();
        let entry = known.entry(uid.to_owned()).or_default();
        entry.seen = entry.seen.max(version);
    }
    fn saw(&self, view: &OwnerView) {
        self.note(&view.uid, Version::parse(&view.resource_version));
    }
    fn sending(&self, uid: &str, text: &str) {
        self.lock().entry(uid.to_owned()).or_default().sent = Some(digest(text));
    }
    fn not_stored(&self, uid: &str) {
        let mut known = self.lock();
        let Some(entry) = known.get_mut(uid) else { return };
        entry.sent = None;
        if *entry == Known::default() {
            known.remove(uid);
        }
    }
    fn wrote(&self, view: &OwnerView) {
        self.saw(view);
        let text = view.annotations.get(&self.annotation).map(|t| digest(t));
        if let Some(entry) = self.lock().get_mut(&view.uid) {
            (entry.ledger, entry.sent) = (text, None);
        }
    }
    /// An [`OwnerApi`] that tells this gate what it wrote and read.
    pub fn watching(self: &Arc<Self>, api: Arc<dyn OwnerApi>) -> GatedApi {
        GatedApi { api, gate: self.clone() }
    }
}
fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// See [`Gate::watching`].
#[derive(Clone)]
pub struct GatedApi {
    api: Arc<dyn OwnerApi>,
    gate: Arc<Gate>,
}
#[async_trait]
impl OwnerApi for GatedApi {
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
        let got = self.api.get(namespace, name).await?;
        if let Some(view) = &got {
            self.gate.saw(view);
        }
        Ok(got)
    }
    async fn patch(&self, view: &OwnerView, patch: &OwnerPatch) -> Patched {
        let ledger = patch.annotations.get(&self.gate.annotation);
        if let Some(Some(text)) = ledger {
            self.gate.sending(&view.uid, text);
        }
        let patched = self.api.patch(view, patch).await;
        match &patched {
            // Only a write that set the ledger makes its text our own.
            Patched::Stored(now) if ledger.is_some() => self.gate.wrote(now),
            Patched::Stored(now) => self.gate.saw(now),
            Patched::Gone | Patched::Conflict | Patched::Refused(_) => self.gate.not_stored(&view.uid),
            Patched::Unknown(_) => {}
        }
        patched
    }
    async fn patch_status(&self, view: &OwnerView, conditions: &[Condition], fields: &Value) -> Patched {
        let patched = self.api.patch_status(view, conditions, fields).await;
        if let Patched::Stored(now) = &patched {
            self.gate.saw(now);
        }
        patched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEDGER: &str = "custody.dev/sample-ledger";

    struct Server(OwnerView);
    #[async_trait]
    impl OwnerApi for Server {
        async fn get(&self, _: &str, _: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
            Ok(Some(self.0.clone()))
        }
        async fn patch(&self, _: &OwnerView, _: &OwnerPatch) -> Patched {
            Patched::Stored(Box::new(self.0.clone()))
        }
        async fn patch_status(&self, _: &OwnerView, _: &[Condition], _: &Value) -> Patched {
            Patched::Conflict
        }
    }
    fn view(version: &str, ledger: &str) -> OwnerView {
        OwnerView {
            uid: "u".into(),
            resource_version: version.into(),
            annotations: [(LEDGER.to_owned(), ledger.to_owned())].into(),
            ..OwnerView::default()
        }
    }

    #[tokio::test]
    async fn after_a_write_older_versions_are_stale_and_the_ledger_is_our_own() {
        let gate = Arc::new(Gate::new(LEDGER));
        let api = gate.watching(Arc::new(Server(view("20", "mine"))));
        assert!(!gate.is_stale("u", Version::parse("1")));

        let patch = OwnerPatch { annotations: [(LEDGER.to_owned(), Some("mine".to_owned()))].into(), finalizers: None };
        api.patch(&view("19", "before"), &patch).await;

        assert!(gate.is_stale("u", Version::parse("19")) && !gate.is_stale("u", Version::parse("20")));
        assert!(gate.is_own("u", Some("mine")));
        assert!(!gate.is_own("u", Some("edited")));
        assert!(!gate.is_own("u", None), "a stripped ledger triggers a pass");
        gate.forget("u");
        assert!(!gate.is_stale("u", Version::parse("1")) && gate.is_empty());
    }

    #[tokio::test]
    async fn an_uncached_read_makes_the_cache_stale_but_no_ledger_ours() {
        let gate = Arc::new(Gate::new(LEDGER));
        let api = gate.watching(Arc::new(Server(view("20", "theirs"))));
        api.get("n", "o").await.unwrap();
        assert!(gate.is_stale("u", Version::parse("19")));
        assert!(!gate.is_own("u", Some("theirs")));
    }

    #[tokio::test]
    async fn a_ledger_that_arrives_before_its_reply_is_our_own() {
        /// Looks at the gate while a write is on its way, as the watch may.
        struct Slow(Arc<Gate>, Mutex<Option<bool>>);
        #[async_trait]
        impl OwnerApi for Slow {
            async fn get(&self, _: &str, _: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
                Ok(None)
            }
            async fn patch(&self, _: &OwnerView, _: &OwnerPatch) -> Patched {
                *self.1.lock().unwrap() = Some(self.0.is_own("u", Some("mine")));
                Patched::Conflict
            }
            async fn patch_status(&self, _: &OwnerView, _: &[Condition], _: &Value) -> Patched {
                Patched::Conflict
            }
        }
        let gate = Arc::new(Gate::new(LEDGER));
        let slow = Arc::new(Slow(gate.clone(), Mutex::default()));
        let patch = OwnerPatch { annotations: [(LEDGER.to_owned(), Some("mine".to_owned()))].into(), finalizers: None };
        gate.watching(slow.clone()).patch(&view("1", "before"), &patch).await;
        assert_eq!(*slow.1.lock().unwrap(), Some(true));
        assert!(!gate.is_own("u", Some("mine")) && gate.is_empty(), "it was not stored");
    }

    #[test]
    fn what_was_noted_holds_older_versions_back() {
        let gate = Gate::new(LEDGER);
        gate.note("u", Version::parse("7"));
        gate.note("u", Version::parse("5"));
        assert!(gate.is_stale("u", Version::parse("6")) && !gate.is_stale("u", Version::parse("7")));
    }

    #[tokio::test]
    async fn a_refused_write_leaves_no_trace() {
        let gate = Arc::new(Gate::new(LEDGER));
        gate.watching(Arc::new(Server(view("20", "")))).patch_status(&view("1", ""), &[], &Value::Null).await;
        assert!(gate.is_empty());
    }
}
