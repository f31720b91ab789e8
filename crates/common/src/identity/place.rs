//! The place: which installation, and which object in it. A copy of an owner has the same owner id but lives elsewhere.
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

const INSTALLATION_DIGITS: usize = 12;
const OBJECT_DIGITS: usize = 16;

/// `<hash of the installation id>-<hash of controller, kind, namespace and name>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Place(String);

/// Not a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a place is 12 hexadecimal digits, a dash and 16 more")]
pub struct InvalidPlace;

/// Hashes parts so that no two lists of parts give the same input.
fn digits(parts: &[&str], n: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut text = hex::encode(hash.finalize());
    text.truncate(n);
    text
}

impl Place {
    /// Where an object lives.
    pub fn of(installation: &str, controller: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let object = digits(&[controller, kind, namespace, name], OBJECT_DIGITS);
        Place(format!("{}-{object}", Place::installation_part(installation)))
    }
    /// The half of a place that names the installation.
    pub fn installation_part(installation: &str) -> String {
        digits(&[installation], INSTALLATION_DIGITS)
    }
    /// The half that names the installation.
    pub fn installation(&self) -> &str {
        self.0.split('-').next().unwrap_or_default()
    }
    /// As stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl FromStr for Place {
    type Err = InvalidPlace;
    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        let hexadecimal =
            |s: &str, n: usize| s.len() == n && s.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match text.split_once('-') {
            Some((a, b)) if hexadecimal(a, INSTALLATION_DIGITS) && hexadecimal(b, OBJECT_DIGITS) => {
                Ok(Place(text.into()))
            }
            _ => Err(InvalidPlace),
        }
    }
}
impl TryFrom<String> for Place {
    type Error = InvalidPlace;
    fn try_from(text: String) -> Result<Self, InvalidPlace> {
        text.parse()
    }
}
impl From<Place> for String {
    fn from(place: Place) -> String {
        place.0
    }
}
