//! Lets go of every policy before the controller is removed: the Deployment says so, and each policy that still has a
//! finalizer is touched until it has none; then ledgers without a policy are let go of.
use super::Tools;
use crate::args::UninstallArgs;
use crate::cluster::kinds::Mapping;
use crate::names::UNINSTALLING;
use crate::prune::ledgers;
use crate::report;
use crate::text::duration::seconds;
use common::process::run::Failure;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tracing::{info, warn};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(5);

/// Asks, then waits.
pub async fn uninstall(args: &UninstallArgs) -> Result<ExitCode, Failure> {
    let tools = Tools::connect(&args.kube).await?;
    let ends = tools.clock.boot() + Duration::from_secs(args.timeout_seconds);
    let stamp = seconds(tools.clock.wall());
    let deployments = Mapping::known("apps", "v1", "Deployment", "deployments", true);
    let mut asked = false;
    loop {
        if !asked {
            match mark(&tools, &deployments, &args.deployment_namespace, &args.deployment_name, &stamp).await {
                Ok(()) => asked = true,
                Err(why) => warn!(%why, "the Deployment cannot be marked yet"),
            }
        }
        let mut held = 0;
        let namespaces = || std::iter::once(&args.policy_namespace).chain(&args.additional_namespaces);
        for namespace in namespaces() {
            for policy in tools.list(&report::mapping(), Some(namespace)).await? {
                if policy["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
                    continue;
                }
                held += 1;
                let name = policy["metadata"]["name"].as_str().unwrap_or_default();
                let stamp = seconds(tools.clock.wall());
                if let Err(why) = mark(&tools, &report::mapping(), namespace, name, &stamp).await {
                    warn!(%why, name, "the policy cannot be marked yet");
                }
            }
        }
        let mut trouble = None;
        if asked && held == 0 {
            // Ledgers of policies that are gone already: no policy is left to let go of them.
            for namespace in namespaces() {
                trouble = trouble.or(ledgers::let_go_of_all(&tools.objects, namespace).await.err());
            }
            let Some(why) = &trouble else {
                info!("no policy and no ledger has a finalizer of ours any more");
                return Ok(ExitCode::SUCCESS);
            };
            warn!(%why, "a ledger cannot be let go of yet");
        }
        if tools.clock.boot() >= ends {
            let why = trouble.map(|why| format!(", ledgers: {why}")).unwrap_or_default();
            return Err(format!("{held} policies still have finalizers{why}").into());
        }
        tools.clock.sleep_until(tools.clock.boot() + LOOK).await;
    }
}

async fn mark(tools: &Tools, mapping: &Mapping, namespace: &str, name: &str, stamp: &str) -> Result<(), Failure> {
    let Some(object) = tools.objects.get(mapping, namespace, name).await? else { return Ok(()) };
    let pointer = format!("/metadata/annotations/{}", UNINSTALLING.replace('/', "~1"));
    let mut patch = Vec::new();
    if !object["metadata"]["annotations"].is_object() {
        patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    patch.push(json!({"op": "add", "path": pointer, "value": stamp}));
    tools.objects.patch(mapping.path_of(namespace, name), Value::Array(patch)).await?;
    Ok(())
}
