//! What is in the cloud, as the emulator's owner sees it: the truth, not what a listing shows.
use e2e::emulator::EmulatorProcess;
use e2e::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// One thing that is or was in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) id: String,
    pub(crate) kind: String,
    /// What people call it: its name, label or destination.
    pub(crate) name: String,
    pub(crate) made_by: String,
    /// `<namespace>/<owner>`, from the readable tag; kinds without tags have none.
    pub(crate) owner: Option<String>,
    pub(crate) slot: Option<String>,
    pub(crate) phase: String,
}

impl Thing {
    pub(crate) fn exists(&self) -> bool {
        self.phase != "gone"
    }
    fn read(value: &Value) -> Self {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let name = ["name", "label", "destination"].iter().find_map(|field| text(&format!("/fields/{field}")));
        Thing {
            id: text("/id").unwrap_or_default(),
            kind: text("/kind").unwrap_or_default(),
            name: name.unwrap_or_default(),
            made_by: text("/created_by").unwrap_or_default(),
            owner: text("/tags/owner-name"),
            slot: text("/tags/custody.dev~1slot"),
            phase: text("/phase").unwrap_or_default(),
        }
    }
}

/// Everything that is or ever was in the cloud, in the order of its making.
pub(crate) async fn things(cloud: &EmulatorProcess) -> Result<Vec<Thing>> {
    let answer = cloud.things().await?;
    let list = answer.as_array().or_else(|| answer["things"].as_array());
    let list = list.ok_or_else(|| Error::other(format!("not a list of things: {answer}")))?;
    Ok(list.iter().map(Thing::read).collect())
}

/// Slots that hold more than one living thing: the damage that must never be seen.
pub(crate) fn doubled(things: &[Thing]) -> Vec<String> {
    let mut holders: BTreeMap<(&String, &String), usize> = BTreeMap::new();
    for thing in things.iter().filter(|thing| thing.exists()) {
        if let (Some(owner), Some(slot)) = (&thing.owner, &thing.slot) {
            *holders.entry((owner, slot)).or_insert(0) += 1;
        }
    }
    holders.into_iter().filter(|(_, n)| *n > 1).map(|((owner, slot), n)| format!("{owner} {slot}: {n}")).collect()
}

/// A table of things.
pub(crate) fn show<'a>(things: impl IntoIterator<Item = &'a Thing>) {
    println!("      {:<18} {:<8} {:<26} {:<9} made by", "id", "kind", "name", "state");
    for thing in things {
        println!("      {:<18} {:<8} {:<26} {:<9} {}", thing.id, thing.kind, thing.name, thing.phase, thing.made_by);
    }
}
