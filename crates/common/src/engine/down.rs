//! The way down: the reverse order of needs, everything asked afresh, the finalizer last.
use super::decide::Down;
use super::estate::{Fault, Freshness, Listing, Markable, Outcome, Thing, add_fault};
use super::pass::{Over, Pass, blocked};
use super::report::{Progress, Standing};
use super::rules::Rule;
use super::sight::Whose;
use super::survey::Answers;
use super::write::{Ended, Guard};
use crate::identity::{MarkSeen, OwnerId, Slot};
use crate::ledger::{Ledger, Record, Removal};
use crate::names::{self, reason};
use std::collections::BTreeSet;
use std::time::Duration;

/// What the pass found to do on the way down.
struct Plan {
    ledger: Ledger,
    deletes: Vec<Thing>,
    unmarks: Vec<Thing>,
    marks: Vec<Thing>,
    waits: Vec<String>,
    again: Duration,
}

/// Something that may hold a thing, in the order in which those of one rank are served: removals first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Held<'l> {
    In(Slot),
    Leaving(&'l Removal),
}

impl Pass<'_> {
    pub(crate) async fn down(&mut self, owner: OwnerId, ledger: Ledger) -> Result<Progress, Over> {
        let afresh = self.engine.rules.apply(Rule::FinalSweep);
        let freshness = if afresh { Freshness::SentAfter(self.now()) } else { Freshness::Any };
        let listing = self.list(freshness).await?;
        let answers = self.ask(&ledger, &listing, true).await?;
        let plan = self.plan_down(owner, &ledger, &listing, &answers)?;
        self.mirror(owner, &ledger);
        if let Some(why) = self.paused.clone()
            && self.engine.rules.apply(Rule::Pause)
        {
            return Ok(blocked(reason::PAUSED, why));
        }
        if plan.ledger != ledger {
            let stored = self.write(owner, Some(&ledger), plan.ledger, Guard::Id, &|_, _| {}).await?;
            self.mirror(owner, &stored);
            return Ok(self.waiting("records what is gone", Duration::ZERO));
        }
        if plan.deletes.is_empty() && plan.unmarks.is_empty() && plan.marks.is_empty() {
            if plan.waits.is_empty() {
                return self.let_go(owner, &ledger, &listing).await;
            }
            let shown = plan.waits.iter().take(4).cloned().collect::<Vec<_>>().join("; ");
            return Ok(self.waiting(format!("{} left: {shown}", plan.waits.len()), plan.again));
        }
        self.carry_out(owner, ledger, plan, &listing).await
    }

    /// Decides for the highest rank that still holds something; what is below waits.
    fn plan_down(
        &mut self,
        owner: OwnerId,
        ledger: &Ledger,
        listing: &Listing,
        answers: &Answers,
    ) -> Result<Plan, Over> {
        self.report.standing.clear();
        let mut plan = Plan {
            ledger: ledger.clone(),
            deletes: Vec::new(),
            unmarks: Vec::new(),
            marks: Vec::new(),
            waits: Vec::new(),
            again: self.engine.settings.timing.poll,
        };
        let mut by_rank: Vec<(u8, Held<'_>)> = Vec::new();
        for removal in &ledger.removing {
            by_rank.push((self.kind(&removal.slot)?.rank, Held::Leaving(removal)));
        }
        for slot in self.slots(owner, ledger, listing) {
            by_rank.push((self.kind(&slot)?.rank, Held::In(slot)));
        }
        by_rank.sort_by(|a, b| b.cmp(a));
        let mut busy: Option<u8> = None;
        for (rank, held) in by_rank {
            let below = busy.is_some_and(|b| b > rank);
            let slot = match held {
                Held::Leaving(removal) if below => {
                    plan.waits.push(format!("{}: {} waits for what needs it", removal.slot, removal.id));
                    continue;
                }
                Held::Leaving(removal) => {
                    let sight = self.sight_of_removal(owner, listing, answers, removal);
                    let table = self.table(self.kind(&removal.slot)?);
                    let step = table.take(&removal.id, true, None, removal.key.as_deref(), &sight);
                    if let Down::Forget { .. } = step {
                        plan.ledger.removing.retain(|r| r != removal);
                    } else {
                        busy = Some(rank);
                    }
                    self.step(&removal.slot, step, false, &mut plan);
                    continue;
                }
                Held::In(slot) => slot,
            };
            let record = ledger.records.get(&slot);
            if below {
                if record.is_some() {
                    plan.waits.push(format!("{slot} waits for what needs it"));
                }
                continue;
            }
            let key = record.and_then(Record::key).map(str::to_owned);
            let sight = self.sight(owner, ledger, listing, answers, &slot, key.as_deref())?;
            let step = self.table(self.kind(&slot)?).down(record, &sight);
            if step == Down::Clear {
                continue;
            }
            if !matches!(step, Down::Forget { .. }) {
                busy = Some(rank);
            }
            if matches!(step, Down::Wait(_)) && !sight.trusted {
                let from = self.engine.memory.trusted_from(&self.view.uid, &slot, record, self.now());
                plan.again = plan.again.min(from.since(self.now()).max(Duration::from_secs(1)));
            }
            if let Down::NoteUnmarked(id) = &step {
                let key = key.filter(|_| self.kind(&slot).is_ok_and(|k| k.markable == Markable::Never));
                let noted = Record::Created { id: id.clone(), marked: false, key };
                plan.ledger.records.insert(slot.clone(), noted);
            }
            self.step(&slot, step, true, &mut plan);
        }
        Ok(plan)
    }

    fn step(&mut self, slot: &Slot, step: Down, recorded: bool, plan: &mut Plan) {
        let thing = |id: &str| Thing { slot: slot.clone(), id: id.to_owned() };
        let (state, id, message) = match step {
            Down::Delete(id) => {
                plan.deletes.push(thing(&id));
                ("deleting", Some(id), String::new())
            }
            Down::Unmark(id) => {
                plan.unmarks.push(thing(&id));
                ("releasing", Some(id), String::new())
            }
            Down::Mark(id) => {
                plan.marks.push(thing(&id));
                ("marking", Some(id), String::new())
            }
            Down::NoteUnmarked(id) => ("recorded", Some(id), String::new()),
            Down::Forget { kept } => {
                if recorded {
                    plan.ledger.records.remove(slot);
                }
                self.keep(slot, kept);
                return;
            }
            Down::Wait(why) => {
                plan.waits.push(format!("{slot}: {why}"));
                ("waiting", None, why.to_owned())
            }
            Down::Clear => return,
        };
        self.report.standing.push(Standing { slot: slot.clone(), id, state, message });
    }

    /// Every slot that may hold something: recorded, wanted, or named by a mark of ours.
    fn slots(&self, owner: OwnerId, ledger: &Ledger, listing: &Listing) -> BTreeSet<Slot> {
        let me = self.identity(owner);
        let marked = listing.things.iter().filter(|t| me.whose(&t.mark) == Whose::Ours).filter_map(|t| match &t.mark {
            MarkSeen::Whole(m) if m.slot.kind() == t.kind => Some(m.slot.clone()),
            _ => None,
        });
        let ids = ledger.records.iter().filter_map(|(s, r)| Some((s.clone(), r.id()?.clone()))).collect();
        let wanted = self.estate.pieces(&ids).into_iter().map(|p| p.slot);
        ledger.records.keys().cloned().chain(marked).chain(wanted).collect()
    }
    async fn carry_out(
        &mut self,
        owner: OwnerId,
        ledger: Ledger,
        plan: Plan,
        listing: &Listing,
    ) -> Result<Progress, Over> {
        let engine = self.engine;
        let until = listing.sent + engine.settings.timing.window;
        let mut fault: Option<Fault> = None;
        let mut ledger = ledger;
        if !plan.marks.is_empty() || !plan.unmarks.is_empty() {
            // marking is a deed: only under a ledger that is stored now
            ledger = self.write(owner, Some(&ledger), ledger.clone(), Guard::Intent, &|_, _| {}).await?;
        }
        let mut learned = ledger.clone();
        let estate = self.estate;
        let calls = plan
            .deletes
            .iter()
            .map(|t| (t, 'd'))
            .chain(plan.unmarks.iter().map(|t| (t, 'u')))
            .chain(plan.marks.iter().map(|t| (t, 'm')))
            .map(|(thing, what)| {
                let mark = self.mark_for(owner, &thing.slot, None);
                async move {
                    let outcome = match engine.may_act(until) {
                        Err(fault) => Outcome::Refused(fault),
                        Ok(()) if what == 'd' => estate.delete(thing).await,
                        Ok(()) if what == 'u' => estate.unmark(thing).await,
                        Ok(()) => estate.mark(thing, &mark).await,
                    };
                    (thing, what, outcome)
                }
            })
            .collect::<Vec<_>>();
        for (thing, what, outcome) in futures::future::join_all(calls).await {
            match outcome {
                Outcome::Done(()) => {
                    if what != 'd' {
                        engine.memory.retag(&self.view.uid, thing, self.now());
                    }
                    if what == 'm'
                        && let Some(Record::Created { marked, .. }) = learned.records.get_mut(&thing.slot)
                    {
                        *marked = true;
                    }
                    let word = match what {
                        'd' => "Deleting",
                        'u' => "Released",
                        _ => "Marked",
                    };
                    self.note(false, word, format!("{}: {}", thing.slot, thing.id));
                }
                Outcome::Refused(why) => {
                    add_fault(&mut fault, why);
                }
                Outcome::Unknown(why) => {
                    add_fault(&mut fault, Fault::Transient(format!("{}: no reply: {why}", thing.slot)));
                }
            }
        }
        if learned != ledger {
            let stored = self.write(owner, Some(&ledger), learned, Guard::Id, &|_, _| {}).await?;
            self.mirror(owner, &stored);
        }
        match fault {
            Some(fault) => Err(Progress::Failed(fault)),
            None => Ok(self.waiting("waits until it is gone", Duration::from_secs(2))),
        }
    }

    /// Nothing is intended, recorded or listed: the finalizer goes, with everything we wrote on the owner.
    async fn let_go(&mut self, owner: OwnerId, ledger: &Ledger, listing: &Listing) -> Result<Progress, Over> {
        let me = self.identity(owner);
        let left = listing.things.iter().filter(|t| me.whose(&t.mark) == Whose::Ours).count();
        let empty = ledger.records.is_empty() && ledger.removing.is_empty();
        if left > 0 && self.on(Rule::FinalSweep) || !empty {
            return Ok(self.waiting(format!("{left} things are still listed"), self.engine.settings.timing.poll));
        }
        // No slot asked for a settle: the ledger may have been refilled a moment ago, and what it knew may not be listed yet.
        let trusted = self.engine.memory.of(&self.view.uid, self.now()).trusted_from;
        if listing.sent < trusted && self.engine.rules.apply(Rule::SettleDown) {
            return Ok(self.waiting("looks whether anything of it shows up", trusted.since(self.now())));
        }
        let finalizer = names::finalizer(self.engine.settings.controller);
        let off = |view: &super::owner::OwnerView| {
            let mut patch = super::owner::OwnerPatch::default();
            let controller = self.engine.settings.controller;
            patch.finalizers = Some(view.finalizers.iter().filter(|f| **f != finalizer).cloned().collect());
            patch.annotations.insert(names::owner_id(controller), None);
            patch.annotations.insert(names::ledger(controller), None);
            patch
        };
        let mut view = self.view.clone();
        if !self.engine.in_lease() {
            return Err(Ended::Fenced.into());
        }
        if !self.engine.rules.apply(Rule::GuardFinalizer) {
            let newest = self.api.get(&view.namespace, &view.name).await;
            if let Ok(Some(newest)) = newest {
                view = newest;
            }
        }
        match self.api.patch(&view, &off(&view)).await {
            super::owner::Patched::Stored(_) | super::owner::Patched::Gone => {
                self.engine.memory.forget(&self.view.uid);
                Ok(Progress::Gone)
            }
            super::owner::Patched::Conflict => Ok(Progress::Stale("the owner changed meanwhile".to_owned())),
            super::owner::Patched::Refused(why) => Err(Ended::Refused(why).into()),
            super::owner::Patched::Unknown(why) => Err(Ended::Unavailable(why).into()),
        }
    }
}
