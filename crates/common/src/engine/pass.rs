//! One pass for one owner: look at it, find our stance, then up or down.
use super::Engine;
use super::estate::{Estate, Fault, Freshness, Listing, Phase};
use super::fence::TOO_LATE;
use super::owner::{OwnerApi, OwnerPatch, OwnerView};
use super::report::{Mirror, Note, Progress, Report};
use super::rules::{Rule, Rulebook};
use super::stance::{Facts, Stance, TakeOver};
use super::write::{Change, Ended, Guard, intent_differs};
use crate::clock::Boot;
use crate::identity::{MarkSeen, OwnerId, Place, Slot};
use crate::ledger::{Ledger, Record, Removal, Unreadable};
use crate::names::{self, reason};
use crate::peer;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Everything one pass works with.
pub(crate) struct Pass<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) api: &'a dyn OwnerApi,
    pub(crate) estate: &'a dyn Estate,
    /// Why no cloud write may happen.
    pub(crate) paused: Option<String>,
    pub(crate) view: OwnerView,
    pub(crate) place: Place,
    pub(crate) report: Report,
}

/// The pass is over: with this to say.
pub(crate) type Over = Progress;

impl From<Ended> for Over {
    fn from(ended: Ended) -> Progress {
        match ended {
            Ended::Gone => Progress::Gone,
            Ended::Overtaken(why) => Progress::Stale(why.to_owned()),
            Ended::Refused(why) => Progress::Failed(Fault::Denied(format!("API server: {why}"))),
            Ended::Unavailable(why) => Progress::Failed(Fault::Transient(format!("API server: {why}"))),
            Ended::Fenced => Progress::Stale(TOO_LATE.to_owned()),
            Ended::Full(bytes) => Progress::Blocked {
                reason: reason::LEDGER_FULL,
                message: format!("the ledger would take {bytes} bytes; ask for fewer pieces"),
            },
        }
    }
}
impl From<Fault> for Over {
    fn from(fault: Fault) -> Progress {
        Progress::Failed(fault)
    }
}

pub(crate) fn blocked(reason: &'static str, message: impl Into<String>) -> Progress {
    Progress::Blocked { reason, message: message.into() }
}

impl Engine {
    /// One pass for one owner: decides, writes the ledger, acts on the cloud. Never writes status.
    pub async fn pass(
        &self,
        view: &OwnerView,
        paused: Option<String>,
        api: &dyn OwnerApi,
        estate: &dyn Estate,
    ) -> Report {
        let place = self.place_of(view);
        let report = Report {
            progress: Progress::Done,
            view: None,
            standing: Vec::new(),
            notes: Vec::new(),
            kept: Vec::new(),
            mirror: None,
            ids: BTreeMap::new(),
        };
        let mut pass = Pass { engine: self, api, estate, paused, view: view.clone(), place, report };
        let progress = match pass.run().await {
            Ok(progress) | Err(progress) => progress,
        };
        pass.finish(progress)
    }
    /// How this controller lives with its peers.
    pub fn guard(&self) -> &crate::peer::Guard {
        &self.settings.peers
    }
    /// Where this owner lives.
    pub fn place_of(&self, view: &OwnerView) -> Place {
        let s = &self.settings;
        Place::of(&s.installation, s.controller, &s.kind, &view.namespace, &view.name)
    }
    /// The ledger on this version of the owner.
    pub(crate) fn ledger_of(&self, view: &OwnerView) -> Result<Option<Ledger>, Unreadable> {
        view.annotations.get(&names::ledger(self.settings.controller)).map(|t| Ledger::parse(t)).transpose()
    }
    fn owner_of(&self, view: &OwnerView) -> Result<Option<OwnerId>, String> {
        let text = view.annotations.get(&names::owner_id(self.settings.controller));
        text.map(|t| t.parse().map_err(|e: crate::identity::InvalidOwnerId| e.to_string())).transpose()
    }
    fn mirrored(&self, view: &OwnerView) -> Option<Mirror> {
        crate::conditions::mirror_in(&view.conditions, self.settings.controller)
    }
    /// Owner id and seq as status mirrors them.
    pub(crate) fn mirror_of(&self, view: &OwnerView) -> Option<(OwnerId, u64)> {
        self.mirrored(view).map(|m| (m.owner, m.seq))
    }
    pub(crate) fn has_finalizer(&self, view: &OwnerView) -> bool {
        view.finalizers.contains(&names::finalizer(self.settings.controller))
    }
    /// Puts our finalizer on, and the peer's off if the owner asks us to adopt it from there.
    pub(crate) fn finalize(&self, view: &OwnerView, patch: &mut OwnerPatch) {
        if view.deleting {
            return;
        }
        let ours = names::finalizer(self.settings.controller);
        let (from, leaving) = match peer::verdict(view, &self.settings.peers) {
            peer::Verdict::Adopt { from, finalizers } => (Some(from), finalizers),
            peer::Verdict::Ours | peer::Verdict::Peer { .. } => (None, Vec::new()),
        };
        let mut list: Vec<String> = view.finalizers.iter().filter(|f| !leaving.contains(f)).cloned().collect();
        if !list.contains(&ours) {
            list.push(ours);
        }
        if list != view.finalizers {
            patch.finalizers = Some(list);
        }
        if let Some(from) = from {
            // The request is served, but what the provider made is still to be found: its name stays.
            patch.annotations.insert(names::ADOPT_FROM.to_owned(), None);
            patch.annotations.insert(names::ADOPTED_FROM.to_owned(), Some(from.to_owned()));
        }
    }
}

