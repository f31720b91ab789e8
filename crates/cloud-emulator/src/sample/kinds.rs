//! The table of kinds, as the facts page has it.
use std::time::Duration;

/// One of the five kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Network,
    Disk,
    Address,
    Route,
    Machine,
}
/// How a kind takes tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tagging {
    AtCreate,
    Later,
    Never,
}
pub(super) const PLURALS: [&str; 5] = ["networks", "disks", "addresses", "routes", "machines"];
/// The call that has no kind of thing.
pub(super) const WHOAMI: &str = "whoami";

impl Kind {
    pub(super) const ALL: [Kind; 5] = [Kind::Network, Kind::Disk, Kind::Address, Kind::Route, Kind::Machine];

    pub(super) fn index(self) -> usize {
        match self {
            Kind::Network => 0,
            Kind::Disk => 1,
            Kind::Address => 2,
            Kind::Route => 3,
            Kind::Machine => 4,
        }
    }
    pub(super) fn plural(self) -> &'static str {
        PLURALS[self.index()]
    }
    pub(super) fn singular(self) -> &'static str {
        ["network", "disk", "address", "route", "machine"][self.index()]
    }
    pub(super) fn by_plural(plural: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.plural() == plural)
    }
    /// By either word: people who plant things use both.
    pub(super) fn by_word(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.plural() == word || kind.singular() == word)
    }
    pub(super) fn tagging(self) -> Tagging {
        match self {
            Kind::Network | Kind::Disk | Kind::Machine => Tagging::AtCreate,
            Kind::Address => Tagging::Later,
            Kind::Route => Tagging::Never,
        }
    }
    pub(super) fn takes_key(self) -> bool {
        matches!(self, Kind::Network | Kind::Machine)
    }
    /// How long it is building, unless the settings say otherwise.
    pub(super) fn build_time(self) -> Duration {
        if self == Kind::Machine { Duration::from_secs(1) } else { Duration::ZERO }
    }
    /// Only these can be building at all.
    pub(super) fn builds(self) -> bool {
        self == Kind::Machine
    }
}
