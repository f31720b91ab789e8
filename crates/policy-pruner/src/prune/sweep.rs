//! Carries pruning out: every delete has the uid as its condition, and either follows an uncached read or also has the judged version
//! as its condition; and there is a reason for what is left.
use super::container::Container;
use super::decide::{Candidate, Kept, Verdict, decide, is_own, rank};
use super::ledger::Ledger;
use super::look::look;
use super::others::{Inside, Lodger, Neighbours, Requirer};
use crate::api::{ObjectRef, Prune};
use crate::cluster::kinds::{Kinds, Mapping};
use crate::cluster::objects::{Deleted, Objects};
use crate::cluster::sight::Sight;
use common::runtime::object::Key;
use futures::future::join_all;
use serde_json::Value;

/// Deletes at once.
const AT_ONCE: usize = 8;

/// What a sweep stands on.
#[derive(Clone, Copy)]
pub struct Broom<'a> {
    /// Reads and deletes.
    pub objects: &'a Objects,
    /// Kinds.
    pub kinds: &'a Kinds,
    /// What becomes of objects.
    pub prune: Prune,
    /// The ledger.
    pub ledger: Option<&'a Ledger>,
    /// As the peer does it.
    pub like_upstream: bool,
    /// What other policies need.
    pub others: &'a dyn Neighbours,
    /// The policy that is swept for.
    pub policy: &'a Key,
    /// Watches, if there are any: they spare reads.
    pub sight: Option<&'a dyn Sight>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What became of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It is not there any more.
    Gone,
    /// It was deleted by this sweep, and is gone.
    Deleted,
    /// It would be deleted (only where nothing is done), and would then wait for these finalizers.
    WouldGo(Vec<String>),
    /// It stays, and why.
    Stays(Why),
    /// It stays because others require it. With the uid if this policy created it.
    Required(Vec<Requirer>, Option<String>),
    /// It is on its way out: finalizers, and since when.
    Ending {
        /// What it waits for.
        finalizers: Vec<String>,
        /// Since when.
        since: String,
        /// It was there until this sweep deleted it.
        begun: bool,
    },
    /// It has its turn when what comes before it is gone.
    Waits,
    /// It could not be deleted, and why.
    Failed(String),
}
/// Why an object stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// For its own sake.
    Kept(Kept),
    /// For the sake of what would go with it; and who requires that, if it is not kept by this very sweep.
    Holds(String, Option<Requirer>),
}
impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Why::Kept(kept) => kept.why(),
            Why::Holds(what, _) => what,
        })
    }
}
impl Fate {
    /// Is it somebody else's, so that nothing else may take it along? What was there before, and what was only matched, goes with
    /// its namespace as everything does that no policy names: a namespace is never empty.
    pub fn is_for_others(&self) -> bool {
        matches!(self, Fate::Required(..) | Fate::Stays(Why::Kept(Kept::Replaced)))
    }
    /// Who keeps it here.
    pub fn requirers(&self) -> &[Requirer] {
        match self {
            Fate::Required(requirers, _) => requirers,
            Fate::Stays(Why::Holds(_, requirer)) => requirer.as_slice(),
            _ => &[],
        }
    }
    /// Is there anything left to wait for?
    pub fn is_over(&self) -> bool {
        matches!(self, Fate::Gone | Fate::Deleted | Fate::Stays(_) | Fate::Required(..))
    }
}

