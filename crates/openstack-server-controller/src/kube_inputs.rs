//! What a pass reads from Kubernetes, over a kube client. Secrets are remembered for a moment, so that a thousand servers with
//! one set of credentials do not ask a thousand times; a watch forgets what changed.
use crate::api::{IdentityRef, IdentityType, OpenStackClusterIdentity, TypedRef};
use crate::claims::{self, Claims, IPAM, IPAM_VERSIONS};
use crate::clouds::{self, CloudConfig};
use crate::inputs::{Inputs, Missing};
use crate::machine::kube_nodes::CAPI;
use crate::names::{CA_KEY, CLOUDS_KEY, USER_DATA_KEY};
use crate::watching::{LOOK_AGAIN, served};
use async_trait::async_trait;
use common::clock::{Boot, SharedClock};
use common::engine::owner::OwnerView;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams, TypeMeta};
use kube::core::{GroupVersionKind, Selector, SelectorExt};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const REMEMBERED: Duration = Duration::from_secs(30);
/// The version of Cluster API whose clusters have a list of failure domains.
const ZONE_LISTS: &str = "v1beta2";
/// Group and version of Image objects.
pub const ORC: (&str, &str) = ("openstack.k-orc.cloud", "v1alpha1");

/// A kind known by name only.
pub fn resource((group, version): (&str, &str), kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

type Data = BTreeMap<String, Vec<u8>>;
/// What was read a moment ago, by namespace and name.
type Memory<T> = Mutex<HashMap<(String, String), (Boot, T)>>;

fn recall<T: Clone>(memory: &Memory<T>, key: &(String, String), now: Boot) -> Option<T> {
    let mut known = memory.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|_, (read, _)| now.since(*read) < REMEMBERED);
    known.get(key).map(|(_, value)| value.clone())
}
fn remember<T>(memory: &Memory<T>, key: (String, String), now: Boot, value: T) {
    memory.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (now, value));
}

