//! A cloud as the engine sees it: kinds, things, listings, and five calls. No cloud word in it.
use crate::clock::Boot;
use crate::identity::{Mark, MarkSeen, Slot, Then};
use crate::ledger::Id;
use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// When a thing of this kind can get its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markable {
    /// In the create call.
    AtCreate,
    /// By a call of its own afterwards.
    Later,
    /// Never; known only by its recorded id and natural key.
    Never,
}
/// What a created thing that is gone means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenGone {
    /// Make it again.
    Recreate,
    /// Say so and stop.
    Fail,
}
/// What a thing that the cloud calls failed means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFailed {
    /// Say so and stop.
    Refuse,
    /// Remove it, then make it again.
    Replace,
}
/// One kind of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The first part of its slots.
    pub name: &'static str,
    /// A thing needs only things of lower rank; the highest rank goes first on the way down.
    pub rank: u8,
    /// When it can be marked.
    pub markable: Markable,
    /// Does create take an idempotency token?
    pub token: bool,
    /// Does the cloud keep the natural key unique? If not, other things on the same key are none of our business,
    /// unless the piece asks to adopt one.
    pub unique_key: bool,
    /// A created one is gone.
    pub gone: WhenGone,
    /// A created one failed.
    pub failed: WhenFailed,
}

/// Where a thing is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not usable yet.
    Building,
    /// Usable.
    Ready,
    /// The cloud gave up on it, and says why.
    Failed(String),
    /// On its way out.
    Deleting,
}

/// One thing as the cloud reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Its kind.
    pub kind: &'static str,
    /// Its id.
    pub id: Id,
    /// What it says of its owner.
    pub mark: MarkSeen,
    /// It carries the readable tag that people know this owner's things by (says nothing about ownership).
    pub readable: bool,
    /// The natural key it occupies, comparable with [`Draft::key`].
    pub key: Option<String>,
    /// Its attributes, hashed as [`Draft::hash`] hashes what is asked for.
    pub params: Option<String>,
    /// The cloud's date of its creation.
    pub born: Option<Timestamp>,
    /// Where it is in its life.
    pub phase: Phase,
}

/// What a cloud showed at one time.
#[derive(Clone, Debug)]
pub struct Listing {
    /// When the first request of it was sent; it says nothing about anything written later.
    pub sent: Boot,
    /// The cloud's own date in the reply to that request.
    pub date: Timestamp,
    /// Everything that may concern the owner: marked for it, in its place, with its readable tag, or on its natural keys.
    pub things: Vec<Sighting>,
}
/// How new a listing must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The shared snapshot will do.
    Any,
    /// Sent at or after this moment.
    SentAfter(Boot),
}

/// What is asked for, once everything it needs has an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The natural key the thing will occupy.
    pub key: String,
    /// What the create call sends, mark and token left out.
    pub params: Value,
}
impl Draft {
    /// Hash of what is asked for.
    pub fn hash(&self) -> String {
        hash_params(&self.key, &self.params)
    }
}
/// Hashes a natural key and attributes, for drafts and for sightings alike.
pub fn hash_params(key: &str, params: &Value) -> String {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_be_bytes());
    hash.update(key.as_bytes());
    hash.update(params.to_string().as_bytes());
    hex::encode(&hash.finalize()[..8])
}

/// One wanted piece, as the controller's plan says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its name.
    pub slot: Slot,
    /// Slots that must be done first; all of lower rank.
    pub needs: Vec<Slot>,
    /// Make it, or use what is there.
    pub want: Want,
}
/// How a piece is to come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// A thing of our own.
    Make {
        /// What to ask for; none while something it needs has no id yet.
        draft: Option<Draft>,
        /// An unmarked thing on its natural key may be taken instead.
        adopt: Option<Then>,
    },
    /// Somebody else's thing, by id.
    Use {
        /// Its id.
        id: Id,
    },
}
/// The ids known so far, by slot.
pub type Ids = BTreeMap<Slot, Id>;

