//! From names and filters to ids. Asks the cloud, changes nothing; what the answers mean is decided by plain functions.
use crate::api::{
    FixedIp, NeutronFilter, NeutronTags, OpenStackServerSpec, PortOpts, ResolvedFixedIp, ResolvedPort, ResolvedServer,
    SecurityGroupParam, SubnetFilter, SubnetParam,
};
use crate::cloud::{Cloud, Found, Lookup, Query, TRUNKS};
use crate::inputs::{Inputs, Missing};
use crate::names::reason;
use common::engine::estate::Fault;
use std::collections::BTreeSet;

/// Why a spec does not lead to ids.
#[derive(Clone, Debug, PartialEq)]
pub enum Unresolved {
    /// A name or filter leads to none, or to several.
    Failed(String),
    /// Something that may still come.
    Pending(String),
    /// The cloud lacks something.
    Unsupported(String),
    /// The cloud could not be asked.
    Fault(Fault),
}
impl From<Fault> for Unresolved {
    fn from(fault: Fault) -> Self {
        Unresolved::Fault(fault)
    }
}

/// Exactly one, or why not.
fn exactly_one(what: &str, asked: &str, mut found: Vec<Found>) -> Result<Found, Unresolved> {
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Unresolved::Failed(format!("no {what} matches {asked}"))),
        many => {
            let ids: Vec<&str> = found.iter().take(4).map(|it| it.id.as_str()).collect();
            Err(Unresolved::Failed(format!("{many} {what}s match {asked} ({}...): it must be one", ids.join(", "))))
        }
    }
}
fn said(query: &Query) -> String {
    query.iter().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join(" ")
}

fn tags(query: &mut Query, by: &NeutronTags) {
    let lists = [
        ("tags", &by.tags),
        ("tags-any", &by.tags_any),
        ("not-tags", &by.not_tags),
        ("not-tags-any", &by.not_tags_any),
    ];
    for (key, list) in lists {
        if !list.is_empty() {
            query.push((key, list.join(",")));
        }
    }
}
fn push(query: &mut Query, key: &'static str, value: Option<&String>) {
    query.extend(value.filter(|it| !it.is_empty()).map(|it| (key, it.clone())));
}
/// The query of a filter.
pub fn neutron_query(filter: &NeutronFilter) -> Query {
    let mut query = Query::new();
    push(&mut query, "name", filter.name.as_ref());
    push(&mut query, "description", filter.description.as_ref());
    push(&mut query, "project_id", filter.project_id.as_ref());
    tags(&mut query, &filter.by_tags);
    query
}
fn subnet_query(filter: &SubnetFilter) -> Query {
    let mut query = Query::new();
    push(&mut query, "name", filter.name.as_ref());
    push(&mut query, "description", filter.description.as_ref());
    push(&mut query, "project_id", filter.project_id.as_ref());
    push(&mut query, "gateway_ip", filter.gateway_ip.as_ref());
    push(&mut query, "cidr", filter.cidr.as_ref());
    push(&mut query, "ipv6_address_mode", filter.ipv6_address_mode.as_ref());
    push(&mut query, "ipv6_ra_mode", filter.ipv6_ra_mode.as_ref());
    query.extend(filter.ip_version.map(|version| ("ip_version", version.to_string())));
    tags(&mut query, &filter.by_tags);
    query
}

/// Looks things up for one spec.
pub struct Resolver<'a> {
    /// The cloud.
    pub cloud: &'a dyn Cloud,
    /// Kubernetes.
    pub inputs: &'a dyn Inputs,
    /// Namespace of the owner.
    pub namespace: &'a str,
}

/// What of a spec an old Nova cannot do, and the microversion that can. Told before anything is made, so that nothing is left.
fn needed_of_nova(spec: &OpenStackServerSpec) -> impl Iterator<Item = (&'static str, u32)> {
    let tags = (!spec.tags.is_empty()).then_some(("tags", 52));
    let devices = (!spec.additional_block_devices.is_empty()).then_some(("additional block devices", 42));
    tags.into_iter().chain(devices)
}

