//! What a person runs beside the controller: `audit`, `plan`, `takeover`, `release`, `doctor`. The same for every controller:
//! judgements are pure functions over what a cloud shows and what owners say.
pub mod audit;
pub mod desk;
pub mod doctor;
pub mod plan;
pub mod release;
pub mod takeover;

use crate::conditions;
use crate::engine::Settings;
use crate::engine::owner::OwnerView;
use crate::identity::{MarkSeen, OwnerId, Place};
use crate::ledger::{Id, Ledger};
use crate::names;
use crate::process::cli::{Output, table};
use serde::Serialize;

/// One thing of an account, whoever's it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its kind.
    pub kind: &'static str,
    /// Its id.
    pub id: Id,
    /// What it says of its owner.
    pub mark: MarkSeen,
    /// What it is called, for people.
    pub name: String,
    /// The thing it stands on, if its kind stands on others.
    pub parent: Option<Id>,
}

/// An owner, for telling whose things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Namespace and name.
    pub name: String,
    /// Where it lives.
    pub place: Place,
    /// Its owner id, if it has one that can be read.
    pub id: Option<OwnerId>,
    /// The owner id that its status knows: it outlives an annotation that was spoiled or written over.
    pub mirrored: Option<OwnerId>,
    /// Its ledger, if it has one that can be read.
    pub ledger: Option<Ledger>,
}
impl Owner {
    /// Reads an owner's annotations.
    pub fn of(view: &OwnerView, settings: &Settings) -> Self {
        let text = |key: String| view.annotations.get(&key).map(String::as_str);
        let Settings { controller, kind, installation, .. } = settings;
        Owner {
            name: full_name(view),
            place: Place::of(installation, controller, kind, &view.namespace, &view.name),
            id: text(names::owner_id(controller)).and_then(|id| id.parse().ok()),
            mirrored: conditions::mirror_in(&view.conditions, controller).map(|mirror| mirror.owner),
            ledger: text(names::ledger(controller)).and_then(|text| Ledger::parse(text).ok()),
        }
    }
    /// Does this owner id belong to it?
    pub fn has(&self, id: OwnerId) -> bool {
        self.id == Some(id) || self.mirrored == Some(id)
    }
    /// Does a mark with this place count for it?
    fn covers(&self, place: &Place) -> bool {
        self.place == *place || self.ledger.as_ref().is_some_and(|ledger| ledger.from.contains(place))
    }
}

/// Namespace and name of an owner.
pub fn full_name(view: &OwnerView) -> String {
    if view.namespace.is_empty() { view.name.clone() } else { format!("{}/{}", view.namespace, view.name) }
}

/// A line of a result.
pub trait Row: Serialize {
    /// Heads of the columns.
    const HEADS: &'static [&'static str];
    /// What stands in them.
    fn cells(&self) -> Vec<String>;
}

/// A result as text.
pub fn render<R: Row>(rows: &[R], output: Output) -> Result<String, serde_json::Error> {
    match output {
        Output::Json => serde_json::to_string_pretty(rows).map(|text| text + "\n"),
        Output::Table => Ok(table(R::HEADS, &rows.iter().map(Row::cells).collect::<Vec<_>>())),
    }
}
