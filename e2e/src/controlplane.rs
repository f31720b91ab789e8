//! A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager. No kubelet, no scheduler: nothing runs here.
use crate::binaries::Tools;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::kubeconfig;
use crate::patience::{Seen, until};
use crate::pki::{self, Certificate, Subject};
use crate::process::{Leashed, Program, free_address};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// A start takes two to five seconds on an idle machine; this is for a machine that is not.
const PATIENCE: Duration = Duration::from_mins(2);
/// Nothing worth saving is in there: what does not end by then is killed.
const GRACE: Duration = Duration::from_secs(5);
/// A port was free when we looked and taken when we came.
const PORT_TAKEN: &str = "address already in use";

const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";

/// Who asked for what, and what was the answer: enough to count requests and to find missing permissions.
const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
  "rules": [{"level": "None", "users": ["system:apiserver"]}, {"level": "Metadata", "omitManagedFields": true}]
}"#;

/// What a test needs of the controller manager: namespaces end, orphans are collected, service accounts and aggregated roles work.
const CONTROLLERS: &str = "namespace-controller,garbage-collector-controller,serviceaccount-controller,\
    serviceaccount-token-controller,root-ca-certificate-publisher-controller,clusterrole-aggregation-controller";

/// A running control plane. [`ControlPlane::stop`] ends it and deletes its folder; dropping it without that counts as a
/// failure: everything ends, but the folder stays and its path is printed.
#[derive(Debug)]
pub struct ControlPlane {
    cluster: Cluster,
    processes: Vec<Leashed>,
    api_server: Option<Program>,
    stopped: bool,
}

