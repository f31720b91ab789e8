//! What becomes of a policy's objects: three behaviours, two actions, thirteen situations, each with its end.
use crate::stage::{PATIENCE, Stage};
use crate::{seen, tell};
use e2e::{ControllerProcess, Error, Result, Seen, until};
use futures::{StreamExt, stream};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::Mutex;

const BEHAVIOURS: [&str; 3] = ["None", "DeleteIfCreated", "DeleteAll"];
const ACTIONS: [&str; 2] = ["inform", "enforce"];
const AT_ONCE: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Situation {
    Created,
    ExistedBefore,
    RecreatedByAnother,
    EditedOut,
    SelectorNoLongerMatches,
    KindVanished,
    ApiErrorDuringEvaluation,
    StatusWiped,
    RestoredWithNewUid,
    FinalizerStripped,
    ForeignFinalizer,
    RequiredByAnother,
    /// Named by nobody: a template without a name merely matches it.
    OnlyMatched,
}
use Situation::{
    ApiErrorDuringEvaluation, Created, EditedOut, ExistedBefore, FinalizerStripped, ForeignFinalizer, KindVanished,
    OnlyMatched, RecreatedByAnother, RequiredByAnother, RestoredWithNewUid, SelectorNoLongerMatches, StatusWiped,
};
const SITUATIONS: [Situation; 13] = [
    Created,
    ExistedBefore,
    RecreatedByAnother,
    EditedOut,
    SelectorNoLongerMatches,
    KindVanished,
    ApiErrorDuringEvaluation,
    StatusWiped,
    RestoredWithNewUid,
    FinalizerStripped,
    ForeignFinalizer,
    RequiredByAnother,
    OnlyMatched,
];

/// Is the child gone in the end? The table of docs/policy-pruner.md.
fn goes(situation: Situation, behaviour: &str, action: &str, like_upstream: bool) -> bool {
    let prunes = action == "enforce" && behaviour != "None";
    match situation {
        KindVanished => true,
        FinalizerStripped => false,
        RequiredByAnother => prunes && like_upstream,
        OnlyMatched => prunes && behaviour == "DeleteAll" && like_upstream,
        ExistedBefore | RecreatedByAnother => prunes && behaviour == "DeleteAll",
        _ => prunes,
    }
}

#[tokio::test]
async fn objects_go_or_stay_as_the_matrix_says() {
    tell("objects_go_or_stay_as_the_matrix_says", matrix("prune", false)).await;
}

#[tokio::test]
async fn objects_go_or_stay_as_the_peer_has_it_on_request() {
    tell("objects_go_or_stay_as_the_peer_has_it_on_request", matrix("prune-peer", true)).await;
}

