//! What a person runs beside the controller, with the real binary on a real API server and the emulator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use common::names;
use e2e::patience::has_condition;
use e2e::{Account, Cluster, ControllerProcess, EmulatorProcess, Launch, TemporaryNamespace, binaries, cluster};
use e2e::{wait_for_object, wait_until_gone};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use sample_controller::api::{SampleOwner, SampleOwnerSpec};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "sample-controller";
const TOKEN: &str = "a-token-of-this-test";
const PATIENCE: Duration = Duration::from_mins(3);

struct World {
    cluster: Arc<Cluster>,
    account: Account,
    cloud: EmulatorProcess,
    namespace: TemporaryNamespace,
    owners: Api<SampleOwner>,
    token: PathBuf,
}
impl World {
    async fn new(prefix: &str) -> Self {
        let cluster = cluster().await.unwrap();
        let account = Account::shipped(&cluster, NAME).await.unwrap();
        let cloud = EmulatorProcess::start(&cluster, "sample", prefix, &[(NAME, TOKEN)]).await.unwrap();
        let namespace = TemporaryNamespace::create(&cluster, prefix).await.unwrap();
        let owners = Api::namespaced(cluster.client().await.unwrap(), namespace.name());
        let token = cluster.folder().write(&format!("{prefix}-token"), TOKEN).unwrap();
        World { cluster, account, cloud, namespace, owners, token }
    }
    fn start(&self) -> ControllerProcess {
        Launch::controller(&self.cluster, &self.account, NAME, self.namespace.name())
            .unwrap()
            .arg(format!("--cloud-url={}", self.cloud.url()))
            .arg(format!("--token-file={}", self.token.display()))
            .arg(format!("--namespace={}", self.namespace.name()))
            .arg("--leader-elect=false")
            .start()
            .unwrap()
    }
    /// Runs a subcommand as the administrator; exit status and what it printed as JSON.
    async fn run(&self, args: &[&str]) -> (i32, Value) {
        self.run_with(self.cluster.kubeconfig(), args).await
    }
    async fn run_with(&self, kubeconfig: &std::path::Path, args: &[&str]) -> (i32, Value) {
        let mut command = tokio::process::Command::new(binaries::ours(NAME).unwrap());
        command.args(args).arg("--output=json").arg(format!("--kubeconfig={}", kubeconfig.display()));
        command.arg(format!("--cloud-url={}", self.cloud.url()));
        command.arg(format!("--token-file={}", self.token.display()));
        let done = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!said.contains(TOKEN), "the token is in the log: {said}");
        let value = serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {said}"));
        (done.status.code().unwrap(), value)
    }
    async fn create(&self, name: &str) {
        let spec: SampleOwnerSpec = serde_json::from_value(json!({
            "networks": [{"name": "main", "cidr": "10.0.0.0/16"}],
            "disks": [{"name": "d", "sizeGb": 1}],
            "routes": [{"name": "out", "network": "main", "destination": "0.0.0.0/0", "nextHop": "10.0.0.1"}],
        }))
        .unwrap();
        self.owners.create(&PostParams::default(), &SampleOwner::new(name, spec)).await.unwrap();
    }
    async fn ready(&self, name: &str) {
        let client = self.cluster.client().await.unwrap();
        let api = e2e::patience::dynamic_api(
            client,
            self.namespace.name(),
            "sample.custody.dev/v1alpha1",
            "SampleOwner",
            "sampleowners",
        );
        let is_ready = |object: &DynamicObject| has_condition(object, "Ready", "True");
        wait_for_object(&api, name, &format!("{name} to be ready"), PATIENCE, is_ready).await.unwrap();
    }
    async fn annotate(&self, name: &str, key: &str, value: &str) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        self.owners.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }
    async fn living(&self) -> usize {
        let things = self.cloud.things().await.unwrap();
        let all = things["items"].as_array().or(things.as_array()).cloned().unwrap_or_default();
        all.iter().filter(|thing| thing["phase"] != "gone").count()
    }
}
fn verbs(steps: &Value) -> Vec<&str> {
    steps.as_array().unwrap().iter().map(|step| step["verb"].as_str().unwrap()).collect()
}

