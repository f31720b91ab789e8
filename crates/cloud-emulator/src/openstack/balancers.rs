//! Octavia: members of pools. Balancers, listeners and pools are part of the scenery.
use super::OpenStackState;
use super::fields::{Fields, Order};
use super::kinds::{Kind, Service};
use super::replies::Refused;
use crate::kit::{Call, Phase, Request};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The pool that a path leads through.
pub(super) fn pool_in(request: &Request) -> String {
    let mut parts = request.uri().path().split('/').skip_while(|part| *part != "pools").skip(1);
    parts.next().unwrap_or_default().to_owned()
}

impl OpenStackState {
    pub(super) fn member(&mut self, call: Call<'_>) -> Result<Order, Refused> {
        let pool = pool_in(call.request);
        if self.store.seen(&call.principal.account, Kind::Pool, &pool, call.now).is_none() {
            return Err(Refused::not_found(Kind::Pool, &pool));
        }
        let mut fields = Fields::of(&call, Service::Balancer, "member")?;
        let address = fields.need("address")?;
        let port = fields.take("protocol_port").and_then(|it| it.as_i64()).filter(|port| (1..=65_535).contains(port));
        let port = port
            .ok_or_else(|| Refused::invalid(Service::Balancer, "Invalid input for field/attribute protocol_port."))?;
        let tags = fields.take("tags").unwrap_or_else(|| json!([]));
        if tags.as_array().is_none_or(|tags| tags.iter().any(|tag| tag.as_str().is_none_or(|it| it.len() > 255))) {
            return Err(Refused::invalid(Service::Balancer, "Invalid input for field/attribute tags."));
        }
        let body = json!({
            "pool_id": pool, "address": address, "protocol_port": port, "tags": tags, "name": fields.text("name")?.unwrap_or_default(),
            "weight": 1, "admin_state_up": true, "backup": false, "subnet_id": fields.text("subnet_id")?, "operating_status": "NO_MONITOR",
        });
        fields.finish()?;
        self.balancer_is_free(&pool, call.now)?;
        let taken =
            self.members_of(&pool, call.now).any(|(_, it)| it["address"] == address && it["protocol_port"] == port);
        if taken {
            let message = format!("Another member on this pool is already using ip {address} on protocol_port {port}");
            return Err(Refused::new(Service::Balancer, StatusCode::CONFLICT, "", message));
        }
        Ok(Order::plain(body))
    }
    fn members_of(&self, pool: &str, now: Timestamp) -> impl Iterator<Item = (Phase, Value)> {
        let members = self.store.of_kind(Kind::Member).filter(|it| it.text("pool_id") == pool && !it.gone(now));
        members.map(|it| (it.phase(now), Value::Object(it.body.clone()))).collect::<Vec<_>>().into_iter()
    }
    /// While one change is under way, a balancer takes no other.
    pub(super) fn balancer_is_free(&self, pool: &str, now: Timestamp) -> Result<(), Refused> {
        if self.members_of(pool, now).all(|(phase, _)| !matches!(phase, Phase::Building | Phase::Deleting)) {
            return Ok(());
        }
        let balancer = self.store.get(Kind::Pool, pool, now).map_or("", |it| it.text("loadbalancer_id")).to_owned();
        let message = format!("Load Balancer {balancer} is immutable and cannot be updated.");
        Err(Refused::new(Service::Balancer, StatusCode::CONFLICT, "", message))
    }
}
