//! Where a cluster stands: its network, the one that floating addresses come from, and the zones that machines can stand in.
use super::reconcile::Subject;
use crate::api::{
    NetworkParam, NetworkStatus, OpenStackClusterSpec, OpenStackClusterStatus, OpenStackServer, SubnetStatus,
};
use crate::cloud::{Cloud, Found, Item, Kind, Lookup, Query};
use crate::inputs::Inputs;
use crate::parents::missing;
use crate::resolve::{Resolver, Unresolved, neutron_query, reason_of};
use crate::session::Session;
use common::conditions::{READY, find};
use common::engine::estate::{Fault, Freshness};
use common::engine::report::Progress;
use common::ledger::Id;
use std::collections::BTreeSet;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Networks {
    pub(super) network: NetworkStatus,
    pub(super) external: Option<NetworkStatus>,
    /// None where the cloud does not tell, or nobody would understand.
    pub(super) zones: Option<BTreeSet<String>>,
}

/// Looks around for one cluster.
pub(super) struct Survey<'a> {
    pub(super) cloud: &'a dyn Cloud,
    pub(super) inputs: &'a dyn Inputs,
    pub(super) subject: Subject<'a>,
    pub(super) known: &'a OpenStackClusterStatus,
}
impl Survey<'_> {
    /// Networks as status says, if they were found for this very spec, else asked for; zones as they are now.
    pub(super) async fn networks(&self) -> Result<Networks, Progress> {
        let (view, known) = (self.subject.view, self.known);
        let same = find(&view.conditions, READY)
            .is_some_and(|it| it.status == "True" && it.observed_generation == Some(view.generation));
        let (network, external) = match &known.network {
            Some(network) if same => (network.clone(), known.external_network.clone()),
            _ => self.find().await.map_err(|unresolved| match &unresolved {
                Unresolved::Fault(fault) => Progress::Failed(fault.clone()),
                Unresolved::Failed(message) | Unresolved::Unsupported(message) | Unresolved::Pending(message) => {
                    Progress::Blocked { reason: reason_of(&unresolved), message: message.clone() }
                }
            })?,
        };
        Ok(Networks { network, external, zones: self.zones().await? })
    }

    /// A cloud that keeps its zones to itself still has clusters. One that does not answer is waited for, once: the first machines
    /// of a cluster are placed by its zones.
    async fn zones(&self) -> Result<Option<BTreeSet<String>>, Progress> {
        if !self.inputs.reads_lists_of_zones().await.map_err(missing)? {
            return Ok(None);
        }
        match self.cloud.zones().await {
            Ok(zones) => Ok(Some(zones)),
            Err(fault @ (Fault::Transient(_) | Fault::Throttled(_))) if self.known.failure_domains.is_empty() => {
                Err(Progress::Failed(fault))
            }
            Err(_) => Ok(None),
        }
    }

    async fn find(&self) -> Result<(NetworkStatus, Option<NetworkStatus>), Unresolved> {
        let Subject { view, spec, .. } = self.subject;
        let resolver = Resolver { cloud: self.cloud, inputs: self.inputs, namespace: &view.namespace };
        let mut subnets = Vec::new();
        let mut network = match &spec.network {
            Some(network) => Some(self.network(network).await?),
            None => None,
        };
        for subnet in &spec.subnets {
            let found = resolver.subnet(subnet, network.as_ref().map(|it| it.id.as_str())).await?;
            if network.is_none()
                && let Some(id) = &found.network
            {
                network = Some(self.network(&NetworkParam { id: Some(id.clone()), filter: None }).await?);
            }
            let cidr = found.cidr.unwrap_or_default();
            subnets.push(SubnetStatus { name: found.name, id: found.id, cidr, tags: Vec::new() });
        }
        let network = network.ok_or_else(|| Unresolved::Failed("the network cannot be told".into()))?;
        let external = if spec.enable_external_network == Some(false) { None } else { self.external(spec).await? };
        Ok((NetworkStatus { name: network.name, id: network.id, tags: Vec::new(), subnets }, external))
    }
    async fn external(&self, spec: &OpenStackClusterSpec) -> Result<Option<NetworkStatus>, Unresolved> {
        let named = |found: Found| NetworkStatus { name: found.name, id: found.id, ..NetworkStatus::default() };
        if let Some(network) = &spec.external_network {
            return self.network(network).await.map(|it| Some(named(it)));
        }
        let mut found = self.cloud.find(Lookup::Networks, vec![("router:external", "true".to_owned())]).await?;
        match found.len() {
            0 => Ok(None),
            1 => Ok(Some(named(found.remove(0)))),
            many => Err(Unresolved::Failed(format!("{many} external networks exist: externalNetwork must name one"))),
        }
    }
    async fn network(&self, network: &NetworkParam) -> Result<Found, Unresolved> {
        if let Some(id) = &network.id {
            let found = self.cloud.one(Lookup::Networks, id).await?;
            return found.ok_or_else(|| Unresolved::Failed(format!("there is no network {id}")));
        }
        let query: Query = network.filter.as_ref().map(neutron_query).unwrap_or_default();
        if query.is_empty() {
            return Err(Unresolved::Failed("a network is named in no way".into()));
        }
        let asked = format!("{query:?}");
        let mut found = self.cloud.find(Lookup::Networks, query).await?;
        match found.len() {
            1 => Ok(found.remove(0)),
            many => Err(Unresolved::Failed(format!("{many} networks match {asked}: it must be one"))),
        }
    }
}

/// The address of the port in the network of the cluster. Where all ports are in one network, the server's status tells it.
pub(super) async fn address_inside(
    session: &Session,
    server: &OpenStackServer,
    port: Option<&str>,
) -> Result<Option<String>, Fault> {
    let status = server.status.clone().unwrap_or_default();
    let networks: BTreeSet<Id> =
        status.resolved.into_iter().flat_map(|it| it.ports).map(|port| port.network_id).collect();
    let Some(port) = port.filter(|_| networks.len() > 1) else {
        return Ok(status.addresses.into_iter().find(|it| it.type_ == "InternalIP").map(|it| it.address));
    };
    let listed = session.snapshots(&BTreeSet::from([Kind::Port]), Freshness::Any).await?;
    let is_meant = |item: &&Item| *item.id() == port;
    let found = match listed.iter().flat_map(|it| &it.items).find(is_meant).cloned() {
        Some(item) => Some(item),
        None => session.cloud().get(Kind::Port, port).await?,
    };
    let Some(Item::Port(port)) = found else { return Ok(None) };
    let addresses = port.fixed_ips.into_iter().map(|(_, address)| address);
    Ok(addresses.min_by_key(|address| address.contains(':')))
}
