//! The bastion of a cluster: made, replaced with the same address, removed, and gone with its cluster.
use crate::stage::{PATIENCE, Stage, condition};
use crate::{seen, tell};
use e2e::patience::dynamic_api;
use e2e::{Error, Result};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

pub(crate) struct Clusters(Api<DynamicObject>);
impl Clusters {
    pub(crate) async fn of(stage: &Stage) -> Result<Self> {
        Ok(Clusters(dynamic_api(
            stage.cluster.client().await?,
            stage.namespace(),
            API_VERSION,
            "OpenStackCluster",
            "openstackclusters",
        )))
    }
    pub(crate) async fn create(&self, name: &str, fields: &Value) -> Result<()> {
        self.create_with(json!({ "name": name }), fields).await
    }
    /// One that the Go provider holds.
    pub(crate) async fn create_of_capo(&self, name: &str, fields: &Value) -> Result<()> {
        let finalizers = ["openstackcluster.infrastructure.cluster.x-k8s.io"];
        self.create_with(json!({"name": name, "finalizers": finalizers}), fields).await
    }
    pub(crate) async fn get(&self, name: &str) -> Result<DynamicObject> {
        Ok(self.0.get(name).await?)
    }
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        self.0.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }
    pub(crate) async fn wait_gone(&self, name: &str) -> Result<()> {
        e2e::wait_until_gone(&self.0, name, PATIENCE).await
    }
    /// Deletes one and waits until it is gone.
    pub(crate) async fn gone(&self, name: &str) -> Result<()> {
        self.delete(name).await?;
        self.wait_gone(name).await
    }
    #[allow(clippy::needless_pass_by_value)] // json!s are written in place
    async fn create_with(&self, metadata: Value, fields: &Value) -> Result<()> {
        let mut spec = json!({"identityRef": {"name": "creds", "cloudName": "c"}, "network": {"filter": {"name": "private"}}, "tags": ["cluster"]});
        if let (Some(spec), Some(fields)) = (spec.as_object_mut(), fields.as_object()) {
            spec.extend(fields.clone());
        }
        let object = json!({"apiVersion": API_VERSION, "kind": "OpenStackCluster", "metadata": metadata, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).map_err(Error::other)?;
        self.0.create(&PostParams::default(), &object).await?;
        Ok(())
    }
    pub(crate) async fn patch(&self, name: &str, patch: &Value) -> Result<()> {
        self.0.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
    /// As another provider, or a person, would write it.
    pub(crate) async fn patch_status(&self, name: &str, status: &Value) -> Result<()> {
        self.0.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({ "status": status }))).await?;
        Ok(())
    }
    pub(crate) async fn wait(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        e2e::wait_for_object(&self.0, name, &format!("{name} {what}"), PATIENCE, wanted).await
    }
    pub(crate) async fn wait_bastion(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Result<DynamicObject> {
        let ready = |object: &DynamicObject| condition(object, "BastionReady").is_some_and(|it| it.0 == "True");
        self.wait(name, "to have its bastion", |object| ready(object) && wanted(&object.data["status"]["bastion"]))
            .await
    }
}
pub(crate) fn bastion(flavor: &str) -> Value {
    json!({"bastion": {"spec": {"flavor": {"filter": {"name": flavor}}, "image": {"filter": {"name": "cirros"}}, "sshKeyName": "key"}}})
}

