//! Is everything there before the first policy? Permissions, and the CRD.
use super::{Tools, show};
use crate::args::InspectArgs;
use crate::cluster::wire::{Call, Verb};
use crate::grants::GRANTS;
use crate::surroundings::Fresh;
use common::process::cli::FAILED;
use common::process::run::Failure;
use common::runtime::object::Version;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Clone, Debug, Serialize)]
struct Check {
    good: bool,
    what: String,
    note: String,
}

/// May this process do this? Asked of the API server.
pub async fn allowed(tools: &Tools, attributes: serde_json::Value) -> Result<bool, Failure> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let call = Call::new(Verb::Post, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").sending(review);
    Ok(tools.objects.0.call(call).await?["status"]["allowed"] == true)
}

/// Checks.
pub async fn doctor(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let tools = Tools::connect(&args.kube).await?;
    let mut checks = Vec::new();
    let here = tools.client.default_namespace().to_owned();
    for grant in GRANTS {
        let namespace = if grant.own_namespace { here.as_str() } else { "" };
        let good = allowed(
            &tools,
            json!({"group": grant.group, "resource": grant.resource, "subresource": grant.subresource,
                "verb": grant.verb, "name": grant.name, "namespace": namespace}),
        )
        .await?;
        let group = if grant.group.is_empty() { "core" } else { grant.group };
        let note = if good { "granted" } else { "missing: see deploy/policy-pruner" };
        checks.push(Check { good, what: format!("{} {group}/{}", grant.verb, grant.resource), note: note.into() });
    }
    let fresh = Fresh { since: Version::default(), now: tools.clock.boot(), age: Duration::ZERO };
    let (good, note) = match tools.surroundings.leaving(fresh).await {
        Ok(false) => (true, "the CRD is installed".to_owned()),
        Ok(true) => (false, "the CRD is not there, or on its way out".to_owned()),
        Err(trouble) => (false, trouble.to_string()),
    };
    checks.push(Check { good, what: crate::names::CRD.into(), note });
    show(args.output, &["HEALTH", "WHAT", "NOTE"], &checks, |c| {
        vec![if c.good { "Good" } else { "Bad" }.into(), c.what.clone(), c.note.clone()]
    })?;
    Ok(if checks.iter().all(|c| c.good) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
