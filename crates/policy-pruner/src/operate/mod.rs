//! What a person runs beside the controller: plan, audit, doctor, crd, and the peer's trigger-uninstall.
pub mod audit;
pub mod doctor;
pub mod plan;
pub mod references;
pub mod uninstall;

use crate::cluster::kinds::{Kinds, Mapping};
use crate::cluster::kube_wire::KubeWire;
use crate::cluster::objects::Objects;
use crate::surroundings::Surroundings;
use crate::text::selector::Selector;
use common::clock::{SharedClock, SystemClock};
use common::engine::fence::Open;
use common::process::cli::{KubeArgs, Output, say, table};
use common::process::client;
use common::process::run::Failure;
use kube::Client;
use serde::Serialize;
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;

/// Everything a subcommand works with.
pub struct Tools {
    /// kube's client.
    pub client: Client,
    /// Reads and writes.
    pub objects: Objects,
    /// Kinds.
    pub kinds: Arc<Kinds>,
    /// The CRD.
    pub surroundings: Surroundings,
    /// Time.
    pub clock: SharedClock,
}
impl Tools {
    /// Connects.
    pub async fn connect(kube: &KubeArgs) -> Result<Self, Failure> {
        let config = client::config(kube.kubeconfig.as_deref()).await?;
        let client = client::connect(config, None)?;
        let clock: SharedClock = Arc::new(SystemClock);
        let wire = Arc::new(KubeWire::new(client.clone(), clock.clone(), Arc::new(Open)));
        let objects = Objects(wire.clone());
        Ok(Tools {
            client,
            kinds: Arc::new(Kinds::new(wire, clock.clone())),
            surroundings: Surroundings::new(objects.clone(), None),
            objects,
            clock,
        })
    }
    /// Everything of a kind, in one namespace or all.
    pub async fn list(&self, mapping: &Mapping, namespace: Option<&str>) -> Result<Vec<Value>, Failure> {
        Ok(self.objects.list(mapping, namespace.unwrap_or_default(), &Selector::default()).await?)
    }
}

/// Says rows as a table or as JSON.
pub fn show<R: Serialize>(
    output: Output,
    header: &[&str],
    rows: &[R],
    cells: impl Fn(&R) -> Vec<String>,
) -> Result<(), Failure> {
    match output {
        Output::Table => say(&table(header, &rows.iter().map(cells).collect::<Vec<_>>())),
        Output::Json => say(&format!("{}\n", serde_json::to_string_pretty(rows)?)),
    }
    Ok(())
}

/// Prints the CRD.
pub fn crd() -> Result<ExitCode, Failure> {
    say(&crate::crd::yaml()?);
    Ok(ExitCode::SUCCESS)
}
