//! The API server's audit log: who asked for what, and what was the answer.
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::patience::{Seen, until};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// One kind of request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// `get`, `list`, `watch`, `create`, `patch`, ...
    pub verb: String,
    /// `<plural>.<group>`, or `<plural>` of the core group, or the path of a request that is for no resource.
    pub resource: String,
    /// `status`, ...; empty if none.
    pub subresource: String,
    /// HTTP status.
    pub code: u16,
}

impl Request {
    /// Whether it could have changed something.
    pub fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        write!(f, "{} {}{slash}{} -> {}", self.verb, self.resource, self.subresource, self.code)
    }
}

/// The log of one control plane.
#[derive(Clone, Debug)]
pub struct AuditLog {
    cluster: Cluster,
    path: PathBuf,
}

impl AuditLog {
    /// The log of a cluster; an existing cluster does not show its own.
    pub fn of(cluster: &Cluster) -> Result<Self> {
        let path =
            cluster.audit_log.clone().ok_or_else(|| Error::other("an existing cluster does not show its audit log"))?;
        Ok(AuditLog { cluster: cluster.clone(), path })
    }
    /// Now. Sends a request of its own and waits for it in the log, because the log is written after the answer is sent.
    pub async fn moment(&self) -> Result<Moment> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let mark = format!("custody-e2e-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let request = http::Request::get(format!("/version?mark={mark}.")).body(Vec::new()).map_err(Error::other)?;
        self.cluster.client().await?.request_text(request).await?;
        let start = std::fs::metadata(&self.path).map_or(0, |file| file.len()).saturating_sub(64 * 1024);
        let needle = format!("{mark}.");
        until("a request of our own in the audit log", Duration::from_secs(30), || async {
            let text = self.text(Moment(start), None)?;
            let Some(found) = text.find(&needle) else { return Ok(Seen::NotYet(format!("no {mark} in it"))) };
            let end = text[found..].find('\n').map_or(text.len(), |newline| found + newline + 1);
            Ok(Seen::Yes(Moment(start + end as u64)))
        })
        .await
    }
    /// How often `user` sent which request between two moments.
    pub fn requests(&self, user: &str, from: Moment, to: Moment) -> Result<BTreeMap<Request, u64>> {
        Ok(count(&self.text(from, Some(to))?, user))
    }
    /// Requests of `user` that were forbidden: permissions its role lacks.
    pub fn forbidden(&self, user: &str, from: Moment, to: Moment) -> Result<Vec<Request>> {
        Ok(self.requests(user, from, to)?.into_keys().filter(|request| request.code == 403).collect())
    }
    /// Requests of `user` that were sent to change something: no reads, no dry runs, no questions about rights.
    pub fn changes(&self, user: &str, from: Moment, to: Moment) -> Result<Vec<Request>> {
        Ok(changes(&self.text(from, Some(to))?, user))
    }
    /// The whole log's beginning.
    pub fn beginning() -> Moment {
        Moment(0)
    }
    fn text(&self, from: Moment, to: Option<Moment>) -> Result<String> {
        read_between(&self.path, from.0, to.map(|moment| moment.0))
    }
}

fn read_between(path: &Path, from: u64, to: Option<u64>) -> Result<String> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(from))?;
        file.take(to.map_or(u64::MAX, |to| to.saturating_sub(from))).read_to_end(&mut bytes)
    });
    read.map_err(Error::io("cannot read", path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    id: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}
#[derive(Deserialize)]
struct User {
    username: String,
}
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ObjectRef {
    resource: String,
    api_group: String,
    subresource: String,
}
#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

fn count(text: &str, user: &str) -> BTreeMap<Request, u64> {
    let mut by_id = BTreeMap::new();
    // A line cut in two by the limits of the reading belongs to another moment.
    for event in text.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok()) {
        // A watch has two lines, one when it starts and one when it ends: one request.
        if event.user.username == user {
            by_id.insert(event.id.clone(), request(event));
        }
    }
    by_id.into_values().fold(BTreeMap::new(), |mut counts, request| {
        *counts.entry(request).or_insert(0) += 1;
        counts
    })
}

fn changes(text: &str, user: &str) -> Vec<Request> {
    let events = text.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
    let serious = events.filter(|event| event.user.username == user && !event.uri.contains("dryRun=All"));
    let requests = serious.map(request);
    requests.filter(|r| r.writes() && !r.resource.starts_with("selfsubjectaccessreviews.")).collect()
}

fn request(event: Event) -> Request {
    let path = event.uri.split('?').next().unwrap_or_default().to_owned();
    let object = event.object_ref.unwrap_or_default();
    let resource = match (object.resource.as_str(), object.api_group.as_str()) {
        ("", _) => path,
        (resource, "") => resource.to_owned(),
        (resource, group) => format!("{resource}.{group}"),
    };
    let code = event.response_status.and_then(|status| status.code).unwrap_or(0);
    Request { verb: event.verb, resource, subresource: object.subresource, code }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, user: &str, verb: &str, code: u16) -> String {
        format!(
            r#"{{"auditID":"{id}","verb":"{verb}","requestURI":"/apis/x/y?z","user":{{"username":"{user}"}},
            "objectRef":{{"resource":"things","apiGroup":"x.dev","subresource":"status"}},"responseStatus":{{"code":{code}}}}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn a_watch_with_two_lines_is_one_request() {
        let text = format!("{}\n{}\n", line("1", "me", "watch", 200), line("1", "me", "watch", 200));
        let expected =
            Request { verb: "watch".into(), resource: "things.x.dev".into(), subresource: "status".into(), code: 200 };
        assert_eq!(count(&text, "me"), BTreeMap::from([(expected, 1)]));
    }

    #[test]
    fn a_dry_run_changes_nothing() {
        let dry = line("1", "me", "update", 200).replace("y?z", "y?dryRun=All");
        let review = line("2", "me", "create", 201).replace("things", "selfsubjectaccessreviews");
        let text = format!("{dry}\n{review}\n{}\n", line("3", "me", "get", 200));
        assert!(changes(&text, "me").is_empty());
        assert_eq!(changes(&line("4", "me", "update", 200), "me").len(), 1);
    }

    #[test]
    fn others_and_broken_lines_do_not_count() {
        let text = format!("{}\n{{\"auditID\":\n{}\n", line("1", "you", "get", 200), line("2", "me", "patch", 403));
        let counts = count(&text, "me");
        assert_eq!(counts.keys().map(Request::to_string).collect::<Vec<_>>(), ["patch things.x.dev/status -> 403"]);
        assert!(counts.keys().all(Request::writes));
    }
}
