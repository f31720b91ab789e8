//! Which changes are worth a pass: spec, labels, annotations, finalizers, owner references, deletion. Not status, and not
//! our own ledger while it is exactly what this process wrote last. The ledger has a hash of its own, so that two processes
//! that both fail do not wake each other by writing it.
use super::object::Arrived;
use serde_json::Value;
use std::hash::{DefaultHasher, Hasher};
use std::io;

/// What of an object triggers a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// Everything but the text of the ledger.
    pub rest: u64,
    /// The text of the ledger.
    pub ledger: u64,
}
impl Trigger {
    /// Hashes what triggers a pass; `ledger` names the annotation.
    pub fn of(arrived: &Arrived, ledger: &str) -> Self {
        let mut rest = DefaultHasher::new();
        let mut text = DefaultHasher::new();
        let metadata = &arrived.value["metadata"];
        for field in ["uid", "labels", "finalizers", "ownerReferences", "deletionTimestamp"] {
            feed(&mut rest, field, &metadata[field]);
        }
        for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
            // Its text is left out, not that it is there: somebody who takes it away must be noticed at once.
            let left_out = key == ledger;
            feed(&mut rest, key, if left_out { &Value::Null } else { value });
            if left_out {
                feed(&mut text, key, value);
            }
        }
        // Everything but status: also kinds without a spec are covered.
        for (key, value) in arrived.value.as_object().into_iter().flatten() {
            if !matches!(key.as_str(), "metadata" | "status" | "apiVersion" | "kind") {
                feed(&mut rest, key, value);
            }
        }
        Trigger { rest: rest.finish(), ledger: text.finish() }
    }
}

fn feed(hasher: &mut DefaultHasher, key: &str, value: &Value) {
    hasher.write_usize(key.len());
    hasher.write(key.as_bytes());
    let mut sink = Sink(hasher, 0);
    // A hasher takes every byte, and a tree always serialises.
    let _ = serde_json::to_writer(&mut sink, value);
    let length = sink.1;
    hasher.write_usize(length);
}
struct Sink<'a>(&'a mut DefaultHasher, usize);
impl io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        self.1 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LEDGER: &str = "custody.dev/sample-ledger";

    fn object(change: impl FnOnce(&mut Value)) -> Arrived {
        let mut value = json!({
            "apiVersion": "a/v1", "kind": "K",
            "metadata": {"name": "o", "uid": "u", "resourceVersion": "1", "generation": 1, "labels": {"l": "1"},
                "annotations": {"a": "1", LEDGER: "one"}, "finalizers": ["f"]},
            "spec": {"size": 1}, "status": {"phase": "up"}
        });
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_watched_field_triggers_and_nothing_else_does() {
        let base = Trigger::of(&object(|_| {}), LEDGER);
        let changed = |change: fn(&mut Value)| Trigger::of(&object(change), LEDGER).rest != base.rest;
        assert!(changed(|v| v["spec"]["size"] = json!(2)));
        assert!(changed(|v| v["extra"] = json!(2)));
        assert!(changed(|v| v["metadata"]["uid"] = json!("v")));
        assert!(changed(|v| v["metadata"]["labels"]["l"] = json!("2")));
        assert!(changed(|v| v["metadata"]["annotations"]["a"] = json!("2")));
        assert!(changed(|v| v["metadata"]["finalizers"] = json!([])));
        assert!(changed(|v| v["metadata"]["ownerReferences"] = json!([{"uid": "x"}])));
        assert!(changed(|v| v["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")));
        let stripped = |v: &mut Value| drop(v["metadata"]["annotations"].as_object_mut().unwrap().remove(LEDGER));
        assert!(changed(stripped));

        assert!(!changed(|v| v["status"]["phase"] = json!("down")));
        assert!(!changed(|v| v["metadata"]["resourceVersion"] = json!("2")));
        assert!(!changed(|v| v["metadata"]["managedFields"] = json!([{}])));
        assert!(!changed(|v| v["metadata"]["annotations"][LEDGER] = json!("two")));
    }
    #[test]
    fn the_ledger_is_told_apart() {
        let base = Trigger::of(&object(|_| {}), LEDGER);
        let edited = Trigger::of(&object(|v| v["metadata"]["annotations"][LEDGER] = json!("two")), LEDGER);
        assert_eq!(base.rest, edited.rest);
        assert_ne!(base.ledger, edited.ledger);
    }
    #[test]
    fn text_cannot_wander_between_fields() {
        let a = object(|v| v["metadata"]["annotations"] = json!({"ab": "c"}));
        let b = object(|v| v["metadata"]["annotations"] = json!({"a": "bc"}));
        assert_ne!(Trigger::of(&a, LEDGER).rest, Trigger::of(&b, LEDGER).rest);
    }
}