#[tokio::test]
#[ignore = "runs on a control plane: hack/e2e rules"]
async fn a_plan_says_what_will_happen_and_an_audit_finds_what_was_left_behind() {
    let world = World::new("plan").await;
    let scope = format!("--namespace={}", world.namespace.name());
    world.create("o").await;
    // A plan before anything is there says all of it and does none of it.
    let (status, steps) = world.run(&["plan", &scope]).await;
    assert_eq!((status, verbs(&steps)), (2, vec!["create"; 3]), "{steps}");
    assert_eq!(world.living().await, 0);
    // The shipped account may do all that it needs, and the cloud lets it in.
    let (status, checks) = world.run_with(world.account.kubeconfig(), &["doctor"]).await;
    assert_eq!(status, 0, "{checks}");
    // Once it has happened, the plan is empty and the audit is content.
    let mut controller = world.start();
    controller.wait_ready(PATIENCE).await.unwrap();
    world.ready("o").await;
    let (status, steps) = world.run(&["plan", &scope]).await;
    assert_eq!((status, steps), (0, json!([])));
    let (status, findings) = world.run(&["audit"]).await;
    assert_eq!(status, 0, "{findings}");
    let owned = findings.as_array().unwrap().iter().filter(|it| it["verdict"] == "Owned").count();
    assert_eq!(owned, 3, "{findings}");
    // An owner torn out while nobody looks leaves orphans, and the audit names every one.
    controller.kill().await.unwrap();
    world.owners.delete("o", &DeleteParams::default()).await.unwrap();
    let strip = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.owners.patch("o", &PatchParams::default(), &strip).await.unwrap();
    wait_until_gone(&world.owners, "o", PATIENCE).await.unwrap();
    let (status, findings) = world.run(&["audit"]).await;
    assert_eq!(status, 3, "{findings}");
    let verdicts: Vec<_> = findings.as_array().unwrap().iter().map(|it| it["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["Orphan", "Orphan", "OrphanPart"], "{findings}");
    world.namespace.finish(PATIENCE).await.unwrap();
}

#[tokio::test]
#[ignore = "runs on a control plane: hack/e2e rules"]
async fn an_owner_is_released_with_a_receipt_and_its_things_stay() {
    let world = World::new("release").await;
    let scope = format!("--namespace={}", world.namespace.name());
    world.create("o").await;
    let mut controller = world.start();
    controller.wait_ready(PATIENCE).await.unwrap();
    world.ready("o").await;
    // Not before it is paused and on its way out.
    let (status, _) = world.run(&["release", "--name=o", &scope]).await;
    assert_eq!(status, 1);
    world.annotate("o", names::PAUSED, "true").await;
    let uid = world.owners.delete("o", &DeleteParams::default()).await.unwrap().left().unwrap().metadata.uid.unwrap();
    let (status, survivors) = world.run(&["release", "--name=o", &scope]).await;
    assert_eq!((status, survivors.as_array().map(Vec::len)), (0, Some(3)), "{survivors}");
    wait_until_gone(&world.owners, "o", PATIENCE).await.unwrap();
    assert_eq!(world.living().await, 3);
    let receipts: Api<ConfigMap> = Api::namespaced(world.cluster.client().await.unwrap(), "default");
    let receipt = receipts.get(&format!("released-sample-{uid}")).await.unwrap();
    assert!(receipt.data.unwrap()["survivors.json"].contains("route-out"));
    controller.kill().await.unwrap();
    world.namespace.finish(PATIENCE).await.unwrap();
}

#[tokio::test]
#[ignore = "runs on a control plane: hack/e2e rules"]
async fn owners_of_another_installation_are_asked_over_and_served_on() {
    // given an owner that was served under the default installation id
    let world = World::new("takeover").await;
    let scope = format!("--namespace={}", world.namespace.name());
    world.create("o").await;
    let mut first = world.start();
    first.wait_ready(PATIENCE).await.unwrap();
    world.ready("o").await;
    first.kill().await.unwrap();
    let old = kube_system_uid(&world).await;
    // when it is asked over to another installation
    let from = format!("--from={old}");
    let (status, orders) = world.run(&["takeover", &from, "--installation-id=new", &scope]).await;
    assert_eq!((status, orders[0]["result"].as_str()), (0, Some("asked")), "{orders}");
    // then its things carry the new place, and nothing was made or lost
    let mut second = Launch::controller(&world.cluster, &world.account, NAME, "second")
        .unwrap()
        .arg(format!("--cloud-url={}", world.cloud.url()))
        .arg(format!("--token-file={}", world.token.display()))
        .arg(&scope)
        .arg("--installation-id=new")
        .arg("--leader-elect=false")
        .start()
        .unwrap();
    second.wait_ready(PATIENCE).await.unwrap();
    let taken =
        |owner: &SampleOwner| !owner.metadata.annotations.iter().flatten().any(|(key, _)| key == names::TAKE_OVER);
    wait_for_object(&world.owners, "o", "the take-over to end", PATIENCE, taken).await.unwrap();
    world.ready("o").await;
    assert_eq!(world.living().await, 3);
    world.owners.delete("o", &DeleteParams::default()).await.unwrap();
    wait_until_gone(&world.owners, "o", PATIENCE).await.unwrap();
    assert_eq!(world.living().await, 0);
    second.kill().await.unwrap();
    world.namespace.finish(PATIENCE).await.unwrap();
}
async fn kube_system_uid(world: &World) -> String {
    let client = world.cluster.client().await.unwrap();
    common::process::client::installation_id(&client).await.unwrap()
}
