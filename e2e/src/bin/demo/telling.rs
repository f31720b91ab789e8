//! How every act is told: scenes, lines with the time since the act began, claims that are checked.
use common::clock::{Boot, Clock, SystemClock};
use e2e::{Error, Result};

/// Tells lines with the time since it was made.
#[derive(Clone, Copy)]
pub(crate) struct Teller(Boot);

impl Teller {
    pub(crate) fn new() -> Self {
        Teller(SystemClock.boot())
    }
    pub(crate) fn say(self, line: &str) {
        println!("{:>4}s  {line}", SystemClock.boot().since(self.0).as_secs());
    }
}

/// The head of a scene.
pub(crate) fn scene(title: &str, what: &str) {
    println!("\n--- {title}\n       {what}");
}

/// A claim; a broken one ends the demo.
pub(crate) fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::other(otherwise())) }
}
