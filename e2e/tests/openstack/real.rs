//! The same binary on a real OpenStack (e2e/openstack): what counts is what openstacksdk sees there. `CUSTODY_OPENSTACK_ROOT`
//! names the folder of a running one; `hack/e2e-openstack` starts it.
use crate::stage::{BINARY, condition, is_ready, let_go, spec};
use crate::{seen, tell};
use common::clock::{Clock, SystemClock};
use common::random::Random;
use e2e::patience::{Seen, dynamic_api, until};
use e2e::{Account, Cluster, ControllerProcess, Error, Launch, Result, TemporaryNamespace, binaries, env, process};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(6);
const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
/// A real cloud on two busy cores is slow.
const SLOW: [&str; 6] = [
    "--start-window-seconds=30",
    "--call-timeout-seconds=60",
    "--list-lag-seconds=2",
    "--poll-seconds=2",
    "--list-interval-seconds=5",
    "--leader-elect=false",
];

struct Real {
    cluster: Cluster,
    account: Account,
    servers: Api<DynamicObject>,
    namespace: TemporaryNamespace,
    python: PathBuf,
    clouds: PathBuf,
    name: String,
}

impl Real {
    /// None if there is no real cloud here.
    async fn set(name: &str) -> Result<Option<Self>> {
        let Some(root) = env::openstack_root() else {
            println!("no real OpenStack here: CUSTODY_OPENSTACK_ROOT is not set");
            return Ok(None);
        };
        let cluster = &*e2e::cluster().await?;
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
        Ok(Some(Real { cluster: cluster.clone(), account, servers, namespace, python, clouds, name: name.to_owned() }))
    }
    async fn start(&self, more: &[&str]) -> Result<ControllerProcess> {
        let launch = Launch::controller(&self.cluster, &self.account, BINARY, &format!("{}-controller", self.name))?;
        let launch = SLOW.iter().chain(more).fold(launch, |launch, arg| launch.arg(*arg));
        let mut controller = launch.arg(format!("--namespace={}", self.namespace.name())).start()?;
        controller.wait_ready(PATIENCE).await?;
        Ok(controller)
    }
    /// The project as openstacksdk sees it.
    async fn look(&self) -> Result<Value> {
        let script = binaries::root().join("e2e/openstack/look.py").display().to_string();
        let text = process::output(&self.python, [script.as_str(), &self.clouds.display().to_string()]).await?;
        serde_json::from_str(text.trim()).map_err(Error::other)
    }
    async fn create(&self, name: &str, spec: &Value) -> Result<()> {
        let object =
            json!({"apiVersion": API_VERSION, "kind": "OpenStackServer", "metadata": {"name": name}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).map_err(Error::other)?;
        self.servers.create(&PostParams::default(), &object).await?;
        Ok(())
    }
    async fn wait_ready(&self, name: &str) -> Result<DynamicObject> {
        e2e::wait_for_object(&self.servers, name, &format!("{name} to be ready"), PATIENCE, is_ready).await
    }
    async fn delete_all(&self) -> Result<()> {
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
    async fn clear(self) -> Result<()> {
        let_go(&self.cluster, self.namespace.name()).await?;
        self.namespace.finish(PATIENCE).await
    }
}

/// Three ports, a trunk, a root volume and another, a server group, metadata, user data, a key.
fn everything() -> Value {
    spec(&json!({
        "image": {"filter": {"name": "tiny"}}, "flavor": "m1.tiny", "sshKeyName": "key", "userDataRef": {"name": "data"},
        "ports": [
            {"network": {"filter": {"name": "private"}}, "trunk": true, "tags": ["first"]},
            {"network": {"filter": {"name": "other"}}, "nameSuffix": "second", "enablePortSecurity": false},
            {"fixedIPs": [{"subnet": {"filter": {"name": "private"}}}], "allowedAddressPairs": [{"ipAddress": "10.20.9.9"}]}],
        "securityGroups": [{"filter": {"name": "default"}}], "tags": ["blue"], "serverMetadata": [{"key": "team", "value": "x"}],
        "rootVolume": {"sizeGiB": 2}, "serverGroup": {"filter": {"name": "group"}},
        "additionalBlockDevices": [
            {"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}}],
    }))
}

#[tokio::test]
async fn a_real_cloud_shows_everything_that_was_asked_for_and_nothing_afterwards() {
    tell("a_real_cloud_shows_everything_that_was_asked_for_and_nothing_afterwards", whole()).await;
}
async fn whole() -> Result<()> {
    let Some(real) = Real::set("real").await? else { return Ok(()) };
    let mut controller = real.start(&[]).await?;
    // when a server with everything is applied, and one that cannot be
    real.create("srv", &everything()).await?;
    real.create("lost", &spec(&json!({"image": {"filter": {"name": "nothing"}}, "flavor": "m1.tiny"}))).await?;
    let object = real.wait_ready("srv").await?;
    // then openstacksdk sees it all
    let look = real.look().await?;
    let server = &look["servers"][0];
    assert_eq!(look["servers"].as_array().map(Vec::len), Some(1), "{look}");
    assert_eq!(
        (&server["name"], &server["status"], &server["key_name"]),
        (&json!("srv"), &json!("ACTIVE"), &json!("key"))
    );
    assert_eq!(server["metadata"]["team"], "x");
    assert_eq!(server["id"], object.data["status"]["instanceID"]);
    let ports = look["ports"].as_array().cloned().unwrap_or_default();
    assert_eq!(ports.len(), 3, "{ports:?}");
    assert!(ports.iter().all(|port| port["device_id"] == server["id"]), "{ports:?}");
    let names: std::collections::BTreeSet<&str> = ports.iter().filter_map(|port| port["name"].as_str()).collect();
    assert_eq!(names, ["srv-0", "srv-2", "srv-second"].into());
    let tags = |port: &Value| port["tags"].as_array().cloned().unwrap_or_default();
    assert!(ports.iter().all(|port| tags(port).contains(&json!("blue"))), "{ports:?}");
    assert!(
        ports.iter().all(|port| port["description"].as_str().is_some_and(|it| it.contains("custody-owner="))),
        "{ports:?}"
    );
    assert_eq!(look["trunks"].as_array().map(Vec::len), Some(1));
    let volumes = look["volumes"].as_array().cloned().unwrap_or_default();
    assert_eq!(volumes.len(), 2, "{volumes:?}");
    assert!(volumes.iter().all(|volume| volume["status"] == "in-use"), "{volumes:?}");
    assert!(object.data["status"]["addresses"].as_array().is_some_and(|it| it.len() >= 4), "{}", object.data["status"]);
    // and the other says what it lacks
    let lost = real.servers.get("lost").await?;
    assert!(condition(&lost, "InstanceReady").is_some_and(|it| it.1 == "DependencyFailed"), "{}", lost.data["status"]);
    // when they go, then nothing is left
    real.delete_all().await?;
    let metrics = controller.metrics().await?;
    let calls: f64 = metrics
        .lines()
        .filter(|line| line.starts_with("cloud_requests_total{"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum();
    seen(&format!("a real OpenStack: a server with 3 ports, a trunk and 2 volumes made and deleted in {calls} calls"));
    controller.kill().await?;
    real.clear().await
}

#[tokio::test]
async fn kill_9_on_a_real_cloud_leaves_one_server_each() {
    tell("kill_9_on_a_real_cloud_leaves_one_server_each", killed()).await;
}
async fn killed() -> Result<()> {
    let Some(real) = Real::set("realkill").await? else { return Ok(()) };
    let dice = Random::seeded(env::number(env::SEED, 1));
    let mut controller = real.start(&[]).await?;
    let small =
        spec(&json!({"image": {"filter": {"name": "tiny"}}, "flavor": "m1.tiny", "rootVolume": {"sizeGiB": 1}}));
    let mut kills = 0;
    for n in 0..4 {
        real.create(&format!("srv-{n}"), &small).await?;
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_millis(500 + dice.below(2500))).await;
        controller.restart().await?;
        kills += 1;
    }
    controller.wait_ready(PATIENCE).await?;
    for n in 0..4 {
        real.wait_ready(&format!("srv-{n}")).await?;
    }
    let look = real.look().await?;
    for (kind, count) in [("servers", 4), ("ports", 4), ("volumes", 4)] {
        assert_eq!(look[kind].as_array().map(Vec::len), Some(count), "{kind}: {}", look[kind]);
    }
    seen(&format!("a real OpenStack: {kills} kills while 4 servers came up; 4 servers, 4 ports, 4 volumes"));
    real.delete_all().await?;
    controller.kill().await?;
    real.clear().await
}

#[tokio::test]
async fn many_servers_on_a_real_cloud_converge() {
    tell("many_servers_on_a_real_cloud_converge", many()).await;
}
async fn many() -> Result<()> {
    let count = env::number("CUSTODY_OPENSTACK_SERVERS", 0);
    if count == 0 {
        println!("not asked for: CUSTODY_OPENSTACK_SERVERS says how many");
        return Ok(());
    }
    let Some(real) = Real::set("many").await? else { return Ok(()) };
    let mut controller = real.start(&["--calls-at-once=8"]).await?;
    let small = spec(&json!({"image": {"filter": {"name": "tiny"}}, "flavor": "m1.tiny"}));
    let began = SystemClock.boot();
    for n in 0..count {
        real.create(&format!("srv-{n}"), &small).await?;
    }
    for n in 0..count {
        real.wait_ready(&format!("srv-{n}")).await?;
    }
    let took = SystemClock.boot().since(began);
    let metrics = controller.metrics().await?;
    let sum = |name: &str| -> f64 {
        metrics
            .lines()
            .filter(|line| line.starts_with(name))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    };
    let (calls, waited) = (sum("cloud_requests_total{"), sum("cloud_request_duration_seconds_sum"));
    seen(&format!(
        "a real OpenStack: {count} servers ready after {took:?}; {calls} calls, which took the cloud {waited:.0} s in all, up to 8 at once"
    ));
    real.delete_all().await?;
    controller.kill().await?;
    real.clear().await
}
