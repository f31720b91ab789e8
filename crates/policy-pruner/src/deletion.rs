//! The end of a policy: its children first, then its ledger, then our finalizer.
use crate::api::{ConfigurationPolicy, ObjectRef, PolicyStatus, Prune};
use crate::books::rebuild;
use crate::cluster::wire::Trouble;
use crate::desk::{Desk, Dirt, has_finalizer};
use crate::dialect::Dialect;
use crate::memory::{Memory, follows, patience};
use crate::message::Verdict;
use crate::names::reason;
use crate::prune::decide::{Candidate, candidates};
use crate::prune::ledger::Ledger;
use crate::prune::needs::listed;
use crate::prune::sweep::{Broom, Fate, Why, describe, sweep};
use crate::report;
use crate::standing;
use crate::text::duration::seconds;
use common::runtime::next::Next;
use common::runtime::object::Key;
use std::collections::BTreeSet;
use tracing::{info, warn};

/// Lets go of a policy without touching its children: the installation is on its way out.
pub async fn let_go(desk: &Desk, key: &Key, policy: &ConfigurationPolicy) -> Next {
    desk.unfollow(key);
    let released = async {
        desk.ledgers.let_go(key).await?;
        desk.remove_finalizer(policy).await
    };
    match released.await {
        Ok(()) => {
            info!("let go: nothing is pruned while the installation is removed");
            Next::Done
        }
        Err(trouble) => Next::Retry(trouble.to_string()),
    }
}

/// One pass over a policy that is being deleted.
pub async fn delete(
    desk: &Desk,
    key: &Key,
    policy: &ConfigurationPolicy,
    memory: &mut Memory,
    dialect: Dialect,
) -> Next {
    if !has_finalizer(policy) {
        desk.unfollow(key);
        return Next::Done;
    }
    let now = desk.clock.boot();
    if let Some(last) = memory.swept {
        let passed = now.since(last);
        if passed < desk.settings.backoff {
            return Next::Again(desk.settings.backoff.saturating_sub(passed));
        }
    }
    memory.swept = Some(now);
    let left = match attempt(desk, key, policy, memory).await {
        Ok(None) => {
            desk.unfollow(key);
            memory.streak = 0;
            return Next::Done;
        }
        Ok(Some(left)) => left,
        Err(trouble) => failed(policy, &trouble.to_string()),
    };
    not_gone(desk, key, policy, memory, dialect, &left).await
}

/// Since when a policy is going.
fn since(policy: &ConfigurationPolicy) -> Option<String> {
    policy.metadata.deletion_timestamp.as_ref().map(|at| seconds(at.0))
}
/// Something is in the way of the deletion as a whole.
pub fn failed(policy: &ConfigurationPolicy, why: &str) -> String {
    let since = since(policy).map(|since| format!(" (tried since {since})")).unwrap_or_default();
    format!("Failed to delete objects: {why}{since}")
}

/// Says what a deletion waits for, and comes back.
pub async fn not_gone(
    desk: &Desk,
    key: &Key,
    policy: &ConfigurationPolicy,
    memory: &mut Memory,
    dialect: Dialect,
    left: &str,
) -> Next {
    memory.streak = memory.streak.saturating_add(1);
    info!(left, "not gone yet");
    if let (Some(metrics), Some(since)) = (&desk.metrics, &policy.metadata.deletion_timestamp) {
        metrics.deletion_pending(key, since.0);
    }
    if let Err(trouble) = terminating(desk, policy, left, dialect).await {
        warn!(%trouble, "status of a deletion");
    }
    // Children are still followed: the last one to go brings the policy back before this.
    Next::Again(patience(desk.settings.backoff, memory.streak))
}

