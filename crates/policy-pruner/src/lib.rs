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
pub mod args;
pub mod cluster;
pub mod compare;
pub mod controller;
pub mod crd;
pub mod deletion;
pub mod desk;
pub mod dialect;
pub mod encryption;
pub mod evaluate;
pub mod grants;
pub mod memory;
pub mod message;
pub mod metrics;
pub mod names;
pub mod namespaces;
pub mod operate;
pub mod prune;
pub mod reconcile;
pub mod report;
pub mod standing;
pub mod surroundings;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
