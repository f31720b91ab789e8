//! The API server as one process meets it: it may die at any request, and strangers may act just before one.
use super::world::World;
use crate::cluster::kinds::Mapping;
use crate::cluster::sight::{Eyes, Sight};
use crate::cluster::wire::{Call, Trouble, Verb, Wire};
use crate::text::selector::Selector;
use async_trait::async_trait;
use common::runtime::object::Key;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is to happen at a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// The process dies before the write is carried out.
    DieBefore(usize),
    /// The process dies after the write, before its answer arrives.
    DieAfter(usize),
    /// The answer is lost, and the process lives on.
    LoseReply(usize),
    /// A stranger replaces the object just before this write; if it is about to be created, his own is there first.
    Stranger(usize),
    /// No watch ever tells of this write, until something else happens to its object or the process starts anew.
    DropEvent(usize),
    /// Nothing.
    None,
}

/// One API server, shared by all lives of a process.
#[derive(Default)]
pub struct Shared {
    /// What is there.
    pub world: World,
    /// How things were after each write: what a late watch still shows.
    pub past: Vec<World>,
    /// Writes so far.
    pub writes: usize,
    /// Requests so far.
    pub requests: usize,
    /// What is to happen.
    pub mishaps: Vec<Mishap>,
    /// Objects as they were before a write that no watch told of.
    pub unheard: HashMap<String, Option<Value>>,
    /// The process is dead: nothing it sends arrives.
    pub dead: bool,
    /// Uids that strangers made.
    pub foreign: Vec<String>,
    /// Uids of copies of which nobody can tell who made the original.
    pub unproven: Vec<String>,
}
/// A watch is never later than this.
const MOST_PAST: usize = 8;
impl Shared {
    /// How things are now becomes the past.
    pub fn remember(&mut self) {
        if self.past.len() >= MOST_PAST {
            self.past.remove(0);
        }
        let now = self.world.clone();
        self.past.push(now);
    }
}
/// A handle to it.
#[derive(Clone, Default)]
pub struct SimServer(pub Arc<Mutex<Shared>>);
impl SimServer {
    /// Looks inside.
    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
#[async_trait]
impl Wire for SimServer {
    async fn call(&self, call: Call) -> Result<Value, Trouble> {
        let mut shared = self.lock();
        if shared.dead {
            return Err(Trouble::silent("dead"));
        }
        shared.requests += 1;
        // Events are for people; no history depends on them.
        if call.path.ends_with("/events") {
            return Ok(Value::Null);
        }
        if !call.mutates() {
            return shared.world.answer(&call);
        }
        shared.writes += 1;
        let now = shared.writes;
        let planned = shared.mishaps.clone();
        let happens = |mishap: Mishap| planned.contains(&mishap);
        if happens(Mishap::DieBefore(now)) {
            shared.dead = true;
            return Err(Trouble::silent("killed"));
        }
        let path = object_path(&call);
        if happens(Mishap::Stranger(now)) {
            replace(&mut shared, &path, call.body.as_ref());
        }
        let before = shared.world.objects.get(&path).cloned();
        let answer = shared.world.answer(&call);
        if answer.is_ok() {
            shared.unheard.remove(&path);
        }
        if happens(Mishap::DropEvent(now)) {
            shared.unheard.insert(path, before);
        }
        shared.remember();
        if happens(Mishap::DieAfter(now)) {
            shared.dead = true;
            return Err(Trouble::silent("killed"));
        }
        if happens(Mishap::LoseReply(now)) {
            return Err(Trouble::silent("no reply"));
        }
        answer
    }
}
/// The object that a write is about.
fn object_path(call: &Call) -> String {
    let name = call.body.as_ref().and_then(|body| body["metadata"]["name"].as_str());
    match (call.verb, name) {
        (Verb::Post, Some(name)) => format!("{}/{name}", call.path),
        _ => call.path.trim_end_matches("/status").to_owned(),
    }
}
/// Somebody puts his own in the place of a child: what is there goes, and what was about to be created is there already.
fn replace(shared: &mut Shared, path: &str, sent: Option<&Value>) {
    if !path.contains("/things/") {
        return;
    }
    let there = shared.world.objects.get(path).cloned();
    if there.is_some() {
        if shared.world.delete(path, None).is_err() {
            return;
        }
        shared.world.deleted.pop();
    }
    // The same text, without a trace of us.
    let Some(mut own) = there.or_else(|| sent.filter(|body| body["metadata"]["name"].is_string()).cloned()) else {
        return;
    };
    if let Some(metadata) = own["metadata"].as_object_mut() {
        metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace"));
    }
    if let Ok(made) = shared.world.create(path, own, "a-stranger") {
        shared.foreign.push(made["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
    }
}

/// A watch that is this many writes late.
pub struct LateEyes {
    /// The server.
    pub server: SimServer,
    /// How late.
    pub late: usize,
}
impl Eyes for LateEyes {
    fn look(&self, _: &Key) -> Arc<dyn Sight> {
        Arc::new(Late { server: self.server.clone(), late: self.late })
    }
    fn forget(&self, _: &Key) {}
}
struct Late {
    server: SimServer,
    late: usize,
}
#[async_trait]
impl Sight for Late {
    async fn get(&self, mapping: &Mapping, namespace: &str, name: &str) -> Result<Option<Value>, Trouble> {
        let shared = self.server.lock();
        let past = shared.past.len().checked_sub(self.late + 1).and_then(|at| shared.past.get(at));
        let world = if self.late == 0 { Some(&shared.world) } else { past };
        let path = mapping.path_of(namespace, name);
        let mut found = match shared.unheard.get(&path) {
            Some(before) => before.clone(),
            None => world.and_then(|w| w.objects.get(&path)).cloned(),
        };
        // A watch keeps no field managers.
        if let Some(metadata) = found.as_mut().and_then(|f| f["metadata"].as_object_mut()) {
            metadata.remove("managedFields");
        }
        Ok(found)
    }
    async fn list(&self, _: &Mapping, _: &str, _: &Selector) -> Result<Vec<Value>, Trouble> {
        Ok(Vec::new())
    }
    fn follows(&self) -> bool {
        true
    }
    /// What the process wrote itself it need not hear of.
    fn wrote(&self, mapping: &Mapping, object: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        self.server.lock().unheard.remove(&mapping.path_of(text("namespace"), text("name")));
    }
}
