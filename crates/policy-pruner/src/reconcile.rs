//! One pass over one policy: a table of contents.
use crate::api::{ConfigurationPolicy, PolicyStatus, Prune, RelatedObject};
use crate::books::Books;
use crate::cluster::sight::Sight;
use crate::cluster::wire::Trouble;
use crate::deletion;
use crate::desk::{Desk, Dirt, has_finalizer};
use crate::dialect::Dialect;
use crate::evaluate::act::{self, Doing};
use crate::evaluate::templates::{self, refused};
use crate::evaluate::{Evaluated, Ground, TemplateResult, keyring};
use crate::leaving::{LEAVING_LOOK, Look, UNTOLD, is_leaving};
use crate::memory::{Due, Fingerprint, Memory, come_back, due, follows, patience};
use crate::message::{self, Verdict};
use crate::names::{self, MANAGER, reason};
use crate::prune::decide::candidates;
use crate::prune::ledger::Ledger;
use crate::prune::needs::listed;
use crate::standing::{self, COMPLIANT};
use crate::text::duration::Interval;
use common::runtime::next::Next;
use common::runtime::object::Key;
use std::time::Duration;
use tracing::{debug, warn};

/// A kind that is not there is looked for again this often.
const KIND_LOOK: Duration = Duration::from_secs(10);
/// When nothing else changed, `lastEvaluated` of a followed policy is written this often at most.
const COALESCED: Duration = Duration::from_secs(30);
/// After a lost race for the policy itself.
const RACE: Duration = Duration::from_millis(500);

/// One pass.
pub async fn pass(desk: &Desk, key: &Key, policy: &ConfigurationPolicy) -> Next {
    let memory = desk.memories.of(key);
    let mut memory = memory.lock().await;
    match desk.memories.take_dirt(key) {
        Some(Dirt::Followed) => memory.dirty |= follows(policy),
        Some(Dirt::Always) => memory.dirty = true,
        None => {}
    }
    let deleting = policy.metadata.deletion_timestamp.is_some();
    let annotations = policy.metadata.annotations.as_ref();
    let told = deleting || annotations.is_some_and(|a| a.contains_key(names::UNINSTALLING));
    let unchanged = memory.evaluated == Some(Fingerprint::of(policy));
    let look = if told {
        Look::Anew
    } else if follows(policy) && unchanged {
        Look::Ever
    } else {
        Look::Lately
    };
    match is_leaving(desk, policy, look).await {
        Ok(true) => {
            // Nothing is followed from here on: if the uninstall is called off, everything is looked at again.
            memory.evaluated = None;
            let next = deletion::let_go(desk, key, policy).await;
            // The uninstall may be called off, and nothing would tell.
            return if next == Next::Done && !deleting { Next::Again(LEAVING_LOOK) } else { next };
        }
        Ok(false) => {}
        Err(trouble) if deleting && has_finalizer(policy) => {
            let left = deletion::failed(policy, &format!("{UNTOLD}: {trouble}"));
            let dialect = desk.surroundings.dialect().await;
            return deletion::not_gone(desk, key, policy, &mut memory, dialect, &left).await;
        }
        Err(trouble) => return Next::Retry(trouble.to_string()),
    }
    let dialect = desk.surroundings.dialect().await;
    if deleting {
        return deletion::delete(desk, key, policy, &mut memory, dialect).await;
    }
    match manage_finalizer(desk, key, policy).await {
        Ok(None) => evaluate(desk, key, policy, &mut memory, dialect).await,
        Ok(Some(changed)) => evaluate(desk, key, &changed, &mut memory, dialect).await,
        // Somebody changed the policy meanwhile: the change brings another pass.
        Err(trouble) if matches!(trouble.code, 404 | 409 | 422) => Next::Again(RACE),
        Err(trouble) => Next::Retry(trouble.to_string()),
    }
}

/// Our finalizer is on exactly the policies that prune.
async fn manage_finalizer(
    desk: &Desk,
    key: &Key,
    policy: &ConfigurationPolicy,
) -> Result<Option<ConfigurationPolicy>, Trouble> {
    match (policy.spec.prune(), has_finalizer(policy)) {
        (Prune::None, true) => {
            desk.ledgers.close(key).await?;
            desk.remove_finalizer(policy).await?;
            Ok(None)
        }
        (Prune::None, false) => {
            // Left behind if the finalizer was taken off by hand; one of a former policy stays for `audit`.
            if desk.ledgers.is_of(key, policy.metadata.uid.as_deref().unwrap_or_default()) {
                desk.ledgers.close(key).await?;
            }
            Ok(None)
        }
        (Prune::IfCreated | Prune::All, false) => desk.add_finalizer(policy).await.map(Some),
        (Prune::IfCreated | Prune::All, true) => Ok(None),
    }
}

