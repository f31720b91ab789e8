//! A project as the engine sees it for one server. Translates; decides nothing.
use crate::cloud::{Extensions, Item, KEYS, Kind, Server, TAGS};
use crate::plan::{Plan, chosen_key};
use crate::session::Session;
use async_trait::async_trait;
use common::clock::Boot;
use common::concern::Concern;
use common::engine::estate::{
    CreateOrder, Estate, Fault, Freshness, Ids, Kind as Traits, Listing, Markable, Outcome, Phase, Piece, Sighting,
    Thing, WhenFailed, WhenGone,
};
use common::identity::{Mark, MarkSeen, Slot, Then};
use common::ledger::Id;
use common::names::reason;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const fn traits(kind: Kind, rank: u8, gone: WhenGone, failed: WhenFailed) -> Traits {
    Traits {
        name: kind.name(),
        rank,
        // Metadata, tags or description: every create call has room for a mark.
        markable: Markable::AtCreate,
        token: false,
        // Names are not unique in OpenStack, but what bears our name without our mark is looked at by people first.
        unique_key: true,
        gone,
        failed,
    }
}
/// Before there is a server: what is lost is made again, what failed is replaced.
const BEFORE: [Traits; 4] = [
    traits(Kind::Port, 0, WhenGone::Recreate, WhenFailed::Refuse),
    traits(Kind::Volume, 0, WhenGone::Recreate, WhenFailed::Replace),
    traits(Kind::Trunk, 1, WhenGone::Recreate, WhenFailed::Refuse),
    traits(Kind::Server, 2, WhenGone::Fail, WhenFailed::Refuse),
];
/// With a server: a port or volume that took the place of a lost one would be plugged into nothing, and an empty disk would
/// hide that data is lost.
const AFTER: [Traits; 4] = [
    traits(Kind::Port, 0, WhenGone::Fail, WhenFailed::Refuse),
    traits(Kind::Volume, 0, WhenGone::Fail, WhenFailed::Refuse),
    traits(Kind::Trunk, 1, WhenGone::Recreate, WhenFailed::Refuse),
    traits(Kind::Server, 2, WhenGone::Fail, WhenFailed::Refuse),
];

/// What of the owner an estate must know.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    /// Kinds that the ledger has records of.
    pub kinds: BTreeSet<Kind>,
    /// Recorded ports.
    pub ports: BTreeSet<Id>,
    /// The recorded server.
    pub server: Option<Id>,
    /// The owner is on its way out.
    pub deleting: bool,
}

/// One owner's view of the project, for one pass.
pub struct ServerEstate {
    session: Arc<Session>,
    plan: Plan,
    concern: Concern,
    owned: Owned,
    extensions: Extensions,
    seen: Mutex<Seen>,
}
/// What this pass has seen, so that status and drift cost no call.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Things, by kind and id.
    pub items: BTreeMap<(Kind, Id), Item>,
    /// What was asked for by id and is not there.
    pub missing: BTreeSet<(Kind, Id)>,
    /// Ports that somebody else plugged into the recorded server.
    pub plugged: BTreeSet<Id>,
    /// When the oldest list was asked for that this was read from.
    pub listed: Option<Boot>,
}
impl Seen {
    /// A server.
    pub fn server(&self, id: &str) -> Option<&Server> {
        match self.items.get(&(Kind::Server, id.to_owned())) {
            Some(Item::Server(server)) => Some(server),
            _ => None,
        }
    }
    /// The same, to add what is known beside.
    pub fn server_mut(&mut self, id: &str) -> Option<&mut Server> {
        match self.items.get_mut(&(Kind::Server, id.to_owned())) {
            Some(Item::Server(server)) => Some(server),
            _ => None,
        }
    }
}

