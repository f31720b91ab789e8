//! What a test plays on: namespaces of its own, the controller with its rights, and any object by its kind.
use e2e::{Account, Cluster, ControllerProcess, Error, Launch, Result, Seen, TemporaryNamespace, manifests, until};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const BINARY: &str = "policy-pruner";
/// Nothing takes longer unless something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
const API_VERSION: &str = "policy.open-cluster-management.io/v1";

/// A kind without defaults and without rules: what is compared is what was written.
const THINGS: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.test.custody.dev}
spec:
  group: test.custody.dev
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";
/// Rights on the kinds that cases use, given as a user would give them.
const RIGHTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: custody-policy-pruner-e2e
  labels: {custody.dev/aggregate-to-policy-pruner: "true"}
rules:
- apiGroups: [test.custody.dev, order.custody.dev]
  resources: [things, parcels]
  verbs: [get, list, watch, create, update, delete]
- apiGroups: [""]
  resources: [pods, services, secrets, serviceaccounts]
  verbs: [get, list, watch, create, update, delete]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [create, update, delete]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, update, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, clusterroles]
  verbs: [get, list, watch, create, update, delete, escalate, bind]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch, create, update, delete]
"#;

pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) account: Account,
    pub(crate) client: Client,
    namespace: TemporaryNamespace,
    name: String,
}

impl Stage {
    pub(crate) async fn set(name: &str) -> Result<Self> {
        Self::set_on((*e2e::cluster().await?).clone(), name).await
    }
    /// On a cluster of the test's own.
    pub(crate) async fn set_on(cluster: Cluster, name: &str) -> Result<Self> {
        let account = Account::shipped(&cluster, BINARY).await?;
        manifests::apply_text(&cluster, "default", THINGS).await?;
        manifests::apply_text(&cluster, "default", RIGHTS).await?;
        let namespace = TemporaryNamespace::create(&cluster, name).await?;
        let client = cluster.client().await?;
        Ok(Stage { cluster, account, client, namespace, name: name.to_owned() })
    }
    /// Policies and, unless a case says otherwise, objects live here.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.name()
    }
    pub(crate) fn launch(&self, instance: &str) -> Result<Launch> {
        let launch = Launch::controller(&self.cluster, &self.account, BINARY, &format!("{}-{instance}", self.name))?;
        Ok(launch
            .arg(format!("--namespace={}", self.namespace()))
            .arg("--enable-ocm-policy-namespace=false")
            .arg("--metrics-bind-address=0")
            .arg("--evaluation-backoff=1"))
    }
    pub(crate) async fn start(&self) -> Result<ControllerProcess> {
        self.start_with(&[]).await
    }
    pub(crate) async fn start_with(&self, args: &[&str]) -> Result<ControllerProcess> {
        let mut launch = self.launch("controller")?.arg("--leader-elect=false");
        for arg in args {
            launch = launch.arg(*arg);
        }
        let mut controller = launch.start()?;
        controller.wait_ready(PATIENCE).await?;
        Ok(controller)
    }
    pub(crate) async fn clear(self) -> Result<()> {
        self.namespace.finish(PATIENCE).await
    }

    /// The API of a kind; the plural is asked for.
    pub(crate) async fn api(&self, api_version: &str, kind: &str, namespace: &str) -> Result<Api<DynamicObject>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = kube::core::GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = until(&format!("kind {kind}"), PATIENCE, || async {
            let found = kube::discovery::oneshot::pinned_kind(&self.client, &gvk).await;
            Ok(found.map_or_else(|error| Seen::NotYet(error.to_string()), Seen::Yes))
        })
        .await?;
        Ok(match capabilities.scope {
            kube::discovery::Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            kube::discovery::Scope::Namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
        })
    }
    pub(crate) async fn api_of(&self, object: &Value) -> Result<Api<DynamicObject>> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(self.namespace());
        self.api(&text(&object["apiVersion"]), &text(&object["kind"]), namespace).await
    }
    pub(crate) async fn create(&self, object: &Value) -> Result<Value> {
        let parsed: DynamicObject = serde_json::from_value(object.clone()).map_err(Error::other)?;
        let made = self.api_of(object).await?.create(&PostParams::default(), &parsed).await?;
        serde_json::to_value(made).map_err(Error::other)
    }
    /// The object as it is, if it is.
    pub(crate) async fn get(&self, object: &Value) -> Result<Option<Value>> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let found = self.api_of(object).await?.get_opt(name).await?;
        found.map(|found| serde_json::to_value(found).map_err(Error::other)).transpose()
    }
    pub(crate) async fn merge(&self, object: &Value, patch: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        self.api_of(object).await?.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
    pub(crate) async fn delete(&self, object: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        match self.api_of(object).await?.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }
    pub(crate) fn policies(&self) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: "policy.open-cluster-management.io".into(),
            version: "v1".into(),
            api_version: API_VERSION.into(),
            kind: "ConfigurationPolicy".into(),
            plural: "configurationpolicies".into(),
        };
        Api::namespaced_with(self.client.clone(), self.namespace(), &resource)
    }
    /// Waits until a policy has this state for its present generation.
    pub(crate) async fn settled(&self, name: &str, state: &str) -> Result<()> {
        let settled = |found: Option<&Value>| {
            let found = found.ok_or("gone")?;
            let same = found["status"]["lastEvaluatedGeneration"] == found["metadata"]["generation"];
            if same && found["status"]["compliant"] == state { Ok(()) } else { Err("not yet".to_owned()) }
        };
        self.wait(name, &format!("to be {state}"), settled).await.map(drop)
    }
    /// Waits until a policy's first message says this.
    pub(crate) async fn says(&self, name: &str, text: &str) -> Result<()> {
        let says = |found: Option<&Value>| {
            let message = &found.ok_or("gone")?["status"]["compliancyDetails"][0]["conditions"][0]["message"];
            let message = message.as_str().unwrap_or_default();
            if message.contains(text) { Ok(()) } else { Err(message.to_owned()) }
        };
        self.wait(name, &format!("to say: {text}"), says).await.map(drop)
    }
    /// Waits until a policy is gone.
    pub(crate) async fn gone(&self, name: &str) -> Result<()> {
        let gone = |found: Option<&Value>| if found.is_none() { Ok(()) } else { Err("still there".to_owned()) };
        self.wait(name, "to be gone", gone).await.map(drop)
    }
    pub(crate) fn policy(&self, name: &str, spec: &Value) -> Value {
        let metadata = json!({"name": name, "namespace": self.namespace()});
        json!({"apiVersion": API_VERSION, "kind": "ConfigurationPolicy", "metadata": metadata, "spec": spec})
    }
    /// Waits until a policy is as wanted; `None` stands for "gone". The text says what is wrong.
    pub(crate) async fn wait(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(Option<&Value>) -> std::result::Result<(), String>,
    ) -> Result<Option<Value>> {
        let api = self.policies();
        let wanted = &wanted;
        let api = &api;
        until(&format!("{name}: {what}"), PATIENCE, || async move {
            let found = api.get_opt(name).await?;
            let found = found.map(|f| serde_json::to_value(f).map_err(Error::other)).transpose()?;
            Ok(match wanted(found.as_ref()) {
                Ok(()) => Seen::Yes(found),
                Err(why) => {
                    let status = found.map(|f| f["status"].clone()).unwrap_or_default();
                    Seen::NotYet(format!("{why}\n{}", serde_json::to_string_pretty(&status).unwrap_or_default()))
                }
            })
        })
        .await
    }
}
