//! The owner id: 128 random bits. Never the UID, never the name, so that a copy, a move or a restore does not change it.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// 128 random bits that say for which owner a thing was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OwnerId([u8; 16]);

/// Not 32 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an owner id is 32 lower-case hexadecimal digits, this has {0} characters or others")]
pub struct InvalidOwnerId(usize);

impl OwnerId {
    /// From bits drawn by the caller.
    pub fn from_bits(bits: [u8; 16]) -> Self {
        OwnerId(bits)
    }
}
impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}
impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerId({self})")
    }
}
impl FromStr for OwnerId {
    type Err = InvalidOwnerId;
    fn from_str(text: &str) -> Result<Self, InvalidOwnerId> {
        let wrong = || InvalidOwnerId(text.chars().count());
        if text.len() != 32 || text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(wrong());
        }
        let mut bits = [0_u8; 16];
        hex::decode_to_slice(text, &mut bits).map_err(|_| wrong())?;
        Ok(OwnerId(bits))
    }
}
impl TryFrom<String> for OwnerId {
    type Error = InvalidOwnerId;
    fn try_from(text: String) -> Result<Self, InvalidOwnerId> {
        text.parse()
    }
}
impl From<OwnerId> for String {
    fn from(id: OwnerId) -> String {
        id.to_string()
    }
}
