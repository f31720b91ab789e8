//! The emulator against its page of facts.
#![allow(clippy::unwrap_used, clippy::expect_used)] // the whole crate is a test, its support included
mod administration;
mod by_hand;
mod call_log;
mod faults;
mod guards;
mod keys;
mod life;
mod listings;
mod program;
mod replay;
mod strictness;
mod support;
mod wire;
