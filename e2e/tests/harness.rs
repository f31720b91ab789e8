//! The harness, proved on itself: what it promises to the tests that stand on it.
use e2e::patience::{Seen, until};
use e2e::process::{Leashed, Program};
use e2e::{
    Account, AuditLog, Cluster, ControlPlane, EmulatorProcess, Launch, Result, TemporaryNamespace, cluster, enabled,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{ListParams, PostParams};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_control_plane_starts_serves_and_leaves_nothing_behind() -> Result<()> {
    if !enabled("a_control_plane_starts_serves_and_leaves_nothing_behind") {
        return Ok(());
    }
    // given a running control plane
    let plane = ControlPlane::start().await?;
    let (pids, folder) = (plane.cluster().pids(), plane.cluster().folder());
    assert_eq!(pids.len(), 3);
    // when its administrator asks for its version
    let version = plane.cluster().client().await?.apiserver_version().await?;
    // then it names the one it was built from
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"), "{}", version.git_version);
    // and when it is stopped, no process and no file is left
    plane.stop().await?;
    for pid in pids {
        assert!(test_kill_process(pid).is_err(), "pid {pid:?} is still there");
    }
    assert!(!folder.path().exists());
    Ok(())
}

#[tokio::test]
async fn a_control_plane_that_is_not_stopped_ends_but_keeps_its_logs() -> Result<()> {
    if !enabled("a_control_plane_that_is_not_stopped_ends_but_keeps_its_logs") {
        return Ok(());
    }
    // given a control plane in a test
    let plane = ControlPlane::start().await?;
    let (pids, folder) = (plane.cluster().pids(), plane.cluster().folder());
    // when the test ends early, as it does after a failure
    drop(plane);
    // then no process is left, and the logs can be read
    for pid in pids {
        assert!(test_kill_process(pid).is_err(), "pid {pid:?} is still there");
    }
    assert!(folder.file("kube-apiserver.log").exists());
    std::fs::remove_dir_all(folder.path()).expect("can be deleted");
    Ok(())
}

#[tokio::test]
async fn the_api_server_can_go_away_and_come_back() -> Result<()> {
    if !enabled("the_api_server_can_go_away_and_come_back") {
        return Ok(());
    }
    // given a control plane with something stored
    let mut plane = ControlPlane::start().await?;
    let client = plane.cluster().client().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = serde_json::from_value(json!({"metadata": {"name": "it"}})).expect("a config map");
    maps.create(&PostParams::default(), &map).await?;
    // when the API server goes away, then nobody answers
    plane.take_api_server_away().await?;
    maps.get("it").await.expect_err("nobody is there");
    // when it comes back, then it is the same cluster at the same address
    plane.bring_api_server_back().await?;
    maps.get("it").await?;
    assert_eq!(plane.cluster().pids().len(), 3);
    plane.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_killed_test_process_leaves_nothing_behind() -> Result<()> {
    if !enabled("a_killed_test_process_leaves_nothing_behind") {
        return Ok(());
    }
    // given another process that holds a control plane and runs a command with it
    let scratch = e2e::folder::Folder::create("harness")?;
    let report = scratch.file("report");
    let script = format!("echo $CUSTODY_E2E_DIR $$ >{0}.part; mv {0}.part {0}; exec sleep 600", report.display());
    let mut holder = tokio::process::Command::new(env!("CARGO_BIN_EXE_e2e-controlplane"))
        .args(["with", "--", "sh", "-c", &script])
        .kill_on_drop(true)
        .spawn()
        .expect("starts");
    let text = until("the command to run", PATIENCE, || async {
        let text = std::fs::read_to_string(&report);
        Ok(text.map_or_else(|error| Seen::NotYet(error.to_string()), Seen::Yes))
    });
    let text = text.await?;
    let (folder, sleeper) = text.trim().split_once(' ').expect("two words");
    let plane = Cluster::attach(folder.as_ref())?;
    assert_eq!(plane.pids().len(), 3);
    assert!(plane.pids().into_iter().all(|pid| test_kill_process(pid).is_ok()));
    // when it is killed without any chance to clean up
    holder.kill().await.expect("can be killed");
    // then every process of the control plane ends, and the folder goes
    let gone = until("nothing to be left", PATIENCE, || async {
        let left: Vec<_> = plane.pids().into_iter().filter(|pid| test_kill_process(*pid).is_ok()).collect();
        let all_gone = left.is_empty() && !plane.folder().path().exists();
        Ok(if all_gone { Seen::Yes(()) } else { Seen::NotYet(format!("{left:?}, {folder}")) })
    });
    gone.await?;
    let sleeper = sleeper.parse().ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(sleeper, Signal::KILL).expect("the command was ours");
    scratch.remove()
}

#[tokio::test]
async fn a_shared_control_plane_hands_on_the_commands_exit_status() -> Result<()> {
    if !enabled("a_shared_control_plane_hands_on_the_commands_exit_status") {
        return Ok(());
    }
    // given a command that uses the control plane as its tests would, and fails in the end
    let script = "kubectl get namespace kube-system -o name >&2 && echo $CUSTODY_E2E_DIR && exit 7";
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_e2e-controlplane"));
    // when it is run with a control plane
    let done = command.args(["with", "--", "sh", "-c", script]).output().await.expect("runs");
    // then its status is handed on, and the folder is kept for reading
    assert_eq!(done.status.code(), Some(7), "{}", String::from_utf8_lossy(&done.stderr));
    let folder = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    assert!(std::path::Path::new(&folder).join("audit.log").exists());
    std::fs::remove_dir_all(folder).expect("can be deleted");
    Ok(())
}

const READER: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
"#;

#[tokio::test]
async fn rights_are_checked_and_requests_are_counted() -> Result<()> {
    if !enabled("rights_are_checked_and_requests_are_counted") {
        return Ok(());
    }
    // given an account that may read config maps in one namespace, and nothing else
    let cluster = cluster().await?;
    let namespace = TemporaryNamespace::create(&cluster, "rights").await?;
    let shipped = e2e::folder::Folder::create("shipped")?;
    shipped.write("reader.yaml", READER)?;
    shipped.write("kustomization.yaml", format!("{{resources: [reader.yaml], namespace: {}}}", namespace.name()))?;
    let account = Account::deployed(&cluster, shipped.path()).await?;
    shipped.remove()?;
    let client = account.client().await?;
    let (maps, secrets): (Api<ConfigMap>, Api<Secret>) =
        (Api::namespaced(client.clone(), namespace.name()), Api::namespaced(client, namespace.name()));
    let log = AuditLog::of(&cluster)?;
    // when it does what it may, twice, and what it may not, once
    let before = log.moment().await?;
    maps.list(&ListParams::default()).await?;
    maps.list(&ListParams::default()).await?;
    let refused = secrets.list(&ListParams::default()).await.expect_err("not allowed");
    let after = log.moment().await?;
    maps.list(&ListParams::default()).await?;
    // then the API server refused, and the log tells exactly this much between the two moments
    assert!(matches!(refused, kube::Error::Api(ref status) if status.is_forbidden()), "{refused}");
    let counted = log.requests(&account.user(), before, after)?;
    let counted: Vec<_> = counted.iter().map(|(request, times)| format!("{times} x {request}")).collect();
    assert_eq!(counted, ["2 x list configmaps -> 200", "1 x list secrets -> 403"]);
    let forbidden = log.forbidden(&account.user(), before, after)?;
    assert_eq!(forbidden.iter().map(ToString::to_string).collect::<Vec<_>>(), ["list secrets -> 403"]);
    namespace.finish(PATIENCE).await?;
    Ok(())
}

#[tokio::test]
async fn a_wait_that_fails_shows_what_was_there() -> Result<()> {
    if !enabled("a_wait_that_fails_shows_what_was_there") {
        return Ok(());
    }
    // given an object that is not as wanted
    let cluster = cluster().await?;
    let namespace = TemporaryNamespace::create(&cluster, "waits").await?;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await?, namespace.name());
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "it"}, "data": {"colour": "grey"}})).expect("a config map");
    maps.create(&PostParams::default(), &map).await?;
    // when somebody waits for it in vain
    let waited = e2e::wait_for(&maps, "it", "it to be green", Duration::from_millis(200), |_| false).await;
    // then the failure says what was wanted and what was there
    let failure = waited.expect_err("never green").to_string();
    assert!(failure.contains("it to be green") && failure.contains("colour: grey"), "{failure}");
    namespace.finish(PATIENCE).await?;
    Ok(())
}

