//! Calls that change something.
use super::SampleState;
use super::kinds::{Kind, Tagging};
use super::replies::{self, Refused};
use super::requests::{self, Order};
use super::store::{End, Keyed, Thing};
use super::tags::{Change, TagHistory};
use crate::kit::dice::Dice;
use crate::kit::{Answer, Call, Deletion, Lag, Settings, later, strict};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

const KEYS_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// Who makes a thing, where, and how fast it shows.
pub(super) struct Maker {
    pub(super) account: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) planted: bool,
    pub(super) token: Option<String>,
    pub(super) born: Timestamp,
}

impl SampleState {
    /// `POST /v1/{plural}`.
    pub(super) fn create(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        kind: Kind,
        call: Call<'_>,
    ) -> Result<Answer, Refused> {
        let now = call.now;
        strict::no_query(call.request).map_err(Refused::invalid)?;
        let key = requests::key(kind, call.request).map_err(Refused::invalid)?;
        let order = Order::of_request(kind, call.request).map_err(Refused::invalid)?;
        let account = &call.principal.account;
        let key_id = key.as_ref().map(|key| (Arc::clone(account), kind, key.clone()));
        if let Some(keyed) = key_id.as_ref().and_then(|id| self.store.keys.get(id))
            && now.duration_since(keyed.at) < KEYS_KEPT
        {
            if keyed.order != order {
                return Err(Refused::token_mismatch());
            }
            let thing = self.store.at(keyed.thing);
            if thing.gone(now) {
                return Err(Refused::not_found(&thing.id));
            }
            return Ok(replies::thing(StatusCode::OK, thing, now));
        }
        self.check_needs(account, &order, now)?;
        if let Some(most) = settings.quotas.get(kind.plural()).copied()
            && self.store.count(account, kind, now) as u64 >= most
        {
            return Err(Refused::quota(kind.plural(), most));
        }
        let keyed = key_id.map(|id| (id, order.clone()));
        let maker = Maker {
            account: Arc::clone(account),
            name: Arc::clone(&call.principal.name),
            planted: false,
            token: key,
            born: now,
        };
        let index = self.make(settings, dice, maker, order);
        if let Some((id, order)) = keyed {
            self.store.keys.insert(id, Keyed { thing: index, order, at: now });
        }
        Ok(effect(replies::thing(StatusCode::CREATED, self.store.at(index), now)))
    }

    /// What the thing needs is there and free, and so is its natural key.
    pub(super) fn check_needs(&mut self, account: &str, order: &Order, now: Timestamp) -> Result<(), Refused> {
        let needs = [(Kind::Network, "network_id", order.body.network()), (Kind::Disk, "disk_id", order.body.disk())];
        for (kind, field, id) in needs {
            let Some(id) = id else { continue };
            let found = self.store.find(account, kind, id, now);
            if found.is_none_or(|index| self.store.at(index).end.is_some()) {
                return Err(Refused::not_found(&format!("{} {id:?}, named by {field}", kind.singular())));
            }
        }
        if let Some(disk) = order.body.disk()
            && let Some(user) = self.store.users(disk, now).next()
        {
            return Err(Refused::in_use(format!("{disk} is in use by {}", user.id)));
        }
        if let (Some(network), Some(key)) = (order.body.network(), order.body.key_in_network()) {
            let same = |thing: &&Thing| thing.kind() == order.body.kind() && thing.body.key_in_network() == Some(key);
            if let Some(holder) = self.store.users(network, now).find(same) {
                return Err(Refused::key_taken(format!("{key} in {network} is taken by {}", holder.id)));
            }
        }
        Ok(())
    }

    /// Makes a thing; everything was checked before.
    pub(super) fn make(&mut self, settings: &Settings, dice: &mut Dice, maker: Maker, order: Order) -> usize {
        let kind = order.body.kind();
        let born = maker.born;
        let (number, id) = loop {
            let number = dice.id();
            let id = format!("{}-{number:08x}", kind.singular());
            if !self.store.taken(&id) {
                break (number, id);
            }
        };
        let lags = if maker.planted { crate::kit::Lags::default() } else { settings.lag };
        let failure = self.failures[kind.index()].pop_front().filter(|_| kind.builds());
        let build = match settings.build.get(kind.plural()) {
            _ if !kind.builds() || maker.planted => std::time::Duration::ZERO,
            Some(lag) => lag.draw(dice),
            None => kind.build_time(),
        };
        let tags = (kind.tagging() != Tagging::Never).then(|| TagHistory::new(born, order.tags, lags.tags.draw(dice)));
        self.store.add(Thing {
            id,
            number,
            account: maker.account,
            created_by: maker.name,
            planted: maker.planted,
            token: maker.token,
            born,
            born_text: format!("{born:.3}"),
            body: order.body,
            tags,
            built: later(born, build),
            failure,
            listed_from: later(born, lags.list.draw(dice)),
            readable_from: later(born, lags.get.draw(dice)),
            end: None,
        })
    }

