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
//! | [`clock`], [`random`] | the two sources of chance, shared by production and simulation |
//! | [`transport`] | one HTTP exchange, so that clients run on a socket or in the simulator |

pub mod clock;
pub mod engine;
pub mod identity;
pub mod ledger;
pub mod names;
pub mod observer;
pub mod random;
pub mod transport;
