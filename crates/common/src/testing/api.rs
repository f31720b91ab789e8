//! The API server as one process reaches it: the engine's three calls, over the wire.
use super::calendar::Millis;
use super::sim::{ProcessId, Sim, State};
use super::wire::{Call, Heard, Target};
use crate::engine::owner::{ApiUnavailable, OwnerApi, OwnerPatch, OwnerView, Patched};
use async_trait::async_trait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

/// The API server of one process.
#[derive(Clone)]
pub struct SimApi {
    sim: Sim,
    server: usize,
    timeout: Millis,
}
impl SimApi {
    /// As reached by this process; it gives up on a call after `timeout`.
    pub fn new(sim: Sim, process: ProcessId, timeout: Millis) -> Self {
        let server = sim.with(|s| s.processes.get(process).map_or(0, |p| p.server));
        SimApi { sim, server, timeout }
    }
    fn call(&self, writes: bool) -> Call {
        Call { target: Target::Api, writes, timeout: self.timeout }
    }
}

/// As the production client sorts replies: whatever is not an answer of the API server about this object says nothing.
fn sorted(heard: Heard<Patched>) -> Patched {
    match heard {
        Heard::Reply(answer) => answer,
        Heard::NotSent => Patched::Unknown("connection refused".into()),
        Heard::NoReply => Patched::Unknown("connection lost".into()),
        Heard::Status(code) => Patched::Unknown(format!("{code}")),
        Heard::Garbage => Patched::Unknown("not an object".into()),
    }
}

fn stored(s: &mut State, what: &str, answer: &Patched) {
    if s.traced() {
        let line = match answer {
            Patched::Stored(view) => {
                let ledger = view.annotations.iter().find(|(k, _)| k.ends_with("-ledger")).map(|(_, v)| v.as_str());
                format!(
                    "  api: {what} {} -> rv {} gen {} deleting {} finalizers {:?} {}",
                    view.name,
                    view.resource_version,
                    view.generation,
                    view.deleting,
                    view.finalizers,
                    ledger.unwrap_or_default()
                )
            }
            other => format!("  api: {what} -> {other:?}"),
        };
        s.say(|| line);
    }
    s.announce();
}

#[async_trait]
impl OwnerApi for SimApi {
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<OwnerView>, ApiUnavailable> {
        let key = (namespace.to_owned(), name.to_owned());
        let server = self.server;
        let effect = move |s: &mut State| s.servers.get(server).and_then(|x| x.get(&key)).map(|o| o.view.clone());
        match self.sim.call(self.call(false), || format!("api get {name}"), effect).await {
            Heard::Reply(view) => Ok(view),
            other => Err(ApiUnavailable(format!("{other:?}"))),
        }
    }
    async fn patch(&self, view: &OwnerView, patch: &OwnerPatch) -> Patched {
        let (server, view, patch) = (self.server, view.clone(), patch.clone());
        let label = || format!("api patch {} at rv {}", view.name, view.resource_version);
        let label = label();
        let effect = move |s: &mut State| {
            let before =
                s.servers.get(server).and_then(|x| x.get(&(view.namespace.clone(), view.name.clone())).cloned());
            let answer = s.servers.get_mut(server).map_or(Patched::Gone, |x| x.patch(&view, &patch));
            if let (Some(before), Patched::Stored(after)) = (before, &answer) {
                s.judge_finalizers(&before.view, after);
            }
            stored(s, "metadata", &answer);
            answer
        };
        sorted(self.sim.call(self.call(true), || label, effect).await)
    }
    async fn patch_status(&self, view: &OwnerView, conditions: &[Condition], fields: &Value) -> Patched {
        let (server, view, conditions, fields) = (self.server, view.clone(), conditions.to_vec(), fields.clone());
        let label = format!("api patch status {} at rv {}", view.name, view.resource_version);
        let effect = move |s: &mut State| {
            let answer =
                s.servers.get_mut(server).map_or(Patched::Gone, |x| x.patch_status(&view, &conditions, &fields));
            let said = if s.traced() {
                conditions
                    .iter()
                    .map(|c| format!("{}={}/{}", c.type_, c.status, c.reason))
                    .collect::<Vec<_>>()
                    .join(" ")
            } else {
                String::new()
            };
            stored(s, &format!("status [{said}]"), &answer);
            answer
        };
        sorted(self.sim.call(self.call(true), || label, effect).await)
    }
}
