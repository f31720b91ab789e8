//! May this process still write? Asked before every mutating call, with the time that call may take.
use crate::clock::Boot;

/// A right to write that ends by itself.
pub trait Fence: Send + Sync {
    /// True if a call that is over by `until` still falls inside our right to write.
    fn holds_until(&self, until: Boot) -> bool;
}

/// Why a write was not sent.
pub const TOO_LATE: &str = "the lease ends too soon for another write";

/// No fence: a single process without leader election.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;
impl Fence for Open {
    fn holds_until(&self, _until: Boot) -> bool {
        true
    }
}
