//! What would be done for one policy, object by object, and why. Changes nothing.
use super::references::references;
use super::{Tools, doctor, show};
use crate::api::{ConfigurationPolicy, ObjectRef, PolicySpec, Prune};
use crate::args::PlanArgs;
use crate::cluster::sight::Direct;
use crate::cluster::spaces::{Asked, Spaces as _};
use crate::evaluate::act;
use crate::evaluate::preview::{self, Preview};
use crate::evaluate::templates;
use crate::evaluate::{Ground, keyring};
use crate::prune::decide::{Candidate, candidates};
use crate::prune::ledger::Ledger;
use crate::prune::ledgers::Ledgers;
use crate::prune::needs::listed;
use crate::prune::others::{Others, Requirer};
use crate::prune::sweep::{Broom, Fate, sweep};
use crate::report;
use common::process::cli::PLAN_NOT_EMPTY;
use common::process::run::Failure;
use common::random::Random;
use common::runtime::object::Key;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// create, update, recreate, delete, keep, wait, blocked, none.
    pub action: String,
    /// Which object.
    pub object: String,
    /// Why.
    pub why: String,
    /// What would stand in the way.
    pub blockers: Vec<String>,
    /// Other policies that look at it, and how, where they do not require it.
    pub others: Vec<String>,
}

/// Plans.
pub async fn plan(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let tools = Tools::connect(&args.inspect.kube).await?;
    let policy = load(&tools, args).await?;
    let key = Key::new(
        policy.metadata.namespace.as_deref().unwrap_or("default"),
        policy.metadata.name.as_deref().unwrap_or_default(),
    );
    let policies: Vec<ConfigurationPolicy> = tools
        .list(&report::mapping(), None)
        .await?
        .into_iter()
        .filter_map(|value| serde_json::from_value(value).ok())
        .collect();
    let ledgers = Ledgers::new(tools.objects.clone(), Arc::new(Random::from_system()?));
    let ledger = ledgers.fetch(&key).await?;
    let mut steps = Vec::new();
    let mut still: Vec<ObjectRef> = Vec::new();
    let mut doubts = Vec::new();
    if !args.delete {
        let (previews, doubt) = match wishes(&tools, &key, &policy).await {
            Ok(wishes) => wishes,
            Err(why) => {
                let object = format!("{} {key}", crate::names::KIND);
                let step = Step { action: "blocked".into(), object, why: why.clone(), ..Step::default() };
                steps.push(step);
                (Vec::new(), vec![why])
            }
        };
        doubts = doubt;
        still.extend(previews.iter().map(|p| p.object.clone()));
        for preview in previews {
            steps.push(step_of(&tools, &policies, &key, preview).await?);
        }
    }
    let victims = victims(&policy, ledger.as_ref(), &still);
    let unpruned = unpruned(&policy.spec);
    // Who may not list namespaces sees a doubt where their labels matter.
    let namespaces = Asked(tools.objects.clone()).all().await.unwrap_or_default();
    let neighbours = Others::of(&policies, Arc::new(namespaces));
    let broom = Broom {
        objects: &tools.objects,
        kinds: &tools.kinds,
        prune: if unpruned.is_some() { Prune::None } else { policy.spec.prune() },
        ledger: ledger.as_ref(),
        like_upstream: args.prune_like_upstream,
        others: &neighbours,
        policy: &key,
        sight: None,
        dry_run: true,
    };
    for (candidate, fate) in sweep(broom, &victims).await {
        let others = references(&policies, &candidate.object, &key);
        let Some((action, why, mut blockers)) = outlook(&policy.spec, &doubts, fate) else { continue };
        if action == "delete" {
            blockers.extend(denied(&tools, &candidate.object, "delete").await?);
        }
        steps.push(Step { action: action.into(), object: candidate.object.describe(), why, blockers, others });
    }
    show(args.inspect.output, &["ACTION", "OBJECT", "WHY", "BLOCKERS", "ALSO IN"], &steps, |s| {
        vec![s.action.clone(), s.object.clone(), s.why.clone(), s.blockers.join(", "), s.others.join(", ")]
    })?;
    let empty = steps.iter().all(|s| matches!(s.action.as_str(), "none" | "keep"));
    Ok(if empty { ExitCode::SUCCESS } else { ExitCode::from(PLAN_NOT_EMPTY) })
}

