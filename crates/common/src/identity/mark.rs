//! The mark: what every cloud thing of ours carries, and what is read back from it.
use super::{OwnerId, Place, Slot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What happens to an adopted thing when it is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// It goes.
    Delete,
    /// It loses our mark and stays.
    Release,
}

/// On every thing we made or adopted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// For whom.
    pub owner: OwnerId,
    /// Where that owner lives.
    pub place: Place,
    /// Which of its pieces.
    pub slot: Slot,
    /// Set on what we did not create: nothing may ever turn a stranger's thing into ours to delete.
    pub adopted: Option<Then>,
}

/// What a thing says of its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MarkSeen {
    /// No key of ours on it.
    Nothing,
    /// A whole mark.
    Whole(Mark),
    /// Keys of ours with values that make no mark: half written, half removed, or made by somebody else.
    Garbled(String),
}

/// The tag keys of a cloud: its rules for characters differ, the four facts do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkKeys {
    /// Key of the owner id.
    pub owner: &'static str,
    /// Key of the place.
    pub place: &'static str,
    /// Key of the slot.
    pub slot: &'static str,
    /// Key of `delete` or `release`, on adopted things only.
    pub adopted: &'static str,
}
impl MarkKeys {
    /// For clouds that allow dots and slashes in keys.
    pub const DOTTED: MarkKeys = MarkKeys {
        owner: "custody.dev/owner",
        place: "custody.dev/place",
        slot: "custody.dev/slot",
        adopted: "custody.dev/adopted",
    };
    /// For clouds that allow only letters, digits, dashes and underscores.
    pub const DASHED: MarkKeys =
        MarkKeys { owner: "custody-owner", place: "custody-place", slot: "custody-slot", adopted: "custody-adopted" };
    /// All four.
    pub fn all(&self) -> [&'static str; 4] {
        [self.owner, self.place, self.slot, self.adopted]
    }
}

impl Mark {
    /// The tags that make this mark.
    pub fn to_tags(&self, keys: &MarkKeys) -> BTreeMap<String, String> {
        let mut tags = BTreeMap::from([
            (keys.owner.to_owned(), self.owner.to_string()),
            (keys.place.to_owned(), self.place.to_string()),
            (keys.slot.to_owned(), self.slot.to_string()),
        ]);
        if let Some(then) = self.adopted {
            let word = match then {
                Then::Delete => "delete",
                Then::Release => "release",
            };
            tags.insert(keys.adopted.to_owned(), word.to_owned());
        }
        tags
    }
}
impl MarkSeen {
    /// Reads a mark from tags. Other people's tags are passed over.
    pub fn from_tags<'a>(keys: &MarkKeys, tags: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut found: BTreeMap<&str, &str> = BTreeMap::new();
        for (key, value) in tags {
            if keys.all().contains(&key) && found.insert(key, value).is_some_and(|other| other != value) {
                return MarkSeen::Garbled(format!("{key} twice with different values"));
            }
        }
        if found.is_empty() {
            return MarkSeen::Nothing;
        }
        let value = |key: &str| found.get(key).copied().ok_or_else(|| format!("{key} is missing"));
        let read = || -> Result<Mark, String> {
            Ok(Mark {
                owner: value(keys.owner)?.parse().map_err(|e| format!("{}: {e}", keys.owner))?,
                place: value(keys.place)?.parse().map_err(|e| format!("{}: {e}", keys.place))?,
                slot: value(keys.slot)?.parse().map_err(|e| format!("{}: {e}", keys.slot))?,
                adopted: match found.get(keys.adopted) {
                    None => None,
                    Some(&"delete") => Some(Then::Delete),
                    Some(&"release") => Some(Then::Release),
                    Some(_) => return Err(format!("{} is neither delete nor release", keys.adopted)),
                },
            })
        };
        read().map_or_else(MarkSeen::Garbled, MarkSeen::Whole)
    }
}
