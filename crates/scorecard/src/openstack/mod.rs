//! The OpenStack controller on the emulated OpenStack: production client, production visit, over the simulator's wire.
mod cloud;
mod controller;
mod spec;

pub use cloud::EmulatedOpenStack;
pub use controller::OpenStack;
