//! The ledger: what we are about to do and what we did, in an annotation of the owner, written before and after the deed.
use crate::identity::{Place, Slot, Then};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version this code writes. A higher one is left alone.
pub const VERSION: u32 = 1;
/// Beyond this no create is started: an annotation shares 256 KiB with everybody else's.
pub const MOST_BYTES: usize = 32 * 1024;

/// A cloud's own identifier of a thing.
pub type Id = String;

/// One process, and a number it never uses twice: tells this very write from any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Writer {
    /// Drawn at the start of the process.
    pub process: u64,
    /// Counts the writes of the process.
    pub number: u64,
}

/// What we know of one slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase", deny_unknown_fields)]
pub enum Record {
    /// About to be created, or created without our hearing of it.
    Intended {
        /// Sent with the create where the cloud takes one; new with every new intent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
        /// Hash of what is asked for.
        params: String,
        /// The cloud's own date of the listing this was decided on.
        listed: Timestamp,
        /// 1 for a new intent, one more with every renewal: a renewed record is a new record.
        attempt: u32,
        /// The natural key; only for kinds not markable at create, which are found by it even after the spec changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// We made it.
    Created {
        /// Its id.
        id: Id,
        /// False until the mark of a kind that cannot be marked at create was acknowledged.
        marked: bool,
        /// The natural key it was made under; only for kinds that can never carry a mark.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Somebody else made it, we were asked to take it.
    Adopted {
        /// Its id.
        id: Id,
        /// What happens at the end.
        then: Then,
    },
    /// Somebody else's, used and never touched.
    Referenced {
        /// Its id.
        id: Id,
    },
}
impl Record {
    /// The natural key it was intended or made under, for kinds that are found by it.
    pub fn key(&self) -> Option<&str> {
        match self {
            Record::Intended { key, .. } | Record::Created { key, .. } => key.as_deref(),
            Record::Adopted { .. } | Record::Referenced { .. } => None,
        }
    }
    /// The id, if one is known.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Record::Intended { .. } => None,
            Record::Created { id, .. } | Record::Adopted { id, .. } | Record::Referenced { id } => Some(id),
        }
    }
}

/// One thing on its way out, beside whatever its slot holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removal {
    /// The slot its mark names.
    pub slot: Slot,
    /// Its id.
    pub id: Id,
    /// The natural key it was made under; only for kinds that can never carry a mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The whole ledger of one controller on one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// [`VERSION`].
    pub version: u32,
    /// One more with every write.
    pub seq: u64,
    /// Who wrote it.
    pub writer: Writer,
    /// UID of the object it was written on.
    pub uid: String,
    /// Where that object lived.
    pub place: Place,
    /// Account or project, and region; empty until the first intent.
    #[serde(default)]
    pub scope: String,
    /// Places whose marks count as ours until they are rewritten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Place>,
    /// What we know of each slot.
    #[serde(default)]
    pub records: BTreeMap<Slot, Record>,
    /// Duplicates and unwanted things on their way out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removing: Vec<Removal>,
}

/// Why a ledger cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Written by a newer version of this controller.
    #[error("written by version {0}, this controller reads up to {VERSION}")]
    TooNew(u64),
    /// Not a ledger.
    #[error("{0}")]
    Malformed(String),
}

impl Ledger {
    /// The first ledger of an owner.
    pub fn empty(uid: &str, place: &Place, writer: Writer) -> Self {
        Ledger {
            version: VERSION,
            seq: 1,
            writer,
            uid: uid.to_owned(),
            place: place.clone(),
            scope: String::new(),
            from: Vec::new(),
            records: BTreeMap::new(),
            removing: Vec::new(),
        }
    }
    /// Reads the annotation. Hostile until parsed: it can be cut, edited, or written by a newer version.
    pub fn parse(text: &str) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Head {
            version: u64,
        }
        if text.len() > 4 * MOST_BYTES {
            return Err(Unreadable::Malformed(format!("{} bytes is too large for a ledger", text.len())));
        }
        let malformed = |e: serde_json::Error| Unreadable::Malformed(e.to_string());
        let head: Head = serde_json::from_str(text).map_err(malformed)?;
        if head.version > u64::from(VERSION) {
            return Err(Unreadable::TooNew(head.version));
        }
        if head.version == 0 {
            return Err(Unreadable::Malformed("version 0 was never written".into()));
        }
        serde_json::from_str(text).map_err(malformed)
    }
    /// The annotation's text.
    pub fn to_text(&self) -> String {
        // Strings, numbers and maps with string keys always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
    /// This write and no other.
    pub fn stamp(&self) -> (u64, Writer) {
        (self.seq, self.writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = Record> {
        let intended = (any::<Option<String>>(), "[0-9a-f]{16}", 0_i64..4_000_000_000, 1_u32..9);
        prop_oneof![
            intended.prop_map(|(token, params, at, attempt)| Record::Intended {
                key: token.clone(),
                token,
                params,
                listed: Timestamp::from_second(at).unwrap(),
                attempt
            }),
            (".{0,40}", any::<bool>(), any::<Option<String>>()).prop_map(|(id, marked, key)| Record::Created {
                id,
                marked,
                key
            }),
            ".{0,40}".prop_map(|id| Record::Adopted { id, then: Then::Release }),
            ".{0,40}".prop_map(|id| Record::Referenced { id }),
        ]
    }
    fn ledger() -> impl Strategy<Value = Ledger> {
        let slots = proptest::collection::btree_map("[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,6})?", record(), 0..6);
        (any::<u64>(), any::<u64>(), any::<u64>(), slots).prop_map(|(seq, process, number, slots)| {
            let place = Place::of("i", "c", "K", "n", "a");
            let mut ledger = Ledger::empty("uid", &place, Writer { process, number });
            ledger.seq = seq;
            ledger.records = slots.into_iter().map(|(s, r)| (s.parse().unwrap(), r)).collect();
            ledger.removing = vec![Removal { slot: "disk".parse().unwrap(), id: "d".into(), key: None }];
            ledger
        })
    }
    proptest! {
        #[test]
        fn a_ledger_reads_back_as_written(ledger in ledger()) {
            prop_assert_eq!(Ledger::parse(&ledger.to_text()), Ok(ledger));
        }
        #[test]
        fn a_cut_ledger_is_never_taken_for_one(ledger in ledger(), cut in 0.0_f64..1.0) {
            let text = ledger.to_text();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let at = (0..=(text.len() as f64 * cut) as usize).rev().find(|i| text.is_char_boundary(*i)).unwrap();
            prop_assume!(at < text.len());
            prop_assert!(matches!(Ledger::parse(&text[..at]), Err(Unreadable::Malformed(_))));
        }
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            let _ = Ledger::parse(&text);
        }
    }
    #[test]
    fn a_newer_version_is_left_alone_whatever_else_it_says() {
        assert_eq!(Ledger::parse(r#"{"version": 2, "shape": "unknown"}"#), Err(Unreadable::TooNew(2)));
        assert!(matches!(Ledger::parse(r#"{"version": 0}"#), Err(Unreadable::Malformed(_))));
    }
}