async fn evaluate(desk: &Desk, key: &Key, policy: &ConfigurationPolicy, memory: &mut Memory, dialect: Dialect) -> Next {
    match due(policy, memory, desk.clock.wall()) {
        Due::Now => {}
        Due::In(wait) => return Next::Again(wait),
        Due::Not => return Next::Done,
    }
    let began = desk.clock.boot();
    if let Some(last) = memory.began {
        let passed = began.since(last);
        if passed < desk.settings.backoff {
            return Next::Again(desk.settings.backoff.saturating_sub(passed));
        }
    }
    memory.began = Some(began);
    memory.dirty = false;
    let generation = policy.metadata.generation.unwrap_or_default();
    if memory.generation != generation {
        memory.generation = generation;
        memory.results.clear();
        memory.told_held = false;
    }
    let follow = follows(policy);
    let sight = desk.sight(key, follow);
    let outcome = Pass { desk, key, policy, dialect, sight: &*sight, follow }.run(memory).await;
    sight.finish();
    memory.evaluated = Some(Fingerprint::of(policy));
    let state = match &outcome {
        Ok(done) => done.state.clone(),
        Err(_) => policy.status.as_ref().map(|s| s.compliant.clone()).unwrap_or_default(),
    };
    if let Some(metrics) = &desk.metrics {
        metrics.evaluated(key, &policy.spec.severity, &state, desk.clock.boot().since(began));
    }
    let (retry, kind_missing) = match outcome {
        Ok(done) => (done.retry, done.kind_missing),
        // A test of the uid that fails looks like anything else that is not found or not valid.
        Err(trouble) if matches!(trouble.code, 404 | 422) && desk.is_gone(policy).await => return Next::Again(RACE),
        Err(trouble) => {
            warn!(%trouble, "evaluation");
            if let Some(metrics) = &desk.metrics {
                metrics.system_error(key, parent(policy), "status-update-failed");
            }
            (true, false)
        }
    };
    let interval = policy.spec.interval(state == COMPLIANT);
    // What was only read must be read once more to be followed.
    let blind = interval == Interval::Watch && !follow;
    memory.unfinished = retry || blind;
    if retry {
        memory.streak = memory.streak.saturating_add(1);
        let wait = patience(desk.settings.backoff, memory.streak);
        return Next::Again(if kind_missing { wait.min(KIND_LOOK.max(desk.settings.backoff)) } else { wait });
    }
    memory.streak = 0;
    if interval == Interval::Watch {
        return if blind { Next::Again(desk.settings.backoff) } else { Next::Done };
    }
    desk.unfollow(key);
    come_back(interval).map_or(Next::Done, Next::Again)
}

fn parent(policy: &ConfigurationPolicy) -> &str {
    policy.metadata.owner_references.iter().flatten().next().map_or("", |owner| owner.name.as_str())
}

/// What a pass came to.
struct Done {
    state: String,
    retry: bool,
    kind_missing: bool,
}

/// One evaluation of one policy.
pub(crate) struct Pass<'a> {
    pub(crate) desk: &'a Desk,
    pub(crate) key: &'a Key,
    pub(crate) policy: &'a ConfigurationPolicy,
    dialect: Dialect,
    sight: &'a dyn Sight,
    follow: bool,
}

