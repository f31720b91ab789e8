//! The cloud of one test: the emulator, its truth, and its count of calls.
use e2e::{Cluster, EmulatorProcess, Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The controller's name in the cloud.
pub(crate) const PRINCIPAL: &str = "sample-controller";
const TOKEN: &str = "the-controllers-own-token";

/// One thing as it truly is.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Thing {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) created_by: String,
    #[serde(default)]
    pub(crate) tags: Option<BTreeMap<String, String>>,
    pub(crate) phase: String,
}

impl Thing {
    pub(crate) fn exists(&self) -> bool {
        self.phase != "gone"
    }
    pub(crate) fn is_ours(&self) -> bool {
        self.created_by == PRINCIPAL
    }
    pub(crate) fn tag(&self, key: &str) -> Option<&str> {
        self.tags.as_ref()?.get(key).map(String::as_str)
    }
}

/// A place in the call log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(u64);

/// How many calls of each kind and verb.
pub(crate) type Counts = BTreeMap<(String, String), u64>;

/// An emulated cloud with one principal.
pub(crate) struct Cloud {
    pub(crate) emulator: EmulatorProcess,
    pub(crate) token_file: PathBuf,
}

impl Cloud {
    /// Starts one that shows everything at once.
    pub(crate) async fn open(cluster: &Cluster, name: &str) -> Result<Self> {
        let token_file = cluster.folder().write(&format!("{name}-token"), TOKEN)?;
        let emulator =
            EmulatorProcess::start(cluster, "sample", &format!("{name}-cloud"), &[(PRINCIPAL, TOKEN)]).await?;
        let cloud = Cloud { emulator, token_file };
        cloud.behave(&json!({})).await?;
        Ok(cloud)
    }
    /// Sets lag and the like; machines build quickly and the whole call log is kept unless said otherwise.
    pub(crate) async fn behave(&self, settings: &Value) -> Result<()> {
        let mut whole = json!({"build": {"machines": {"fixed_ms": 300}}, "call_log": 500_000});
        if let (Some(whole), Some(more)) = (whole.as_object_mut(), settings.as_object()) {
            whole.extend(more.clone());
        }
        self.emulator.admin(reqwest::Method::PUT, "settings", &[], Some(&whole)).await.map(drop)
    }
    /// Adds faults, one by one.
    pub(crate) async fn hurt(&self, faults: &[Value]) -> Result<()> {
        for fault in faults {
            self.emulator.add_faults(fault).await?;
        }
        Ok(())
    }
    /// Everything that is or ever was.
    pub(crate) async fn things(&self) -> Result<Vec<Thing>> {
        serde_json::from_value(self.emulator.things().await?).map_err(Error::other)
    }
    /// What the controller made and what is still there.
    pub(crate) async fn ours(&self) -> Result<Vec<Thing>> {
        Ok(self.things().await?.into_iter().filter(|thing| thing.exists() && thing.is_ours()).collect())
    }
    /// A stranger's network of that name.
    pub(crate) async fn plant_network(&self, name: &str, tags: &Value) -> Result<String> {
        let planted = json!({"kind": "networks", "fields": {"name": name, "cidr": "10.9.0.0/16"}, "tags": tags});
        let answer = self.emulator.plant(&planted).await?;
        answer["id"].as_str().map(str::to_owned).ok_or_else(|| Error::other(format!("no id in {answer}")))
    }
    /// Now, for counting what comes after.
    pub(crate) async fn mark(&self) -> Result<Mark> {
        let answer = self.emulator.calls(&[("limit", "0")]).await?;
        answer["latest"].as_u64().map(Mark).ok_or_else(|| Error::other(format!("no latest call in {answer}")))
    }
    /// What was called since then, by kind and verb. Calls that changed nothing count too.
    pub(crate) async fn calls_since(&self, mark: Mark) -> Result<Counts> {
        let after = mark.0.to_string();
        let filters = [("after", after.as_str()), ("limit", "500000")];
        let answer = self.emulator.calls(&filters).await?;
        if answer["forgotten"] != 0 {
            return Err(Error::other("the call log is not whole"));
        }
        let mut counts = Counts::new();
        let word = |call: &Value, field: &str| call[field].as_str().unwrap_or_default().to_owned();
        for call in answer["calls"].as_array().into_iter().flatten() {
            *counts.entry((word(call, "kind"), word(call, "verb"))).or_default() += 1;
        }
        Ok(counts)
    }
    /// Calls since then of any of these verbs.
    pub(crate) async fn count_since(&self, mark: Mark, verbs: &[&str]) -> Result<u64> {
        Ok(of_verbs(&self.calls_since(mark).await?, verbs))
    }
    pub(crate) async fn close(self) -> Result<()> {
        self.emulator.stop().await
    }
}

/// Verbs that bring something into the world or take it out.
pub(crate) const BIRTH_AND_DEATH: [&str; 2] = ["create", "delete"];
/// Verbs that change anything.
pub(crate) const WRITES: [&str; 4] = ["create", "delete", "tag", "update"];

pub(crate) fn of_verbs(counts: &Counts, verbs: &[&str]) -> u64 {
    counts.iter().filter(|((_, verb), _)| verbs.contains(&verb.as_str())).map(|(_, n)| n).sum()
}
