//! A real control plane on loopback, real binaries, emulated clouds.
//!
//! Everything here serves tests: it starts processes that cannot outlive the test, waits until something is seen and says what
//! was seen instead, and leaves its files behind only after a failure.
pub mod account;
pub mod audit;
pub mod binaries;
pub mod capi;
pub mod cluster;
pub mod controller;
pub mod controlplane;
pub mod emulator;
pub mod env;
pub mod error;
pub mod fault_proxy;
pub mod folder;
pub mod kubeconfig;
pub mod manifests;
pub mod namespace;
pub mod patience;
pub mod pki;
pub mod process;
pub mod rights;
pub mod story;

pub use account::Account;
pub use audit::AuditLog;
pub use cluster::{Cluster, cluster};
pub use controller::{ControllerProcess, Launch};
pub use controlplane::ControlPlane;
pub use emulator::EmulatorProcess;
pub use env::enabled;
pub use error::{Error, Result};
pub use namespace::TemporaryNamespace;
pub use patience::{Seen, until, until_every, wait_for, wait_for_object, wait_until_gone};
