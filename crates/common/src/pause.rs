//! Is an owner paused? By its own annotation, or by its Cluster. A Cluster that cannot be read, or is gone, counts as paused:
//! `clusterctl move` pauses before it moves, and nobody must write while that cannot be seen.
use crate::clock::SharedClock;
use crate::engine::owner::OwnerView;
use crate::names;
use crate::runtime::object::{Arrived, Key};
use crate::runtime::runner::Handle;
use crate::runtime::watch::{self, News, Source};
use kube::api::{ApiResource, ListParams};
use kube::{Api, Client, Discovery};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tracing::{info, warn};

/// Cluster API's group.
const GROUP: &str = "cluster.x-k8s.io";
/// How often to look whether Cluster API has been installed.
const LOOK: Duration = Duration::from_mins(1);

/// What is known of Clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clusters {
    /// Not asked yet, or no answer.
    #[default]
    Unreadable,
    /// Cluster API is not installed: the label means nothing.
    NotInstalled,
    /// Every Cluster, and whether it is paused.
    Known(BTreeMap<Key, bool>),
}

/// Why an owner is paused, if it is. Pure.
pub fn reason(view: &OwnerView, clusters: &Clusters) -> Option<String> {
    if view.annotations.contains_key(names::PAUSED) {
        return Some(format!("paused by the annotation {}", names::PAUSED));
    }
    let cluster = view.labels.get(names::CLUSTER_NAME).filter(|name| !name.is_empty())?;
    match clusters {
        Clusters::NotInstalled => None,
        Clusters::Unreadable => Some(format!("the state of Cluster {cluster} cannot be read")),
        Clusters::Known(known) => match known.get(&Key::new(&view.namespace, cluster)) {
            Some(false) => None,
            Some(true) => Some(format!("Cluster {cluster} is paused")),
            None => Some(format!("Cluster {cluster} is not there")),
        },
    }
}

/// Follows the Clusters. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    clusters: Arc<RwLock<Clusters>>,
    changed: Arc<Notify>,
}
impl Pauses {
    /// Why an owner is paused, if it is.
    pub fn reason(&self, view: &OwnerView) -> Option<String> {
        reason(view, &self.read())
    }
    fn read(&self) -> RwLockReadGuard<'_, Clusters> {
        self.clusters.read().unwrap_or_else(PoisonError::into_inner)
    }
    fn change(&self, change: impl FnOnce(&mut Clusters)) {
        change(&mut self.clusters.write().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
    }
    /// Returns once something is known. Passes before that would call every owner with a Cluster paused.
    pub async fn settled(&self) {
        loop {
            let changed = self.changed.notified();
            if *self.read() != Clusters::Unreadable {
                return;
            }
            changed.await;
        }
    }
    /// Follows for ever. Owners of a Cluster whose pause changes get a pass.
    pub async fn follow(self, client: Client, namespace: Option<String>, clock: SharedClock, owners: Handle) {
        let resource = loop {
            match installed(&client).await {
                Ok(Some(resource)) => break resource,
                Ok(None) => {
                    let mut first = false;
                    self.change(|c| first = std::mem::replace(c, Clusters::NotInstalled) != Clusters::NotInstalled);
                    if first {
                        info!("Cluster API is not installed: {} is ignored", names::CLUSTER_NAME);
                        owners.enqueue_where(|_, kept| kept.cluster.is_some());
                    }
                }
                Err(why) => {
                    warn!(why, "cannot tell whether Cluster API is installed");
                    self.change(|c| *c = Clusters::Unreadable);
                }
            }
            clock.sleep_until(clock.boot() + LOOK).await;
        };
        // Installed while we ran: unreadable until listed.
        self.change(|c| *c = Clusters::Unreadable);
        let (tell, mut news) = mpsc::channel(16);
        let mut watching = JoinSet::new();
        let source = Source { namespace, ..Source::new(client, resource) };
        watching.spawn(watch::watch(source, clock, tell));
        let mut listing: BTreeMap<Key, bool> = BTreeMap::new();
        while let Some(news) = news.recv().await {
            // What was unreadable until now was called paused.
            if matches!(news, News::Complete) && *self.read() == Clusters::Unreadable {
                self.heard(news, &mut listing);
                owners.enqueue_where(|_, kept| kept.cluster.is_some());
                continue;
            }
            for cluster in self.heard(news, &mut listing) {
                owners.enqueue_where(|key, kept| {
                    key.namespace == cluster.namespace && kept.cluster.as_ref() == Some(&cluster.name)
                });
            }
        }
    }
    /// Takes news in; returns the Clusters whose pause changed.
    fn heard(&self, news: News, listing: &mut BTreeMap<Key, bool>) -> Vec<Key> {
        let mut changed = Vec::new();
        match news {
            News::Begin => listing.clear(),
            News::Listed(object) => {
                listing.insert(object.key(), is_paused(&object.value));
            }
            News::Complete => {
                let new = std::mem::take(listing);
                self.change(|clusters| {
                    let empty = BTreeMap::new();
                    let old = if let Clusters::Known(known) = &*clusters { known } else { &empty };
                    let keys: HashSet<&Key> = old.keys().chain(new.keys()).collect();
                    changed = keys.into_iter().filter(|k| old.get(k) != new.get(k)).cloned().collect();
                    *clusters = Clusters::Known(new);
                });
            }
            News::Changed(object) => self.change(|clusters| {
                let (key, paused) = (object.key(), is_paused(&object.value));
                if let Clusters::Known(known) = clusters
                    && known.insert(key.clone(), paused) != Some(paused)
                {
                    changed.push(key);
                }
            }),
            News::Gone(object) => self.change(|clusters| {
                if let Clusters::Known(known) = clusters
                    && known.remove(&object.key()).is_some()
                {
                    changed.push(object.key());
                }
            }),
            // What was known stays: a pause shows up late when the API server is away, and writes need it too.
            News::Trouble(why) => warn!(why, "watch of Clusters"),
        }
        changed
    }
}

