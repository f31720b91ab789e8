//! Names that are part of this controller's API. Documented in docs/operations.md.
use sha2::{Digest, Sha256};

/// The controller: in annotations, finalizer and place.
pub const CONTROLLER: &str = "sample";
/// The kind it serves.
pub const KIND: &str = "SampleOwner";
/// What `cluster.x-k8s.io/managed-by` must say for an owner to be served, if it says anything.
pub const MANAGER: &str = "custody-sample";

/// Longest value of a tag, and of a name we make.
const MOST: usize = 128;
const DIGITS: usize = 16;

/// What people read on a thing: whose it is.
pub fn readable(namespace: &str, name: &str) -> String {
    fit(&format!("{namespace}/{name}"))
}
/// The name of a thing whose item does not say one. A namespace and an item have no dots, so no two owners share one.
pub fn cloud_name(namespace: &str, owner: &str, item: &str) -> String {
    fit(&format!("{namespace}.{owner}.{item}"))
}
/// Cuts what is too long, and keeps it distinct.
fn fit(text: &str) -> String {
    if text.len() <= MOST {
        return text.to_owned();
    }
    let digest = Sha256::digest(text.as_bytes());
    let number = digest.iter().take(DIGITS / 2).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    let digits = format!("{number:016x}");
    let head: String = text.chars().take(MOST - DIGITS - 1).collect();
    format!("{head}~{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_kept_and_a_long_one_is_cut_but_stays_distinct() {
        assert_eq!(readable("ns", "a"), "ns/a");
        assert_eq!(cloud_name("ns", "a.b", "web"), "ns.a.b.web");
        let (long, longer) = ("x".repeat(253), "x".repeat(252) + "y");
        let (a, b) = (cloud_name("ns", &long, "web"), cloud_name("ns", &longer, "web"));
        assert_eq!((a.len(), b.len()), (MOST, MOST));
        assert_ne!(a, b);
    }
}
