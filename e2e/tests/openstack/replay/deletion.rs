//! Cases 54 to 64: the way down. Case 65, a crash after every call, is the scorecard's S1 and the story of the kills.
use super::{id_of, play};
use crate::stage::{PATIENCE, Stage, full, spec};
use crate::tell;
use common::clock::{Clock, SystemClock};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test]
async fn case_54_55__server_trunk_port_in_this_order_and_volumes_by_nova() {
    play("case54__server_trunk_port_in_this_order_and_volumes_by_nova", async |stage| {
        stage.create("srv", &full()).await?;
        stage.wait_ready("srv").await?;
        stage.emulator.forget_calls().await?;
        stage.delete("srv").await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        let calls = stage.emulator.calls(&[("verb", "delete")]).await?;
        let kinds: Vec<&str> =
            calls["calls"].as_array().into_iter().flatten().filter_map(|it| it["kind"].as_str()).collect();
        let at = |kind: &str| kinds.iter().position(|it| *it == kind);
        assert!(at("servers") < at("trunks") && at("trunks") < at("ports"), "{kinds:?}");
        assert_eq!(at("volumes"), None, "they go with their server");
        stage.nothing_made().await
    })
    .await;
}
#[tokio::test]
async fn case_56__a_server_that_never_came_leaves_neither_volume_nor_port() {
    play("case56__a_server_that_never_came_leaves_neither_volume_nor_port", async |stage| {
        stage.behave(&json!({"quotas": {"servers": 0}})).await?;
        stage.create("srv", &full()).await?;
        stage.wait_said("srv", "InstanceReady", "QuotaExceeded").await?;
        assert_eq!((stage.living("volume").await?.len(), stage.living("server").await?.len()), (2, 0));
        stage.delete("srv").await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        stage.nothing_made().await
    })
    .await;
}
#[tokio::test]
async fn case_56__a_volume_whose_deletion_hangs_is_named_and_waited_for() {
    play("case56b__a_volume_whose_deletion_hangs_is_named_and_waited_for", async |stage| {
        stage.behave(&json!({"quotas": {"servers": 0}, "deletion": {"volumes": {"fixed_ms": 12_000}}})).await?;
        stage.create("srv", &spec(&json!({"rootVolume": {"sizeGiB": 1}}))).await?;
        stage.wait_said("srv", "InstanceReady", "QuotaExceeded").await?;
        let volume = stage.thing("volume", "srv-root").await?.id;
        stage.delete("srv").await?;
        let object = stage.wait_said("srv", "Ready", &volume).await?;
        assert!(!object.metadata.finalizers.unwrap_or_default().is_empty());
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        stage.nothing_made().await
    })
    .await;
}
#[tokio::test]
async fn case_57_62__a_deletion_works_from_marks_when_status_ledger_and_names_are_gone() {
    play("case57__a_deletion_works_from_marks_when_status_ledger_and_names_are_gone", async |stage| {
        stage.create("srv", &full()).await?;
        stage.wait_ready("srv").await?;
        for kind in ["images", "flavors", "networks"] {
            stage.strike(json!({"match": {"kind": kind}, "action": {"status": {"status": 500}}})).await?;
        }
        let lost = json!({"metadata": {"annotations": {"custody.dev/openstack-ledger": null}}});
        stage.servers.patch("srv", &PatchParams::default(), &Patch::Merge(lost)).await?;
        stage.delete("srv").await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        stage.nothing_made().await
    })
    .await;
}
#[tokio::test]
async fn case_58__while_ports_cannot_be_listed_the_finalizer_stays() {
    play("case58__while_ports_cannot_be_listed_the_finalizer_stays", async |stage| {
        stage.ready("srv", &json!({})).await?;
        stage.strike(json!({"match": {"kind": "ports"}, "action": {"status": {"status": 500}}})).await?;
        stage.delete("srv").await?;
        stage.wait_said("srv", "InstanceReady", "False/InstanceDeleteFailed").await?;
        assert!(!stage.servers.get("srv").await?.metadata.finalizers.unwrap_or_default().is_empty());
        stage.emulator.clear_faults().await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await
    })
    .await;
}
#[tokio::test]
async fn case_59__sub_ports_go_with_their_trunk_but_for_those_of_another_owner() {
    play("case59__sub_ports_go_with_their_trunk_but_for_those_of_another_owner", async |stage| {
        stage.ready("other", &json!({})).await?;
        stage.create("srv", &full()).await?;
        stage.wait_ready("srv").await?;
        let network = "7e700000-0000-4000-8000-000000000002";
        let mut riding = vec![stage.thing("port", "other-0").await?.id];
        for name in ["riding-1", "riding-2"] {
            let planted = json!({"kind": "port", "fields": {"name": name, "network_id": network}});
            riding.push(stage.emulator.plant(&planted).await?["id"].as_str().unwrap_or_default().to_owned());
        }
        let trunk = stage.thing("trunk", "srv-0").await?.id;
        let sub_ports: Vec<_> = riding
            .iter()
            .enumerate()
            .map(|(n, id)| json!({"port_id": id, "segmentation_type": "vlan", "segmentation_id": 100 + n}))
            .collect();
        stage.ride(&trunk, &sub_ports).await?;
        // twice refused, then let through
        stage
            .strike(
                json!({"match": {"kind": "trunks", "verb": "free"}, "times": 2, "action": {"status": {"status": 409}}}),
            )
            .await?;
        stage.delete("srv").await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        let left: Vec<_> = stage.living("port").await?.into_iter().map(|it| it.fields["name"].clone()).collect();
        assert_eq!(left, [json!("other-0")], "another owner's is only set free");
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_59__a_trunk_that_is_gone_holds_nothing_up() {
    play("case59b__a_trunk_that_is_gone_holds_nothing_up", async |stage| {
        stage.create("srv", &full()).await?;
        stage.wait_ready("srv").await?;
        let trunk = stage.thing("trunk", "srv-0").await?.id;
        stage.behave(&json!({"deletion": {"servers": {"fixed_ms": 3000}}})).await?;
        stage.delete("srv").await?;
        stage.emulator.delete_by_hand(&trunk).await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        stage.nothing_made().await
    })
    .await;
}
#[tokio::test]
async fn case_60__a_soft_deleted_server_counts_as_gone_and_holds_up_only_what_is_plugged_into_it() {
    play("case60__a_soft_deleted_server_counts_as_gone_and_holds_up_only_what_is_plugged_into_it", async |stage| {
        let id = super::id_of(&stage.ready("srv", &json!({"rootVolume": {"sizeGiB": 1}})).await?);
        stage.behave(&json!({"lacks": ["hard-delete"]})).await?;
        stage.delete("srv").await?;
        stage.wait_said("srv", "InstanceReady", &format!("in use by {id}")).await?;
        assert_eq!(stage.count("servers", "action").await?, 0, "the cloud keeps it for somebody");
        // when the cloud reclaims it
        stage.emulator.delete_by_hand(&id).await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        stage.nothing_made().await
    })
    .await;
}
#[tokio::test]
async fn case_60__a_soft_deleted_server_is_ended_where_that_is_asked_for() {
    tell("case60c__a_soft_deleted_server_is_ended_where_that_is_asked_for", async {
        let stage = Stage::set("case60c").await?;
        let mut controller = stage.launch("forcing")?.arg("--leader-elect=false").arg("--force-delete").start()?;
        controller.wait_ready(PATIENCE).await?;
        stage.ready("srv", &json!({"rootVolume": {"sizeGiB": 1}})).await?;
        stage.behave(&json!({"lacks": ["hard-delete"]})).await?;
        stage.delete("srv").await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        stage.nothing_made().await?;
        controller.kill().await?;
        stage.clear().await
    })
    .await;
}
#[tokio::test]
async fn case_60__a_delete_that_fails_is_told_and_tried_again() {
    play("case60b__a_delete_that_fails_is_told_and_tried_again", async |stage| {
        stage.ready("srv", &json!({})).await?;
        stage
            .strike(json!({"match": {"kind": "servers", "verb": "delete"}, "action": {"status": {"status": 500}}}))
            .await?;
        stage.delete("srv").await?;
        stage.wait_said("srv", "InstanceReady", "False/InstanceDeleteFailed").await?;
        stage.emulator.clear_faults().await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await
    })
    .await;
}
#[tokio::test]
async fn case_61__deleted_before_anything_was_made_makes_nothing() {
    play("case61__deleted_before_anything_was_made_makes_nothing", async |stage| {
        stage.strike(json!({"match": {"kind": "images"}, "action": {"status": {"status": 500}}})).await?;
        stage.create("srv", &spec(&json!({}))).await?;
        stage.wait_said("srv", "InstanceReady", "False/OpenStackError").await?;
        stage.delete("srv").await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        assert_eq!(stage.emulator.count_calls(&[("mutating", "true")]).await?, 0);
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_63__what_others_made_under_our_names_stays_when_ours_goes() {
    play("case63__what_others_made_under_our_names_stays_when_ours_goes", async |stage| {
        stage.create("srv", &full()).await?;
        stage.wait_ready("srv").await?;
        // given a server, a port and a volume of the very same names, made by somebody else beside ours
        let mut strangers = BTreeSet::new();
        for planted in [
            json!({"kind": "server", "fields": {"name": "srv", "metadata": {}}}),
            json!({"kind": "port", "fields": {"name": "srv-0", "network_id": "7e700000-0000-4000-8000-000000000001"}}),
            json!({"kind": "volume", "fields": {"name": "srv-root", "size": 10}}),
        ] {
            strangers.insert(stage.emulator.plant(&planted).await?["id"].as_str().unwrap_or_default().to_owned());
        }
        // when ours is deleted, even without a ledger that names it
        let lost = json!({"metadata": {"annotations": {"custody.dev/openstack-ledger": null}}});
        stage.servers.patch("srv", &PatchParams::default(), &Patch::Merge(lost)).await?;
        stage.delete("srv").await?;
        e2e::wait_until_gone(&stage.servers, "srv", PATIENCE).await?;
        stage.nothing_made().await?;
        let mut left = BTreeSet::new();
        for kind in ["server", "port", "volume"] {
            left.extend(stage.living(kind).await?.into_iter().map(|it| it.id));
        }
        assert_eq!(left, strangers);
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_64__a_port_that_vanishes_before_its_server_is_replaced_once() {
    play("case64__a_port_that_vanishes_before_its_server_is_replaced_once", async |stage| {
        stage.behave(&json!({"quotas": {"servers": 0}})).await?;
        stage.create("srv", &spec(&json!({}))).await?;
        stage.wait_said("srv", "InstanceReady", "QuotaExceeded").await?;
        let first = stage.thing("port", "srv-0").await?.id;
        stage.emulator.delete_by_hand(&first).await?;
        stage.behave(&json!({})).await?;
        let object = stage.wait_ready("srv").await?;
        for _ in 0..3 {
            stage.touch("srv").await?;
        }
        SystemClock.sleep_until(SystemClock.boot() + Duration::from_secs(2)).await;
        let second = stage.thing("port", "srv-0").await?.id;
        assert_ne!(second, first);
        assert_eq!(
            (object.data["status"]["resources"]["ports"].clone(), stage.count("ports", "create").await?),
            (json!([{"id": second}]), 2)
        );
        assert!(!id_of(&object).is_empty());
        Ok(())
    })
    .await;
}
