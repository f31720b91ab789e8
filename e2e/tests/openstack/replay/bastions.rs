//! Cases 66 to 74: bastions.
use super::play;
use crate::bastion::{Clusters, bastion};
use crate::stage::{PATIENCE, Thing, condition};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::json;

/// Part of the emulator's scenery.
const PRIVATE: &str = "7e700000-0000-4000-8000-000000000001";

fn ready(cluster: &DynamicObject) -> bool {
    condition(cluster, "Ready").is_some_and(|it| it.0 == "True")
}

#[tokio::test]
async fn case_66__a_bastion_has_the_clusters_tags_network_and_group_and_never_holds_it_up() {
    play("case66__a_bastion_has_the_clusters_tags_network_and_group_and_never_holds_it_up", async |stage| {
        stage.behave(&json!({"build": {"servers": {"fixed_ms": 6000}}})).await?;
        let group = stage.emulator.plant(&json!({"kind": "security_group", "fields": {"name": "bastions"}})).await?;
        let clusters = Clusters::of(stage).await?;
        clusters.create("c", &json!({})).await?;
        clusters.wait("c", "to be ready", ready).await?;
        // given the security group that another provider made for bastions
        clusters.patch_status("c", &json!({"bastionSecurityGroup": {"id": group["id"], "name": "bastions"}})).await?;
        clusters.patch("c", &json!({"spec": bastion("m1.small")})).await?;
        let waiting = |it: &DynamicObject| condition(it, "BastionReady").is_some_and(|it| it.0 == "False") && ready(it);
        clusters.wait("c", "to be ready before its bastion is", waiting).await?;
        clusters.wait_bastion("c", |it| it["id"].is_string()).await?;
        let server = stage.servers.get("c-bastion").await?;
        let owners = server.metadata.owner_references.unwrap_or_default();
        assert_eq!(
            owners.iter().map(|it| (it.kind.as_str(), it.name.as_str())).collect::<Vec<_>>(),
            [("OpenStackCluster", "c")]
        );
        assert_eq!(server.data["spec"]["tags"], json!(["cluster"]));
        let port = stage.thing("port", "c-bastion-0").await?;
        assert_eq!(
            (&port.fields["network_id"], &port.fields["security_groups"]),
            (&json!(PRIVATE), &json!([group["id"]]))
        );
        clusters.gone("c").await
    })
    .await;
}
#[tokio::test]
async fn case_69__a_disabled_bastion_goes_whole_and_before_its_clusters_finalizer() {
    play("case69__a_disabled_bastion_goes_whole_and_before_its_clusters_finalizer", async |stage| {
        let clusters = Clusters::of(stage).await?;
        clusters.create("c", &bastion("m1.small")).await?;
        clusters.wait_bastion("c", |it| it["floatingIP"].is_string()).await?;
        clusters.patch("c", &json!({"spec": {"bastion": {"enabled": false}}})).await?;
        clusters.wait("c", "to have no bastion", |it| it.data["status"]["bastion"].is_null() && ready(it)).await?;
        e2e::wait_until_gone(&stage.servers, "c-bastion", PATIENCE).await?;
        stage.until("nothing left of the bastion", |all| !all.iter().any(Thing::is_ours)).await?;
        // when a cluster with a bastion is deleted, then it stays until its server is gone
        stage.behave(&json!({"deletion": {"servers": {"fixed_ms": 4000}}})).await?;
        clusters.patch("c", &json!({"spec": {"bastion": {"enabled": true}}})).await?;
        clusters.wait_bastion("c", |it| it["floatingIP"].is_string()).await?;
        clusters.delete("c").await?;
        stage.wait("c-bastion", "to be going", |it| it.metadata.deletion_timestamp.is_some()).await?;
        let cluster = clusters.get("c").await?;
        assert_eq!(cluster.metadata.finalizers.unwrap_or_default(), ["custody.dev/openstack-bastion"]);
        clusters.wait_gone("c").await?;
        assert!(stage.servers.get_opt("c-bastion").await?.is_none(), "the cluster goes after its server");
        stage.nothing_made().await
    })
    .await;
}
#[tokio::test]
async fn case_70__a_bastion_that_the_spec_no_longer_has_is_removed_whatever_the_status_says() {
    play("case70__a_bastion_that_the_spec_no_longer_has_is_removed_whatever_the_status_says", async |stage| {
        let clusters = Clusters::of(stage).await?;
        // given a status that tells of a bastion that never was, then it is put right
        clusters.create("stale", &json!({})).await?;
        clusters.wait("stale", "to be ready", ready).await?;
        clusters.patch_status("stale", &json!({"bastion": {"id": "of-old", "name": "stale-bastion"}})).await?;
        clusters.patch("stale", &json!({"metadata": {"annotations": {"e2e/touched": "once"}}})).await?;
        clusters.wait("stale", "to tell of no bastion", |it| it.data["status"]["bastion"].is_null()).await?;
        // given a bastion, when status and spec forget it together, then it goes all the same
        clusters.create("c", &bastion("m1.small")).await?;
        clusters.wait_bastion("c", |it| it["floatingIP"].is_string()).await?;
        clusters.patch_status("c", &json!({"bastion": null})).await?;
        clusters.patch("c", &json!({"spec": {"bastion": null}})).await?;
        e2e::wait_until_gone(&stage.servers, "c-bastion", PATIENCE).await?;
        stage.until("nothing left of the bastion", |all| !all.iter().any(Thing::is_ours)).await?;
        for name in ["stale", "c"] {
            assert!(ready(&clusters.get(name).await?), "{name}");
            clusters.gone(name).await?;
        }
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_67__without_an_external_network_no_address_is_asked_for() {
    play("case67__without_an_external_network_no_address_is_asked_for", async |stage| {
        let clusters = Clusters::of(stage).await?;
        let mut fields = bastion("m1.small");
        fields["enableExternalNetwork"] = json!(false);
        clusters.create("c", &fields).await?;
        clusters.wait_bastion("c", |it| it["id"].is_string()).await?;
        assert_eq!(stage.count("floatingips", "create").await?, 0);
        // when it is used after all, and then no longer, then the address comes, goes, and stays away
        clusters.patch("c", &json!({"spec": {"enableExternalNetwork": true}})).await?;
        clusters.wait_bastion("c", |it| it["floatingIP"].is_string()).await?;
        clusters.patch("c", &json!({"spec": {"enableExternalNetwork": false}})).await?;
        stage.until("the address to be gone", |all| !all.iter().any(|it| it.kind == "fip")).await?;
        clusters.wait("c", "to have no external network", |it| it.data["status"]["externalNetwork"].is_null()).await?;
        clusters.patch("c", &json!({"metadata": {"annotations": {"e2e/touched": "once"}}})).await?;
        clusters.wait_bastion("c", |it| it["floatingIP"].is_null()).await?;
        assert_eq!(stage.count("floatingips", "create").await?, 1);
        clusters.gone("c").await
    })
    .await;
}
#[tokio::test]
async fn case_71_72__a_bastion_that_is_going_is_never_used_and_its_address_stays() {
    play("case71__a_bastion_that_is_going_is_never_used_and_its_address_stays", async |stage| {
        stage.behave(&json!({"deletion": {"servers": {"fixed_ms": 4000}}})).await?;
        let clusters = Clusters::of(stage).await?;
        clusters.create("c", &bastion("m1.small")).await?;
        let first =
            clusters.wait_bastion("c", |it| it["floatingIP"].is_string()).await?.data["status"]["bastion"].clone();
        stage.servers.delete("c-bastion", &DeleteParams::default()).await?;
        clusters
            .wait("c", "to say that its bastion is going", |it| {
                condition(it, "BastionReady").is_some_and(|it| it.0 == "False")
            })
            .await?;
        let second = clusters.wait_bastion("c", |it| it["id"].is_string() && it["id"] != first["id"]).await?;
        assert_eq!(second.data["status"]["bastion"]["floatingIP"], first["floatingIP"]);
        clusters.gone("c").await
    })
    .await;
}
#[tokio::test]
async fn case_74__a_bastion_that_fails_leaves_its_cluster_ready() {
    play("case74__a_bastion_that_fails_leaves_its_cluster_ready", async |stage| {
        let clusters = Clusters::of(stage).await?;
        let failure = json!({"kind": "server", "reason": "No valid host was found.", "times": 1});
        stage.emulator.admin(reqwest::Method::POST, "failures", &[], Some(&failure)).await?;
        clusters.create("c", &bastion("m1.small")).await?;
        let object = clusters
            .wait("c", "to say that its bastion failed", |it| {
                condition(it, "BastionReady").is_some_and(|it| it.2.contains("NoValidHost"))
            })
            .await?;
        assert_eq!(condition(&object, "Ready").map(|it| it.0), Some("True"));
        // nor does one that the API server refuses, or an address that cannot be looked for
        let many: Vec<String> = (0..46).map(|n| format!("t{n}")).collect();
        let mut refused = bastion("m1.small");
        refused["tags"] = json!(many);
        refused["bastion"]["spec"]["tags"] = json!(["one-more"]);
        clusters.create("refused", &refused).await?;
        let mut pinned = bastion("m1.small");
        pinned["bastion"]["floatingIP"] = json!("203.0.113.99");
        stage.strike(json!({"match": {"kind": "floatingips"}, "action": {"status": {"status": 500}}})).await?;
        clusters.create("pinned", &pinned).await?;
        for name in ["refused", "pinned"] {
            let object = clusters
                .wait(name, "to be ready without its bastion", |it| {
                    ready(it) && condition(it, "BastionReady").is_some_and(|it| it.0 == "False" && !it.2.is_empty())
                })
                .await?;
            assert_eq!(object.data["status"]["initialization"]["provisioned"], true, "{name}");
        }
        stage.emulator.clear_faults().await?;
        for name in ["refused", "pinned", "c"] {
            clusters.gone(name).await?;
        }
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_73__a_controller_that_adopts_all_asks_for_no_annotation() {
    crate::tell("case73b", async {
        let stage = crate::stage::Stage::set("case73b").await?;
        let text = |value: serde_json::Value| value["id"].as_str().unwrap_or_default().to_owned();
        let port = text(
            stage
                .emulator
                .plant(
                    &json!({"kind": "port", "fields": {"name": "c-bastion-0", "network_id": PRIVATE, "fixed_ips": []}}),
                )
                .await?,
        );
        let server = text(
            stage
                .emulator
                .plant(&json!({"kind": "server", "fields": {"name": "c-bastion", "plugged": [port]}}))
                .await?,
        );
        let clusters = Clusters::of(&stage).await?;
        clusters.create_of_capo("c", &bastion("m1.small")).await?;
        let mut controller =
            stage.launch("controller")?.arg("--leader-elect=false").arg("--adopt-from=capo").start()?;
        controller.wait_ready(PATIENCE).await?;
        let object = clusters.wait_bastion("c", |it| it["id"] == json!(server)).await?;
        assert_eq!(object.metadata.finalizers.unwrap_or_default(), ["custody.dev/openstack-bastion"]);
        assert_eq!((stage.living("server").await?.len(), stage.living("port").await?.len()), (1, 1));
        clusters.gone("c").await?;
        stage.until("nothing left", <[_]>::is_empty).await?;
        controller.must_run()?;
        controller.kill().await?;
        stage.clear().await
    })
    .await;
}
#[tokio::test]
async fn case_73__a_cluster_of_the_go_provider_is_taken_over_without_a_second_port() {
    play("case73__a_cluster_of_the_go_provider_is_taken_over_without_a_second_port", async |stage| {
        let text = |value: serde_json::Value| value["id"].as_str().unwrap_or_default().to_owned();
        // given what an old version left: a port of another name, a server, an address
        let legacy = text(stage.emulator.plant(&json!({"kind": "port", "fields": {"name": "ns-c-bastion-0", "network_id": PRIVATE, "fixed_ips": []}})).await?);
        let server = text(stage.emulator.plant(&json!({"kind": "server", "fields": {"name": "c-bastion", "plugged": [legacy]}})).await?);
        let address = text(stage.emulator.plant(&json!({"kind": "fip", "fields": {"floating_network_id": "7e700000-0000-4000-8000-00000000000e", "floating_ip_address": "203.0.113.50", "port_id": legacy}})).await?);
        let clusters = Clusters::of(stage).await?;
        // when its cluster still has the other provider's finalizer, then nothing is written
        clusters.create_of_capo("c", &bastion("m1.small")).await?;
        clusters.wait("c", "to name the peer", |it| condition(it, "Stalled").is_some_and(|it| it.1 == "PeerController")).await?;
        assert!(stage.servers.get_opt("c-bastion").await?.is_none(), "beside the other provider no server is made");
        // when it is asked for, then everything is taken over as it stands
        clusters.patch("c", &json!({"metadata": {"annotations": {"custody.dev/adopt-from": "capo"}}})).await?;
        let object = clusters.wait_bastion("c", |it| it["floatingIP"] == "203.0.113.50").await?;
        assert_eq!(object.data["status"]["bastion"]["id"], json!(server));
        stage.nothing_made().await?;
        let (ports, fips) = (stage.living("port").await?, stage.living("fip").await?);
        assert_eq!((ports.len(), &ports[0].id, &fips[0].id), (1, &legacy, &address));
        // when it goes, then so does what was taken over
        clusters.gone("c").await?;
        stage.until("nothing left", <[_]>::is_empty).await?;
        e2e::wait_until_gone(&stage.servers, "c-bastion", PATIENCE).await
    })
    .await;
}
#[tokio::test]
async fn case_73__a_server_object_of_the_go_provider_is_kept_and_a_later_one_has_its_address() {
    play("case73c__a_server_object_of_the_go_provider_is_kept_and_a_later_one_has_its_address", async |stage| {
        let text = |value: serde_json::Value| value["id"].as_str().unwrap_or_default().to_owned();
        // given a bastion as a new version left it: a server object that names subnets of its own accord, tags as they came
        let port = text(stage.emulator.plant(&json!({"kind": "port", "fields": {"name": "c-bastion-0", "network_id": PRIVATE, "fixed_ips": []}})).await?);
        let server = text(stage.emulator.plant(&json!({"kind": "server", "fields": {"name": "c-bastion", "plugged": [port]}})).await?);
        let address = text(stage.emulator.plant(&json!({"kind": "fip", "fields": {"floating_network_id": "7e700000-0000-4000-8000-00000000000e", "floating_ip_address": "203.0.113.51", "port_id": port}})).await?);
        let clusters = Clusters::of(stage).await?;
        clusters.create_of_capo("c", &bastion("m1.small")).await?;
        let owner = clusters.get("c").await?.metadata.uid;
        let object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
            "metadata": {"name": "c-bastion", "finalizers": ["openstackserver.infrastructure.cluster.x-k8s.io"], "ownerReferences": [
                {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster", "name": "c", "uid": owner}]},
            "spec": {"identityRef": {"name": "creds", "cloudName": "c"}, "flavor": "m1.small", "image": {"filter": {"name": "cirros"}},
                "sshKeyName": "key", "tags": ["own", "cluster"], "ports": [{"network": {"id": PRIVATE},
                "fixedIPs": [{"subnet": {"id": "5b700000-0000-4000-8000-000000000001"}}]}]}});
        let object: DynamicObject = serde_json::from_value(object).map_err(e2e::Error::other)?;
        let uid = stage.servers.create(&PostParams::default(), &object).await?.metadata.uid;
        // when the cluster is taken over, then the object, the server and the address are the same
        clusters.patch("c", &json!({"metadata": {"annotations": {"custody.dev/adopt-from": "capo"}}})).await?;
        let object = clusters.wait_bastion("c", |it| it["floatingIP"] == "203.0.113.51").await?;
        assert_eq!(object.data["status"]["bastion"]["id"], json!(server));
        let kept = stage.wait_ready("c-bastion").await?;
        assert_eq!((kept.metadata.uid, kept.metadata.finalizers), (uid, Some(vec!["custody.dev/openstack".to_owned()])));
        stage.nothing_made().await?;
        // when its flavor changes, then another server has the same address
        clusters.patch("c", &json!({"spec": bastion("m1.tiny")})).await?;
        let object = clusters.wait_bastion("c", |it| it["id"].is_string() && it["id"] != json!(server)).await?;
        assert_eq!(object.data["status"]["bastion"]["floatingIP"], "203.0.113.51");
        let fips = stage.living("fip").await?;
        assert_eq!((fips.len(), &fips[0].id), (1, &address));
        clusters.gone("c").await?;
        stage.until("nothing left", <[_]>::is_empty).await
    })
    .await;
}