fn is_paused(cluster: &serde_json::Value) -> bool {
    cluster["spec"]["paused"].as_bool().unwrap_or(false)
}

/// Which Clusters are paused right now, for those who only look once.
pub async fn look(client: &Client, namespace: Option<&str>) -> Clusters {
    let resource = match installed(client).await {
        Ok(Some(resource)) => resource,
        Ok(None) => return Clusters::NotInstalled,
        Err(_) => return Clusters::Unreadable,
    };
    let api: Api<Arrived> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    match api.list(&ListParams::default()).await {
        Ok(list) => Clusters::Known(list.items.iter().map(|c| (c.key(), is_paused(&c.value))).collect()),
        Err(_) => Clusters::Unreadable,
    }
}

async fn installed(client: &Client) -> Result<Option<ApiResource>, String> {
    let discovery = Discovery::new(client.clone()).filter(&[GROUP]).run().await.map_err(|e| e.to_string())?;
    let found = discovery.get(GROUP).and_then(|group| group.recommended_kind("Cluster"));
    Ok(found.map(|(resource, _)| resource))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(paused: bool, cluster: Option<&str>) -> OwnerView {
        OwnerView {
            namespace: "n".into(),
            annotations: paused.then(|| (names::PAUSED.to_owned(), String::new())).into_iter().collect(),
            labels: cluster.map(|c| (names::CLUSTER_NAME.to_owned(), c.to_owned())).into_iter().collect(),
            ..OwnerView::default()
        }
    }
    fn known(paused: bool) -> Clusters {
        Clusters::Known([(Key::new("n", "c"), paused)].into())
    }

    #[test]
    fn the_annotation_pauses_whatever_the_cluster_says() {
        for clusters in [Clusters::NotInstalled, Clusters::Unreadable, known(false)] {
            assert!(reason(&view(true, None), &clusters).unwrap().contains("annotation"));
        }
    }
    #[test]
    fn an_owner_without_a_cluster_is_not_paused_by_one() {
        for clusters in [Clusters::NotInstalled, Clusters::Unreadable, known(true)] {
            assert_eq!(reason(&view(false, None), &clusters), None);
        }
    }
    #[test]
    fn only_a_readable_cluster_that_is_not_paused_lets_its_owners_run() {
        let owner = view(false, Some("c"));
        assert_eq!(reason(&owner, &known(false)), None);
        assert_eq!(reason(&owner, &Clusters::NotInstalled), None);
        assert_eq!(reason(&owner, &known(true)).unwrap(), "Cluster c is paused");
        assert_eq!(reason(&owner, &Clusters::Known(BTreeMap::new())).unwrap(), "Cluster c is not there");
        assert!(reason(&owner, &Clusters::Unreadable).unwrap().contains("cannot be read"));
        let elsewhere = OwnerView { namespace: "m".into(), ..owner };
        assert!(reason(&elsewhere, &known(false)).is_some(), "a Cluster of another namespace does not count");
    }
    #[tokio::test]
    async fn nothing_is_settled_before_something_is_known() {
        let pauses = Pauses::default();
        let waiting = tokio::spawn({
            let pauses = pauses.clone();
            async move { pauses.settled().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        pauses.change(|c| *c = Clusters::NotInstalled);
        waiting.await.unwrap();
    }
    #[test]
    fn changes_of_pause_are_told_and_nothing_else_is() {
        let cluster = |paused: bool| {
            let value = json!({"metadata": {"name": "c", "namespace": "n"}, "spec": {"paused": paused}});
            Box::new(serde_json::from_value(value).unwrap())
        };
        let (pauses, mut listing) = (Pauses::default(), BTreeMap::new());
        let mut heard = |news| pauses.heard(news, &mut listing).len();
        assert_eq!(heard(News::Begin), 0);
        assert_eq!(heard(News::Listed(cluster(false))), 0);
        assert_eq!(heard(News::Complete), 1);
        assert_eq!(heard(News::Changed(cluster(false))), 0);
        assert_eq!(heard(News::Changed(cluster(true))), 1);
        assert!(pauses.reason(&view(false, Some("c"))).is_some());
        assert_eq!(heard(News::Gone(cluster(true))), 1);
        assert_eq!(heard(News::Begin) + heard(News::Complete), 0);
    }
}
