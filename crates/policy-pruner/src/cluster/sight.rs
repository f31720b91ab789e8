//! What an evaluation sees of the cluster: straight from the API server, or from watches that bring it back when it changes.
use super::kinds::Mapping;
use super::objects::Objects;
use super::wire::Trouble;
use crate::text::selector::Selector;
use async_trait::async_trait;
use common::runtime::object::Key;
use serde_json::Value;
use std::sync::Arc;

/// Reads for one evaluation.
#[async_trait]
pub trait Sight: Send + Sync {
    /// One object.
    async fn get(&self, mapping: &Mapping, namespace: &str, name: &str) -> Result<Option<Value>, Trouble>;
    /// All that match.
    async fn list(&self, mapping: &Mapping, namespace: &str, selector: &Selector) -> Result<Vec<Value>, Trouble>;
    /// Are these reads followed by watches?
    fn follows(&self) -> bool;
    /// What this evaluation wrote itself, so that the next one does not see something older.
    fn wrote(&self, _mapping: &Mapping, _object: &Value) {}
    /// The evaluation is over: what it did not look at is no longer followed.
    fn finish(&self) {}
}

/// Opens sights.
pub trait Eyes: Send + Sync {
    /// What a policy sees, followed by watches.
    fn look(&self, policy: &Key) -> Arc<dyn Sight>;
    /// A policy follows nothing any more.
    fn forget(&self, policy: &Key);
}

/// Straight from the API server.
pub struct Direct(pub Objects);
#[async_trait]
impl Sight for Direct {
    async fn get(&self, mapping: &Mapping, namespace: &str, name: &str) -> Result<Option<Value>, Trouble> {
        self.0.get(mapping, namespace, name).await
    }
    async fn list(&self, mapping: &Mapping, namespace: &str, selector: &Selector) -> Result<Vec<Value>, Trouble> {
        self.0.list(mapping, namespace, selector).await
    }
    fn follows(&self) -> bool {
        false
    }
}
