//! What every emulated cloud shares.
pub mod admin;
pub mod byhand;
pub mod calls;
pub mod clock;
pub mod dice;
pub mod emulator;
pub mod faults;
pub mod lag;
pub mod limits;
pub mod pattern;
pub mod principals;
pub mod server;
pub mod settings;
pub mod strict;

pub use byhand::{ByHandError, Deletion, Phase, Plant, Tags, Truth};
pub use calls::{CallFilter, CallLog, CallRecord};
pub use emulator::{Answer, Call, Cloud, Emulator, Naming, Refusal};
pub use faults::{Action, Fault, Faults, Match};
pub use lag::{GhostLook, Lag, Lags};
pub use principals::{Denials, Principal, Principals};
pub use settings::{Paging, RateLimit, Settings};

use dice::Dice;
use jiff::Timestamp;
use std::time::Duration;

/// A request with its body in memory.
pub type Request = http::Request<Vec<u8>>;
/// A response with its body in memory.
pub type Response = http::Response<Vec<u8>>;

/// What came of one request, and how its reply travels.
#[derive(Debug)]
pub struct Handled {
    /// The reply; to be thrown away where `delivery` says that none arrives.
    pub response: Response,
    /// What the network does with it.
    pub delivery: Delivery,
}
/// How a reply travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It arrives.
    Deliver,
    /// The request was carried out, then the connection is cut without a byte of reply.
    DropReply,
    /// Nothing was carried out; the connection is cut.
    CutBefore,
    /// The request was carried out; the connection is cut in the middle of the body.
    CutMidBody,
    /// The request was carried out at once; the reply arrives this much later.
    Delay(Duration),
    /// The request was carried out at once; the body arrives in small pieces over this time.
    Slow(Duration),
    /// No reply: the connection stays open and silent for this long, then it is cut. The call log says whether anything happened.
    Silence(Duration),
    /// Nothing happened yet: carry the request out this much later, with [`Spared`] among its extensions, even if the client
    /// has gone by then.
    Postpone(Duration),
}
/// Put into the extensions of a request that was postponed once: no fault strikes it again.
#[derive(Clone, Copy, Debug)]
pub struct Spared;

/// The words a cloud's administration accepts, so that a misspelt fault is refused instead of never striking.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary {
    /// Kinds as they stand in the call log, in permissions and in settings.
    pub kinds: &'static [&'static str],
    /// Verbs as they stand in the call log and in permissions.
    pub verbs: &'static [&'static str],
}

/// A cloud with its kit: what simulators and the server drive.
pub trait EmulatedCloud: Send {
    /// Answers one request of a client at this moment.
    fn handle(&mut self, now: Timestamp, request: Request) -> Handled;
    /// Faults, call log, principals, settings.
    fn kit(&self) -> &Kit;
    /// The same, to change them.
    fn kit_mut(&mut self) -> &mut Kit;
    /// The words in use.
    fn vocabulary(&self) -> Vocabulary;
    /// Everything that was ever made, as it truly is now, in the order of creation.
    fn truth(&self, now: Timestamp) -> Vec<Truth>;
    /// Puts a stranger's thing into the cloud, visible at once; returns its id.
    fn plant(&mut self, now: Timestamp, plant: Plant) -> Result<String, ByHandError>;
    /// Deletes a thing as a person would in the console.
    fn delete_by_hand(&mut self, now: Timestamp, id: &str) -> Result<(), ByHandError>;
    /// Changes tags as a person would in the console.
    fn retag_by_hand(&mut self, now: Timestamp, id: &str, set: Tags, remove: &[String]) -> Result<(), ByHandError>;
    /// The next `times` things of this kind will fail to build, for this reason.
    fn fail_next_build(&mut self, kind: &str, reason: &str, times: u32) -> Result<(), ByHandError>;
}

/// The state that does not depend on which cloud it is.
#[derive(Debug)]
pub struct Kit {
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// What was asked.
    pub calls: CallLog,
    /// Who may ask.
    pub principals: Principals,
    /// What they may not do.
    pub denials: Denials,
    /// All randomness.
    pub dice: Dice,
    settings: Settings,
    buckets: limits::Buckets,
}
impl Kit {
    /// A kit with nobody admitted and no fault.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Kit {
            faults: Faults::default(),
            calls: CallLog::new(settings.call_log),
            principals: Principals::default(),
            denials: Denials::default(),
            dice: Dice::new(seed),
            settings,
            buckets: limits::Buckets::default(),
        }
    }
    /// As they are now.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// From now on these hold. Rate limits start with full buckets.
    pub fn configure(&mut self, settings: Settings) {
        self.calls.keep(settings.call_log);
        self.buckets = limits::Buckets::default();
        self.settings = settings;
    }
    /// Settings to read and dice to roll, at the same time.
    pub fn split(&mut self) -> (&Settings, &mut Dice) {
        (&self.settings, &mut self.dice)
    }
    /// Admits a principal of the account that the settings name.
    pub fn admit(&mut self, principal: &str, token: &str) {
        let account = self.settings.account.clone();
        self.principals.admit(principal, token, &account);
    }
    /// Takes one from every rate limit that this call falls under; if one is empty, how long to wait.
    pub(crate) fn spend(&mut self, now: Timestamp, principal: &str, naming: &Naming<'_>) -> Result<(), Duration> {
        self.buckets.spend(&self.settings.limits, now, principal, naming)
    }
}

/// `by` after `at`, not beyond the end of time.
pub(crate) fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
