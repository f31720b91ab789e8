//! Kubeconfig files. Written as JSON, which is YAML too.
use crate::error::{Error, Result};
use crate::pki::Certificate;
use serde_json::{Value, json};
use std::path::Path;

/// A kubeconfig for a client certificate.
pub fn with_certificate(server: &str, authority: &Certificate, client: &Certificate) -> String {
    let cluster = json!({"server": server, "certificate-authority": authority.certificate});
    let user = json!({"client-certificate": client.certificate, "client-key": client.key});
    assemble(&cluster, &user, "default")
}

/// The cluster of `kubeconfig`, seen by the bearer of a token who, like a pod, is at home in a namespace.
pub fn with_token(kubeconfig: &Path, token: &str, namespace: &str) -> Result<String> {
    let text = std::fs::read_to_string(kubeconfig).map_err(Error::io("cannot read", kubeconfig))?;
    let config: Value = serde_saphyr::from_str(&text).map_err(Error::other)?;
    Ok(assemble(current_cluster(&config)?, &json!({"token": token}), namespace))
}

/// The same, with another server in front.
pub fn with_server(kubeconfig: &Path, server: &str) -> Result<String> {
    let text = std::fs::read_to_string(kubeconfig).map_err(Error::io("cannot read", kubeconfig))?;
    let mut config: Value = serde_saphyr::from_str(&text).map_err(Error::other)?;
    for entry in config["clusters"].as_array_mut().into_iter().flatten() {
        entry["cluster"]["server"] = json!(server);
    }
    Ok(format!("{config:#}\n"))
}

fn current_cluster(config: &Value) -> Result<&Value> {
    let named = |list: &str, name: &Value| {
        let entries = config[list].as_array();
        entries
            .and_then(|entries| entries.iter().find(|entry| entry["name"] == *name))
            .ok_or_else(|| Error::other(format!("the kubeconfig has no {name} in its {list}")))
    };
    let context = named("contexts", &config["current-context"])?;
    Ok(&named("clusters", &context["context"]["cluster"])?["cluster"])
}

fn assemble(cluster: &Value, user: &Value, namespace: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": cluster}],
        "users": [{"name": "e2e", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e", "namespace": namespace}}],
        "current-context": "e2e",
    });
    format!("{config:#}\n")
}
