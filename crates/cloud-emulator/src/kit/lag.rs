//! How late a cloud shows what it knows.
use super::dice::Dice;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A stretch of time: always the same, or drawn anew each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lag {
    /// At once.
    #[default]
    None,
    /// Always this many milliseconds.
    FixedMs(u64),
    /// Uniformly from 0 to this many milliseconds.
    UpToMs(u64),
}
impl Lag {
    /// Always this long.
    pub fn fixed(time: Duration) -> Self {
        Lag::FixedMs(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }
    /// Uniformly up to this long.
    pub fn up_to(most: Duration) -> Self {
        Lag::UpToMs(u64::try_from(most.as_millis()).unwrap_or(u64::MAX))
    }
    /// One draw.
    pub fn draw(self, dice: &mut Dice) -> Duration {
        match self {
            Lag::None => Duration::ZERO,
            Lag::FixedMs(ms) => Duration::from_millis(ms),
            Lag::UpToMs(most) => Duration::from_millis(dice.up_to(most)),
        }
    }
}

/// One lag for each read path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lags {
    /// From the create until listings show the thing.
    pub list: Lag,
    /// From a tag's change, the create included, until listings show it.
    pub tags: Lag,
    /// From the create until a read by id finds the thing.
    pub get: Lag,
    /// From the end of a thing until listings drop it.
    pub ghost: Lag,
    /// What listings say of a thing that is ending or has ended.
    pub ghosts: GhostLook,
}
/// How a thing on its way out looks in listings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GhostLook {
    /// As what it is: deleting.
    #[default]
    Deleting,
    /// As if nobody had deleted it.
    Alive,
    /// The one or the other, drawn for each thing.
    Either,
}
impl GhostLook {
    /// Does this one look alive?
    pub fn alive(self, dice: &mut Dice) -> bool {
        match self {
            GhostLook::Deleting => false,
            GhostLook::Alive => true,
            GhostLook::Either => dice.up_to(1) == 1,
        }
    }
}