/// Why nothing at all is pruned.
fn unpruned(spec: &PolicySpec) -> Option<&'static str> {
    match spec.prune() {
        Prune::None => Some("pruneObjectBehavior is None"),
        _ if !spec.enforces() => Some("the policy only informs, and prunes nothing"),
        _ => None,
    }
}
/// What would become of something that the policy has no use for any longer: action, why, what would stand in the way. `None`: nothing.
fn outlook(spec: &PolicySpec, doubts: &[String], fate: Fate) -> Option<(&'static str, String, Vec<String>)> {
    Some(match (fate, unpruned(spec)) {
        // Nothing waits where nothing is done.
        (Fate::Gone | Fate::Deleted | Fate::Waits, _) => return None,
        (_, Some(why)) => ("keep", why.to_owned(), vec![]),
        (Fate::WouldGo(_), _) if !doubts.is_empty() => ("hold", format!("in doubt: {}", doubts.join("; ")), vec![]),
        (Fate::WouldGo(held), _) => {
            let why = if spec.prune() == Prune::All { "DeleteAll" } else { "created by this policy" };
            ("delete", why.to_owned(), waits(&held))
        }
        (Fate::Stays(why), _) => ("keep", why.to_string(), vec![]),
        (Fate::Required(who, _), _) => ("keep", format!("required by {}", names(&who).join(", ")), vec![]),
        (Fate::Ending { finalizers, since, .. }, _) => {
            ("wait", format!("being deleted since {since}"), waits(&finalizers))
        }
        (Fate::Failed(why), _) => ("blocked", why.clone(), vec![why]),
    })
}

/// What may have to go, judged as the controller does.
fn victims(policy: &ConfigurationPolicy, ledger: Option<&Ledger>, still: &[ObjectRef]) -> Vec<Candidate> {
    let related = policy.status.as_ref().map(|s| s.related_objects.as_slice()).unwrap_or_default();
    candidates(&listed(policy), related, ledger, still)
}

async fn load(tools: &Tools, args: &PlanArgs) -> Result<ConfigurationPolicy, Failure> {
    if let Some(file) = &args.file {
        let text = tokio::fs::read_to_string(file).await?;
        let mut policy: ConfigurationPolicy = serde_saphyr::from_str(&text)?;
        let namespace =
            policy.metadata.namespace.clone().unwrap_or_else(|| tools.client.default_namespace().to_owned());
        let name = policy.metadata.name.clone().unwrap_or_default();
        // What is known of the policy it replaces.
        if let Some(live) = tools.objects.get(&report::mapping(), &namespace, &name).await? {
            let live: ConfigurationPolicy = serde_json::from_value(live)?;
            policy.status = live.status;
        }
        policy.metadata.namespace = Some(namespace);
        return Ok(policy);
    }
    let named = args.policy.as_deref().unwrap_or_default();
    let (namespace, name) = named.split_once('/').ok_or("name a policy as namespace/name")?;
    let found = tools.objects.get(&report::mapping(), namespace, name).await?;
    Ok(serde_json::from_value(found.ok_or_else(|| format!("there is no policy {named}"))?)?)
}

