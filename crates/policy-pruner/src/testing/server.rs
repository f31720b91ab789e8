//! The API server as one process meets it: it may die at any request, and strangers may act just before one.
use super::world::World;
use crate::cluster::kinds::Mapping;
use crate::cluster::sight::{Eyes, Sight};
use crate::cluster::wire::{Call, Trouble, Wire};
use crate::text::selector::Selector;
use async_trait::async_trait;
use common::runtime::object::Key;
use serde_json::Value;
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
    /// A stranger replaces the object at this path just before this write.
    Stranger(usize),
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
    pub mishap: Option<Mishap>,
    /// The process is dead: nothing it sends arrives.
    pub dead: bool,
    /// Uids that strangers made.
    pub foreign: Vec<String>,
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
        let (now, mishap) = (shared.writes, shared.mishap.unwrap_or(Mishap::None));
        if mishap == Mishap::DieBefore(now) {
            shared.dead = true;
            return Err(Trouble::silent("killed"));
        }
        if mishap == Mishap::Stranger(now) {
            replace(&mut shared, &call.path);
        }
        let answer = shared.world.answer(&call);
        shared.remember();
        match mishap {
            Mishap::DieAfter(at) if at == now => {
                shared.dead = true;
                Err(Trouble::silent("killed"))
            }
            Mishap::LoseReply(at) if at == now => Err(Trouble::silent("no reply")),
            _ => answer,
        }
    }
}
/// Somebody deletes the child at this path and creates his own.
fn replace(shared: &mut Shared, path: &str) {
    if !path.contains("/things/") || !shared.world.objects.contains_key(path) {
        return;
    }
    let mut own = shared.world.objects.get(path).cloned().unwrap_or_default();
    if shared.world.delete(path, None).is_err() {
        return;
    }
    shared.world.deleted.pop();
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
        let mut found = world.and_then(|w| w.objects.get(&mapping.path_of(namespace, name))).cloned();
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
}
