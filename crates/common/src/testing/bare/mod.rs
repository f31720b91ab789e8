//! The smallest user of the engine: five kinds in a cloud without HTTP. Fast, and every trait of a kind is in it.
mod cloud;
mod controller;
mod estate;
mod spec;

pub use cloud::BareCloud;
pub use controller::Bare;

use crate::engine::estate::{Kind, Markable, WhenFailed, WhenGone};

/// Marked at create, takes a token.
pub const NET: &str = "net";
/// Marked at create, takes no token.
pub const DISK: &str = "disk";
/// Marked by a call of its own; others may have the same key.
pub const ADDR: &str = "addr";
/// Never marked; its key is unique.
pub const ROUTE: &str = "route";
/// Marked at create, takes a token, takes time to build and may fail.
pub const BOX: &str = "box";

/// The kinds.
pub static KINDS: [Kind; 5] = [
    kind(NET, 0, Markable::AtCreate, true, false, WhenFailed::Refuse),
    kind(DISK, 1, Markable::AtCreate, false, false, WhenFailed::Refuse),
    kind(ADDR, 2, Markable::Later, false, false, WhenFailed::Refuse),
    kind(ROUTE, 2, Markable::Never, false, true, WhenFailed::Refuse),
    kind(BOX, 3, Markable::AtCreate, true, false, WhenFailed::Replace),
];

const fn kind(
    name: &'static str,
    rank: u8,
    markable: Markable,
    token: bool,
    unique_key: bool,
    failed: WhenFailed,
) -> Kind {
    Kind { name, rank, markable, token, unique_key, gone: WhenGone::Recreate, failed }
}

fn kind_of(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|k| k.name == name)
}
