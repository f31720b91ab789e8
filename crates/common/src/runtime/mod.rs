//! A small controller runtime: watch, cache, queue, runner.
//!
//! Our own instead of kube's `Controller`, for five things it does not give: passes triggered by what matters and not by our
//! own ledger, a gate against caches older than our own writes, queue metrics under the names dashboards know, caches of
//! text instead of trees, and panics that cost one pass.
pub mod cache;
pub mod gate;
pub mod next;
pub mod object;
pub mod queue;
pub mod runner;
pub mod trigger;
pub mod watch;
