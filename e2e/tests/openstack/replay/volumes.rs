//! Cases 44 to 48: volumes.
use super::play;
use crate::stage::spec;
use serde_json::{Value, json};

fn zone(zone: Value) -> Value {
    json!({"rootVolume": {"sizeGiB": 2, "type": "fast", "availabilityZone": zone}})
}

#[tokio::test]
async fn case_44__a_server_boots_from_its_root_volume() {
    play("case44__a_server_boots_from_its_root_volume", async |stage| {
        let object = stage.ready("srv", &json!({"rootVolume": {"sizeGiB": 10}})).await?;
        let volume = stage.thing("volume", "srv-root").await?;
        assert_eq!((&volume.fields["size"], &volume.fields["bootable"]), (&json!(10), &json!("true")));
        assert_eq!(volume.fields["device_id"], object.data["status"]["instanceID"], "it is attached");
        assert_eq!(object.data["status"]["resources"]["volumes"], json!([{"id": volume.id}]));
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_45__type_and_zone_of_a_volume() {
    play("case45__type_and_zone_of_a_volume", async |stage| {
        stage.create("named", &spec(&zone(json!({"name": "z1"})))).await?;
        stage.create("nowhere", &spec(&zone(json!({"from": "Machine"})))).await?;
        let mut here = zone(json!({"from": "Machine"}));
        here["availabilityZone"] = json!("z2");
        stage.create("here", &spec(&here)).await?;
        for (name, zone) in [("named", "z1"), ("here", "z2"), ("nowhere", "nova")] {
            stage.wait_ready(name).await?;
            let volume = stage.thing("volume", &format!("{name}-root")).await?;
            assert_eq!(
                (&volume.fields["volume_type"], &volume.fields["availability_zone"]),
                (&json!("fast"), &json!(zone)),
                "{name}"
            );
        }
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_46__further_devices_are_volumes_or_local() {
    play("case46__further_devices_are_volumes_or_local", async |stage| {
        let device = |name: &str, type_: &str| json!({"name": name, "sizeGiB": 5, "storage": {"type": type_}});
        let object = stage
            .ready("srv", &json!({"additionalBlockDevices": [device("data", "Volume"), device("scratch", "Local")]}))
            .await?;
        let volumes = stage.living("volume").await?;
        assert_eq!((volumes.len(), &volumes[0].fields["name"]), (1, &json!("srv-data")));
        assert_eq!(volumes[0].fields["device_id"], object.data["status"]["instanceID"]);
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_47__what_an_old_nova_cannot_do_is_told_before_anything_is_made() {
    play("case47__what_an_old_nova_cannot_do_is_told_before_anything_is_made", async |stage| {
        // a volume that takes several servers is refused below 2.60
        stage.ready("shared", &json!({"rootVolume": {"sizeGiB": 2, "type": "multiattach"}})).await?;
        assert_eq!(stage.thing("volume", "shared-root").await?.fields["multiattach"], true);
        stage.delete_all().await
    })
    .await;
    play("case47b__what_an_old_nova_cannot_do_is_told_before_anything_is_made", async |stage| {
        stage.behave(&json!({"lacks": ["microversions"]})).await?;
        let device = json!([{"name": "data", "sizeGiB": 5, "storage": {"type": "Volume"}}]);
        let root = json!({"sizeGiB": 2});
        stage.create("tagged", &spec(&json!({"tags": ["blue"], "rootVolume": root}))).await?;
        stage.create("devices", &spec(&json!({"additionalBlockDevices": device}))).await?;
        for (name, text) in
            [("tagged", "tags need Nova's microversion 2.52"), ("devices", "additional block devices need")]
        {
            let object = stage.wait_said(name, "InstanceReady", &format!("False/NotSupported: {text}")).await?;
            assert!(super::said(&object, "InstanceReady").ends_with("newest is 2.38"));
        }
        stage.nothing_made().await?;
        // what it can do, it does; what only its refusal tells leaves nothing after a delete
        stage.ready("plain", &json!({"rootVolume": root})).await?;
        stage.create("shared", &spec(&json!({"rootVolume": {"sizeGiB": 2, "type": "multiattach"}}))).await?;
        stage.wait_said("shared", "InstanceReady", "Multiattach volumes are only supported").await?;
        stage.delete_all().await
    })
    .await;
}
#[tokio::test]
async fn case_48__a_strangers_volume_is_left_alone_and_one_in_error_is_replaced() {
    play("case48__a_strangers_volume_is_left_alone_and_one_in_error_is_replaced", async |stage| {
        stage.emulator.plant(&json!({"kind": "volume", "fields": {"name": "taken-root", "size": 3}})).await?;
        stage.create("taken", &spec(&json!({"rootVolume": {"sizeGiB": 10}}))).await?;
        stage.wait_said("taken", "Stalled", "ExistsUnowned").await?;
        let failure = json!({"kind": "volume", "reason": "no space", "times": 1});
        stage.emulator.admin(reqwest::Method::POST, "failures", &[], Some(&failure)).await?;
        stage.ready("srv", &json!({"rootVolume": {"sizeGiB": 10}})).await?;
        let made = stage.things().await?.iter().filter(|it| it.kind == "volume" && it.is_ours()).count();
        assert_eq!((made, stage.thing("volume", "srv-root").await?.phase.as_str()), (2, "ready"));
        Ok(())
    })
    .await;
}
