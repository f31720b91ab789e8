//! The ledger in one evaluation: written before anything is created, rebuilt for a policy that came back, asked where the status
//! does not know.
use crate::api::{ObjectRef, Prune};
use crate::cluster::wire::Trouble;
use crate::desk::Desk;
use crate::evaluate::Evaluated;
use crate::evaluate::act::Read;
use crate::prune::decide;
use crate::prune::ledger::Ledger;
use crate::prune::look::look;
use crate::reconcile::Pass;
use tracing::info;

/// The ledger in this pass.
#[derive(Default)]
pub(crate) struct Books {
    pub(crate) ledger: Option<Ledger>,
    pub(crate) changed: bool,
    /// Nothing may be pruned, and why.
    pub(crate) doubt: Option<String>,
    /// Nothing may be created, and why.
    pub(crate) refusal: Option<String>,
}

impl Pass<'_> {
    /// Everything that will be created is written down first.
    pub(crate) async fn open_books(&self, reads: &[Read]) -> Books {
        let mut books = Books::default();
        let spec = &self.policy.spec;
        if spec.prune() == Prune::None {
            return books;
        }
        let uid = self.policy.metadata.uid.as_deref().unwrap_or_default();
        let known = match self.desk.ledgers.get(self.key).await {
            Ok(known) => known,
            Err(trouble) => {
                let text = format!("the ledger cannot be read: {trouble}");
                return Books { doubt: Some(text.clone()), refusal: Some(text), ..books };
            }
        };
        let mut ledger = match known {
            Some(ledger) if ledger.uid != uid => {
                let text = "the ledger belongs to a former policy of this name: it is rebuilt first".to_owned();
                books.doubt = Some(text.clone());
                match rebuild(self.desk, ledger, uid).await {
                    Ok(ledger) => ledger,
                    Err(trouble) => {
                        let refusal = Some(format!("{text}: {trouble}"));
                        return Books { refusal, ..books };
                    }
                }
            }
            Some(ledger) => ledger,
            None => self.desk.ledgers.begin(self.key, uid),
        };
        // One that somebody wants gone is written anew while that can be done.
        let mut needed = books.doubt.is_some() || self.desk.ledgers.is_ending(self.key);
        if spec.enforces() {
            for object in reads.iter().flat_map(Read::creations) {
                needed |= !ledger.find(&object).is_some_and(|entry| entry.created);
                ledger.put(&object, true, "");
            }
            if spec.prune() == Prune::All {
                for object in reads.iter().flat_map(Read::managed) {
                    needed |= ledger.find(&object).is_none();
                    ledger.put(&object, false, "");
                }
            }
        }
        if needed && let Err(trouble) = self.desk.ledgers.save(self.key, &mut ledger).await {
            books.refusal = Some(format!("the ledger cannot be written: {trouble}"));
            books.doubt.get_or_insert_with(|| "the ledger cannot be written".into());
            return books;
        }
        books.ledger = Some(ledger);
        books
    }
    /// What the status does not know of who created an object, the ledger may.
    pub(crate) async fn recover(&self, evaluated: &mut Evaluated, books: &mut Books) {
        let Some(ledger) = books.ledger.as_mut() else { return };
        let before = self.before();
        for (object, uid) in &evaluated.created {
            ledger.put(object, true, uid);
        }
        books.changed |= evaluated.unmarked;
        let fresh = evaluated.fresh.clone();
        let all = self.policy.spec.prune() == Prune::All;
        for entry in &mut evaluated.related {
            let Some(properties) = &mut entry.properties else { continue };
            if properties.created_by_policy != Some(false) {
                continue;
            }
            let known = before.related_objects.iter().find(|r| r.object.same(&entry.object));
            let known = known.and_then(|r| r.properties.as_ref());
            if let Some(former) = fresh.get(&properties.uid) {
                let told = known.is_some_and(|p| p.created_by_policy == Some(true) && Some(&p.uid) == former.as_ref());
                let former = former.as_deref().unwrap_or_default();
                let own = recreated(ledger, &entry.object, (former, &properties.uid), told);
                if own {
                    properties.created_by_policy = Some(true);
                } else if ledger.find(&entry.object).is_some() {
                    ledger.disprove(&entry.object, all);
                }
                books.changed = true;
                continue;
            }
            if known.is_some_and(|p| p.created_by_policy == Some(true) && p.uid == properties.uid) {
                // Who prunes only since an edit, or took over from the peer, has it in the status alone, and that can be lost.
                if !ledger.find(&entry.object).is_some_and(|known| known.created) {
                    ledger.put(&entry.object, true, &properties.uid);
                    books.changed = true;
                }
                continue;
            }
            let told = match decide::created(ledger, &entry.object, &properties.uid, None) {
                Some(told) => Some(told),
                None => match self.live(&entry.object).await {
                    Ok(live) => {
                        let uid = live["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                        let told = decide::created(ledger, &entry.object, &uid, Some(&live));
                        if told == Some(true) {
                            properties.uid.clone_from(&uid);
                        } else if ledger.find(&entry.object).is_some() {
                            // Somebody else made what is there now.
                            ledger.disprove(&entry.object, all);
                            books.changed = true;
                        }
                        told
                    }
                    Err(trouble) => {
                        evaluated.doubts.push(format!("ownership cannot be verified: {trouble}"));
                        evaluated.retry = true;
                        None
                    }
                },
            };
            if told == Some(true) {
                properties.created_by_policy = Some(true);
            }
        }
    }
    async fn live(&self, object: &ObjectRef) -> Result<serde_json::Value, Trouble> {
        let found = look(&self.desk.kinds, &self.desk.objects, object).await?;
        Ok(found.map(|(_, live)| live).unwrap_or_default())
    }
}

