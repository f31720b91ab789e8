//! The replay list: what happened to others, one test per case, on the emulated cloud through a real API server. Numbers are those of
//! docs/openstack-cases.md, which says in words what each case is.
#![allow(clippy::needless_pass_by_value)] // json!s are written in place

mod bastions;
mod creation;
mod credentials;
mod deletion;
mod machines;
mod ports;
mod regions;
mod volumes;

pub(crate) use creation::IMAGES;
pub(crate) use machines::{boot, cluster, machine, told};

use crate::stage::{PATIENCE, Stage, Thing, condition, spec};
use crate::tell;
use e2e::Result;
use e2e::patience::{Seen, until};
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// Sets the stage, starts a controller, tells the story; everything must be gone afterwards.
async fn play(name: &str, story: impl AsyncFnOnce(&Stage) -> Result<()>) {
    tell(name, async {
        let stage = Stage::set(name.split("__").next().unwrap_or(name)).await?;
        let mut controller = stage.start().await?;
        story(&stage).await?;
        stage.emulator.clear_faults().await?;
        stage.delete_all().await?;
        controller.must_run()?;
        controller.kill().await?;
        stage.clear().await
    })
    .await;
}

impl Stage {
    /// Applies a server and waits until it is ready.
    async fn ready(&self, name: &str, fields: &Value) -> Result<DynamicObject> {
        self.create(name, &spec(fields)).await?;
        self.wait_ready(name).await
    }
    async fn strike(&self, fault: Value) -> Result<()> {
        self.emulator.add_faults(&fault).await
    }
    async fn count(&self, kind: &str, verb: &str) -> Result<u64> {
        self.emulator.count_calls(&[("kind", kind), ("verb", verb)]).await
    }
    /// The one living thing of this kind and name.
    async fn thing(&self, kind: &str, name: &str) -> Result<Thing> {
        let all = self.living(kind).await?;
        let found: Vec<_> = all.iter().filter(|it| it.fields["name"] == name).cloned().collect();
        match <[Thing; 1]>::try_from(found) {
            Ok([thing]) => Ok(thing),
            Err(found) => Err(e2e::Error::other(format!("{} {kind}s are called {name}: {all:?}", found.len()))),
        }
    }
    /// Nothing was made, whatever was tried.
    async fn nothing_made(&self) -> Result<()> {
        let ours = self.ours().await?;
        assert!(ours.is_empty(), "{ours:?}");
        Ok(())
    }
    /// Waits until the cloud is as wanted.
    async fn until(&self, what: &str, wanted: impl Fn(&[Thing]) -> bool) -> Result<()> {
        until(what, PATIENCE, || async {
            let things: Vec<Thing> = self.things().await?.into_iter().filter(Thing::exists).collect();
            Ok(if wanted(&things) { Seen::Yes(()) } else { Seen::NotYet(format!("{things:?}")) })
        })
        .await
    }
}
fn said(object: &DynamicObject, kind: &str) -> String {
    condition(object, kind).map(|it| format!("{}/{}: {}", it.0, it.1, it.2)).unwrap_or_default()
}
fn id_of(object: &DynamicObject) -> String {
    object.data["status"]["instanceID"].as_str().unwrap_or_default().to_owned()
}
/// A port in this network.
fn port(network: &str, more: &Value) -> Value {
    let mut port = json!({"network": {"filter": {"name": network}}});
    if let (Some(port), Some(more)) = (port.as_object_mut(), more.as_object()) {
        port.extend(more.clone());
    }
    port
}
