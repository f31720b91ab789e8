//! Where the executables are: the control plane's in its cache, ours in the target folder.
use crate::env;
use crate::error::{Error, Result};
use crate::process::output;
use std::path::{Path, PathBuf};

/// The top of the repository.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

pub(crate) fn leash() -> PathBuf {
    root().join("hack/controlplane/leash")
}

/// The binaries that `hack/controlplane/build` made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools(PathBuf);

impl Tools {
    /// Asks the build script where they are.
    pub async fn find() -> Result<Self> {
        let printed = output(&root().join("hack/controlplane/build"), ["--print-dir"]).await?;
        Ok(Tools(PathBuf::from(printed.trim())))
    }
    /// One of them: `etcd`, `kubectl`, `kube-apiserver`, `kube-controller-manager`, `cluster-api-manager`, `clusterctl`.
    pub fn path(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        if path.exists() {
            return Ok(path);
        }
        Err(Error::other(format!("{} is not there: run hack/controlplane/build first", path.display())))
    }
    /// A `PATH` on which they come first.
    pub fn search_path(&self) -> std::ffi::OsString {
        let rest = env::read("PATH").unwrap_or_default();
        let mut path = self.0.clone().into_os_string();
        path.push(":");
        path.push(rest);
        path
    }
    /// The files of Cluster API that are not in its binaries.
    pub fn cluster_api(&self, name: &str) -> PathBuf {
        self.0.with_file_name("cluster-api").join(name)
    }
}

/// One of the workspace's own binaries, built beforehand with `cargo build -p <crate>`.
pub fn ours(name: &str) -> Result<PathBuf> {
    let folder = match env::path(env::BINARIES) {
        Some(folder) => folder,
        None => profile_folder()?,
    };
    let path = folder.join(name);
    if path.exists() {
        return Ok(path);
    }
    Err(Error::other(format!(
        "{} is not there: run `cargo build -p {name}` first, or set {} to the folder of the binaries",
        path.display(),
        env::BINARIES
    )))
}

/// Tests run from `target/<profile>/deps/`, binaries from `target/<profile>/`.
fn profile_folder() -> Result<PathBuf> {
    let executable = std::env::current_exe().map_err(Error::io("cannot find", "the running executable"))?;
    let folder = executable.parent().unwrap_or(Path::new("."));
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    Ok(folder.to_owned())
}