/// `Some`: children are left, and what each waits for.
async fn attempt(
    desk: &Desk,
    key: &Key,
    policy: &ConfigurationPolicy,
    memory: &mut Memory,
) -> Result<Option<String>, Trouble> {
    let prune = policy.spec.prune();
    if prune != Prune::None && policy.spec.enforces() {
        let uid = policy.metadata.uid.as_deref().unwrap_or_default();
        let mut ledger = match desk.ledgers.get(key).await? {
            // What a former policy of this name wrote down is ours only as far as objects agree, also at the end.
            Some(former) if former.uid != uid => Some(rebuild(desk, former, uid).await?),
            known => known,
        };
        let related = policy.status.as_ref().map(|s| s.related_objects.as_slice()).unwrap_or_default();
        let victims = candidates(&listed(policy), related, ledger.as_ref(), &[]);
        let fates = clean(desk, key, policy, ledger.as_ref(), &victims).await;
        hand_over(desk, &fates).await?;
        tell_kept(desk, policy, memory, &fates);
        if is_left(&fates) {
            settle_ledger(&mut ledger, &fates);
            if let Some(ledger) = &mut ledger {
                desk.ledgers.save_to_the_end(key, ledger).await?;
            }
            return Ok(Some(describe(&fates, since(policy).as_deref())));
        }
    }
    desk.ledgers.close(key).await?;
    desk.remove_finalizer(policy).await?;
    Ok(None)
}

/// Sweeps candidates of a policy.
pub async fn clean(
    desk: &Desk,
    key: &Key,
    policy: &ConfigurationPolicy,
    ledger: Option<&Ledger>,
    victims: &[Candidate],
) -> Vec<(Candidate, Fate)> {
    let sight = follows(policy).then(|| desk.sight(key, true));
    let broom = Broom {
        objects: &desk.objects,
        kinds: &desk.kinds,
        prune: policy.spec.prune(),
        ledger,
        like_upstream: desk.settings.like_upstream,
        others: &*desk.others,
        policy: key,
        sight: sight.as_deref(),
        dry_run: false,
    };
    let fates = sweep(broom, victims).await;
    for (candidate, fate) in &fates {
        info!(object = candidate.object.describe(), ?fate, "pruning");
    }
    fates
}

/// Is there anything left to wait for?
pub fn is_left(fates: &[(Candidate, Fate)]) -> bool {
    fates.iter().any(|(_, fate)| !fate.is_over())
}

/// What is over is no longer on our books. While anything is left, what is kept for others stays on them, too, and is put there if
/// only the status knew of it: a namespace around it has its turn in a later attempt.
pub fn settle_ledger(ledger: &mut Option<Ledger>, fates: &[(Candidate, Fate)]) {
    let Some(ledger) = ledger else { return };
    let left = is_left(fates);
    for (candidate, fate) in fates {
        if fate.is_over() && !(left && fate.is_for_others()) {
            ledger.remove(&candidate.object);
            continue;
        }
        let uid = match fate {
            Fate::Required(_, Some(own)) => own,
            _ => candidate.uids.first().map_or("", String::as_str),
        };
        ledger.put(&candidate.object, candidate.created, uid);
    }
}

/// Is a policy gone or being deleted? The watch that names it may not know yet.
async fn is_going(desk: &Desk, key: &Key) -> Result<bool, Trouble> {
    let live = desk.objects.get(&report::mapping(), &key.namespace, &key.name).await?;
    Ok(live.is_none_or(|live| live["metadata"]["deletionTimestamp"].is_string()))
}

/// What another policy requires is written into that policy's ledger before it leaves ours.
pub async fn hand_over(desk: &Desk, fates: &[(Candidate, Fate)]) -> Result<(), Trouble> {
    let decided_anew = |key: &Key| Trouble::silent(format!("{key} required an object and is being deleted"));
    // Whoever goes as well keeps nothing, also nothing that it would not inherit: nobody would come back for it.
    let requirers: BTreeSet<&Key> = fates.iter().flat_map(|(_, fate)| fate.requirers()).map(|r| &r.key).collect();
    for key in requirers {
        if is_going(desk, key).await? {
            return Err(decided_anew(key));
        }
    }
    for (candidate, fate) in fates {
        let Fate::Required(requirers, Some(uid)) = fate else { continue };
        let Some(heir) = requirers.iter().find(|r| r.prune != Prune::None) else { continue };
        let known = desk.ledgers.get(&heir.key).await?;
        let mut ledger = known.clone().unwrap_or_else(|| desk.ledgers.begin(&heir.key, &heir.uid));
        ledger.put(&candidate.object, true, uid);
        desk.ledgers.save(&heir.key, &mut ledger).await?;
        // Who began to go meanwhile may have looked into its ledger before this was in it, and inherits nothing.
        if is_going(desk, &heir.key).await? {
            take_back(desk, &heir.key, &candidate.object, known.as_ref()).await?;
            return Err(decided_anew(&heir.key));
        }
        desk.memories.soil(&heir.key, Dirt::Always);
    }
    Ok(())
}

