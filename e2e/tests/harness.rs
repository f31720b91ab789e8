//! The harness, proved on itself: what it promises to the tests that stand on it.
use e2e::patience::{Seen, until};
use e2e::process::{Leashed, Program};
use e2e::{Account, AuditLog, Cluster, ControlPlane, Launch, TemporaryNamespace, cluster, enabled, manifests};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{ListParams, PostParams};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_control_plane_starts_serves_and_leaves_nothing_behind() {
    if !enabled("a_control_plane_starts_serves_and_leaves_nothing_behind") {
        return;
    }
    // given a running control plane
    let plane = ControlPlane::start().await.expect("starts");
    let (pids, folder) = (plane.cluster().pids(), plane.cluster().folder());
    assert_eq!(pids.len(), 3);
    // when its administrator asks for its version
    let version = plane.cluster().client().await.expect("client").apiserver_version().await.expect("version");
    // then it names the one it was built from
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"), "{}", version.git_version);
    // and when it is stopped, no process and no file is left
    plane.stop().await.expect("stops");
    for pid in pids {
        assert!(test_kill_process(pid).is_err(), "pid {pid:?} is still there");
    }
    assert!(!folder.path().exists());
}

#[tokio::test]
async fn a_control_plane_that_is_not_stopped_ends_but_keeps_its_logs() {
    if !enabled("a_control_plane_that_is_not_stopped_ends_but_keeps_its_logs") {
        return;
    }
    // given a control plane in a test
    let plane = ControlPlane::start().await.expect("starts");
    let (pids, folder) = (plane.cluster().pids(), plane.cluster().folder());
    // when the test ends early, as it does after a failure
    drop(plane);
    // then no process is left, and the logs can be read
    for pid in pids {
        assert!(test_kill_process(pid).is_err(), "pid {pid:?} is still there");
    }
    assert!(folder.file("kube-apiserver.log").exists());
    std::fs::remove_dir_all(folder.path()).expect("can be deleted");
}

#[tokio::test]
async fn a_killed_test_process_leaves_nothing_behind() {
    if !enabled("a_killed_test_process_leaves_nothing_behind") {
        return;
    }
    // given another process that holds a control plane and runs a command with it
    let scratch = e2e::folder::Folder::create("harness").expect("folder");
    let report = scratch.file("report");
    let script = format!("echo $CUSTODY_E2E_DIR $$ >{0}.part; mv {0}.part {0}; exec sleep 600", report.display());
    let mut holder = std::process::Command::new(env!("CARGO_BIN_EXE_e2e-controlplane"))
        .args(["with", "--", "sh", "-c", &script])
        .spawn()
        .expect("starts");
    let text = until("the command to run", PATIENCE, || async {
        let text = std::fs::read_to_string(&report);
        Ok(text.map_or_else(|error| Seen::NotYet(error.to_string()), Seen::Yes))
    });
    let text = text.await.expect("the command runs");
    let (folder, sleeper) = text.trim().split_once(' ').expect("two words");
    let plane = Cluster::attach(folder.as_ref()).expect("described");
    assert_eq!(plane.pids().len(), 3);
    assert!(plane.pids().into_iter().all(|pid| test_kill_process(pid).is_ok()));
    // when it is killed without any chance to clean up
    holder.kill().expect("can be killed");
    holder.wait().expect("ends");
    // then every process of the control plane ends, and the folder goes
    let gone = until("nothing to be left", PATIENCE, || async {
        let left: Vec<_> = plane.pids().into_iter().filter(|pid| test_kill_process(*pid).is_ok()).collect();
        let all_gone = left.is_empty() && !plane.folder().path().exists();
        Ok(if all_gone { Seen::Yes(()) } else { Seen::NotYet(format!("{left:?}, {folder}")) })
    });
    gone.await.expect("nothing is left");
    let sleeper = sleeper.parse().ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(sleeper, Signal::KILL).expect("the command was ours");
    scratch.remove().expect("can be deleted");
}

