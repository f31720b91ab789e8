//! The end of a policy: its children first, then its ledger, then our finalizer.
use crate::api::{ConfigurationPolicy, PolicyStatus, Prune};
use crate::cluster::wire::Trouble;
use crate::desk::{Desk, has_finalizer};
use crate::dialect::Dialect;
use crate::memory::{Memory, follows, patience};
use crate::message::Verdict;
use crate::names::reason;
use crate::prune::decide::{Candidate, candidates};
use crate::prune::ledger::Ledger;
use crate::prune::sweep::{Broom, Fate, describe, sweep};
use crate::report;
use crate::standing;
use common::runtime::next::Next;
use common::runtime::object::Key;
use tracing::{info, warn};

/// Lets go of a policy without touching its children: the installation is on its way out.
pub async fn let_go(desk: &Desk, key: &Key, policy: &ConfigurationPolicy) -> Next {
    desk.unfollow(key);
    let released = async {
        if desk.ledgers.get(key).await?.is_some() {
            desk.ledgers.release(key).await?;
        }
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
    let attempted = attempt(desk, key, policy, memory, dialect).await;
    desk.unfollow(key);
    match attempted {
        Ok(None) => Next::Done,
        Ok(Some(left)) => {
            memory.streak = memory.streak.saturating_add(1);
            info!(left, "children are not gone yet");
            Next::Again(patience(desk.settings.backoff, memory.streak))
        }
        Err(trouble) => {
            memory.streak = memory.streak.saturating_add(1);
            warn!(%trouble, "deletion");
            Next::Again(patience(desk.settings.backoff, memory.streak))
        }
    }
}

/// `Some(n)`: so many children are left.
async fn attempt(
    desk: &Desk,
    key: &Key,
    policy: &ConfigurationPolicy,
    memory: &mut Memory,
    dialect: Dialect,
) -> Result<Option<usize>, Trouble> {
    let prune = policy.spec.prune();
    if prune != Prune::None && policy.spec.enforces() {
        let mut ledger = desk.ledgers.get(key).await?;
        let empty = PolicyStatus::default();
        let status = policy.status.as_ref().unwrap_or(&empty);
        let victims = candidates(&policy.spec, &status.related_objects, ledger.as_ref(), &[]);
        let fates = clean(desk, key, policy, ledger.as_ref(), &victims).await;
        hand_over(desk, &fates).await?;
        tell_kept(desk, policy, &fates);
        let left = fates.iter().filter(|(_, fate)| !fate.is_over()).count();
        if left > 0 {
            settle_ledger(&mut ledger, &fates);
            if let Some(ledger) = &ledger {
                desk.ledgers.save(key, ledger).await?;
            }
            terminating(desk, policy, status, &describe(&fates), dialect).await?;
            return Ok(Some(left));
        }
    }
    memory.streak = 0;
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
    let requiring = |object: &crate::api::ObjectRef| (desk.requiring)(object, key);
    let sight = follows(policy).then(|| desk.sight(key, true));
    let broom = Broom {
        objects: &desk.objects,
        kinds: &desk.kinds,
        prune: policy.spec.prune(),
        ledger,
        like_upstream: desk.settings.like_upstream,
        requiring: &requiring,
        sight: sight.as_deref(),
        dry_run: false,
    };
    let fates = sweep(broom, victims).await;
    for (candidate, fate) in &fates {
        info!(object = candidate.object.describe(), ?fate, "pruning");
    }
    fates
}

/// What is over is no longer on our books.
pub fn settle_ledger(ledger: &mut Option<Ledger>, fates: &[(Candidate, Fate)]) {
    let Some(ledger) = ledger else { return };
    for (candidate, fate) in fates {
        if fate.is_over() {
            ledger.remove(&candidate.object);
        } else {
            ledger.put(&candidate.object, candidate.created, candidate.uids.first().map_or("", String::as_str));
        }
    }
}

/// What another policy requires is written into that policy's ledger before it leaves ours.
pub async fn hand_over(desk: &Desk, fates: &[(Candidate, Fate)]) -> Result<(), Trouble> {
    for (candidate, fate) in fates {
        let Fate::Required(requirers, Some(uid)) = fate else { continue };
        let Some(heir) = requirers.iter().find(|r| r.prune != Prune::None) else { continue };
        let known = desk.ledgers.get(&heir.key).await?;
        let mut ledger = known.clone().unwrap_or_else(|| desk.ledgers.begin(&heir.key, &heir.uid));
        ledger.put(&candidate.object, true, uid);
        desk.ledgers.save(&heir.key, &ledger).await?;
        let live = desk.objects.get(&report::mapping(), &heir.key.namespace, &heir.key.name).await?;
        if live.is_none_or(|live| live["metadata"]["deletionTimestamp"].is_string()) {
            // Who is going may have looked into its ledger already, and inherits nothing.
            match known {
                Some(before) => desk.ledgers.save(&heir.key, &before).await?,
                None => desk.ledgers.close(&heir.key).await?,
            }
            return Err(Trouble::silent(format!("{} required an object and is being deleted: decided anew", heir.key)));
        }
        desk.memories.soil(&heir.key);
    }
    Ok(())
}

/// Says what was kept for somebody else.
pub fn tell_kept(desk: &Desk, policy: &ConfigurationPolicy, fates: &[(Candidate, Fate)]) {
    let kept: Vec<String> = fates
        .iter()
        .filter_map(|(candidate, fate)| match fate {
            Fate::Required(requirers, _) => {
                let names: Vec<String> = requirers.iter().map(|r| r.key.to_string()).collect();
                Some(format!("{} is required by {}", candidate.object.describe(), names.join(", ")))
            }
            _ => None,
        })
        .collect();
    if !kept.is_empty() {
        desk.reporter.note(policy, false, "PruneKept", "Prune", &kept.join("; "));
    }
}

async fn terminating(
    desk: &Desk,
    policy: &ConfigurationPolicy,
    before: &PolicyStatus,
    message: &str,
    dialect: Dialect,
) -> Result<(), Trouble> {
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
mod tests {
    use super::*;
    use crate::api::ObjectRef;
    use crate::prune::others::Requirer;
    use crate::testing::clock::SimClock;
    use crate::testing::histories::desk;
    use crate::testing::scene;
    use crate::testing::server::SimServer;
    use serde_json::json;
    use std::sync::Arc;

    #[tokio::test]
    async fn who_is_going_inherits_nothing() {
        for (going, inherits) in [(false, true), (true, false)] {
            let (server, clock) = (SimServer::default(), Arc::new(SimClock::default()));
            let desk = desk(&server, &clock, 1, 0);
            let path = scene::policy_path("heir");
            let mut metadata = json!({"name": "heir", "namespace": "n", "finalizers": ["x"]});
            if going {
                metadata["deletionTimestamp"] = "2026-11-16T08:00:00Z".into();
            }
            server.lock().world.create(&path, json!({ "metadata": metadata }), "user").unwrap();
            let heir = Requirer { key: scene::key("heir"), uid: "uid-1".into(), prune: Prune::IfCreated };
            let object = ObjectRef::new("test/v1", "Thing", "n", "a");
            let candidate = Candidate { object: object.clone(), created: true, uids: vec!["7".into()], managed: true };
            let fates = [(candidate, Fate::Required(vec![heir.clone()], Some("7".into())))];
            assert_eq!(hand_over(&desk, &fates).await.is_ok(), inherits);
            let ledger = desk.ledgers.fetch(&heir.key).await.unwrap();
            assert_eq!(ledger.is_some_and(|ledger| ledger.find(&object).is_some()), inherits);
        }
    }
}