#[tokio::test]
async fn a_controller_can_be_frozen_woken_killed_restarted_and_stopped() -> Result<()> {
    if !enabled("a_controller_can_be_frozen_woken_killed_restarted_and_stopped") {
        return Ok(());
    }
    // given a running process with arguments and an environment
    let cluster = cluster().await?;
    let launch = Launch::program(&cluster, "/bin/sh".into(), "ticker")?;
    let script = r#"trap 'exit 3' TERM; echo "$1 $WORD"; while :; do sleep 0.05; done"#;
    let mut ticker = launch.arg("-c").arg(script).arg("sh").arg("hello").env("WORD", "world").start()?;
    let says_hello = || ticker.log_tail(5).matches("hello world").count();
    wait_until("its first words", || says_hello() == 1).await?;
    // when it is frozen, then it stands still until it is woken
    ticker.freeze()?;
    wait_until("it to be frozen", || state(ticker.pid()) == 'T').await?;
    ticker.unfreeze()?;
    wait_until("it to go on", || state(ticker.pid()) != 'T').await?;
    // when it is killed, then it is gone and its end is told with its log
    let first = ticker.pid();
    ticker.freeze()?;
    ticker.kill().await?;
    assert!(test_kill_process(first).is_err());
    let ended = ticker.must_run().expect_err("it has ended").to_string();
    assert!(ended.contains("ticker") && ended.contains("hello world"), "{ended}");
    // when it is restarted, then it is another process of the same kind
    ticker.restart().await?;
    assert_ne!(ticker.pid(), first);
    let says_hello = || ticker.log_tail(5).matches("hello world").count();
    wait_until("its first words again", || says_hello() == 2).await?;
    // when it is asked to end, then it ends in its own way
    let status = ticker.stop(PATIENCE).await?;
    assert_eq!(status.code(), Some(3));
    Ok(())
}

