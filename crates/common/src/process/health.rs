//! What is still missing before this process is of use. Leadership is not: a standby is ready.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Named needs, each there or missing. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<String, Option<String>>>>);
impl Readiness {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// This is needed and missing, and why.
    pub fn missing(&self, what: &str, why: &str) {
        self.lock().insert(what.to_owned(), Some(why.to_owned()));
    }
    /// Another reason for what is missing already; what was there once stays there.
    pub fn still_missing(&self, what: &str, why: &str) {
        if let Some(reason @ Some(_)) = self.lock().get_mut(what) {
            *reason = Some(why.to_owned());
        }
    }
    /// This is there.
    pub fn present(&self, what: &str) {
        self.lock().insert(what.to_owned(), None);
    }
    /// Everything is there.
    pub fn is_ready(&self) -> bool {
        self.lock().values().all(Option::is_none)
    }
    /// One line per need, in the style of the API server's own checks.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (what, missing) in self.lock().iter() {
            // Writing to a String cannot fail.
            let _ = match missing {
                None => writeln!(text, "[+] {what}: ok"),
                Some(why) => writeln!(text, "[-] {what}: {why}"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_nothing_is_missing_and_the_text_says_what_is() {
        let readiness = Readiness::default();
        readiness.missing("first list of things", "not complete");
        readiness.present("API server");
        assert!(!readiness.is_ready());
        assert_eq!(readiness.describe(), "[+] API server: ok\n[-] first list of things: not complete\n");
        readiness.still_missing("first list of things", "404");
        assert!(readiness.describe().contains("[-] first list of things: 404"));
        readiness.present("first list of things");
        readiness.still_missing("first list of things", "watch closed");
        assert!(readiness.is_ready());
    }
}
