//! The account as the engine sees it for one owner. Translates; decides nothing.
use crate::cloud::{Attributes, Creation, Item, Kind, READABLE_TAG, State, Tags};
use crate::plan::Plan;
use crate::session::Session;
use async_trait::async_trait;
use common::concern::Concern;
use common::engine::estate::{
    CreateOrder, Estate, Fault, Freshness, Ids, Kind as Traits, Listing, Markable, Outcome, Phase, Piece, Sighting,
    Thing, WhenFailed, WhenGone, hash_params,
};
use common::identity::{Mark, MarkKeys, MarkSeen};
use common::ledger::Id;
use common::names::reason;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The keys of our marks in this cloud.
pub const KEYS: MarkKeys = MarkKeys::DOTTED;

/// What the engine must know of each kind, in the order of [`Kind::ALL`].
pub const KINDS: [Traits; Kind::ALL.len()] = [
    Traits {
        name: Kind::Network.singular(),
        rank: 0,
        markable: Markable::AtCreate,
        token: true,
        unique_key: false,
        gone: WhenGone::Recreate,
        failed: WhenFailed::Refuse,
    },
    Traits {
        name: Kind::Disk.singular(),
        rank: 0,
        markable: Markable::AtCreate,
        token: false,
        unique_key: false,
        // What was on it is lost: a new, empty disk in its place would hide that.
        gone: WhenGone::Fail,
        failed: WhenFailed::Refuse,
    },
    Traits {
        name: Kind::Address.singular(),
        rank: 1,
        markable: Markable::Later,
        token: false,
        unique_key: true,
        gone: WhenGone::Recreate,
        failed: WhenFailed::Refuse,
    },
    Traits {
        name: Kind::Route.singular(),
        rank: 1,
        markable: Markable::Never,
        token: false,
        unique_key: true,
        gone: WhenGone::Recreate,
        failed: WhenFailed::Refuse,
    },
    Traits {
        name: Kind::Machine.singular(),
        rank: 2,
        markable: Markable::AtCreate,
        token: true,
        unique_key: false,
        gone: WhenGone::Recreate,
        failed: WhenFailed::Replace,
    },
];

/// One owner's view of the account, for one pass.
pub struct SampleEstate {
    session: Arc<Session>,
    plan: Plan,
    concern: Concern,
    readable: String,
    /// Flavors of the machines this pass has seen, so that comparing them costs no call.
    flavors: Mutex<BTreeMap<Id, String>>,
}
impl SampleEstate {
    /// For the owner that people know by `readable`.
    pub fn new(session: Arc<Session>, plan: Plan, concern: Concern, readable: String) -> Self {
        SampleEstate { session, plan, concern, readable, flavors: Mutex::new(BTreeMap::new()) }
    }
    fn sighting(&self, item: &Item) -> Sighting {
        if let Attributes::Machine { flavor, .. } = &item.attributes {
            let mut flavors = self.flavors.lock().unwrap_or_else(PoisonError::into_inner);
            flavors.insert(item.id.clone(), flavor.clone());
        }
        sighting(item, &self.readable)
    }
    /// The tags that make a mark. The tag that people read goes only on what we made: on a stranger's thing it is theirs.
    fn tags(&self, mark: &Mark) -> Tags {
        let mut tags = mark.to_tags(&KEYS);
        if mark.adopted.is_none() {
            tags.insert(READABLE_TAG.to_owned(), self.readable.clone());
        }
        tags
    }
}

/// What a thing says of its owner.
pub fn mark_of(item: &Item) -> MarkSeen {
    let tags = item.tags.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
    MarkSeen::from_tags(&KEYS, tags)
}
/// A thing as the engine sees it.
pub fn sighting(item: &Item, readable: &str) -> Sighting {
    let key = item.attributes.key();
    let reason = || item.state_reason.clone().unwrap_or_else(|| "the cloud gives no reason".into());
    Sighting {
        kind: item.attributes.kind().singular(),
        id: item.id.clone(),
        mark: mark_of(item),
        readable: item.tags.as_ref().and_then(|tags| tags.get(READABLE_TAG)).is_some_and(|tag| tag == readable),
        params: Some(hash_params(&key, &item.attributes.body())),
        key: Some(key),
        born: Some(item.created_at),
        phase: match item.state {
            State::Building => Phase::Building,
            State::Ready => Phase::Ready,
            State::Failed => Phase::Failed(reason()),
            State::Deleting => Phase::Deleting,
        },
    }
}
/// Which call a slot needs. A slot of no kind of ours comes from a newer version, or from somebody's hand.
fn kind_of(thing: &Thing) -> Result<Kind, Fault> {
    Kind::of(&thing.slot).ok_or_else(|| Fault::Terminal {
        reason: reason::LEDGER_UNREADABLE,
        message: format!("slot {} is of no kind that this version knows", thing.slot),
    })
}

