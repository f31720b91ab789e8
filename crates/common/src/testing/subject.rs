//! A user of the engine, as the simulator drives it. Every controller adds itself to the scorecard by implementing this.
use super::calendar::Millis;
use super::chance::Chance;
use super::cloud::{Lags, SimCloud, SimTransport, Twin};
use super::server::Object;
use super::sim::{ProcessId, Sim};
use crate::clock::SharedClock;
use crate::engine::Timing;
use crate::engine::fence::Fence;
use crate::engine::owner::OwnerApi;
use crate::engine::report::Report;
use crate::engine::rules::Rulebook;
use crate::identity::Mark;
use crate::ledger::{Id, Ledger};
use crate::operator::Found;
use crate::random::Random;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How varied the specs are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variety {
    /// The same every time: for plans that address calls by number.
    Fixed,
    /// Twelve pieces in four waves: for counting writes.
    Twelve,
    /// By chance, without adoption and references.
    Plain,
    /// By chance, with everything.
    Everything,
}

/// An edit of a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// One parameter of one piece.
    Change,
    /// One piece less.
    Remove,
    /// One piece more.
    Add,
    /// All pieces but one less.
    RemoveMost,
}

/// What a controller process is given to run with.
#[derive(Clone)]
pub struct Surroundings {
    /// The world, for subjects that call a cloud of their own over the wire.
    pub sim: Sim,
    /// Its number in that world.
    pub process: ProcessId,
    /// Its clocks.
    pub clock: SharedClock,
    /// Its chance.
    pub random: Arc<Random>,
    /// Its right to write.
    pub fence: Arc<dyn Fence>,
    /// Which rules hold.
    pub rules: Rulebook,
    /// The network to the cloud.
    pub transport: SimTransport,
    /// The API server.
    pub api: Arc<dyn OwnerApi>,
    /// Its installation id.
    pub installation: String,
}

/// What came of one visit.
#[derive(Clone, Debug)]
pub struct Visit {
    /// When to come again, if nothing changes before.
    pub again: Option<Duration>,
    /// The engine's report.
    pub report: Report,
}

/// One controller process: memory and clients, lost with it.
#[async_trait]
pub trait Controller: Send + Sync {
    /// The controller's own path from a cached object to the status write.
    async fn reconcile(&self, object: &Object) -> Visit;
    /// The object is gone from the cache.
    fn forget(&self, uid: &str);
    /// Is this version new enough to be taken in? Only those can wake a pass.
    fn heeds(&self, _object: &Object) -> bool {
        true
    }
    /// What of an object wakes a pass: a change of this does, anything else does not.
    fn trigger(&self, object: &Object) -> u64;
}

/// One user of the engine.
pub trait Subject: Send + Sync + 'static {
    /// For the table.
    fn name(&self) -> &'static str;
    /// The controller's name, as in its annotations.
    fn controller(&self) -> &'static str;
    /// The owner's kind.
    fn kind(&self) -> &'static str;
    /// Its times.
    fn timing(&self) -> Timing;
    /// The same, told that the cloud's lists lag this much.
    fn told(&self, lag: Duration) -> Arc<dyn Subject>;
    /// How many waves the pieces of [`Variety::Twelve`] come in.
    fn waves(&self) -> u64;
    /// A fresh cloud.
    fn cloud(&self, seed: u64, lags: Lags) -> Box<dyn SimCloud>;
    /// A spec for the owner of this name. Natural keys must not collide between names.
    fn spec(&self, name: &str, variety: Variety, chance: &mut Chance) -> Value;
    /// Changes a spec; false if there is nothing of that sort to change.
    fn edit(&self, spec: &mut Value, edit: Edit, chance: &mut Chance) -> bool;
    /// Adds a piece that uses somebody else's thing by id; false if its kind cannot be used so.
    fn refer(&self, spec: &mut Value, kind: &str, id: &str) -> bool;
    /// What a stranger would make to stand in the way of this spec's pieces, as far as the cloud's things allow.
    fn twins(&self, name: &str, spec: &Value, cloud: &dyn SimCloud) -> Vec<Twin>;
    /// The permissions a controller needs to change anything.
    fn permissions(&self) -> Vec<String>;
    /// A new process.
    fn start(&self, surroundings: Surroundings) -> Arc<dyn Controller>;
    /// The pieces of a spec that should be there when all is well: slots.
    fn wanted(&self, spec: &Value) -> Vec<String>;
    /// What is wrong with an owner that is done, though all its pieces are there.
    fn flaw(&self, _object: &Object, _ledger: &Ledger, _cloud: &dyn SimCloud) -> Option<String> {
        None
    }
    /// What is wrong at any time, beside what everybody's things are judged by.
    fn damage(&self, _cloud: &dyn SimCloud) -> Vec<String> {
        Vec::new()
    }
    /// How many pieces of a spec cannot be marked in the create call.
    fn marked_later(&self, spec: &Value) -> usize;
    /// Everything an audit would find, without any lag.
    fn found(&self, cloud: &dyn SimCloud) -> Vec<Found>;
    /// Puts `count` things of every kind into the cloud as a dead owner would have left them; returns their ids.
    fn plant_orphans(&self, cloud: &mut dyn SimCloud, now: Millis, mark: &Mark, count: u64) -> Vec<Id>;
    /// Is this call a list that all owners share?
    fn is_shared_list(&self, label: &str) -> bool;
}
