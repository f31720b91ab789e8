//! The scenarios, in the order of the table.
pub mod abandoned;
pub mod counts;
pub mod crashes;
pub mod denials;
pub mod lifetime;
pub mod paused;
pub mod sleepers;
pub mod storm;
pub mod strangers;
pub mod stripped;
pub mod upheaval;
pub mod views;

use crate::bench::Scenario;
use storm::Force;

/// All scenarios. Shares are thousandths of the histories asked for.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "S1",
        title: "crash around every call, every subset of a wave",
        cases: crashes::single_cases,
        run: crashes::single_run,
        share: 100,
    },
    Scenario {
        name: "S2",
        title: "two crashes",
        cases: |_, budget| budget.min(20_000),
        run: crashes::double_run,
        share: 200,
    },
    Scenario {
        name: "S3",
        title: "twelve ambiguous replies to every call",
        cases: crashes::ambiguous_cases,
        run: crashes::ambiguous_run,
        share: 100,
    },
    Scenario {
        name: "S4",
        title: "restart on every earlier cache",
        cases: views::stale_cases,
        run: views::stale_run,
        share: 40,
    },
    Scenario {
        name: "S5",
        title: "events dropped, late, repeated",
        cases: views::events_cases,
        run: views::events_run,
        share: 30,
    },
    Scenario {
        name: "S6",
        title: "listings and tags up to a minute late",
        cases: views::lag_cases,
        run: views::lag_run,
        share: 50,
    },
    Scenario {
        name: "S7",
        title: "two leaders without election, freezes",
        cases: |_, budget| budget.max(1_000),
        run: |bench, seed| storm::history(bench, seed, Force::TwoLeaders),
        share: 150,
    },
    Scenario {
        name: "S8",
        title: "status wiped, backup, move, each step",
        cases: upheaval::cases,
        run: upheaval::run,
        share: 30,
    },
    Scenario { name: "S9", title: "foreign twins", cases: strangers::cases, run: strangers::run, share: 30 },
    Scenario {
        name: "S10",
        title: "owner lost without us: audit",
        cases: abandoned::lost_cases,
        run: abandoned::lost_run,
        share: 10,
    },
    Scenario {
        name: "S11",
        title: "permission missing, each call",
        cases: denials::cases,
        run: denials::run,
        share: 10,
    },
    Scenario {
        name: "S12",
        title: "planted orphans: audit",
        cases: abandoned::planted_cases,
        run: abandoned::planted_run,
        share: 5,
    },
    Scenario {
        name: "sleep",
        title: "asleep at every call, the name used again",
        cases: sleepers::cases,
        run: sleepers::run,
        share: 10,
    },
    Scenario {
        name: "stripped",
        title: "annotations stripped and all killed at every call",
        cases: stripped::cases,
        run: stripped::run,
        share: 10,
    },
    Scenario {
        name: "paused",
        title: "edits, deletion, hands in the cloud under a pause",
        cases: paused::cases,
        run: paused::run,
        share: 10,
    },
    Scenario {
        name: "core",
        title: "storm: one process",
        cases: |_, budget| budget,
        run: |bench, seed| storm::history(bench, seed, Force::Core),
        share: 100,
    },
    Scenario {
        name: "users",
        title: "storm: users, strangers, hands in the cloud",
        cases: |_, budget| budget,
        run: |bench, seed| storm::history(bench, seed, Force::Users),
        share: 150,
    },
    Scenario {
        name: "moves",
        title: "storm: moves, copies, backups",
        cases: |_, budget| budget,
        run: |bench, seed| storm::history(bench, seed, Force::Moves),
        share: 100,
    },
    Scenario {
        name: "counts",
        title: "twelve pieces in four waves: writes, then silence",
        cases: |_, _| 3,
        run: counts::run,
        share: 1,
    },
];

/// The scenario of this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|s| s.name == name)
}
