//! The way up: decide for every piece, store the intents in one patch, act on all of them at once, store the ids.
use super::decide::{Down, Up};
use super::estate::{Draft, Fault, Freshness, Listing, Markable, Outcome, Piece, Sighting, Thing, Want};
use super::pass::{Over, Pass, blocked};
use super::report::{Progress, Standing};
use super::rules::Rule;
use super::survey::Answers;
use super::write::Guard;
use crate::clock::Boot;
use crate::identity::{MarkSeen, OwnerId, Slot, Then};
use crate::ledger::{Ledger, Record, Removal};
use crate::names::{self, reason};
use std::collections::BTreeSet;
use std::time::Duration;

/// What a look at every slot came to.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The ledger as it shall be before anything is done.
    pub(crate) ledger: Ledger,
    /// To be created, under the intent now in the ledger.
    pub(crate) creates: Vec<(Slot, Draft)>,
    /// To be marked: unacknowledged, lost, or claimed.
    pub(crate) marks: Vec<(Thing, Option<Then>)>,
    /// To be unmarked.
    pub(crate) unmarks: Vec<Thing>,
    /// To be deleted.
    pub(crate) deletes: Vec<Thing>,
    /// There, ready, ours, and when that was asked.
    done: Vec<(Piece, Sighting, Boot)>,
    /// Why not everything is done.
    waits: Vec<String>,
    refusals: Vec<(&'static str, String)>,
    /// Look again by then.
    again: Duration,
}
impl Plan {
    fn acts(&self) -> bool {
        !(self.creates.is_empty() && self.marks.is_empty() && self.unmarks.is_empty() && self.deletes.is_empty())
    }
}

