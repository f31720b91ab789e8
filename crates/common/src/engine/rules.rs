//! The rules of the protocol by name. In production they are all on and cost nothing; the simulator counts how often each
//! one made a difference, and switches single ones off to see the damage.

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident),+ $(,)?) => {
        /// A rule of the protocol, or a row of its tables.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule { $($(#[doc = $doc])+ $name),+ }
        impl Rule {
            /// All of them, in the order of the page.
            pub const ALL: &'static [Rule] = &[$(Rule::$name),+];
            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$name => stringify!($name)),+ }
            }
            /// What it says.
            pub fn says(self) -> &'static str {
                match self { $(Rule::$name => concat!($($doc),+)),+ }
            }
        }
    };
}
rules! {
    // --- writing the ledger ---
    /// The intent is stored before the create is sent.
    IntentBeforeCreate,
    /// No create before status carries the owner id too.
    StatusBeforeCreate,
    /// Every ledger write loses against a newer resourceVersion or ledger.
    GuardLedger,
    /// An intent loses against a changed generation, deletion or pause.
    GuardIntent,
    /// The finalizer goes only under the resourceVersion the decision was made on.
    GuardFinalizer,
    /// After a 409 only this very write counts as ours.
    ExactWrite,
    /// The id patch is stored whatever happened to the spec meanwhile.
    IdPatchSurvivesEdit,
    /// Create and mark are sent inside the start window or not at all.
    StartWindow,
    /// The start window begins when the listing was sent.
    WindowFromListing,
    /// A token is sent again only under a renewed intent.
    RenewBeforeResend,
    /// A renewed record is a new record: settle starts anew.
    RenewalIsNewRecord,
    /// A refusal strikes only an intent that was never renewed.
    StrikeFreshOnly,
    /// A ledger that is gone or older than status or memory says is rebuilt.
    RebuildLedger,
    /// Ids of kinds not markable at create are stored before the tag call.
    IdBeforeTag,
    // --- who may write ---
    /// No write under credentials that see another account or region.
    ScopeCheck,
    /// No write for an owner whose ledger names another place.
    PlaceCheck,
    /// A stripped owner id is recovered, not minted anew.
    RecoverOwnerId,
    /// An owner id that was written over the one that status knows is not served.
    ForgedOwnerId,
    /// Nothing is minted where live things carry our place or readable tag.
    NoMintBesideMarks,
    /// Things under the places in `from` count as ours until they are marked anew.
    FromCounts,
    /// A removal of what never carries a mark outlives the ledger it stood in.
    RemovalsSurvive,
    /// A request that names a place or owner id is served or refused, never dropped.
    RequestIsServed,
    /// `take-over: none` is read only by an owner that needs it.
    NoneOnlyBlocked,
    /// No cloud write while paused.
    Pause,
    /// No write at all on the source of a move.
    DeleteForMove,
    // --- reading the cloud ---
    /// Absence is trusted on the way up only after settle.
    SettleUp,
    /// Absence is trusted on the way down only after settle.
    SettleDown,
    /// NotFound by id counts only after settle.
    SettleNotFound,
    /// "Unmarked" is trusted only after settle: tags come late.
    LateTag,
    /// "Unmarked" settles for a freshly minted owner, too.
    UnmarkedSettlesForNew,
    /// Absence settles anew when another process has written the ledger.
    UnsettledByOthers,
    /// A listing says nothing about what was written after it was sent.
    ListingDatedBySending,
    /// The last sweep before the finalizer goes asks the cloud afresh.
    FinalSweep,
    /// Deletes only what carries our mark.
    MarkCheckBeforeDelete,
    /// An unmarked thing is ours by inference only within the dates of the intent, with equal attributes.
    InferenceBounds,
    /// Nothing is inferred while another thing that fits may still show up, nor between two that fit.
    InferOnlyOne,
    /// What the mark says of adoption outlives the ledger.
    AdoptedMarkOnRebuild,
    // --- the way up ---
    /// Up: no record, absent: intend and create.
    UpIntend,
    /// Up: no record or intended, one of ours is there: note its id.
    UpNote,
    /// Up: intended, unmarked, inference holds: note and mark.
    UpInfer,
    /// Up: unmarked and adoption was asked: claim.
    UpClaim,
    /// Up: unmarked on our unique key: refuse.
    UpExistsUnowned,
    /// Up: foreign, or ours from another place: refuse.
    UpConflict,
    /// Up: intended with a token, same parameters, absent: renew.
    UpRenew,
    /// Up: intended without token or with other parameters, absent and trusted: intend anew.
    UpIntendAnew,
    /// Up: recorded, ours and ready: done.
    UpDone,
    /// Up: recorded, ours, building or deleting: wait.
    UpBuilding,
    /// Up: recorded, ours, failed: refuse or replace.
    UpFailed,
    /// Up: created, gone by id: make it again or say so.
    UpGone,
    /// Up: adopted for release or referenced, gone by id: refuse.
    UpReferenceLost,
    /// Up: recorded, mark missing: mark again.
    UpMarkAgain,
    /// Up: another one of ours beside the recorded one: remove it.
    UpDuplicate,
    /// Up: no longer wanted: remove it.
    UpUnwanted,
    /// Up: somebody else's thing, used by id.
    UpReference,
    /// Up: removing most of an owner's things by an edit waits for confirmation.
    ConfirmRemoval,
    // --- the way down ---
    /// Down: no record or intended, ours: delete.
    DownDeleteFound,
    /// Down: no record or intended, absent: wait until trusted, forget.
    DownForgetAbsent,
    /// Down: intended, unmarked, inference holds: note it.
    DownInfer,
    /// Down: no record or intended, unmarked or foreign: forget, kept.
    DownKeepStranger,
    /// Down: recorded, ours: delete, over when gone by id.
    DownDelete,
    /// Down: recorded, gone by id: forget.
    DownGone,
    /// Down: created, never marked: mark, then delete.
    MarkOwnUntagged,
    /// Down: recorded, mark missing or foreign: forget, kept.
    DownKeepLost,
    /// Down: kind that never carries a mark, still on its recorded key: delete by id.
    DownNeverMarked,
    /// Down: adopted for release: take the mark off.
    DownRelease,
    /// Down: referenced: forget.
    DownReference,
}

