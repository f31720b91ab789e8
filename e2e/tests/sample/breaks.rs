//! The steps at which a move can break off, and how to stop clusterctl at exactly one of them: an admission policy denies the
//! next step, clusterctl tries it again and again, and is killed meanwhile.
use crate::moves::{NAME, Side};
use crate::owners::{condition, is_stalled, message, owner};
use crate::stage::{PATIENCE, owners_in};
use common::names::reason;
use e2e::{Cluster, Result, Seen, capi, manifests, until};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

/// What the policy keeps clusterctl from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deny {
    /// The first create on the target.
    CreateCluster,
    /// The second.
    CreateOwner,
    /// The last step of deleting the owner on the source: it is marked and deleted, its finalizer is still there.
    FreeOwner,
    /// Deleting the Cluster on the source: the owner is gone.
    DeleteCluster,
}

/// A step at which a move breaks off; its name is the namespace that is moved.
#[derive(Debug)]
pub(crate) struct Break {
    pub(crate) name: &'static str,
    deny: Deny,
}

pub(crate) const BREAKS: [Break; 4] = [
    Break { name: "before-the-creates", deny: Deny::CreateCluster },
    Break { name: "half-way-through-the-creates", deny: Deny::CreateOwner },
    Break { name: "in-the-middle-of-a-delete", deny: Deny::FreeOwner },
    Break { name: "half-way-through-the-deletes", deny: Deny::DeleteCluster },
];

/// A policy in force.
pub(crate) struct Wall {
    cluster: Cluster,
    name: &'static str,
    deny: Deny,
}

impl Break {
    fn on_target(&self) -> bool {
        matches!(self.deny, Deny::CreateCluster | Deny::CreateOwner)
    }
    /// Puts the policy in force and waits until it is.
    pub(crate) async fn raise(&self, source: &Cluster, target: &Cluster) -> Result<Wall> {
        let cluster = if self.on_target() { target } else { source };
        let (group, resource, operation, holds) = match self.deny {
            Deny::CreateCluster => ("cluster.x-k8s.io", "clusters", "CREATE", "true"),
            Deny::CreateOwner => ("sample.custody.dev", "sampleowners", "CREATE", "true"),
            // By the administrator's hand: our controller may take its finalizer off if it wants to, which it must not.
            Deny::FreeOwner => (
                "sample.custody.dev",
                "sampleowners",
                "UPDATE",
                "request.userInfo.username == 'admin' && has(oldObject.metadata.finalizers) && !has(object.metadata.finalizers)",
            ),
            Deny::DeleteCluster => ("cluster.x-k8s.io", "clusters", "DELETE", "true"),
        };
        let rule =
            json!({"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": [operation]});
        let expression = format!("!(request.namespace == '{}' && {holds})", self.name);
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": self.name}, "spec": {"failurePolicy": "Fail",
                    "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]},
            }),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": self.name}, "spec": {"policyName": self.name, "validationActions": ["Deny"]},
            }),
        ];
        let objects: std::result::Result<Vec<DynamicObject>, _> =
            objects.into_iter().map(serde_json::from_value).collect();
        manifests::apply(cluster, self.name, objects.map_err(e2e::Error::other)?).await?;
        let wall = Wall { cluster: cluster.clone(), name: self.name, deny: self.deny };
        wall.wait(true).await?;
        Ok(wall)
    }
    /// Waits until clusterctl has done everything before the step that is denied.
    pub(crate) async fn reached(&self, source: &Cluster, target: &Cluster) -> Result<()> {
        let source_clusters = capi::clusters(source, self.name).await?;
        let target_clusters = capi::clusters(target, self.name).await?;
        let owners = owners_in(source, self.name).await?;
        until("clusterctl to come to the step that is denied", PATIENCE, || async {
            let paused = source_clusters.get_opt(NAME).await?.is_some_and(|it| it.data["spec"]["paused"] == true);
            let created = target_clusters.get_opt(NAME).await?.is_some();
            let owner = owners.get_opt(NAME).await?;
            let deleting = owner.as_ref().is_some_and(|it| it.metadata.deletion_timestamp.is_some());
            let reached = match self.deny {
                Deny::CreateCluster => paused,
                Deny::CreateOwner => created,
                Deny::FreeOwner => deleting,
                Deny::DeleteCluster => owner.is_none(),
            };
            let seen = format!("paused: {paused}, created: {created}, deleting: {deleting}");
            Ok(if reached { Seen::Yes(()) } else { Seen::NotYet(seen) })
        })
        .await
    }
    /// Waits until the controllers say what they see of the half-done move.
    pub(crate) async fn said(&self, source: &Side, target: &Side) -> Result<()> {
        let paused = |object: &DynamicObject| condition(object, "Paused").is_some_and(|(status, _)| status == "True");
        match self.deny {
            Deny::CreateCluster | Deny::CreateOwner => {
                source.owner(self.name, "to be paused on the source", paused).await?;
            }
            Deny::FreeOwner => {
                // It is paused, too, and a paused owner is never called stalled: the message says it.
                let unfinished = |object: &DynamicObject| message(object, "Ready").contains("unfinished move");
                source.owner(self.name, "to be called half moved on the source", unfinished).await?;
                let waits = |object: &DynamicObject| paused(object) || is_stalled(object, reason::TAKEOVER_REQUIRED);
                target.owner(self.name, "to wait on the target", waits).await?;
            }
            Deny::DeleteCluster => {
                let waits = |object: &DynamicObject| paused(object) || is_stalled(object, reason::TAKEOVER_REQUIRED);
                target.owner(self.name, "to wait on the target", waits).await?;
            }
        }
        Ok(())
    }
    /// What an operator has to do by hand before the second run: clusterctl cannot copy what is being deleted over what it
    /// has already created, so its last step is done for it.
    pub(crate) async fn tidy(&self, source: &Side) -> Result<()> {
        if self.deny != Deny::FreeOwner {
            return Ok(());
        }
        source.patch_owner(self.name, &json!({"metadata": {"finalizers": null}})).await?;
        e2e::wait_until_gone(&owners_in(source.cluster(), self.name).await?, NAME, PATIENCE).await
    }
}

