//! Servers on a real OpenStack: what counts is what openstacksdk sees there.
use crate::real_stage::{PATIENCE, POLL_SECONDS, Real};
use crate::stage::{condition, spec};
use crate::{seen, tell};
use common::clock::{Clock, SystemClock};
use common::random::Random;
use e2e::{Result, env};
use serde_json::{Value, json};
use std::time::Duration;

/// Three ports, a trunk, a root volume and two others, a server group, metadata, user data, a key.
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
            {"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}},
            {"name": "logs", "sizeGiB": 1, "storage": {"type": "Volume", "volume": {"availabilityZone": {"from": "Machine"}}}}],
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
    assert_eq!(volumes.len(), 3, "{volumes:?}");
    assert!(volumes.iter().all(|volume| volume["status"] == "in-use"), "{volumes:?}");
    assert!(volumes.iter().any(|volume| volume["is_bootable"] == true && volume["name"] == "srv-root"), "{volumes:?}");
    let group = &look["server_groups"][0];
    assert_eq!(group["member_ids"], json!([server["id"]]), "{group}");
    assert_eq!(
        look["user_data"][server["id"].as_str().unwrap_or_default()],
        json!("#cloud-config"),
        "as the guest reads it"
    );
    // when somebody puts sub-ports on the trunk
    let riding = real.script("ride.py", &[look["trunks"][0]["id"].as_str().unwrap_or_default()]).await?;
    assert_eq!(real.look().await?["trunks"][0]["sub_ports"].as_array().map(Vec::len), Some(2), "{riding}");
    assert!(object.data["status"]["addresses"].as_array().is_some_and(|it| it.len() >= 4), "{}", object.data["status"]);
    // and the other says what it lacks
    let lost = real.servers.get("lost").await?;
    assert!(condition(&lost, "InstanceReady").is_some_and(|it| it.1 == "DependencyFailed"), "{}", lost.data["status"]);
    // when they go, then nothing is left
    real.delete_all().await?;
    let calls = sum(&controller.metrics().await?, "cloud_requests_total{");
    seen(&format!(
        "a real OpenStack: a server with 3 ports, a trunk with 2 sub-ports, 3 volumes and a server group made and deleted in {calls} calls, nothing left"
    ));
    controller.kill().await?;
    real.clear().await
}

/// All figures of a series, added up.
fn sum(metrics: &str, series: &str) -> f64 {
    let of_series = metrics.lines().filter(|line| line.starts_with(series));
    of_series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[tokio::test]
async fn a_server_on_a_real_cloud_costs_its_creates_and_few_reads() {
    tell("a_server_on_a_real_cloud_costs_its_creates_and_few_reads", counted()).await;
}
async fn counted() -> Result<()> {
    let Some(real) = Real::set("counted").await? else { return Ok(()) };
    let mut controller = real.start(&[]).await?;
    let port = |network: &str| json!({"network": {"filter": {"name": network}}});
    let wanted = json!({"image": {"filter": {"name": "tiny"}}, "flavor": "m1.tiny", "rootVolume": {"sizeGiB": 1}, "ports": [port("private"), port("other")]});
    let began = SystemClock.boot();
    real.create("srv", &spec(&wanted)).await?;
    real.wait_ready("srv").await?;
    let metrics = controller.metrics().await?;
    let rounds = SystemClock.boot().since(began).as_secs() / POLL_SECONDS + 3;
    let calls = |wanted: &dyn Fn(&str) -> bool| -> u64 {
        let lines = metrics.lines().filter(|line| line.starts_with("cloud_requests_total{") && wanted(line));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    let is = |line: &str, operations: &[&str]| operations.iter().any(|it| line.contains(&format!("\"{it}\"")));
    let is_poll = |line: &str| is(line, &["servers.list", "ports.list", "volumes.list", "servers.get", "volumes.get"]);
    let creates = calls(&|line| is(line, &["ports.create", "volumes.create", "servers.create"]));
    let polls = calls(&is_poll);
    let reads = calls(&|line| !line.contains(".create\"") && !is_poll(line));
    seen(&format!(
        "a real OpenStack: 2 ports, a volume and a server cost {creates} creates, {reads} reads, {polls} shared lists and polls"
    ));
    // with the first list of each kind
    assert!(creates == 4 && reads + 3 <= 10, "{metrics}");
    // However long the cloud takes: three lists and two looks by id in one round of polls.
    assert!(polls <= 5 * rounds, "{polls} in {rounds} rounds: {metrics}");
    real.delete_all().await?;
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
    for object in real.servers.list(&kube::api::ListParams::default()).await?.items {
        assert!(condition(&object, "Failed").is_none(), "{:?}: {}", object.metadata.name, object.data["status"]);
    }
    let metrics = controller.metrics().await?;
    let (calls, waited) = (sum(&metrics, "cloud_requests_total{"), sum(&metrics, "cloud_request_duration_seconds_sum"));
    let own = sum(&metrics, "process_cpu_seconds_total");
    seen(&format!(
        "a real OpenStack: {count} servers ready after {:.0} s, none failed; {calls} calls, which took the cloud {waited:.0} s in all, up to 8 at once; \
         our own work: {own:.1} s of CPU, {:.1} % of the time",
        took.as_secs_f64(),
        100.0 * own / took.as_secs_f64()
    ));
    real.delete_all().await?;
    controller.kill().await?;
    real.clear().await
}
