//! OpenStackServer, and the bastion and the machine on it.
//!
//! The flow is the file list: [`api`] is what a person writes down, [`resolve`] turns names into ids, [`plan`] turns it into
//! pieces, [`estate`] shows the cloud to the engine, [`status`] says what came of it, and [`reconcile`] is the table of
//! contents. [`cloud`] is OpenStack in our words, [`client`] is the same over HTTP, [`clouds`] are credentials, [`session`]
//! shares lists between all owners of a project.
pub mod adopt;
pub mod api;
pub mod args;
pub mod bastion;
pub mod claims;
pub mod client;
pub mod cloud;
pub mod clouds;
pub mod controller;
pub mod crd;
pub mod derive;
pub mod estate;
pub mod floating;
pub mod follow;
pub mod grants;
pub mod inputs;
pub mod keeper;
pub mod kube_inputs;
pub mod machine;
pub mod names;
pub mod operate;
pub mod operations;
pub mod parents;
pub mod plan;
pub mod preflight;
pub mod quota;
pub mod reconcile;
pub mod resolve;
pub mod secrets;
pub mod servers;
pub mod session;
pub mod sight;
pub mod status;
pub mod watching;
