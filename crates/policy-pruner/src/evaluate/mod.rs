//! One evaluation: which objects a policy means, what is there, what to do about it.
//!
//! First everything is read, then everything that will be created is known and can be written down, then it is done.
pub mod act;
pub mod check;
pub mod desired;
pub mod difference;
pub mod keyring;
pub mod preview;
pub mod rivals;
pub mod templates;

use crate::api::{ConfigurationPolicy, ObjectRef, RelatedObject};
use crate::cluster::kinds::{Kinds, Mapping};
use crate::cluster::objects::Objects;
use crate::cluster::sight::Sight;
use crate::cluster::spaces::Spaces;
use crate::dialect::Dialect;
use crate::message::Outcome;
use common::clock::SharedClock;
use common::runtime::object::Key;
use std::collections::{BTreeMap, HashMap};

/// What an evaluation stands on.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// Reads and writes.
    pub objects: &'a Objects,
    /// Kinds.
    pub kinds: &'a Kinds,
    /// What is seen.
    pub sight: &'a dyn Sight,
    /// Namespaces.
    pub spaces: &'a dyn Spaces,
    /// Whether terminating namespaces count by default.
    pub take_terminating: bool,
    /// Wording.
    pub dialect: Dialect,
    /// Time.
    pub clock: &'a SharedClock,
    /// The policy.
    pub policy: &'a ConfigurationPolicy,
    /// Its key.
    pub key: &'a Key,
}

/// What comparisons came to, by object and template, until either changes. Memory only.
#[derive(Debug, Default)]
pub struct Results(HashMap<(String, u64), Known>);
#[derive(Clone, Debug)]
struct Known {
    version: String,
    compliant: bool,
    message: String,
}
/// Comparisons remembered per policy.
const MOST_RESULTS: usize = 10_000;
impl Results {
    /// Forget all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
    fn get(&self, uid: &str, template: u64, version: &str) -> Option<&Known> {
        self.0.get(&(uid.to_owned(), template)).filter(|known| known.version == version)
    }
    fn put(&mut self, uid: &str, template: u64, version: &str, compliant: bool, message: &str) {
        if self.0.len() >= MOST_RESULTS {
            self.0.clear();
        }
        let known = Known { version: version.to_owned(), compliant, message: message.to_owned() };
        self.0.insert((uid.to_owned(), template), known);
    }
}

/// What one template came to.
#[derive(Clone, Debug, Default)]
pub struct TemplateResult {
    /// Which.
    pub index: usize,
    /// Plural of its kind, if that is known.
    pub resource: String,
    /// Per desired object.
    pub outcomes: Vec<Outcome>,
}

/// Uids made in one evaluation; with the uid that was there before if the object was recreated.
pub type Fresh = BTreeMap<String, Option<String>>;

/// What an evaluation came to.
#[derive(Clone, Debug, Default)]
pub struct Evaluated {
    /// Per template, in order.
    pub templates: Vec<TemplateResult>,
    /// Every object looked at.
    pub related: Vec<RelatedObject>,
    /// Objects that this evaluation made, and their uids.
    pub created: Vec<(ObjectRef, String)>,
    /// Something made in this evaluation does not carry its mark: the ledger must know its uid.
    pub unmarked: bool,
    /// Uids of objects made in this evaluation, and of those that were recreated the uid before.
    pub fresh: Fresh,
    /// Named by a template, not only matched: swept by DeleteAll.
    pub managed: Vec<ObjectRef>,
    /// Why nothing may be pruned after this evaluation.
    pub doubts: Vec<String>,
    /// Something failed that may go well next time.
    pub retry: bool,
    /// A kind is not there (yet).
    pub kind_missing: bool,
}

/// What `related` says of an object.
pub fn reference(mapping: &Mapping, namespace: &str, name: &str) -> ObjectRef {
    let namespace = if mapping.namespaced { namespace } else { "" };
    ObjectRef::new(&mapping.api_version(), &mapping.kind, namespace, name)
}
