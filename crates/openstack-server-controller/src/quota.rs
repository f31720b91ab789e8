//! What a plan needs of the quotas of a project, and what there is too little of. Pure.
use crate::cloud::Kind;
use common::identity::Slot;
use serde_json::Value;
use std::collections::BTreeMap;

/// Names of quotas, for people.
pub const INSTANCES: &str = "instances";
/// Cores of flavors.
pub const CORES: &str = "cores";
/// RAM of flavors.
pub const RAM: &str = "RAM in MB";
/// Ports.
pub const PORTS: &str = "ports";
/// Trunks.
pub const TRUNKS: &str = "trunks";
/// Floating IPs.
pub const FLOATING_IPS: &str = "floating IPs";
/// Volumes.
pub const VOLUMES: &str = "volumes";
/// Sizes of volumes.
pub const GIGABYTES: &str = "gigabytes of volumes";

/// How much of something a project has and may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Of what.
    pub name: &'static str,
    /// How much there is.
    pub used: i64,
    /// How much there may be; below zero: as much as you like.
    pub most: i64,
}

/// What a server of a flavor takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Cores.
    pub cores: i64,
    /// RAM in MB.
    pub ram: i64,
}

/// How much more of each would be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs(BTreeMap<&'static str, i64>);
impl Needs {
    /// Adds what one create takes. `params` is what would be asked for; `size` that of the flavor, where it is a server.
    pub fn add(&mut self, slot: &str, params: &Value, size: Size) {
        let Some(kind) = slot.parse::<Slot>().ok().and_then(|slot| Kind::of(&slot)) else { return };
        let mut more = |name, count| *self.0.entry(name).or_default() += count;
        match kind {
            Kind::Server => {
                more(INSTANCES, 1);
                more(CORES, size.cores);
                more(RAM, size.ram);
            }
            Kind::Port => more(PORTS, 1),
            Kind::Trunk => more(TRUNKS, 1),
            Kind::FloatingIp => more(FLOATING_IPS, 1),
            Kind::Volume => {
                more(VOLUMES, 1);
                more(GIGABYTES, params["size"].as_i64().unwrap_or_default());
            }
            Kind::Member => {}
        }
    }
    /// What there is too little of. Nothing is said of what is not needed.
    pub fn short(&self, quotas: &[Quota]) -> Vec<String> {
        let judge = |Quota { name, used, most }: &Quota| {
            let more = self.0.get(name).copied().filter(|more| *more > 0)?;
            (*most >= 0 && used + more > *most)
                .then(|| format!("quota of {name}: {used} of {most} used, {more} more would be made"))
        };
        quotas.iter().filter_map(judge).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_create_counts_and_only_what_is_needed_is_told() {
        let mut needs = Needs::default();
        let size = Size { cores: 4, ram: 8192 };
        needs.add("server", &json!({"server": {"flavorRef": "f"}}), size);
        for slot in ["port-0", "port-1", "trunk-0", "fip"] {
            needs.add(slot, &json!({}), Size::default());
        }
        needs.add("volume-root", &json!({"size": 20}), Size::default());
        needs.add("volume-0", &json!({"size": 5}), Size::default());
        let quota = |name, used, most| Quota { name, used, most };
        let all = [
            (INSTANCES, 1),
            (CORES, 4),
            (RAM, 8192),
            (PORTS, 2),
            (TRUNKS, 1),
            (FLOATING_IPS, 1),
            (VOLUMES, 2),
            (GIGABYTES, 25),
        ];
        for (name, more) in all {
            assert_eq!(needs.short(&[quota(name, 3, 3 + more)]), Vec::<String>::new(), "{name}");
            let said = format!("quota of {name}: 3 of {} used, {more} more would be made", 2 + more);
            assert_eq!(needs.short(&[quota(name, 3, 2 + more)]), [said]);
            assert_eq!(needs.short(&[quota(name, 3, -1)]), Vec::<String>::new(), "no limit");
        }
        // a project that is over its quota already is no news to a plan that makes nothing
        assert_eq!(Needs::default().short(&[quota(CORES, 9, 3)]), Vec::<String>::new());
        let mut needs = Needs::default();
        needs.add("server", &json!({}), Size::default());
        assert_eq!(needs.short(&[quota(CORES, 9, 3)]), Vec::<String>::new());
    }
}
