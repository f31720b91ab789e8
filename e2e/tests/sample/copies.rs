//! Copies of an owner that lives on: under another name, in another cluster, restored from a folder. Nothing is written to the
//! cloud for any of them, and each says what it waits for.
use crate::cloud::{Cloud, WRITES, of_verbs};
use crate::moves::{NAME, Side, wait_provisioned, write_cluster};
use crate::owners::{is_ready, is_stalled};
use crate::seen;
use crate::stage::{PATIENCE, owners_in};
use common::clock::{Clock, SystemClock};
use common::names::reason;
use e2e::folder::Folder;
use e2e::{Cluster, Result, capi, manifests};
use kube::api::DynamicObject;
use std::time::Duration;

/// Longer than one settle time: a controller that only waited before it writes would have written by then.
const LONGER_THAN_SETTLE: Duration = Duration::from_secs(16);

pub(crate) async fn copied_and_restored(source: &Side, target: &Side, cloud: &Cloud) -> Result<()> {
    // given a provisioned Cluster whose owner lives on
    let namespace = "living-on";
    write_cluster(source.cluster(), namespace).await?;
    wait_provisioned(source, namespace).await?;
    let original = source.owner(namespace, "to be ready", is_ready).await?;
    let mark = cloud.mark().await?;
    // when it is restored from a folder in another cluster, and copied under another name in both
    let backup = Folder::create("backup")?;
    capi::move_to_directory(source.cluster(), backup.path(), namespace).await?;
    capi::move_from_directory(target.cluster(), backup.path()).await?;
    backup.remove()?;
    for cluster in [source.cluster(), target.cluster()] {
        manifests::apply(cluster, namespace, vec![copy(&original)]).await?;
    }
    // then each of them says that it would have to take over first
    let copies: [(&Cluster, &str); 3] =
        [(target.cluster(), NAME), (source.cluster(), "copy"), (target.cluster(), "copy")];
    for (cluster, name) in copies {
        let owners = owners_in(cluster, namespace).await?;
        let required = |object: &DynamicObject| is_stalled(object, reason::TAKEOVER_REQUIRED);
        e2e::wait_for_object(&owners, name, &format!("the copy {name} to wait"), PATIENCE, required).await?;
    }
    // and nothing was written to the cloud, and nothing is after one settle time; the original is as it was
    SystemClock.sleep_until(SystemClock.boot() + LONGER_THAN_SETTLE).await;
    let calls = cloud.calls_since(mark).await?;
    assert_eq!(of_verbs(&calls, &WRITES), 0, "{calls:?}");
    source.owner(namespace, "to be ready still", is_ready).await?;
    seen("restored beside the living source and copied twice: 0 cloud writes, TakeoverRequired");
    Ok(())
}

/// The manifest as somebody would save and edit it: annotations and all, under another name.
fn copy(original: &DynamicObject) -> DynamicObject {
    let mut copy = original.clone();
    let annotations = original.metadata.annotations.clone();
    copy.metadata = kube::api::ObjectMeta { name: Some("copy".to_owned()), annotations, ..Default::default() };
    if let Some(fields) = copy.data.as_object_mut() {
        fields.remove("status");
    }
    copy
}
