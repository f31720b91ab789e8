//! A real OpenStack (e2e/openstack), a project of its own in it, and the same binary on it. `CUSTODY_OPENSTACK_ROOT` names the folder
//! of a running one; `hack/e2e-openstack` starts it.
use crate::stage::{BINARY, is_ready, let_go};
use e2e::patience::{Seen, dynamic_api, until};
use e2e::{Account, Cluster, ControllerProcess, Error, Launch, Result, TemporaryNamespace, binaries, env, process};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const PATIENCE: Duration = Duration::from_mins(6);
const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
/// How often the controller looks at what is under way.
pub(crate) const POLL_SECONDS: u64 = 2;
/// A real cloud on two busy cores is slow.
const SLOW: [&str; 6] = [
    "--start-window-seconds=15",
    "--call-timeout-seconds=30",
    "--list-lag-seconds=2",
    "--poll-seconds=2",
    "--list-interval-seconds=5",
    "--leader-elect=false",
];

pub(crate) struct Real {
    pub(crate) cluster: Cluster,
    account: Account,
    pub(crate) servers: Api<DynamicObject>,
    namespace: TemporaryNamespace,
    python: PathBuf,
    admin: String,
    clouds: PathBuf,
    name: String,
}

impl Real {
    /// None if there is no real cloud here.
    pub(crate) async fn set(name: &str) -> Result<Option<Self>> {
        if env::openstack_root().is_none() {
            println!("no real OpenStack here: CUSTODY_OPENSTACK_ROOT is not set");
            return Ok(None);
        }
        Self::on(&*e2e::cluster().await?, name).await
    }
    /// On a control plane of its own.
    pub(crate) async fn on(cluster: &Cluster, name: &str) -> Result<Option<Self>> {
        let Some(root) = env::openstack_root() else {
            return Ok(None);
        };
        let account = Account::shipped(cluster, BINARY).await?;
        let namespace = TemporaryNamespace::create(cluster, name).await?;
        let python = root.join("venv/bin/python");
        let script = |file: &str| binaries::root().join("e2e/openstack").join(file).display().to_string();
        let admin = root.join("etc/clouds.yaml").display().to_string();
        let text = process::output(&python, [script("prepare.py").as_str(), &admin, namespace.name()]).await?;
        let prepared: Value = serde_json::from_str(text.trim()).map_err(Error::other)?;
        let clouds = cluster.folder().write(&format!("{name}-clouds.json"), prepared["clouds"].to_string())?;
        let client = cluster.client().await?;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace.name());
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds"}, "stringData": {"clouds.yaml": prepared["clouds"].to_string()}});
        secrets.patch("creds", &PatchParams::apply("e2e").force(), &Patch::Apply(&body)).await?;
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "data"}, "stringData": {"value": "#cloud-config"}});
        secrets.patch("data", &PatchParams::apply("e2e").force(), &Patch::Apply(&body)).await?;
        let servers = dynamic_api(client, namespace.name(), API_VERSION, "OpenStackServer", "openstackservers");
        Ok(Some(Real {
            cluster: cluster.clone(),
            account,
            servers,
            namespace,
            python,
            admin,
            clouds,
            name: name.to_owned(),
        }))
    }
    pub(crate) async fn start(&self, more: &[&str]) -> Result<ControllerProcess> {
        let launch = Launch::controller(&self.cluster, &self.account, BINARY, &format!("{}-controller", self.name))?;
        let launch = SLOW.iter().chain(more).fold(launch, |launch, arg| launch.arg(*arg));
        let mut controller = launch.arg(format!("--namespace={}", self.namespace.name())).start()?;
        controller.wait_ready(PATIENCE).await?;
        Ok(controller)
    }
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.name()
    }
    /// The project as openstacksdk sees it; user data as its administrator does.
    pub(crate) async fn look(&self) -> Result<Value> {
        self.script("look.py", &[&self.admin]).await
    }
    /// Runs one of e2e/openstack's scripts as the project's user.
    pub(crate) async fn script(&self, file: &str, more: &[&str]) -> Result<Value> {
        let script = binaries::root().join("e2e/openstack").join(file).display().to_string();
        let clouds = self.clouds.display().to_string();
        let arguments = [script.as_str(), clouds.as_str()].into_iter().chain(more.iter().copied());
        let text = process::output(&self.python, arguments).await?;
        serde_json::from_str(text.trim()).map_err(Error::other)
    }
    /// Waits until openstacksdk sees nothing of ours any more.
    pub(crate) async fn wait_empty(&self) -> Result<()> {
        until("nothing left in the project", PATIENCE, || async {
            let left = self.look().await?;
            let kinds = ["servers", "ports", "trunks", "volumes", "floatingips"];
            let some: Vec<_> = kinds.iter().filter(|kind| left[**kind] != json!([])).map(|kind| &left[*kind]).collect();
            Ok(if some.is_empty() { Seen::Yes(()) } else { Seen::NotYet(format!("{some:?}")) })
        })
        .await
    }
    pub(crate) async fn create(&self, name: &str, spec: &Value) -> Result<()> {
        let object =
            json!({"apiVersion": API_VERSION, "kind": "OpenStackServer", "metadata": {"name": name}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).map_err(Error::other)?;
        self.servers.create(&PostParams::default(), &object).await?;
        Ok(())
    }
    pub(crate) async fn wait_ready(&self, name: &str) -> Result<DynamicObject> {
        e2e::wait_for_object(&self.servers, name, &format!("{name} to be ready"), PATIENCE, is_ready).await
    }
    pub(crate) async fn delete_all(&self) -> Result<()> {
        for object in self.servers.list(&ListParams::default()).await?.items {
            self.servers.delete(&object.metadata.name.unwrap_or_default(), &DeleteParams::default()).await?;
        }
        until("all servers gone", PATIENCE, || async {
            let left = self.servers.list(&ListParams::default()).await?.items;
            let said = |o: &DynamicObject| format!("{:?}: {}", o.metadata.name, o.data["status"]["conditions"]);
            Ok(left.first().map_or(Seen::Yes(()), |one| Seen::NotYet(said(one))))
        })
        .await?;
        let left = self.look().await?;
        for kind in ["servers", "ports", "trunks", "volumes"] {
            assert_eq!(left[kind], json!([]), "{kind} are left");
        }
        Ok(())
    }
    pub(crate) async fn clear(self) -> Result<()> {
        let_go(&self.cluster, self.namespace.name()).await?;
        self.namespace.finish(PATIENCE).await
    }
}
