//! The objects of one kind as the watch tells them, and whether a change is worth a pass. No client.
use super::gate::Gate;
use super::object::{Arrived, Kept, Key};
use super::trigger::Trigger;
use std::collections::HashMap;
use std::sync::Arc;

/// What an arrival means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// New here, in the first list or later.
    New,
    /// Something that matters changed.
    Changed,
    /// Somebody else wrote our ledger; nothing else changed.
    Ledger,
    /// Nothing that matters changed.
    Echo,
    /// Older than what is known already: not kept.
    Stale,
}

/// Every live object, slim.
#[derive(Debug, Default)]
pub struct Cache {
    objects: HashMap<Key, (Kept, u32)>,
    /// Counts lists: what a new list does not mention is gone.
    round: u32,
}
impl Cache {
    /// A list begins.
    pub fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
    }
    /// An object arrived, from a list or as a change.
    pub fn apply(&mut self, arrived: &Arrived, gate: &Gate) -> Effect {
        let key = arrived.key();
        let before = self.objects.get_mut(&key);
        // Another API server's watch cache may be behind the one we heard from before.
        let travelled =
            before.as_ref().is_some_and(|(kept, _)| &*kept.uid == arrived.uid() && arrived.version() < kept.version);
        if travelled || gate.is_stale(arrived.uid(), arrived.version()) {
            if let Some((_, round)) = before {
                *round = self.round;
            }
            return Effect::Stale;
        }
        let ledger = arrived.value["metadata"]["annotations"][gate.annotation()].as_str();
        let trigger = Trigger::of(arrived, gate.annotation());
        let own = gate.is_own(arrived.uid(), ledger);
        let effect = match before {
            None => Effect::New,
            Some((kept, _)) if kept.trigger.rest != trigger.rest => Effect::Changed,
            // Our own text after somebody else's may be a repair.
            Some((kept, _)) if kept.trigger == trigger || own && kept.own_ledger => Effect::Echo,
            Some(_) => Effect::Ledger,
        };
        let mut kept = Kept::new(arrived, trigger);
        kept.own_ledger = own;
        self.objects.insert(key, (kept, self.round));
        effect
    }
    /// A list is complete: returns what is no longer there.
    pub fn finish(&mut self) -> Vec<(Key, Arc<str>)> {
        let round = self.round;
        self.objects.extract_if(|_, (_, seen)| *seen != round).map(|(key, (kept, _))| (key, kept.uid)).collect()
    }
    /// An object is gone.
    pub fn remove(&mut self, key: &Key) -> Option<Kept> {
        self.objects.remove(key).map(|(kept, _)| kept)
    }
    /// One object.
    pub fn get(&self, key: &Key) -> Option<&Kept> {
        self.objects.get(key).map(|(kept, _)| kept)
    }
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Kept)> {
        self.objects.iter().map(|(key, (kept, _))| (key, kept))
    }
    /// How many.
    pub fn len(&self) -> usize {
        self.objects.len()
    }
    /// None.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::owner::{ApiUnavailable, OwnerApi, OwnerPatch, OwnerView, Patched};
    use async_trait::async_trait;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use serde_json::{Value, json};

    const LEDGER: &str = "custody.dev/sample-ledger";

    fn object(name: &str, version: u32, spec: u32, ledger: &str) -> Arrived {
        let metadata =
            json!({"name": name, "uid": name, "resourceVersion": version.to_string(), "annotations": {LEDGER: ledger}});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }
    struct Stores(u32);
    #[async_trait]
    impl OwnerApi for Stores {
        async fn get(&self, _: &str, _: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
            Ok(None)
        }
        async fn patch(&self, view: &OwnerView, patch: &OwnerPatch) -> Patched {
            let annotations = patch.annotations.iter().filter_map(|(k, v)| Some((k.clone(), v.clone()?))).collect();
            Patched::Stored(Box::new(OwnerView { resource_version: self.0.to_string(), annotations, ..view.clone() }))
        }
        async fn patch_status(&self, _: &OwnerView, _: &[Condition], _: &Value) -> Patched {
            Patched::Conflict
        }
    }
    async fn write(gate: &Arc<Gate>, uid: &str, version: u32, ledger: &str) {
        let view = OwnerView { uid: uid.into(), ..OwnerView::default() };
        let patch = OwnerPatch { annotations: [(LEDGER.into(), Some(ledger.into()))].into(), finalizers: None };
        gate.watching(Arc::new(Stores(version))).patch(&view, &patch).await;
    }

    #[test]
    fn a_new_list_takes_away_what_it_does_not_mention() {
        let (mut cache, gate) = (Cache::default(), Gate::new(LEDGER));
        cache.begin();
        for name in ["a", "b"] {
            assert_eq!(cache.apply(&object(name, 1, 0, ""), &gate), Effect::New);
        }
        assert!(cache.finish().is_empty());
        cache.begin();
        assert_eq!(cache.apply(&object("b", 1, 0, ""), &gate), Effect::Echo);
        assert_eq!(cache.finish(), [(Key::new("", "a"), "a".into())]);
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn time_travel_is_not_believed_and_does_not_make_ghosts() {
        let (mut cache, gate) = (Cache::default(), Gate::new(LEDGER));
        cache.apply(&object("a", 5, 2, ""), &gate);
        cache.begin();
        assert_eq!(cache.apply(&object("a", 4, 1, ""), &gate), Effect::Stale);
        assert!(cache.finish().is_empty());
        assert_eq!(cache.get(&Key::new("", "a")).unwrap().decode::<Value>().unwrap()["spec"], 2);
    }

    #[tokio::test]
    async fn the_echo_of_our_own_ledger_brings_no_pass_but_anybody_elses_does() {
        let (mut cache, gate) = (Cache::default(), Arc::new(Gate::new(LEDGER)));
        write(&gate, "a", 2, "one").await;
        assert_eq!(cache.apply(&object("a", 2, 0, "one"), &gate), Effect::New);
        write(&gate, "a", 3, "two").await;
        write(&gate, "a", 4, "three").await;
        assert_eq!(cache.apply(&object("a", 3, 0, "two"), &gate), Effect::Stale, "a newer one is on its way");
        assert_eq!(cache.apply(&object("a", 4, 0, "three"), &gate), Effect::Echo);
        assert_eq!(cache.apply(&object("a", 5, 0, "two"), &gate), Effect::Ledger, "rolled back by somebody");
        assert_eq!(cache.apply(&object("a", 6, 0, "three"), &gate), Effect::Ledger, "and put back");
    }

    #[tokio::test]
    async fn an_edit_that_our_own_write_overtook_is_still_seen() {
        let (mut cache, gate) = (Cache::default(), Arc::new(Gate::new(LEDGER)));
        cache.apply(&object("a", 1, 1, ""), &gate);
        write(&gate, "a", 3, "one").await; // the edit was version 2
        assert_eq!(cache.apply(&object("a", 2, 9, ""), &gate), Effect::Stale);
        assert_eq!(cache.apply(&object("a", 3, 9, "one"), &gate), Effect::Changed);
    }
}