    /// `PUT /v1/{plural}/{id}/tags`.
    pub(super) fn tag(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        kind: Kind,
        id: &str,
        call: Call<'_>,
    ) -> Result<Answer, Refused> {
        strict::no_query(call.request).map_err(Refused::invalid)?;
        if kind.tagging() == Tagging::Never {
            return Err(Refused::invalid(format!("{} have no tags", kind.plural())));
        }
        let change = requests::tag_change(call.request).map_err(Refused::invalid)?;
        let index = self.existing(kind, id, call)?;
        let changed = self.retag(settings, dice, index, &change, call.now).map_err(Refused::invalid)?;
        let mut answer = replies::thing(StatusCode::OK, self.store.at(index), call.now);
        answer.effect = changed;
        Ok(answer)
    }
    /// Changes tags; says whether anything is different now.
    pub(super) fn retag(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        index: usize,
        change: &Change,
        now: Timestamp,
    ) -> Result<bool, String> {
        let thing = self.store.at_mut(index);
        let Some(tags) = &mut thing.tags else { return Err(format!("{} has no tags", thing.id)) };
        let wanted = change.on(tags.truth())?;
        if wanted == *tags.truth() {
            return Ok(false);
        }
        tags.change(now, wanted, settings.lag.tags.draw(dice));
        Ok(true)
    }

    /// `PATCH /v1/machines/{id}`.
    pub(super) fn update(&mut self, kind: Kind, id: &str, call: Call<'_>) -> Result<Answer, Refused> {
        strict::no_query(call.request).map_err(Refused::invalid)?;
        if kind != Kind::Machine {
            return Err(Refused::invalid(format!("{} have nothing to update", kind.plural())));
        }
        let wanted = requests::flavor(call.request).map_err(Refused::invalid)?;
        let index = self.existing(kind, id, call)?;
        let mut changed = false;
        if let super::store::Body::Machine { flavor, .. } = &mut self.store.at_mut(index).body {
            changed = *flavor != wanted;
            *flavor = wanted;
        }
        let mut answer = replies::thing(StatusCode::OK, self.store.at(index), call.now);
        answer.effect = changed;
        Ok(answer)
    }

    /// `DELETE /v1/{plural}/{id}`.
    pub(super) fn delete(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        kind: Kind,
        id: &str,
        call: Call<'_>,
    ) -> Result<Answer, Refused> {
        strict::no_query(call.request).and_then(|()| strict::no_body(call.request)).map_err(Refused::invalid)?;
        let index = self.existing(kind, id, call)?;
        let by = Some(call.principal.name.to_string());
        let begun = self.end(settings, dice, index, by, call.now)?;
        // The reply shows it deleting even where it is gone by the time the reply arrives.
        let mut answer = replies::thing(StatusCode::ACCEPTED, self.store.at(index), call.now);
        answer.effect = begun;
        Ok(answer)
    }
    /// Begins the end of a thing; says whether it had not begun before.
    pub(super) fn end(
        &mut self,
        settings: &Settings,
        dice: &mut Dice,
        index: usize,
        by: Option<String>,
        now: Timestamp,
    ) -> Result<bool, Refused> {
        let thing = self.store.at(index);
        if thing.end.is_some() {
            return Ok(false);
        }
        let (id, kind) = (thing.id.clone(), thing.kind());
        if let Some(user) = self.store.users(&id, now).next() {
            return Err(Refused::in_use(format!("{id} is in use by {}", user.id)));
        }
        let takes = settings.deletion.get(kind.plural()).copied().unwrap_or(Lag::None);
        let gone = later(now, takes.draw(dice));
        let ghost_until = later(gone, settings.lag.ghost.draw(dice));
        let looks_alive = settings.lag.ghosts.alive(dice);
        let thing = self.store.at_mut(index);
        let tags = thing.tags.as_ref().map(|tags| tags.truth().clone());
        thing.end = Some(End { deletion: Deletion { by, at: now, gone, tags }, ghost_until, looks_alive });
        Ok(true)
    }

    fn existing(&self, kind: Kind, id: &str, call: Call<'_>) -> Result<usize, Refused> {
        let found = self.store.find(&call.principal.account, kind, id, call.now);
        found.ok_or_else(|| Refused::not_found(&format!("{} {id:?}", kind.singular())))
    }
}

fn effect(mut answer: Answer) -> Answer {
    answer.effect = true;
    answer
}
