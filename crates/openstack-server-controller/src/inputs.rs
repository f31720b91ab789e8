//! What a pass reads from Kubernetes beside its own object: credentials, user data, images, addresses. A trait, so that the
//! simulator and tests can play them.
use crate::api::{IdentityRef, TypedRef};
use crate::clouds::CloudConfig;
use async_trait::async_trait;
use common::engine::owner::OwnerView;

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
    /// The owner needs its address no more.
    async fn release_address(&self, owner: &OwnerView) -> Result<(), Missing>;
}
