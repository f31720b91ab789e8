//! What is held against a history: deeds judged the moment they happen, with the truth at hand that controllers never see.
use super::calendar::Millis;
use super::cloud::{Deed, Truth};
use super::server::{Key, Server};
use super::sim::{State, date_of};
use crate::engine::owner::OwnerView;
use crate::identity::{Mark, MarkSeen, OwnerId, Place, Then};
use crate::ledger::{Id, Ledger, Record};
use crate::names;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// What users did that the known residue of the protocol rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // independent facts
pub struct Harm {
    /// A ledger was stripped, rolled back, cut or restored from a backup.
    pub ledger: bool,
    /// A finalizer was stripped, or an owner lost, with things in the cloud.
    pub owner: bool,
    /// Somebody deleted or retagged things by hand.
    pub hand: bool,
    /// A stranger's thing was planted while the history ran.
    pub stranger: bool,
    /// An owner was copied or moved.
    pub copied: bool,
    /// Permissions, quota or credentials were taken away for a while.
    pub denied: bool,
    /// An owner was told to start with nothing.
    pub given_up: bool,
    /// When an owner was last deleted.
    pub deleted: Option<Millis>,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Damage.
    pub violations: BTreeSet<String>,
    /// Damage that the protocol's page lists as known, word for word.
    pub residue: BTreeSet<String>,
    /// Things that a controller said it leaves in place.
    pub kept: BTreeSet<Id>,
    /// Strangers' things deleted because nothing told them from ours.
    pub mistaken: BTreeSet<Id>,
    /// Things whose mark somebody changed by hand.
    pub touched: BTreeSet<Id>,
    /// What users did.
    pub harm: Harm,
    /// Things made by controllers.
    pub creates: u64,
    /// Things deleted by controllers.
    pub deletes: u64,
    /// Tag calls and changes of attributes.
    pub changes: u64,
    /// The controller's name, for its annotations.
    pub controller: &'static str,
    /// The owner's kind, for its place.
    pub kind: &'static str,
    /// Longer than anything can stay unseen.
    pub settle: Millis,
    /// Start window and call together: how long after its listing an intent can make something.
    pub reach: Duration,
}

/// What an owner can call its own: by everything its object ever said.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Owner ids.
    pub ids: BTreeSet<OwnerId>,
    /// Its own place and those it was told to take over.
    pub places: BTreeSet<Place>,
    /// Ids in its ledgers.
    pub recorded: BTreeSet<Id>,
    /// Intents in its ledgers: dates of their listings and what they asked for.
    pub intents: BTreeSet<(Timestamp, String)>,
}
impl Claims {
    /// Of the object with this name on this server, and its predecessors.
    pub fn of(server: &Server, key: &Key, controller: &str, kind: &str) -> Self {
        let mut claims = Claims::default();
        claims.places.insert(Place::of(&server.installation, controller, kind, &key.0, &key.1));
        let (id, ledger) = (names::owner_id(controller), names::ledger(controller));
        for object in server.log.iter().filter(|c| c.key == *key).filter_map(|c| c.object.as_ref()) {
            claims.ids.extend(object.view.annotations.get(&id).and_then(|t| t.parse::<OwnerId>().ok()));
            if let Some(Ok(ledger)) = object.view.annotations.get(&ledger).map(|t| Ledger::parse(t)) {
                claims.places.extend(ledger.from);
                claims.recorded.extend(ledger.records.values().filter_map(|r| r.id().cloned()));
                claims.intents.extend(ledger.records.values().filter_map(|r| match r {
                    Record::Intended { listed, params, .. } => Some((*listed, params.clone())),
                    _ => None,
                }));
                claims.recorded.extend(ledger.removing.into_iter().map(|r| r.id));
            }
        }
        claims
    }
    /// Could this mark be ours?
    pub fn cover(&self, mark: &MarkSeen) -> bool {
        matches!(mark, MarkSeen::Whole(m) if self.ids.contains(&m.owner) && self.places.contains(&m.place))
    }
    /// Could an intent have made this stranger's thing, by everything that a controller can see? Dates are whole seconds.
    pub fn could_have_made(&self, thing: &Truth, reach: Duration) -> bool {
        let second = Duration::from_secs(1);
        let born = date_of(thing.born);
        !thing.marked_at_create
            && self.intents.iter().any(|(listed, params)| {
                let until = listed.checked_add(reach + second).unwrap_or(Timestamp::MAX);
                let from = listed.checked_sub(second).unwrap_or(Timestamp::MIN);
                from <= born && born <= until && thing.params.as_ref() == Some(params)
            })
    }
    /// Was a delete of this thing right, given the marks it carried lately?
    pub fn may_delete(&self, thing: &Truth, since: Millis) -> bool {
        let never_marked = thing.marks_ever().next().is_none();
        thing.marks_since(since).any(|mark| {
            if thing.by_controller {
                self.cover(mark) || never_marked && self.recorded.contains(&thing.id)
            } else {
                matches!(mark, MarkSeen::Whole(m) if m.adopted == Some(Then::Delete)) && self.cover(mark)
            }
        })
    }
}

