//! Machines that Cluster API's own core makes, from a template and by hand: served on the emulated cloud, gone with their cluster.
use crate::stage::{PATIENCE, Stage, condition};
use crate::{seen, tell};
use e2e::patience::{Seen, dynamic_api, until};
use e2e::{Cluster, ControlPlane, Result, capi, manifests};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
const CORE: &str = "cluster.x-k8s.io/v1beta2";
/// Part of the emulator's scenery.
const BALANCER: &str = "1b000000-0000-4000-8000-000000000001";

const SMALL: &str = "{flavor: {filter: {name: m1.small}}, image: {filter: {name: cirros}}, tags: [node]}";

/// A cluster, a machine of its control plane by hand, and two workers that core makes from a template.
pub(crate) fn objects(machine: &str) -> String {
    format!(
        "
{{apiVersion: {INFRASTRUCTURE}, kind: OpenStackCluster, metadata: {{name: c}}, spec: {{identityRef: {{name: creds, cloudName: c}}, network: {{filter: {{name: private}}}}, tags: [cluster], controlPlaneEndpoint: {{host: 10.0.0.9, port: 6443}}}}}}
---
{{apiVersion: {CORE}, kind: Cluster, metadata: {{name: c}}, spec: {{infrastructureRef: {{apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackCluster, name: c}}}}}}
---
{{apiVersion: {INFRASTRUCTURE}, kind: OpenStackMachine, metadata: {{name: cp, labels: {{cluster.x-k8s.io/cluster-name: c, cluster.x-k8s.io/control-plane: ''}}}}, spec: {machine}}}
---
{{apiVersion: {CORE}, kind: Machine, metadata: {{name: cp, labels: {{cluster.x-k8s.io/cluster-name: c, cluster.x-k8s.io/control-plane: ''}}}}, spec: {{clusterName: c, failureDomain: nova, bootstrap: {{dataSecretName: boot}}, infrastructureRef: {{apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackMachine, name: cp}}}}}}
---
{{apiVersion: {INFRASTRUCTURE}, kind: OpenStackMachineTemplate, metadata: {{name: workers}}, spec: {{template: {{spec: {machine}}}}}}}
---
{{apiVersion: {CORE}, kind: MachineDeployment, metadata: {{name: workers}}, spec: {{clusterName: c, replicas: 2, selector: {{matchLabels: {{role: worker}}}}, template: {{metadata: {{labels: {{role: worker, cluster.x-k8s.io/cluster-name: c}}}}, spec: {{clusterName: c, bootstrap: {{dataSecretName: boot}}, infrastructureRef: {{apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackMachineTemplate, name: workers}}}}}}}}}}
"
    )
}

pub(crate) struct Core {
    pub(crate) machines: Api<DynamicObject>,
    pub(crate) ours: Api<DynamicObject>,
    pub(crate) clusters: Api<DynamicObject>,
    pub(crate) infrastructure: Api<DynamicObject>,
}
impl Core {
    pub(crate) async fn of(cluster: &Cluster, namespace: &str) -> Result<Self> {
        let client = cluster.client().await?;
        let api =
            |version: &str, kind: &str, plural: &str| dynamic_api(client.clone(), namespace, version, kind, plural);
        Ok(Core {
            machines: api(CORE, "Machine", "machines"),
            ours: api(INFRASTRUCTURE, "OpenStackMachine", "openstackmachines"),
            clusters: api(CORE, "Cluster", "clusters"),
            infrastructure: api(INFRASTRUCTURE, "OpenStackCluster", "openstackclusters"),
        })
    }
    /// Waits until core has taken over what is told of all its machines.
    pub(crate) async fn wait_provisioned(&self, count: usize, patience: Duration) -> Result<Vec<DynamicObject>> {
        until("all Machines provisioned", patience, || async {
            let all = self.machines.list(&ListParams::default()).await?.items;
            let done = |it: &&DynamicObject| {
                it.data["status"]["initialization"]["infrastructureProvisioned"] == true
                    && it.data["spec"]["providerID"].is_string()
                    && it.data["status"]["addresses"].as_array().is_some_and(|it| !it.is_empty())
            };
            let ready = all.iter().filter(done).count();
            if ready == count && all.len() == count {
                return Ok(Seen::Yes(all));
            }
            let ours = self.ours.list(&ListParams::default()).await?.items;
            let told: Vec<_> = ours.iter().map(|it| it.data["status"].to_string()).collect();
            Ok(Seen::NotYet(format!("{ready} of {}: {told:?}", all.len())))
        })
        .await
    }
}

