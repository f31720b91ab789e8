//! What becomes of a policy's objects when it goes, or no longer asks for them.
pub mod decide;
pub mod ledger;
pub mod ledgers;
pub mod mark;
pub mod others;
pub mod sweep;
