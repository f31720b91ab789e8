//! What a controller may do, from the manifests that ship, beside what it asked for, from the audit log.
use crate::audit::Request;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::{binaries, manifests};
use std::collections::BTreeSet;

/// Roles with this label are for Cluster API's core, not for the controller that ships them.
const OF_CORE: &str = "cluster.x-k8s.io/aggregate-to-manager";

/// Verb and resource, such as `patch` and `things/status.group`.
pub type Right = (String, String);

/// What a request needed.
pub fn needed(request: &Request) -> Right {
    let slash = if request.subresource.is_empty() { "" } else { "/" };
    let (plural, group) = request.resource.split_once('.').unwrap_or((&request.resource, ""));
    let dot = if group.is_empty() { "" } else { "." };
    (request.verb.clone(), format!("{plural}{slash}{}{dot}{group}", request.subresource))
}

/// Every right that `deploy/<base>` grants its controller.
pub async fn granted(cluster: &Cluster, base: &str) -> Result<BTreeSet<Right>> {
    let objects = manifests::render(cluster, &binaries::root().join("deploy").join(base)).await?;
    let of_core = |labels: &std::collections::BTreeMap<String, String>| labels.contains_key(OF_CORE);
    let mut all = BTreeSet::new();
    for role in objects.iter().filter(|o| o.types.as_ref().is_some_and(|t| t.kind.ends_with("Role"))) {
        if role.metadata.labels.as_ref().is_some_and(of_core) {
            continue;
        }
        for rule in role.data["rules"].as_array().into_iter().flatten() {
            let words = |field: &str| -> Vec<String> {
                let list = rule[field].as_array().into_iter().flatten();
                list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
            };
            for group in words("apiGroups") {
                for resource in words("resources") {
                    for verb in words("verbs") {
                        let dot = if group.is_empty() { "" } else { "." };
                        all.insert((verb, format!("{resource}{dot}{group}")));
                    }
                }
            }
        }
    }
    Ok(all)
}
