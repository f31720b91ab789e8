//! Mutation rows: one rule is switched off, and the histories must find the damage.
use crate::bench::Bench;
use crate::runner::find;
use crate::scenarios;
use common::engine::rules::{Rule, Rulebook};

/// One rule, and where its damage is likely to show first.
pub struct Mutation {
    /// The rule that is off.
    pub rule: Rule,
    /// What that means.
    pub means: &'static str,
    /// Scenarios, most promising first.
    pub places: &'static [&'static str],
}

const fn off(rule: Rule, means: &'static str, places: &'static [&'static str]) -> Mutation {
    Mutation { rule, means, places }
}

/// All mutations.
pub const ALL: &[Mutation] = &[
    off(Rule::IntentBeforeCreate, "intent after create", &["S1", "core"]),
    off(Rule::SettleUp, "no settle on the way up", &["S1", "core", "S7"]),
    off(Rule::SettleDown, "no settle on the way down", &["S1", "core", "S7"]),
    off(Rule::GuardLedger, "unguarded ledger write", &["S7", "core", "users"]),
    off(Rule::GuardFinalizer, "unguarded finalizer removal", &["sleep", "S7"]),
    off(Rule::MarkCheckBeforeDelete, "delete without mark check", &["users", "S9"]),
    off(Rule::RenewBeforeResend, "token sent again without renewed intent", &["S7", "core", "users"]),
    off(Rule::SettleNotFound, "forgotten on the first NotFound", &["S1", "core", "S7"]),
    off(Rule::ListingDatedBySending, "stale snapshot trusted", &["core", "S7"]),
    off(Rule::UnsettledByOthers, "a ledger rebuilt by another process believed at once", &["users", "S7"]),
    off(Rule::LateTag, "late tag forgotten", &["core", "S7", "users"]),
    off(Rule::UnmarkedSettlesForNew, "a new owner claims what another has just made", &["S9", "users"]),
    off(Rule::RemovalsSurvive, "what never carries a mark forgotten in mid-removal", &["S8", "moves"]),
    off(Rule::RequestIsServed, "a request for an owner id dropped unread", &["S8"]),
    off(Rule::PlaceCheck, "copy without place check", &["S8", "moves"]),
    off(Rule::StartWindow, "create after the start window", &["S7", "core"]),
    off(Rule::DeleteForMove, "delete-for-move ignored", &["S8", "moves"]),
    off(Rule::IdPatchSurvivesEdit, "id dropped when the spec changed", &["S9", "users", "S7"]),
    off(Rule::AdoptedMarkOnRebuild, "adopted mark lost on rebuild", &["users", "S9"]),
    off(Rule::ScopeCheck, "scope unchecked", &["S8", "users"]),
    off(Rule::WindowFromListing, "window counted from the acknowledgement", &["S7", "core", "users"]),
    off(Rule::ExactWrite, "an older write of ours taken for this one", &["core", "S7", "users"]),
    off(Rule::RenewalIsNewRecord, "a renewed record keeps its old settle", &["core", "S7"]),
    off(Rule::StrikeFreshOnly, "a refusal strikes a renewed intent", &["core", "S7", "users"]),
    off(Rule::MarkOwnUntagged, "an own untagged thing forgotten on the way down", &["S1", "core", "S7"]),
    off(Rule::GuardIntent, "intent stored over a changed owner", &["moves", "S8", "users"]),
    off(Rule::StatusBeforeCreate, "create before status knows the owner id", &["stripped", "users"]),
    off(Rule::RebuildLedger, "a rolled back ledger believed", &["S8", "users"]),
    off(Rule::RecoverOwnerId, "a stripped owner id minted anew", &["S8", "users"]),
    off(Rule::ForgedOwnerId, "an owner id that somebody wrote over ours is served", &["S8"]),
    off(Rule::NoMintBesideMarks, "minted beside living things", &["S8", "moves"]),
    off(Rule::FromCounts, "places taken over do not count", &["S8", "moves"]),
    off(Rule::Pause, "cloud writes while paused", &["paused"]),
    off(Rule::InferenceBounds, "a stranger's thing inferred to be ours", &["S9", "users"]),
    off(Rule::InferOnlyOne, "the first of two equal things inferred to be ours", &["S9", "users"]),
    off(Rule::IdBeforeTag, "tagged before the id is stored", &["S1", "core", "S7"]),
    off(Rule::FinalSweep, "finalizer off without a last sweep", &["core", "S7", "users"]),
    off(Rule::NoneOnlyBlocked, "take-over none read by an owner that needs none", &["moves", "users"]),
];

/// What came of one mutation.
pub struct Caught {
    /// Scenario and case.
    pub replay: String,
    /// The damage.
    pub damage: String,
}

/// Looks for the damage, up to `most` histories in each place.
pub fn hunt(bench: &Bench, mutation: &Mutation, most: u64) -> Option<Caught> {
    let whole = Bench { rules: Rulebook::testing(), trace: false, ..bench.clone() };
    let bench = Bench { rules: Rulebook::without(mutation.rule), ..whole.clone() };
    mutation.places.iter().filter_map(|name| scenarios::named(name)).find_map(|scenario| {
        let most = most.min((scenario.cases)(&bench, most));
        let (case, damage) = find(&bench, &whole, scenario, most)?;
        Some(Caught { replay: format!("{}:{case}", scenario.name), damage })
    })
}
