//! Changes and deletes of each kind, checked as the services check them.
use super::fields::{Fields, json_object};
use super::kinds::{Kind, Service};
use super::replies::{self, Refused};
use super::{OpenStackState, has, version_of};
use crate::kit::dice::Dice;
use crate::kit::{Answer, Call, Settings};
use http::StatusCode;
use serde_json::{Map, Value, json};

impl OpenStackState {
    pub(super) fn update(&mut self, kind: Kind, id: &str, call: Call<'_>) -> Result<Answer, Refused> {
        let (project, version) = (&*call.principal.account, version_of(call.request));
        if self.store.seen(project, kind, id, call.now).is_none() {
            return Err(Refused::not_found(kind, id));
        }
        let mut fields = Fields::of(&call, kind.service(), kind.one())?;
        let mut changes = Map::new();
        for field in ["description", "name"] {
            changes.extend(fields.text(field)?.map(|it| (field.to_owned(), json!(it))));
        }
        if kind == Kind::FloatingIp
            && let Some(port) = fields.take("port_id")
        {
            if let Some(port) = port.as_str()
                && self.store.seen(project, Kind::Port, port, call.now).is_none_or(|it| it.end.is_some())
            {
                return Err(Refused::not_found(Kind::Port, port));
            }
            changes.insert("status".into(), json!(if port.is_null() { "DOWN" } else { "ACTIVE" }));
            changes.insert("port_id".into(), port);
        }
        if kind == Kind::Member {
            let (pool, tags) = self
                .store
                .get(kind, id, call.now)
                .map_or((String::new(), None), |it| (it.text("pool_id").to_owned(), fields.take("tags")));
            self.balancer_is_free(&pool, call.now)?;
            changes.extend(tags.map(|tags| ("tags".to_owned(), tags)));
        }
        for field in ["admin_state_up", "security_groups"] {
            changes.extend(fields.take(field).filter(|_| kind == Kind::Port).map(|it| (field.to_owned(), it)));
        }
        fields.finish()?;
        if let Some(thing) = self.store.get_mut(id, call.now) {
            thing.body.extend(changes);
        }
        let shown = self
            .store
            .get(kind, id, call.now)
            .map(|it| super::show::thing(&self.store, it, project, call.now, false, version));
        let mut answer = replies::one(StatusCode::OK, kind, shown.unwrap_or_default());
        answer.effect = true;
        Ok(answer)
    }

    pub(super) fn tag(&mut self, settings: &Settings, kind: Kind, id: &str, call: Call<'_>) -> Result<Answer, Refused> {
        if !has(settings, "standard-attr-tag") {
            return Err(Refused::new(
                Service::Network,
                StatusCode::NOT_FOUND,
                "HTTPNotFound",
                "The resource could not be found.".into(),
            ));
        }
        if self.store.seen(&call.principal.account, kind, id, call.now).is_none() {
            return Err(Refused::not_found(kind, id));
        }
        let body: Value = serde_json::from_slice(call.request.body()).unwrap_or_default();
        let tags: Option<Vec<String>> = serde_json::from_value(body["tags"].clone()).ok();
        let mut tags = tags.ok_or_else(|| Refused::invalid(Service::Network, "Invalid tags body"))?;
        if tags.iter().any(|tag| tag.is_empty() || tag.len() > 255 || tag.contains('/')) || tags.len() > 50 {
            return Err(Refused::invalid(Service::Network, "Invalid input for tags"));
        }
        tags.sort();
        tags.dedup();
        if let Some(thing) = self.store.get_mut(id, call.now) {
            thing.body.insert("tags".into(), json!(tags));
        }
        let mut answer = Answer::new(StatusCode::OK, json!({"tags": tags}).to_string().into_bytes());
        answer.effect = true;
        Ok(answer)
    }

    pub(super) fn mark(&mut self, kind: Kind, id: &str, call: Call<'_>) -> Result<Answer, Refused> {
        if self.store.seen(&call.principal.account, kind, id, call.now).is_none() {
            return Err(Refused::not_found(kind, id));
        }
        let key = call.request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        let removing = call.request.method() == http::Method::DELETE;
        let set = if removing {
            json!({})
        } else {
            Fields { service: kind.service(), map: json_object(call)? }.pairs("metadata")?
        };
        let Some(thing) = self.store.get_mut(id, call.now) else { return Err(Refused::not_found(kind, id)) };
        let entry = thing.body.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = entry.as_object_mut() else { return Err(Refused::invalid(kind.service(), "no metadata")) };
        let mut answer = if removing {
            if metadata.remove(&key).is_none() {
                return Err(Refused::new(
                    kind.service(),
                    StatusCode::NOT_FOUND,
                    "",
                    "Metadata item was not found".into(),
                ));
            }
            let status = if kind == Kind::Server { StatusCode::NO_CONTENT } else { StatusCode::OK };
            Answer::new(status, Vec::new())
        } else {
            metadata.extend(set.as_object().cloned().unwrap_or_default());
            Answer::new(StatusCode::OK, json!({"metadata": metadata}).to_string().into_bytes())
        };
        answer.effect = true;
        Ok(answer)
    }