impl ServerEstate {
    /// For one owner.
    pub fn new(session: Arc<Session>, plan: Plan, concern: Concern, owned: Owned, extensions: Extensions) -> Self {
        ServerEstate { session, plan, concern, owned, extensions, seen: Mutex::new(Seen::default()) }
    }
    fn seen_now(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What the pass has seen.
    pub fn seen(&self) -> Seen {
        self.seen_now().clone()
    }
    fn note(&self, item: &Item) {
        let key = (item.kind(), item.id().clone());
        let mut seen = self.seen_now();
        seen.missing.remove(&key);
        seen.items.insert(key, item.clone());
    }
    fn sighting(&self, item: &Item) -> Sighting {
        self.note(item);
        let mark = item.mark();
        let key = match &mark {
            _ if self.plan.is_chosen(item.id()) => Some(chosen_key(item.id())),
            // Names are not unique: what belongs to somebody else is none of our business. A port has one trunk.
            MarkSeen::Whole(_) if item.kind() != Kind::Trunk => None,
            _ => Some(item.key()),
        };
        Sighting {
            kind: item.kind().name(),
            id: item.id().clone(),
            mark,
            readable: false,
            key,
            params: None,
            born: item.created(),
            phase: phase(item, &self.owned),
        }
    }
    /// A soft-deleted server that is not ours to end is as good as gone. What is still plugged into it goes when the cloud reclaims
    /// it, and its owner after that.
    fn is_over(&self, item: &Item) -> bool {
        match item {
            Item::Server(server) => {
                server.status == "DELETED"
                    || self.owned.deleting && is_soft_deleted(server) && self.session.gave_up(&server.id)
            }
            _ => false,
        }
    }
    /// A port, trunk or volume that cannot go is usually held by a server, which neither Neutron nor Cinder names.
    async fn name_blocker(&self, kind: Kind, id: &str, fault: Fault) -> Fault {
        let (kind, id) = match self.seen_now().items.get(&(kind, id.to_owned())) {
            Some(Item::Trunk(trunk)) => (Kind::Port, trunk.port.clone()),
            Some(Item::Port(_) | Item::Volume(_)) => (kind, id.to_owned()),
            _ => return fault,
        };
        let holders: Vec<String> = match self.session.cloud().get(kind, &id).await {
            Ok(Some(Item::Port(port))) if !port.device.is_empty() => vec![port.device],
            Ok(Some(Item::Volume(volume))) => volume.servers.into_iter().collect(),
            _ => Vec::new(),
        };
        if holders.is_empty() { fault } else { Fault::Transient(format!("{fault}; in use by {}", holders.join(", "))) }
    }
    /// Ports that somebody put on a trunk of ours go with it. They are marked before they are set free: between the two they
    /// would be nobody's. What carries somebody's mark is only set free.
    async fn claim_sub_ports(&self, trunk: &str) -> Outcome<()> {
        let trunk = match self.session.cloud().get(Kind::Trunk, trunk).await {
            Ok(Some(item @ Item::Trunk(_))) => item,
            Ok(_) => return Outcome::Done(()),
            Err(fault) => return Outcome::Refused(fault),
        };
        let (Item::Trunk(it), MarkSeen::Whole(ours)) = (&trunk, trunk.mark()) else { return Outcome::Done(()) };
        for id in &it.sub_ports {
            let port = match self.session.cloud().get(Kind::Port, id).await {
                Ok(Some(port)) => port,
                Ok(None) => continue,
                Err(fault) => return Outcome::Refused(fault),
            };
            let Some(slot) = sub_port_slot(id).filter(|_| port.mark() == MarkSeen::Nothing) else { continue };
            let mark = Mark { slot, adopted: Some(Then::Delete), ..ours.clone() };
            match self.session.cloud().mark(Kind::Port, id, &mark.to_tags(&KEYS)).await {
                Outcome::Done(()) => {}
                other => return other,
            }
        }
        Outcome::Done(())
    }
    /// A port of somebody else's in our server.
    fn is_plugged_beside(&self, item: &Item) -> bool {
        let (Item::Port(port), Some(server)) = (item, &self.owned.server) else { return false };
        port.device == *server && !self.concerns(item)
    }
    fn concerns(&self, item: &Item) -> bool {
        let on_our_port = matches!(item, Item::Trunk(trunk) if self.owned.ports.contains(&trunk.port));
        on_our_port
            || self.concern.touches(&item.mark())
            || self.concern.records(item.id(), &item.key())
            || self.plan.may_mean(item)
    }
}

/// The slot of a port that somebody put on a trunk of ours.
fn sub_port_slot(id: &str) -> Option<Slot> {
    let short: String = id.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    Slot::new(Kind::Port.name(), Some(&format!("sub-{}", short.to_ascii_lowercase()))).ok()
}
fn is_soft_deleted(server: &Server) -> bool {
    server.status == "SOFT_DELETED"
}
/// Where a thing is in its life.
fn phase(item: &Item, owned: &Owned) -> Phase {
    match item {
        Item::Server(server) => match server.status.as_str() {
            _ if server.task.as_deref() == Some("deleting") => Phase::Deleting,
            "BUILD" => Phase::Building,
            "ERROR" => Phase::Failed(server.fault.clone().unwrap_or_else(|| "Nova gives no reason".into())),
            // On the way down it is deleted once more: for good, or to be left to the cloud.
            "SOFT_DELETED" if owned.deleting => Phase::Failed("soft deleted".into()),
            "DELETED" | "SOFT_DELETED" => Phase::Deleting,
            _ => Phase::Ready,
        },
        Item::Volume(volume) => match volume.status.as_str() {
            "creating" | "downloading" | "uploading" => Phase::Building,
            "deleting" => Phase::Deleting,
            // With a server on it, its state is the server's business.
            "error" if owned.server.is_none() => Phase::Failed("Cinder says error".into()),
            _ => Phase::Ready,
        },
        Item::Port(_) | Item::Trunk(_) | Item::FloatingIp(_) | Item::Member(_) => Phase::Ready,
    }
}
/// Which call a slot needs. A slot of no kind of ours comes from a newer version, or from somebody's hand.
fn kind_of(slot: &Slot) -> Result<Kind, Fault> {
    Kind::of(slot).ok_or_else(|| Fault::Terminal {
        reason: reason::LEDGER_UNREADABLE,
        message: format!("slot {slot} is of no kind that this version knows"),
    })
}

#[async_trait]
impl Estate for ServerEstate {
    fn kinds(&self) -> &'static [Traits] {
        if self.owned.server.is_some() { &AFTER } else { &BEFORE }
    }
    fn pieces(&self, ids: &Ids) -> Vec<Piece> {
        self.plan.pieces(ids)
    }
    async fn scope(&self) -> Result<String, Fault> {
        Ok(self.session.cloud().identity().await?.scope())
    }

