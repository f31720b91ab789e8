//! What all controllers share. Knows no cloud.
//!
//! The pure half (identity, ledger, decisions, conditions, backoff) has no client, no clock, no randomness in it: now and
//! ids are arguments. The other half is thin I/O around it.
//!
//! | room | what lives there |
//! |---|---|
//! | [`identity`] | owner id, place, slot, mark: who made a thing, and for whom |
//! | [`ledger`] | the write-ahead record in an annotation of the owner |
//! | [`engine`] | two decision tables, who may write, and the driver that runs them |
//! | [`observer`] | one listing for all owners of an account, shared until it is too old |
//! | [`conditions`], [`status`] | what a pass came to, for people and tools; written once per pass |
//! | [`owner_api`] | the engine's three calls to the API server, over kube |
//! | [`runtime`] | watch, cache, queue, runner: which object gets its next pass, and when |
//! | [`process`] | command line, logs, metrics, health, leadership, shutdown |
//! | [`pause`], [`filter`], [`peer`] | which owners are left alone, and why |
//! | [`events`], [`tags`], [`crd`] | events for people; tag differences; CRDs as YAML |
//! | [`backoff`] | how long a failing object is left alone |
//! | [`concern`] | which things of an account may concern one owner |
//! | [`operator`] | what a person runs beside the controller: audit, plan, takeover, release, doctor |
//! | [`clock`], [`random`] | the two sources of chance, shared by production and simulation |
//! | [`transport`] | one HTTP exchange, so that clients run on a socket or in the simulator |

pub mod backoff;
pub mod clock;
pub mod concern;
pub mod conditions;
pub mod crd;
pub mod engine;
pub mod events;
pub mod filter;
pub mod identity;
pub mod ledger;
pub mod names;
pub mod observer;
pub mod operator;
pub mod owner_api;
pub mod pause;
pub mod peer;
pub mod process;
pub mod random;
pub mod runtime;
pub mod status;
pub mod tags;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transport;
