//! The sample controller on the emulated sample cloud: production client, production visit, over the simulator's wire.
mod cloud;
mod controller;
mod spec;

pub use controller::Sample;
