//! Addresses of pools: a server asks for one by a claim, whose pool answers with an address. The objects are behind a trait, so that the
//! simulator can play the pool.
use crate::api::{OpenStackServer, TypedRef};
use crate::inputs::Missing;
use crate::kube_inputs::resource;
use crate::names::{CAPO, CAPO_CLAIM_FINALIZER};
use async_trait::async_trait;
use common::engine::owner::OwnerView;
use common::names::ADOPTED_FROM;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;

/// Group and version of claims and addresses. Older installations of Cluster API serve only the older version, which looks the
/// same as far as it is used here.
pub const IPAM: (&str, &str) = ("ipam.cluster.x-k8s.io", "v1beta2");
/// Versions, best first.
pub const IPAM_VERSIONS: [&str; 2] = [IPAM.1, "v1beta1"];
/// A claim has its server's name and this. One name, so there is at most one.
pub const SUFFIX: &str = "-floating-ip-address";

/// Claims and addresses as the API server holds them.
#[async_trait]
pub trait Claims: Send + Sync {
    /// An IPAddressClaim.
    async fn claim(&self, namespace: &str, name: &str) -> Result<Option<DynamicObject>, Missing>;
    /// Makes a claim; none where nothing may be made.
    async fn make(&self, namespace: &str, claim: &DynamicObject) -> Result<Option<DynamicObject>, Missing>;
    /// Leaves these finalizers on a claim, and no others.
    async fn finalize(&self, claim: &DynamicObject, finalizers: &[String]) -> Result<(), Missing>;
    /// An IPAddress.
    async fn given(&self, namespace: &str, name: &str) -> Result<Option<DynamicObject>, Missing>;
}

/// The address that a pool gave to this owner; none while it has given none. Asks for one if nobody did.
pub async fn address(claims: &dyn Claims, owner: &OwnerView, pool: &TypedRef) -> Result<Option<String>, Missing> {
    let Some(group) = pool.api_group.as_ref().filter(|it| !it.is_empty()) else {
        return Err(Missing::Unusable("floatingIPPoolRef names no apiGroup".into()));
    };
    let name = format!("{}{SUFFIX}", owner.name);
    let found = match claims.claim(&owner.namespace, &name).await? {
        Some(found) => Some(found),
        None => claims.make(&owner.namespace, &claim(owner, &name, group, pool)).await?,
    };
    let Some(claim) = found else { return Ok(None) };
    if !claim.owner_references().iter().any(|it| it.uid == owner.uid) {
        return Err(Missing::Unusable(format!("IPAddressClaim {name} belongs to somebody else")));
    }
    if let Some(left) = without_capo(&claim, owner) {
        claims.finalize(&claim, &left).await?;
    }
    let Some(address) = claim.data["status"]["addressRef"]["name"].as_str() else { return Ok(None) };
    let given = claims.given(&owner.namespace, address).await?;
    Ok(given.and_then(|it| it.data["spec"]["address"].as_str().map(str::to_owned)))
}

