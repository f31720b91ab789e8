//! What would be created, changed and deleted. Not a second set of rules: the engine itself runs, on a shadow of the API
//! server and of the cloud, until it has nothing more to do.
use super::shadow::{Deed, ShadowApi, ShadowClock, ShadowEstate};
use super::{Row, full_name};
use crate::engine::estate::Estate;
use crate::engine::fence::Open;
use crate::engine::owner::OwnerView;
use crate::engine::report::Progress;
use crate::engine::rules::Rulebook;
use crate::engine::{Engine, Settings};
use crate::random::Random;
use crate::status::{Wish, write};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// More passes than any owner needs: a few per rank and wave.
const MOST_PASSES: u32 = 500;
const SOON: Duration = Duration::from_secs(1);

/// One write that would be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Namespace and name of the owner.
    pub owner: String,
    /// `create`, `change`, `mark`, `unmark` or `delete`.
    pub verb: &'static str,
    /// The slot.
    pub slot: String,
    /// Which thing; for a new one, a name in its stead.
    pub id: String,
    /// What would be asked for.
    pub detail: String,
}
impl Row for Step {
    const HEADS: &'static [&'static str] = &["OWNER", "VERB", "SLOT", "ID", "DETAIL"];
    fn cells(&self) -> Vec<String> {
        vec![self.owner.clone(), self.verb.to_owned(), self.slot.clone(), self.id.clone(), self.detail.clone()]
    }
}

/// The plan for one owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// What would be written to the cloud, in order.
    pub steps: Vec<Step>,
    /// Where it would end.
    pub end: Progress,
}

/// Runs the engine on a shadow of one owner. Reads the real cloud, writes nothing.
pub async fn preview(
    settings: Settings,
    wall: Timestamp,
    view: &OwnerView,
    paused: Option<String>,
    estate: &dyn Estate,
) -> Preview {
    let (controller, poll) = (settings.controller, settings.timing.poll);
    let clock = Arc::new(ShadowClock::new(wall));
    let (api, shadow) = (ShadowApi::new(view), ShadowEstate::new(estate, clock.clone()));
    let engine =
        Engine::new(settings, clock.clone(), Arc::new(Random::seeded(0)), Arc::new(Open), Rulebook::production());
    let mut end = Progress::Gone;
    for _ in 0..MOST_PASSES {
        let Some(current) = api.current() else { break };
        let report = engine.pass(&current, paused.clone(), &api, &shadow).await;
        let fields = json!({});
        write(&api, &report, &Wish::new(controller, current.generation, &fields), wall).await;
        end = report.progress;
        match &end {
            Progress::Waiting { again, .. } => clock.advance((*again).max(SOON)),
            Progress::Stale(_) => clock.advance(poll),
            Progress::Done | Progress::Blocked { .. } | Progress::Failed(_) | Progress::Gone => break,
        }
    }
    let owner = full_name(view);
    let step = |Deed { verb, slot, id, detail }| Step { owner: owner.clone(), verb, slot, id, detail };
    Preview { steps: shadow.deeds().into_iter().map(step).collect(), end }
}
