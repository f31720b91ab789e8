//! Where services answer: the catalog that comes with a token. Pure.
use serde::Deserialize;
use std::collections::BTreeSet;

/// The services in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Glance.
    Image,
    /// Cinder.
    BlockStorage,
    /// Octavia.
    LoadBalancer,
}
impl Service {
    pub(super) const COUNT: usize = 5;
    pub(super) fn index(self) -> usize {
        match self {
            Service::Compute => 0,
            Service::Network => 1,
            Service::Image => 2,
            Service::BlockStorage => 3,
            Service::LoadBalancer => 4,
        }
    }
    /// Its type in the catalog, the first of [`Service::types`].
    pub fn name(self) -> &'static str {
        self.types()[0]
    }
    fn types(self) -> &'static [&'static str] {
        match self {
            Service::Compute => &["compute"],
            Service::Network => &["network"],
            Service::Image => &["image"],
            Service::BlockStorage => &["block-storage", "volumev3", "volume", "block-store"],
            Service::LoadBalancer => &["load-balancer"],
        }
    }
    /// Catalogs write some endpoints without their version.
    fn versioned(self, url: &str) -> String {
        let url = url.trim_end_matches('/');
        let missing = |version: &str| !url.ends_with(version);
        match self {
            Service::Network | Service::LoadBalancer if missing("/v2.0") => format!("{url}/v2.0"),
            Service::Image if missing("/v2") => format!("{url}/v2"),
            _ => url.to_owned(),
        }
    }
}

/// Everything that is offered to the holder of a token, in the cloud's own order.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Catalog(Vec<Entry>);
#[derive(Clone, Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}
#[derive(Clone, Deserialize)]
struct Endpoint {
    interface: String,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    region_id: Option<String>,
    url: String,
}
impl Endpoint {
    fn region(&self) -> &str {
        self.region_id.as_deref().or(self.region.as_deref()).unwrap_or_default()
    }
    fn is_in(&self, region: &str) -> bool {
        self.region_id.as_deref() == Some(region) || self.region.as_deref() == Some(region)
    }
}

impl Catalog {
    /// Some clouds have one entry of a type with endpoints in all regions, others one entry for each region.
    fn endpoints(&self, service: Service) -> impl Iterator<Item = &Endpoint> {
        let entries = service.types().iter().flat_map(|name| self.0.iter().filter(|entry| entry.type_ == *name));
        entries.flat_map(|entry| &entry.endpoints)
    }
    /// Every region that something is offered in.
    fn regions(&self) -> BTreeSet<&str> {
        let endpoints = self.0.iter().flat_map(|entry| &entry.endpoints);
        endpoints.flat_map(|it| [it.region_id.as_deref(), it.region.as_deref()]).flatten().collect()
    }
    /// The region of who names none: the first that has servers to offer. One for all services, or ports would not meet their servers.
    pub(super) fn first_region(&self, interface: &str) -> Option<&str> {
        let mut offered = self.endpoints(Service::Compute).filter(|it| it.interface == interface);
        offered.next().map(Endpoint::region)
    }
    /// Where a service answers in a region, in any if it is empty; or why it does not.
    pub(super) fn endpoint(&self, service: Service, interface: &str, region: &str) -> Result<String, String> {
        let fits = |it: &&Endpoint| it.interface == interface && (region.is_empty() || it.is_in(region));
        if let Some(found) = self.endpoints(service).find(fits) {
            return Ok(service.versioned(&found.url));
        }
        let known: Vec<_> = self.regions().into_iter().collect();
        if region.is_empty() || known.contains(&region) {
            let name = service.name();
            return Err(format!("the catalog has no {interface} endpoint of service {name} in region {region:?}"));
        }
        Err(format!("region {region:?} is not in the catalog, which has: {}", known.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Interface, region and host.
    type Offer<'a> = (&'a str, &'a str, &'a str);

    fn catalog(entries: &[(&str, &[Offer<'_>])]) -> Catalog {
        let endpoint = |(interface, region, host): &Offer<'_>| json!({"interface": interface, "region": region, "region_id": region, "url": format!("http://{host}")});
        let entry = |(type_, endpoints): &(&str, &[Offer<'_>])| json!({"type": type_, "endpoints": endpoints.iter().map(endpoint).collect::<Value>()});
        serde_json::from_value(entries.iter().map(entry).collect()).unwrap()
    }

    #[test]
    fn endpoints_without_a_version_get_one() {
        assert_eq!(Service::Network.versioned("http://n:9696/"), "http://n:9696/v2.0");
        assert_eq!(Service::Network.versioned("http://n/networking/v2.0"), "http://n/networking/v2.0");
        assert_eq!(Service::Image.versioned("http://g"), "http://g/v2");
        assert_eq!(Service::Compute.versioned("http://c/v2.1/"), "http://c/v2.1");
        assert_eq!(Service::BlockStorage.versioned("http://b/v3/p"), "http://b/v3/p");
    }
    #[test]
    fn each_region_has_its_own_endpoint_in_one_entry_or_in_several() {
        let together = catalog(&[("compute", &[("public", "b", "nova.b"), ("public", "a", "nova.a")])]);
        let apart = catalog(&[("compute", &[("public", "b", "nova.b")]), ("compute", &[("public", "a", "nova.a")])]);
        for catalog in [together, apart] {
            for region in ["a", "b"] {
                let found = catalog.endpoint(Service::Compute, "public", region);
                assert_eq!(found, Ok(format!("http://nova.{region}")));
            }
            assert_eq!(catalog.first_region("public"), Some("b"), "first in the catalog, not by name");
        }
    }
    #[test]
    fn the_first_region_is_one_that_can_be_reached() {
        let catalog = catalog(&[("compute", &[("admin", "a", "x"), ("public", "b", "y")])]);
        assert_eq!(catalog.first_region("public"), Some("b"));
    }
    #[test]
    fn what_is_missing_is_told() {
        let catalog = catalog(&[("compute", &[("public", "b", "x"), ("public", "a", "y")])]);
        let told = |service, region| catalog.endpoint(service, "public", region).unwrap_err();
        assert_eq!(told(Service::Compute, "c"), "region \"c\" is not in the catalog, which has: a, b");
        let network = "the catalog has no public endpoint of service network in region \"a\"";
        assert_eq!(told(Service::Network, "a"), network);
    }
}
