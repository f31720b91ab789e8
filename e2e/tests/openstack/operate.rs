//! What people run by hand: plan, audit, doctor, release, with their exit statuses.
use crate::bastion::{Clusters, bastion};
use crate::stage::{BINARY, PATIENCE, Stage, spec};
use crate::{seen, tell_alone};
use e2e::{Error, Result, binaries};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

/// Exit status and output of a subcommand, run with the shipped rights or with an administrator's.
async fn run(stage: &Stage, kubeconfig: &std::path::Path, arguments: &[&str]) -> Result<(i32, String)> {
    let mut command = tokio::process::Command::new(binaries::ours(BINARY)?);
    command.args(arguments).arg(format!("--kubeconfig={}", kubeconfig.display()));
    if arguments[0] != "audit" {
        command.arg(format!("--namespace={}", stage.namespace()));
    }
    let output = command.output().await.map_err(Error::other)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((output.status.code().unwrap_or(-1), text))
}

#[tokio::test]
async fn plan_audit_doctor_and_release_say_what_is_and_what_would_be() {
    tell_alone("plan_audit_doctor_and_release_say_what_is_and_what_would_be", story()).await;
}
async fn story() -> Result<()> {
    let stage = Stage::set("operate").await?;
    let (shipped, admin) = (stage.account.kubeconfig().to_owned(), stage.cluster.kubeconfig().to_owned());
    // given a server that nobody serves yet, then a plan shows what would be made, and makes nothing
    stage.secret("data", &[("value", "top secret")]).await?;
    stage.create("web", &spec(&json!({"userDataRef": {"name": "data"}, "rootVolume": {"sizeGiB": 1}}))).await?;
    let (code, text) = run(&stage, &shipped, &["plan"]).await?;
    assert_eq!(code, 2, "{text}");
    for wanted in ["port-0", "volume-root", "server"] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    let (_, whole) = run(&stage, &shipped, &["plan", "-o=json"]).await?;
    assert!(!whole.contains("dG9wIHNlY3JldA"), "user data is somebody's secret: {whole}");
    assert_eq!(stage.emulator.count_calls(&[("mutating", "true")]).await?, 0);
    // and what the quota does not allow
    stage.behave(&json!({"quotas": {"ports": 0}})).await?;
    let (code, text) = run(&stage, &shipped, &["plan"]).await?;
    assert!(code == 2 && text.contains("quota of ports: 0 of 0 used, 1 more would be made"), "{code}: {text}");
    stage.behave(&json!({"quotas": {"cores": 0, "gigabytes": 0}})).await?;
    let (_, text) = run(&stage, &shipped, &["plan"]).await?;
    for short in ["quota of cores: 0 of 0 used, 1 more", "quota of gigabytes of volumes: 0 of 0 used, 1 more"] {
        assert!(text.contains(short), "{text}");
    }
    assert!(!text.contains("quota of ports"), "{text}");
    stage.behave(&json!({})).await?;
    // and what would be adopted
    let private = "7e700000-0000-4000-8000-000000000001";
    let planted = json!({"kind": "port", "fields": {"name": "old-0", "network_id": private, "fixed_ips": []}});
    let port = stage.emulator.plant(&planted).await?["id"].clone();
    let planted = json!({"kind": "server", "fields": {"name": "old", "plugged": [port]}});
    let server = stage.emulator.plant(&planted).await?["id"].as_str().unwrap_or_default().to_owned();
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
        "metadata": {"name": "old", "annotations": {"custody.dev/adopt-from": "capo"}}, "spec": spec(&json!({}))});
    let object = serde_json::from_value(object).map_err(Error::other)?;
    stage.servers.create(&PostParams::default(), &object).await?;
    let (code, text) = run(&stage, &shipped, &["plan"]).await?;
    assert!(code == 2 && text.contains(&server), "{code}: {text}");
    // given a controller, then there is nothing to plan, nothing orphaned, nothing wrong
    let mut controller = stage.start().await?;
    stage.wait_ready("web").await?;
    stage.wait_ready("old").await?;
    let clusters = Clusters::of(&stage).await?;
    clusters.create("c", &bastion("m1.small")).await?;
    clusters.wait_bastion("c", |it| it["floatingIP"].is_string()).await?;
    let (code, text) = run(&stage, &shipped, &["plan"]).await?;
    assert_eq!((code, text.trim().lines().count()), (0, 1), "nothing but its heads: {text}");
    let (code, text) = run(&stage, &admin, &["audit"]).await?;
    assert_eq!(code, 0, "the floating IP of a bastion has an owner: {text}");
    let (code, text) = run(&stage, &shipped, &["doctor"]).await?;
    assert_eq!(code, 0, "{text}");
    // when the rights to the cloud are gone, then the doctor says so
    stage.secret("creds", &[("clouds.yaml", &stage.clouds("wrong"))]).await?;
    let (code, text) = run(&stage, &shipped, &["doctor"]).await?;
    assert!(code == 1 && text.contains("not accepted"), "{code}: {text}");
    stage.secret("creds", &[("clouds.yaml", &stage.clouds("the-controllers-own-secret"))]).await?;
    clusters.gone("c").await?;
    // when a server is lost without us, then an audit names what it left
    controller.kill().await?;
    // on a cloud without block storage and trunks there is the rest to look at
    stage.behave(&json!({"lacks": ["block-storage", "trunk"]})).await?;
    let (code, text) = run(&stage, &admin, &["audit"]).await?;
    assert_eq!(code, 0, "{text}");
    let (code, text) = run(&stage, &shipped, &["doctor"]).await?;
    assert!(code == 0 && text.contains("has no volumes") && text.contains("has no trunks"), "{code}: {text}");
    stage.behave(&json!({})).await?;
    let stripped = json!({"metadata": {"finalizers": null}});
    let lost = stage.servers.get("old").await?;
    stage.servers.patch("old", &PatchParams::default(), &Patch::Merge(stripped)).await?;
    stage.delete("old").await?;
    e2e::wait_until_gone(&stage.servers, "old", PATIENCE).await?;
    let (code, text) = run(&stage, &admin, &["audit"]).await?;
    assert!(code == 3 && text.contains(lost.data["status"]["instanceID"].as_str().unwrap_or("none")), "{code}: {text}");
    // when one that lives is to be released, then that is refused
    let before = stage.ours().await?.len();
    let (code, text) = run(&stage, &admin, &["release", "--name=web"]).await?;
    assert_eq!(code, 1, "{text}");
    // when it is paused and deleted, after the controller is gone, then it lets go of everything, and everything stays
    let paused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}});
    stage.servers.patch("web", &PatchParams::default(), &Patch::Merge(paused)).await?;
    stage.delete("web").await?;
    let (code, text) = run(&stage, &admin, &["release", "--name=web"]).await?;
    assert!(code == 0 && text.contains("server"), "{code}: {text}");
    e2e::wait_until_gone(&stage.servers, "web", PATIENCE).await?;
    assert_eq!(stage.ours().await?.len(), before);
    stage.wait_finalizers("creds", &[]).await?;
    seen(
        "plan 2 with creates, adoptions and quotas, then 0; audit 0, then 3 with the orphan; doctor 0, then 1; release leaves all things and no finalizer, not even on credentials",
    );
    stage.clear().await
}
