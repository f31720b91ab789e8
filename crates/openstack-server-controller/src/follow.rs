//! Wakes servers when something that they wait for comes or changes: claims of addresses, images.
use crate::api::OpenStackServer;
use crate::claims::{IPAM, IPAM_VERSIONS, SUFFIX};
use crate::kube_inputs::{ORC, resource};
use crate::watching::Watching;
use common::runtime::object::{Arrived, Key};
use common::runtime::runner::Handle;
use common::runtime::watch::News;

/// What is followed.
pub struct Follow {
    /// Where to watch.
    pub watching: Watching,
    /// Who is woken.
    pub servers: Handle,
}

impl Follow {
    /// Follows everything for as long as the process lives.
    pub async fn run(self) {
        let claims = async {
            let claims = resource(IPAM, "IPAddressClaim");
            let hear = |news: &News| self.on_change(news, Self::wake_owner_of_claim);
            self.watching.optional(claims, &IPAM_VERSIONS, hear).await;
        };
        let images = async {
            let hear = |news: &News| self.on_change(news, Self::wake_users_of_image);
            self.watching.optional(resource(ORC, "Image"), &[ORC.1], hear).await;
        };
        tokio::join!(claims, images);
    }
    /// What was there before is read by the first pass of whoever needs it.
    fn on_change(&self, news: &News, wake: impl Fn(&Self, &Arrived)) {
        if let News::Changed(arrived) | News::Gone(arrived) = news {
            wake(self, arrived);
        }
    }
    fn wake_owner_of_claim(&self, arrived: &Arrived) {
        let Key { namespace, name } = arrived.key();
        if let Some(server) = name.strip_suffix(SUFFIX) {
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