impl State {
    /// Judges one deed of the controller that is acting.
    pub fn judge(&mut self, deed: Deed) {
        match deed {
            Deed::Created(id) => {
                self.evidence.creates += 1;
                if let Some(new) = self.cloud.thing(&id) {
                    self.judge_create(&new);
                }
            }
            Deed::Deleted(id) => {
                self.evidence.deletes += 1;
                if let Some(thing) = self.cloud.thing(&id) {
                    self.judge_delete(&thing);
                }
            }
            Deed::Tagged(_) | Deed::Changed(_) => self.evidence.changes += 1,
        }
    }
    /// The finalizer goes only from an owner whose ledger is empty.
    pub(super) fn judge_finalizers(&mut self, before: &OwnerView, after: &OwnerView) {
        let finalizer = names::finalizer(self.evidence.controller);
        let had = |view: &OwnerView| view.finalizers.contains(&finalizer);
        if !had(before) || had(after) {
            return;
        }
        let ledger = before.annotations.get(&names::ledger(self.evidence.controller));
        let holds = |l: Ledger| !l.records.is_empty() || !l.removing.is_empty();
        if ledger.and_then(|text| Ledger::parse(text).ok()).is_some_and(holds) {
            self.evidence.violations.insert("finalizer taken off an owner that still has something".into());
        }
    }
    fn judge_create(&mut self, new: &Truth) {
        let Some(mark) = new.mark() else { return };
        let others: Vec<Truth> = self
            .cloud
            .truth()
            .into_iter()
            .filter(|old| {
                let same = |m: &Mark| m.owner == mark.owner && m.slot == mark.slot;
                old.id != new.id && old.live && old.by_controller && old.mark().is_some_and(same)
            })
            .collect();
        if others.is_empty() {
            return;
        }
        self.say(|| format!("TWICE {} {}", new.kind, new.id));
        let elsewhere = others.iter().all(|old| old.mark().is_some_and(|m| m.place != mark.place));
        let harm = self.evidence.harm;
        let kind = &new.kind;
        let line = match () {
            () if harm.copied && elsewhere => format!("{kind} made by an owner and by its copy, both of them served"),
            () if harm.ledger => format!("{kind} created twice after its ledger was hurt"),
            () => {
                self.evidence.violations.insert(format!("{kind} created twice"));
                return;
            }
        };
        self.evidence.residue.insert(line);
    }
    fn judge_delete(&mut self, thing: &Truth) {
        let Some((server, key)) = self.acting_for() else { return };
        let Some(server) = self.servers.get(server) else { return };
        let claims = Claims::of(server, &key, self.evidence.controller, self.evidence.kind);
        let since = self.now().saturating_sub(self.evidence.settle);
        let robbed = thing.marks_ever().next().is_some_and(|first| !claims.ids.contains(&first.owner));
        if claims.may_delete(thing, since) && (!robbed || self.evidence.touched.contains(&thing.id)) {
            return;
        }
        // between two equal things nobody may choose; one alone cannot be told from ours, also where ours has been and gone
        let same = |t: &Truth| (&t.kind, &t.key, &t.params) == (&thing.kind, &thing.key, &thing.params);
        let near = |t: &Truth| Duration::from_millis(t.born.abs_diff(thing.born)) < self.evidence.reach;
        let beside = self.cloud.truth().iter().any(|t| t.live && t.by_controller && same(t) && near(t));
        if !thing.by_controller && !beside && claims.could_have_made(thing, self.evidence.reach) {
            self.evidence.mistaken.insert(thing.id.clone());
            let line = format!("a stranger's equal {} born inside the inference window deleted", thing.kind);
            self.evidence.residue.insert(line);
        } else {
            let whose = if thing.by_controller { "another owner's" } else { "a stranger's" };
            let line = format!("{whose} {} deleted", thing.kind);
            self.say(|| format!("FOREIGN DELETE {line}: {thing:?}"));
            self.evidence.violations.insert(line);
        }
    }
}
