//! Emulated clouds for simulations, tests and demos.
//!
//! [`kit`] is what all clouds share: time, faults, visibility lag, limits, the call log, the administration and the server.
//! Each cloud is a module of its own, written from its page of facts alone and never from a client of it: two sides of a wire
//! that share code share their errors.
//!
//! A cloud is a synchronous state machine: time is an argument and all randomness comes from one seed, so that the same calls
//! get the same bytes. The same machine answers a simulator in virtual time and real clients over HTTP.
pub mod kit;
pub mod openstack;
pub mod sample;
