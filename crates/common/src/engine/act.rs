//! Carries out a plan: intents first, then all calls at once, then the ids.
use super::Engine;
use super::estate::{CreateOrder, Draft, Estate, Fault, Listing, Markable, Outcome, Thing, add_fault};
use super::fence::TOO_LATE;
use super::pass::{Over, Pass};
use super::report::Progress;
use super::rules::Rule;
use super::up::Plan;
use super::write::Guard;
use crate::clock::Boot;
use crate::identity::{Mark, OwnerId, Slot, Then};
use crate::ledger::{Id, Ledger, Record};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::VecDeque;
use std::time::Duration;

/// What came of one call.
enum Deed {
    Created(Slot, Draft, Outcome<Id>),
    /// Too late, or no right to: nothing left this process, so nothing is learned of the token.
    NotSent(Slot, Fault),
    Marked(Thing, Outcome<()>),
    Removed(Thing, Outcome<()>),
    Unmarked(Thing, Outcome<()>),
}

/// A far moment, for when the window does not count.
const NEVER: Boot = Boot(Duration::from_secs(u64::MAX / 4));

impl Engine {
    /// Is there still time and right to send a write? Asked in the very poll that sends it.
    pub(crate) fn may_act(&self, until: Boot) -> Result<(), Fault> {
        let now = self.clock.boot();
        if now > until && self.rules.apply(Rule::StartWindow) {
            return Err(Fault::Transient("the start window is over".to_owned()));
        }
        if self.in_lease() { Ok(()) } else { Err(Fault::Transient(TOO_LATE.to_owned())) }
    }
    /// Does the lease last for one more call? Writes beside the engine's ask as well, in the very poll that sends them.
    pub fn in_lease(&self) -> bool {
        self.fence.holds_until(self.clock.boot() + self.settings.timing.call)
    }
}

fn creating<'a>(
    engine: &'a Engine,
    estate: &'a dyn Estate,
    slot: Slot,
    draft: Draft,
    token: Option<String>,
    mark: Mark,
    until: Boot,
) -> BoxFuture<'a, Deed> {
    Box::pin(async move {
        let not_after = if engine.rules.on(Rule::StartWindow) { until } else { NEVER };
        let order = CreateOrder { slot: &slot, draft: &draft, token: token.as_deref(), mark: &mark, not_after };
        if let Err(fault) = engine.may_act(until) {
            return Deed::NotSent(slot, fault);
        }
        let outcome = estate.create(order).await;
        Deed::Created(slot, draft, outcome)
    })
}
fn marking<'a>(
    engine: &'a Engine,
    estate: &'a dyn Estate,
    thing: Thing,
    mark: Mark,
    until: Boot,
) -> BoxFuture<'a, Deed> {
    Box::pin(async move {
        let outcome = match engine.may_act(until) {
            Err(fault) => Outcome::Refused(fault),
            Ok(()) => estate.mark(&thing, &mark).await,
        };
        Deed::Marked(thing, outcome)
    })
}
fn removing<'a>(
    engine: &'a Engine,
    estate: &'a dyn Estate,
    thing: Thing,
    until: Boot,
    only_the_mark: bool,
) -> BoxFuture<'a, Deed> {
    Box::pin(async move {
        match engine.may_act(until) {
            Err(fault) => Deed::Removed(thing, Outcome::Refused(fault)),
            Ok(()) if only_the_mark => {
                let outcome = estate.unmark(&thing).await;
                Deed::Unmarked(thing, outcome)
            }
            Ok(()) => {
                let outcome = estate.delete(&thing).await;
                Deed::Removed(thing, outcome)
            }
        }
    })
}

/// Waits for one thing while the other calls of the wave go on: one that stood still could be sent long after its window.
async fn beside<T>(
    deeds: &mut FuturesUnordered<BoxFuture<'_, Deed>>,
    early: &mut VecDeque<Deed>,
    what: impl Future<Output = T>,
) -> T {
    let mut what = std::pin::pin!(what);
    loop {
        tokio::select! {
            biased;
            done = &mut what => return done,
            Some(deed) = deeds.next() => early.push_back(deed),
        }
    }
}

impl<'a> Pass<'a> {
    pub(crate) fn mark_for(&self, owner: OwnerId, slot: &Slot, adopted: Option<Then>) -> Mark {
        Mark { owner, place: self.place.clone(), slot: slot.clone(), adopted }
    }