#[tokio::test]
async fn a_bastion_is_made_replaced_with_its_address_and_removed() {
    tell("a_bastion_is_made_replaced_with_its_address_and_removed", story()).await;
}
async fn story() -> Result<()> {
    let stage = Stage::set("bastion").await?;
    let mut controller = stage.start().await?;
    let clusters = Clusters::of(&stage).await?;
    // given a cluster without a bastion, then it is ready by its network alone
    clusters.create("plain", &json!({})).await?;
    let plain =
        clusters.wait("plain", "to be ready", |it| condition(it, "Ready").is_some_and(|it| it.0 == "True")).await?;
    assert_eq!(plain.data["status"]["initialization"]["provisioned"], true);
    assert_eq!(plain.data["status"]["network"]["id"], "7e700000-0000-4000-8000-000000000001");
    assert_eq!(condition(&plain, "APIEndpointReady").map(|it| (it.0, it.1)), Some(("False", "EndpointNotGiven")));
    // given one with what is not made here, then that is said
    clusters.create("managed", &json!({"managedSubnets": [{"cidr": "10.0.0.0/24"}]})).await?;
    clusters
        .wait("managed", "to be refused", |it| {
            condition(it, "Ready").is_some_and(|it| it.1 == "NotSupported" && it.2.contains("managedSubnets"))
        })
        .await?;
    // when a bastion is asked for
    clusters.create("c", &bastion("m1.small")).await?;
    let object = clusters.wait_bastion("c", |it| it["floatingIP"].is_string() && it["id"].is_string()).await?;
    // then it has a server of the cluster's own, with its tags and network, and an address
    let first = object.data["status"]["bastion"].clone();
    assert_eq!(
        (&first["name"], &first["state"], &first["sshKeyName"]),
        (&json!("c-bastion"), &json!("ACTIVE"), &json!("key"))
    );
    let server = stage.servers.get("c-bastion").await?;
    assert_eq!(
        server.metadata.owner_references.as_ref().and_then(|it| it.first()).map(|it| it.kind.as_str()),
        Some("OpenStackCluster")
    );
    assert_eq!(server.data["spec"]["tags"], json!(["cluster"]));
    let addresses = stage.living("fip").await?;
    assert_eq!((addresses.len(), &addresses[0].fields["floating_ip_address"]), (1, &first["floatingIP"]));
    // when its flavor changes, then another server has the same address
    clusters.patch("c", &json!({"spec": bastion("m1.tiny")})).await?;
    let object = clusters.wait_bastion("c", |it| it["id"].is_string() && it["id"] != first["id"]).await?;
    let second = &object.data["status"]["bastion"];
    assert_eq!(second["floatingIP"], first["floatingIP"]);
    let (ports, addresses) = (stage.living("port").await?, stage.living("fip").await?);
    assert_eq!((stage.living("server").await?.len(), ports.len(), addresses.len()), (1, 1, 1));
    assert_eq!(addresses[0].fields["port_id"], json!(ports[0].id));
    // when it is disabled, then everything of it goes and the cluster stays ready
    clusters.patch("c", &json!({"spec": {"bastion": {"enabled": false}}})).await?;
    let object = clusters
        .wait("c", "to have no bastion", |it| {
            it.data["status"]["bastion"].is_null()
                && condition(it, "BastionReady").is_some_and(|it| it.1 == "NotWanted")
        })
        .await?;
    assert_eq!(condition(&object, "Ready").map(|it| it.0), Some("True"));
    e2e::wait_until_gone(&stage.servers, "c-bastion", PATIENCE).await?;
    e2e::until("nothing left of the bastion", PATIENCE, || async {
        let left = stage.ours().await?;
        Ok(if left.is_empty() { e2e::Seen::Yes(()) } else { e2e::Seen::NotYet(format!("{left:?}")) })
    })
    .await?;
    // when one with a bastion is deleted, then the bastion goes with it; removed without being disabled first
    clusters.patch("c", &json!({"spec": bastion("m1.small")})).await?;
    clusters.patch("c", &json!({"spec": {"bastion": {"enabled": true}}})).await?;
    clusters.wait_bastion("c", |it| it["floatingIP"].is_string()).await?;
    for name in ["c", "plain", "managed"] {
        clusters.gone(name).await?;
    }
    assert_eq!(stage.ours().await?.len(), 0);
    let made = stage.things().await?.iter().filter(|it| it.is_ours()).count();
    seen(&format!(
        "a bastion made, replaced, disabled, made again and gone with its cluster: {made} things made, none left"
    ));
    controller.kill().await?;
    stage.clear().await
}

#[tokio::test]
async fn a_pinned_address_is_used_and_kept() {
    tell("a_pinned_address_is_used_and_kept", pinned()).await;
}
async fn pinned() -> Result<()> {
    let stage = Stage::set("pinned").await?;
    let mut controller = stage.start().await?;
    let clusters = Clusters::of(&stage).await?;
    let planted = json!({"kind": "fip", "fields": {"floating_network_id": "7e700000-0000-4000-8000-00000000000e", "floating_ip_address": "203.0.113.99", "port_id": null}});
    let id = stage.emulator.plant(&planted).await?["id"].clone();
    let mut fields = bastion("m1.small");
    fields["bastion"]["floatingIP"] = json!("203.0.113.99");
    clusters.create("c", &fields).await?;
    clusters.wait_bastion("c", |it| it["floatingIP"] == "203.0.113.99").await?;
    let ports = stage.living("port").await?;
    assert_eq!(stage.living("fip").await?[0].fields["port_id"], json!(ports[0].id));
    clusters.gone("c").await?;
    let left = stage.living("fip").await?;
    assert_eq!((left.len(), json!(left[0].id)), (1, id));
    assert!(stage.ours().await?.is_empty());
    controller.kill().await?;
    stage.clear().await
}

#[tokio::test]
async fn each_part_works_alone() {
    tell("each_part_works_alone", parts()).await;
}
async fn parts() -> Result<()> {
    let stage = Stage::set("parts").await?;
    let part = |name: &str| stage.launch(name)?.arg("--leader-elect=false").arg(format!("--parts={name}")).start();
    let clusters = Clusters::of(&stage).await?;
    // given the part of bastions alone, then the cluster is ready and its server is asked for, which nobody makes
    let mut bastions = part("bastion")?;
    bastions.wait_ready(PATIENCE).await?;
    clusters.create("c", &bastion("m1.small")).await?;
    let asked = |it: &DynamicObject| condition(it, "BastionReady").is_some_and(|it| it.0 == "False");
    clusters
        .wait("c", "to ask for a server", |it| asked(it) && condition(it, "Ready").is_some_and(|it| it.0 == "True"))
        .await?;
    stage.wait("c-bastion", "to be there", |it| it.data["status"].is_null()).await?;
    assert!(stage.living("server").await?.is_empty());
    // when the part of servers comes, then it is made; without the part of bastions a cluster is nobody's
    bastions.kill().await?;
    let mut servers = part("server")?;
    servers.wait_ready(PATIENCE).await?;
    stage.wait_ready("c-bastion").await?;
    clusters.create("later", &bastion("m1.small")).await?;
    stage.touch("c-bastion").await?;
    stage.wait_ready("c-bastion").await?;
    assert!(clusters.get("later").await?.data["status"].is_null());
    // and both together end what they began
    bastions.restart().await?;
    bastions.wait_ready(PATIENCE).await?;
    for name in ["c", "later"] {
        clusters.wait_bastion(name, |it| it["id"].is_string()).await?;
        clusters.gone(name).await?;
    }
    assert!(stage.ours().await?.is_empty());
    bastions.kill().await?;
    servers.kill().await?;
    stage.clear().await
}