#[tokio::test]
async fn an_emulated_cloud_serves_its_principals_and_its_administrator() -> Result<()> {
    if !enabled("an_emulated_cloud_serves_its_principals_and_its_administrator") {
        return Ok(());
    }
    // given an emulated cloud with one principal
    let cluster = cluster().await?;
    let cloud = EmulatorProcess::start(&cluster, "sample", "cloud", &[("robot", "secret")]).await?;
    let ask = |token: &str| reqwest::Client::new().get(format!("{}/v1/whoami", cloud.url())).bearer_auth(token).send();
    // when it and somebody else ask who they are
    let (known, unknown) = (ask("secret").await?, ask("wrong").await?);
    // then it is known, the other is not, and the administrator sees both calls
    assert_eq!((known.status().as_u16(), unknown.status().as_u16()), (200, 401));
    assert_eq!(cloud.count_calls(&[]).await?, 2);
    // when it is shut out, then it is unknown, too
    cloud.revoke("robot").await?;
    assert_eq!(ask("secret").await?.status().as_u16(), 401);
    // when a stranger's thing is planted and deleted by hand, then the truth tells
    let planted = cloud.plant(&json!({"kind": "network", "fields": {"name": "theirs", "cidr": "10.0.0.0/24"}})).await?;
    let id = planted["id"].as_str().unwrap_or_default();
    assert!(cloud.things().await?.to_string().contains(id), "{planted}");
    cloud.delete_by_hand(id).await?;
    cloud.stop().await
}

#[tokio::test]
async fn a_leash_hands_on_the_exit_status_and_tells_the_end_of_the_log() -> Result<()> {
    // given a program that ends by itself
    let scratch = e2e::folder::Folder::create("leash")?;
    let args = ["-c", "echo first; echo last >&2; exit 5"];
    let program = Program {
        name: "short".to_owned(),
        path: "/bin/sh".into(),
        args: args.map(Into::into).into(),
        log: scratch.file("log"),
        ..Program::default()
    };
    // when it has run
    let mut process = Leashed::start(&program)?;
    let status = process.wait(PATIENCE).await?;
    // then its status and both of its outputs are known
    assert_eq!(status.code(), Some(5));
    let told = process.must_run().expect_err("it has ended").to_string();
    assert!(told.contains("first\nlast"), "{told}");
    scratch.remove()
}

async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let waited = until(what, PATIENCE, || {
        let seen = if holds() { Seen::Yes(()) } else { Seen::NotYet("not yet".to_owned()) };
        async { Ok(seen) }
    });
    waited.await
}

/// The kernel's word for what a process is doing: `T` is stopped.
fn state(pid: Pid) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?')
}
