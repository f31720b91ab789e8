//! The mark: what every cloud thing of ours carries, and what is read back from it.
use super::{OwnerId, Place, Slot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

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
    /// Some keys of ours are missing, the others read well: half written or half removed.
    Part {
        /// The owner id, if it is there.
        owner: Option<OwnerId>,
        /// The place, if it is there.
        place: Option<Place>,
        /// The slot, if it is there.
        slot: Option<Slot>,
    },
    /// Keys of ours with values we never write.
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
/// A value, if its key is there; what went wrong if it cannot be read.
fn read<T: FromStr<Err: fmt::Display>>(key: &str, value: Option<&&str>) -> Result<Option<T>, String> {
    value.map(|text| text.parse().map_err(|e| format!("{key}: {e}"))).transpose()
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
        let whole = || -> Result<MarkSeen, String> {
            let owner: Option<OwnerId> = read(keys.owner, found.get(keys.owner))?;
            let place: Option<Place> = read(keys.place, found.get(keys.place))?;
            let slot: Option<Slot> = read(keys.slot, found.get(keys.slot))?;
            let adopted = match found.get(keys.adopted) {
                None => None,
                Some(&"delete") => Some(Then::Delete),
                Some(&"release") => Some(Then::Release),
                Some(_) => return Err(format!("{} is neither delete nor release", keys.adopted)),
            };
            Ok(match (owner, place, slot) {
                (Some(owner), Some(place), Some(slot)) => MarkSeen::Whole(Mark { owner, place, slot, adopted }),
                (owner, place, slot) => MarkSeen::Part { owner, place, slot },
            })
        };
        whole().unwrap_or_else(MarkSeen::Garbled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(adopted: Option<Then>) -> Mark {
        Mark {
            owner: OwnerId::from_bits([7; 16]),
            place: Place::of("here", "sample", "SampleOwner", "ns", "a"),
            slot: "port-0".parse().unwrap(),
            adopted,
        }
    }
    fn seen(tags: &BTreeMap<String, String>) -> MarkSeen {
        MarkSeen::from_tags(&MarkKeys::DOTTED, tags.iter().map(|(k, v)| (k.as_str(), v.as_str())))
    }

    #[test]
    fn a_mark_reads_back_as_written_among_other_tags() {
        for adopted in [None, Some(Then::Delete), Some(Then::Release)] {
            let mut tags = mark(adopted).to_tags(&MarkKeys::DOTTED);
            tags.insert("team".into(), "blue".into());
            assert_eq!(seen(&tags), MarkSeen::Whole(mark(adopted)));
        }
    }
    #[test]
    fn a_missing_key_makes_a_part_and_a_wrong_value_is_garbled() {
        let mut tags = mark(None).to_tags(&MarkKeys::DOTTED);
        tags.remove("custody.dev/owner");
        assert!(matches!(seen(&tags), MarkSeen::Part { owner: None, place: Some(_), slot: Some(_) }));
        tags.insert("custody.dev/owner".into(), "me".into());
        assert!(matches!(seen(&tags), MarkSeen::Garbled(_)));
        assert_eq!(seen(&BTreeMap::from([("team".into(), "blue".into())])), MarkSeen::Nothing);
    }
    #[test]
    fn places_of_different_objects_differ_even_when_their_names_run_together() {
        let place = |ns, name| Place::of("here", "c", "K", ns, name);
        assert_ne!(place("a", "b-c"), place("a-b", "c"));
        assert_ne!(place("ab", "c"), place("a", "bc"));
        assert_eq!(place("a", "b").to_string().parse::<Place>(), Ok(place("a", "b")));
    }
}
