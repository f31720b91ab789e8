//! Who made a thing, and for whom: owner id, place, slot, mark.
mod mark;
mod owner_id;
mod place;
mod slot;

pub use mark::{Mark, MarkKeys, MarkSeen, Then};
pub use owner_id::{InvalidOwnerId, OwnerId};
pub use place::{InvalidPlace, Place};
pub use slot::{InvalidSlot, Slot};