    /// One wave.
    pub(crate) async fn act(
        &mut self,
        owner: OwnerId,
        old: Ledger,
        plan: Plan,
        listing: &Listing,
    ) -> Result<Progress, Over> {
        let (engine, estate) = (self.engine, self.estate);
        let window = engine.settings.timing.window;
        let mut until = listing.sent + window;
        if self.now() > until && engine.rules.apply(Rule::StartWindow) {
            return Ok(self.waiting("decides anew: the listing is too old", Duration::ZERO));
        }
        let mut ledger = plan.ledger;
        if engine.rules.apply(Rule::IntentBeforeCreate) {
            ledger = self.write(owner, Some(&old), ledger, Guard::Intent, &|_, _| {}).await?;
            self.mirror(owner, &ledger);
        } else {
            ledger = old;
        }
        if !engine.rules.apply(Rule::WindowFromListing) {
            until = self.now() + window;
        }
        let deeds: FuturesUnordered<BoxFuture<'a, Deed>> = FuturesUnordered::new();
        for thing in plan.deletes {
            deeds.push(removing(engine, estate, thing, until, false));
        }
        for thing in plan.unmarks {
            deeds.push(removing(engine, estate, thing, until, true));
        }
        for (thing, then) in plan.marks {
            let mark = self.mark_for(owner, &thing.slot, then);
            deeds.push(marking(engine, estate, thing, mark, until));
        }
        for (slot, draft) in plan.creates {
            let token = match ledger.records.get(&slot) {
                Some(Record::Intended { token, .. }) => token.clone(),
                _ => None,
            };
            let mark = self.mark_for(owner, &slot, None);
            deeds.push(creating(engine, estate, slot, draft, token, mark, until));
        }
        self.collect(owner, ledger, deeds).await
    }

    /// Takes a refused intent out, unless it was renewed: then an earlier attempt may still have made something.
    fn strike<'l>(&self, slot: &Slot, ledger: &'l mut Ledger) -> Option<&'l Record> {
        let renewed = matches!(ledger.records.get(slot), Some(Record::Intended { attempt: 2.., .. }));
        if !renewed || !self.engine.rules.apply(Rule::StrikeFreshOnly) {
            ledger.records.remove(slot);
        }
        ledger.records.get(slot)
    }

    /// Takes the replies as they come. What cannot be marked at create is stored at once and marked then; everything else
    /// is stored together at the end.
    async fn collect(
        &mut self,
        owner: OwnerId,
        mut ledger: Ledger,
        mut deeds: FuturesUnordered<BoxFuture<'a, Deed>>,
    ) -> Result<Progress, Over> {
        let (engine, estate) = (self.engine, self.estate);
        let mut learned = ledger.clone();
        let mut fault: Option<Fault> = None;
        let mut early = VecDeque::new();
        while let Some(deed) = match early.pop_front() {
            Some(deed) => Some(deed),
            None => deeds.next().await,
        } {
            match deed {
                Deed::Created(slot, draft, Outcome::Done(id)) => {
                    let kind = self.kind(&slot)?;
                    self.note(false, "Created", format!("{slot}: {id}"));
                    let key = (kind.markable == Markable::Never).then(|| draft.key.clone());
                    let marked = kind.markable == Markable::AtCreate;
                    learned.records.insert(slot.clone(), Record::Created { id: id.clone(), marked, key });
                    if kind.markable != Markable::Later {
                        continue;
                    }
                    if engine.rules.apply(Rule::IdBeforeTag) {
                        let write = self.write(owner, Some(&ledger), learned, Guard::Id, &|_, _| {});
                        learned = beside(&mut deeds, &mut early, write).await?;
                        ledger = learned.clone();
                    }
                    let until = self.now() + engine.settings.timing.window;
                    let mark = self.mark_for(owner, &slot, None);
                    deeds.push(marking(engine, estate, Thing { slot, id }, mark, until));
                }
                Deed::NotSent(slot, why) => {
                    self.strike(&slot, &mut learned);
                    add_fault(&mut fault, why);
                }
                Deed::Created(slot, _, Outcome::Refused(why)) => {
                    let kept = self.strike(&slot, &mut learned);
                    if let Some(Record::Intended { token: Some(token), .. }) = kept
                        && !matches!(why, Fault::Throttled(_))
                    {
                        // the refusal says nothing about earlier attempts, but the token is of no more use
                        engine.memory.refuse(&self.view.uid, &slot, token.clone(), self.now());
                    }
                    add_fault(&mut fault, why);
                }
                Deed::Marked(thing, Outcome::Done(())) => {
                    engine.memory.retag(&self.view.uid, &thing, self.now());
                    if let Some(Record::Created { id, marked, .. }) = learned.records.get_mut(&thing.slot)
                        && *id == thing.id
                    {
                        *marked = true;
                    }
                }
                Deed::Removed(thing, Outcome::Done(())) => {
                    self.note(false, "Deleting", format!("{}: {}", thing.slot, thing.id));
                }
                Deed::Unmarked(thing, Outcome::Done(())) => {
                    engine.memory.retag(&self.view.uid, &thing, self.now());
                    self.note(false, "Released", format!("{}: {}", thing.slot, thing.id));
                }
                Deed::Marked(_, Outcome::Refused(why))
                | Deed::Removed(_, Outcome::Refused(why))
                | Deed::Unmarked(_, Outcome::Refused(why)) => {
                    add_fault(&mut fault, why);
                }
                Deed::Created(slot, _, Outcome::Unknown(why)) => {
                    let message = format!("{slot}: nobody knows whether it was created: {why}");
                    add_fault(&mut fault, Fault::Transient(message));
                }
                Deed::Marked(thing, Outcome::Unknown(why))
                | Deed::Removed(thing, Outcome::Unknown(why))
                | Deed::Unmarked(thing, Outcome::Unknown(why)) => {
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
            None => Ok(self.waiting("looks at what was done", Duration::from_secs(1))),
        }
    }
}
