//! Cluster API's core manager, its webhooks included.
use super::definitions::{Webhooks, definitions, webhook_configurations};
use crate::cluster::Cluster;
use crate::controller::{ControllerProcess, Launch};
use crate::error::{Error, Result};
use crate::manifests;
use crate::process::free_address;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::Api;
use kube::api::DeleteParams;
use std::time::Duration;

/// A running core manager.
#[derive(Debug)]
pub struct Manager {
    cluster: Cluster,
    process: ControllerProcess,
}

/// Starts the core manager on a control plane on which [`super::install`] was run; ready to serve and to convert.
pub async fn start_manager(cluster: &Cluster) -> Result<Manager> {
    let tools = cluster.tools().await?;
    let authority = cluster.authority()?;
    let serving = authority.server(&cluster.folder(), "cluster-api-webhooks")?;
    let authority = std::fs::read(&authority.certificate).map_err(Error::io("cannot read", &authority.certificate))?;
    let webhooks = Webhooks { address: free_address()?, authority };
    let launch = Launch::program(cluster, tools.path("cluster-api-manager")?, "cluster-api-manager")?;
    let health = launch.listen();
    let launch = launch
        .env("KUBECONFIG", cluster.kubeconfig().display().to_string())
        .arg(format!("--health-addr={health}"))
        .arg(format!("--webhook-port={}", webhooks.address.port()))
        .arg(format!("--webhook-cert-dir={}", cluster.folder().path().display()))
        .arg(format!("--webhook-cert-name={}", file_name(&serving.certificate)))
        .arg(format!("--webhook-key-name={}", file_name(&serving.key)))
        .arg("--diagnostics-address=127.0.0.1:0")
        .arg("--insecure-diagnostics=true");
    let mut process = launch.start()?;
    process.wait_ready(Duration::from_mins(2)).await?;
    let mut objects = definitions(&tools, Some(&webhooks))?;
    objects.extend(webhook_configurations(&tools, &webhooks)?);
    manifests::apply(cluster, "default", objects).await?;
    Ok(Manager { cluster: cluster.clone(), process })
}

impl Manager {
    /// The process, to freeze or kill it.
    pub fn process(&mut self) -> &mut ControllerProcess {
        &mut self.process
    }
    /// Ends it. Its webhooks go first, or nobody could write a Cluster any more.
    pub async fn stop(mut self) -> Result<()> {
        let client = self.cluster.client().await?;
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(client);
        mutating.delete("capi-mutating-webhook-configuration", &DeleteParams::default()).await?;
        validating.delete("capi-validating-webhook-configuration", &DeleteParams::default()).await?;
        self.process.stop(Duration::from_secs(10)).await?;
        Ok(())
    }
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
