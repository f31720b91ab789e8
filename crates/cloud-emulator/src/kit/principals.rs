//! Who may ask, and what they may not do.
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// A known caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Its name.
    pub name: Arc<str>,
    /// The account it works in; it sees nothing of any other.
    pub account: Arc<str>,
}

/// Tokens and whom they name.
#[derive(Default)]
pub struct Principals(HashMap<String, Arc<Principal>>);

impl Principals {
    /// From now on this token names this principal.
    pub fn admit(&mut self, name: &str, token: &str, account: &str) {
        let principal = Principal { name: name.into(), account: account.into() };
        self.0.insert(token.to_owned(), Arc::new(principal));
    }
    /// Takes all tokens from a principal; says whether it had any.
    pub fn revoke(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|_, principal| &*principal.name != name);
        self.0.len() < before
    }
    /// Whom a token names.
    pub fn by_token(&self, token: &str) -> Option<&Arc<Principal>> {
        self.0.get(token)
    }
    /// Everybody admitted, in order.
    pub fn all(&self) -> Vec<Arc<Principal>> {
        let mut all: Vec<_> = self.0.values().cloned().collect();
        all.sort_by(|a, b| (&a.name, &a.account).cmp(&(&b.name, &b.account)));
        all
    }
}
impl fmt::Debug for Principals {
    // Tokens stay out of logs even here, where they are worth nothing: habits are copied.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

/// Single permissions taken from single principals.
#[derive(Clone, Debug, Default)]
pub struct Denials(BTreeSet<Denial>);

/// One permission that one principal does not have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denial {
    /// Who.
    pub principal: String,
    /// What, as the cloud writes it.
    pub permission: String,
}
impl Denials {
    /// Takes a permission away.
    pub fn deny(&mut self, principal: &str, permission: &str) {
        self.0.insert(Denial { principal: principal.to_owned(), permission: permission.to_owned() });
    }
    /// Gives it back; says whether it had been taken.
    pub fn allow(&mut self, principal: &str, permission: &str) -> bool {
        self.0.remove(&Denial { principal: principal.to_owned(), permission: permission.to_owned() })
    }
    /// Gives everything back.
    pub fn clear(&mut self) {
        self.0.clear();
    }
    /// May this principal not do this?
    pub fn denied(&self, principal: &str, permission: &str) -> bool {
        self.0.iter().any(|denial| denial.principal == principal && denial.permission == permission)
    }
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Denial> {
        self.0.iter()
    }
}
