//! Who uses which Secrets: to wake them when one changes, and to keep credentials for as long as somebody needs them.
use crate::api::{IdentityRef, IdentityType, OpenStackCluster, OpenStackMachine, OpenStackServer};
use crate::keeper::Keeper;
use crate::kube_inputs::KubeInputs;
use crate::watching::Watching;
use common::runtime::object::{Arrived, Key};
use common::runtime::runner::Handle;
use common::runtime::watch::News;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectMeta};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// What an object says of the Secrets it uses.
pub trait UsesSecrets: DeserializeOwned {
    /// Where its credentials are; none if only its cluster says so.
    fn credentials(&self) -> Option<&IdentityRef>;
    /// Where its data is.
    fn data(&self) -> Option<&str> {
        None
    }
}
impl UsesSecrets for OpenStackServer {
    fn credentials(&self) -> Option<&IdentityRef> {
        Some(&self.spec.identity_ref)
    }
    fn data(&self) -> Option<&str> {
        self.spec.user_data_ref.as_ref().map(|it| it.name.as_str())
    }
}
impl UsesSecrets for OpenStackCluster {
    fn credentials(&self) -> Option<&IdentityRef> {
        Some(&self.spec.identity_ref)
    }
}
impl UsesSecrets for OpenStackMachine {
    fn credentials(&self) -> Option<&IdentityRef> {
        self.spec.identity_ref.as_ref()
    }
}

/// Does an object of this namespace need a Secret of the same namespace as credentials? What does not say may.
fn needs(object: &impl UsesSecrets, name: &str) -> bool {
    object.credentials().is_none_or(|it| it.type_ == IdentityType::Secret && it.name == name)
}
/// Does a change of a Secret matter to an object? Credentials of a cluster identity lie in another namespace.
fn heeds(object: &impl UsesSecrets, here: bool, name: &str) -> bool {
    let shared = object.credentials().is_some_and(|it| it.type_ == IdentityType::ClusterIdentity);
    shared || here && (needs(object, name) || object.data() == Some(name))
}

/// The objects of one kind.
pub struct Users {
    needs: Box<dyn Fn(&Key) -> bool + Send + Sync>,
    wake: Box<dyn Fn(&Key) + Send + Sync>,
    listed: Box<dyn Fn() -> bool + Send + Sync>,
}
impl Users {
    /// Those that this runner serves.
    pub fn of<K: UsesSecrets + 'static>(handle: &Handle) -> Self {
        let (cache, queue, list) = (handle.clone(), handle.clone(), handle.clone());
        let needs = move |key: &Key| {
            cache.read(|cache| {
                cache.iter().any(|(owner, kept)| {
                    owner.namespace == key.namespace && kept.decode::<K>().is_ok_and(|it| needs(&it, &key.name))
                })
            })
        };
        let wake = move |key: &Key| {
            queue.enqueue_where(|owner, kept| {
                let here = owner.namespace == key.namespace;
                kept.decode::<K>().is_ok_and(|it| heeds(&it, here, &key.name))
            });
        };
        Users { needs: Box::new(needs), wake: Box::new(wake), listed: Box::new(move || list.is_listed()) }
    }
    /// Nothing is known of them yet.
    #[cfg(test)]
    pub(crate) fn unknown() -> Self {
        Users { needs: Box::new(|_| false), wake: Box::new(|_| ()), listed: Box::new(|| false) }
    }
    /// Are all of them known?
    pub fn are_listed(&self) -> bool {
        (self.listed)()
    }
    /// Does one of them need this Secret as credentials?
    pub fn need(&self, key: &Key) -> bool {
        (self.needs)(key)
    }
}

/// Does an object of any kind that may be served name this Secret as credentials? The API server is asked, without a filter:
/// other processes serve what this one does not, and what they need is not in its caches.
pub async fn named(client: &Client, key: &Key, counts: fn(&ObjectMeta) -> bool) -> Result<bool, kube::Error> {
    Ok(named_by::<OpenStackServer>(client, key, counts).await?
        || named_by::<OpenStackCluster>(client, key, counts).await?
        || named_by::<OpenStackMachine>(client, key, counts).await?)
}
async fn named_by<K>(client: &Client, key: &Key, counts: fn(&ObjectMeta) -> bool) -> Result<bool, kube::Error>
where
    K: UsesSecrets + Resource<DynamicType = ()>,
{
    let kind = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &key.namespace, &kind);
    let all = match api.list(&ListParams::default()).await {
        Ok(all) => all,
        // A kind that is not installed has no objects.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
        Err(why) => return Err(why),
    };
    let names = |it: DynamicObject| it.try_parse::<K>().map_or(true, |it| needs(&it, &key.name));
    Ok(all.items.into_iter().filter(|it| counts(&it.metadata)).any(names))
}

/// Follows Secrets for as long as the process lives.
pub async fn follow(watching: &Watching, inputs: &KubeInputs, keeper: &Arc<Keeper>, users: &[Users]) {
    let changed = |arrived: &Arrived| {
        let key = arrived.key();
        inputs.forget(&key.namespace, &key.name);
        for it in users {
            (it.wake)(&key);
        }
    };
    let hear = |news: &News| match news {
        News::Listed(arrived) => keeper.saw(arrived),
        News::Changed(arrived) => {
            keeper.saw(arrived);
            changed(arrived);
        }
        News::Gone(arrived) => {
            keeper.gone(&arrived.key());
            changed(arrived);
        }
        News::Begin | News::Complete | News::Trouble(_) => {}
    };
    let secrets = ApiResource::erase::<Secret>(&());
    tokio::join!(watching.every(secrets, hear), keeper.run(&watching.clock, users));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_machine_that_names_no_credentials_may_need_any_of_its_namespace() {
        let machine = |identity: serde_json::Value| -> OpenStackMachine {
            let mut spec = json!({"flavor": {"id": "1"}, "image": {"id": "i"}});
            if !identity.is_null() {
                spec["identityRef"] = identity;
            }
            serde_json::from_value(json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachine", "metadata": {"name": "m"}, "spec": spec})).unwrap()
        };
        let silent = machine(json!(null));
        assert!(needs(&silent, "any") && heeds(&silent, true, "any") && !heeds(&silent, false, "any"));
        let own = machine(json!({"name": "own", "cloudName": "c"}));
        assert!(needs(&own, "own") && !needs(&own, "other"));
        let shared = machine(json!({"name": "own", "cloudName": "c", "type": "ClusterIdentity"}));
        assert!(!needs(&shared, "own") && heeds(&shared, false, "elsewhere"));
    }
}
