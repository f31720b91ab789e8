//! The API server in our words. Nothing here decides anything.
pub mod kinds;
pub mod kube_wire;
pub mod objects;
pub mod pace;
mod scopes;
pub mod sight;
pub mod spaces;
pub mod watched;
pub mod watches;
pub mod wire;
