//! Octavia: members of pools of load balancers that somebody else made.
use super::catalog::Service;
use super::{Client, encode, transient, wire};
use crate::cloud::{Backend, Cloud as _, Inventory, Kind};
use common::engine::estate::Fault;
use serde_json::Value;

/// Where the members of a pool are.
pub(super) fn members_of(pool: &str) -> String {
    format!("/lbaas/pools/{}/members", encode(pool))
}

impl Client {
    /// Members of the pools of a balancer, or of all pools of the project. A cloud without Octavia has none.
    pub(super) async fn list_members(&self, balancer: Option<&str>) -> Result<Inventory, Fault> {
        if balancer.is_none() && !self.connection.offers(Service::LoadBalancer).await? {
            return Ok(Inventory { date: self.identity().await?.date, items: Vec::new() });
        }
        let query = match balancer {
            Some(id) => ("loadbalancer_id", id.to_owned()),
            // Octavia shows an administrator everybody's things.
            None => ("project_id", self.identity().await?.project),
        };
        let pools = self.pages(Service::LoadBalancer, "/lbaas/pools", "pools", &vec![query]).await?;
        let mut items = Vec::new();
        for pool in pools.values.iter().filter_map(|pool| pool.get("id")?.as_str()) {
            let path = members_of(pool);
            let listed = match self.pages(Service::LoadBalancer, &path, "members", &Vec::new()).await {
                Ok(listed) => listed.values,
                Err(fault) if self.is_gone(pool).await? => {
                    tracing::debug!(pool, %fault, "went while it was listed");
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            for value in listed {
                let id = value.get("id").and_then(Value::as_str).unwrap_or_default();
                let item = wire::item(Kind::Member, &format!("{pool}/{id}"), value.clone());
                items.push(item.map_err(transient)?);
            }
        }
        Ok(Inventory { date: pools.date, items })
    }
    async fn is_gone(&self, pool: &str) -> Result<bool, Fault> {
        let shown = self.show(Service::LoadBalancer, format!("/lbaas/pools/{}", encode(pool)), "pool").await?;
        Ok(shown.is_none())
    }

    /// The pools behind the ports of a balancer.
    pub(super) async fn list_backends(&self, balancer: &str) -> Result<Vec<Backend>, Fault> {
        let query = vec![("loadbalancer_id", balancer.to_owned())];
        let listed = self.pages(Service::LoadBalancer, "/lbaas/listeners", "listeners", &query).await?;
        let backend = |value: &Value| {
            let port = value.get("protocol_port")?.as_i64()?;
            Some(Backend { port, pool: value.get("default_pool_id")?.as_str()?.to_owned() })
        };
        Ok(listed.values.iter().filter_map(backend).collect())
    }
}
