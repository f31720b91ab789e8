//! What can be set while a cloud runs.
use super::Vocabulary;
use super::lag::{Lag, Lags};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The settings of a cloud. As JSON every field may be left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The account of principals that name no other.
    pub account: String,
    /// The region.
    pub region: String,
    /// Other regions of the same cloud and where each is, for clouds that tell of them.
    pub regions: BTreeMap<String, String>,
    /// Visibility lag.
    pub lag: Lags,
    /// Page sizes.
    pub paging: Paging,
    /// Most things of a kind per account; a kind not named here has no limit.
    pub quotas: BTreeMap<String, u64>,
    /// Rate limits; a call must pass all that match it.
    pub limits: Vec<RateLimit>,
    /// How long things of a kind are building; a kind not named here takes the cloud's own time.
    pub build: BTreeMap<String, Lag>,
    /// How long things of a kind are deleting before they are gone; a kind not named here is gone at once.
    pub deletion: BTreeMap<String, Lag>,
    /// How many calls the log keeps.
    pub call_log: usize,
    /// What clouds of this sort usually have and this one has not, in the cloud's own words.
    pub lacks: BTreeSet<String>,
}
impl Default for Settings {
    fn default() -> Self {
        Settings {
            account: "acct-1".to_owned(),
            region: "here-1".to_owned(),
            regions: BTreeMap::new(),
            lag: Lags::default(),
            paging: Paging::default(),
            quotas: BTreeMap::new(),
            limits: Vec::new(),
            build: BTreeMap::new(),
            deletion: BTreeMap::new(),
            call_log: 10_000,
            lacks: BTreeSet::new(),
        }
    }
}
impl Settings {
    /// Says what is wrong with them.
    pub fn check(&self, words: Vocabulary) -> Result<(), String> {
        let limited = self.limits.iter().filter_map(|limit| limit.kind.as_ref());
        let named = self.quotas.keys().chain(self.build.keys()).chain(self.deletion.keys()).chain(limited);
        for kind in named {
            if !words.kinds.contains(&kind.as_str()) {
                return Err(format!("no kind {kind:?}; there are {:?}", words.kinds));
            }
        }
        for limit in &self.limits {
            if let Some(verb) = limit.verb.as_ref().filter(|verb| !words.verbs.contains(&verb.as_str())) {
                return Err(format!("no verb {verb:?}; there are {:?}", words.verbs));
            }
            if limit.burst == 0 || limit.per_second <= 0.0 || !limit.per_second.is_finite() {
                return Err("a rate limit needs a burst and a rate above 0".to_owned());
            }
        }
        if self.paging.max == 0 {
            return Err("a page holds at least one thing".to_owned());
        }
        Ok(())
    }
}

/// Page sizes. What a client may ask for is the cloud's rule; this is what the server gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Paging {
    /// The server never puts more on a page, whatever was asked.
    pub max: u64,
    /// Pages end early at random, and some are empty, though more follows.
    pub ragged: bool,
}
impl Default for Paging {
    fn default() -> Self {
        Paging { max: u64::MAX, ragged: false }
    }
}

/// A token bucket for each principal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// For this principal only; else each has a bucket of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// For calls on this kind only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// For this verb only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// How many calls at once.
    pub burst: u32,
    /// How many per second in the long run.
    pub per_second: f64,
}
