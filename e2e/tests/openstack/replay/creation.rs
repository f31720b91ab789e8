//! Cases 21 to 36, 49, 50, 52, 53: a server comes to be, and is seen as it is.
use super::{id_of, play, port, said};
use crate::stage::{PATIENCE, Stage, Thing, condition, is_ready, spec};
use e2e::manifests;
use e2e::patience::dynamic_api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

#[tokio::test]
async fn case_21__names_are_resolved_and_stored_before_anything_is_made() {
    play("case21__names_are_resolved_and_stored_before_anything_is_made", async |stage| {
        stage.emulator.deny(&json!({"principal": "openstack-controller", "permission": "ports.create"})).await?;
        stage.create("srv", &spec(&json!({}))).await?;
        let object = stage.wait_said("srv", "InstanceReady", "PolicyForbidden").await?;
        assert!(object.data["status"]["resolved"]["imageID"].is_string(), "{}", object.data["status"]);
        assert_eq!(object.metadata.finalizers.unwrap_or_default(), ["custody.dev/openstack"]);
        stage.nothing_made().await
    })
    .await;
}
#[tokio::test]
async fn case_22__one_port_and_one_server_with_it() {
    play("case22__one_port_and_one_server_with_it", async |stage| {
        let object = stage.ready("srv", &json!({})).await?;
        let (server, made) = (stage.thing("server", "srv").await?, stage.thing("port", "srv-0").await?);
        assert_eq!(id_of(&object), server.id);
        // The cloud plugs it in after a while.
        let plugged = |all: &[Thing]| all.iter().any(|it| it.id == made.id && it.fields["device_id"] == server.id);
        stage.until("the port to be plugged into the server", plugged).await?;
        assert_eq!((stage.count("ports", "create").await?, stage.count("servers", "create").await?), (1, 1));
        assert_eq!(object.data["status"]["resources"]["ports"], json!([{"id": made.id}]));
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_23__what_carries_our_mark_is_found_again_and_nothing_is_made() {
    play("case23__what_carries_our_mark_is_found_again_and_nothing_is_made", async |stage| {
        let before = id_of(&stage.ready("srv", &json!({})).await?);
        let lost = json!({"metadata": {"annotations": {"custody.dev/openstack-ledger": null}}});
        stage.servers.patch("srv", &PatchParams::default(), &Patch::Merge(lost)).await?;
        stage
            .wait("srv", "to have its ledger back", |it| {
                it.metadata.annotations.as_ref().is_some_and(|all| all.contains_key("custody.dev/openstack-ledger"))
                    && is_ready(it)
            })
            .await?;
        assert_eq!((id_of(&stage.servers.get("srv").await?), stage.ours().await?.len()), (before, 2));
        assert_eq!(stage.count("servers", "create").await?, 1);
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_24__a_strangers_server_of_the_name_is_named_and_no_twin_is_made() {
    play("case24__a_strangers_server_of_the_name_is_named_and_no_twin_is_made", async |stage| {
        let planted = json!({"kind": "server", "fields": {"name": "srv", "metadata": {}}});
        let stranger = stage.emulator.plant(&planted).await?["id"].as_str().unwrap_or_default().to_owned();
        stage.create("srv", &spec(&json!({}))).await?;
        let object = stage.wait_said("srv", "Stalled", "ExistsUnowned").await?;
        assert!(said(&object, "Stalled").contains(&stranger), "{}", said(&object, "Stalled"));
        assert_eq!(stage.count("servers", "create").await?, 0);
        stage.delete("srv").await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        assert_eq!(stage.thing("server", "srv").await?.id, stranger, "case 63: it is not deleted by its name");
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_25__a_port_that_is_refused_is_told_and_tried_again() {
    play("case25__a_port_that_is_refused_is_told_and_tried_again", async |stage| {
        stage
            .strike(json!({"match": {"kind": "ports", "verb": "create"}, "action": {"status": {"status": 400}}}))
            .await?;
        stage.create("srv", &spec(&json!({}))).await?;
        stage.wait_said("srv", "InstanceReady", "False/PortCreateFailed: badRequest").await?;
        assert_eq!(stage.count("servers", "create").await?, 0);
        stage.emulator.clear_faults().await?;
        stage.touch("srv").await?;
        stage.wait_ready("srv").await.map(drop)
    })
    .await;
}
#[tokio::test]
async fn case_25__a_subnet_without_a_free_address_is_told_with_the_services_words_and_request() {
    play("case25b__a_subnet_without_a_free_address_is_told_with_the_services_words_and_request", async |stage| {
        let failure =
            json!({"kind": "port", "reason": "No more IP addresses available on network private.", "times": 50});
        stage.emulator.admin(reqwest::Method::POST, "failures", &[], Some(&failure)).await?;
        stage.create("srv", &spec(&json!({}))).await?;
        let object = stage.wait_said("srv", "InstanceReady", "False/SubnetFull").await?;
        let told = said(&object, "InstanceReady");
        assert!(told.contains("No more IP addresses available") && told.contains("request req-"), "{told}");
        assert_eq!(stage.count("servers", "create").await?, 0);
        stage.delete_all().await
    })
    .await;
}
#[tokio::test]
async fn case_26_27__an_error_is_told_with_its_fault_and_ends_when_the_instance_is_well() {
    play("case26__an_error_is_told_with_its_fault_and_ends_when_the_instance_is_well", async |stage| {
        let id = id_of(&stage.ready("srv", &json!({})).await?);
        stage.emulator.retag_by_hand(&id, &json!({"set": {"!status": "ERROR"}})).await?;
        stage.touch("srv").await?;
        let object = stage.wait_said("srv", "Failed", "True/InstanceStateError").await?;
        assert_eq!(
            (&object.data["status"]["ready"], condition(&object, "Ready").map(|it| it.0)),
            (&json!(false), Some("True"))
        );
        assert!(said(&object, "InstanceReady").contains("is in ERROR"), "{}", said(&object, "InstanceReady"));
        stage.emulator.retag_by_hand(&id, &json!({"remove": ["!status"]})).await?;
        stage.touch("srv").await?;
        let object = stage.wait_ready("srv").await?;
        assert!(said(&object, "Failed").starts_with("False"), "{}", said(&object, "Failed"));
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_28__a_server_that_was_deleted_is_failed_and_never_made_again() {
    play("case28__a_server_that_was_deleted_is_failed_and_never_made_again", async |stage| {
        let id = id_of(&stage.ready("srv", &json!({})).await?);
        stage.emulator.delete_by_hand(&id).await?;
        stage.touch("srv").await?;
        let object =
            stage.wait_said("srv", "Failed", "True/InstanceNotFound: the server was unexpectedly deleted").await?;
        assert_eq!(object.data["status"]["ready"], false, "parents that read it notice");
        assert!(stage.living("server").await?.is_empty());
        assert_eq!(stage.count("servers", "create").await?, 1);
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_29_30__an_outage_and_a_proxys_404_change_nothing() {
    play("case29__an_outage_and_a_proxys_404_change_nothing", async |stage| {
        let id = id_of(&stage.ready("srv", &json!({})).await?);
        for status in [500, 404] {
            stage.strike(json!({"match": {"kind": "servers"}, "action": {"status": {"status": status}}})).await?;
            stage.touch("srv").await?;
            let object = stage.wait_said("srv", "InstanceReady", "False/OpenStackError").await?;
            assert_eq!((id_of(&object), condition(&object, "Failed")), (id.clone(), None));
            assert_eq!(condition(&object, "Ready").map(|it| it.0), Some("True"));
            stage.emulator.clear_faults().await?;
            stage.touch("srv").await?;
            stage.wait_said("srv", "InstanceReady", "True/").await?;
        }
        assert_eq!(stage.count("servers", "create").await?, 1);
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_31__a_create_that_fails_is_tried_again_with_the_same_port() {
    play("case31__a_create_that_fails_is_tried_again_with_the_same_port", async |stage| {
        stage
            .strike(json!({"match": {"kind": "servers", "verb": "create"}, "action": {"status": {"status": 500}}}))
            .await?;
        stage.create("srv", &spec(&json!({}))).await?;
        // A fault of the service is no word that nothing happened: it is looked for before it is tried again.
        stage.wait_said("srv", "InstanceReady", "nobody knows whether it was created: computeFault").await?;
        stage.emulator.clear_faults().await?;
        stage.wait_ready("srv").await?;
        assert_eq!((stage.count("ports", "create").await?, stage.living("port").await?.len()), (1, 1));
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_32__building_and_shut_off_are_told_apart() {
    play("case32__building_and_shut_off_are_told_apart", async |stage| {
        stage.behave(&json!({"build": {"servers": {"fixed_ms": 6000}}})).await?;
        stage.create("srv", &spec(&json!({}))).await?;
        stage.wait_said("srv", "InstanceReady", "False/InstanceNotReady: server").await?;
        let id = id_of(&stage.wait_ready("srv").await?);
        stage.emulator.retag_by_hand(&id, &json!({"set": {"!status": "SHUTOFF"}})).await?;
        stage.touch("srv").await?;
        let object = stage.wait_said("srv", "InstanceReady", "Unknown/InstanceNotReady").await?;
        assert_eq!(
            (&object.data["status"]["ready"], condition(&object, "Ready").map(|it| it.0)),
            (&json!(false), Some("True"))
        );
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_33_35__names_that_lead_to_none_or_several_are_told_and_nothing_is_made() {
    play("case33__names_that_lead_to_none_or_several_are_told_and_nothing_is_made", async |stage| {
        stage.emulator.plant(&json!({"kind": "server_group", "fields": {"name": "group"}})).await?;
        stage.emulator.plant(&json!({"kind": "security_group", "fields": {"name": "web"}})).await?;
        let cases = [
            ("no-image", json!({"image": {"filter": {"name": "nothing"}}}), "no image matches"),
            ("two-images", json!({"image": {"filter": {"name": "twice"}}}), "2 images match"),
            ("no-flavor", json!({"flavor": "huge"}), "no flavor matches"),
            ("no-group", json!({"serverGroup": {"filter": {"name": "nobody"}}}), "no server group matches"),
            ("two-groups", json!({"serverGroup": {"filter": {"name": "group"}}}), "2 server groups match"),
            ("two-sgs", json!({"securityGroups": [{"filter": {"name": "web"}}]}), "2 security groups match"),
            ("no-network", json!({"ports": [port("nowhere", &json!({}))]}), "no network matches"),
        ];
        for (name, fields, _) in &cases {
            stage.create(name, &spec(fields)).await?;
        }
        for (name, _, text) in &cases {
            stage.wait_said(name, "InstanceReady", &format!("False/DependencyFailed: {text}")).await?;
        }
        stage.nothing_made().await
    })
    .await;
}
/// Images of the OpenStack resource controller.
pub(crate) const IMAGES: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: images.openstack.k-orc.cloud}, \
    spec: {group: openstack.k-orc.cloud, names: {kind: Image, plural: images}, scope: Namespaced, versions: [{name: v1alpha1, served: true, \
    storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}";

#[tokio::test]
async fn case_34__an_image_object_is_waited_for_used_when_it_comes_and_told_when_it_is_hopeless() {
    crate::tell("case34", async {
        let stage = Stage::set("case34").await?;
        manifests::apply_text(&stage.cluster, "default", IMAGES).await?;
        let mut controller = stage.start().await?;
        let images =
            dynamic_api(stage.cluster.client().await?, stage.namespace(), "openstack.k-orc.cloud/v1alpha1", "Image", "images");
        let of = |image: &str| spec(&json!({"image": {"imageRef": {"name": image}}}));
        let image = |name: &str| json!({"apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Image", "metadata": {"name": name}});
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({"type": type_, "status": status, "reason": reason, "message": "so it is", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        // absent
        stage.create("srv", &of("img")).await?;
        stage.create("bad", &of("bad")).await?;
        stage.wait_said("srv", "InstanceReady", &format!("Image {}/img is not there", stage.namespace())).await?;
        // pending
        for name in ["img", "bad"] {
            let object = serde_json::from_value(image(name)).map_err(e2e::Error::other)?;
            images.create(&PostParams::default(), &object).await?;
        }
        stage.wait_said("srv", "InstanceReady", "is not available yet").await?;
        // hopeless
        let status = json!({"status": {"conditions": [condition("Progressing", "False", "UnrecoverableError")]}});
        images.patch_status("bad", &PatchParams::default(), &Patch::Merge(status)).await?;
        stage.wait_said("bad", "InstanceReady", "False/DependencyFailed: Image").await?;
        stage.nothing_made().await?;
        // available: the watch says so
        let status = json!({"status": {"id": "1a600000-0000-4000-8000-000000000001", "conditions": [condition("Available", "True", "Success")]}});
        images.patch_status("img", &PatchParams::default(), &Patch::Merge(status)).await?;
        stage.wait_ready("srv").await?;
        stage.delete_all().await?;
        controller.kill().await?;
        stage.clear().await
    })
    .await;
}
#[tokio::test]
async fn case_36__ids_are_taken_as_they_are() {
    play("case36__ids_are_taken_as_they_are", async |stage| {
        let group = "5e600000-0000-4000-8000-000000000001";
        let object =
            stage.ready("srv", &json!({"serverGroup": {"id": group}, "flavorID": "1", "flavor": "m1.small"})).await?;
        assert_eq!(object.data["status"]["resolved"]["flavorID"], "1", "the id wins over the name");
        assert_eq!(stage.count("os-server-groups", "list").await?, 0);
        let server = stage.thing("server", "srv").await?;
        assert_eq!(server.fields["scheduler_hints"], json!({"group": group}), "case 49: the group is one string");
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_49__hints_of_every_type_arrive() {
    play("case49__hints_of_every_type_arrive", async |stage| {
        let hint = |name: &str, value: serde_json::Value| json!({"name": name, "value": value});
        let hints = json!({"schedulerHintAdditionalProperties": [
            hint("a", json!({"type": "Bool", "bool": true})), hint("b", json!({"type": "Number", "number": 7})),
            hint("c", json!({"type": "String", "string": "x"}))]});
        stage.ready("srv", &hints).await?;
        assert_eq!(stage.thing("server", "srv").await?.fields["scheduler_hints"], json!({"a": true, "b": 7, "c": "x"}));
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_50__user_data_is_encoded_once_waited_for_and_measured() {
    play("case50__user_data_is_encoded_once_waited_for_and_measured", async |stage| {
        stage.secret("large", &[("value", &"x".repeat(50_000))]).await?;
        stage.create("large", &spec(&json!({"userDataRef": {"name": "large"}}))).await?;
        stage.create("srv", &spec(&json!({"userDataRef": {"name": "data"}}))).await?;
        stage.wait_said("large", "InstanceReady", "False/UserDataTooLarge").await?;
        stage.wait_said("srv", "InstanceReady", "data is not there").await?;
        stage.nothing_made().await?;
        stage.secret("data", &[("value", "I2Nsb3VkLWNvbmZpZw==")]).await?;
        stage.wait_ready("srv").await?;
        // What looks like base64 is data like any other.
        let shown = stage.thing("server", "srv").await?.fields["OS-EXT-SRV-ATTR:user_data"].clone();
        assert_eq!(shown, "STJOc2IzVmtMV052Ym1acFp3PT0=");
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_52__addresses_are_told_by_network_with_the_name_last() {
    play("case52__addresses_are_told_by_network_with_the_name_last", async |stage| {
        let fixed = |address: &str| json!({"fixedIPs": [{"ipAddress": address}]});
        let ports = json!({"ports": [port("private", &fixed("10.0.7.7")), port("other", &fixed("10.1.7.7"))]});
        let object = stage.ready("srv", &ports).await?;
        let expected = json!([
            {"type": "InternalIP", "address": "10.1.7.7"}, {"type": "InternalIP", "address": "10.0.7.7"},
            {"type": "InternalDNS", "address": "srv"}]);
        assert_eq!(object.data["status"]["addresses"], expected);
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_53__a_paused_server_costs_no_write_and_goes_on_when_it_may() {
    play("case53__a_paused_server_costs_no_write_and_goes_on_when_it_may", async |stage| {
        let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
            "metadata": {"name": "srv", "annotations": {"cluster.x-k8s.io/paused": ""}}, "spec": spec(&json!({}))});
        let object = serde_json::from_value(object).map_err(e2e::Error::other)?;
        stage.servers.create(&PostParams::default(), &object).await?;
        stage.wait_said("srv", "Paused", "True/").await?;
        stage.touch("srv").await?;
        let calls = stage.emulator.count_calls(&[]).await?;
        assert_eq!(calls, stage.count("tokens", "create").await?, "nothing is asked for but who we are");
        assert!(stage.servers.get("srv").await?.data["status"]["resolved"].is_null());
        let unpaused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
        stage.servers.patch("srv", &PatchParams::default(), &Patch::Merge(unpaused)).await?;
        stage.wait_ready("srv").await.map(drop)
    })
    .await;
}