#[tokio::test]
async fn a_shared_control_plane_hands_on_the_commands_exit_status() {
    if !enabled("a_shared_control_plane_hands_on_the_commands_exit_status") {
        return;
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
subjects: [{kind: ServiceAccount, name: reader, namespace: NAMESPACE}]
"#;

#[tokio::test]
async fn rights_are_checked_and_requests_are_counted() {
    if !enabled("rights_are_checked_and_requests_are_counted") {
        return;
    }
    // given an account that may read config maps in one namespace, and nothing else
    let cluster = cluster().await.expect("a cluster");
    let namespace = TemporaryNamespace::create(&cluster, "rights").await.expect("namespace");
    let text = READER.replace("NAMESPACE", namespace.name());
    manifests::apply_text(&cluster, namespace.name(), &text).await.expect("applies");
    let account = Account::of(&cluster, namespace.name(), "reader").await.expect("a token");
    let client = account.client().await.expect("client");
    let (maps, secrets): (Api<ConfigMap>, Api<Secret>) =
        (Api::namespaced(client.clone(), namespace.name()), Api::namespaced(client, namespace.name()));
    let log = AuditLog::of(&cluster).expect("our own cluster shows its log");
    // when it does what it may, twice, and what it may not, once
    let before = log.moment().await.expect("moment");
    maps.list(&ListParams::default()).await.expect("allowed");
    maps.list(&ListParams::default()).await.expect("allowed");
    let refused = secrets.list(&ListParams::default()).await.expect_err("not allowed");
    let after = log.moment().await.expect("moment");
    maps.list(&ListParams::default()).await.expect("allowed");
    // then the API server refused, and the log tells exactly this much between the two moments
    assert!(matches!(refused, kube::Error::Api(ref status) if status.is_forbidden()), "{refused}");
    let counted = log.requests(&account.user(), before, after).expect("counts");
    let counted: Vec<_> = counted.iter().map(|(request, times)| format!("{times} x {request}")).collect();
    assert_eq!(counted, ["2 x list configmaps -> 200", "1 x list secrets -> 403"]);
    let forbidden = log.forbidden(&account.user(), before, after).expect("counts");
    assert_eq!(forbidden.iter().map(ToString::to_string).collect::<Vec<_>>(), ["list secrets -> 403"]);
    namespace.finish(PATIENCE).await.expect("goes");
}

#[tokio::test]
async fn a_wait_that_fails_shows_what_was_there() {
    if !enabled("a_wait_that_fails_shows_what_was_there") {
        return;
    }
    // given an object that is not as wanted
    let cluster = cluster().await.expect("a cluster");
    let namespace = TemporaryNamespace::create(&cluster, "waits").await.expect("namespace");
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await.expect("client"), namespace.name());
    let map: ConfigMap =
        serde_json::from_value(serde_json::json!({"metadata": {"name": "it"}, "data": {"colour": "grey"}}))
            .expect("a config map");
    maps.create(&PostParams::default(), &map).await.expect("creates");
    // when somebody waits for it in vain
    let waited = e2e::wait_for(&maps, "it", "it to be green", Duration::from_millis(200), |_| false).await;
    // then the failure says what was wanted and what was there
    let failure = waited.expect_err("never green").to_string();
    assert!(failure.contains("it to be green") && failure.contains("colour: grey"), "{failure}");
    namespace.finish(PATIENCE).await.expect("goes");
}

#[tokio::test]
async fn a_controller_can_be_frozen_woken_killed_restarted_and_stopped() {
    if !enabled("a_controller_can_be_frozen_woken_killed_restarted_and_stopped") {
        return;
    }
    // given a running process with arguments and an environment
    let cluster = cluster().await.expect("a cluster");
    let launch = Launch::program(&cluster, "/bin/sh".into(), "ticker").expect("launch");
    let script = r#"trap 'exit 3' TERM; echo "$1 $WORD"; while :; do sleep 0.05; done"#;
    let mut ticker = launch.arg("-c").arg(script).arg("sh").arg("hello").env("WORD", "world").start().expect("starts");
    let says_hello = || ticker.log_tail(5).matches("hello world").count();
    wait_until("its first words", || says_hello() == 1).await;
    // when it is frozen, then it stands still until it is woken
    ticker.freeze().expect("freezes");
    wait_until("it to be frozen", || state(ticker.pid()) == 'T').await;
    ticker.unfreeze().expect("wakes");
    wait_until("it to go on", || state(ticker.pid()) != 'T').await;
    // when it is killed, then it is gone and its end is told with its log
    let first = ticker.pid();
    ticker.freeze().expect("freezes");
    ticker.kill().await.expect("killed although frozen");
    assert!(test_kill_process(first).is_err());
    let ended = ticker.must_run().expect_err("it has ended").to_string();
    assert!(ended.contains("ticker") && ended.contains("hello world"), "{ended}");
    // when it is restarted, then it is another process of the same kind
    ticker.restart().await.expect("restarts");
    assert_ne!(ticker.pid(), first);
    let says_hello = || ticker.log_tail(5).matches("hello world").count();
    wait_until("its first words again", || says_hello() == 2).await;
    // when it is asked to end, then it ends in its own way
    let status = ticker.stop(PATIENCE).await.expect("stops");
    assert_eq!(status.code(), Some(3));
}

#[tokio::test]
async fn a_leash_hands_on_the_exit_status_and_tells_the_end_of_the_log() {
    // given a program that ends by itself
    let scratch = e2e::folder::Folder::create("leash").expect("folder");
    let args = ["-c", "echo first; echo last >&2; exit 5"];
    let program = Program {
        name: "short".to_owned(),
        path: "/bin/sh".into(),
        args: args.map(Into::into).into(),
        log: scratch.file("log"),
        ..Program::default()
    };
    // when it has run
    let mut process = Leashed::start(&program).expect("starts");
    let status = process.wait(PATIENCE).await.expect("ends");
    // then its status and both of its outputs are known
    assert_eq!(status.code(), Some(5));
    let told = process.must_run().expect_err("it has ended").to_string();
    assert!(told.contains("first\nlast"), "{told}");
    scratch.remove().expect("can be deleted");
}

async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = until(what, PATIENCE, || {
        let seen = if holds() { Seen::Yes(()) } else { Seen::NotYet("not yet".to_owned()) };
        async { Ok(seen) }
    });
    waited.await.expect(what);
}

/// The kernel's word for what a process is doing: `T` is stopped.
fn state(pid: Pid) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?')
}
