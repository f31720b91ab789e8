//! Cases 79 and 80, and the other faults of credentials.
use super::{id_of, play, said};
use crate::stage::{condition, spec};
use e2e::manifests;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};

fn with(identity: Value) -> Value {
    spec(&json!({ "identityRef": identity }))
}

#[tokio::test]
async fn case_79__each_fault_of_credentials_is_told_in_its_own_words_and_mended_without_a_restart() {
    play("case79__each_fault_of_credentials_is_told_in_its_own_words_and_mended_without_a_restart", async |stage| {
        stage.secret("keyless", &[("other", "x")]).await?;
        stage.secret("garbled", &[("clouds.yaml", "clouds: [")]).await?;
        stage.secret("refused", &[("clouds.yaml", &stage.clouds("not-the-secret"))]).await?;
        let cases = [
            ("missing", "missing", "c", "missing is not there"),
            ("keyless", "keyless", "c", "has no key clouds.yaml"),
            ("garbled", "garbled", "c", "garbled"),
            ("cloudless", "creds", "nowhere", "\"nowhere\" is not in clouds.yaml"),
            ("refused", "refused", "c", "the credentials are not accepted"),
        ];
        for (name, secret, cloud, _) in cases {
            stage.create(name, &with(json!({"name": secret, "cloudName": cloud}))).await?;
        }
        for (name, _, _, text) in cases {
            let object = stage.wait_said(name, "OpenStackAuthenticationSucceeded", text).await?;
            assert!(
                said(&object, "OpenStackAuthenticationSucceeded").starts_with("False/OpenStackAuthenticationFailed")
            );
            assert!(!object.data["status"].to_string().contains("not-the-secret"), "no secret is ever shown");
        }
        stage.nothing_made().await?;
        for secret in ["missing", "keyless", "garbled", "refused"] {
            stage.secret(secret, &[("clouds.yaml", &stage.clouds("the-controllers-own-secret"))]).await?;
        }
        for name in ["missing", "keyless", "garbled", "refused"] {
            stage.wait_ready(name).await?;
        }
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_79__lent_credentials_serve_the_namespaces_that_they_are_lent_to() {
    play("case79b__lent_credentials_serve_the_namespaces_that_they_are_lent_to", async |stage| {
        let lend = async |selector: Value| -> e2e::Result<()> {
            let spec = json!({"secretRef": {"name": "creds", "namespace": stage.namespace()}, "namespaceSelector": selector});
            let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackClusterIdentity",
                "metadata": {"name": stage.namespace()}, "spec": spec});
            manifests::apply_text(&stage.cluster, stage.namespace(), &object.to_string()).await
        };
        stage.create("srv", &with(json!({"type": "ClusterIdentity", "name": stage.namespace(), "cloudName": "c"}))).await?;
        let authentication = "OpenStackAuthenticationSucceeded";
        stage.wait_said("srv", authentication, &format!("OpenStackClusterIdentity {} is not there", stage.namespace())).await?;
        lend(json!({"matchLabels": {"team": "others"}})).await?;
        stage.touch("srv").await?;
        stage.wait_said("srv", authentication, "is not allowed to use cluster identity").await?;
        stage.nothing_made().await?;
        lend(json!({"matchLabels": {"kubernetes.io/metadata.name": stage.namespace()}})).await?;
        stage.touch("srv").await?;
        stage.wait_ready("srv").await?;
        stage.delete_all().await?;
        let kind = GroupVersionKind::gvk("infrastructure.cluster.x-k8s.io", "v1alpha1", "OpenStackClusterIdentity");
        let kind = ApiResource::from_gvk_with_plural(&kind, "openstackclusteridentities");
        let identities: Api<DynamicObject> = Api::all_with(stage.cluster.client().await?, &kind);
        identities.delete(stage.namespace(), &DeleteParams::default()).await?;
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn case_80__a_token_that_is_revoked_costs_one_more_and_doubles_nothing() {
    play("case80__a_token_that_is_revoked_costs_one_more_and_doubles_nothing", async |stage| {
        stage.ready("first", &json!({})).await?;
        let before = stage.count("tokens", "create").await?;
        stage.emulator.retag_by_hand("tokens", &json!({})).await?;
        stage.ready("second", &json!({})).await?;
        assert_eq!(stage.count("tokens", "create").await?, before + 1);
        assert_eq!((stage.doubles().await?, stage.ours().await?.len()), (Vec::new(), 4));
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn credentials_of_another_project_are_never_used_on_what_stands_in_the_first() {
    play("otherproject__credentials_of_another_project_are_never_used_on_what_stands_in_the_first", async |stage| {
        let id = id_of(&stage.ready("srv", &json!({})).await?);
        stage
            .emulator
            .admin(
                reqwest::Method::POST,
                "principals",
                &[],
                Some(&json!({"principal": "elsewhere", "token": "another-secret", "account": "acct-2"})),
            )
            .await?;
        let clouds = stage.clouds("another-secret").replace("openstack-controller", "elsewhere");
        stage.secret("creds", &[("clouds.yaml", &clouds)]).await?;
        let object = stage.wait_said("srv", "Stalled", "IdentityMismatch").await?;
        assert_eq!((id_of(&object), condition(&object, "Failed")), (id, None), "nothing is called lost");
        stage.secret("creds", &[("clouds.yaml", &stage.clouds("the-controllers-own-secret"))]).await?;
        stage.wait("srv", "to be served again", |it| condition(it, "Stalled").is_none()).await?;
        assert_eq!(stage.count("servers", "create").await?, 1);
        Ok(())
    })
    .await;
}
#[tokio::test]
async fn credentials_are_rotated_to_a_secret_of_another_name() {
    play("rotated__credentials_are_rotated_to_a_secret_of_another_name", async |stage| {
        let id = id_of(&stage.ready("srv", &json!({})).await?);
        stage.secret("newer", &[("clouds.yaml", &stage.clouds("the-controllers-own-secret"))]).await?;
        let patch = json!({"spec": {"identityRef": {"name": "newer", "cloudName": "c"}}});
        stage.servers.patch("srv", &PatchParams::default(), &Patch::Merge(patch)).await?;
        stage.touch("srv").await?;
        assert_eq!(id_of(&stage.wait_ready("srv").await?), id);
        // and the old ones are let go, the new ones are held
        stage.wait_finalizers("creds", &[]).await?;
        stage.wait_finalizers("newer", &["custody.dev/openstack-credentials"]).await?;
        stage.delete("srv").await?;
        stage.wait_finalizers("newer", &[]).await
    })
    .await;
}
