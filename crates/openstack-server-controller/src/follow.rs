//! Wakes servers when something that they wait for comes or changes: Secrets, claims of addresses, images.
use crate::api::OpenStackServer;
use crate::keeper::Keeper;
use crate::kube_inputs::{IPAM, KubeInputs, ORC, resource};
use common::clock::SharedClock;
use common::runtime::object::{Arrived, Key};
use common::runtime::runner::Handle;
use common::runtime::watch::{self, News, Source};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::ApiResource;
use kube::discovery::Discovery;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{debug, warn};

/// How often to look whether a kind was installed meanwhile.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// What is followed.
pub struct Follow {
    /// The API server.
    pub client: Client,
    /// Only in this namespace.
    pub namespace: Option<String>,
    /// Time.
    pub clock: SharedClock,
    /// Whose memory of Secrets is to be refreshed.
    pub inputs: Arc<KubeInputs>,
    /// Who holds on to credentials.
    pub keeper: Arc<Keeper>,
    /// Who is woken.
    pub servers: Handle,
}

impl Follow {
    /// Follows everything for as long as the process lives.
    pub async fn run(self) {
        let claims = async {
            let claims = resource(IPAM, "IPAddressClaim");
            self.kind(claims, |news| self.on_change(news, Self::wake_owner_of_claim)).await;
        };
        let images = async {
            self.kind(resource(ORC, "Image"), |news| self.on_change(news, Self::wake_users_of_image)).await;
        };
        let secrets = async {
            let secrets = ApiResource::erase::<Secret>(&());
            self.watch(secrets, |news| self.heard_of_secret(news)).await;
        };
        tokio::join!(secrets, claims, images, self.keeper.run(&self.clock, &self.servers));
    }
    /// A kind that may not be installed, or not yet.
    async fn kind(&self, kind: ApiResource, wake: impl Fn(&News)) {
        loop {
            let found = Discovery::new(self.client.clone()).filter(&[kind.group.as_str()]).run().await;
            match found {
                Ok(found) if found.get(&kind.group).is_some_and(|it| it.versions().any(|v| v == kind.version)) => break,
                Ok(_) => debug!(group = kind.group, "not installed"),
                Err(why) => warn!(group = kind.group, %why, "cannot be discovered"),
            }
            self.clock.sleep_until(self.clock.boot() + LOOK_AGAIN).await;
        }
        self.watch(kind, wake).await;
    }
    async fn watch(&self, kind: ApiResource, wake: impl Fn(&News)) {
        let (tell, mut news) = mpsc::channel(16);
        let mut watching = JoinSet::new();
        let source = Source { namespace: self.namespace.clone(), ..Source::new(self.client.clone(), kind.clone()) };
        watching.spawn(watch::watch(source, self.clock.clone(), tell));
        while let Some(news) = news.recv().await {
            if let News::Trouble(why) = &news {
                warn!(kind = kind.kind, why, "watch");
            }
            wake(&news);
        }
    }
    /// What was there before is read by the first pass of whoever needs it.
    fn on_change(&self, news: &News, wake: impl Fn(&Self, &Arrived)) {
        if let News::Changed(arrived) | News::Gone(arrived) = news {
            wake(self, arrived);
        }
    }
    fn heard_of_secret(&self, news: &News) {
        match news {
            News::Listed(arrived) => self.keeper.saw(arrived),
            News::Changed(arrived) => {
                self.keeper.saw(arrived);
                self.wake_users_of_secret(arrived);
            }
            News::Gone(arrived) => {
                self.keeper.gone(&arrived.key());
                self.wake_users_of_secret(arrived);
            }
            News::Begin | News::Complete | News::Trouble(_) => {}
        }
    }
    fn wake_users_of_secret(&self, arrived: &Arrived) {
        let key = arrived.key();
        self.inputs.forget(&key.namespace, &key.name);
        self.servers.enqueue_where(|owner, kept| {
            let uses = |it: OpenStackServer| {
                let data = it.spec.user_data_ref.as_ref().is_some_and(|it| *it.name == *key.name);
                // Credentials of a cluster identity lie in another namespace.
                let credentials = *it.spec.identity_ref.name == *key.name && owner.namespace == key.namespace;
                let shared = it.spec.identity_ref.type_ == crate::api::IdentityType::ClusterIdentity;
                credentials || shared || data && owner.namespace == key.namespace
            };
            kept.decode::<OpenStackServer>().is_ok_and(uses)
        });
    }
    fn wake_owner_of_claim(&self, arrived: &Arrived) {
        let Key { namespace, name } = arrived.key();
        if let Some(server) = name.strip_suffix("-floating-ip-address") {
            self.servers.enqueue(&Key::new(&namespace, server));
        }
    }
    fn wake_users_of_image(&self, arrived: &Arrived) {
        let key = arrived.key();
        self.servers.enqueue_where(|owner, kept| {
            let uses = |it: OpenStackServer| it.spec.image.image_ref.is_some_and(|it| *it.name == *key.name);
            owner.namespace == key.namespace && kept.decode::<OpenStackServer>().is_ok_and(uses)
        });
    }
}
