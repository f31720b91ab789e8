//! What only the emulator's owner sees and does: the truth, strangers' things, changes by hand.
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Tags.
pub type Tags = BTreeMap<String, String>;

/// One thing as it truly is, whatever a client may see of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Truth {
    /// Its id.
    pub id: String,
    /// Its kind, as its body says.
    pub kind: &'static str,
    /// The account it lies in.
    pub account: String,
    /// Who made it.
    pub created_by: String,
    /// Put there by hand: nobody made it by a call.
    pub planted: bool,
    /// The natural key it occupies, if its kind has one.
    pub natural_key: Option<String>,
    /// The idempotency token it was made with.
    pub token: Option<String>,
    /// When it was made.
    pub born: Timestamp,
    /// Its tags; none if its kind has no tags.
    pub tags: Option<Tags>,
    /// Where it is in its life.
    pub phase: Phase,
    /// Its end, from the moment somebody asked for it.
    pub deletion: Option<Deletion>,
    /// The fields of its kind.
    pub fields: Map<String, Value>,
}
impl Truth {
    /// It exists: building, ready, failed or deleting.
    pub fn exists(&self) -> bool {
        self.phase != Phase::Gone
    }
}
/// Where a thing is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Not usable yet.
    Building,
    /// Usable.
    Ready,
    /// Never became usable.
    Failed,
    /// On its way out.
    Deleting,
    /// No more.
    Gone,
}
/// The end of a thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deletion {
    /// Who asked for it; none if it was done by hand.
    pub by: Option<String>,
    /// When.
    pub at: Timestamp,
    /// When it is gone.
    pub gone: Timestamp,
    /// The tags it truly had when its deletion was asked for.
    pub tags: Option<Tags>,
}

/// A stranger's thing to be put into the cloud.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plant {
    /// Its kind.
    pub kind: String,
    /// Who is said to have made it.
    #[serde(default = "stranger")]
    pub created_by: String,
    /// The account it lies in; the settings' one if left out.
    #[serde(default)]
    pub account: Option<String>,
    /// Its tags.
    #[serde(default)]
    pub tags: Tags,
    /// The fields of its kind, all that are required.
    pub fields: Map<String, Value>,
    /// When it was made; now if left out.
    #[serde(default)]
    pub born: Option<Timestamp>,
}
fn stranger() -> String {
    "stranger".to_owned()
}
impl Plant {
    /// A stranger's thing of this kind with these fields, without tags, made now.
    pub fn new(kind: &str, fields: Map<String, Value>) -> Self {
        Plant { kind: kind.to_owned(), created_by: stranger(), account: None, tags: Tags::new(), fields, born: None }
    }
    /// With these tags.
    #[must_use]
    pub fn tagged<'a>(mut self, tags: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.tags = tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        self
    }
}

/// A change by hand was impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ByHandError(pub String);
