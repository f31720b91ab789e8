//! What is asked about the cloud itself: what it can do, how far routers reach, what is left of quotas.
use super::catalog::Service;
use super::connection::{Ask, ReadError};
use super::reply::Complaint;
use super::{Client, encode, reply, transient};
use crate::cloud::{Cloud as _, Extensions};
use crate::names::reason;
use crate::quota::{self, Quota};
use common::clock::Boot;
use common::engine::estate::Fault;
use common::ledger::Id;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::Mutex;

/// The newest microversion of Nova whose answers are known here: 2.60, several attachments of one volume.
const NEWEST_COMPUTE: u32 = 60;
/// What a cloud can do, and where, does not change often.
const FACTS_LAST: Duration = Duration::from_hours(1);
/// When an answer that is too old is asked for again after a failure.
const AGAIN: Duration = Duration::from_mins(1);
/// Quotas of Nova: ours, what is used, the most.
const COMPUTE: [(&str, &str, &str); 3] = [
    (quota::INSTANCES, "totalInstancesUsed", "maxTotalInstances"),
    (quota::CORES, "totalCoresUsed", "maxTotalCores"),
    (quota::RAM, "totalRAMUsed", "maxTotalRAMSize"),
];
/// Quotas of Neutron.
const NETWORK: [(&str, &str); 3] =
    [(quota::PORTS, "port"), (quota::TRUNKS, "trunk"), (quota::FLOATING_IPS, "floatingip")];
/// Quotas of Cinder.
const VOLUMES: [(&str, &str, &str); 2] = [
    (quota::VOLUMES, "totalVolumesUsed", "maxTotalVolumes"),
    (quota::GIGABYTES, "totalGigabytesUsed", "maxTotalVolumeGigabytes"),
];
/// Something that is asked once for a while, and when.
pub(super) type Remembered<T> = Mutex<Option<(Boot, T)>>;

impl Client {
    /// What was learned within the hour; else asks. One asks, the others wait for it.
    async fn remembered<T: Clone>(
        &self,
        held: &Remembered<T>,
        ask: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let mut held = held.lock().await;
        let now = self.connection.clock.boot();
        if let Some((asked, known)) = &*held
            && now.since(*asked) < FACTS_LAST
        {
            return Ok(known.clone());
        }
        match (ask.await, held.as_mut()) {
            (Ok(known), _) => {
                *held = Some((now, known.clone()));
                Ok(known)
            }
            // What was true an hour ago will do while the cloud does not answer; not everybody asks again at once.
            (Err(Fault::Transient(_) | Fault::Throttled(_)), Some((asked, known))) => {
                *asked = (now + AGAIN).minus(FACTS_LAST);
                Ok(known.clone())
            }
            (Err(fault), _) => Err(fault),
        }
    }

    pub(super) async fn ask_extensions(&self) -> Result<Extensions, Fault> {
        #[derive(Deserialize)]
        struct Reply {
            extensions: Vec<Extension>,
        }
        #[derive(Deserialize)]
        struct Extension {
            alias: String,
        }
        self.remembered(&self.extensions, async {
            let response = self.read(Service::Network, "/extensions".into()).await.map_err(ReadError::fault)?;
            let Reply { extensions } = reply::decode(&response).map_err(transient)?;
            Ok(extensions.into_iter().map(|it| it.alias).collect())
        })
        .await
    }

    pub(super) async fn ask_zones(&self) -> Result<BTreeSet<String>, Fault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Reply {
            availability_zone_info: Vec<Zone>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Zone {
            zone_name: String,
            zone_state: ZoneState,
        }
        #[derive(Deserialize)]
        struct ZoneState {
            available: bool,
        }
        self.remembered(&self.zones, async {
            let path = "/os-availability-zone".to_owned();
            let untold = |message: String| Fault::Terminal { reason: reason::NOT_SUPPORTED, message };
            let response = self.read(Service::Compute, path).await.map_err(|error| match error {
                ReadError::Complaint(Complaint::NotFound(why)) => untold(why),
                other => other.fault(),
            })?;
            let Reply { availability_zone_info: all } =
                reply::decode(&response).map_err(|reply::Unreadable(why)| untold(why))?;
            Ok(all.into_iter().filter(|it| it.zone_state.available).map(|it| it.zone_name).collect())
        })
        .await
    }

    pub(super) async fn ask_compute_version(&self) -> Result<u32, Fault> {
        #[derive(Deserialize)]
        struct Reply {
            version: Versions,
        }
        #[derive(Deserialize)]
        struct Versions {
            version: String,
        }
        self.remembered(&self.version, async {
            let ask = Ask::get(Service::Compute, "/".into());
            let response = self.connection.read(&ask).await.map_err(ReadError::fault)?;
            let Reply { version } = reply::decode(&response).map_err(transient)?;
            let minor = version.version.strip_prefix("2.").and_then(|minor| minor.parse::<u32>().ok());
            let minor = minor.ok_or_else(|| Fault::Transient("Nova names no version 2.x".into()))?;
            Ok(minor.min(NEWEST_COMPUTE))
        })
        .await
    }

    pub(super) async fn ask_gateways(&self, network: &str) -> Result<BTreeSet<Id>, Fault> {
        let query = vec![("network_id", network.to_owned())];
        let ports = self.pages(Service::Network, "/ports", "ports", &query).await?;
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let of_router = |port: &&Value| {
            text(port, "device_owner").is_some_and(|it| it.starts_with("network:") && it.contains("router_interface"))
        };
        let routers: BTreeSet<Id> =
            ports.values.iter().filter(of_router).filter_map(|port| text(port, "device_id")).collect();
        let mut gateways = BTreeSet::new();
        for router in routers {
            let shown = self.show(Service::Network, format!("/routers/{}", encode(&router)), "router").await?;
            let gateway =
                shown.as_ref().and_then(|it| it.get("external_gateway_info")).and_then(|it| text(it, "network_id"));
            gateways.extend(gateway);
        }
        Ok(gateways)
    }

    pub(super) async fn ask_quotas(&self) -> Result<Vec<Quota>, Fault> {
        let mut all = self.limits(Service::Compute, &COMPUTE).await?;
        let project = self.identity().await?.project;
        let shown = self.show(Service::Network, format!("/quotas/{}/details", encode(&project)), "quota").await?;
        let shown = shown.unwrap_or_default();
        for (name, word) in NETWORK {
            let number = |key: &str| shown[word].get(key).and_then(Value::as_i64);
            // What is about to be made counts, too.
            let used = number("used").map(|used| used + number("reserved").unwrap_or_default());
            all.extend(used.zip(number("limit")).map(|(used, most)| Quota { name, used, most }));
        }
        if self.connection.offers(Service::BlockStorage).await? {
            all.extend(self.limits(Service::BlockStorage, &VOLUMES).await?);
        }
        Ok(all)
    }
    /// Nova and Cinder tell their limits alike.
    async fn limits(&self, service: Service, words: &[(&'static str, &str, &str)]) -> Result<Vec<Quota>, Fault> {
        let response = self.read(service, "/limits".into()).await.map_err(ReadError::fault)?;
        let body: Value = reply::decode(&response).map_err(transient)?;
        let number = |key: &str| body["limits"]["absolute"].get(key).and_then(Value::as_i64);
        let quota = |(name, used, most): &(&'static str, &str, &str)| {
            Some(Quota { name, used: number(used)?, most: number(most)? })
        };
        Ok(words.iter().filter_map(quota).collect())
    }
}
