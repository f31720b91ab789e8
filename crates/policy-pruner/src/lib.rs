//! Evaluates ConfigurationPolicies, removes what they created, and never anything else.
//!
//! | room | what lives there |
//! |---|---|
//! | [`api`], [`crd`], [`names`], [`dialect`] | the custom resource and every name that is part of the API |
//! | [`text`] | text that is compared or shown: values, quantities, patterns, selectors, YAML, diffs, durations |
//! | [`compare`] | one live object against one template |
//! | [`namespaces`], [`encryption`] | which namespaces a policy means; values the hub encrypted |
//! | [`message`], [`standing`], [`bounds`] | what is said about a policy: sentences, conditions, history, and how much of it fits |
//! | [`prune`] | what becomes of objects: ledger, decision, sweep, who else requires them |
//! | [`evaluate`] | which objects a policy means, what is there, what to do about it |
//! | [`cluster`] | the API server in our words: requests, kinds, objects, shared watches, namespaces |
//! | [`memory`], [`desk`], [`reconcile`], [`deletion`] | one pass over one policy, and what it works with |
//! | [`report`], [`metrics`], [`surroundings`], [`leaving`] | status, events, series; is this installation on its way out? |
//! | [`controller`], [`args`], [`operate`], [`grants`] | the process: who is woken by what, the command line, what people run beside it |
pub mod api;
pub mod args;
mod books;
pub mod bounds;
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
pub mod leaving;
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