    /// `forceDelete` of servers, and sub-ports of trunks.
    pub(super) fn action(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        kind: Kind,
        id: &str,
        call: Call<'_>,
    ) -> Result<Answer, Refused> {
        if self.store.seen(&call.principal.account, kind, id, call.now).is_none() {
            return Err(Refused::not_found(kind, id));
        }
        let body = json_object(call)?;
        let mut answer = Answer::new(StatusCode::ACCEPTED, Vec::new());
        if kind == Kind::Server {
            if !body.contains_key("forceDelete") {
                return Err(Refused::invalid(Service::Compute, "There is no such action"));
            }
            if !has(settings, "force-delete") {
                return Err(Refused::forbidden("servers.action"));
            }
            self.store.end(settings, dice, id, Some(call.principal.name.to_string()), call.now);
        } else {
            let named: Vec<Value> = body.get("sub_ports").and_then(Value::as_array).cloned().unwrap_or_default();
            let adding = call.request.uri().path().ends_with("add_subports");
            let Some(trunk) = self.store.get_mut(id, call.now) else { return Err(Refused::not_found(kind, id)) };
            let mut list = trunk.body.get("sub_ports").and_then(Value::as_array).cloned().unwrap_or_default();
            if adding {
                list.extend(named);
            } else {
                list.retain(|it| !named.iter().any(|one| one["port_id"] == it["port_id"]));
            }
            trunk.body.insert("sub_ports".into(), Value::Array(list));
            answer = Answer::new(StatusCode::OK, b"{}".to_vec());
        }
        answer.effect = true;
        Ok(answer)
    }

    pub(super) fn delete(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        kind: Kind,
        id: &str,
        call: Call<'_>,
    ) -> Result<Answer, Refused> {
        let now = call.now;
        let Some(thing) = self.store.seen(&call.principal.account, kind, id, now) else {
            return Err(Refused::not_found(kind, id));
        };
        let status = if kind == Kind::Volume { StatusCode::ACCEPTED } else { StatusCode::NO_CONTENT };
        let mut answer = Answer::new(status, Vec::new());
        if thing.end.is_some() {
            return if kind == Kind::Volume {
                Err(Refused::invalid(Service::Volume, "Invalid volume: Volume status must be available or error"))
            } else {
                Ok(answer)
            };
        }
        self.in_the_way(kind, id, now).map_or(Ok(()), Err)?;
        if kind == Kind::Member {
            let pool = thing.text("pool_id").to_owned();
            self.balancer_is_free(&pool, now)?;
        }
        answer.effect = true;
        if kind == Kind::Server && !has(settings, "hard-delete") {
            if let Some(server) = self.store.get_mut(id, now) {
                answer.effect = !server.soft_deleted;
                server.soft_deleted = true;
            }
            return Ok(answer);
        }
        self.store.end(settings, dice, id, Some(call.principal.name.to_string()), now);
        Ok(answer)
    }
    /// What keeps a thing from being deleted.
    fn in_the_way(&self, kind: Kind, id: &str, now: jiff::Timestamp) -> Option<Refused> {
        let thing = self.store.get(kind, id, now)?;
        match kind {
            Kind::Port => {
                // Policy is asked before anything else.
                if thing.plugged(now).is_some() {
                    let message = "rule:delete_port is disallowed by policy".to_owned();
                    return Some(Refused::new(Service::Network, StatusCode::FORBIDDEN, "PolicyNotAuthorized", message));
                }
                let trunks = || self.store.of_kind(Kind::Trunk).filter(|it| !it.gone(now));
                if let Some(trunk) = trunks().find(|it| it.text("port_id") == id) {
                    let message = format!("Port {id} is currently a parent port for trunk {}.", trunk.id);
                    return Some(Refused::conflict(Service::Network, "PortInUseAsTrunkParent", message));
                }
                let rides = |list: &Value| list.as_array().into_iter().flatten().any(|it| it["port_id"] == id);
                let trunk = trunks().find(|it| it.body.get("sub_ports").is_some_and(rides))?;
                let message = format!("Port {id} is currently a subport for trunk {}.", trunk.id);
                Some(Refused::conflict(Service::Network, "PortInUseAsSubPort", message))
            }
            Kind::Trunk => {
                let parent = self.store.get(Kind::Port, thing.text("port_id"), now)?;
                parent.plugged(now).map(|_| {
                    Refused::conflict(Service::Network, "TrunkInUse", format!("Trunk {id} is currently in use."))
                })
            }
            Kind::Volume => {
                let message = "Invalid volume: Volume status must be available or error or error_restoring, and must not be attached";
                thing.server.as_ref().map(|_| Refused::invalid(Service::Volume, message))
            }
            _ => None,
        }
    }
}
