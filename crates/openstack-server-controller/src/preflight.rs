//! What a plan would meet with in the cloud: things that its creates name and that are not there, and what they take of the quotas.
use crate::cloud::{Cloud, Lookup};
use crate::quota::{Needs, Size};
use common::engine::estate::Fault;
use common::engine::preview::Act;
use serde_json::Value;

/// Adds what the creates take to `needs`, and says what they name that the cloud does not have.
pub async fn look_ahead(cloud: &dyn Cloud, acts: &[Act], needs: &mut Needs) -> Result<Vec<String>, Fault> {
    let mut lacking = Vec::new();
    for act in acts {
        let Act::Create { slot, params } = act else { continue };
        let named = |pointer: &str| params.pointer(pointer).and_then(Value::as_str);
        let mut size = Size::default();
        if let Some(id) = named("/server/flavorRef") {
            match cloud.one(Lookup::Flavors, id).await? {
                Some(flavor) => size = Size { cores: flavor.cores, ram: flavor.ram },
                None => lacking.push(format!("there is no flavor {id}")),
            }
        }
        if let Some(key) = named("/server/key_name")
            && told(cloud.has_key(key).await)? == Some(false)
        {
            lacking.push(format!("there is no SSH key {key}"));
        }
        if let Some(zone) = named("/server/availability_zone") {
            // An administrator can name a host in it.
            let plain = zone.split(':').next().unwrap_or_default();
            if told(cloud.zones().await)?.is_some_and(|zones| !zones.contains(plain)) {
                lacking.push(format!("no availability zone {zone} takes servers"));
            }
        }
        if let Some(type_) = named("/volume_type")
            && told(cloud.volume_types().await)?.is_some_and(|types| !types.contains(type_))
        {
            lacking.push(format!("there is no volume type {type_}"));
        }
        needs.add(slot, params, size);
    }
    lacking.sort();
    lacking.dedup();
    Ok(lacking)
}
/// What the cloud keeps to itself cannot be held against a plan.
fn told<T>(answer: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Fault::Denied(_) | Fault::Terminal { .. }) => Ok(None),
        Err(fault) => Err(fault),
    }
}
