//! The cluster a test runs against: one of ours, one that many test processes share, or one that was there before.
use crate::binaries::Tools;
use crate::controlplane::ControlPlane;
use crate::env;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::pki::Certificate;
use crate::process::{Leashed, Program};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The file in a control plane's folder that says all about it, for other processes.
const DESCRIPTION: &str = "cluster.json";

/// A cluster, as its administrator sees it. Cheap to copy; holds no connection, because a test's runtime ends with the test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    pub(crate) folder: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    // A cluster that was there before shows neither its log nor its keys.
    pub(crate) audit_log: Option<PathBuf>,
    pub(crate) authority: Option<Certificate>,
    // Empty if the processes are not ours.
    pub(crate) pids: Vec<i32>,
}

impl Cluster {
    /// A client with all rights.
    pub async fn client(&self) -> Result<kube::Client> {
        client_for(&self.kubeconfig).await
    }
    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
    /// Where the files of tests go.
    pub fn folder(&self) -> Folder {
        Folder::existing(&self.folder)
    }
    /// The binaries of the control plane.
    pub async fn tools(&self) -> Result<Tools> {
        Tools::find().await
    }
    /// The authority that signed this control plane's certificates.
    pub fn authority(&self) -> Result<&Certificate> {
        self.authority.as_ref().ok_or_else(|| Error::other("an existing cluster does not hand out its authority"))
    }
    /// The pids of its processes, if they are ours.
    pub fn pids(&self) -> Vec<Pid> {
        self.pids.iter().filter_map(|pid| Pid::from_raw(*pid)).collect()
    }
    pub(crate) fn describe(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(Error::other)?;
        self.folder().write(DESCRIPTION, text).map(drop)
    }
    /// The control plane whose folder is given, started by another process.
    pub fn attach(folder: &Path) -> Result<Self> {
        let path = folder.join(DESCRIPTION);
        let text = std::fs::read(&path).map_err(Error::io("cannot read", &path))?;
        serde_json::from_slice(&text).map_err(Error::other)
    }
    fn existing() -> Result<(Self, Leashed)> {
        let kubeconfig =
            env::path("KUBECONFIG").ok_or_else(|| Error::other(format!("{}=1 needs KUBECONFIG", env::EXISTING)))?;
        let folder = Folder::create("existing")?;
        let (log, folder) = (folder.file("broom.log"), folder.path().to_owned());
        // A process that does nothing, for the sake of its leash: that deletes the folder after us.
        let broom = Program {
            name: "broom".to_owned(),
            path: "/bin/sleep".into(),
            args: vec!["infinity".into()],
            log,
            folder: Some(folder.clone()),
            ..Program::default()
        };
        let broom = Leashed::start(&broom)?;
        Ok((Cluster { folder, kubeconfig, audit_log: None, authority: None, pids: Vec::new() }, broom))
    }
}

/// A client for whoever a kubeconfig speaks for.
pub async fn client_for(kubeconfig: &Path) -> Result<kube::Client> {
    let file = Kubeconfig::read_from(kubeconfig).map_err(Error::other)?;
    let config =
        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(Error::other)?;
    Ok(kube::Client::try_from(config)?)
}

/// The cluster for tests: the one that `KUBECONFIG` names if that was asked for, else the shared one of
/// `e2e-controlplane with`, else one of this process's own that ends with it.
pub async fn cluster() -> Result<Arc<Cluster>> {
    static CLUSTER: OnceCell<(Arc<Cluster>, Holder)> = OnceCell::const_new();
    let found = CLUSTER.get_or_try_init(|| async {
        if env::is_set(env::EXISTING) {
            let (cluster, broom) = Cluster::existing()?;
            return Ok::<_, Error>((Arc::new(cluster), Holder::Existing { _broom: broom }));
        }
        if let Some(folder) = env::path(env::SHARED) {
            return Ok((Arc::new(Cluster::attach(&folder)?), Holder::Other));
        }
        let own = ControlPlane::start().await?;
        Ok((Arc::new(own.cluster().clone()), Holder::Own { _plane: Box::new(own) }))
    });
    Ok(found.await?.0.clone())
}

/// Who keeps the cluster of this process alive. Never dropped: what is ours ends by its leash when the process does.
#[derive(Debug)]
enum Holder {
    Own { _plane: Box<ControlPlane> },
    Other,
    Existing { _broom: Leashed },
}