impl Wall {
    /// Takes the policy out of force and waits until it is.
    pub(crate) async fn lower(self) -> Result<()> {
        let client = self.cluster.client().await?;
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client);
        bindings.delete(self.name, &DeleteParams::default()).await?;
        policies.delete(self.name, &DeleteParams::default()).await?;
        self.wait(false).await
    }
    /// A policy takes a moment to be in force: tries the denied step without doing it.
    async fn wait(&self, denied: bool) -> Result<()> {
        until(&format!("the policy {} to be in force: {denied}", self.name), PATIENCE, || async {
            let is = self.denies().await?;
            Ok(if is == denied { Seen::Yes(()) } else { Seen::NotYet(format!("it is: {is}")) })
        })
        .await
    }
    async fn denies(&self) -> Result<bool> {
        let (clusters, owners) =
            (capi::clusters(&self.cluster, self.name).await?, owners_in(&self.cluster, self.name).await?);
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let tried = match self.deny {
            Deny::CreateCluster => {
                let probe = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                    "metadata": {"name": "probe"}, "spec": {"clusterNetwork": {"serviceDomain": "probe"}}});
                let probe: DynamicObject = serde_json::from_value(probe).map_err(e2e::Error::other)?;
                clusters.create(&dry, &probe).await.map(drop)
            }
            Deny::CreateOwner => owners.create(&dry, &owner("probe", &json!({}))?).await.map(drop),
            Deny::FreeOwner => {
                if owners.list(&ListParams::default()).await?.items.is_empty() {
                    return Ok(false);
                }
                let params = PatchParams { dry_run: true, ..PatchParams::default() };
                let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                owners.patch(NAME, &params, &free).await.map(drop)
            }
            Deny::DeleteCluster => {
                clusters.delete(NAME, &DeleteParams { dry_run: true, ..Default::default() }).await.map(drop)
            }
        };
        match tried {
            Ok(()) => Ok(false),
            Err(kube::Error::Api(status)) if status.message.contains("ValidatingAdmissionPolicy") => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}