/// A thing to act on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thing {
    /// The slot it stands in; its kind says which call to make.
    pub slot: Slot,
    /// Its id.
    pub id: Id,
}
/// A create, with everything that goes into the one call.
#[derive(Clone, Copy, Debug)]
pub struct CreateOrder<'a> {
    /// The slot.
    pub slot: &'a Slot,
    /// What to ask for.
    pub draft: &'a Draft,
    /// Idempotency token, for kinds that take one.
    pub token: Option<&'a str>,
    /// The mark, for kinds markable at create.
    pub mark: &'a Mark,
    /// The end of the start window: not sent later than this, checked after every limiter and queue; else `Refused`.
    pub not_after: Boot,
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It happened.
    Done(T),
    /// Nothing happened.
    Refused(Fault),
    /// It may have happened.
    Unknown(String),
}
/// What went wrong, sorted by what to do about it. Messages never carry secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It will pass: try again with backoff.
    #[error("{0}")]
    Transient(String),
    /// Told to slow down.
    #[error("throttled, again in {0:?}")]
    Throttled(Duration),
    /// A permission is missing: which.
    #[error("not permitted: {0}")]
    Denied(String),
    /// Will not get better by trying again.
    #[error("{message}")]
    Terminal {
        /// One of [`crate::names::reason`] or the controller's own.
        reason: &'static str,
        /// For people.
        message: String,
    },
}

impl Fault {
    /// How much it needs a person: what passes by itself must not hide what does not.
    fn gravity(&self) -> u8 {
        match self {
            Fault::Transient(_) => 0,
            Fault::Throttled(_) => 1,
            Fault::Terminal { .. } => 2,
            Fault::Denied(_) => 3,
        }
    }
    /// The one to report of two. Calls of a wave end in any order, the report must not depend on it.
    #[must_use]
    pub fn graver(self, other: Fault) -> Fault {
        let rank = |fault: &Fault| (Reverse(fault.gravity()), fault.to_string());
        if rank(&self) <= rank(&other) { self } else { other }
    }
}
/// The gravest so far.
pub(crate) fn add_fault(sofar: &mut Option<Fault>, fault: Fault) {
    *sofar = Some(match sofar.take() {
        Some(known) => known.graver(fault),
        None => fault,
    });
}

/// One cloud account as seen for one owner. Implemented by each controller; the engine decides, this only does.
#[async_trait]
pub trait Estate: Send + Sync {
    /// The kinds this controller makes. The same for every owner.
    fn kinds(&self) -> &'static [Kind];
    /// The wanted pieces, given the ids known so far. Pure.
    fn pieces(&self, ids: &Ids) -> Vec<Piece>;
    /// The account or project, and region, that the credentials see. Cached by the implementation.
    async fn scope(&self) -> Result<String, Fault>;
    /// Everything that may concern this owner, of every kind.
    async fn list(&self, freshness: Freshness) -> Result<Listing, Fault>;
    /// One thing by its id; `None` if the cloud says there is none.
    async fn get(&self, thing: &Thing) -> Result<Option<Sighting>, Fault>;
    /// Creates.
    async fn create(&self, order: CreateOrder<'_>) -> Outcome<Id>;
    /// Puts our mark on, in place of any mark of ours; leaves other tags alone.
    async fn mark(&self, thing: &Thing, mark: &Mark) -> Outcome<()>;
    /// Takes our mark off; leaves other tags alone.
    async fn unmark(&self, thing: &Thing) -> Outcome<()>;
    /// Deletes. A thing that is not there is `Done`.
    async fn delete(&self, thing: &Thing) -> Outcome<()>;
    /// What of a ready thing's mutable attributes differs from its piece, for people; nothing if it is as wanted. Pure.
    fn drift(&self, _piece: &Piece, _seen: &Sighting) -> Option<String> {
        None
    }
    /// Brings what drifted in line.
    async fn adjust(&self, _piece: &Piece, _seen: &Sighting) -> Outcome<()> {
        Outcome::Done(())
    }
}
