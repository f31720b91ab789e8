//! Is this installation on its way out? Then policies are let go of and nothing is pruned.
//!
//! The answer is as new as the policy it is asked for: a list says at which version of the cluster it was made, so one
//! answer serves every policy that was deleted before it. It does not serve for long: a definition may go while a policy waits
//! for its children, and an uninstall may be called off, and neither changes the policy.
use crate::cluster::kinds::Mapping;
use crate::cluster::objects::Objects;
use crate::cluster::wire::{Call, Trouble, Verb};
use crate::dialect::Dialect;
use crate::names;
use common::clock::Boot;
use common::runtime::object::Version;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How new an answer must be.
#[derive(Clone, Copy, Debug)]
pub struct Fresh {
    /// Of this version of the cluster or later.
    pub since: Version,
    /// Now.
    pub now: Boot,
    /// Given less than this long ago.
    pub age: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    at: Version,
    /// When it was asked for; nobody knows if only the wording was wanted.
    asked: Option<Boot>,
    leaving: bool,
    dialect: Dialect,
}

/// The CRD of policies, and our own Deployment.
pub struct Surroundings {
    objects: Objects,
    deployment: Option<(String, String)>,
    last: Mutex<Option<Answer>>,
    asking: tokio::sync::Mutex<()>,
}
impl Surroundings {
    /// `deployment`: namespace and name of our own, if there is one.
    pub fn new(objects: Objects, deployment: Option<(String, String)>) -> Self {
        Surroundings { objects, deployment, last: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }
    fn last(&self) -> Option<Answer> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Is everything on its way out?
    pub async fn leaving(&self, fresh: Fresh) -> Result<bool, Trouble> {
        let young = |asked: Boot| fresh.now.since(asked) < fresh.age;
        let known = || self.last().filter(|a| a.at >= fresh.since && a.asked.is_some_and(young));
        if let Some(answer) = known() {
            return Ok(answer.leaving);
        }
        let _one = self.asking.lock().await;
        if let Some(answer) = known() {
            return Ok(answer.leaving);
        }
        Ok(self.ask(Some(fresh.now)).await?.leaving)
    }
    /// Wording of this cluster.
    pub async fn dialect(&self) -> Dialect {
        match self.last() {
            Some(answer) => answer.dialect,
            None => self.ask(None).await.map(|answer| answer.dialect).unwrap_or_default(),
        }
    }
    async fn ask(&self, asked: Option<Boot>) -> Result<Answer, Trouble> {
        let crds = Mapping::known(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        );
        let (at, crd) = self.one(&crds, "", names::CRD).await?;
        let crd_leaving = crd.as_ref().is_none_or(is_ending);
        let dialect = crd.as_ref().map(Dialect::of_crd).unwrap_or_default();
        let mut answer = Answer { at, asked, leaving: crd_leaving, dialect };
        if let Some((namespace, name)) = &self.deployment {
            let deployments = Mapping::known("apps", "v1", "Deployment", "deployments", true);
            let (own, deployment) = self.one(&deployments, namespace, name).await?;
            answer.at = answer.at.min(own);
            answer.leaving |= deployment.as_ref().is_some_and(is_uninstalling);
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        Ok(answer)
    }
    async fn one(&self, mapping: &Mapping, namespace: &str, name: &str) -> Result<(Version, Option<Value>), Trouble> {
        let call = Call::new(Verb::Get, mapping.path(namespace)).with("fieldSelector", format!("metadata.name={name}"));
        let mut reply = self.objects.0.call(call).await?;
        let at = Version::parse(reply["metadata"]["resourceVersion"].as_str().unwrap_or("0"));
        let first = reply["items"].get_mut(0).map(Value::take);
        Ok((at, first))
    }
}
fn is_ending(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}
fn is_uninstalling(deployment: &Value) -> bool {
    let text = deployment["metadata"]["annotations"][names::UNINSTALLING].as_str();
    text.is_some_and(|text| !matches!(text, "" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::wire::Wire;
    use async_trait::async_trait;
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Server(Value, AtomicU32);
    #[async_trait]
    impl Wire for Server {
        async fn call(&self, _: Call) -> Result<Value, Trouble> {
            self.1.fetch_add(1, Ordering::SeqCst);
            Ok(self.0.clone())
        }
    }

    const AGE: Duration = Duration::from_secs(5);
    fn since(version: &str) -> Fresh {
        Fresh { since: Version::parse(version), now: Boot(Duration::from_mins(1)), age: AGE }
    }

    #[tokio::test]
    async fn an_answer_does_not_serve_for_ever() {
        let server = Arc::new(Server(json!({"metadata": {"resourceVersion": "10"}, "items": []}), AtomicU32::new(0)));
        let around = Surroundings::new(Objects(server.clone()), None);
        let first = since("3");
        for (later, asked) in [(Duration::ZERO, 1), (AGE / 2, 1), (AGE, 2)] {
            assert!(around.leaving(Fresh { now: first.now + later, ..first }).await.unwrap());
            assert_eq!(server.1.load(Ordering::SeqCst), asked, "{later:?}");
        }
    }
    #[tokio::test]
    async fn one_answer_serves_everything_older() {
        let server = Arc::new(Server(
            json!({"metadata": {"resourceVersion": "10"}, "items": [{"metadata": {}}]}),
            AtomicU32::new(0),
        ));
        let around = Surroundings::new(Objects(server.clone()), None);
        for version in ["3", "9", "10"] {
            assert!(!around.leaving(since(version)).await.unwrap());
        }
        assert_eq!(server.1.load(Ordering::SeqCst), 1);
        around.leaving(since("11")).await.unwrap();
        assert_eq!(server.1.load(Ordering::SeqCst), 2);
    }
    #[tokio::test]
    async fn a_definition_that_goes_or_is_gone_means_leaving() {
        for items in [json!([]), json!([{"metadata": {"deletionTimestamp": "2026-11-16T08:00:00Z"}}])] {
            let server = Server(json!({"metadata": {"resourceVersion": "10"}, "items": items}), AtomicU32::new(0));
            assert!(Surroundings::new(Objects(Arc::new(server)), None).leaving(since("1")).await.unwrap());
        }
        assert!(is_uninstalling(&json!({"metadata": {"annotations": {names::UNINSTALLING: "2026-11-16T08:00:00Z"}}})));
        assert!(!is_uninstalling(&json!({"metadata": {"annotations": {names::UNINSTALLING: "false"}}})));
    }
}
