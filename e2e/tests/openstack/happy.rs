//! The main road: apply, ready, delete, gone; with the shipped rights and no more.
use crate::stage::{BINARY, Stage, condition, full};
use crate::{seen, tell_alone};
use e2e::{AuditLog, Result, binaries, process};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn servers_become_ready_and_go_and_a_strangers_server_stays() {
    tell_alone("servers_become_ready_and_go_and_a_strangers_server_stays", road()).await;
}

async fn road() -> Result<()> {
    // given a running controller, and a stranger's server
    let stage = Stage::set("happy").await?;
    let log = AuditLog::of(&stage.cluster)?;
    let before = log.moment().await?;
    let mut controller = stage.start().await?;
    let planted = json!({"kind": "server", "fields": {"name": "other", "metadata": {}}});
    let stranger = stage.emulator.plant(&planted).await?["id"].as_str().unwrap_or_default().to_owned();
    // when two servers are applied
    for name in ["web", "db"] {
        stage.create(name, &full()).await?;
    }
    // then they become ready
    for name in ["web", "db"] {
        let object = stage.wait_ready(name).await?;
        for absent in ["Failed", "Stalled", "Reconciling"] {
            assert_eq!(condition(&object, absent), None, "{}", object.data["status"]);
        }
        assert_eq!(condition(&object, "InstanceReady").map(|it| it.0), Some("True"));
        let status = &object.data["status"];
        assert_eq!(status["resources"]["ports"].as_array().map(Vec::len), Some(2), "{status}");
        assert_eq!(status["instanceState"], "ACTIVE");
        assert_eq!(object.metadata.finalizers.clone().unwrap_or_default(), ["custody.dev/openstack"]);
    }
    stage.wait_for_rest(6).await?;
    let server = &stage.living("server").await?.into_iter().find(|it| it.fields["name"] == "web");
    assert!(server.as_ref().is_some_and(|it| it.fields["tags"] == json!(["blue"])), "{server:?}");
    // and a plan has nothing to say
    let program = binaries::ours(BINARY)?;
    let kubeconfig = format!("--kubeconfig={}", stage.account.kubeconfig().display());
    let namespace = format!("--namespace={}", stage.namespace());
    process::output(&program, ["plan", kubeconfig.as_str(), namespace.as_str()]).await?;
    // when they are deleted, then everything of theirs goes, and the stranger's server stays
    stage.delete_all().await?;
    let left: Vec<_> = stage.things().await?.into_iter().filter(crate::stage::Thing::exists).map(|it| it.id).collect();
    assert_eq!(left, [stranger]);
    // and in all that time nothing was asked for that the shipped role does not allow
    let ended = controller.stop(Duration::from_secs(20)).await?;
    assert!(ended.success(), "{ended}\n{}", controller.log_tail(20));
    let forbidden = log.forbidden(&stage.account.user(), before, log.moment().await?)?;
    assert!(forbidden.is_empty(), "{forbidden:?}");
    let calls = stage.emulator.count_calls(&[]).await?;
    let writes = stage.emulator.count_calls(&[("effect", "true")]).await?;
    seen(&format!(
        "2 servers with 2 ports, a trunk and 2 volumes each, made and deleted: {calls} calls, {writes} of them writes"
    ));
    stage.clear().await
}