#[tokio::test]
async fn cluster_api_makes_machines_and_nothing_of_them_is_left() {
    tell("cluster_api_makes_machines_and_nothing_of_them_is_left", story()).await;
}
async fn story() -> Result<()> {
    // given Cluster API's own core, and a cluster whose status names a load balancer that somebody made
    let plane = ControlPlane::start().await?;
    let cluster = plane.cluster();
    capi::install(cluster).await?;
    let stage = Stage::on(cluster, "machines").await?;
    let manager = capi::start_manager(cluster).await?;
    let mut controller = stage.start().await?;
    stage.secret("boot", &[("value", "#cloud-config")]).await?;
    let core = Core::of(cluster, stage.namespace()).await?;
    // when core makes machines
    manifests::apply_text(cluster, stage.namespace(), &objects(SMALL)).await?;
    let named = json!({"status": {"apiServerLoadBalancer": {"id": BALANCER, "name": "api"}}});
    core.infrastructure.patch_status("c", &PatchParams::default(), &Patch::Merge(named)).await?;
    let machines = core.wait_provisioned(3, PATIENCE).await?;
    // then each is an instance, known to core by its id, addresses and failure domain
    let servers = stage.living("server").await?;
    assert_eq!(servers.len(), 3);
    for machine in &machines {
        let provider = machine.data["spec"]["providerID"].as_str().unwrap_or_default();
        assert!(servers.iter().any(|it| provider == format!("openstack:///{}", it.id)), "{provider}");
        let addresses = machine.data["status"]["addresses"].to_string();
        assert!(addresses.contains("InternalIP") && addresses.contains("InternalDNS"), "{addresses}");
    }
    for server in &servers {
        assert_eq!(server.fields["tags"], json!(["cluster", "node"]), "tags of cluster and machine");
        assert_eq!(server.fields["OS-EXT-SRV-ATTR:user_data"], json!("I2Nsb3VkLWNvbmZpZw=="), "the bootstrap data");
    }
    let plane_machine =
        e2e::wait_for_object(&core.ours, "cp", "the control plane machine to be ready", PATIENCE, |it| {
            condition(it, "Ready").is_some_and(|it| it.0 == "True")
        })
        .await?;
    let status = &plane_machine.data["status"];
    assert_eq!((&status["initialization"]["provisioned"], &status["ready"]), (&json!(true), &json!(true)));
    assert_eq!(status["failureDomain"], "nova");
    assert_eq!(condition(&plane_machine, "InstanceReady").map(|it| it.0), Some("True"));
    // and core knows where machines can stand
    let known = core.clusters.get("c").await?;
    assert_eq!(known.data["status"]["failureDomains"], json!([{"name": "nova", "controlPlane": true}]));
    // and the machine of the control plane, alone, stands behind the load balancer
    let members = stage.living("member").await?;
    assert_eq!(members.len(), 1, "{members:?}");
    let port = stage.living("port").await?.into_iter().find(|it| it.fields["name"] == "cp-0");
    let address = port.map(|it| it.fields["fixed_ips"][0]["ip_address"].clone()).unwrap_or_default();
    assert_eq!((&members[0].fields["address"], &members[0].fields["protocol_port"]), (&address, &json!(6443)));
    // when a server object is deleted under a machine, then no other instance takes its place
    let worker = machines.iter().filter_map(|it| it.metadata.name.clone()).find(|it| it != "cp").unwrap_or_default();
    stage.delete(&worker).await?;
    e2e::wait_for_object(&core.ours, &worker, "to be lost", PATIENCE, |it| {
        condition(it, "InstanceReady").is_some_and(|it| it.1 == "InstanceNotFound")
    })
    .await?;
    assert_eq!(stage.living("server").await?.len(), 2);
    // when the cluster is deleted, then so is everything, the member before its server
    core.clusters.delete("c", &DeleteParams::default()).await?;
    e2e::wait_until_gone(&core.clusters, "c", PATIENCE).await?;
    assert!(core.ours.list(&ListParams::default()).await?.items.is_empty());
    assert!(core.infrastructure.list(&ListParams::default()).await?.items.is_empty());
    let left = stage.ours().await?;
    assert!(left.is_empty(), "{left:?}");
    let calls = stage.emulator.calls(&[("mutating", "true")]).await?;
    let instance = status["instanceID"].clone();
    let at = |wanted: &dyn Fn(&serde_json::Value) -> bool| {
        calls["calls"].as_array().into_iter().flatten().position(|it| it["verb"] == "delete" && wanted(it))
    };
    let (member, server) = (at(&|it| it["kind"] == "members"), at(&|it| it["thing"] == instance));
    assert!(member.is_some() && member < server, "the member goes at {member:?}, its server at {server:?}");
    let made = stage.things().await?.iter().filter(|it| it.is_ours()).count();
    seen(&format!(
        "Cluster API's core made 3 machines: {made} things made, each Machine with its providerID and addresses, none left"
    ));
    controller.must_run()?;
    controller.kill().await?;
    stage.clear().await?;
    manager.stop().await?;
    plane.stop().await
}
