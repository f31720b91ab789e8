//! `clusterctl move` in its three ways.
use crate::cluster::Cluster;
use crate::error::Result;
use crate::process::output_with;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Moves everything of a namespace from one control plane to another. Hands back what clusterctl wrote.
pub async fn clusterctl_move(from: &Cluster, to: &Cluster, namespace: &str) -> Result<String> {
    let target = [flag("--to-kubeconfig", to.kubeconfig())];
    run(from, [flag("--kubeconfig", from.kubeconfig()), namespace_flag(namespace)].into_iter().chain(target)).await
}

/// Writes everything of a namespace into a folder; the source keeps it.
pub async fn move_to_directory(from: &Cluster, directory: &Path, namespace: &str) -> Result<String> {
    let source = [flag("--kubeconfig", from.kubeconfig()), namespace_flag(namespace)];
    run(from, source.into_iter().chain([flag("--to-directory", directory)])).await
}

/// Creates everything that a folder holds.
pub async fn move_from_directory(to: &Cluster, directory: &Path) -> Result<String> {
    run(to, [flag("--to-kubeconfig", to.kubeconfig()), flag("--from-directory", directory)]).await
}

async fn run(cluster: &Cluster, flags: impl IntoIterator<Item = OsString>) -> Result<String> {
    let clusterctl = cluster.tools().await?.path("clusterctl")?;
    // Neither the user's own settings nor the network belong into a test.
    let home = cluster.folder();
    let env = [
        ("HOME", home.path().as_os_str()),
        ("XDG_CONFIG_HOME", home.path().as_os_str()),
        ("CLUSTERCTL_DISABLE_VERSIONCHECK", OsStr::new("true")),
    ];
    output_with(&clusterctl, [OsString::from("move")].into_iter().chain(flags), &env).await
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(format!("{name}="));
    flag.push(path);
    flag
}

fn namespace_flag(namespace: &str) -> OsString {
    OsString::from(format!("--namespace={namespace}"))
}