/// What was handed over leaves the heir's ledger again; whatever else was written there meanwhile stays.
async fn take_back(desk: &Desk, heir: &Key, object: &ObjectRef, before: Option<&Ledger>) -> Result<(), Trouble> {
    // The heir may have closed its ledger: then there is nothing to take back, and nothing to write anew.
    let Some(mut ledger) = desk.ledgers.fetch(heir).await? else { return Ok(()) };
    ledger.restore(object, before.and_then(|before| before.find(object)));
    if before.is_none() && ledger.entries.is_empty() {
        return desk.ledgers.close(heir).await;
    }
    desk.ledgers.save(heir, &mut ledger).await
}

/// Says once for each generation what an edit leaves behind for a doubt or a refusal: nothing else shows while the policy lives.
pub fn tell_held(desk: &Desk, policy: &ConfigurationPolicy, memory: &mut Memory, fates: &[(Candidate, Fate)]) {
    let held = fates.iter().any(|(_, fate)| matches!(fate, Fate::Failed(_)));
    if held && !std::mem::replace(&mut memory.told_held, true) {
        desk.reporter.note(policy, true, "PruneHeld", "Prune", &describe(fates, None));
    }
}

/// Says what an edit deleted.
pub fn tell_pruned(desk: &Desk, policy: &ConfigurationPolicy, fates: &[(Candidate, Fate)]) {
    let deleted = |fate: &Fate| matches!(fate, Fate::Deleted | Fate::Ending { begun: true, .. });
    let pruned: Vec<String> =
        fates.iter().filter(|(_, fate)| deleted(fate)).map(|(candidate, _)| candidate.object.describe()).collect();
    if !pruned.is_empty() {
        let note = format!("Deleted what dropped out of the policy: {}", pruned.join(", "));
        desk.reporter.note(policy, false, "Pruned", "Prune", &note);
    }
}

/// Says what was kept for somebody else.
pub fn tell_kept(desk: &Desk, policy: &ConfigurationPolicy, memory: &mut Memory, fates: &[(Candidate, Fate)]) {
    let kept: Vec<String> = fates
        .iter()
        .filter_map(|(candidate, fate)| match fate {
            Fate::Required(requirers, _) => {
                let names: Vec<String> = requirers.iter().map(|r| r.key.to_string()).collect();
                Some(format!("{} is required by {}", candidate.object.describe(), names.join(", ")))
            }
            Fate::Stays(Why::Holds(what, _)) => Some(format!("{} stays: {what}", candidate.object.describe())),
            _ => None,
        })
        .collect();
    let kept = kept.join("; ");
    if memory.is_news(policy.metadata.generation.unwrap_or_default(), &kept) {
        desk.reporter.note(policy, false, "PruneKept", "Prune", &kept);
    }
}

async fn terminating(
    desk: &Desk,
    policy: &ConfigurationPolicy,
    message: &str,
    dialect: Dialect,
) -> Result<(), Trouble> {
    let empty = PolicyStatus::default();
    let before = policy.status.as_ref().unwrap_or(&empty);
    let mut status = before.clone();
    let now = desk.clock.wall();
    let verdict = Verdict { compliant: false, reason: reason::CLEANUP.into(), message: message.into() };
    let news = standing::note_whole(&mut status, &policy.spec, &verdict, now);
    let closing = standing::close(policy, status, news, dialect, now);
    if standing::alike(&closing.status, before) {
        return Ok(());
    }
    if news {
        desk.reporter.info(policy, &closing.status, true, dialect);
    }
    let stored = desk.reporter.write(policy, &closing, dialect, false).await?;
    desk.stored(&stored);
    Ok(())
}

#[cfg(test)]
#[path = "deletion_tests.rs"]
mod tests;
