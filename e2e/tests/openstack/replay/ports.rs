//! Cases 37 to 43, 51: ports, trunks, tags, addresses of pools.
use super::Thing;
use super::{play, port};
use crate::stage::{PATIENCE, spec};
use e2e::manifests;
use e2e::patience::dynamic_api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const WEB: &str = "5ec00000-0000-4000-8000-000000000002";
const DEFAULT: &str = "5ec00000-0000-4000-8000-000000000001";

#[tokio::test]
async fn case_37__a_network_is_told_by_the_first_subnet_that_is_told_exactly() {
    play("case37__a_network_is_told_by_the_first_subnet_that_is_told_exactly", async |stage| {
        let by = |filter: Value| json!({"subnet": {"filter": filter}});
        let fixed = json!([by(json!({"name": "other-subnet"}))]);
        stage.create("told", &spec(&json!({"ports": [{"fixedIPs": fixed}]}))).await?;
        stage.create("untold", &spec(&json!({"ports": [{"fixedIPs": [by(json!({"ipVersion": 4}))]}]}))).await?;
        let several = json!([by(json!({"ipVersion": 4})), by(json!({"name": "other-subnet"}))]);
        stage.create("second", &spec(&json!({"ports": [{"fixedIPs": several}]}))).await?;
        let wrong = json!([{"subnet": {"id": "5b700000-0000-4000-8000-000000000002"}}]);
        stage.create("wrong", &spec(&json!({"ports": [port("private", &json!({"fixedIPs": wrong}))]}))).await?;
        for name in ["told", "second"] {
            stage.wait_ready(name).await?;
            let network = stage.thing("port", &format!("{name}-0")).await?.fields["network_id"].clone();
            assert_eq!(network, "7e700000-0000-4000-8000-000000000002", "{name}");
        }
        stage.wait_said("untold", "InstanceReady", "cannot be told").await?;
        stage.wait_said("wrong", "InstanceReady", "is in network").await.map(drop)
    })
    .await;
}
#[tokio::test]
async fn case_37__a_subnet_that_cannot_be_read_is_an_outage() {
    play("case37u10__a_subnet_that_cannot_be_read_is_an_outage", async |stage| {
        stage.strike(json!({"match": {"kind": "subnets"}, "action": {"status": {"status": 500}}})).await?;
        let fixed = json!([{"subnet": {"id": "5b700000-0000-4000-8000-000000000001"}}]);
        stage.create("srv", &spec(&json!({"ports": [port("private", &json!({"fixedIPs": fixed}))]}))).await?;
        stage.wait_said("srv", "InstanceReady", "False/OpenStackError").await?;
        stage.emulator.clear_faults().await?;
        stage.wait_ready("srv").await.map(drop)
    })
    .await;
}
#[tokio::test]
async fn case_38__groups_of_a_port_take_the_place_of_those_of_the_server() {
    play("case38__groups_of_a_port_take_the_place_of_those_of_the_server", async |stage| {
        let ports = json!([
            port("private", &json!({"securityGroups": [{"id": DEFAULT}]})),
            port("other", &json!({})),
            port("tagged", &json!({"enablePortSecurity": false}))
        ]);
        stage.ready("srv", &json!({"securityGroups": [{"filter": {"name": "web"}}], "ports": ports})).await?;
        for (index, groups) in [json!([DEFAULT]), json!([WEB]), json!([])].into_iter().enumerate() {
            let made = stage.thing("port", &format!("srv-{index}")).await?;
            assert_eq!(made.fields["security_groups"], groups, "port {index}");
        }
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_39__trunks_are_inherited_overridden_and_missed_before_anything_is_made() {
    play("case39__trunks_are_inherited_overridden_and_missed_before_anything_is_made", async |stage| {
        let ports = json!([port("private", &json!({})), port("other", &json!({"trunk": false}))]);
        stage.ready("srv", &json!({"trunk": true, "ports": ports})).await?;
        let trunks = stage.living("trunk").await?;
        let parent = stage.thing("port", "srv-0").await?.id;
        assert_eq!(
            (trunks.len(), &trunks[0].fields["name"], &trunks[0].fields["port_id"]),
            (1, &json!("srv-0"), &json!(parent))
        );
        Ok(())
    })
    .await;
    play("case39b__a_cloud_without_trunks_is_said", async |stage| {
        stage.behave(&json!({"lacks": ["trunk"]})).await?;
        stage.create("srv", &spec(&json!({"trunk": true}))).await?;
        stage.wait_said("srv", "InstanceReady", "False/NotSupported").await?;
        stage.nothing_made().await
    })
    .await;
}
#[tokio::test]
async fn case_40__tags_are_each_there_once_mended_and_not_missed_where_there_are_none() {
    play("case40__tags_are_each_there_once_mended_and_not_missed_where_there_are_none", async |stage| {
        let object = stage
            .ready(
                "srv",
                &json!({"tags": ["b", "a"], "ports": [port("private", &json!({"tags": ["a", "c"], "trunk": true}))]}),
            )
            .await?;
        assert_eq!(object.data["status"]["resolved"]["ports"][0]["tags"], json!(["a", "b", "c"]), "case 20: a set");
        for kind in ["port", "trunk"] {
            assert_eq!(stage.thing(kind, "srv-0").await?.fields["tags"], json!(["a", "b", "c"]), "{kind}");
        }
        // when somebody takes tags off, then they come back
        let port = stage.thing("port", "srv-0").await?.id;
        let path = format!("networking/v2.0/ports/{port}/tags");
        stage.send(reqwest::Method::PUT, &path, &json!({"tags": ["c"]})).await?;
        stage.touch("srv").await?;
        let mended = |all: &[Thing]| all.iter().any(|it| it.id == port && it.fields["tags"] == json!(["a", "b", "c"]));
        stage.until("the port to have its tags back", mended).await
    })
    .await;
    play("case40c__while_extensions_cannot_be_told_nothing_is_made", async |stage| {
        stage.strike(json!({"match": {"kind": "extensions"}, "action": {"status": {"status": 500}}})).await?;
        stage.create("srv", &spec(&json!({"tags": ["a"]}))).await?;
        stage.wait_said("srv", "InstanceReady", "False/OpenStackError").await?;
        stage.nothing_made().await?;
        stage.emulator.clear_faults().await?;
        stage.touch("srv").await?;
        stage.wait_ready("srv").await.map(drop)
    })
    .await;
    play("case40b__a_cloud_without_tags_will_do", async |stage| {
        stage.behave(&json!({"lacks": ["standard-attr-tag", "tag-ports-during-bulk-creation"]})).await?;
        stage.ready("srv", &json!({"ports": [port("private", &json!({"tags": ["a"]}))]})).await?;
        assert_eq!(stage.thing("port", "srv-0").await?.fields["tags"], json!([]));
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_41_42_43__everything_of_a_port_arrives_and_two_can_stand_in_one_network() {
    play("case42__everything_of_a_port_arrives_and_two_can_stand_in_one_network", async |stage| {
        let whole = json!({
            "nameSuffix": "foo1", "description": "mine", "adminStateUp": false, "macAddress": "fa:16:3e:00:00:07",
            "allowedAddressPairs": [{"ipAddress": "10.0.9.9", "macAddress": "fa:16:3e:00:00:08"}, {"ipAddress": "10.0.9.10"}],
            "hostID": "host", "vnicType": "direct", "profile": {"ovsHWOffload": true, "trustedVF": true}, "propagateUplinkStatus": false,
            "valueSpecs": [{"name": "q", "key": "qos_policy_id", "value": "gold"}], "fixedIPs": [{"ipAddress": "10.0.8.8"}]});
        let open = json!({"enablePortSecurity": false, "allowedAddressPairs": [{"ipAddress": "10.0.9.9"}]});
        stage.ready("srv", &json!({"ports": [port("private", &whole), port("private", &open)]})).await?;
        let made = stage.thing("port", "srv-foo1").await?.fields;
        assert!(made["description"].as_str().is_some_and(|it| it.starts_with("mine ")), "{}", made["description"]);
        assert_eq!((&made["admin_state_up"], &made["mac_address"]), (&json!(false), &json!("fa:16:3e:00:00:07")));
        assert_eq!(made["allowed_address_pairs"].as_array().map(Vec::len), Some(2));
        assert_eq!((&made["binding:host_id"], &made["binding:vnic_type"]), (&json!("host"), &json!("direct")));
        assert_eq!(made["binding:profile"], json!({"capabilities": ["switchdev"], "trusted": true}));
        assert_eq!((&made["propagate_uplink_status"], &made["qos_policy_id"]), (&json!(false), &json!("gold")));
        assert_eq!(made["fixed_ips"][0]["ip_address"], "10.0.8.8");
        let second = stage.thing("port", "srv-1").await?.fields;
        assert_eq!((&second["allowed_address_pairs"], &second["port_security_enabled"]), (&json!([]), &json!(false)));
        Ok(())
    })
    .await;
}

/// Claims and addresses of pools, as Cluster API defines them.
fn definitions() -> String {
    let one = |kind: &str, plural: &str| {
        format!(
            "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {plural}.ipam.cluster.x-k8s.io}}, spec: {{group: ipam.cluster.x-k8s.io, \
             names: {{kind: {kind}, plural: {plural}}}, scope: Namespaced, versions: [{{name: v1beta2, served: true, storage: true, subresources: {{status: {{}}}}, \
             schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}]}}}}"
        )
    };
    format!("{}\n---\n{}", one("IPAddressClaim", "ipaddressclaims"), one("IPAddress", "ipaddresses"))
}
#[tokio::test]
async fn case_51__a_pools_address_is_waited_for_and_led_to_the_port_behind_the_router() {
    crate::tell("case51", async {
        let stage = crate::stage::Stage::set("case51").await?;
        manifests::apply_text(&stage.cluster, "default", &definitions()).await?;
        let mut controller = stage.start().await?;
        let client = stage.cluster.client().await?;
        let api = |kind: &str, plural: &str| dynamic_api(client.clone(), stage.namespace(), "ipam.cluster.x-k8s.io/v1beta2", kind, plural);
        let (claims, addresses) = (api("IPAddressClaim", "ipaddressclaims"), api("IPAddress", "ipaddresses"));
        let pool = |group: Value| json!({"apiGroup": group, "kind": "OpenStackFloatingIPPool", "name": "pool"});
        // a pool without a group is said, not stumbled over
        let mut nameless = pool(json!("x"));
        nameless.as_object_mut().map(|it| it.remove("apiGroup"));
        stage.create("nameless", &spec(&json!({"floatingIPPoolRef": nameless}))).await?;
        stage.wait_said("nameless", "InstanceReady", "FloatingIPError: floatingIPPoolRef names no apiGroup").await?;
        // given a claim without an address, then nothing is made before
        let ports = json!([port("other", &json!({})), port("private", &json!({}))]);
        stage.create("srv", &spec(&json!({"ports": ports, "floatingIPPoolRef": pool(json!("infrastructure.cluster.x-k8s.io"))}))).await?;
        stage.wait_said("srv", "InstanceReady", "WaitingForIPAddressClaim").await?;
        stage.nothing_made().await?;
        // when the pool gives an address that does not exist, then that is said
        let address = json!({"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress", "metadata": {"name": "given"}, "spec": {"address": "203.0.113.77"}});
        let address: DynamicObject = serde_json::from_value(address).map_err(e2e::Error::other)?;
        addresses.create(&PostParams::default(), &address).await?;
        let status = json!({"status": {"addressRef": {"name": "given"}}});
        claims.patch_status("srv-floating-ip-address", &PatchParams::default(), &Patch::Merge(status)).await?;
        stage.wait_said("srv", "FloatingAddressFromPoolReady", "False/FloatingIPError: there is no floating IP 203.0.113.77").await?;
        // when it does, then it leads to the port that a router connects with its network
        let planted = json!({"kind": "fip", "fields": {"floating_network_id": "7e700000-0000-4000-8000-00000000000e", "floating_ip_address": "203.0.113.77", "port_id": null}});
        stage.emulator.plant(&planted).await?;
        stage.touch("srv").await?;
        stage.wait_said("srv", "FloatingAddressFromPoolReady", "True/").await?;
        let reached = stage.thing("port", "srv-1").await?.id;
        assert_eq!(stage.living("fip").await?[0].fields["port_id"], json!(reached));
        let led = stage.count("floatingips", "update").await?;
        stage.touch("srv").await?;
        stage.wait_ready("srv").await?;
        assert_eq!(stage.count("floatingips", "update").await?, led, "what leads there is not led there again");
        stage.delete_all().await?;
        assert_eq!(stage.living("fip").await?.len(), 1, "the address is the pool's");
        e2e::wait_until_gone(&claims, "srv-floating-ip-address", PATIENCE).await?;
        controller.kill().await?;
        stage.clear().await
    })
    .await;
}
