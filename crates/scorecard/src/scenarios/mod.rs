//! The scenarios, in the order of the table.
pub mod storm;

use crate::bench::Scenario;
use storm::Force;

/// All scenarios.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "storm-core",
        title: "random faults, one process",
        cases: |_, budget| budget,
        run: |bench, seed| storm::history(bench, seed, Force::Core),
        share: 100,
    },
    Scenario {
        name: "storm-two",
        title: "random faults, two leaders, freezes",
        cases: |_, budget| budget,
        run: |bench, seed| storm::history(bench, seed, Force::TwoLeaders),
        share: 100,
    },
    Scenario {
        name: "storm-users",
        title: "random faults, users, strangers, hands in the cloud",
        cases: |_, budget| budget,
        run: |bench, seed| storm::history(bench, seed, Force::Users),
        share: 100,
    },
    Scenario {
        name: "storm-moves",
        title: "random faults, moves, copies, backups",
        cases: |_, budget| budget,
        run: |bench, seed| storm::history(bench, seed, Force::Moves),
        share: 100,
    },
];

/// The scenario of this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|s| s.name == name)
}