/// On the way out of a server: a claim that nobody would free goes with it. None is made.
pub async fn release(claims: &dyn Claims, owner: &OwnerView) -> Result<(), Missing> {
    if !was_capos(owner) {
        return Ok(());
    }
    let Some(claim) = claims.claim(&owner.namespace, &format!("{}{SUFFIX}", owner.name)).await? else { return Ok(()) };
    let ours = claim.owner_references().iter().any(|it| it.uid == owner.uid);
    match without_capo(&claim, owner) {
        Some(left) if ours => claims.finalize(&claim, &left).await,
        _ => Ok(()),
    }
}
fn was_capos(owner: &OwnerView) -> bool {
    owner.annotations.get(ADOPTED_FROM).is_some_and(|it| it == CAPO)
}
/// The finalizers of a claim without that of the Go provider, if its server was taken over and nobody else would take it off:
/// the claim could not go with its server.
fn without_capo(claim: &DynamicObject, owner: &OwnerView) -> Option<Vec<String>> {
    let all = claim.finalizers();
    let left: Vec<String> = all.iter().filter(|it| *it != CAPO_CLAIM_FINALIZER).cloned().collect();
    (was_capos(owner) && left.len() < all.len()).then_some(left)
}
/// The claim, owned by the server: it goes when the server's object is gone, and not before.
fn claim(owner: &OwnerView, name: &str, group: &str, pool: &TypedRef) -> DynamicObject {
    let mut claim = DynamicObject::new(name, &resource(IPAM, "IPAddressClaim"));
    claim.metadata.namespace = Some(owner.namespace.clone());
    let cluster = owner.labels.get(common::names::CLUSTER_NAME).cloned();
    claim.metadata.labels = cluster.map(|it| BTreeMap::from([(common::names::CLUSTER_NAME.to_owned(), it)]));
    claim.metadata.owner_references = Some(vec![OwnerReference {
        api_version: OpenStackServer::api_version(&()).into_owned(),
        kind: OpenStackServer::kind(&()).into_owned(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }]);
    claim.data = json!({"spec": {"poolRef": {"apiGroup": group, "kind": pool.kind, "name": pool.name}}});
    claim
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_belongs_to_its_server_and_names_its_pool() {
        let owner = OwnerView { name: "srv".into(), namespace: "ns".into(), uid: "u".into(), ..OwnerView::default() };
        let pool = TypedRef { api_group: Some("g".into()), kind: "Pool".into(), name: "p".into() };
        let claim = claim(&owner, "srv-floating-ip-address", "g", &pool);
        assert_eq!(claim.data["spec"]["poolRef"], json!({"apiGroup": "g", "kind": "Pool", "name": "p"}));
        assert_eq!(claim.owner_references()[0].uid, "u");
    }
    #[test]
    fn only_a_server_that_was_taken_over_takes_the_other_providers_finalizer_off_its_claim() {
        let pool = TypedRef { api_group: Some("g".into()), kind: "Pool".into(), name: "p".into() };
        let mut owner = OwnerView::default();
        let mut claim = claim(&owner, "c", "g", &pool);
        claim.metadata.finalizers = Some(vec!["pool".into(), CAPO_CLAIM_FINALIZER.into()]);
        assert_eq!(without_capo(&claim, &owner), None, "the other provider serves it");
        owner.annotations.insert(ADOPTED_FROM.into(), CAPO.into());
        assert_eq!(without_capo(&claim, &owner), Some(vec!["pool".to_owned()]));
        claim.metadata.finalizers = Some(vec!["pool".into()]);
        assert_eq!(without_capo(&claim, &owner), None);
    }

    /// One claim, and what was left on it.
    struct One(DynamicObject, std::sync::Mutex<Vec<Vec<String>>>);
    #[async_trait]
    impl Claims for One {
        async fn claim(&self, _: &str, _: &str) -> Result<Option<DynamicObject>, Missing> {
            Ok(Some(self.0.clone()))
        }
        async fn make(&self, _: &str, _: &DynamicObject) -> Result<Option<DynamicObject>, Missing> {
            Err(Missing::Unusable("nothing is asked for on the way out".into()))
        }
        async fn finalize(&self, _: &DynamicObject, finalizers: &[String]) -> Result<(), Missing> {
            self.1.lock().unwrap().push(finalizers.to_vec());
            Ok(())
        }
        async fn given(&self, _: &str, _: &str) -> Result<Option<DynamicObject>, Missing> {
            Ok(None)
        }
    }
    #[tokio::test]
    async fn a_server_that_was_taken_over_frees_its_own_claim_on_its_way_out() {
        let pool = TypedRef { api_group: Some("g".into()), kind: "Pool".into(), name: "p".into() };
        let mut owner = OwnerView { name: "srv".into(), uid: "u".into(), ..OwnerView::default() };
        let mut claim = claim(&owner, "srv-floating-ip-address", "g", &pool);
        claim.metadata.finalizers = Some(vec!["pool".into(), CAPO_CLAIM_FINALIZER.into()]);
        let claims = One(claim, std::sync::Mutex::default());
        release(&claims, &owner).await.unwrap();
        assert!(claims.1.lock().unwrap().is_empty(), "the other provider serves it");
        owner.annotations.insert(ADOPTED_FROM.into(), CAPO.into());
        let stranger = OwnerView { uid: "other".into(), ..owner.clone() };
        release(&claims, &stranger).await.unwrap();
        assert!(claims.1.lock().unwrap().is_empty(), "another server's claim");
        release(&claims, &owner).await.unwrap();
        assert_eq!(*claims.1.lock().unwrap(), [vec!["pool".to_owned()]]);
    }
}