/// Sweeps, in order of rank. Returns what became of each.
pub async fn sweep(broom: Broom<'_>, candidates: &[Candidate]) -> Vec<(Candidate, Fate)> {
    let mut fates: Vec<(Candidate, Fate)> = Vec::with_capacity(candidates.len());
    let mut blocked = false;
    for turn in 0..=2 {
        let now: Vec<&Candidate> = candidates.iter().filter(|c| rank(&c.object) == turn).collect();
        if blocked {
            fates.extend(now.into_iter().map(|candidate| (candidate.clone(), Fate::Waits)));
            continue;
        }
        let mut done: Vec<(Candidate, Fate)> = Vec::with_capacity(now.len());
        let spared = fates.iter().filter(|(_, fate)| fate.is_for_others());
        let kept: Vec<ObjectRef> = spared.map(|(candidate, _)| candidate.object.clone()).collect();
        for few in now.chunks(AT_ONCE) {
            let mut calls = Vec::with_capacity(few.len());
            for candidate in few {
                calls.push(one(broom, candidate, &kept));
            }
            let ended = join_all(calls).await;
            done.extend(few.iter().map(|candidate| (*candidate).clone()).zip(ended));
        }
        blocked = !broom.dry_run && done.iter().any(|(_, fate)| !fate.is_over());
        fates.extend(done);
    }
    fates
}

