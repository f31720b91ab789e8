//! A project as the engine sees it for one cluster: its floating IP. Translates; decides nothing.
use super::address::taken;
use crate::cloud::{FloatingIp, Item, KEYS, Kind};
use crate::names::reason;
use crate::plan::chosen_key;
use crate::session::Session;
use async_trait::async_trait;
use common::concern::Concern;
use common::engine::estate::{
    CreateOrder, Draft, Estate, Fault, Freshness, Ids, Kind as Traits, Listing, Markable, Outcome, Phase, Piece,
    Sighting, Thing, Want, WhenFailed, WhenGone,
};
use common::identity::{Mark, MarkSeen, Slot, Then};
use common::ledger::Id;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

const KINDS: [Traits; 1] = [Traits {
    name: Kind::FloatingIp.name(),
    rank: 0,
    markable: Markable::AtCreate,
    token: false,
    unique_key: false,
    gone: WhenGone::Recreate,
    failed: WhenFailed::Refuse,
}];

/// What floating IP is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// None.
    None,
    /// One of our own, in this network.
    Make {
        /// The external network.
        network: Id,
        /// This address, if one was asked for that does not exist yet.
        address: Option<String>,
        /// One that somebody else made for this very bastion.
        adopt: Option<Id>,
    },
    /// Somebody's, by id.
    Use(Id),
}
/// The slot of the floating IP.
pub fn slot() -> Option<Slot> {
    Slot::new(Kind::FloatingIp.name(), None).ok()
}

/// One cluster's view of the project, for one pass.
pub struct BastionEstate {
    session: Arc<Session>,
    wish: Wish,
    concern: Concern,
    /// Where it shall lead; none leaves it as it is.
    target: Option<Id>,
    /// All ports of the bastion.
    own: BTreeSet<Id>,
    seen: Mutex<BTreeMap<Id, FloatingIp>>,
}
impl BastionEstate {
    /// For one cluster.
    pub fn new(session: Arc<Session>, wish: Wish, concern: Concern, target: Option<Id>, own: BTreeSet<Id>) -> Self {
        BastionEstate { session, wish, concern, target, own, seen: Mutex::new(BTreeMap::new()) }
    }
    /// The floating IP, as this pass has seen it.
    pub fn seen(&self, id: &str) -> Option<FloatingIp> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
    fn chosen(&self) -> Option<&Id> {
        match &self.wish {
            Wish::Make { adopt, .. } => adopt.as_ref(),
            Wish::Use(id) => Some(id),
            Wish::None => None,
        }
    }
    fn sighting(&self, item: &Item) -> Option<Sighting> {
        let Item::FloatingIp(address) = item else { return None };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(address.id.clone(), address.clone());
        let mark = item.mark();
        let key = match &mark {
            _ if self.chosen() == Some(&address.id) => Some(chosen_key(&address.id)),
            MarkSeen::Whole(_) => None,
            _ => Some(item.key()),
        };
        let (id, born, kind) = (address.id.clone(), address.created, Kind::FloatingIp.name());
        Some(Sighting { kind, id, mark, readable: false, key, params: None, born, phase: Phase::Ready })
    }
}

#[async_trait]
impl Estate for BastionEstate {
    fn kinds(&self) -> &'static [Traits] {
        &KINDS
    }
    fn pieces(&self, _ids: &Ids) -> Vec<Piece> {
        let want = match &self.wish {
            Wish::None => return Vec::new(),
            Wish::Use(id) => Want::Use { id: id.clone() },
            Wish::Make { network, address, adopt } => {
                let mut params = json!({"floating_network_id": network, "description": "Bastion"});
                if let Some(address) = address {
                    params["floating_ip_address"] = json!(address);
                }
                let key = adopt.as_ref().map_or_else(|| format!("a floating IP in {network}"), |id| chosen_key(id));
                Want::Make { draft: Some(Draft { key, params }), adopt: adopt.as_ref().map(|_| Then::Delete) }
            }
        };
        slot().map(|slot| Piece { slot, needs: Vec::new(), want }).into_iter().collect()
    }
    async fn scope(&self) -> Result<String, Fault> {
        Ok(self.session.cloud().identity().await?.scope())
    }
    async fn list(&self, freshness: Freshness) -> Result<Listing, Fault> {
        let kinds = BTreeSet::from([Kind::FloatingIp]);
        let snapshots = self.session.snapshots(&kinds, freshness).await?;
        let snapshot = snapshots.first().ok_or_else(|| Fault::Transient("no list was read".into()))?;
        let concerns = |item: &&Item| {
            self.concern.touches(&item.mark())
                || self.concern.records(item.id(), &item.key())
                || self.chosen() == Some(item.id())
        };
        let things = snapshot.items.iter().filter(concerns).filter_map(|item| self.sighting(item)).collect();
        Ok(Listing { sent: snapshot.sent, date: snapshot.date, things })
    }
    async fn get(&self, thing: &Thing) -> Result<Option<Sighting>, Fault> {
        let item = self.session.cloud().get(Kind::FloatingIp, &thing.id).await?;
        Ok(item.and_then(|item| self.sighting(&item)))
    }
    async fn create(&self, order: CreateOrder<'_>) -> Outcome<Id> {
        let mark = order.mark.to_tags(&KEYS);
        match self.session.cloud().create(Kind::FloatingIp, &order.draft.params, &mark, order.not_after).await {
            Outcome::Done(made) => Outcome::Done(made.id),
            Outcome::Refused(fault) => Outcome::Refused(fault),
            Outcome::Unknown(why) => Outcome::Unknown(why),
        }
    }
    async fn mark(&self, thing: &Thing, mark: &Mark) -> Outcome<()> {
        self.session.cloud().mark(Kind::FloatingIp, &thing.id, &mark.to_tags(&KEYS)).await
    }
    async fn unmark(&self, thing: &Thing) -> Outcome<()> {
        self.session.cloud().mark(Kind::FloatingIp, &thing.id, &BTreeMap::new()).await
    }
    async fn delete(&self, thing: &Thing) -> Outcome<()> {
        self.session.cloud().delete(Kind::FloatingIp, &thing.id).await
    }
    fn drift(&self, _piece: &Piece, seen: &Sighting) -> Option<String> {
        let target = self.target.as_ref()?;
        let is = self.seen(&seen.id)?;
        (is.port.as_ref() != Some(target)).then(|| format!("{} leads to port {target}", is.address))
    }
    async fn adjust(&self, _piece: &Piece, seen: &Sighting) -> Outcome<()> {
        let Some(target) = &self.target else { return Outcome::Done(()) };
        // Somebody else's may have been taken into use since it was listed.
        if let Wish::Use(id) = &self.wish {
            let refused = match self.session.cloud().get(Kind::FloatingIp, id).await {
                Ok(Some(Item::FloatingIp(is))) => {
                    taken(&is, &self.own).map(|message| Fault::Terminal { reason: reason::FLOATING_IP_ERROR, message })
                }
                Ok(_) => Some(Fault::Transient(format!("floating IP {id} is gone"))),
                Err(fault) => Some(fault),
            };
            if let Some(fault) = refused {
                return Outcome::Refused(fault);
            }
        }
        self.session.cloud().point(&seen.id, Some(target)).await
    }
}