/// Which rules hold. Cloning shares the counters.
#[derive(Clone, Debug, Default)]
pub struct Rulebook {
    #[cfg(feature = "testing")]
    testing: Option<std::sync::Arc<testing::Book>>,
}

impl Rulebook {
    /// All rules, nothing counted.
    pub fn production() -> Self {
        Rulebook::default()
    }
    /// Does this rule hold? Counts nothing.
    #[allow(clippy::unused_self)]
    pub(crate) fn on(&self, rule: Rule) -> bool {
        let _ = rule;
        #[cfg(feature = "testing")]
        if let Some(book) = &self.testing {
            return book.off != Some(rule);
        }
        true
    }
    /// The rule made a difference just now. Returns whether it holds.
    pub(crate) fn apply(&self, rule: Rule) -> bool {
        #[cfg(feature = "testing")]
        if let Some(book) = &self.testing {
            book.count(rule);
        }
        self.on(rule)
    }
}

#[cfg(feature = "testing")]
mod testing {
    use super::{Rule, Rulebook};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug)]
    pub(super) struct Book {
        pub(super) off: Option<Rule>,
        fired: Vec<AtomicU64>,
    }
    impl Book {
        pub(super) fn count(&self, rule: Rule) {
            if let Some(n) = self.fired.get(rule as usize) {
                n.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    impl Rulebook {
        /// All rules, counted.
        pub fn testing() -> Self {
            Rulebook::book(None)
        }
        /// All rules but one, counted.
        pub fn without(rule: Rule) -> Self {
            Rulebook::book(Some(rule))
        }
        fn book(off: Option<Rule>) -> Self {
            let fired = Rule::ALL.iter().map(|_| AtomicU64::new(0)).collect();
            Rulebook { testing: Some(Arc::new(Book { off, fired })) }
        }
        /// How often the rule made a difference.
        pub fn fired(&self, rule: Rule) -> u64 {
            let count = |book: &Arc<Book>| book.fired.get(rule as usize).map_or(0, |n| n.load(Ordering::Relaxed));
            self.testing.as_ref().map_or(0, count)
        }
    }
}
