//! Cases 66 to 74: bastions.
use super::play;
use crate::bastion::{Clusters, bastion};
use crate::stage::{PATIENCE, condition};
use kube::api::DeleteParams;
use serde_json::json;

#[tokio::test]
async fn case_67__without_an_external_network_no_address_is_asked_for() {
    play("case67__without_an_external_network_no_address_is_asked_for", async |stage| {
        let clusters = Clusters::of(stage).await?;
        let mut fields = bastion("m1.small");
        fields["enableExternalNetwork"] = json!(false);
        clusters.create("c", &fields).await?;
        clusters.wait_bastion("c", |it| it["id"].is_string()).await?;
        assert_eq!(stage.count("floatingips", "create").await?, 0);
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
        clusters.gone("c").await
    })
    .await;
}
#[tokio::test]
async fn case_73__a_cluster_of_the_go_provider_is_taken_over_without_a_second_port() {
    play("case73__a_cluster_of_the_go_provider_is_taken_over_without_a_second_port", async |stage| {
        let private = "7e700000-0000-4000-8000-000000000001";
        let text = |value: serde_json::Value| value["id"].as_str().unwrap_or_default().to_owned();
        // given what an old version left: a port of another name, a server, an address
        let legacy = text(stage.emulator.plant(&json!({"kind": "port", "fields": {"name": "ns-c-bastion-0", "network_id": private, "fixed_ips": []}})).await?);
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