impl ControlPlane {
    /// Starts a control plane of its own, ready for requests. Any number of them can run side by side.
    pub async fn start() -> Result<Self> {
        let tools = Tools::find().await?;
        let mut attempts = 0;
        loop {
            let mut plane = Self::prepare()?;
            attempts += 1;
            match plane.bring_up(&tools).await {
                Ok(()) => return Ok(plane),
                Err(Error::Ended { tail, .. }) if tail.contains(PORT_TAKEN) && attempts < 4 => plane.stop().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// The cluster it serves.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Ends it and deletes its folder, unless somebody asked to keep that.
    pub async fn stop(mut self) -> Result<()> {
        // Whoever needs another ends before it.
        self.processes.sort_by_key(|process| match process.name() {
            ETCD => 2,
            API_SERVER => 1,
            _ => 0,
        });
        for process in &mut self.processes {
            process.stop(GRACE).await?;
        }
        self.stopped = true;
        self.cluster.folder().remove()
    }

    /// Kills the API server. Clients meet a closed door until [`ControlPlane::bring_api_server_back`].
    pub async fn take_api_server_away(&mut self) -> Result<()> {
        for process in self.processes.iter_mut().filter(|process| process.name() == API_SERVER) {
            process.kill().await?;
        }
        self.processes.retain(|process| process.name() != API_SERVER);
        Ok(())
    }

    /// Starts the API server again, at the same address, and waits until it serves.
    pub async fn bring_api_server_back(&mut self) -> Result<()> {
        let program = self.api_server.clone().ok_or_else(|| Error::other("there was no API server"))?;
        self.launch(&program)?;
        self.wait_until_served().await?;
        self.cluster.describe()
    }

    fn prepare() -> Result<Self> {
        let folder = Folder::create("e2e")?;
        let authority = Certificate::authority(&folder)?;
        let cluster = Cluster {
            folder: folder.path().to_owned(),
            kubeconfig: folder.file("kubeconfig"),
            audit_log: Some(folder.file("audit.log")),
            authority: Some(authority),
            pids: Vec::new(),
        };
        Ok(ControlPlane { cluster, processes: Vec::new(), api_server: None, stopped: false })
    }

    async fn bring_up(&mut self, tools: &Tools) -> Result<()> {
        let folder = self.cluster.folder();
        let authority = self.cluster.authority()?.clone();
        let [client, peer, secure, internal] = free_addresses()?;
        let server = format!("https://{secure}");
        let admin = Subject { user: "admin", group: Some("system:masters") };
        let admin = authority.client(&folder, "admin", admin)?;
        folder.write("kubeconfig", kubeconfig::with_certificate(&server, &authority, &admin))?;
        let signer = pki::token_signer(&folder)?;
        let api_server = api_server(tools, &folder, &authority, &signer, client, secure)?;
        self.launch(&etcd(tools, &folder, client, peer)?)?;
        self.launch(&api_server)?;
        self.api_server = Some(api_server);
        self.wait_until_served().await?;
        self.launch(&controller_manager(tools, &folder, &authority, &signer.0, &server, internal)?)?;
        self.wait_until_managed().await?;
        self.cluster.describe()
    }

    fn launch(&mut self, program: &Program) -> Result<()> {
        self.processes.push(Leashed::start(program)?);
        self.cluster.pids = self.processes.iter().map(|process| process.pid().as_raw_nonzero().get()).collect();
        Ok(())
    }

    async fn wait_until_served(&mut self) -> Result<()> {
        let client = self.cluster.client().await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        self.wait("the API server to be ready", async || {
            let request = http::Request::get("/readyz").body(Vec::new()).map_err(Error::other)?;
            if let Err(error) = client.request_text(request).await {
                return Ok(Seen::NotYet(error.to_string()));
            }
            // Its uid is the default id of an installation.
            Ok(seen(namespaces.get_opt("kube-system").await))
        })
        .await
    }

    async fn wait_until_managed(&mut self) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.client().await?, "default");
        self.wait("the controller manager to work", async || Ok(seen(accounts.get_opt("default").await))).await
    }

    async fn wait(&mut self, what: &str, look: impl AsyncFn() -> Result<Seen<()>>) -> Result<()> {
        let processes = RefCell::new(&mut self.processes);
        let look = &look;
        until(what, PATIENCE, || {
            let running = processes.borrow_mut().iter_mut().try_for_each(Leashed::must_run);
            async move {
                running?;
                look().await
            }
        })
        .await
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if !self.stopped {
            self.cluster.folder().keep();
        }
    }
}

fn seen<T>(answer: kube::Result<Option<T>>) -> Seen<()> {
    match answer {
        Ok(Some(_)) => Seen::Yes(()),
        Ok(None) => Seen::NotYet("not there yet".to_owned()),
        Err(error) => Seen::NotYet(error.to_string()),
    }
}

fn free_addresses() -> Result<[SocketAddr; 4]> {
    // All four are held until the last is known, so that they differ.
    let bind = || std::net::TcpListener::bind(("127.0.0.1", 0)).map_err(Error::io("no free port on", "127.0.0.1"));
    let listeners = [bind()?, bind()?, bind()?, bind()?];
    let mut addresses = [free_address()?; 4];
    for (address, listener) in addresses.iter_mut().zip(&listeners) {
        *address = listener.local_addr().map_err(Error::io("no address of", "a listener"))?;
    }
    Ok(addresses)
}

fn program(tools: &Tools, folder: &Folder, name: &str, args: Vec<String>) -> Result<Program> {
    Ok(Program {
        name: name.to_owned(),
        path: tools.path(name)?,
        args: args.into_iter().map(Into::into).collect(),
        log: folder.file(&format!("{name}.log")),
        ..Program::default()
    })
}

fn etcd(tools: &Tools, folder: &Folder, client: SocketAddr, peer: SocketAddr) -> Result<Program> {
    let args = vec![
        format!("--data-dir={}", folder.file("etcd").display()),
        format!("--listen-client-urls=http://{client}"),
        format!("--advertise-client-urls=http://{client}"),
        format!("--listen-peer-urls=http://{peer}"),
        format!("--initial-advertise-peer-urls=http://{peer}"),
        format!("--initial-cluster=default=http://{peer}"),
        "--log-level=warn".to_owned(),
        // Its data need not survive the machine.
        "--unsafe-no-fsync".to_owned(),
    ];
    Ok(Program { folder: Some(folder.path().to_owned()), ..program(tools, folder, ETCD, args)? })
}

fn api_server(
    tools: &Tools,
    folder: &Folder,
    authority: &Certificate,
    (signer, checker): &(std::path::PathBuf, std::path::PathBuf),
    etcd: SocketAddr,
    address: SocketAddr,
) -> Result<Program> {
    let serving = authority.server(folder, "apiserver")?;
    let policy = folder.write("audit-policy.json", AUDIT_POLICY)?;
    let args = vec![
        format!("--etcd-servers=http://{etcd}"),
        format!("--bind-address={}", address.ip()),
        format!("--advertise-address={}", address.ip()),
        format!("--secure-port={}", address.port()),
        format!("--tls-cert-file={}", serving.certificate.display()),
        format!("--tls-private-key-file={}", serving.key.display()),
        format!("--client-ca-file={}", authority.certificate.display()),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", checker.display()),
        format!("--service-account-signing-key-file={}", signer.display()),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        // There is nobody who could reach it by its service address.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", folder.file("audit.log").display()),
        "--profiling=false".to_owned(),
    ];
    program(tools, folder, API_SERVER, args)
}

fn controller_manager(
    tools: &Tools,
    folder: &Folder,
    authority: &Certificate,
    signer: &Path,
    server: &str,
    address: SocketAddr,
) -> Result<Program> {
    let subject = Subject { user: "system:kube-controller-manager", group: None };
    let client = authority.client(folder, "controller-manager", subject)?;
    let serving = authority.server(folder, "controller-manager-serving")?;
    let kubeconfig = kubeconfig::with_certificate(server, authority, &client);
    let kubeconfig = folder.write("controller-manager.kubeconfig", kubeconfig)?;
    let kubeconfig = kubeconfig.display();
    let args = vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--bind-address={}", address.ip()),
        format!("--secure-port={}", address.port()),
        format!("--tls-cert-file={}", serving.certificate.display()),
        format!("--tls-private-key-file={}", serving.key.display()),
        format!("--service-account-private-key-file={}", signer.display()),
        format!("--root-ca-file={}", authority.certificate.display()),
        "--use-service-account-credentials=true".to_owned(),
        "--leader-elect=false".to_owned(),
        format!("--controllers={CONTROLLERS}"),
        "--profiling=false".to_owned(),
    ];
    program(tools, folder, "kube-controller-manager", args)
}
