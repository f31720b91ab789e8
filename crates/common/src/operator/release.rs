//! Letting an owner go without its things: they are listed, their marks stay, the finalizer goes.
use super::{Owner, Row, full_name};
use crate::engine::Settings;
use crate::engine::owner::{OwnerPatch, OwnerView};
use crate::ledger::{Id, Record};
use crate::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde::Serialize;

/// A thing that outlives its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Survivor {
    /// Its slot.
    pub slot: String,
    /// Its id; empty if a create was never heard of.
    pub id: Id,
    /// How the owner came by it.
    pub record: &'static str,
}
impl Row for Survivor {
    const HEADS: &'static [&'static str] = &["SLOT", "ID", "RECORD"];
    fn cells(&self) -> Vec<String> {
        vec![self.slot.clone(), self.id.clone(), self.record.to_owned()]
    }
}

/// Why an owner cannot be released.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The controller would act on it at the same time.
    #[error("pause it first: annotate it with {}=true", names::PAUSED)]
    NotPaused,
    /// It would get its finalizer back.
    #[error("it is not being deleted: delete it first with --wait=false")]
    NotDeleting,
    /// There is nothing to release.
    #[error("this controller's finalizer is not on it")]
    NotHeld,
    /// What it owns is not known.
    #[error("its ledger cannot be read: {0}")]
    Ledger(String),
}

/// What would survive, and the change that lets go. Pure.
pub fn release(view: &OwnerView, settings: &Settings) -> Result<(Vec<Survivor>, OwnerPatch), Refusal> {
    let finalizer = names::finalizer(settings.controller);
    if !view.finalizers.contains(&finalizer) {
        return Err(Refusal::NotHeld);
    }
    if !view.annotations.contains_key(names::PAUSED) {
        return Err(Refusal::NotPaused);
    }
    if !view.deleting {
        return Err(Refusal::NotDeleting);
    }
    if let Some(text) = view.annotations.get(&names::ledger(settings.controller)) {
        crate::ledger::Ledger::parse(text).map_err(|e| Refusal::Ledger(e.to_string()))?;
    }
    let ledger = Owner::of(view, settings).ledger;
    let records = ledger.iter().flat_map(|ledger| &ledger.records).map(|(slot, record)| Survivor {
        slot: slot.to_string(),
        id: record.id().cloned().unwrap_or_default(),
        record: match record {
            Record::Intended { .. } => "intended",
            Record::Created { .. } => "created",
            Record::Adopted { .. } => "adopted",
            Record::Referenced { .. } => "referenced",
        },
    });
    let leaving = ledger.iter().flat_map(|ledger| &ledger.removing).map(|removal| Survivor {
        slot: removal.slot.to_string(),
        id: removal.id.clone(),
        record: "removing",
    });
    let finalizers = view.finalizers.iter().filter(|it| **it != finalizer).cloned().collect();
    let patch = OwnerPatch { annotations: [].into(), finalizers: Some(finalizers) };
    Ok((records.chain(leaving).collect(), patch))
}

/// The list of survivors as it is kept in the controller's namespace.
pub fn receipt(
    view: &OwnerView,
    settings: &Settings,
    survivors: &[Survivor],
    namespace: &str,
    now: Timestamp,
) -> Result<ConfigMap, serde_json::Error> {
    let owner = Owner::of(view, settings);
    let data = [
        ("owner", full_name(view)),
        ("ownerId", owner.id.map(|id| id.to_string()).unwrap_or_default()),
        ("place", owner.place.to_string()),
        ("releasedAt", now.to_string()),
        ("survivors.json", serde_json::to_string_pretty(survivors)?),
    ];
    Ok(ConfigMap {
        metadata: ObjectMeta {
            // The uid, because a name can be released more than once.
            name: Some(format!("released-{}-{}", settings.controller, view.uid)),
            namespace: Some(namespace.to_owned()),
            labels: Some([(format!("{}released", names::PREFIX), settings.controller.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some(data.map(|(key, value)| (key.to_owned(), value)).into()),
        ..ConfigMap::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Timing;
    use crate::identity::Place;
    use crate::ledger::{Ledger, Writer};

    fn settings() -> Settings {
        Settings {
            controller: "c",
            kind: "K".into(),
            installation: "here".into(),
            timing: Timing::DEFAULT,
            peers: crate::peer::Guard::NONE,
        }
    }
    fn view() -> OwnerView {
        let place = Place::of("here", "c", "K", "ns", "a");
        let mut ledger = Ledger::empty("uid", &place, Writer { process: 1, number: 1 });
        let record = Record::Created { id: "disk-1".into(), marked: true, key: None };
        ledger.records.insert("disk-a".parse().unwrap(), record);
        OwnerView {
            namespace: "ns".into(),
            name: "a".into(),
            uid: "uid".into(),
            deleting: true,
            annotations: [(names::ledger("c"), ledger.to_text()), (names::PAUSED.into(), String::new())].into(),
            finalizers: vec!["other".into(), names::finalizer("c")],
            ..OwnerView::default()
        }
    }

    #[test]
    fn a_paused_owner_on_its_way_out_is_let_go_and_its_things_are_listed() {
        let (survivors, patch) = release(&view(), &settings()).unwrap();
        assert_eq!(survivors, [Survivor { slot: "disk-a".into(), id: "disk-1".into(), record: "created" }]);
        assert_eq!(patch.finalizers, Some(vec!["other".to_owned()]));
        let receipt = receipt(&view(), &settings(), &survivors, "custody", Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(receipt.metadata.name.as_deref(), Some("released-c-uid"));
        assert!(receipt.data.unwrap()["survivors.json"].contains("disk-1"));
    }
    #[test]
    fn an_owner_that_the_controller_may_still_work_on_is_not_let_go() {
        let mut running = view();
        running.annotations.remove(names::PAUSED);
        assert_eq!(release(&running, &settings()), Err(Refusal::NotPaused));
        assert_eq!(release(&OwnerView { deleting: false, ..view() }, &settings()), Err(Refusal::NotDeleting));
        assert_eq!(release(&OwnerView { finalizers: vec![], ..view() }, &settings()), Err(Refusal::NotHeld));
        let mut torn = view();
        torn.annotations.insert(names::ledger("c"), "{".into());
        assert!(matches!(release(&torn, &settings()), Err(Refusal::Ledger(_))));
    }
}
