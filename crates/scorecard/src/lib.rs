//! The scorecard: simulated histories of every engine user, one table, exit status 1 on any damage.
pub mod acts;
pub mod bench;
pub mod checks;
pub mod scenarios;
