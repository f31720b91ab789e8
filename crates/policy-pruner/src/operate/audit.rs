//! Every object that this controller created and whose policy is gone.
use super::{Tools, show};
use crate::args::InspectArgs;
use crate::dialect::Dialect;
use crate::names::LEDGER_LABEL;
use crate::prune::ledger::{Entry, Ledger};
use crate::prune::ledgers;
use crate::report;
use crate::text::selector::{Expression, Selector};
use common::process::cli::ORPHANS_FOUND;
use common::process::run::Failure;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Which object.
    pub object: String,
    /// The policy that created it.
    pub policy: String,
    /// Orphan, or what else is known.
    pub verdict: String,
    /// Why.
    pub why: String,
}

/// The verdict on one entry of a ledger. Pure. `live`: the object as it is, if it is.
pub fn judge(ledger: &Ledger, entry: &Entry, live: Option<&Value>) -> Option<(&'static str, &'static str)> {
    let live = live?;
    if !entry.created {
        return None;
    }
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    if (!entry.uid.is_empty() && entry.uid == uid) || ledger.marks(entry, live) {
        Some(("Orphan", "the ledger and the object agree; its policy is gone"))
    } else {
        Some(("Replaced", "somebody else created it anew"))
    }
}

/// Lists them.
pub async fn audit(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let tools = Tools::connect(&args.kube).await?;
    let namespace = args.kube.namespace.as_deref();
    let policies: HashSet<(String, String)> =
        tools.list(&report::mapping(), namespace).await?.iter().map(place).collect();
    let ledger = Expression { key: LEDGER_LABEL.into(), operator: "Exists".into(), values: vec![] };
    let labelled = Selector::parse(&BTreeMap::new(), &[ledger], Dialect::Current)?;
    let maps = tools.objects.list(&ledgers::mapping(), namespace.unwrap_or_default(), &labelled).await?;
    let mut findings = Vec::new();
    for map in &maps {
        let Some(ledger) = Ledger::read(map) else { continue };
        let (namespace, _) = place(map);
        if policies.contains(&(namespace.clone(), ledger.policy.clone())) {
            continue;
        }
        for entry in &ledger.entries {
            let object = &entry.object;
            let live = match tools.kinds.find(&object.api_version, &object.kind).await? {
                Some(mapping) => tools.objects.get(&mapping, &object.metadata.namespace, &object.metadata.name).await?,
                None => None,
            };
            if let Some((verdict, why)) = judge(&ledger, entry, live.as_ref()) {
                findings.push(Finding {
                    object: object.describe(),
                    policy: format!("{namespace}/{}", ledger.policy),
                    verdict: verdict.into(),
                    why: why.into(),
                });
            }
        }
    }
    show(args.output, &["VERDICT", "OBJECT", "POLICY", "WHY"], &findings, |f| {
        vec![f.verdict.clone(), f.object.clone(), f.policy.clone(), f.why.clone()]
    })?;
    let orphans = findings.iter().any(|f| f.verdict == "Orphan");
    Ok(if orphans { ExitCode::from(ORPHANS_FOUND) } else { ExitCode::SUCCESS })
}
fn place(object: &Value) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ObjectRef;
    use serde_json::json;

    #[test]
    fn an_orphan_is_what_ledger_and_object_agree_on() {
        let mut ledger = Ledger::new("p", "u", [1; 16]);
        ledger.put(&ObjectRef::new("v1", "Pod", "n", "a"), true, "1");
        let entry = ledger.entries[0].clone();
        let live = |uid: &str| json!({"metadata": {"uid": uid}});
        assert_eq!(judge(&ledger, &entry, Some(&live("1"))).unwrap().0, "Orphan");
        assert_eq!(judge(&ledger, &entry, Some(&live("2"))).unwrap().0, "Replaced");
        let marked = json!({"metadata": {"uid": "2", "managedFields": [{"manager": ledger.manager()}]}});
        assert_eq!(judge(&ledger, &entry, Some(&marked)).unwrap().0, "Orphan");
        assert_eq!(judge(&ledger, &entry, None), None);
        let only = Entry { created: false, ..entry };
        assert_eq!(judge(&ledger, &only, Some(&live("1"))), None);
    }
}
