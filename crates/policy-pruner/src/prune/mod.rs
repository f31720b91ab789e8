//! What becomes of a policy's objects when it goes, or no longer asks for them.
pub mod container;
pub mod decide;
pub mod ledger;
pub mod ledgers;
pub mod look;
pub mod mark;
pub mod needs;
pub mod others;
pub mod sweep;