/// What is to be done, object by object, and doubts; or why the policy as a whole cannot be evaluated.
async fn wishes(tools: &Tools, key: &Key, policy: &ConfigurationPolicy) -> Result<(Vec<Preview>, Vec<String>), String> {
    let sight = Direct(tools.objects.clone());
    let sealed = !templates::disabled(policy) && templates::is_encrypted(policy);
    let keys = if sealed { Some(keyring::keys(policy, key, &sight).await.map_err(|(why, _)| why)?) } else { None };
    let ready = templates::ready(policy, keys.as_ref()).map_err(|verdict| verdict.message)?;
    let spaces = Asked(tools.objects.clone());
    let ground = Ground {
        objects: &tools.objects,
        kinds: &tools.kinds,
        sight: &sight,
        spaces: &spaces,
        take_terminating: true,
        dialect: tools.surroundings.dialect().await,
        clock: &tools.clock,
        policy,
        key,
    };
    let looked = act::read(ground, ready).await;
    Ok(preview::preview(ground, &looked).await)
}

async fn step_of(
    tools: &Tools,
    policies: &[ConfigurationPolicy],
    key: &Key,
    preview: Preview,
) -> Result<Step, Failure> {
    let Preview { object, action, why, finalizers } = preview;
    let mut blockers = waits(&finalizers);
    let verbs: &[&str] = match action {
        "create" => &["create"],
        "update" => &["update"],
        "recreate" => &["delete", "create"],
        "delete" => &["delete"],
        _ => &[],
    };
    for verb in verbs {
        blockers.extend(denied(tools, &object, verb).await?);
    }
    let others = references(policies, &object, key);
    Ok(Step { action: action.into(), object: object.describe(), why, blockers, others })
}

/// What stands between being deleted and being gone.
fn waits(finalizers: &[String]) -> Vec<String> {
    finalizers.iter().map(|finalizer| format!("finalizer {finalizer}")).collect()
}
fn names(requirers: &[Requirer]) -> Vec<String> {
    requirers.iter().map(|r| r.key.to_string()).collect()
}

async fn denied(tools: &Tools, object: &ObjectRef, verb: &str) -> Result<Option<String>, Failure> {
    let Some(mapping) = tools.kinds.find(&object.api_version, &object.kind).await? else { return Ok(None) };
    let allowed = doctor::allowed(
        tools,
        json!({"group": mapping.group, "resource": mapping.plural, "verb": verb,
            "namespace": object.metadata.namespace, "name": object.metadata.name}),
    )
    .await?;
    Ok((!allowed).then(|| format!("no right to {verb} {}", mapping.plural)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_policy_does_not_prune_is_told_as_kept() {
        for (prune, action, doubts, expected) in [
            ("None", "enforce", vec![], ("keep", "pruneObjectBehavior is None")),
            ("DeleteAll", "inform", vec![], ("keep", "the policy only informs, and prunes nothing")),
            ("DeleteAll", "enforce", vec![], ("delete", "DeleteAll")),
            ("DeleteIfCreated", "enforce", vec![], ("delete", "created by this policy")),
            ("DeleteAll", "enforce", vec!["x".to_owned()], ("hold", "in doubt: x")),
        ] {
            let spec = PolicySpec {
                prune_object_behavior: prune.into(),
                remediation_action: action.into(),
                ..PolicySpec::default()
            };
            let found = outlook(&spec, &doubts, Fate::WouldGo(Vec::new())).unwrap();
            assert_eq!((found.0, found.1.as_str()), expected);
            assert_eq!(outlook(&spec, &doubts, Fate::Gone), None);
        }
    }
    #[test]
    fn raw_text_names_what_goes_as_a_list_does() {
        // given a policy that names a pod in raw text, and found it there
        let raw = "- complianceType: musthave\n  objectDefinition: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: 'n'}}\n";
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}});
        let policy: ConfigurationPolicy = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n"}, "spec": {"object-templates-raw": raw},
            "status": {"relatedObjects": [{"object": pod, "properties": {"createdByPolicy": false, "uid": "1"}}]},
        }))
        .unwrap();
        // when its end is planned, then that pod is one that it named
        let all = victims(&policy, None, &[]);
        assert!(all.len() == 1 && all[0].managed, "{all:?}");
    }
}
