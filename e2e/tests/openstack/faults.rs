//! What goes wrong is said where people look, and mended without a restart.
use crate::stage::{PATIENCE, Stage, condition, spec};
use crate::tell;
use e2e::Result;
use kube::api::{Patch, PatchParams};
use serde_json::json;

#[tokio::test]
async fn missing_things_are_named_and_waited_for() {
    tell("missing_things_are_named_and_waited_for", missing()).await;
}
async fn missing() -> Result<()> {
    let stage = Stage::set("missing").await?;
    let mut controller = stage.start().await?;
    // given servers whose credentials, user data or names are not there
    stage.create("no-data", &spec(&json!({"userDataRef": {"name": "data"}}))).await?;
    stage.create("no-creds", &spec(&json!({"identityRef": {"name": "later", "cloudName": "c"}}))).await?;
    stage.create("no-cloud", &spec(&json!({"identityRef": {"name": "creds", "cloudName": "other"}}))).await?;
    stage.create("no-image", &spec(&json!({"image": {"filter": {"name": "nothing"}}}))).await?;
    // then each says what it lacks, and nothing is made
    stage.wait_said("no-data", "InstanceReady", "data is not there").await?;
    stage.wait_said("no-creds", "OpenStackAuthenticationSucceeded", "later is not there").await?;
    stage.wait_said("no-cloud", "OpenStackAuthenticationSucceeded", "\"other\" is not in clouds.yaml").await?;
    stage.wait_said("no-image", "InstanceReady", "False/DependencyFailed: no image matches").await?;
    assert!(stage.ours().await?.is_empty());
    // when they come, then the servers come, without a restart
    stage.secret("data", &[("value", "#cloud-config")]).await?;
    stage.secret("later", &[("clouds.yaml", &stage.clouds("the-controllers-own-secret"))]).await?;
    stage.wait_ready("no-data").await?;
    stage.wait_ready("no-creds").await?;
    stage.delete_all().await?;
    controller.kill().await?;
    stage.clear().await
}

#[tokio::test]
async fn quotas_errors_and_lost_servers_are_told_in_the_clouds_words() {
    tell("quotas_errors_and_lost_servers_are_told_in_the_clouds_words", told()).await;
}
async fn told() -> Result<()> {
    let stage = Stage::set("told").await?;
    let mut controller = stage.start().await?;
    // given no room for a server
    stage.behave(&json!({"quotas": {"servers": 0}})).await?;
    stage.create("full", &spec(&json!({}))).await?;
    let object = stage
        .wait_said("full", "InstanceReady", "False/QuotaExceeded: forbidden: Quota exceeded for instances")
        .await?;
    assert!(
        condition(&object, "InstanceReady").is_some_and(|it| it.2.contains("request req-")),
        "{}",
        object.data["status"]
    );
    assert_eq!(condition(&object, "Failed"), None, "a quota can be raised");
    stage.behave(&json!({})).await?;
    stage.wait_ready("full").await?;
    // given no room for a volume, which Cinder says as if it were asked too often
    stage.behave(&json!({"quotas": {"volumes": 0}})).await?;
    stage.create("volume", &spec(&json!({"rootVolume": {"sizeGiB": 1}}))).await?;
    let object = stage
        .wait_said("volume", "InstanceReady", "False/QuotaExceeded: overLimit: VolumeLimitExceeded: Maximum number")
        .await?;
    assert!(condition(&object, "InstanceReady").is_some_and(|it| it.2.contains("request req-")));
    stage.behave(&json!({})).await?;
    stage.wait_ready("volume").await?;
    // given a server that Nova gives up on
    let failure = json!({"kind": "server", "reason": "No valid host was found.", "times": 1});
    stage.emulator.admin(reqwest::Method::POST, "failures", &[], Some(&failure)).await?;
    stage.create("broken", &spec(&json!({}))).await?;
    stage.wait_said("broken", "Failed", "True/NoValidHost").await?;
    // given a server that somebody deletes
    let object = stage.wait_ready("full").await?;
    let id = object.data["status"]["instanceID"].as_str().unwrap_or_default().to_owned();
    stage.emulator.delete_by_hand(&id).await?;
    stage.touch("full").await?;
    let object = stage.wait_said("full", "Failed", "True/InstanceNotFound").await?;
    assert_eq!(condition(&object, "Ready").map(|it| it.0), Some("True"), "Ready is never lowered");
    assert_eq!(object.data["status"]["ready"], false);
    let servers = stage.living("server").await?;
    assert!(servers.iter().all(|it| it.fields["name"] != "full"), "it is not made again: {servers:?}");
    // given credentials that are taken away and given back
    stage.emulator.revoke("openstack-controller").await?;
    stage.emulator.retag_by_hand("tokens", &json!({})).await?;
    stage.create("shut-out", &spec(&json!({}))).await?;
    stage.wait_said("shut-out", "OpenStackAuthenticationSucceeded", "False/OpenStackAuthenticationFailed").await?;
    stage.emulator.admit("openstack-controller", "the-controllers-own-secret").await?;
    stage.wait_ready("shut-out").await?;
    stage.delete_all().await?;
    controller.kill().await?;
    stage.clear().await
}

#[tokio::test]
async fn a_deleted_namespace_keeps_its_credentials_until_its_servers_are_gone() {
    tell("a_deleted_namespace_keeps_its_credentials_until_its_servers_are_gone", ended()).await;
}
async fn ended() -> Result<()> {
    let stage = Stage::set("ended").await?;
    let mut controller = stage.start().await?;
    stage.create("srv", &spec(&json!({}))).await?;
    stage.wait_ready("srv").await?;
    // when the whole namespace goes, then so does everything in the cloud, and the namespace is not held up
    let things = stage.ours().await?.len();
    assert_eq!(things, 2);
    let left = stage.end_namespace().await?;
    assert!(left.is_empty(), "{left:?}");
    controller.kill().await
}

#[tokio::test]
async fn credentials_are_kept_for_objects_that_another_process_serves() {
    tell("credentials_are_kept_for_objects_that_another_process_serves", shared()).await;
}
async fn shared() -> Result<()> {
    let stage = Stage::set("shared").await?;
    stage.behave(&json!({"deletion": {"servers": {"fixed_ms": 8000}}})).await?;
    // given two processes, of which one serves nothing in the namespace
    let filtered =
        |name: &str| stage.launch(name)?.arg("--leader-elect=false").arg(format!("--watch-filter={name}")).start();
    let (mut busy, mut idle) = (filtered("busy")?, filtered("idle")?);
    busy.wait_ready(PATIENCE).await?;
    idle.wait_ready(PATIENCE).await?;
    stage.create("srv", &spec(&json!({}))).await?;
    let label = json!({"metadata": {"labels": {"cluster.x-k8s.io/watch-filter": "busy"}}});
    stage.servers.patch("srv", &PatchParams::default(), &Patch::Merge(label)).await?;
    stage.wait_ready("srv").await?;
    stage.wait_finalizers("creds", &["custody.dev/openstack-credentials"]).await?;
    // when the namespace goes, then its credentials are there for as long as the busy one needs them
    let left = stage.end_namespace().await?;
    assert!(left.is_empty(), "{left:?}");
    busy.kill().await?;
    idle.kill().await
}
