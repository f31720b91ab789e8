//! List, then watch, for as long as the process lives: a closed watch, 410, 429, 500 or an API server that is away for a
//! minute are waited out, and what happened meanwhile is caught up with.
use super::object::Arrived;
use crate::clock::SharedClock;
use futures::StreamExt;
use kube::api::ApiResource;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// Objects per page of a list: what a list costs at its peak.
const PAGE: u32 = 100;
/// Waits after failures in a row: doubled from the first to the last.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A page that takes longer is asked for anew: kube bounds watches, not lists.
const PAGE_TIME: Duration = Duration::from_mins(1);

/// What to watch.
#[derive(Clone)]
pub struct Source {
    /// With this client.
    pub client: Client,
    /// This kind.
    pub resource: ApiResource,
    /// In this namespace, or in all.
    pub namespace: Option<String>,
    /// With these labels.
    pub labels: Option<String>,
    /// With these fields: `metadata.name=x` watches one object.
    pub fields: Option<String>,
}
impl Source {
    /// All objects of a kind.
    pub fn new(client: Client, resource: ApiResource) -> Self {
        Source { client, resource, namespace: None, labels: None, fields: None }
    }
    fn api(&self) -> Api<Arrived> {
        // A namespace in the path works for namespaced kinds only; a cluster-scoped kind is watched without one.
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &self.resource),
            None => Api::all_with(self.client.clone(), &self.resource),
        }
    }
    fn config(&self) -> watcher::Config {
        let config = watcher::Config::default().page_size(PAGE);
        let config = match &self.labels {
            Some(labels) => config.labels(labels),
            None => config,
        };
        match &self.fields {
            Some(fields) => config.fields(fields),
            None => config,
        }
    }
}

/// What a watch tells.
#[derive(Clone, Debug)]
pub enum News {
    /// A list begins.
    Begin,
    /// In the list.
    Listed(Box<Arrived>),
    /// The list is complete.
    Complete,
    /// Added or changed.
    Changed(Box<Arrived>),
    /// Gone.
    Gone(Box<Arrived>),
    /// Not now.
    Trouble(String),
}

/// Watches until the receiver is dropped.
pub async fn watch(source: Source, clock: SharedClock, news: Sender<News>) {
    loop {
        let mut stream = watcher::watcher(source.api(), source.config()).boxed();
        let mut listing = true;
        let mut wait = FIRST_WAIT;
        loop {
            let next = stream.next();
            let next = if listing {
                // The stream keeps what it had; given up, it is dropped and the list starts over.
                tokio::time::timeout(PAGE_TIME, next).await.unwrap_or(None)
            } else {
                next.await
            };
            let Some(next) = next else { break };
            let (tell, failed) = match next {
                Ok(Event::Init) => (News::Begin, false),
                Ok(Event::InitApply(object)) => (News::Listed(Box::new(object)), false),
                Ok(Event::InitDone) => (News::Complete, false),
                Ok(Event::Apply(object)) => (News::Changed(Box::new(object)), false),
                Ok(Event::Delete(object)) => (News::Gone(Box::new(object)), false),
                Err(error) => {
                    // A version too old is answered by a new list, not by waiting.
                    if is_expired(&error) {
                        wait = FIRST_WAIT;
                    }
                    (News::Trouble(brief(&error)), true)
                }
            };
            match &tell {
                News::Begin => listing = true,
                News::Complete => listing = false,
                _ => {}
            }
            // A list that begins has not succeeded yet.
            let began = matches!(tell, News::Begin);
            if news.send(tell).await.is_err() {
                return;
            }
            if failed {
                clock.sleep_until(clock.boot() + wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            } else if !began {
                wait = FIRST_WAIT;
            }
        }
        let gave_up = News::Trouble("the watch ended; it starts over".into());
        if news.send(gave_up).await.is_err() {
            return;
        }
        clock.sleep_until(clock.boot() + FIRST_WAIT).await;
    }
}

fn is_expired(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchError(status) if status.code == 410)
}

/// One line: kube's own text repeats the whole reply.
fn brief(error: &watcher::Error) -> String {
    let (doing, cause) = match error {
        watcher::Error::InitialListFailed(cause) => ("list", cause),
        watcher::Error::WatchStartFailed(cause) => ("start of the watch", cause),
        watcher::Error::WatchFailed(cause) => ("watch", cause),
        watcher::Error::WatchError(status) => return format!("watch: {} {}", status.code, status.message),
        watcher::Error::NoResourceVersion => return error.to_string(),
    };
    match cause {
        kube::Error::Api(status) => format!("{doing}: {} {}", status.code, status.message.trim()),
        other => format!("{doing}: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn trouble_is_one_short_line() {
        let status = Box::new(Status::failure("storage is (re)initializing", "TooManyRequests").with_code(429));
        let error = watcher::Error::InitialListFailed(kube::Error::Api(status));
        assert_eq!(brief(&error), "list: 429 storage is (re)initializing");
        let status = Box::new(Status::failure("too old", "Expired").with_code(410));
        assert!(is_expired(&watcher::Error::WatchError(status)));
    }
}
