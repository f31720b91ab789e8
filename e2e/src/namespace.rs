//! A namespace for one test.
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::patience::wait_until_gone;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use std::time::Duration;

/// A namespace that goes with [`TemporaryNamespace::finish`]. Dropped without that, it stays for reading: the test failed.
#[derive(Debug)]
pub struct TemporaryNamespace {
    cluster: Cluster,
    name: String,
    finished: bool,
}

impl TemporaryNamespace {
    /// A new namespace whose name begins with `prefix`.
    pub async fn create(cluster: &Cluster, prefix: &str) -> Result<Self> {
        let api: Api<Namespace> = Api::all(cluster.client().await?);
        let metadata = ObjectMeta { generate_name: Some(format!("{prefix}-")), ..ObjectMeta::default() };
        let made = api.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await?;
        let name = made.metadata.name.ok_or_else(|| Error::other("the API server made a namespace without a name"))?;
        Ok(TemporaryNamespace { cluster: cluster.clone(), name, finished: false })
    }
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Deletes it and waits until it is gone, which takes every finalizer in it to be gone.
    pub async fn finish(mut self, patience: Duration) -> Result<()> {
        let api: Api<Namespace> = Api::all(self.cluster.client().await?);
        match api.delete(&self.name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        wait_until_gone(&api, &self.name, patience).await?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for TemporaryNamespace {
    fn drop(&mut self) {
        if !self.finished {
            eprintln!("kept for reading: namespace {}", self.name);
            self.cluster.folder().keep();
        }
    }
}