async fn one(broom: Broom<'_>, candidate: &Candidate, kept: &[ObjectRef]) -> Fate {
    let object = &candidate.object;
    let (namespace, name) = (object.metadata.namespace.as_str(), object.metadata.name.as_str());
    let mapping = match broom.kinds.find_served(&object.api_version, &object.kind).await {
        Ok(Some(mapping)) => mapping,
        // The kind is gone, and with it every object of it.
        Ok(None) => return Fate::Gone,
        Err(trouble) => return Fate::Failed(format!("its kind cannot be looked up: {trouble}")),
    };
    if let Some(fate) = from_watch(broom, candidate, kept, &mapping).await {
        return fate;
    }
    let (mapping, live) = match look(broom.kinds, broom.objects, object).await {
        Ok(Some((mapping, live))) => (mapping, Some(live)),
        Ok(None) => (mapping, None),
        Err(trouble) => return Fate::Failed(trouble.to_string()),
    };
    match decide(broom.prune, candidate, broom.ledger, live.as_ref(), broom.like_upstream) {
        Verdict::Gone => Fate::Gone,
        Verdict::Keep(why) => Fate::Stays(Why::Kept(why)),
        Verdict::Ending => live.as_ref().map_or(Fate::Gone, |live| ending(live, false)),
        Verdict::Delete(uid) => {
            if let Some(fate) = spared(broom, candidate, live.as_ref(), kept).await {
                return fate;
            }
            if broom.dry_run {
                return Fate::WouldGo(live.as_ref().map(finalizers).unwrap_or_default());
            }
            match broom.objects.delete(&mapping, (namespace, name), Some(&uid)).await {
                Ok(Deleted::Gone) => Fate::Deleted,
                Ok(Deleted::Ending(left)) => begun(broom, &mapping, (namespace, name), &left).await,
                Err(trouble) => Fate::Failed(trouble.to_string()),
            }
        }
    }
}
/// A delete was accepted. Removed in the same breath: one look tells.
async fn begun(broom: Broom<'_>, mapping: &Mapping, (namespace, name): (&str, &str), left: &Value) -> Fate {
    match broom.objects.get(mapping, namespace, name).await {
        Ok(None) => Fate::Deleted,
        _ => ending(left, true),
    }
}
/// Why an object that this policy would delete is not, for the sake of others. `kept`: what this sweep has kept so far.
async fn spared(broom: Broom<'_>, candidate: &Candidate, live: Option<&Value>, kept: &[ObjectRef]) -> Option<Fate> {
    if broom.like_upstream {
        return None;
    }
    match broom.others.requiring(&candidate.object, broom.policy) {
        Err(doubt) => return Some(Fate::Failed(doubt)),
        Ok(requirers) if requirers.is_empty() => {}
        Ok(requirers) => {
            let own = is_own(candidate, broom.ledger, live).then(|| live.map(uid_of).unwrap_or_default());
            return Some(Fate::Required(requirers, own));
        }
    }
    let container = Container::of(&candidate.object, live.unwrap_or(&Value::Null))?;
    if let Some(object) = kept.iter().find(|object| container.holds(object)) {
        return Some(Fate::Stays(Why::Holds(format!("it holds {}, which is kept", object.describe()), None)));
    }
    let Inside { lodgers, doubt } = match broom.others.inside(&container, broom.policy) {
        Ok(inside) => inside,
        Err(doubt) => return Some(Fate::Failed(doubt)),
    };
    for Lodger { object, requirer, if_namespaced } in lodgers {
        if if_namespaced {
            match broom.kinds.find_served(&object.api_version, &object.kind).await {
                Ok(Some(mapping)) if mapping.namespaced => {}
                Ok(_) => continue,
                Err(trouble) => {
                    let key = &requirer.key;
                    return Some(Fate::Failed(format!("what {key} requires in it cannot be told: {trouble}")));
                }
            }
        }
        let held = format!("it holds {}, which {} requires", object.describe(), requirer.key);
        return Some(Fate::Stays(Why::Holds(held, Some(requirer))));
    }
    doubt.map(Fate::Failed)
}
fn uid_of(live: &Value) -> String {
    live["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}
/// What a watch shows is enough for one thing: deleting exactly the version that was judged. The API server compares; if anything
/// changed since, or the watch is late, nothing happens here and the object itself is read.
async fn from_watch(broom: Broom<'_>, candidate: &Candidate, kept: &[ObjectRef], mapping: &Mapping) -> Option<Fate> {
    let sight = broom.sight.filter(|_| !broom.dry_run)?;
    let (namespace, name) = (&candidate.object.metadata.namespace, &candidate.object.metadata.name);
    let live = sight.get(mapping, namespace, name).await.ok()??;
    let version = live["metadata"]["resourceVersion"].as_str()?;
    let Verdict::Delete(uid) = decide(broom.prune, candidate, broom.ledger, Some(&live), broom.like_upstream) else {
        return None;
    };
    if spared(broom, candidate, Some(&live), kept).await.is_some() {
        return None;
    }
    match broom.objects.delete_version(mapping, (namespace, name), &uid, version).await {
        Ok(Deleted::Gone) => Some(Fate::Deleted),
        Ok(Deleted::Ending(left)) => Some(begun(broom, mapping, (namespace, name), &left).await),
        // Also where it is not found: the watch may be of a version that is no longer served, while another one is.
        _ => None,
    }
}
/// What an object waits for once it is deleted.
pub fn finalizers(live: &Value) -> Vec<String> {
    let finalizers = live["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.filter_map(|f| f.as_str().map(str::to_owned)).collect()
}
fn ending(live: &Value, begun: bool) -> Fate {
    Fate::Ending {
        begun,
        finalizers: finalizers(live),
        since: live["metadata"]["deletionTimestamp"].as_str().unwrap_or_default().to_owned(),
    }
}

/// What is left, for the status: which objects, what each waits for, and since when. `since`: when their policy began to go, if it does.
pub fn describe(fates: &[(Candidate, Fate)], since: Option<&str>) -> String {
    let ago = |how: &str| since.map(|since| format!(", {how}since {since}")).unwrap_or_default();
    let left = fates.iter().filter(|(_, fate)| !fate.is_over());
    let texts: Vec<String> = left
        .map(|(candidate, fate)| {
            let why = match fate {
                Fate::Ending { finalizers, since, .. } if finalizers.is_empty() => format!("in progress since {since}"),
                Fate::Ending { finalizers, since, .. } => {
                    format!("in progress since {since}, waiting for finalizers [{}]", finalizers.join(", "))
                }
                Fate::Waits => format!("it waits until the objects before it are gone{}", ago("")),
                Fate::Failed(why) => format!("{why}{}", ago("tried ")),
                _ => String::new(),
            };
            format!("{} ({why})", candidate.object.describe())
        })
        .collect();
    format!("Failed to delete objects: {}", texts.join(", "))
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