impl Pass<'_> {
    fn ground(&self) -> Ground<'_> {
        Ground {
            objects: &self.desk.objects,
            kinds: &self.desk.kinds,
            sight: self.sight,
            spaces: &*self.desk.spaces,
            take_terminating: self.desk.settings.take_terminating,
            dialect: self.dialect,
            clock: &self.desk.clock,
            policy: self.policy,
            key: self.key,
        }
    }
    pub(crate) fn before(&self) -> PolicyStatus {
        self.policy.status.clone().unwrap_or_default()
    }

    async fn run(&self, memory: &mut Memory) -> Result<Done, Trouble> {
        let spec = &self.policy.spec;
        if spec.object_templates.is_none() && spec.object_templates_raw.is_none() {
            let text = "spec must have one of object-templates and object-templates-raw";
            return self.whole(&refused(reason::INVALID, text), false).await;
        }
        let plain = templates::disabled(self.policy);
        if !plain && templates::has_hub_templates(self.policy) {
            let text = "the governance-standalone-hub-templating addon must be enabled to resolve hub templates on the managed cluster";
            return self.whole(&refused(reason::HUB_TEMPLATE, text), false).await;
        }
        let keys = if !plain && templates::is_encrypted(self.policy) {
            match keyring::keys(self.policy, self.key, self.sight).await {
                Ok(keys) => Some(keys),
                Err((text, retry)) => return self.whole(&refused(reason::ENCRYPTION, text), retry).await,
            }
        } else {
            None
        };
        let ready = match templates::ready(self.policy, keys.as_ref()) {
            Ok(ready) => ready,
            Err(verdict) => {
                self.count_user_error("invalid-template");
                return self.whole(&verdict, false).await;
            }
        };
        let count = ready.len();
        let looked = act::read(self.ground(), ready).await;
        let mut books = self.open_books(&looked).await;
        let manager = books.ledger.as_ref().map_or_else(|| MANAGER.to_owned(), Ledger::manager);
        let creates = books.refusal.clone().map_or(Ok(()), Err);
        let doing = Doing { manager: &manager, creates, metrics: self.desk.metrics.as_deref() };
        let mut evaluated = act::act(self.ground(), &looked, &doing, &mut memory.results).await;
        evaluated.doubts.extend(books.doubt.clone());
        evaluated.retry |= books.refusal.is_some();
        if evaluated.kind_missing {
            self.count_user_error("no-object-CRD");
        }
        self.recover(&mut evaluated, &mut books).await;
        self.conclude(memory, count, evaluated, books).await
    }
    fn count_user_error(&self, kind: &str) {
        if let Some(metrics) = &self.desk.metrics {
            metrics.user_error(self.key, parent(self.policy), kind);
        }
    }

    /// Something concerns the policy as a whole: objects are neither looked at nor pruned.
    async fn whole(&self, verdict: &Verdict, retry: bool) -> Result<Done, Trouble> {
        let mut status = self.before();
        let now = self.desk.clock.wall();
        let news = standing::note_whole(&mut status, &self.policy.spec, verdict, now);
        if news {
            let mut shown = status.clone();
            shown.compliant = standing::NON_COMPLIANT.into();
            self.desk.reporter.info(self.policy, &shown, !verdict.compliant, self.dialect);
        }
        let state = self.finish(status, news).await?;
        Ok(Done { state, retry, kind_missing: false })
    }

    /// Conditions, pruning, status.
    async fn conclude(
        &self,
        memory: &mut Memory,
        count: usize,
        mut evaluated: Evaluated,
        books: Books,
    ) -> Result<Done, Trouble> {
        let spec = &self.policy.spec;
        let mut status = self.before();
        status.compliancy_details.truncate(count);
        let mut news = false;
        if count == 0 {
            let text = format!("{} contains no object templates to check, and thus has no violations", self.key.name);
            let verdict = Verdict { compliant: true, reason: reason::NO_TEMPLATES.into(), message: text };
            news = standing::note_whole(&mut status, spec, &verdict, self.desk.clock.wall());
            if news {
                let mut shown = status.clone();
                shown.compliant = standing::COMPLIANT.into();
                self.desk.reporter.info(self.policy, &shown, false, self.dialect);
            }
        }
        news |= self.batches(&mut status, &evaluated.templates).await?;
        let old = std::mem::take(&mut status.related_objects);
        let related = std::mem::take(&mut evaluated.related);
        status.related_objects = standing::settle_related(related, &old, &evaluated.fresh);
        let left = self.prune(memory, &old, &status.related_objects, &evaluated, books).await?;
        let state = self.finish(status, news).await?;
        let Evaluated { retry, kind_missing, .. } = evaluated;
        Ok(Done { state, retry: retry || left, kind_missing })
    }

    /// Notes what templates came to. States they went through are written before the last one, all templates together.
    async fn batches(&self, status: &mut PolicyStatus, templates: &[TemplateResult]) -> Result<bool, Trouble> {
        let spec = &self.policy.spec;
        let now = self.desk.clock.wall();
        let mut all: Vec<(usize, Vec<Verdict>)> = Vec::with_capacity(templates.len());
        for template in templates {
            let batches = message::batches(&template.outcomes);
            let verdicts: Vec<Verdict> = batches.iter().map(|b| message::verdict(&template.resource, b)).collect();
            let Some(last) = verdicts.last() else { continue };
            if verdicts.len() > 1 && !last.compliant {
                // Failing the same way again is no news, and must not flap.
                let mut trial = status.clone();
                if !standing::note(&mut trial, spec, template.index, last, now) {
                    continue;
                }
            }
            all.push((template.index, verdicts));
        }
        let rounds = all.iter().map(|(_, verdicts)| verdicts.len()).max().unwrap_or(0);
        let created = all.iter().all(|(_, v)| v.last().is_some_and(|v| v.compliant));
        let mut news = false;
        for round in 0..rounds {
            let mut told = false;
            for (index, verdicts) in &all {
                // Whoever has less to tell joins late.
                let late = rounds - verdicts.len();
                let Some(verdict) = round.checked_sub(late).and_then(|at| verdicts.get(at)) else { continue };
                told |= standing::note(status, spec, *index, verdict, now);
            }
            news |= told;
            if told && round + 1 < rounds {
                let closing = standing::close(self.policy, status.clone(), true, self.dialect, now);
                let stored = self.desk.reporter.write(self.policy, &closing, self.dialect, created).await?;
                self.desk.stored(&stored);
                *status = closing.status;
            }
        }
        Ok(news)
    }

    /// Prunes what dropped out of the policy. True if something is left to do.
    async fn prune(
        &self,
        memory: &mut Memory,
        old: &[RelatedObject],
        new: &[RelatedObject],
        evaluated: &Evaluated,
        mut books: Books,
    ) -> Result<bool, Trouble> {
        let spec = &self.policy.spec;
        if spec.prune() == Prune::None {
            return Ok(false);
        }
        let mut still: Vec<_> = new.iter().map(|entry| entry.object.clone()).collect();
        still.extend(evaluated.managed.iter().cloned());
        let victims = candidates(&listed(self.policy), old, books.ledger.as_ref(), &still);
        let mut left = false;
        if spec.enforces() && !victims.is_empty() {
            let parting = if evaluated.doubts.is_empty() { self.parting().await } else { None };
            left = parting.is_some();
            let doubt = evaluated.doubts.first().cloned().or(parting);
            if doubt.is_none() {
                let fates = deletion::clean(self.desk, self.key, self.policy, books.ledger.as_ref(), &victims).await;
                deletion::tell_pruned(self.desk, self.policy, &fates);
                deletion::hand_over(self.desk, &fates).await?;
                deletion::tell_kept(self.desk, self.policy, memory, &fates);
                deletion::tell_held(self.desk, self.policy, memory, &fates);
                left = deletion::is_left(&fates);
                let before = books.ledger.clone();
                deletion::settle_ledger(&mut books.ledger, &fates);
                books.changed |= before != books.ledger;
            } else {
                debug!(doubts = ?evaluated.doubts, "nothing is pruned");
                if !memory.told_held {
                    memory.told_held = true;
                    let doubt = doubt.unwrap_or_default();
                    let note = format!("Nothing is pruned while it is in doubt which objects are meant: {doubt}");
                    self.desk.reporter.note(self.policy, true, "PruneHeld", "Prune", &note);
                }
            }
        }
        if books.changed
            && let Some(ledger) = &mut books.ledger
        {
            self.desk.ledgers.save(self.key, ledger).await?;
        }
        Ok(left)
    }

    /// Why nothing may be pruned though this evaluation leaves nothing in doubt: the installation may have begun to leave before the edit.
    async fn parting(&self) -> Option<String> {
        match is_leaving(self.desk, self.policy, Look::Anew).await {
            Ok(false) => None,
            Ok(true) => Some("this installation is on its way out".to_owned()),
            Err(trouble) => Some(format!("{UNTOLD}: {trouble}")),
        }
    }

    /// Writes the status if there is anything new in it.
    async fn finish(&self, status: PolicyStatus, news: bool) -> Result<String, Trouble> {
        let now = self.desk.clock.wall();
        let before = self.before();
        let closing = standing::close(self.policy, status, news, self.dialect, now);
        let state = closing.status.compliant.clone();
        if self.follow && !closing.tell && standing::alike(&closing.status, &before) {
            let last = before.last_evaluated.parse::<jiff::Timestamp>();
            let age = last.ok().and_then(|last| Duration::try_from(now.duration_since(last)).ok());
            if age.is_some_and(|age| age < COALESCED) {
                return Ok(state);
            }
        }
        let confirmed = standing::confirms(&before, &closing.status);
        let stored = self.desk.reporter.write(self.policy, &closing, self.dialect, confirmed).await?;
        self.desk.stored(&stored);
        Ok(state)
    }
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod interval_tests;
#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
