//! What one pass came to: for conditions, events, metrics, logs and the next visit.
use super::estate::{Fault, Ids, Thing};
use super::owner::OwnerView;
use crate::identity::{OwnerId, Slot};
use crate::names::reason;
use std::time::Duration;

/// How a pass ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Everything is as wanted; nothing to do until something changes.
    Done,
    /// Work is under way; come again.
    Waiting {
        /// Why, for conditions.
        reason: &'static str,
        /// Why, for people.
        message: String,
        /// When to look again at the latest.
        again: Duration,
    },
    /// Nothing more happens until somebody changes something.
    Blocked {
        /// One of [`crate::names::reason`].
        reason: &'static str,
        /// What, and the way out.
        message: String,
    },
    /// Something went wrong.
    Failed(Fault),
    /// The view was too old to act on; a newer one is on its way.
    Stale(String),
    /// Taken down; the finalizer is off.
    Gone,
}

impl Progress {
    /// What stands in the way until somebody does something: reason and message. What passes by itself is none.
    pub fn obstacle(&self) -> Option<(&'static str, String)> {
        match self {
            Progress::Blocked { reason, message } | Progress::Failed(Fault::Terminal { reason, message }) => {
                Some((reason, message.clone()))
            }
            Progress::Failed(Fault::Denied(what)) => {
                Some((reason::PERMISSION_DENIED, format!("not permitted: {what}")))
            }
            _ => None,
        }
    }
}

/// One slot at the end of the pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The slot.
    pub slot: Slot,
    /// Its id, if known.
    pub id: Option<String>,
    /// One word: `ready`, `creating`, `building`, `deleting`, `refused`, ...
    pub state: &'static str,
    /// For people; empty if there is nothing to say.
    pub message: String,
}

/// Something worth an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Warning or normal.
    pub warning: bool,
    /// CamelCase, from a closed set.
    pub reason: &'static str,
    /// For people, with the cloud id in it.
    pub message: String,
}

/// Owner id, seq and records, for people and for recovery. Stored in the ledger condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The owner id.
    pub owner: OwnerId,
    /// The ledger's seq.
    pub seq: u64,
    /// The account or project, and region, that the ledger was written for; empty if unknown.
    pub scope: String,
    /// One line for people: what is recorded.
    pub records: String,
}

/// What one pass came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How it ended.
    pub progress: Progress,
    /// The newest version of the owner this pass knows, to write status on; none if it is gone.
    pub view: Option<OwnerView>,
    /// Every wanted or recorded slot.
    pub standing: Vec<Standing>,
    /// Events.
    pub notes: Vec<Note>,
    /// Things left in place on purpose.
    pub kept: Vec<Thing>,
    /// For the ledger condition.
    pub mirror: Option<Mirror>,
    /// Ids by slot, for the controller's own status.
    pub ids: Ids,
}
