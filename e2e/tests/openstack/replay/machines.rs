//! Cases 53, 75, 77, 78: machines and what Cluster API says of them. The test plays Cluster API's core, so that each of its moments can be
//! held as long as it takes to look at it; `machine` has the real one.
use super::{id_of, said};
use crate::machine::Core;
use crate::stage::{PATIENCE, Stage, spec};
use crate::tell;
use e2e::{ControlPlane, Error, Result, capi, manifests};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// As [`super::play`], on a control plane of its own that has Cluster API's kinds, and nobody who serves them.
async fn play(name: &str, story: impl AsyncFnOnce(&Stage, &Core) -> Result<()>) {
    tell(name, async {
        let plane = ControlPlane::start().await?;
        capi::install(plane.cluster()).await?;
        let stage = Stage::on(plane.cluster(), name.split("__").next().unwrap_or(name)).await?;
        let mut controller = stage.start().await?;
        story(&stage, &Core::of(plane.cluster(), stage.namespace()).await?).await?;
        stage.delete_all().await?;
        controller.must_run()?;
        controller.kill().await?;
        stage.clear().await?;
        plane.stop().await
    })
    .await;
}
pub(crate) fn cluster(name: &str, paused: bool) -> String {
    format!(
        "{{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {{name: {name}}}, spec: {{paused: {paused}, \
         infrastructureRef: {{apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackCluster, name: {name}}}}}}}"
    )
}
const INFRASTRUCTURE: &str = "{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: OpenStackCluster, metadata: {name: c}, \
    spec: {identityRef: {name: creds, cloudName: c}, network: {filter: {name: private}}}}";