impl Pass<'_> {
    pub(crate) fn now(&self) -> Boot {
        self.engine.clock.boot()
    }
    pub(crate) fn on(&self, rule: Rule) -> bool {
        self.engine.rules.on(rule)
    }
    pub(crate) fn note(&mut self, warning: bool, reason: &'static str, message: String) {
        self.report.notes.push(Note { warning, reason, message });
    }
    pub(crate) fn waiting(&self, message: impl Into<String>, again: Duration) -> Progress {
        let reason = if self.view.deleting { reason::DELETING } else { reason::PROGRESSING };
        Progress::Waiting { reason, message: message.into(), again }
    }

    async fn run(&mut self) -> Result<Progress, Over> {
        self.engine.memory.of(&self.view.uid, self.now());
        let mut facts = self.facts()?;
        if facts.suspicious() {
            let newest = self.api.get(&self.view.namespace, &self.view.name).await;
            let newest = newest.map_err(|e| Progress::Failed(Fault::Transient(e.to_string())))?;
            let Some(newest) = newest.filter(|v| v.uid == self.view.uid) else { return Ok(Progress::Gone) };
            // Spec and pause were read from the cached version: a newer one that differs in them gets a pass of its own.
            let differs = intent_differs(&self.view, &newest);
            self.view = newest;
            if differs {
                return Ok(Progress::Stale("a newer version of the owner is stored".to_owned()));
            }
            facts = self.facts()?;
        }
        let stance =
            facts.stance(self.on(Rule::RebuildLedger), self.on(Rule::NoneOnlyBlocked), self.on(Rule::PlaceCheck));
        self.count(&facts, &stance);
        match stance {
            Stance::NotOurs => Ok(Progress::Gone),
            Stance::Elsewhere(from) => Ok(blocked(reason::TAKEOVER_REQUIRED, elsewhere(&from))),
            stance if self.paused.is_some() && !matches!(stance, Stance::Serve(..)) => {
                let why = self.paused.clone().unwrap_or_default();
                Ok(blocked(reason::PAUSED, why))
            }
            Stance::Mint => self.mint(&facts).await,
            Stance::AskMarks => self.ask_marks(&facts).await,
            Stance::Rebuild(owner) => self.rebuild(&facts, owner).await,
            Stance::Take(owner, ledger) => self.take(owner, ledger).await,
            Stance::StartAnew => self.start_anew(&facts).await,
            Stance::DropRequest => self.drop_request().await,
            Stance::Finish(owner, ledger) => {
                self.check_scope(&ledger).await?;
                self.finish_take_over(owner, ledger).await
            }
            Stance::Refinalize(owner, ledger) => {
                let engine = self.engine;
                self.write(owner, Some(&ledger), ledger.clone(), Guard::Intent, &|v, p| engine.finalize(v, p)).await?;
                Ok(self.waiting("the finalizer was put back", Duration::ZERO))
            }
            Stance::Serve(owner, ledger) => {
                self.engine.memory.notice(&self.view.uid, owner, &ledger, self.now());
                self.check_scope(&ledger).await?;
                if self.view.deleting { self.down(owner, ledger).await } else { self.up(owner, ledger).await }
            }
        }
    }

    /// Counts the rules that shaped the stance.
    fn count(&self, facts: &Facts, stance: &Stance) {
        let rule = match stance {
            Stance::Elsewhere(_) | Stance::Take(..) => Rule::PlaceCheck,
            Stance::Rebuild(_) if facts.owner.is_none() => Rule::RecoverOwnerId,
            Stance::AskMarks => Rule::RecoverOwnerId,
            Stance::Rebuild(_) => Rule::RebuildLedger,
            Stance::DropRequest => Rule::NoneOnlyBlocked,
            _ => return,
        };
        self.engine.rules.apply(rule);
    }

    /// Reads the owner's metadata; ends the pass where it cannot be read or forbids everything.
    fn facts(&mut self) -> Result<Facts, Over> {
        let view = &self.view;
        if view.annotations.contains_key(names::DELETE_FOR_MOVE) && self.engine.rules.apply(Rule::DeleteForMove) {
            return Err(blocked(
                reason::MOVE_UNFINISHED,
                "this object is marked as the source of an unfinished move and nothing is written; finish the move, or, if this is \
                 where the owner shall live, take the annotation delete-for-move off",
            ));
        }
        match peer::verdict(view, &self.engine.settings.peers) {
            peer::Verdict::Peer { message } => return Err(blocked(reason::PEER_CONTROLLER, message)),
            // The API server takes no new finalizer on what is being deleted.
            peer::Verdict::Adopt { from, finalizers } if view.deleting && !self.engine.has_finalizer(view) => {
                return Err(blocked(reason::PEER_CONTROLLER, too_late(from, &finalizers)));
            }
            peer::Verdict::Adopt { .. } | peer::Verdict::Ours => {}
        }
        let owner = self.engine.owner_of(view).map_err(|e| blocked(reason::OWNER_ID_INVALID, e))?;
        let ledger = self.engine.ledger_of(view).map_err(|e| match e {
            Unreadable::TooNew(_) => blocked(reason::LEDGER_TOO_NEW, e.to_string()),
            Unreadable::Malformed(_) => blocked(reason::LEDGER_UNREADABLE, e.to_string()),
        })?;
        let memory = self.engine.memory.of(&view.uid, self.now());
        let facts = Facts {
            place: self.place.clone(),
            uid: view.uid.clone(),
            deleting: view.deleting,
            finalizer: self.engine.has_finalizer(view),
            owner,
            ledger,
            mirror: self.engine.mirror_of(view).filter(|_| self.on(Rule::RecoverOwnerId)),
            memory: if self.on(Rule::RecoverOwnerId) { (memory.owner, memory.seq) } else { (None, 0) },
            take_over: view.annotations.get(names::TAKE_OVER).map(|t| TakeOver::parse(t)),
        };
        match facts.overwritten() {
            Some(known) if self.engine.rules.apply(Rule::ForgedOwnerId) => {
                let message =
                    format!("the annotation names another owner id than status, which knows {known}: put that back");
                Err(blocked(reason::OWNER_ID_INVALID, message))
            }
            _ => Ok(facts),
        }
    }

    /// The ledger's scope must be what the credentials see; else no answer counts, not even absence.
    pub(crate) async fn check_scope(&mut self, ledger: &Ledger) -> Result<(), Over> {
        let sees = self.estate.scope().await?;
        if ledger.scope.is_empty() || ledger.scope == sees || !self.engine.rules.apply(Rule::ScopeCheck) {
            return Ok(());
        }
        let message = format!("the ledger was written for {}, the credentials see {sees}", ledger.scope);
        Err(blocked(reason::IDENTITY_MISMATCH, message))
    }

    /// Stores a ledger and goes on with what is stored.
    pub(crate) async fn write(
        &mut self,
        owner: OwnerId,
        old: Option<&Ledger>,
        new: Ledger,
        guard: Guard,
        more: &(dyn Fn(&OwnerView, &mut OwnerPatch) + Sync),
    ) -> Result<Ledger, Over> {
        let (view, ledger) = self.engine.store(self.api, &self.view, Change { owner, old, new, guard, more }).await?;
        self.view = view;
        Ok(ledger)
    }

    /// A listing, dated by when it was sent.
    pub(crate) async fn list(&self, freshness: Freshness) -> Result<Listing, Over> {
        let mut listing = self.estate.list(freshness).await?;
        if self.now() > listing.sent && !self.engine.rules.apply(Rule::ListingDatedBySending) {
            listing.sent = self.now();
        }
        Ok(listing)
    }

    /// A first owner id, unless the cloud says that this owner has lived before.
    async fn mint(&mut self, facts: &Facts) -> Result<Progress, Over> {
        let settle = self.engine.settings.timing.settle();
        let trusted = self.engine.memory.of(&self.view.uid, self.now()).trusted_from;
        let scope = self.estate.scope().await?;
        // one list serves all owners that came before it was sent; a doubt is settled by one sent after settle
        let since = if self.now() < trusted { trusted.minus(settle) } else { trusted };
        let mut listing = self.list(Freshness::Any).await?;
        if listing.sent < since {
            listing = self.list(Freshness::SentAfter(since)).await?;
        }
        let alive = || listing.things.iter().filter(|t| t.phase != Phase::Deleting);
        let in_place = |m: &MarkSeen| matches!(m, MarkSeen::Whole(m) if m.place == self.place);
        let before: Vec<_> =
            alive().filter(|t| in_place(&t.mark) || t.readable).map(|t| format!("{} {}", t.kind, t.id)).collect();
        match &facts.take_over {
            Some(TakeOver::None) => {
                self.keep_all(before);
                self.begin(scope, None).await
            }
            Some(_) if !self.engine.rules.apply(Rule::RequestIsServed) => self.begin(scope, None).await,
            None if before.is_empty() || !self.engine.rules.apply(Rule::NoMintBesideMarks) => {
                self.begin(scope, facts.ledger.as_ref()).await
            }
            Some(ask) if alive().any(|t| ask.means(&t.mark)) => self.take_by_marks(ask, &listing, scope).await,
            _ if listing.sent < trusted => {
                Ok(self.waiting("looks whether this owner has lived before", trusted.since(self.now())))
            }
            None => Ok(blocked(reason::TAKEOVER_REQUIRED, lived_before(&before))),
            // somebody meant something by it: a new owner id would make everything a second time
            Some(_) => Ok(blocked(reason::TAKEOVER_REQUIRED, names_nothing(&before))),
        }
    }

    /// Writes finalizer, a new owner id and a ledger in one patch. The ledger is empty but for what a former one of this owner
    /// knew: of what carries no mark it is the only trace.
    pub(crate) async fn begin(&mut self, scope: String, former: Option<&Ledger>) -> Result<Progress, Over> {
        let engine = self.engine;
        let owner = OwnerId::from_bits(engine.random.bits128());
        let mut ledger = Ledger::empty(&self.view.uid, &self.place, engine.next_writer());
        ledger.scope = scope;
        if let Some(former) = former {
            (ledger.records, ledger.removing) = hints(former, &engine.rules);
        }
        let old = engine.ledger_of(&self.view).ok().flatten();
        let seq_of_status = engine.mirror_of(&self.view).map_or(0, |(_, seq)| seq);
        ledger.seq = ledger.seq.max(seq_of_status + 1);
        engine.memory.distrust(&self.view.uid, self.now());
        let done = self
            .write(owner, old.as_ref(), ledger, Guard::Intent, &|v, p| {
                engine.finalize(v, p);
                if v.annotations.contains_key(names::TAKE_OVER) {
                    p.annotations.insert(names::TAKE_OVER.to_owned(), None);
                }
            })
            .await?;
        engine.memory.minted(&self.view.uid, self.now());
        self.mirror(owner, &done);
        Ok(self.waiting("the owner id is stored", Duration::ZERO))
    }

    /// The owner id was stripped from everywhere we can read: marks in our place know it, after one settle.
    async fn ask_marks(&mut self, facts: &Facts) -> Result<Progress, Over> {
        if let Some(ledger) = &facts.ledger {
            self.check_scope(ledger).await?;
        }
        let trusted = self.engine.memory.of(&self.view.uid, self.now()).trusted_from;
        let listing = self.list(Freshness::SentAfter(self.now())).await?;
        let owners: BTreeSet<OwnerId> = listing
            .things
            .iter()
            .filter(|t| t.phase != Phase::Deleting)
            .filter_map(|t| match &t.mark {
                MarkSeen::Whole(m) if m.place == self.place => Some(m.owner),
                _ => None,
            })
            .collect();
        if listing.sent < trusted {
            return Ok(self.waiting("looks for what this owner made", trusted.since(self.now())));
        }
        match owners.iter().collect::<Vec<_>>()[..] {
            // nothing under our place: as an owner never seen, which may have lived elsewhere
            [] => self.mint(facts).await,
            [owner] => self.rebuild(facts, *owner).await,
            _ if let Some(ask @ TakeOver::Owner(_)) = &facts.take_over => {
                let scope = self.estate.scope().await?;
                self.take_by_marks(ask, &listing, scope).await
            }
            _ => Ok(blocked(
                reason::TAKEOVER_REQUIRED,
                "things of several owner ids carry this place; name one in custody.dev/take-over",
            )),
        }
    }

    /// An empty ledger under the known owner id; ids of the old one stay as hints, which every rule checks by id and mark.
    async fn rebuild(&mut self, facts: &Facts, owner: OwnerId) -> Result<Progress, Over> {
        let engine = self.engine;
        // what is left of the former ledger says for which account it was; the credentials may be wrong just now
        let remembered = [
            facts.ledger.as_ref().map(|l| l.scope.clone()),
            engine.mirrored(&self.view).map(|m| m.scope),
            Some(engine.memory.of(&self.view.uid, self.now()).scope),
        ];
        let scope = match remembered.into_iter().flatten().find(|s| !s.is_empty()) {
            Some(scope) => scope,
            None => self.estate.scope().await?,
        };
        let mut ledger = Ledger::empty(&self.view.uid, &self.place, engine.next_writer());
        ledger.scope = scope;
        if let Some(old) = &facts.ledger {
            (ledger.records, ledger.removing) = hints(old, &engine.rules);
            ledger.from.clone_from(&old.from);
        }
        ledger.seq = facts.mirror.map_or(0, |(_, seq)| seq).max(facts.memory.1).max(1);
        if facts.ledger.is_none() {
            ledger.seq += 1;
        }
        if self.on(Rule::RebuildLedger) {
            engine.memory.distrust(&self.view.uid, self.now());
        }
        let done =
            self.write(owner, facts.ledger.as_ref(), ledger, Guard::Intent, &|v, p| engine.finalize(v, p)).await?;
        self.note(
            true,
            reason::LEDGER_REBUILT,
            "the ledger was gone, rolled back or of another object; it is refilled from the marks".to_owned(),
        );
        self.mirror(owner, &done);
        Ok(self.waiting("the ledger is refilled from the marks", Duration::ZERO))
    }

    /// For the ledger condition.
    pub(crate) fn mirror(&mut self, owner: OwnerId, ledger: &Ledger) {
        let word = |r: &Record| match r {
            Record::Intended { .. } => "intended".to_owned(),
            Record::Created { id, .. } => id.clone(),
            Record::Adopted { id, .. } => format!("{id} (adopted)"),
            Record::Referenced { id } => format!("{id} (referenced)"),
        };
        let mut parts: Vec<String> = ledger.records.iter().map(|(s, r)| format!("{s}={}", word(r))).collect();
        parts.extend(ledger.removing.iter().map(|r| format!("removing {}={}", r.slot, r.id)));
        let scope = ledger.scope.clone();
        self.report.mirror = Some(Mirror { owner, seq: ledger.seq, scope, records: parts.join(" ") });
        self.report.ids = ledger.records.iter().filter_map(|(s, r)| Some((s.clone(), r.id()?.clone()))).collect();
    }

    fn finish(mut self, progress: Progress) -> Report {
        if progress != Progress::Gone {
            if self.report.mirror.is_none()
                && let (Ok(Some(owner)), Ok(Some(ledger))) =
                    (self.engine.owner_of(&self.view), self.engine.ledger_of(&self.view))
                && ledger.place == self.place
            {
                self.mirror(owner, &ledger);
            }
            self.report.view = Some(self.view);
        }
        self.report.progress = progress;
        self.report
    }
}

