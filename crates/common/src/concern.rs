//! Which things of an account may concern one owner. Wide on purpose: whose a thing really is, the engine says.
use crate::engine::owner::OwnerView;
use crate::identity::{MarkSeen, OwnerId, Place};
use crate::ledger::{Id, Ledger};
use crate::names;
use std::collections::BTreeSet;

/// Owner ids and places that an owner has, had, or is asked to take over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Concern {
    owners: BTreeSet<OwnerId>,
    places: BTreeSet<Place>,
    ids: BTreeSet<Id>,
    keys: BTreeSet<String>,
}
impl Concern {
    /// Everything that the annotations name, and the place where the owner lives.
    pub fn of(view: &OwnerView, controller: &str, place: Place) -> Self {
        let text = |key: &str| view.annotations.get(key).map(String::as_str);
        let mut concern = Concern { places: BTreeSet::from([place]), ..Concern::default() };
        concern.owners.extend(text(&names::owner_id(controller)).and_then(|id| id.parse::<OwnerId>().ok()));
        if let Some(ledger) = text(&names::ledger(controller)).and_then(|text| Ledger::parse(text).ok()) {
            concern.places.insert(ledger.place);
            concern.places.extend(ledger.from);
            for record in ledger.records.values() {
                concern.ids.extend(record.id().cloned());
                concern.keys.extend(record.key().map(str::to_owned));
            }
            concern.ids.extend(ledger.removing.into_iter().map(|removal| removal.id));
        }
        let wish = text(names::TAKE_OVER).map(str::trim).unwrap_or_default();
        concern.owners.extend(wish.parse::<OwnerId>().ok());
        concern.places.extend(wish.parse::<Place>().ok());
        concern
    }
    /// Is this thing recorded, or on a natural key that an open intent was made for?
    pub fn records(&self, id: &str, key: &str) -> bool {
        self.ids.contains(id) || self.keys.contains(key)
    }
    /// Does this mark name the owner, or a place of its?
    pub fn touches(&self, mark: &MarkSeen) -> bool {
        match mark {
            MarkSeen::Nothing | MarkSeen::Garbled(_) => false,
            MarkSeen::Whole(mark) => self.owners.contains(&mark.owner) || self.places.contains(&mark.place),
            MarkSeen::Part { owner, place, .. } => {
                owner.is_some_and(|owner| self.owners.contains(&owner))
                    || place.as_ref().is_some_and(|place| self.places.contains(place))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Mark;
    use crate::ledger::{Record, Writer};

    fn place(name: &str) -> Place {
        Place::of("here", "c", "K", "ns", name)
    }
    fn mark(owner: u8, place: &Place) -> MarkSeen {
        let owner = OwnerId::from_bits([owner; 16]);
        MarkSeen::Whole(Mark { owner, place: place.clone(), slot: "disk".parse().unwrap(), adopted: None })
    }

    #[test]
    fn an_owner_is_concerned_by_its_id_its_places_and_what_it_is_asked_to_take_over() {
        // given an owner that moved here and is asked to take a third place over
        let mut ledger = Ledger::empty("uid", &place("old"), Writer { process: 1, number: 1 });
        ledger.from.push(place("older"));
        let made = Record::Created { id: "disk-1".into(), marked: true, key: Some("net/label".into()) };
        ledger.records.insert("disk".parse().unwrap(), made);
        let mut view = OwnerView::default();
        view.annotations.insert(names::owner_id("c"), OwnerId::from_bits([1; 16]).to_string());
        view.annotations.insert(names::ledger("c"), ledger.to_text());
        view.annotations.insert(names::TAKE_OVER.into(), place("asked").to_string());
        // when
        let concern = Concern::of(&view, "c", place("now"));
        // then its id counts anywhere, and any of its places counts for any id
        assert!(concern.touches(&mark(1, &place("elsewhere"))));
        for name in ["now", "old", "older", "asked"] {
            assert!(concern.touches(&mark(9, &place(name))), "{name}");
        }
        assert!(!concern.touches(&mark(9, &place("elsewhere"))));
        assert!(!concern.touches(&MarkSeen::Nothing));
        assert!(concern.records("disk-1", "") && concern.records("", "net/label") && !concern.records("disk-2", "net"));
        let half = |owner, place| MarkSeen::Part { owner, place, slot: None };
        assert!(concern.touches(&half(None, Some(place("now")))));
        assert!(!concern.touches(&half(Some(OwnerId::from_bits([9; 16])), None)));
    }
    #[test]
    fn unreadable_annotations_leave_the_place_alone() {
        let mut view = OwnerView::default();
        view.annotations.insert(names::owner_id("c"), "nonsense".into());
        view.annotations.insert(names::ledger("c"), "{".into());
        view.annotations.insert(names::TAKE_OVER.into(), "none".into());
        let concern = Concern::of(&view, "c", place("now"));
        assert_eq!(concern, Concern { places: BTreeSet::from([place("now")]), ..Concern::default() });
    }
}
