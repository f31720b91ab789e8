//! The ledger in one evaluation: written before anything is created, rebuilt for a policy that came back, asked where the status
//! does not know.
use crate::api::{ObjectRef, Prune};
use crate::cluster::wire::Trouble;
use crate::evaluate::Evaluated;
use crate::evaluate::act::Read;
use crate::prune::decide;
use crate::prune::ledger::Ledger;
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
                match self.rebuild(ledger, uid).await {
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
        let mut needed = books.doubt.is_some();
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
        if needed && let Err(trouble) = self.desk.ledgers.save(self.key, &ledger).await {
            books.refusal = Some(format!("the ledger cannot be written: {trouble}"));
            books.doubt.get_or_insert_with(|| "the ledger cannot be written".into());
            return books;
        }
        books.ledger = Some(ledger);
        books
    }
    /// The policy came back under another uid: only what ledger and mark agree on stays on the books.
    async fn rebuild(&self, mut ledger: Ledger, uid: &str) -> Result<Ledger, Trouble> {
        info!("the ledger is rebuilt for a policy with another uid");
        let mut kept = Vec::new();
        for entry in std::mem::take(&mut ledger.entries) {
            let object = &entry.object;
            let Some(mapping) = self.desk.kinds.find(&object.api_version, &object.kind).await? else { continue };
            let live = self.desk.objects.get(&mapping, &object.metadata.namespace, &object.metadata.name).await?;
            let Some(live) = live else { continue };
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

    /// What the status does not know of who created an object, the ledger may.
    pub(crate) async fn recover(&self, evaluated: &mut Evaluated, books: &mut Books) {
        let Some(ledger) = books.ledger.as_mut() else { return };
        let before = self.before();
        for (object, uid) in &evaluated.created {
            ledger.put(object, true, uid);
        }
        books.changed |= evaluated.unmarked;
        let fresh = evaluated.fresh.clone();
        for entry in &mut evaluated.related {
            let Some(properties) = &mut entry.properties else { continue };
            if properties.created_by_policy != Some(false) || fresh.contains(&properties.uid) {
                continue;
            }
            let known = before.related_objects.iter().find(|r| r.object.same(&entry.object));
            let known = known.and_then(|r| r.properties.as_ref());
            if known.is_some_and(|p| p.created_by_policy == Some(true) && p.uid == properties.uid) {
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
                            // Disproved: somebody else made what is there now.
                            ledger.remove(&entry.object);
                            if self.policy.spec.prune() == Prune::All {
                                ledger.put(&entry.object, false, "");
                            }
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
        let mapping = self.desk.kinds.find(&object.api_version, &object.kind).await?;
        let Some(mapping) = mapping else { return Ok(serde_json::Value::Null) };
        let live = self.desk.objects.get(&mapping, &object.metadata.namespace, &object.metadata.name).await?;
        Ok(live.unwrap_or_default())
    }
}
