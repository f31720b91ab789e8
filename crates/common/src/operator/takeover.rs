//! Take-over of many owners at once: which are asked, and the annotation that asks.
use super::{Owner, Row, full_name};
use crate::engine::Settings;
use crate::engine::owner::{OwnerApi, OwnerPatch, OwnerView, Patched};
use crate::identity::Place;
use crate::names;
use serde::Serialize;

/// One owner that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    /// Namespace and name.
    pub owner: String,
    /// The place whose things it takes over.
    pub from: Place,
    /// What came of asking.
    pub result: String,
    /// It came to nothing.
    pub failed: bool,
}
impl Row for Order {
    const HEADS: &'static [&'static str] = &["OWNER", "FROM", "RESULT"];
    fn cells(&self) -> Vec<String> {
        vec![self.owner.clone(), self.from.to_string(), self.result.clone()]
    }
}

/// The place an owner would take over, if it came from that installation and lives here now. Pure.
pub fn wanted(view: &OwnerView, settings: &Settings, from: &str) -> Option<Place> {
    let owner = Owner::of(view, settings);
    let place = owner.ledger?.place;
    let came = place.installation() == Place::installation_part(from);
    (came && place != owner.place && !view.annotations.contains_key(names::TAKE_OVER)).then_some(place)
}

/// Who would be asked. Pure.
pub fn orders(views: &[OwnerView], settings: &Settings, from: &str) -> Vec<Order> {
    let order = |view| {
        let from = wanted(view, settings, from)?;
        Some(Order { owner: full_name(view), from, result: "would be asked".into(), failed: false })
    };
    views.iter().filter_map(order).collect()
}

/// Asks every owner that came from the installation `from`. The controller does the rest, owner by owner.
pub async fn ask(api: &dyn OwnerApi, views: &[OwnerView], settings: &Settings, from: &str) -> Vec<Order> {
    let mut orders = Vec::new();
    for view in views {
        let Some(place) = wanted(view, settings, from) else { continue };
        let annotations = [(names::TAKE_OVER.to_owned(), Some(place.to_string()))].into();
        let (result, failed) = match api.patch(view, &OwnerPatch { annotations, finalizers: None }).await {
            Patched::Stored(_) => ("asked".to_owned(), false),
            Patched::Conflict => ("changed meanwhile, run again".to_owned(), true),
            Patched::Gone => ("gone".to_owned(), false),
            Patched::Refused(why) | Patched::Unknown(why) => (why, true),
        };
        orders.push(Order { owner: full_name(view), from: place, result, failed });
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Timing;
    use crate::ledger::{Ledger, Writer};

    fn settings() -> Settings {
        Settings {
            controller: "c",
            kind: "K".into(),
            installation: "here".into(),
            timing: Timing::DEFAULT,
            peers: crate::peer::Guard::NONE,
        }
    }
    fn view(installation: &str) -> OwnerView {
        let place = Place::of(installation, "c", "K", "ns", "a");
        let ledger = Ledger::empty("uid", &place, Writer { process: 1, number: 1 });
        let annotations = [(names::ledger("c"), ledger.to_text())].into();
        OwnerView { namespace: "ns".into(), name: "a".into(), annotations, ..OwnerView::default() }
    }

    #[test]
    fn only_an_owner_that_came_from_there_is_asked_and_only_once() {
        let there = Place::of("there", "c", "K", "ns", "a");
        assert_eq!(wanted(&view("there"), &settings(), "there"), Some(there.clone()));
        assert_eq!(wanted(&view("elsewhere"), &settings(), "there"), None);
        assert_eq!(wanted(&view("here"), &settings(), "here"), None, "it lives there already");
        assert_eq!(wanted(&OwnerView::default(), &settings(), "there"), None, "nothing recorded");
        let mut asked = view("there");
        asked.annotations.insert(names::TAKE_OVER.into(), there.to_string());
        assert_eq!(wanted(&asked, &settings(), "there"), None);
    }
}