/// Reads with one client.
pub struct KubeInputs {
    client: Client,
    clock: SharedClock,
    /// Nothing is asked for that is not there.
    read_only: bool,
    secrets: Memory<Data>,
    /// Namespace and name of the Secret that a cluster identity lends to a namespace.
    lent: Memory<(String, String)>,
    /// Does Cluster API read lists of zones, and when was that asked?
    zone_lists: tokio::sync::Mutex<Option<(Boot, bool)>>,
    /// The version of claims and addresses, and when that was asked.
    ipam: tokio::sync::Mutex<Option<(Boot, String)>>,
}
impl KubeInputs {
    /// Nothing is read yet.
    pub fn new(client: Client, clock: SharedClock) -> Self {
        KubeInputs {
            client,
            clock,
            read_only: false,
            secrets: Memory::default(),
            lent: Memory::default(),
            zone_lists: tokio::sync::Mutex::default(),
            ipam: tokio::sync::Mutex::default(),
        }
    }
    /// For looking only: no claim is made.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
    /// This Secret changed.
    pub fn forget(&self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
    /// Claims or addresses, in the version that is served.
    async fn ipam(&self, namespace: &str, kind: &str, plural: &str) -> Result<Api<DynamicObject>, Missing> {
        let version = self.ipam_version().await?;
        let kind = ApiResource { plural: plural.into(), ..resource((IPAM.0, &version), kind) };
        Ok(Api::namespaced_with(self.client.clone(), namespace, &kind))
    }
    async fn ipam_version(&self) -> Result<String, Missing> {
        let mut held = self.ipam.lock().await;
        let now = self.clock.boot();
        if let Some((asked, version)) = held.as_ref()
            && (version == IPAM.1 || now.since(*asked) < LOOK_AGAIN)
        {
            return Ok(version.clone());
        }
        let found = served(&self.client, IPAM.0, &IPAM_VERSIONS).await;
        let found = found.map_err(|why| Missing::Unavailable(format!("{}: {why}", IPAM.0)))?;
        *held = found.clone().map(|version| (now, version));
        Ok(found.unwrap_or_else(|| IPAM.1.to_owned()))
    }
    async fn secret(&self, namespace: &str, name: &str) -> Result<Data, Missing> {
        let key = (namespace.to_owned(), name.to_owned());
        let now = self.clock.boot();
        if let Some(data) = recall(&self.secrets, &key, now) {
            return Ok(data);
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret = read(api.get(name).await, "Secret", namespace, name)?;
        let data: Data = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
        remember(&self.secrets, key, now, data.clone());
        Ok(data)
    }
    /// The namespace and name of the Secret that an identity leads to.
    async fn secret_of(&self, namespace: &str, identity: &IdentityRef) -> Result<(String, String), Missing> {
        if identity.type_ == IdentityType::Secret {
            return Ok((namespace.to_owned(), identity.name.clone()));
        }
        let key = (namespace.to_owned(), identity.name.clone());
        if let Some(known) = recall(&self.lent, &key, self.clock.boot()) {
            return Ok(known);
        }
        let api: Api<OpenStackClusterIdentity> = Api::all(self.client.clone());
        let found = read(api.get(&identity.name).await, "OpenStackClusterIdentity", "", &identity.name)?;
        if let Some(selector) = found.spec.namespace_selector {
            self.check_namespace(namespace, selector, &identity.name).await?;
        }
        let secret = (found.spec.secret_ref.namespace, found.spec.secret_ref.name);
        remember(&self.lent, key, self.clock.boot(), secret.clone());
        Ok(secret)
    }
    async fn check_namespace(&self, namespace: &str, selector: LabelSelector, identity: &str) -> Result<(), Missing> {
        let unusable =
            |_| Missing::Unusable(format!("namespaceSelector of OpenStackClusterIdentity {identity} cannot be read"));
        let selector = Selector::try_from(selector).map_err(unusable)?;
        let api: Api<Namespace> = Api::all(self.client.clone());
        let found = read(api.get(namespace).await, "Namespace", "", namespace)?;
        if selector.matches(found.labels()) {
            return Ok(());
        }
        Err(Missing::Unusable(format!("namespace {namespace} is not allowed to use cluster identity {identity}")))
    }
}

fn read<T>(read: kube::Result<T>, kind: &str, namespace: &str, name: &str) -> Result<T, Missing> {
    let full = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    read.map_err(|error| match error {
        kube::Error::Api(status) if status.code == 404 => Missing::Pending(format!("{kind} {full} is not there")),
        kube::Error::Api(status) if status.code == 403 => Missing::Unusable(format!("{kind} {full} may not be read")),
        other => Missing::Unavailable(format!("{kind} {full}: {other}")),
    })
}

#[async_trait]
impl Inputs for KubeInputs {
    async fn cloud(&self, namespace: &str, identity: &IdentityRef) -> Result<CloudConfig, Missing> {
        let (home, name) = self.secret_of(namespace, identity).await?;
        let data = self.secret(&home, &name).await?;
        let text = |key: &str| -> Result<Option<String>, Missing> {
            let Some(bytes) = data.get(key).filter(|it| !it.is_empty()) else { return Ok(None) };
            let text = String::from_utf8(bytes.clone());
            text.map(Some).map_err(|_| Missing::Unusable(format!("key {key} of Secret {home}/{name} is no text")))
        };
        let clouds = text(CLOUDS_KEY)?
            .ok_or_else(|| Missing::Unusable(format!("Secret {home}/{name} has no key {CLOUDS_KEY}")))?;
        let ca = text(CA_KEY)?;
        clouds::read(&clouds, &identity.cloud_name, identity.region.as_deref(), ca.as_deref())
            .map_err(|why| Missing::Unusable(format!("Secret {home}/{name}: {why}")))
    }
    async fn user_data(&self, namespace: &str, secret: &str) -> Result<Vec<u8>, Missing> {
        let mut data = self.secret(namespace, secret).await?;
        let found = data.remove(USER_DATA_KEY);
        found.ok_or_else(|| Missing::Pending(format!("Secret {namespace}/{secret} has no key {USER_DATA_KEY}")))
    }
    async fn image(&self, namespace: &str, name: &str) -> Result<String, Missing> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource(ORC, "Image"));
        let image = read(api.get(name).await, "Image", namespace, name)?;
        image_id(&image, namespace, name)
    }
    async fn address(&self, owner: &OwnerView, pool: &TypedRef) -> Result<Option<String>, Missing> {
        claims::address(self, owner, pool).await
    }
    async fn release(&self, owner: &OwnerView) -> Result<(), Missing> {
        claims::release(self, owner).await
    }
    async fn reads_lists_of_zones(&self) -> Result<bool, Missing> {
        let mut held = self.zone_lists.lock().await;
        let now = self.clock.boot();
        match *held {
            Some((_, true)) => return Ok(true),
            Some((asked, false)) if now.since(asked) < LOOK_AGAIN => return Ok(false),
            _ => {}
        }
        let found = served(&self.client, CAPI, &[ZONE_LISTS]).await;
        let reads = found.map_err(|why| Missing::Unavailable(format!("{CAPI}: {why}")))?.is_some();
        *held = Some((now, reads));
        Ok(reads)
    }
}

