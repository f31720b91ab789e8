//! The OpenStack controller on the emulated OpenStack: production client, production visits, over the simulator's wire.
mod bastion;
mod cloud;
mod machine;
mod objects;
mod pool;
mod server;
mod server_spec;
mod subject;

use common::testing::Subject;
use std::sync::Arc;
use subject::OpenStack;

/// Servers, servers with an address of a pool, bastions and machines.
pub fn subjects() -> Vec<Arc<dyn Subject>> {
    let parts: [&'static dyn subject::Part; 4] =
        [&server::Servers, &server::PooledServers, &bastion::Bastions, &machine::Machines];
    parts.into_iter().map(|part| -> Arc<dyn Subject> { Arc::new(OpenStack::of(part)) }).collect()
}