impl Resolver<'_> {
    /// Everything that the spec names.
    pub async fn server(
        &self,
        name: &str,
        spec: &OpenStackServerSpec,
        cluster: Option<&str>,
    ) -> Result<ResolvedServer, Unresolved> {
        if spec.ports.iter().any(|port| wants_trunk(spec, port)) && !self.cloud.extensions().await?.contains(TRUNKS) {
            return Err(Unresolved::Unsupported(
                "the spec asks for a trunk, and the cloud has no trunk extension".into(),
            ));
        }
        for (what, version) in needed_of_nova(spec) {
            let newest = self.cloud.compute_version().await?;
            if newest < version {
                return Err(Unresolved::Unsupported(format!(
                    "{what} need Nova's microversion 2.{version}, and the cloud's newest is 2.{newest}"
                )));
            }
        }
        let image_id = Some(self.image(spec).await?);
        let flavor_id = Some(self.flavor(spec).await?);
        let server_group_id = self.server_group(spec).await?;
        let defaults = self.security_groups(&spec.security_groups).await?;
        let mut ports = Vec::with_capacity(spec.ports.len());
        for (index, port) in spec.ports.iter().enumerate() {
            ports.push(self.port(name, spec, index, port, &defaults, cluster).await?);
        }
        Ok(ResolvedServer { server_group_id, image_id, flavor_id, ports })
    }

    async fn image(&self, spec: &OpenStackServerSpec) -> Result<String, Unresolved> {
        if let Some(id) = &spec.image.id {
            return Ok(id.clone());
        }
        if let Some(reference) = &spec.image.image_ref {
            return self.inputs.image(self.namespace, &reference.name).await.map_err(|missing| match missing {
                Missing::Pending(why) => Unresolved::Pending(why),
                Missing::Unusable(why) => Unresolved::Failed(why),
                Missing::Unavailable(why) => Unresolved::Fault(Fault::Transient(why)),
            });
        }
        let Some(filter) = &spec.image.filter else {
            return Err(Unresolved::Failed("the image is named in no way".into()));
        };
        let mut query = Query::new();
        push(&mut query, "name", filter.name.as_ref());
        query.extend(filter.tags.iter().map(|tag| ("tag", tag.clone())));
        if query.is_empty() {
            return Err(Unresolved::Failed("the image is named in no way".into()));
        }
        let asked = said(&query);
        let found = self.cloud.find(Lookup::Images, query).await?;
        let (usable, not): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|it| it.status.as_deref().is_none_or(|s| s == "active"));
        if usable.is_empty() && !not.is_empty() {
            let state = not[0].status.clone().unwrap_or_default();
            return Err(Unresolved::Failed(format!("image {} is {state}, not active", not[0].id)));
        }
        exactly_one("image", &asked, usable).map(|it| it.id)
    }

    async fn flavor(&self, spec: &OpenStackServerSpec) -> Result<String, Unresolved> {
        if let Some(id) = &spec.flavor_id {
            return Ok(id.clone());
        }
        let Some(name) = &spec.flavor else { return Err(Unresolved::Failed("the flavor is named in no way".into())) };
        let mut found = self.cloud.find(Lookup::Flavors, Query::new()).await?;
        found.retain(|it| it.name == *name);
        exactly_one("flavor", &format!("name={name:?}"), found).map(|it| it.id)
    }

    async fn server_group(&self, spec: &OpenStackServerSpec) -> Result<Option<String>, Unresolved> {
        let Some(group) = &spec.server_group else { return Ok(None) };
        if let Some(id) = &group.id {
            return Ok(Some(id.clone()));
        }
        let name = group.filter.as_ref().and_then(|filter| filter.name.clone()).unwrap_or_default();
        let mut found = self.cloud.find(Lookup::ServerGroups, Query::new()).await?;
        found.retain(|it| it.name == name);
        exactly_one("server group", &format!("name={name:?}"), found).map(|it| Some(it.id))
    }

    /// Each of them leads to exactly one group; without a project, of our own.
    pub async fn security_groups(&self, params: &[SecurityGroupParam]) -> Result<Vec<String>, Unresolved> {
        let mut ids = Vec::new();
        for param in params {
            let id = match (&param.id, &param.filter) {
                (Some(id), _) => id.clone(),
                (None, Some(filter)) => {
                    let mut query = neutron_query(filter);
                    if query.is_empty() {
                        return Err(Unresolved::Failed("a security group is named in no way".into()));
                    }
                    if filter.project_id.is_none() {
                        query.push(("project_id", self.cloud.identity().await?.project));
                    }
                    let asked = said(&query);
                    exactly_one("security group", &asked, self.cloud.find(Lookup::SecurityGroups, query).await?)?.id
                }
                (None, None) => return Err(Unresolved::Failed("a security group is named in no way".into())),
            };
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    async fn port(
        &self,
        name: &str,
        spec: &OpenStackServerSpec,
        index: usize,
        port: &PortOpts,
        defaults: &[String],
        cluster: Option<&str>,
    ) -> Result<ResolvedPort, Unresolved> {
        let network_id = self.network_of(index, port).await?;
        let mut fixed_ips = Vec::new();
        for fixed in &port.fixed_ips {
            fixed_ips.push(self.fixed_ip(index, &network_id, fixed).await?);
        }
        let security_groups = match (port.enable_port_security, port.security_groups.is_empty()) {
            (Some(false), _) => Vec::new(),
            (_, true) => defaults.to_vec(),
            (_, false) => self.security_groups(&port.security_groups).await?,
        };
        let cluster = cluster.map(|it| format!(" of cluster {it}")).unwrap_or_default();
        Ok(ResolvedPort {
            name: port_name(name, index, port),
            description: port.description.clone().unwrap_or_else(|| format!("Port of server {name}{cluster}")),
            network_id,
            trunk: Some(wants_trunk(spec, port)),
            fixed_ips,
            security_groups,
            tags: all_tags(spec, port),
        })
    }

    async fn network_of(&self, index: usize, port: &PortOpts) -> Result<String, Unresolved> {
        if let Some(network) = &port.network {
            if let Some(id) = &network.id {
                return Ok(id.clone());
            }
            let filter = network.filter.as_ref();
            let query = filter.map(neutron_query).unwrap_or_default();
            if query.is_empty() {
                return Err(Unresolved::Failed(format!("port {index}: its network is named in no way")));
            }
            let asked = said(&query);
            return exactly_one("network", &asked, self.cloud.find(Lookup::Networks, query).await?).map(|it| it.id);
        }
        // Inferred from the first subnet that is told exactly.
        let mut why = "it names neither a network nor a subnet".to_owned();
        for subnet in port.fixed_ips.iter().filter_map(|it| it.subnet.as_ref()) {
            match self.subnet(subnet, None).await {
                Ok(Found { network: Some(network), .. }) => return Ok(network),
                Ok(_) => why = String::from("its subnet tells no network"),
                Err(Unresolved::Failed(text)) => why = text,
                Err(other) => return Err(other),
            }
        }
        Err(Unresolved::Failed(format!("port {index}: its network cannot be told: {why}")))
    }

    /// The one subnet that is meant; inside a network, if that is known.
    pub async fn subnet(&self, subnet: &SubnetParam, network: Option<&str>) -> Result<Found, Unresolved> {
        if let Some(id) = &subnet.id {
            let found = self.cloud.one(Lookup::Subnets, id).await?;
            let found = found.ok_or_else(|| Unresolved::Failed(format!("there is no subnet {id}")))?;
            if let (Some(wanted), Some(is)) = (network, &found.network)
                && wanted != is
            {
                return Err(Unresolved::Failed(format!("subnet {id} is in network {is}, not in {wanted}")));
            }
            return Ok(found);
        }
        let mut query = subnet.filter.as_ref().map(subnet_query).unwrap_or_default();
        if query.is_empty() {
            return Err(Unresolved::Failed("a subnet is named in no way".into()));
        }
        query.extend(network.map(|id| ("network_id", id.to_owned())));
        let asked = said(&query);
        exactly_one("subnet", &asked, self.cloud.find(Lookup::Subnets, query).await?)
    }

    async fn fixed_ip(&self, index: usize, network: &str, fixed: &FixedIp) -> Result<ResolvedFixedIp, Unresolved> {
        let subnet = match &fixed.subnet {
            None => None,
            Some(subnet) => Some(self.subnet(subnet, Some(network)).await.map_err(|error| match error {
                Unresolved::Failed(text) => Unresolved::Failed(format!("port {index}: {text}")),
                other => other,
            })?),
        };
        Ok(ResolvedFixedIp { subnet: subnet.map(|it| it.id), ip_address: fixed.ip_address.clone() })
    }
}

/// Does this port stand under a trunk?
pub fn wants_trunk(spec: &OpenStackServerSpec, port: &PortOpts) -> bool {
    port.trunk.or(spec.trunk).unwrap_or(false)
}
/// What a port is called.
pub fn port_name(server: &str, index: usize, port: &PortOpts) -> String {
    match port.name_suffix.as_deref().filter(|suffix| !suffix.is_empty()) {
        Some(suffix) => format!("{server}-{suffix}"),
        None => format!("{server}-{index}"),
    }
}
/// Tags of server and port, each once, in order.
fn all_tags(spec: &OpenStackServerSpec, port: &PortOpts) -> Vec<String> {
    let all: BTreeSet<&String> = spec.tags.iter().chain(&port.tags).collect();
    all.into_iter().cloned().collect()
}
/// The reason of a condition for what does not lead to ids.
pub fn reason_of(unresolved: &Unresolved) -> &'static str {
    match unresolved {
        Unresolved::Failed(_) | Unresolved::Fault(_) => reason::DEPENDENCY_FAILED,
        Unresolved::Pending(_) => reason::WAITING_FOR_DEPENDENCY,
        Unresolved::Unsupported(_) => reason::NOT_SUPPORTED,
    }
}