/// The policy came back under another uid: only what ledger and mark agree on stays on the books.
pub(crate) async fn rebuild(desk: &Desk, mut ledger: Ledger, uid: &str) -> Result<Ledger, Trouble> {
    info!("the ledger is rebuilt for a policy with another uid");
    let mut kept = Vec::new();
    for entry in std::mem::take(&mut ledger.entries) {
        let Some((_, live)) = look(&desk.kinds, &desk.objects, &entry.object).await? else { continue };
        let now = live["metadata"]["uid"].as_str().unwrap_or_default();
        let ours = (!entry.uid.is_empty() && entry.uid == now) || ledger.marks(&entry, &live);
        if entry.created && ours {
            kept.push(crate::prune::ledger::Entry { uid: now.to_owned(), ..entry });
        }
    }
    ledger.entries = kept;
    uid.clone_into(&mut ledger.uid);
    Ok(ledger)
}

/// What was recreated stays whose it was, and carries our mark now: the ledger may call it created only if what was there before
/// was. `told`: the status says so. False if it was not.
fn recreated(ledger: &mut Ledger, object: &ObjectRef, (former, now): (&str, &str), told: bool) -> bool {
    let Some(entry) = ledger.find(object).filter(|entry| entry.created) else { return false };
    let own = told || (!former.is_empty() && entry.uid == former);
    if own {
        ledger.put(object, true, now);
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recreated_stays_whose_it_was() {
        let object = ObjectRef::new("v1", "Pod", "n", "a");
        for (created, recorded, former, told, own) in [
            (true, "1", "1", false, true),
            (true, "", "1", true, true),
            (true, "1", "7", false, false),
            (true, "", "7", false, false),
            (false, "", "1", true, false),
        ] {
            let mut ledger = Ledger::new("p", "u", [7; 16]);
            ledger.put(&object, created, recorded);
            let found = recreated(&mut ledger, &object, (former, "8"), told);
            assert_eq!(found, own, "{created} {recorded:?} {former} {told}");
            assert_eq!(ledger.find(&object).unwrap().uid == "8", own, "the ledger follows what is ours");
        }
    }
}
