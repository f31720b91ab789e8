//! Every object in a ledger whose policy is gone, and every ledger that does not tell.
//!
//! What has no ledger is not found: policies with `pruneObjectBehavior: None` keep none, and one that was forced away takes its
//! knowledge along.
use super::{Tools, show};
use crate::api::{ConfigurationPolicy, ObjectRef, Prune};
use crate::args::InspectArgs;
use crate::prune::ledger::{Entry, Ledger};
use crate::prune::ledgers;
use crate::prune::look::look;
use crate::report;
use common::process::cli::ORPHANS_FOUND;
use common::process::run::Failure;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::process::ExitCode;

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Which object.
    pub object: String,
    /// The policy that created it; empty if that cannot be told.
    pub policy: String,
    /// Orphan, Replaced, Unknown (it could not be looked at) or Unreadable (a ledger).
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

/// Is this the policy's own ledger, or will it be? One that prunes takes over what a former policy of its name left; another one never
/// looks at it.
fn keeps(policy: &ConfigurationPolicy, ledger: &Ledger) -> bool {
    policy.metadata.uid.as_ref() == Some(&ledger.uid) || policy.spec.prune() != Prune::None
}

/// Lists them.
pub async fn audit(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let tools = Tools::connect(&args.kube).await?;
    let namespace = args.kube.namespace.as_deref();
    let policies: HashMap<(String, String), Option<ConfigurationPolicy>> = tools
        .list(&report::mapping(), namespace)
        .await?
        .into_iter()
        .map(|policy| (place(&policy), serde_json::from_value(policy).ok()))
        .collect();
    let maps = ledgers::labelled(&tools.objects, namespace.unwrap_or_default()).await?;
    let mut findings = Vec::new();
    for map in &maps {
        let (namespace, name) = place(map);
        let Some(ledger) = Ledger::read(map) else {
            findings.push(unreadable(&namespace, &name));
            continue;
        };
        let policy = policies.get(&(namespace.clone(), ledger.policy.clone()));
        // What does not fit its type may well be the policy.
        if policy.is_some_and(|policy| policy.as_ref().is_none_or(|policy| keeps(policy, &ledger))) {
            continue;
        }
        for entry in ledger.entries.iter().filter(|entry| entry.created) {
            let told = match look(&tools.kinds, &tools.objects, &entry.object).await {
                Ok(found) => judge(&ledger, entry, found.as_ref().map(|(_, live)| live))
                    .map(|(verdict, why)| (verdict, why.to_owned())),
                Err(trouble) => Some(("Unknown", format!("it cannot be looked at: {trouble}"))),
            };
            findings.extend(told.map(|(verdict, why)| Finding {
                object: entry.object.describe(),
                policy: format!("{namespace}/{}", ledger.policy),
                verdict: verdict.into(),
                why,
            }));
        }
    }
    show(args.output, &["VERDICT", "OBJECT", "POLICY", "WHY"], &findings, |f| {
        vec![f.verdict.clone(), f.object.clone(), f.policy.clone(), f.why.clone()]
    })?;
    // What could not be looked at may be an orphan, too.
    let orphans = findings.iter().any(|f| f.verdict != "Replaced");
    Ok(if orphans { ExitCode::from(ORPHANS_FOUND) } else { ExitCode::SUCCESS })
}
fn unreadable(namespace: &str, name: &str) -> Finding {
    Finding {
        object: ObjectRef::new("v1", "ConfigMap", namespace, name).describe(),
        policy: String::new(),
        verdict: "Unreadable".into(),
        why: "it is labelled as a ledger and cannot be read: of which policy, and what that created, is not known"
            .into(),
    }
}
fn place(object: &Value) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use super::*;
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
    #[test]
    fn a_policy_keeps_what_is_its_own_and_what_it_will_take_over() {
        let ledger = Ledger::new("p", "u", [1; 16]);
        for (uid, prune, kept) in [("u", "None", true), ("other", "None", false), ("other", "DeleteIfCreated", true)] {
            let mut policy = ConfigurationPolicy::default();
            policy.metadata.uid = Some(uid.into());
            policy.spec.prune_object_behavior = prune.into();
            assert_eq!(keeps(&policy, &ledger), kept, "{uid} {prune}");
        }
    }
    #[test]
    fn a_ledger_that_does_not_tell_is_told_of() {
        let found = unreadable("n", "policy-ledger-x");
        assert!(found.object.contains("policy-ledger-x") && found.verdict == "Unreadable", "{found:?}");
    }
}
