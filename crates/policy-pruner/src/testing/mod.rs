//! The simulator: an API server in memory, a process that can die at any request, strangers, and a judge.
//!
//! Two controllers play the same histories: ours, which is the real pass, and the peer's algorithm in a few lines, which
//! keeps ownership in status only and deletes without a precondition.
pub mod clock;
pub mod histories;
pub mod judge;
pub mod peer;
pub mod scene;
pub mod server;
pub mod world;