#[async_trait]
impl Claims for KubeInputs {
    async fn claim(&self, namespace: &str, name: &str) -> Result<Option<DynamicObject>, Missing> {
        let found = self.ipam(namespace, "IPAddressClaim", "ipaddressclaims").await?.get_opt(name).await;
        found.map_err(|error| Missing::Unavailable(format!("IPAddressClaim {name}: {error}")))
    }
    async fn make(&self, namespace: &str, claim: &DynamicObject) -> Result<Option<DynamicObject>, Missing> {
        if self.read_only {
            return Ok(None);
        }
        let claims = self.ipam(namespace, "IPAddressClaim", "ipaddressclaims").await?;
        let api_version = format!("{}/{}", IPAM.0, self.ipam_version().await?);
        let types = claim.types.clone().map(|it| TypeMeta { api_version, ..it });
        let made = claims.create(&PostParams::default(), &DynamicObject { types, ..claim.clone() }).await;
        made.map(Some).map_err(|e| Missing::Unavailable(format!("IPAddressClaim {}: {e}", claim.name_any())))
    }
    async fn finalize(&self, claim: &DynamicObject, finalizers: &[String]) -> Result<(), Missing> {
        if self.read_only {
            return Ok(());
        }
        let claims = self.ipam(&claim.namespace().unwrap_or_default(), "IPAddressClaim", "ipaddressclaims").await?;
        let version = claim.resource_version();
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
        let patched = claims.patch_metadata(&claim.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await;
        patched.map(drop).map_err(|e| Missing::Unavailable(format!("IPAddressClaim {}: {e}", claim.name_any())))
    }
    async fn given(&self, namespace: &str, name: &str) -> Result<Option<DynamicObject>, Missing> {
        let addresses = self.ipam(namespace, "IPAddress", "ipaddresses").await?;
        match read(addresses.get(name).await, "IPAddress", namespace, name) {
            Ok(found) => Ok(Some(found)),
            Err(Missing::Pending(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }
}

/// The id that an Image object has come to, if it has.
fn image_id(image: &DynamicObject, namespace: &str, name: &str) -> Result<String, Missing> {
    let conditions = common::runtime::object::conditions_of(&image.data["status"]);
    let state = |type_: &str| conditions.iter().find(|it| it.type_ == type_);
    if state("Available").is_some_and(|it| it.status == "True")
        && let Some(id) = image.data["status"]["id"].as_str()
    {
        return Ok(id.to_owned());
    }
    if let Some(progressing) = state("Progressing").filter(|it| it.observed_generation == image.metadata.generation)
        && progressing.status == "False"
        && matches!(progressing.reason.as_str(), "InvalidConfiguration" | "UnrecoverableError")
    {
        return Err(Missing::Unusable(format!(
            "Image {namespace}/{name}: {}: {}",
            progressing.reason, progressing.message
        )));
    }
    Err(Missing::Pending(format!("Image {namespace}/{name} is not available yet")))
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // json!s are written in place
mod tests {
    use super::*;
    use common::testing::one_owner::ToldClock;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::Value;
    use std::sync::Arc;

    fn image(status: Value) -> Result<String, Missing> {
        let mut object = DynamicObject::new("i", &resource(ORC, "Image"));
        object.metadata.generation = Some(2);
        object.data = json!({ "status": status });
        image_id(&object, "ns", "i")
    }
    fn condition(type_: &str, status: &str, reason: &str, generation: i64) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "m", "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn an_image_is_available_pending_or_hopeless() {
        assert_eq!(
            image(json!({"id": "x", "conditions": [condition("Available", "True", "Success", 2)]})),
            Ok("x".into())
        );
        assert!(matches!(image(json!({})), Err(Missing::Pending(_))));
        let failed = |generation| {
            image(json!({"conditions": [condition("Progressing", "False", "UnrecoverableError", generation)]}))
        };
        assert!(matches!(failed(2), Err(Missing::Unusable(_))));
        assert!(matches!(failed(1), Err(Missing::Pending(_))), "what was said of an older generation does not count");
    }

    /// An API server with one version of claims; it writes down what it is asked for.
    fn ipam(version: &'static str) -> (Client, Arc<Mutex<Vec<String>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let asked = log.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            asked.lock().unwrap().push(format!("{} {path}", request.method()));
            let group = json!({"groupVersion": format!("{}/{version}", IPAM.0), "version": version});
            let body = match (request.method().as_str(), path.as_str()) {
                ("GET", "/apis") => json!({"kind": "APIGroupList", "apiVersion": "v1",
                    "groups": [{"name": IPAM.0, "versions": [group], "preferredVersion": group}]}),
                ("GET", "/api") => json!({"kind": "APIVersions", "versions": [], "serverAddressByClientCIDRs": []}),
                ("GET", path) if path.ends_with(version) => json!({"kind": "APIResourceList", "apiVersion": "v1",
                    "groupVersion": group["groupVersion"], "resources": [{"name": "ipaddressclaims", "singularName": "ipaddressclaim",
                    "namespaced": true, "kind": "IPAddressClaim", "verbs": ["get"]}]}),
                _ => {
                    json!({"apiVersion": group["groupVersion"], "kind": "IPAddressClaim", "metadata": {"name": "c", "namespace": "ns"}})
                }
            };
            let response = Response::builder().status(200).body(Body::from(body.to_string().into_bytes())).unwrap();
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        });
        (Client::new(service, "default"), log)
    }
    #[tokio::test]
    async fn claims_are_made_in_the_version_that_is_served() {
        for version in IPAM_VERSIONS {
            let (client, log) = ipam(version);
            let inputs = KubeInputs::new(client, Arc::new(ToldClock::default()));
            let claim = DynamicObject::new("c", &resource(IPAM, "IPAddressClaim"));
            inputs.make("ns", &claim).await.unwrap();
            inputs.claim("ns", "c").await.unwrap();
            let claims = format!("/apis/{}/{version}/namespaces/ns/ipaddressclaims", IPAM.0);
            let log = log.lock().unwrap();
            assert_eq!(log[log.len() - 2..], [format!("POST {claims}"), format!("GET {claims}/c")], "{log:?}");
        }
    }
}