/// A Machine whose bootstrap data is still being made.
fn node(name: &str) -> String {
    format!(
        "{{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, metadata: {{name: {name}, labels: {{cluster.x-k8s.io/cluster-name: c}}}}, spec: {{clusterName: c, \
         bootstrap: {{configRef: {{apiGroup: bootstrap.cluster.x-k8s.io, kind: Config, name: {name}}}}}, \
         infrastructureRef: {{apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackMachine, name: {name}}}}}}}"
    )
}
/// Makes a Machine and the OpenStackMachine that it owns, with these fields beside the least that is needed.
pub(crate) async fn machine(stage: &Stage, core: &Core, name: &str, fields: Value) -> Result<()> {
    manifests::apply_text(&stage.cluster, stage.namespace(), &node(name)).await?;
    let uid = core.machines.get(name).await?.metadata.uid.unwrap_or_default();
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": uid, "controller": true});
    let labels = json!({"cluster.x-k8s.io/cluster-name": "c"});
    let mut object: Value = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachine",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {"flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "cirros"}}}});
    if let (Some(spec), Value::Object(fields)) = (object["spec"].as_object_mut(), fields) {
        spec.extend(fields);
    }
    manifests::apply_text(&stage.cluster, stage.namespace(), &object.to_string()).await
}
/// Bootstrap data is there.
pub(crate) async fn boot(core: &Core, name: &str) -> Result<()> {
    let patch = json!({"spec": {"bootstrap": {"configRef": null, "dataSecretName": "boot"}}});
    core.machines.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
pub(crate) async fn told(core: &Core, name: &str, kind: &str, text: &str) -> Result<DynamicObject> {
    let what = format!("{name} to say {text:?} in {kind}");
    e2e::wait_for_object(&core.ours, name, &what, PATIENCE, |it| said(it, kind).contains(text)).await
}

#[tokio::test]
async fn case_53__a_paused_cluster_holds_its_own_servers_and_no_others() {
    play("case53b__a_paused_cluster_holds_its_own_servers_and_no_others", async |stage, core| {
        let both = format!("{}\n---\n{}", cluster("c", true), cluster("d", false));
        manifests::apply_text(&stage.cluster, stage.namespace(), &both).await?;
        for (name, of) in [("one", "c"), ("two", "c"), ("other", "d")] {
            let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
                "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": of}}, "spec": spec(&json!({}))});
            let object: DynamicObject = serde_json::from_value(object).map_err(Error::other)?;
            stage.servers.create(&kube::api::PostParams::default(), &object).await?;
        }
        stage.wait_ready("other").await?;
        for name in ["one", "two"] {
            stage.wait_said(name, "Paused", "True/").await?;
        }
        let made: Vec<_> = stage.living("server").await?.into_iter().map(|it| it.fields["name"].clone()).collect();
        assert_eq!(made, [json!("other")]);
        // when it goes on, then with all of its servers
        let unpaused = json!({"spec": {"paused": null}});
        core.clusters.patch("c", &PatchParams::default(), &Patch::Merge(unpaused)).await?;
        for name in ["one", "two"] {
            stage.wait_ready(name).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn case_75_77_78__a_machine_waits_is_told_of_as_it_is_and_goes_after_its_server() {
    play("case75__a_machine_waits_is_told_of_as_it_is_and_goes_after_its_server", async |stage, core| {
        stage.secret("boot", &[("value", "#cloud-config")]).await?;
        // given a cluster whose network cannot be read, then its machine waits for it
        let broken = json!({"match": {"kind": "networks"}, "action": {"status": {"status": 500}}});
        stage.emulator.add_faults(&broken).await?;
        let all = format!("{}\n---\n{INFRASTRUCTURE}", cluster("c", false));
        manifests::apply_text(&stage.cluster, stage.namespace(), &all).await?;
        machine(stage, core, "m", json!({})).await?;
        machine(stage, core, "lost", json!({"image": {"filter": {"name": "nothing"}}})).await?;
        told(core, "m", "InstanceReady", "False/WaitingForClusterInfrastructure").await?;
        // then for its bootstrap data
        stage.emulator.clear_faults().await?;
        told(core, "m", "InstanceReady", "False/WaitingForBootstrapData").await?;
        assert!(stage.servers.list(&ListParams::default()).await?.items.is_empty());
        // when both are there, then it has one server, is known by its id, and provisioned
        boot(core, "m").await?;
        let object = told(core, "m", "Ready", "True/").await?;
        let server = stage.wait_ready("m").await?;
        assert_eq!(object.data["spec"]["providerID"], json!(format!("openstack:///{}", id_of(&server))));
        assert_eq!(object.data["status"]["initialization"]["provisioned"], true);
        assert_eq!(stage.emulator.count_calls(&[("kind", "servers"), ("verb", "create")]).await?, 1);
        // one whose image is not there says what its server says
        boot(core, "lost").await?;
        told(core, "lost", "InstanceReady", "False/DependencyFailed: no image matches").await?;
        // when the instance is stopped, then that is not known to be an end; an error is one, in the cloud's words
        let id = id_of(&server);
        stage.emulator.retag_by_hand(&id, &json!({"set": {"!status": "SHUTOFF"}})).await?;
        stage.touch("m").await?;
        told(core, "m", "InstanceReady", "Unknown/").await?;
        stage.emulator.retag_by_hand(&id, &json!({"set": {"!status": "ERROR"}})).await?;
        stage.touch("m").await?;
        told(core, "m", "InstanceReady", "False/InstanceStateError").await?;
        let object = told(core, "m", "Ready", "False/").await?;
        assert!(said(&object, "Ready").contains("is in ERROR"), "{}", said(&object, "Ready"));
        assert_eq!(object.data["status"]["initialization"]["provisioned"], true, "there was a machine once");
        stage.emulator.retag_by_hand(&id, &json!({"remove": ["!status"]})).await?;
        stage.touch("m").await?;
        told(core, "m", "Ready", "True/").await?;
        // when the credentials of its cluster are replaced, then its server has the new ones
        stage.secret("newer", &[("clouds.yaml", &stage.clouds("the-controllers-own-secret"))]).await?;
        let patch = json!({"spec": {"identityRef": {"name": "newer", "cloudName": "c"}}});
        core.infrastructure.patch("c", &PatchParams::default(), &Patch::Merge(patch)).await?;
        stage.wait("m", "to have the new credentials", |it| it.data["spec"]["identityRef"]["name"] == "newer").await?;
        // when it is deleted, then its finalizer stays until the server is gone
        stage.behave(&json!({"deletion": {"servers": {"fixed_ms": 4000}}})).await?;
        for name in ["m", "lost"] {
            core.ours.delete(name, &DeleteParams::default()).await?;
        }
        stage.wait("m", "to be going", |it| it.metadata.deletion_timestamp.is_some()).await?;
        told(core, "m", "InstanceReady", "False/Deleting").await?;
        for name in ["m", "lost"] {
            e2e::wait_until_gone(&core.ours, name, PATIENCE).await?;
            assert!(stage.servers.get_opt(name).await?.is_none(), "{name} goes after its server");
        }
        let left = stage.ours().await?;
        assert!(left.is_empty(), "{left:?}");
        core.infrastructure.delete("c", &DeleteParams::default()).await?;
        e2e::wait_until_gone(&core.infrastructure, "c", PATIENCE).await
    })
    .await;
}
