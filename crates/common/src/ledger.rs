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
    /// The id, if one is known.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Record::Intended { .. } => None,
            Record::Created { id, .. } | Record::Adopted { id, .. } | Record::Referenced { id } => Some(id),
        }
    }
}

/// One thing on its way out, beside whatever its slot holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
