//! What a pass reads from Kubernetes beside its own object: credentials, user data, images, addresses. A trait, so that the
//! simulator and tests can play them.
use crate::api::{IdentityRef, TypedRef};
use crate::clouds::CloudConfig;
use async_trait::async_trait;
use common::engine::owner::OwnerView;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something that is not there, or not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// It may come; a watch wakes the owner when it does.
    #[error("{0}")]
    Pending(String),
    /// It is there and cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The API server does not answer.
    #[error("{0}")]
    Unavailable(String),
}

/// What Kubernetes holds for an owner.
#[async_trait]
pub trait Inputs: Send + Sync {
    /// The cloud that an identityRef leads to.
    async fn cloud(&self, namespace: &str, identity: &IdentityRef) -> Result<CloudConfig, Missing>;
    /// User data.
    async fn user_data(&self, namespace: &str, secret: &str) -> Result<Vec<u8>, Missing>;
    /// Id of the image that an Image object stands for.
    async fn image(&self, namespace: &str, name: &str) -> Result<String, Missing>;
    /// The address that a pool gave to this owner; none while it has given none. Asks for one if nobody did.
    async fn address(&self, owner: &OwnerView, pool: &TypedRef) -> Result<Option<String>, Missing>;
    /// On the way out: frees the claim of an owner that was taken over.
    async fn release(&self, owner: &OwnerView) -> Result<(), Missing>;
    /// Does Cluster API read a list of failure domains? Its older contract has a map under the same name, and stumbles over a list.
    async fn reads_lists_of_zones(&self) -> Result<bool, Missing>;
}

/// Handed in; for tests and simulations.
#[derive(Debug, Default)]
pub struct Given {
    held: Mutex<Held>,
}
/// What is handed in. What is not there is pending.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The cloud of every identityRef.
    pub cloud: Option<CloudConfig>,
    /// User data by Secret.
    pub user_data: BTreeMap<String, Vec<u8>>,
    /// Images by object.
    pub images: BTreeMap<String, String>,
    /// The address of every pool.
    pub address: Option<String>,
}
impl Given {
    /// To look at and to change.
    pub fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
#[async_trait]
impl Inputs for Given {
    async fn cloud(&self, _namespace: &str, identity: &IdentityRef) -> Result<CloudConfig, Missing> {
        let held = self.held().cloud.clone();
        held.ok_or_else(|| Missing::Pending(format!("there is no Secret {}", identity.name)))
    }
    async fn user_data(&self, _namespace: &str, secret: &str) -> Result<Vec<u8>, Missing> {
        let held = self.held().user_data.get(secret).cloned();
        held.ok_or_else(|| Missing::Pending(format!("there is no Secret {secret}")))
    }
    async fn image(&self, _namespace: &str, name: &str) -> Result<String, Missing> {
        let held = self.held().images.get(name).cloned();
        held.ok_or_else(|| Missing::Pending(format!("there is no Image {name}")))
    }
    async fn address(&self, _owner: &OwnerView, _pool: &TypedRef) -> Result<Option<String>, Missing> {
        Ok(self.held().address.clone())
    }
    async fn release(&self, _owner: &OwnerView) -> Result<(), Missing> {
        Ok(())
    }
    async fn reads_lists_of_zones(&self) -> Result<bool, Missing> {
        Ok(true)
    }
}
