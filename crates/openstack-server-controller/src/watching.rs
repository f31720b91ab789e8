//! Watches beside those of the runners: objects that wake somebody else.
use common::clock::SharedClock;
use common::runtime::watch::{self, News, Source};
use kube::Client;
use kube::api::ApiResource;
use kube::discovery::Discovery;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{debug, warn};

/// How often to look whether a kind was installed meanwhile.
pub const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// The first of these versions of a group that the API server serves.
pub async fn served(client: &Client, group: &str, versions: &[&str]) -> Result<Option<String>, kube::Error> {
    let found = Discovery::new(client.clone()).filter(&[group]).run().await?;
    let has = |version: &&&str| found.get(group).is_some_and(|it| it.versions().any(|it| it == **version));
    Ok(versions.iter().find(has).map(|it| (*it).to_owned()))
}

/// Where to watch.
#[derive(Clone)]
pub struct Watching {
    /// The API server.
    pub client: Client,
    /// Only in this namespace.
    pub namespace: Option<String>,
    /// Time.
    pub clock: SharedClock,
}
impl Watching {
    /// A kind that may not be installed, or not yet, in the first of these versions that is served.
    pub async fn optional(&self, kind: ApiResource, versions: &[&str], hear: impl Fn(&News)) {
        let version = loop {
            match served(&self.client, &kind.group, versions).await {
                Ok(Some(version)) => break version,
                Ok(None) => debug!(group = kind.group, "not installed"),
                Err(why) => warn!(group = kind.group, %why, "cannot be discovered"),
            }
            self.clock.sleep_until(self.clock.boot() + LOOK_AGAIN).await;
        };
        let api_version = format!("{}/{version}", kind.group);
        self.every(ApiResource { version, api_version, ..kind }, hear).await;
    }
    /// A kind that is there.
    pub async fn every(&self, kind: ApiResource, hear: impl Fn(&News)) {
        let (tell, mut news) = mpsc::channel(16);
        let mut watching = JoinSet::new();
        let source = Source { namespace: self.namespace.clone(), ..Source::new(self.client.clone(), kind.clone()) };
        watching.spawn(watch::watch(source, self.clock.clone(), tell));
        while let Some(news) = news.recv().await {
            if let News::Trouble(why) = &news {
                warn!(kind = kind.kind, why, "watch");
            }
            hear(&news);
        }
    }
}