/// What of an old ledger may be believed until seen otherwise: ids. An intent may be long over, so its token is not sent
/// again; but of a kind that cannot be marked at create it is the only trace. So is a removal of a kind that never carries
/// a mark; everything else that was to go is found again by its mark.
pub(crate) fn hints(old: &Ledger, rules: &Rulebook) -> (BTreeMap<Slot, Record>, Vec<Removal>) {
    let kept = old.records.iter().filter(|(_, r)| r.id().is_some() || r.key().is_some());
    let mut hints: BTreeMap<_, _> = kept.map(|(s, r)| (s.clone(), r.clone())).collect();
    for record in hints.values_mut() {
        if let Record::Intended { token, .. } = record {
            *token = None;
        }
    }
    let mut removing: Vec<Removal> = old.removing.iter().filter(|r| r.key.is_some()).cloned().collect();
    if !removing.is_empty() && !rules.apply(Rule::RemovalsSurvive) {
        removing.clear();
    }
    (hints, removing)
}
fn elsewhere(from: &Place) -> String {
    format!(
        "this object was moved, restored or copied here from place {from}; annotate it with {}={from} to take its things over, or =none to start with nothing",
        names::TAKE_OVER
    )
}
fn too_late(from: &str, finalizers: &[String]) -> String {
    format!(
        "being deleted under {}, too late to be taken over: let {from} finish, or take what it made away by hand, then its finalizer",
        finalizers.join(", ")
    )
}
fn names_nothing(before: &[String]) -> String {
    let beside = if before.is_empty() { String::new() } else { format!("; {}", lived_before(before)) };
    format!("nothing in the cloud carries what {} names: correct it, or take it off{beside}", names::TAKE_OVER)
}
fn lived_before(things: &[String]) -> String {
    let shown = things.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    format!(
        "{} things carry this owner's place or name ({shown}); annotate it with {}=<owner id> to take them over, or =none to start with nothing",
        things.len(),
        names::TAKE_OVER
    )
}
