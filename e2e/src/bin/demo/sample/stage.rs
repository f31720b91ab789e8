//! What the story plays on: control plane, cloud, controller, and the owners as a user sees them.
use crate::telling::Teller;
use e2e::account::Account;
use e2e::controller::{ControllerProcess, Launch};
use e2e::emulator::EmulatorProcess;
use e2e::namespace::TemporaryNamespace;
use e2e::patience::{dynamic_api, has_condition};
use e2e::{Cluster, Error, Result, Seen, binaries, manifests, until};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const CONTROLLER: &str = "sample-controller";
/// The controller's name in the cloud.
pub(crate) const PRINCIPAL: &str = "sample-controller";
const TOKEN: &str = "the-controllers-own-token";
/// Nothing in the demo takes longer, unless something is broken.
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) struct Stage {
    cluster: Arc<Cluster>,
    pub(crate) cloud: EmulatorProcess,
    pub(crate) controller: ControllerProcess,
    namespace: TemporaryNamespace,
    owners: Api<DynamicObject>,
    teller: Teller,
}

impl Stage {
    pub(crate) async fn set() -> Result<Self> {
        let teller = Teller::new();
        let shared = e2e::cluster().await?;
        let cluster = &*shared;
        teller.say("starting the emulated cloud");
        let cloud = EmulatorProcess::start(cluster, "sample", "cloud", &[(PRINCIPAL, TOKEN)]).await?;
        teller.say("installing the CRD and the controller's own service account with its shipped roles");
        let account = Account::shipped(cluster, CONTROLLER).await?;
        let token = cluster.folder().write("cloud-token", TOKEN)?;
        teller.say("starting the controller under that account");
        let launch = Launch::controller(cluster, &account, CONTROLLER, CONTROLLER)?
            .arg(format!("--cloud-url={}", cloud.url()))
            .arg(format!("--token-file={}", token.display()));
        // The emulated cloud is quick and shows everything at once: shorter times make a shorter story, settle is 17 s.
        let launch =
            ["--start-window-seconds=5", "--call-timeout-seconds=5", "--list-lag-seconds=2", "--poll-seconds=2"]
                .into_iter()
                .chain([
                    "--list-interval-seconds=2",
                    "--lease-duration=12s",
                    "--renew-deadline=6s",
                    "--retry-period=1s",
                ])
                .fold(launch, Launch::arg);
        let mut controller = launch.start()?;
        controller.wait_ready(PATIENCE).await?;
        let namespace = TemporaryNamespace::create(cluster, "demo").await?;
        let client = cluster.client().await?;
        let owners =
            dynamic_api(client, namespace.name(), "sample.custody.dev/v1alpha1", "SampleOwner", "sampleowners");
        Ok(Stage { cluster: shared, cloud, controller, namespace, owners, teller })
    }
    /// A line with the time since the start.
    pub(crate) fn say(&self, line: &str) {
        self.teller.say(line);
    }
    /// Applies `hack/demo.d/sample/<name>.yaml`; returns how many things it asks for.
    pub(crate) async fn apply(&self, name: &str) -> Result<usize> {
        let path = binaries::root().join(format!("hack/demo.d/sample/{name}.yaml"));
        let text =
            std::fs::read_to_string(&path).map_err(|error| Error::other(format!("{}: {error}", path.display())))?;
        manifests::apply_text(&self.cluster, self.namespace.name(), &text).await?;
        let lists = manifests::parse(&text)?.into_iter().filter_map(|object| object.data["spec"].as_object().cloned());
        Ok(lists.flat_map(|spec| spec.into_iter().filter_map(|(_, list)| list.as_array().map(Vec::len))).sum())
    }
    /// Takes one machine out of the spec.
    pub(crate) async fn drop_machine(&self, owner: &str, machine: &str) -> Result<()> {
        let object = self.owners.get(owner).await?;
        let machines = object.data["spec"]["machines"].as_array().cloned().unwrap_or_default();
        let left: Vec<Value> = machines.into_iter().filter(|entry| entry["name"] != machine).collect();
        let patch = kube::api::Patch::Merge(json!({"spec": {"machines": left}}));
        self.owners.patch(owner, &kube::api::PatchParams::default(), &patch).await?;
        Ok(())
    }
    pub(crate) async fn delete(&self, owner: &str) -> Result<()> {
        self.owners.delete(owner, &DeleteParams::default()).await?;
        Ok(())
    }
    /// Waits until the owner is ready as its spec is now, and says what it says meanwhile.
    pub(crate) async fn wait_ready(&mut self, owner: &str) -> Result<()> {
        self.watch(owner, &format!("{owner} to be ready"), |object| {
            object.is_some_and(|object| {
                let observed = object.data.pointer("/status/observedGeneration").and_then(Value::as_i64);
                has_condition(object, "Ready", "True") && observed == object.metadata.generation
            })
        })
        .await
    }
    /// Waits until the owner is gone, and says what it says meanwhile.
    pub(crate) async fn wait_gone(&mut self, owner: &str) -> Result<()> {
        self.watch(owner, &format!("{owner} to be gone"), |object| object.is_none()).await
    }
    async fn watch(&mut self, owner: &str, what: &str, wanted: impl Fn(Option<&DynamicObject>) -> bool) -> Result<()> {
        let (owners, teller) = (&self.owners, self.teller);
        let said = std::cell::RefCell::new(String::new());
        let controller = std::cell::RefCell::new(&mut self.controller);
        until(what, PATIENCE, || async {
            controller.borrow_mut().must_run()?;
            let object = owners.get_opt(owner).await?;
            let line = object.as_ref().map(progress).unwrap_or_default();
            if !line.is_empty() && *said.borrow() != line {
                teller.say(&format!("   {owner}: {line}"));
                said.replace(line.clone());
            }
            Ok(if wanted(object.as_ref()) { Seen::Yes(()) } else { Seen::NotYet(line) })
        })
        .await
    }
    /// Ends everything; nothing is left behind.
    pub(crate) async fn clear(mut self) -> Result<()> {
        self.say("cleaning up");
        self.namespace.finish(PATIENCE).await?;
        self.controller.stop(Duration::from_secs(10)).await?;
        self.cloud.stop().await
    }
}

/// What a user would see with kubectl: how many are ready, and why not all.
fn progress(object: &DynamicObject) -> String {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.and_then(|list| list.iter().find(|condition| condition["type"] == "Ready"));
    let Some(ready) = ready else { return String::new() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let summary = text(&object.data["status"]["summary"]);
    let message: String = text(&ready["message"]).chars().take(100).collect();
    [summary, text(&ready["reason"]), message]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}