async fn matrix(name: &str, like_upstream: bool) -> Result<()> {
    let stage = Stage::set(name).await?;
    let flag = format!("--prune-like-upstream={like_upstream}");
    let controller = Mutex::new(stage.start_with(&[&flag]).await?);
    let mut rows = Vec::new();
    for situation in SITUATIONS {
        for behaviour in BEHAVIOURS {
            for action in ACTIONS {
                rows.push((situation, behaviour, action));
            }
        }
    }
    let (count, stage_ref, controller_ref) = (rows.len(), &stage, &controller);
    let failures: Vec<String> = stream::iter(rows.into_iter().enumerate())
        .map(|(n, (situation, behaviour, action))| async move {
            let (stage, controller, name) = (stage_ref, controller_ref, format!("r{n:02}"));
            let row = Row { stage, controller, name, situation, behaviour, action, like_upstream };
            row.play().await.err().map(|error| format!("{situation:?}, {behaviour}, {action}: {error}"))
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(|failed| async move { failed })
        .collect()
        .await;
    controller.lock().await.must_run()?;
    if !failures.is_empty() {
        return Err(Error::other(format!("{} of {count} rows failed:\n{}", failures.len(), failures.join("\n\n"))));
    }
    seen(&format!("{count} rows of the pruning matrix, like upstream: {like_upstream}"));
    stage.clear().await
}

struct Row<'a> {
    stage: &'a Stage,
    controller: &'a Mutex<ControllerProcess>,
    name: String,
    situation: Situation,
    behaviour: &'static str,
    action: &'static str,
    like_upstream: bool,
}

impl Row<'_> {
    /// In most rows the namespace of the test; its own where a selector is to lose it.
    fn namespace(&self) -> String {
        match self.situation {
            SelectorNoLongerMatches => format!("{}-{}", self.stage.namespace(), self.name),
            _ => self.stage.namespace().to_owned(),
        }
    }
    fn kind(&self) -> (String, String) {
        match self.situation {
            KindVanished => (format!("{}/v1", self.group()), "Fleeting".into()),
            _ => ("test.custody.dev/v1".into(), "Thing".into()),
        }
    }
    fn group(&self) -> String {
        format!("{}.{}.custody.dev", self.name, self.stage.namespace())
    }
    fn child(&self) -> Value {
        let (api_version, kind) = self.kind();
        let metadata = json!({"name": self.name, "namespace": self.namespace()});
        let mut child = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"a": 1}});
        match self.situation {
            OnlyMatched => child["metadata"]["labels"] = json!({"matched": self.name}),
            // Without a field of its own it has no field manager either.
            StatusWiped => {
                child.as_object_mut().map(|fields| fields.remove("spec"));
            }
            _ => {}
        }
        child
    }
    fn spec(&self, action: &str) -> Value {
        let mut definition = self.child();
        match self.situation {
            SelectorNoLongerMatches => definition["metadata"] = json!({"name": self.name}),
            OnlyMatched => {
                definition["metadata"] = json!({"namespace": self.namespace(), "labels": {"matched": self.name}});
            }
            _ => {}
        }
        let mut templates = vec![json!({"complianceType": "musthave", "objectDefinition": definition})];
        if self.situation == OnlyMatched {
            // That others of its kind are selected, and its namesake elsewhere is named, does not make it more than matched.
            let (api_version, kind) = self.kind();
            let selected =
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": self.namespace()}});
            let labels = json!({"matchLabels": {"selected": self.name}});
            templates
                .push(json!({"complianceType": "musthave", "objectDefinition": selected, "objectSelector": labels}));
            let metadata = json!({"name": self.name, "namespace": "default"});
            let elsewhere = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
            templates.push(json!({"complianceType": "mustnothave", "objectDefinition": elsewhere}));
        }
        // Not followed where somebody else must get there first.
        let interval = if self.situation == RecreatedByAnother {
            json!({"compliant": "1h", "noncompliant": "1s"})
        } else {
            json!({})
        };
        json!({
            "remediationAction": action, "pruneObjectBehavior": self.behaviour, "evaluationInterval": interval,
            "namespaceSelector": {"matchLabels": {"row": format!("{}-{}", self.stage.namespace(), self.name)}},
            "object-templates": templates,
        })
    }
    fn policy(&self) -> Value {
        self.stage.policy(&self.name, &self.spec("enforce"))
    }
    async fn settled(&self, state: &str) -> Result<()> {
        self.stage.settled(&self.name, state).await
    }
    async fn edit(&self, spec: &Value) -> Result<()> {
        self.stage.merge(&self.policy(), &json!({ "spec": spec })).await
    }

    async fn play(&self) -> Result<()> {
        self.set().await?;
        // Created, or found, under enforce; then the row's own action.
        self.stage.create(&self.policy()).await?;
        self.settled("Compliant").await?;
        if self.action == "inform" {
            self.edit(&json!({"remediationAction": "inform"})).await?;
            self.settled("Compliant").await?;
        }
        self.happen().await?;
        self.end().await
    }

    async fn set(&self) -> Result<()> {
        let stage = self.stage;
        match self.situation {
            ExistedBefore | OnlyMatched => {
                stage.create(&self.child()).await?;
            }
            SelectorNoLongerMatches => {
                let label = format!("{}-{}", stage.namespace(), self.name);
                let metadata = json!({"name": self.namespace(), "labels": {"row": label}});
                stage.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await?;
            }
            KindVanished => {
                let group = self.group();
                let version = json!({"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
                let spec = json!({"group": group, "scope": "Namespaced",
                    "names": {"kind": "Fleeting", "plural": "fleetings", "singular": "fleeting"}, "versions": [version]});
                stage
                    .create(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": format!("fleetings.{group}")}, "spec": spec}))
                    .await?;
                self.grant(&group).await?;
                stage.api(&format!("{group}/v1"), "Fleeting", stage.namespace()).await?;
            }
            _ => {}
        }
        Ok(())
    }
    async fn grant(&self, group: &str) -> Result<()> {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": format!("e2e-{group}-{}", self.stage.namespace()), "labels": {"custody.dev/aggregate-to-policy-pruner": "true"}},
            "rules": [{"apiGroups": [group], "resources": ["fleetings"], "verbs": ["get", "list", "watch", "create", "update", "delete"]}]});
        self.stage.create(&role).await.map(drop)
    }

    async fn happen(&self) -> Result<()> {
        let stage = self.stage;
        match self.situation {
            Created | ExistedBefore | KindVanished | OnlyMatched => {}
            RecreatedByAnother => {
                stage.delete(&self.child()).await?;
                stage.create(&self.child()).await?;
            }
            EditedOut => {
                self.edit_out(&[]).await?;
                // Judged once it was evaluated: right after the edit everything is still there.
                self.settled("Compliant").await?;
                self.child_is(goes(self.situation, self.behaviour, self.action, self.like_upstream), "after the edit")
                    .await?;
            }
            SelectorNoLongerMatches => {
                let namespace =
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace()}});
                stage.merge(&namespace, &json!({"metadata": {"labels": {"row": null}}})).await?;
                self.settled("NonCompliant").await?;
                self.child_is(goes(self.situation, self.behaviour, self.action, self.like_upstream), "after the label")
                    .await?;
            }
            ApiErrorDuringEvaluation => {
                let broken = json!({"apiVersion": "nobody.dev/v1", "kind": "Nothing", "metadata": {"name": "x"}});
                self.edit_out(&[json!({"complianceType": "musthave", "objectDefinition": broken})]).await?;
                self.settled("NonCompliant").await?;
                self.child_is(false, "in doubt").await?;
                self.edit_out(&[]).await?;
                self.settled("Compliant").await?;
                self.child_is(goes(self.situation, self.behaviour, self.action, self.like_upstream), "without doubt")
                    .await?;
            }
            StatusWiped => {
                let wiped = json!([{"op": "replace", "path": "/status", "value": {}}]);
                let patch = Patch::<()>::Json(serde_json::from_value(wiped).map_err(Error::other)?);
                stage.policies().patch_status(&self.name, &PatchParams::default(), &patch).await?;
                self.settled("Compliant").await?;
            }
            RestoredWithNewUid | FinalizerStripped => {
                self.vanish().await?;
                self.child_is(false, "without its policy").await?;
                if self.situation == RestoredWithNewUid {
                    let restored = stage.policy(&self.name, &self.spec(self.action));
                    stage.create(&restored).await?;
                    self.settled("Compliant").await?;
                }
            }
            ForeignFinalizer => {
                stage.merge(&self.child(), &json!({"metadata": {"finalizers": ["e2e.custody.dev/hold"]}})).await?;
            }
            RequiredByAnother => {
                let mut spec = self.spec("enforce");
                spec["pruneObjectBehavior"] = "None".into();
                stage.create(&stage.policy(&format!("{}-other", self.name), &spec)).await?;
                let other = format!("{}-other", self.name);
                stage.settled(&other, "Compliant").await?;
            }
        }
        Ok(())
    }
    /// The policy asks for something else; with these templates beside.
    async fn edit_out(&self, more: &[Value]) -> Result<()> {
        let mut other = self.child();
        other["metadata"]["name"] = format!("{}-other", self.name).into();
        let mut templates = vec![json!({"complianceType": "mustnothave", "objectDefinition": other})];
        templates.extend(more.iter().cloned());
        self.edit(&json!({ "object-templates": templates })).await
    }
    /// The policy is gone before the controller hears of it: its finalizer is taken off while the controller is frozen.
    async fn vanish(&self) -> Result<()> {
        let mut controller = self.controller.lock().await;
        controller.freeze()?;
        let gone = async {
            self.stage.merge(&self.policy(), &json!({"metadata": {"finalizers": null}})).await?;
            self.stage.delete(&self.policy()).await?;
            self.stage.gone(&self.name).await
        };
        let gone = gone.await;
        controller.unfreeze()?;
        gone
    }

    async fn end(&self) -> Result<()> {
        let stage = self.stage;
        let goes = goes(self.situation, self.behaviour, self.action, self.like_upstream);
        let uid = |child: Option<Value>| child.unwrap_or_default()["metadata"]["uid"].as_str().map(str::to_owned);
        let before = if self.situation == KindVanished { None } else { uid(stage.get(&self.child()).await?) };
        if self.situation != FinalizerStripped {
            if self.situation == KindVanished {
                let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": format!("fleetings.{}", self.group())}});
                stage.delete(&crd).await?;
                until(&format!("{crd} to be gone"), PATIENCE, || async {
                    Ok(stage.get(&crd).await?.map_or(Seen::Yes(()), |_| Seen::NotYet("still there".into())))
                })
                .await?;
            }
            stage.delete(&self.policy()).await?;
            if self.situation == ForeignFinalizer && goes {
                stage
                    .wait(&self.name, "to say what it waits for", |found| {
                        let found = found.ok_or("gone too early")?;
                        let text = found["status"]["compliancyDetails"][0]["conditions"][0]["message"]
                            .as_str()
                            .unwrap_or_default();
                        let told = text.starts_with("Failed to delete objects: ")
                            && text.contains("e2e.custody.dev/hold")
                            && text.contains("in progress since");
                        if told && found["status"]["compliant"] == "Terminating" {
                            Ok(())
                        } else {
                            Err(text.to_owned())
                        }
                    })
                    .await?;
                stage.merge(&self.child(), &json!({"metadata": {"finalizers": null}})).await?;
            }
            stage.gone(&self.name).await?;
        }
        if self.situation == RequiredByAnother && goes {
            // The other policy makes it anew at once: another object under the same name.
            until(&format!("the first {} to be gone", self.name), PATIENCE, || async {
                let now = uid(stage.get(&self.child()).await?);
                Ok(if now.is_none() || now != before { Seen::Yes(()) } else { Seen::NotYet(format!("{now:?}")) })
            })
            .await?;
        } else if self.situation != KindVanished {
            self.child_is(goes, "in the end").await?;
        }
        self.tidy().await
    }
    async fn child_is(&self, gone: bool, when: &str) -> Result<()> {
        if gone {
            return until(&format!("{} to be gone {when}", self.name), PATIENCE, || async {
                Ok(self.stage.get(&self.child()).await?.map_or(Seen::Yes(()), |found| Seen::NotYet(found.to_string())))
            })
            .await;
        }
        match self.stage.get(&self.child()).await? {
            Some(child) if child["metadata"]["deletionTimestamp"].is_null() => Ok(()),
            other => Err(Error::other(format!("{when}, the child should be there: {other:?}"))),
        }
    }
    /// Nothing of the row may hold the namespace.
    async fn tidy(&self) -> Result<()> {
        let stage = self.stage;
        stage.delete(&stage.policy(&format!("{}-other", self.name), &json!({}))).await?;
        if self.situation == SelectorNoLongerMatches {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace()}});
            stage.delete(&namespace).await?;
        } else if self.situation != KindVanished && stage.get(&self.child()).await?.is_some() {
            stage.merge(&self.child(), &json!({"metadata": {"finalizers": null}})).await.ok();
            stage.delete(&self.child()).await?;
        }
        Ok(())
    }
}
