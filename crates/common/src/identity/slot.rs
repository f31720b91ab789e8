//! The slot: the name of one piece of an owner, `<kind>` or `<kind>-<suffix>` (`vpc`, `port-0`).
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest slot: it must fit every cloud's tag value.
const MOST: usize = 48;

/// The name of one piece. Its kind is the part before the first dash, so that a record alone says how to ask for the thing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slot(String);

/// Not a slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a slot is lower-case letters, digits, dots and dashes, at most 48, beginning with a letter: {0:?}")]
pub struct InvalidSlot(String);

impl Slot {
    /// The slot of a kind with one piece per owner, or of one of several.
    pub fn new(kind: &str, suffix: Option<&str>) -> Result<Self, InvalidSlot> {
        match suffix {
            None => kind.parse(),
            Some(suffix) => format!("{kind}-{suffix}").parse(),
        }
    }
    /// The kind: what stands before the first dash.
    pub fn kind(&self) -> &str {
        self.0.split('-').next().unwrap_or_default()
    }
    /// As stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl FromStr for Slot {
    type Err = InvalidSlot;
    fn from_str(text: &str) -> Result<Self, InvalidSlot> {
        let ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
        let starts = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        if starts && text.len() <= MOST && text.bytes().all(ok) && !text.ends_with('-') {
            Ok(Slot(text.into()))
        } else {
            Err(InvalidSlot(text.chars().take(MOST).collect()))
        }
    }
}
impl TryFrom<String> for Slot {
    type Error = InvalidSlot;
    fn try_from(text: String) -> Result<Self, InvalidSlot> {
        text.parse()
    }
}
impl From<Slot> for String {
    fn from(slot: Slot) -> String {
        slot.0
    }
}
