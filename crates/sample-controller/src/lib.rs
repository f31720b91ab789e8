//! The sample controller: the smallest user of the engine, and the template for the others.
//!
//! The flow is the file list: [`api`] is what a person writes down, [`plan`] turns it into pieces, [`estate`] shows the
//! cloud to the engine, [`status`] says what came of it, and [`reconcile`] is the table of contents. [`cloud`] is the cloud
//! in our words, [`client`] and [`wire`] are the same over HTTP, [`session`] shares lists between all owners.

pub mod api;
pub mod args;
pub mod client;
pub mod cloud;
pub mod controller;
pub mod crd;
pub mod credentials;
pub mod estate;
pub mod grants;
pub mod inventory;
pub mod names;
pub mod operate;
pub mod operations;
pub mod plan;
pub mod reconcile;
pub mod session;
pub mod status;
pub mod wire;