#[async_trait]
impl Estate for SampleEstate {
    fn kinds(&self) -> &'static [Traits] {
        &KINDS
    }
    fn pieces(&self, ids: &Ids) -> Vec<Piece> {
        self.plan.pieces(ids)
    }
    async fn scope(&self) -> Result<String, Fault> {
        let identity = self.session.identity().await?;
        Ok(format!("{}/{}", identity.account, identity.region))
    }

    async fn list(&self, freshness: Freshness) -> Result<Listing, Fault> {
        let snapshots = self.session.snapshots(freshness).await?;
        let marked = |item: &Item| {
            let readable = item.tags.as_ref().and_then(|tags| tags.get(READABLE_TAG));
            self.concern.touches(&mark_of(item))
                || self.concern.records(&item.id, &item.attributes.key())
                || readable.is_some_and(|tag| *tag == self.readable)
        };
        let items = || snapshots.iter().flat_map(|snapshot| &snapshot.items);
        // Addresses and routes are found by the network they stand in, so the owner's networks come first.
        let nowhere = BTreeSet::new();
        let networks: BTreeSet<&Id> = items()
            .filter(|item| item.attributes.kind() == Kind::Network)
            .filter(|item| marked(item) || self.plan.may_mean(item, &nowhere))
            .map(|item| &item.id)
            .collect();
        let things = items()
            .filter(|item| marked(item) || self.plan.may_mean(item, &networks))
            .map(|item| self.sighting(item))
            .collect();
        // Five lists are as old as the oldest of them.
        let oldest = snapshots.iter().min_by_key(|snapshot| snapshot.sent);
        let date = snapshots.iter().map(|snapshot| snapshot.date).min();
        match (oldest, date) {
            (Some(oldest), Some(date)) => Ok(Listing { sent: oldest.sent, date, things }),
            _ => Err(Fault::Transient("no list was read".into())),
        }
    }

    async fn get(&self, thing: &Thing) -> Result<Option<Sighting>, Fault> {
        let item = self.session.cloud().get(kind_of(thing)?, &thing.id).await?;
        Ok(item.map(|item| self.sighting(&item)))
    }

    async fn create(&self, order: CreateOrder<'_>) -> Outcome<Id> {
        let Some((kind, traits)) = Kind::of(order.slot).zip(KINDS.iter().find(|it| it.name == order.slot.kind()))
        else {
            return Outcome::Refused(Fault::Terminal {
                reason: reason::INVALID_OBJECT,
                message: format!("slot {} is of no kind of this cloud", order.slot),
            });
        };
        let tags = (traits.markable == Markable::AtCreate).then(|| self.tags(order.mark));
        let token = order.token.filter(|_| traits.token);
        let fields = &order.draft.params;
        self.session
            .cloud()
            .create(kind, Creation { fields, tags: tags.as_ref(), token, not_after: order.not_after })
            .await
    }

    async fn mark(&self, thing: &Thing, mark: &Mark) -> Outcome<()> {
        let kind = match kind_of(thing) {
            Ok(kind) => kind,
            Err(fault) => return Outcome::Refused(fault),
        };
        let set = self.tags(mark);
        let stale: Vec<&str> = KEYS.all().into_iter().filter(|key| !set.contains_key(*key)).collect();
        self.session.cloud().tag(kind, &thing.id, &set, &stale).await
    }

    async fn unmark(&self, thing: &Thing) -> Outcome<()> {
        match kind_of(thing) {
            Ok(kind) => self.session.cloud().tag(kind, &thing.id, &Tags::new(), &KEYS.all()).await,
            Err(fault) => Outcome::Refused(fault),
        }
    }

    async fn delete(&self, thing: &Thing) -> Outcome<()> {
        match kind_of(thing) {
            Ok(kind) => self.session.cloud().delete(kind, &thing.id).await,
            Err(fault) => Outcome::Refused(fault),
        }
    }

    fn drift(&self, piece: &Piece, seen: &Sighting) -> Option<String> {
        let wanted = self.plan.flavor(&piece.slot)?;
        let flavors = self.flavors.lock().unwrap_or_else(PoisonError::into_inner);
        let is = flavors.get(&seen.id).filter(|is| *is != wanted)?;
        Some(format!("flavor of {} from {is} to {wanted}", seen.id))
    }
    async fn adjust(&self, piece: &Piece, seen: &Sighting) -> Outcome<()> {
        match self.plan.flavor(&piece.slot) {
            Some(wanted) => self.session.cloud().resize(&seen.id, wanted).await,
            None => Outcome::Done(()),
        }
    }
}
