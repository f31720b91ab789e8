//! Which changes are worth a pass: spec, labels, annotations, finalizers, owner references, deletion. Not status, and not
//! our own ledger while it is exactly what this process wrote last.
use super::object::Arrived;
use serde_json::Value;
use std::hash::{DefaultHasher, Hasher};
use std::io;

/// Hashes what triggers a pass. `own_ledger` is the annotation to leave out, if its text is this process's own last write.
pub fn hash(arrived: &Arrived, own_ledger: Option<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let metadata = &arrived.value["metadata"];
    for field in ["uid", "labels", "finalizers", "ownerReferences", "deletionTimestamp"] {
        feed(&mut hasher, field, &metadata[field]);
    }
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        // Its text is left out, not that it is there: somebody who takes it away must be noticed.
        feed(&mut hasher, key, if own_ledger == Some(key.as_str()) { &Value::Null } else { value });
    }
    // Everything but status: also kinds without a spec are covered.
    for (key, value) in arrived.value.as_object().into_iter().flatten() {
        if !matches!(key.as_str(), "metadata" | "status" | "apiVersion" | "kind") {
            feed(&mut hasher, key, value);
        }
    }
    hasher.finish()
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
        let base = hash(&object(|_| {}), Some(LEDGER));
        let changed = |change: fn(&mut Value)| hash(&object(change), Some(LEDGER)) != base;
        assert!(changed(|v| v["spec"]["size"] = json!(2)));
        assert!(changed(|v| v["extra"] = json!(2)));
        assert!(changed(|v| v["metadata"]["uid"] = json!("v")));
        assert!(changed(|v| v["metadata"]["labels"]["l"] = json!("2")));
        assert!(changed(|v| v["metadata"]["annotations"]["a"] = json!("2")));
        assert!(changed(|v| v["metadata"]["finalizers"] = json!([])));
        assert!(changed(|v| v["metadata"]["ownerReferences"] = json!([{"uid": "x"}])));
        assert!(changed(|v| v["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")));

        assert!(!changed(|v| v["status"]["phase"] = json!("down")));
        assert!(!changed(|v| v["metadata"]["resourceVersion"] = json!("2")));
        assert!(!changed(|v| v["metadata"]["managedFields"] = json!([{}])));
        assert!(!changed(|v| v["metadata"]["annotations"][LEDGER] = json!("two")));
    }

    #[test]
    fn a_foreign_ledger_triggers() {
        let other = object(|v| v["metadata"]["annotations"][LEDGER] = json!("two"));
        assert_ne!(hash(&object(|_| {}), None), hash(&other, None));
        assert_ne!(hash(&object(|_| {}), Some(LEDGER)), hash(&object(|_| {}), None));
    }

    #[test]
    fn a_lost_ledger_triggers() {
        let lost = object(|v| v["metadata"]["annotations"] = json!({"a": "1"}));
        assert_ne!(hash(&object(|_| {}), Some(LEDGER)), hash(&lost, None));
    }

    #[test]
    fn text_cannot_wander_between_fields() {
        let a = object(|v| v["metadata"]["annotations"] = json!({"ab": "c"}));
        let b = object(|v| v["metadata"]["annotations"] = json!({"a": "bc"}));
        assert_ne!(hash(&a, None), hash(&b, None));
    }
}
