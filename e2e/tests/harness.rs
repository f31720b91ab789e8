//! The harness, proved on itself: what it promises to the tests that stand on it.
use e2e::{ControlPlane, enabled};

#[tokio::test]
async fn a_control_plane_starts_serves_and_leaves_nothing_behind() {
    if !enabled("a_control_plane_starts_serves_and_leaves_nothing_behind") {
        return;
    }
    // given a running control plane
    let plane = ControlPlane::start().await.expect("starts");
    let (pids, folder) = (plane.pids(), plane.cluster().folder());
    // when its administrator asks for its version
    let version = plane.cluster().client().await.expect("client").apiserver_version().await.expect("version");
    // then it names the one it was built from
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"), "{}", version.git_version);
    // and when it is stopped, no process and no file is left
    plane.stop().await.expect("stops");
    for pid in pids {
        assert!(rustix::process::test_kill_process(pid).is_err(), "pid {} is still there", pid.as_raw_nonzero());
    }
    assert!(!folder.path().exists());
}
