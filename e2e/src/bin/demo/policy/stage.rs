//! What the act plays on: a namespace, the controller under its own account, and the policy as a user sees it.
use crate::telling::Teller;
use e2e::controller::{ControllerProcess, Launch};
use e2e::namespace::TemporaryNamespace;
use e2e::patience::dynamic_api;
use e2e::{Account, Cluster, Error, Result, Seen, binaries, manifests, until};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const CONTROLLER: &str = "policy-pruner";
const POLICY: &str = "shop";
/// Nothing in the demo takes longer, unless something is broken.
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) struct Stage {
    cluster: Arc<Cluster>,
    client: kube::Client,
    account: Account,
    pub(crate) controller: ControllerProcess,
    namespace: TemporaryNamespace,
    policies: Api<DynamicObject>,
    teller: Teller,
}

impl Stage {
    pub(crate) async fn set() -> Result<Self> {
        let teller = Teller::new();
        let cluster = e2e::cluster().await?;
        teller.say("installing the CRD and the controller's own service account with its shipped roles");
        let account = Account::shipped(&cluster, CONTROLLER).await?;
        teller.say("giving it rights on the kinds of the policy, as a user would");
        manifests::apply_text(&cluster, "default", &read("rights")?).await?;
        let namespace = TemporaryNamespace::create(&cluster, "demo").await?;
        teller.say("starting the controller under that account");
        let launch = Launch::controller(&cluster, &account, CONTROLLER, CONTROLLER)?
            .arg(format!("--namespace={}", namespace.name()))
            .arg("--enable-ocm-policy-namespace=false")
            .arg("--metrics-bind-address=0")
            .arg("--leader-elect=false");
        let mut controller = launch.start()?;
        controller.wait_ready(PATIENCE).await?;
        let client = cluster.client().await?;
        let version = "policy.open-cluster-management.io/v1";
        let policies =
            dynamic_api(client.clone(), namespace.name(), version, "ConfigurationPolicy", "configurationpolicies");
        Ok(Stage { cluster, client, account, controller, namespace, policies, teller })
    }
    pub(crate) fn say(&self, line: &str) {
        self.teller.say(line);
    }
    /// Applies `hack/demo.d/policy/<name>.yaml`.
    pub(crate) async fn apply(&self, name: &str) -> Result<()> {
        let text = read(name)?.replace("NAMESPACE", self.namespace.name());
        manifests::apply_text(&self.cluster, self.namespace.name(), &text).await
    }
    /// Waits until the policy is compliant, and says what it says meanwhile.
    pub(crate) async fn wait_compliant(&mut self) -> Result<Value> {
        let (policies, teller) = (&self.policies, self.teller);
        let said = std::cell::RefCell::new(String::new());
        let controller = std::cell::RefCell::new(&mut self.controller);
        until("the policy to be compliant", PATIENCE, || async {
            controller.borrow_mut().must_run()?;
            let status = policies.get(POLICY).await?.data["status"].take();
            let line = status["history"][0]["message"].as_str().unwrap_or_default().to_owned();
            if !line.is_empty() && *said.borrow() != line {
                let shown: String = line.chars().take(160).collect();
                teller.say(&format!("   {shown}"));
                said.replace(line.clone());
            }
            Ok(if status["compliant"] == "Compliant" { Seen::Yes(status) } else { Seen::NotYet(line) })
        })
        .await
    }
    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let plural = format!("{}s", kind.to_lowercase());
        dynamic_api(self.client.clone(), self.namespace.name(), "v1", kind, &plural)
    }
    pub(crate) async fn live(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(kind).get_opt(name).await?;
        found.map(|found| serde_json::to_value(found).map_err(Error::other)).transpose()
    }
    pub(crate) async fn change(&self, kind: &str, name: &str, patch: &Value) -> Result<()> {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
    pub(crate) async fn wait_for(&self, kind: &str, name: &str, pointer: &str, wanted: &str) -> Result<()> {
        until(&format!("{kind} {name} to have {wanted}"), PATIENCE, || async {
            let found = self.live(kind, name).await?.unwrap_or_default();
            let seen = found.pointer(pointer).cloned().unwrap_or_default();
            Ok(if seen == wanted { Seen::Yes(()) } else { Seen::NotYet(seen.to_string()) })
        })
        .await
    }
    /// As a restore from a backup leaves it: without a status.
    pub(crate) async fn wipe_status(&self) -> Result<()> {
        self.policies.patch_status(POLICY, &PatchParams::default(), &Patch::Merge(json!({"status": null}))).await?;
        Ok(())
    }
    pub(crate) async fn plan_of_deletion(&self) -> Result<String> {
        let program = binaries::ours(CONTROLLER)?;
        let policy = format!("{}/{POLICY}", self.namespace.name());
        let kubeconfig = format!("--kubeconfig={}", self.account.kubeconfig().display());
        let mut line = tokio::process::Command::new(program);
        let told = line.args(["plan", &policy, "--delete", &kubeconfig]).output().await.map_err(Error::other)?;
        // 2: something would change.
        if told.status.code() == Some(2) {
            return Ok(String::from_utf8_lossy(&told.stdout).into_owned());
        }
        Err(Error::other(format!("plan ended with {}: {}", told.status, String::from_utf8_lossy(&told.stderr))))
    }
    pub(crate) async fn delete_policy(&self) -> Result<()> {
        self.policies.delete(POLICY, &DeleteParams::default()).await?;
        until("the policy to be gone", PATIENCE, || async {
            let found = self.policies.get_opt(POLICY).await?;
            Ok(found.map_or(Seen::Yes(()), |p| Seen::NotYet(p.data["status"]["compliancyDetails"].to_string())))
        })
        .await
    }
    /// Ends everything; nothing is left behind.
    pub(crate) async fn clear(mut self) -> Result<()> {
        self.say("cleaning up");
        self.namespace.finish(PATIENCE).await?;
        self.controller.stop(Duration::from_secs(10)).await.map(drop)
    }
}

fn read(name: &str) -> Result<String> {
    let path = binaries::root().join(format!("hack/demo.d/policy/{name}.yaml"));
    std::fs::read_to_string(&path).map_err(|error| Error::other(format!("{}: {error}", path.display())))
}
