//! A project as the engine sees it for one machine: its members of the load balancer. Translates; decides nothing.
use crate::cloud::{Item, KEYS, Kind, member_key};
use crate::session::Session;
use async_trait::async_trait;
use common::clock::SharedClock;
use common::concern::Concern;
use common::engine::estate::{
    CreateOrder, Draft, Estate, Fault, Freshness, Ids, Kind as Traits, Listing, Markable, Outcome, Phase, Piece,
    Sighting, Thing, Want, WhenFailed, WhenGone,
};
use common::identity::{Mark, Slot, Then};
use common::ledger::Id;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const KINDS: [Traits; 1] = [Traits {
    name: Kind::Member.name(),
    rank: 0,
    markable: Markable::AtCreate,
    token: false,
    // A pool has one member of an address and port.
    unique_key: true,
    gone: WhenGone::Recreate,
    failed: WhenFailed::Replace,
}];

/// One member that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The port of the balancer and of the machine.
    pub port: i64,
    /// The pool; none while nothing can be made.
    pub pool: Option<Id>,
    /// The machine's address; none while it has none.
    pub address: Option<String>,
}
/// Where members are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nowhere: the machine never had any, and will have none.
    Nowhere {
        /// What its ledger was written for.
        scope: String,
    },
    /// In the pools of this balancer.
    Balancer(Id),
    /// In all pools of the project.
    Everywhere,
}
/// The slot of a member.
pub fn slot(port: i64) -> Option<Slot> {
    Slot::new(Kind::Member.name(), Some(&port.to_string())).ok()
}

/// One machine's view of the project, for one pass.
pub struct MachineEstate {
    /// Its credentials' session; none where nothing is looked for.
    pub session: Option<Arc<Session>>,
    /// Where to look.
    pub look: Look,
    /// What is wanted.
    pub wishes: Vec<Wish>,
    /// Name of the members.
    pub name: String,
    /// What somebody else made on the same spot is taken over.
    pub adopts: bool,
    /// Which things may concern the machine.
    pub concern: Concern,
    /// Time.
    pub clock: SharedClock,
}
impl MachineEstate {
    fn session(&self) -> Result<&Session, Fault> {
        self.session.as_deref().ok_or_else(|| Fault::Transient("there are no credentials in this pass".into()))
    }
    fn draft(&self, wish: &Wish) -> Option<Draft> {
        let (pool, address) = (wish.pool.as_ref()?, wish.address.as_ref()?);
        let member = json!({"name": self.name, "address": address, "protocol_port": wish.port});
        Some(Draft { key: member_key(pool, address, wish.port), params: json!({"pool": pool, "member": member}) })
    }
    fn may_mean(&self, item: &Item) -> bool {
        self.wishes.iter().filter_map(|wish| self.draft(wish)).any(|draft| draft.key == item.key())
    }
}
fn sighting(item: &Item) -> Option<Sighting> {
    let Item::Member(member) = item else { return None };
    let phase = match member.status.as_str() {
        "PENDING_CREATE" => Phase::Building,
        "PENDING_DELETE" | "DELETED" => Phase::Deleting,
        "ERROR" => Phase::Failed("Octavia says ERROR".into()),
        _ => Phase::Ready,
    };
    Some(Sighting {
        kind: Kind::Member.name(),
        id: member.id.clone(),
        mark: item.mark(),
        readable: false,
        key: Some(item.key()),
        params: None,
        born: member.created,
        phase,
    })
}

#[async_trait]
impl Estate for MachineEstate {
    fn kinds(&self) -> &'static [Traits] {
        &KINDS
    }
    fn pieces(&self, _ids: &Ids) -> Vec<Piece> {
        let adopt = self.adopts.then_some(Then::Delete);
        let piece = |wish: &Wish| {
            let want = Want::Make { draft: self.draft(wish), adopt };
            Some(Piece { slot: slot(wish.port)?, needs: Vec::new(), want })
        };
        self.wishes.iter().filter_map(piece).collect()
    }
    async fn scope(&self) -> Result<String, Fault> {
        match &self.look {
            Look::Nowhere { scope } if self.session.is_none() => Ok(scope.clone()),
            _ => Ok(self.session()?.cloud().identity().await?.scope()),
        }
    }
    async fn list(&self, freshness: Freshness) -> Result<Listing, Fault> {
        let snapshot = match &self.look {
            Look::Nowhere { .. } => {
                return Ok(Listing { sent: self.clock.boot(), date: self.clock.wall(), things: Vec::new() });
            }
            Look::Balancer(id) => self.session()?.members(Some(id), freshness).await?,
            Look::Everywhere => self.session()?.members(None, freshness).await?,
        };
        let concerns = |item: &&Item| {
            self.concern.touches(&item.mark()) || self.concern.records(item.id(), &item.key()) || self.may_mean(item)
        };
        let things = snapshot.items.iter().filter(concerns).filter_map(sighting).collect();
        Ok(Listing { sent: snapshot.sent, date: snapshot.date, things })
    }
    async fn get(&self, thing: &Thing) -> Result<Option<Sighting>, Fault> {
        let item = self.session()?.cloud().get(Kind::Member, &thing.id).await?;
        Ok(item.as_ref().and_then(sighting))
    }
    async fn create(&self, order: CreateOrder<'_>) -> Outcome<Id> {
        let session = match self.session() {
            Ok(session) => session,
            Err(fault) => return Outcome::Refused(fault),
        };
        let mark = order.mark.to_tags(&KEYS);
        match session.cloud().create(Kind::Member, &order.draft.params, &mark, order.not_after).await {
            Outcome::Done(made) => Outcome::Done(made.id),
            Outcome::Refused(fault) => Outcome::Refused(fault),
            Outcome::Unknown(why) => Outcome::Unknown(why),
        }
    }
    async fn mark(&self, thing: &Thing, mark: &Mark) -> Outcome<()> {
        match self.session() {
            Ok(session) => session.cloud().mark(Kind::Member, &thing.id, &mark.to_tags(&KEYS)).await,
            Err(fault) => Outcome::Refused(fault),
        }
    }
    async fn unmark(&self, thing: &Thing) -> Outcome<()> {
        match self.session() {
            Ok(session) => session.cloud().mark(Kind::Member, &thing.id, &BTreeMap::new()).await,
            Err(fault) => Outcome::Refused(fault),
        }
    }
    async fn delete(&self, thing: &Thing) -> Outcome<()> {
        match self.session() {
            Ok(session) => session.cloud().delete(Kind::Member, &thing.id).await,
            Err(fault) => Outcome::Refused(fault),
        }
    }
    fn drift(&self, _piece: &Piece, _seen: &Sighting) -> Option<String> {
        None
    }
    async fn adjust(&self, _piece: &Piece, _seen: &Sighting) -> Outcome<()> {
        Outcome::Done(())
    }
}
