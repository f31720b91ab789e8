//! Bodies of requests, read as strictly as the services read them.
use super::kinds::Service;
use super::replies::Refused;
use crate::kit::Call;
use serde_json::{Map, Value, json};

/// A body's fields, taken one by one; what is left over was not asked for.
pub(super) struct Fields {
    pub(super) service: Service,
    pub(super) map: Map<String, Value>,
}
impl Fields {
    pub(super) fn of(call: &Call<'_>, service: Service, within: &str) -> Result<Self, Refused> {
        let body: Value = serde_json::from_slice(call.request.body())
            .map_err(|_| Refused::invalid(service, "Malformed request body"))?;
        match body.get(within).cloned() {
            Some(Value::Object(map)) => Ok(Fields { service, map }),
            _ => Err(Refused::invalid(service, format!("{within} is a required property"))),
        }
    }
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Refused> {
        match self.map.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Refused::invalid(self.service, format!("Invalid input for field/attribute {name}"))),
        }
    }
    pub(super) fn need(&mut self, name: &str) -> Result<String, Refused> {
        let text = self.text(name)?;
        text.filter(|it| !it.is_empty())
            .ok_or_else(|| Refused::invalid(self.service, format!("'{name}' is a required property")))
    }
    pub(super) fn pairs(&mut self, name: &str) -> Result<Value, Refused> {
        match self.map.remove(name) {
            None => Ok(json!({})),
            Some(Value::Object(map))
                if map.values().all(Value::is_string) && map.keys().all(|key| !key.contains('/')) =>
            {
                Ok(Value::Object(map))
            }
            Some(_) => Err(Refused::invalid(self.service, format!("Invalid input for field/attribute {name}"))),
        }
    }
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name)
    }
    pub(super) fn finish(self) -> Result<(), Refused> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(name) if self.service == Service::Network => {
                Err(Refused::invalid(self.service, format!("Unrecognized attribute(s) '{name}'")))
            }
            Some(name) => {
                let message = format!("Additional properties are not allowed ('{name}' was unexpected)");
                Err(Refused::invalid(self.service, message))
            }
        }
    }
}

/// What a create comes to.
pub(super) struct Order {
    pub(super) body: Map<String, Value>,
    pub(super) ports: Vec<String>,
    pub(super) volumes: Vec<(String, bool)>,
}
impl Order {
    pub(super) fn plain(body: Value) -> Self {
        let body = if let Value::Object(map) = body { map } else { Map::new() };
        Order { body, ports: Vec::new(), volumes: Vec::new() }
    }
}

/// A whole body.
pub(super) fn json_object(call: Call<'_>) -> Result<Map<String, Value>, Refused> {
    serde_json::from_slice(call.request.body())
        .map_err(|_| Refused::invalid(Service::Compute, "Malformed request body"))
}
