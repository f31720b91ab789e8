//! Evaluates ConfigurationPolicies, removes what they created, and never anything else.
//!
//! | room | what lives there |
//! |---|---|
//! | [`api`], [`crd`], [`names`], [`dialect`] | the custom resource and every name that is part of the API |
//! | [`text`] | text that is compared or shown: values, quantities, patterns, selectors, YAML, diffs, durations |
//! | [`compare`] | one live object against one template |
//! | [`namespaces`], [`encryption`] | which namespaces a policy means; values the hub encrypted |
//! | [`message`], [`standing`] | what is said about a policy: sentences, conditions, history |
pub mod api;
pub mod compare;
pub mod crd;
pub mod dialect;
pub mod encryption;
pub mod message;
pub mod names;
pub mod namespaces;
pub mod standing;
pub mod text;
pub mod cluster;
pub mod evaluate;
pub mod metrics;
pub mod prune;
pub mod memory;
pub mod report;
pub mod surroundings;
pub mod deletion;
pub mod desk;
pub mod reconcile;
pub mod args;
pub mod controller;
pub mod grants;
pub mod operate;