    async fn list(&self, freshness: Freshness) -> Result<Listing, Fault> {
        // The spec never changes, so what it does not ask for was never made; the ledger has the last word.
        let kinds: BTreeSet<Kind> = self.plan.kinds().union(&self.owned.kinds).copied().collect();
        let snapshots = self.session.snapshots(&kinds, freshness).await?;
        let items = snapshots.iter().flat_map(|snapshot| &snapshot.items);
        let plugged = items.clone().filter(|item| self.is_plugged_beside(item)).map(|item| item.id().clone()).collect();
        self.seen_now().plugged = plugged;
        let things =
            items.filter(|item| self.concerns(item) && !self.is_over(item)).map(|item| self.sighting(item)).collect();
        // Several lists are as old as the oldest of them.
        let oldest = snapshots.iter().map(|snapshot| snapshot.sent).min();
        let date = snapshots.iter().map(|snapshot| snapshot.date).min();
        match (oldest, date) {
            (Some(sent), Some(date)) => {
                self.seen_now().listed = Some(sent);
                Ok(Listing { sent, date, things })
            }
            _ => Err(Fault::Transient("no list was read".into())),
        }
    }

    async fn get(&self, thing: &Thing) -> Result<Option<Sighting>, Fault> {
        let kind = kind_of(&thing.slot)?;
        if let Some(item) = self.session.just_made(kind, &thing.id).filter(|_| !self.owned.deleting) {
            return Ok(Some(self.sighting(&item)));
        }
        let item = self.session.cloud().get(kind, &thing.id).await?.filter(|item| !self.is_over(item));
        if item.is_none() {
            let mut seen = self.seen_now();
            seen.items.remove(&(kind, thing.id.clone()));
            seen.missing.insert((kind, thing.id.clone()));
        }
        Ok(item.map(|item| self.sighting(&item)))
    }

