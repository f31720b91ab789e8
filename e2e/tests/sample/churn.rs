//! Owners that come, change and go, drawn from a seed: what people do while things break.
use crate::owners::wishes;
use crate::stage::Stage;
use common::random::Random;
use e2e::Result;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

/// So many owners live at once, at most.
const MOST: usize = 8;

pub(crate) struct Churn<'a> {
    stage: &'a Stage,
    dice: &'a Random,
    born: u64,
    pub(crate) created: u64,
    pub(crate) edited: u64,
    pub(crate) deleted: u64,
}

impl<'a> Churn<'a> {
    pub(crate) fn new(stage: &'a Stage, dice: &'a Random) -> Self {
        Churn { stage, dice, born: 0, created: 0, edited: 0, deleted: 0 }
    }
    /// One thing that a person does.
    pub(crate) async fn act(&mut self) -> Result<()> {
        let all = self.stage.owners.list(&ListParams::default()).await?.items;
        let living: Vec<_> = all.into_iter().filter(|object| object.metadata.deletion_timestamp.is_none()).collect();
        let drawn = usize::try_from(self.dice.below(living.len() as u64)).ok().and_then(|at| living.get(at));
        match (self.dice.below(10), drawn) {
            (0..=1, Some(owner)) if living.len() > 2 => self.delete(owner).await,
            (2..=5, Some(owner)) => self.edit(owner).await,
            _ if living.len() < MOST => self.create().await,
            _ => Ok(()),
        }
    }
    async fn create(&mut self) -> Result<()> {
        self.born += 1;
        self.created += 1;
        self.stage.create(&format!("owner-{}", self.born), &self.spec()).await.map(drop)
    }
    async fn delete(&mut self, owner: &DynamicObject) -> Result<()> {
        self.deleted += 1;
        self.stage.delete(name(owner)).await
    }
    /// Resizes the machines, adds a disk, or takes one away.
    async fn edit(&mut self, owner: &DynamicObject) -> Result<()> {
        let spec = &owner.data["spec"];
        let list = |field: &str| spec[field].as_array().cloned().unwrap_or_default();
        let (mut disks, mut machines) = (list("disks"), list("machines"));
        let spare = disks.iter().rposition(|disk| disk["name"].as_str().is_some_and(|name| name.starts_with("spare")));
        match (self.dice.below(3), spare) {
            (0, Some(spare)) if wishes(owner) > 2 => drop(disks.remove(spare)),
            (1, _) if disks.len() < 6 => {
                self.born += 1;
                disks.push(json!({"name": format!("spare-{}", self.born), "sizeGb": 1}));
            }
            _ => {
                for machine in &mut machines {
                    machine["flavor"] = json!(format!("size-{}", self.dice.below(5)));
                }
            }
        }
        self.edited += 1;
        let edited = self.stage.patch(name(owner), &json!({"spec": {"disks": disks, "machines": machines}})).await;
        // Somebody else may have finished deleting it.
        match edited {
            Err(e2e::Error::Kube(error)) if matches!(&*error, kube::Error::Api(status) if status.is_not_found()) => {
                Ok(())
            }
            other => other.map(drop),
        }
    }
    fn spec(&self) -> Value {
        let mut spec = json!({
            "networks": [{"name": "net", "cidr": "10.0.0.0/16"}],
            "disks": [{"name": "data", "sizeGb": 10}],
        });
        if !self.dice.one_in(3) {
            spec["addresses"] = json!([{"name": "front", "network": "net", "label": "front"}]);
            spec["routes"] =
                json!([{"name": "out", "network": "net", "destination": "0.0.0.0/0", "nextHop": "10.0.0.1"}]);
        }
        if !self.dice.one_in(3) {
            spec["machines"] = json!([{"name": "web", "network": "net", "disk": "data", "flavor": "small"}]);
        }
        spec
    }
}

fn name(owner: &DynamicObject) -> &str {
    owner.metadata.name.as_deref().unwrap_or_default()
}
