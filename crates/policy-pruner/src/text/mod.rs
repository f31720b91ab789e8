//! Text that is part of the API: how values, quantities, patterns, YAML, diffs and times are written and read.
pub mod diff;
pub mod duration;
pub mod glob;
pub mod quantity;
pub mod selector;
pub mod sprint;
pub mod yaml;