impl Pass<'_> {
    pub(crate) async fn up(&mut self, owner: OwnerId, ledger: Ledger) -> Result<Progress, Over> {
        let timing = self.engine.settings.timing;
        let mut listing = self.list(Freshness::Any).await?;
        let mut answers = self.ask(&ledger, &listing, false).await?;
        let mut plan = self.plan_up(owner, &ledger, &listing, &answers)?;
        // what has drifted is adjusted, or seen to be as it was adjusted, on a look of its own
        let drifted = || plan.done.iter().any(|(piece, seen, _)| self.estate.drift(piece, seen).is_some());
        let wants_more = plan.acts() || plan.ledger != ledger || !plan.waits.is_empty() || drifted();
        if wants_more && self.now().since(listing.sent) > timing.window / 2 {
            listing = self.list(Freshness::SentAfter(self.now())).await?;
            answers = self.ask(&ledger, &listing, false).await?;
            plan = self.plan_up(owner, &ledger, &listing, &answers)?;
        }
        self.mirror(owner, &ledger);
        if plan.acts() && !self.status_knows(owner) {
            return Ok(self.waiting("stores the owner id in status before the first create", Duration::ZERO));
        }
        if !plan.acts() {
            if plan.ledger != ledger {
                let stored = self.write(owner, Some(&ledger), plan.ledger.clone(), Guard::Intent, &|_, _| {}).await?;
                self.mirror(owner, &stored);
                return Ok(self.waiting("records what is there", Duration::ZERO));
            }
            return self.settle_up(&plan).await;
        }
        self.act(owner, ledger, plan, &listing).await
    }

    fn status_knows(&self, owner: OwnerId) -> bool {
        let mirrored = self.engine.mirror_of(&self.view).is_some_and(|(o, _)| o == owner);
        mirrored || !self.engine.rules.apply(Rule::StatusBeforeCreate)
    }

    /// Nothing to write: adjust what is done, then say how things stand.
    async fn settle_up(&mut self, plan: &Plan) -> Result<Progress, Over> {
        if let Some(why) = &self.paused {
            return Ok(blocked(reason::PAUSED, why.clone()));
        }
        let mut changed = Vec::new();
        for (piece, seen, asked) in &plan.done {
            let Some(what) = self.estate.drift(piece, seen) else { continue };
            if self.engine.memory.adjusted_since(&self.view.uid, &piece.slot, *asked, self.now()) {
                changed.push(format!("{}: {what}, not visible yet", piece.slot));
                continue;
            }
            self.engine.memory.adjust(&self.view.uid, &piece.slot, self.now());
            // Adjusting twice does no harm, so only the lease bounds it: by the clock, "not after now" is always too late.
            self.engine.may_act(self.now() + self.engine.settings.timing.window)?;
            match self.estate.adjust(piece, seen).await {
                Outcome::Done(()) => {
                    self.note(false, "Adjusted", format!("{}: {what}", piece.slot));
                    changed.push(format!("{}: {what}", piece.slot));
                }
                Outcome::Refused(fault) => return Err(Progress::Failed(fault)),
                Outcome::Unknown(why) => return Err(Progress::Failed(Fault::Transient(why))),
            }
        }
        if let Some((reason, message)) = plan.refusals.first() {
            return Ok(blocked(reason, message.clone()));
        }
        if !plan.waits.is_empty() {
            let shown = plan.waits.iter().take(4).cloned().collect::<Vec<_>>().join("; ");
            return Ok(self.waiting(shown, plan.again));
        }
        if !changed.is_empty() {
            return Ok(self.waiting(changed.join("; "), self.engine.settings.timing.poll));
        }
        Ok(Progress::Done)
    }

    /// Decides for every slot. Reads nothing, writes nothing.
    fn plan_up(&mut self, owner: OwnerId, ledger: &Ledger, listing: &Listing, answers: &Answers) -> Result<Plan, Over> {
        let ids = ledger.records.iter().filter_map(|(s, r)| Some((s.clone(), r.id()?.clone()))).collect();
        let pieces = self.estate.pieces(&ids);
        self.report.standing.clear();
        self.report.kept.clear();
        let mut plan = Plan {
            ledger: ledger.clone(),
            creates: Vec::new(),
            marks: Vec::new(),
            unmarks: Vec::new(),
            deletes: Vec::new(),
            done: Vec::new(),
            waits: Vec::new(),
            refusals: Vec::new(),
            again: self.engine.settings.timing.poll,
        };
        let wanted: BTreeSet<&Slot> = pieces.iter().map(|p| &p.slot).collect();
        self.plan_removals(owner, ledger, listing, answers, &mut plan)?;
        self.plan_unwanted(owner, ledger, listing, answers, &wanted, &mut plan)?;
        let mut ready: BTreeSet<Slot> = BTreeSet::new();
        let mut order: Vec<&Piece> = pieces.iter().collect();
        order.sort_by_key(|p| self.kind(&p.slot).map_or(u8::MAX, |k| k.rank));
        for piece in order {
            let held = !piece.needs.iter().all(|n| ready.contains(n));
            if self.plan_piece(owner, ledger, listing, answers, piece, held, &mut plan)? {
                ready.insert(piece.slot.clone());
            }
        }
        Ok(plan)
    }

    /// One wanted piece. True if it is done.
    #[allow(clippy::too_many_arguments)]
    fn plan_piece(
        &mut self,
        owner: OwnerId,
        ledger: &Ledger,
        listing: &Listing,
        answers: &Answers,
        piece: &Piece,
        held: bool,
        plan: &mut Plan,
    ) -> Result<bool, Over> {
        let slot = &piece.slot;
        let kind = self.kind(slot)?;
        let record = ledger.records.get(slot);
        let draft = match &piece.want {
            Want::Make { draft, .. } => draft.as_ref(),
            Want::Use { .. } => None,
        };
        let known_key = record.and_then(Record::key).or(draft.map(|d| d.key.as_str()));
        let sight = self.sight(owner, ledger, listing, answers, slot, known_key)?;
        let leaving = ledger.removing.iter().any(|r| r.slot == *slot);
        let mut step = self.table(kind).up(record, &piece.want, &sight);
        if matches!(step, Up::Intend | Up::Renew | Up::Claim { .. }) {
            // One that is gone may be without a draft for another: that is no reason to be done.
            let undrafted = draft.is_none() && !matches!(step, Up::Claim { .. });
            if held || undrafted {
                step = Up::Wait("waits for what it needs");
            } else if leaving {
                step = Up::Wait("the previous one is being removed");
            }
        }
        let acts = matches!(step, Up::Intend | Up::Renew | Up::Claim { .. } | Up::Mark(_) | Up::Remove(_));
        if self.paused.is_some() && acts && self.engine.rules.apply(Rule::Pause) {
            step = Up::Wait("paused");
        }
        let (mut state, mut message) = ("recorded", String::new());
        let id = record.and_then(Record::id).cloned();
        match step {
            Up::Intend => {
                let Some(draft) = draft else { return Ok(false) };
                let token = kind.token.then(|| hex::encode(self.engine.random.bits128()));
                let key = (kind.markable != Markable::AtCreate).then(|| draft.key.clone());
                let intent = Record::Intended { token, params: draft.hash(), listed: listing.date, attempt: 1, key };
                plan.ledger.records.insert(slot.clone(), intent);
                plan.creates.push((slot.clone(), draft.clone()));
                state = "creating";
            }
            Up::Renew => {
                let (Some(draft), Some(Record::Intended { token, params, attempt, key, .. })) = (draft, record) else {
                    return Ok(false);
                };
                if self.engine.rules.apply(Rule::RenewBeforeResend) {
                    let (token, params, key) = (token.clone(), params.clone(), key.clone());
                    let renewed = Record::Intended { token, params, listed: listing.date, attempt: attempt + 1, key };
                    plan.ledger.records.insert(slot.clone(), renewed);
                }
                plan.creates.push((slot.clone(), draft.clone()));
                state = "creating";
            }
            Up::Note { id, adopted } => {
                let record = match adopted {
                    Some(then) => Record::Adopted { id, then },
                    None => Record::Created { id, marked: true, key: None },
                };
                plan.ledger.records.insert(slot.clone(), record);
            }
            Up::NoteUnmarked(id) => {
                let key = known_key.filter(|_| kind.markable == Markable::Never).map(str::to_owned);
                plan.ledger.records.insert(slot.clone(), Record::Created { id, marked: false, key });
            }
            Up::Claim { id, then } => {
                plan.ledger.records.insert(slot.clone(), Record::Adopted { id: id.clone(), then });
                plan.marks.push((Thing { slot: slot.clone(), id }, Some(then)));
                state = "adopting";
            }
            Up::Reference(id) => {
                plan.ledger.records.insert(slot.clone(), Record::Referenced { id });
            }
            Up::Mark(id) => {
                let then = match record {
                    Some(Record::Adopted { then, .. }) => Some(*then),
                    _ => None,
                };
                plan.marks.push((Thing { slot: slot.clone(), id }, then));
                state = "marking";
            }
            Up::Remove(gone) => {
                if id.as_ref() == Some(&gone) {
                    plan.ledger.records.remove(slot);
                } else {
                    let message = format!("{slot}: {gone} is a second one beside {}", id.clone().unwrap_or_default());
                    self.note(true, reason::DUPLICATE_REMOVED, message);
                }
                plan.ledger.removing.push(Removal { slot: slot.clone(), id: gone, key: key_of(record) });
                state = "removing";
            }
            Up::Wait(why) => {
                (state, message) = ("waiting", why.to_owned());
                let (memory, uid, now) = (&self.engine.memory, &self.view.uid, self.now());
                let counts_from = match () {
                    () if !sight.trusted => memory.trusted_from(uid, slot, record, now),
                    () if !sight.unmarked_counts && !sight.unmarked.is_empty() => {
                        memory.unmarked_from(uid, slot, record, now)
                    }
                    () => now + plan.again,
                };
                plan.again = plan.again.min(counts_from.since(now).max(Duration::from_secs(1)));
                plan.waits.push(format!("{slot}: {why}"));
            }
            Up::Refuse { reason, message: why } => {
                (state, message) = ("refused", why.clone());
                plan.refusals.push((reason, format!("{slot}: {why}")));
            }
            Up::Done(seen) => {
                state = "ready";
                let thing = Thing { slot: slot.clone(), id: seen.id.clone() };
                let asked = answers.get(&thing).map_or(listing.sent, |(sent, _)| *sent);
                plan.done.push((piece.clone(), *seen, asked));
            }
        }
        self.report.standing.push(Standing { slot: slot.clone(), id, state, message });
        Ok(state == "ready")
    }

    /// What is on its way out already, the highest rank first: what still stands on something must go before it.
    fn plan_removals(
        &mut self,
        owner: OwnerId,
        ledger: &Ledger,
        listing: &Listing,
        answers: &Answers,
        plan: &mut Plan,
    ) -> Result<(), Over> {
        let frozen = self.paused.is_some() && self.engine.rules.apply(Rule::Pause);
        let mut by_rank = Vec::new();
        for removal in &ledger.removing {
            by_rank.push((self.kind(&removal.slot)?.rank, removal));
        }
        by_rank.sort_by(|a, b| b.cmp(a));
        let mut busy: Option<u8> = None;
        for (rank, removal) in by_rank {
            let kind = self.kind(&removal.slot)?;
            let sight = self.sight_of_removal(owner, listing, answers, removal);
            let step = self.table(kind).take(&removal.id, true, None, removal.key.as_deref(), &sight);
            if let Down::Forget { kept } = step {
                plan.ledger.removing.retain(|r| r != removal);
                self.keep(&removal.slot, kept);
                continue;
            }
            let thing = Thing { slot: removal.slot.clone(), id: removal.id.clone() };
            let below = busy.is_some_and(|b| b > rank);
            busy = busy.max(Some(rank));
            match step {
                Down::Delete(_) if !frozen && !below => plan.deletes.push(thing),
                Down::Unmark(_) if !frozen && !below => plan.unmarks.push(thing),
                _ => plan.waits.push(format!("{}: {} is being removed", removal.slot, removal.id)),
            }
        }
        Ok(())
    }

    /// What no piece wants any more.
    fn plan_unwanted(
        &mut self,
        owner: OwnerId,
        ledger: &Ledger,
        listing: &Listing,
        answers: &Answers,
        wanted: &BTreeSet<&Slot>,
        plan: &mut Plan,
    ) -> Result<(), Over> {
        let frozen = self.paused.is_some() && self.engine.rules.apply(Rule::Pause);
        let mut leaving: Vec<Removal> = Vec::new();
        for (slot, record) in ledger.records.iter().filter(|(s, _)| !wanted.contains(s)) {
            let key = key_of(Some(record));
            let sight = self.sight(owner, ledger, listing, answers, slot, key.as_deref())?;
            let kind = self.kind(slot)?;
            match self.table(kind).down(Some(record), &sight) {
                Down::Delete(id) | Down::Unmark(id) => leaving.push(Removal { slot: slot.clone(), id, key }),
                Down::Mark(id) if !frozen => plan.marks.push((Thing { slot: slot.clone(), id }, None)),
                Down::NoteUnmarked(id) => {
                    let key = key.filter(|_| kind.markable == Markable::Never);
                    plan.ledger.records.insert(slot.clone(), Record::Created { id, marked: false, key });
                }
                Down::Forget { kept } => {
                    plan.ledger.records.remove(slot);
                    self.keep(slot, kept);
                }
                Down::Wait(why) => plan.waits.push(format!("{slot}: no longer wanted, {why}")),
                Down::Clear | Down::Mark(_) => {}
            }
        }
        let me = self.identity(owner);
        for thing in &listing.things {
            if let MarkSeen::Whole(mark) = &thing.mark
                && me.whose(&thing.mark) == super::sight::Whose::Ours
                && thing.phase != super::estate::Phase::Deleting
                && !wanted.contains(&mark.slot)
                && !ledger.records.contains_key(&mark.slot)
                && !ledger.removing.iter().any(|r| r.id == thing.id && r.slot == mark.slot)
                && mark.slot.kind() == thing.kind
            {
                leaving.push(Removal { slot: mark.slot.clone(), id: thing.id.clone(), key: None });
            }
        }
        if leaving.is_empty() || frozen {
            return Ok(());
        }
        self.engine.rules.apply(Rule::UpUnwanted);
        let held = ledger.records.values().filter(|r| r.id().is_some()).count();
        let confirmed = self.view.annotations.get(names::CONFIRM_REMOVAL) == Some(&self.view.generation.to_string());
        let most = leaving.len() > 1 && leaving.len() * 2 > held;
        if most && !confirmed && self.engine.rules.apply(Rule::ConfirmRemoval) {
            let message = format!(
                "this edit removes {} of {held} things; annotate with {}={} to confirm",
                leaving.len(),
                names::CONFIRM_REMOVAL,
                self.view.generation
            );
            plan.refusals.push((reason::REMOVAL_NEEDS_CONFIRMATION, message));
            return Ok(());
        }
        for removal in leaving {
            plan.ledger.records.remove(&removal.slot);
            plan.ledger.removing.push(removal);
        }
        Ok(())
    }

    /// Names what stays in the cloud.
    pub(crate) fn keep(&mut self, slot: &Slot, kept: Vec<String>) {
        for id in kept {
            self.note(true, "Kept", format!("{slot}: {id} carries no mark of ours any more and stays"));
            self.report.kept.push(Thing { slot: slot.clone(), id });
        }
    }
}

fn key_of(record: Option<&Record>) -> Option<String> {
    record.and_then(Record::key).map(str::to_owned)
}
