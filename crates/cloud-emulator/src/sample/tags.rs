//! Tags: their rules, and what listings show of them when.
use crate::kit::{Tags, later};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

const MOST: usize = 20;
const LONGEST_KEY: usize = 64;
const LONGEST_VALUE: usize = 128;

/// Tags from a JSON object, by the rules; `field` names it in refusals.
pub(super) fn parse(field: &str, value: Value) -> Result<Tags, String> {
    let Value::Object(object) = value else { return Err(format!("{field} is not an object")) };
    parse_object(field, object)
}
fn parse_object(field: &str, object: Map<String, Value>) -> Result<Tags, String> {
    let mut tags = Tags::new();
    for (key, value) in object {
        let Value::String(value) = value else { return Err(format!("{field}.{key} is not a string")) };
        tags.insert(key, value);
    }
    check(field, &tags)?;
    Ok(tags)
}
/// The rules for a whole set of tags.
pub(super) fn check(field: &str, tags: &Tags) -> Result<(), String> {
    if tags.len() > MOST {
        return Err(format!("{field} has more than {MOST} tags"));
    }
    for (key, value) in tags {
        let right = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
        if key.is_empty() || key.len() > LONGEST_KEY || !key.bytes().all(right) {
            return Err(format!("{field}: {key:?} is no tag key"));
        }
        let printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        if value.len() > LONGEST_VALUE || !value.bytes().all(printable) {
            return Err(format!("{field}.{key} has no tag value"));
        }
    }
    Ok(())
}

/// A change of tags.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) set: Tags,
    pub(super) remove: Vec<String>,
}
impl Change {
    /// The tags after the change, if it is allowed.
    pub(super) fn on(&self, tags: &Tags) -> Result<Tags, String> {
        if let Some(key) = self.remove.iter().find(|key| self.set.contains_key(*key)) {
            return Err(format!("{key} is in set and in remove"));
        }
        let mut changed = tags.clone();
        changed.retain(|key, _| !self.remove.contains(key));
        changed.extend(self.set.clone());
        check("tags", &changed)?;
        Ok(changed)
    }
}

/// The tags of one thing over time. The last version is the truth; listings show the last one that is due.
#[derive(Debug)]
pub(super) struct TagHistory(Vec<(Timestamp, Arc<Tags>)>);

impl TagHistory {
    /// Tags given at `born`, shown `lag` later; until then listings show none.
    pub(super) fn new(born: Timestamp, tags: Tags, lag: Duration) -> Self {
        let mut versions = Vec::with_capacity(2);
        if lag > Duration::ZERO && !tags.is_empty() {
            versions.push((born, Arc::default()));
        }
        versions.push((later(born, lag), Arc::new(tags)));
        TagHistory(versions)
    }
    /// As they truly are.
    pub(super) fn truth(&self) -> &Tags {
        self.0.last().map_or(&EMPTY, |(_, tags)| tags)
    }
    /// As listings show them.
    pub(super) fn listed(&self, now: Timestamp) -> &Tags {
        self.0.iter().rev().find(|(due, _)| *due <= now).map_or(&EMPTY, |(_, tags)| tags)
    }
    /// From now on these, shown `lag` later but never before an earlier change.
    pub(super) fn change(&mut self, now: Timestamp, tags: Tags, lag: Duration) {
        let last = self.0.last().map_or(now, |(due, _)| *due);
        let shown = self.0.iter().rposition(|(due, _)| *due <= now).unwrap_or(0);
        self.0.drain(..shown);
        self.0.push((later(now, lag).max(last), Arc::new(tags)));
    }
}
static EMPTY: Tags = Tags::new();

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }
    fn tags(value: &str) -> Tags {
        Tags::from([("k".to_owned(), value.to_owned())])
    }

    #[test]
    fn listings_show_each_version_when_it_is_due_and_never_out_of_order() {
        let mut history = TagHistory::new(at(0), tags("a"), Duration::from_secs(10));
        history.change(at(5), tags("b"), Duration::from_secs(1));
        assert_eq!(history.truth(), &tags("b"));
        assert_eq!(history.listed(at(9)), &Tags::new());
        assert_eq!(history.listed(at(10)), &tags("b"));
        history.change(at(11), tags("c"), Duration::from_secs(4));
        assert_eq!(history.listed(at(14)), &tags("b"));
        assert_eq!(history.listed(at(15)), &tags("c"));
        assert!(history.0.len() <= 2, "old versions are dropped");
    }
}