    async fn create(&self, order: CreateOrder<'_>) -> Outcome<Id> {
        let kind = match kind_of(order.slot) {
            Ok(kind) => kind,
            Err(fault) => return Outcome::Refused(fault),
        };
        let mark = order.mark.to_tags(&KEYS);
        match self.session.cloud().create(kind, &order.draft.params, &mark, order.not_after).await {
            Outcome::Done(made) => {
                // Ports and trunks are whole from the start; servers and volumes are looked at until they are.
                if let (Kind::Port | Kind::Trunk, Some(item)) = (kind, made.item) {
                    self.session.note_made(item);
                }
                Outcome::Done(made.id)
            }
            Outcome::Refused(fault) => Outcome::Refused(fault),
            Outcome::Unknown(why) => Outcome::Unknown(why),
        }
    }

    async fn mark(&self, thing: &Thing, mark: &Mark) -> Outcome<()> {
        match kind_of(&thing.slot) {
            Ok(kind) => self.session.cloud().mark(kind, &thing.id, &mark.to_tags(&KEYS)).await,
            Err(fault) => Outcome::Refused(fault),
        }
    }
    async fn unmark(&self, thing: &Thing) -> Outcome<()> {
        match kind_of(&thing.slot) {
            Ok(kind) => self.session.cloud().mark(kind, &thing.id, &BTreeMap::new()).await,
            Err(fault) => Outcome::Refused(fault),
        }
    }

    async fn delete(&self, thing: &Thing) -> Outcome<()> {
        let kind = match kind_of(&thing.slot) {
            Ok(kind) => kind,
            Err(fault) => return Outcome::Refused(fault),
        };
        if kind == Kind::Trunk {
            match self.claim_sub_ports(&thing.id).await {
                Outcome::Done(()) => {}
                other => return other,
            }
        }
        let soft = kind == Kind::Server && self.seen_now().server(&thing.id).is_some_and(is_soft_deleted);
        if !soft {
            let outcome = self.session.cloud().delete(kind, &thing.id).await;
            return match outcome {
                Outcome::Refused(fault @ (Fault::Transient(_) | Fault::Denied(_))) => {
                    Outcome::Refused(self.name_blocker(kind, &thing.id, fault).await)
                }
                other => other,
            };
        }
        if !self.session.forces() {
            self.session.give_up(&thing.id);
            return Outcome::Done(());
        }
        match self.session.cloud().force_delete(&thing.id).await {
            Outcome::Refused(Fault::Denied(why)) => {
                tracing::warn!(server = thing.id, why, "stays soft deleted until the cloud reclaims it");
                self.session.give_up(&thing.id);
                Outcome::Done(())
            }
            other => other,
        }
    }

    fn drift(&self, piece: &Piece, seen: &Sighting) -> Option<String> {
        let wanted = self.plan.tags(&piece.slot).filter(|_| self.extensions.contains(TAGS))?;
        let kind = Kind::of(&piece.slot)?;
        let missing = missing_tags(self.seen_now().items.get(&(kind, seen.id.clone()))?, wanted);
        (!missing.is_empty()).then(|| format!("tags {} of {}", missing.join(", "), seen.id))
    }
    async fn adjust(&self, piece: &Piece, seen: &Sighting) -> Outcome<()> {
        let (Some(kind), Some(wanted)) = (Kind::of(&piece.slot), self.plan.tags(&piece.slot)) else {
            return Outcome::Done(());
        };
        let item = match self.session.cloud().get(kind, &seen.id).await {
            Ok(Some(item)) => item,
            Ok(None) => return Outcome::Refused(Fault::Transient(format!("{} is gone", seen.id))),
            Err(fault) => return Outcome::Refused(fault),
        };
        let (Item::Port(crate::cloud::Port { tags, .. }) | Item::Trunk(crate::cloud::Trunk { tags, .. })) = &item
        else {
            return Outcome::Done(());
        };
        let all = tags.union(wanted).cloned().collect();
        self.session.cloud().set_tags(kind, &seen.id, &all).await
    }
}

/// Tags that are wanted and not there. Others are left alone.
fn missing_tags(item: &Item, wanted: &BTreeSet<String>) -> Vec<String> {
    match item {
        Item::Port(crate::cloud::Port { tags, .. }) | Item::Trunk(crate::cloud::Trunk { tags, .. }) => {
            wanted.difference(tags).cloned().collect()
        }
        _ => Vec::new(),
    }
}
