//! The sample cloud, written from `docs/sample-cloud.md`.
//!
//! Where that page is silent: a thing named in a create that is not there, or is being deleted, is 404 `NotFound`; an
//! `Idempotency-Key` on a kind that takes none is 400; so is a tag key both set and removed in one call, and a call that no path
//! has. Idempotency keys belong to an account and a kind. Things of one account are not there for principals of another.
mod kinds;
mod listing;
mod replies;
mod requests;
mod store;
mod tags;
mod writes;

use crate::kit::dice::Dice;
use crate::kit::strict::{self, Fields};
use crate::kit::{
    Answer, ByHandError, Call, Cloud, Emulator, Kit, Naming, Plant, Principal, Principals, Refusal, Request, Settings,
    Tags, Truth, Vocabulary,
};
use http::StatusCode;
use http::header::HeaderName;
use jiff::Timestamp;
use kinds::{Kind, PLURALS, Tagging, WHOAMI};
use replies::Refused;
use requests::Order;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use store::Store;
use writes::Maker;

/// The sample cloud on its kit.
pub type SampleCloud = Emulator<SampleState>;

impl SampleCloud {
    /// An empty cloud; nobody is admitted yet.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Emulator::on_kit(SampleState::default(), settings, seed)
    }
}

/// What the sample cloud holds.
#[derive(Debug, Default)]
pub struct SampleState {
    store: Store,
    /// Reasons for which the next things of each kind will fail to build.
    failures: [VecDeque<String>; 5],
}

impl SampleState {
    fn dispatch(&mut self, settings: &Settings, dice: &mut Dice, call: Call<'_>) -> Result<Answer, Refused> {
        let request = call.request;
        if call.naming.kind == WHOAMI && call.naming.verb == "get" {
            return whoami(settings, call);
        }
        let Some(kind) = Kind::by_plural(call.naming.kind) else {
            return Err(Refused::not_found(&format!("path {:?}", request.uri().path())));
        };
        match (call.naming.verb, call.naming.thing) {
            ("list", _) => listing::list(&mut self.store, settings, dice, kind, call),
            ("create", _) => self.create(settings, dice, kind, call),
            ("get", Some(id)) => self.get(kind, id, call),
            ("tag", Some(id)) => self.tag(settings, dice, kind, id, call),
            ("update", Some(id)) => self.update(kind, id, call),
            ("delete", Some(id)) => self.delete(settings, dice, kind, id, call),
            _ => Err(Refused::invalid(format!("no call {} {}", request.method(), request.uri().path()))),
        }
    }
    fn get(&self, kind: Kind, id: &str, call: Call<'_>) -> Result<Answer, Refused> {
        strict::no_query(call.request).and_then(|()| strict::no_body(call.request)).map_err(Refused::invalid)?;
        let found = self.store.find(&call.principal.account, kind, id, call.now).map(|index| self.store.at(index));
        let Some(thing) = found.filter(|thing| thing.readable_from <= call.now) else {
            return Err(Refused::not_found(&format!("{} {id:?}", kind.singular())));
        };
        Ok(replies::thing(StatusCode::OK, thing, call.now))
    }
    fn by_hand(&self, id: &str, now: Timestamp) -> Result<usize, ByHandError> {
        self.store.find_any(id, now).ok_or_else(|| ByHandError(format!("no thing {id:?}")))
    }
}

fn whoami(settings: &Settings, call: Call<'_>) -> Result<Answer, Refused> {
    #[derive(Serialize)]
    struct Identity<'a> {
        account: &'a str,
        region: &'a str,
        principal: &'a str,
    }
    strict::no_query(call.request).and_then(|()| strict::no_body(call.request)).map_err(Refused::invalid)?;
    let Principal { name, account } = &**call.principal;
    let identity = Identity { account, region: &settings.region, principal: name };
    Ok(Answer::new(StatusCode::OK, replies::json(&identity)))
}

const VERBS: [&str; 6] = ["list", "get", "create", "tag", "update", "delete"];

impl Cloud for SampleState {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary { kinds: &PLURALS, verbs: &VERBS }
    }
    fn request_id_header(&self) -> HeaderName {
        HeaderName::from_static("x-request-id")
    }
    fn name<'r>(&self, request: &'r Request) -> Naming<'r> {
        requests::name(request)
    }
    fn identify(&self, request: &Request, principals: &Principals) -> Option<Arc<Principal>> {
        principals.by_token(requests::bearer(request)?).cloned()
    }
    fn permission(&self, naming: &Naming<'_>) -> Option<String> {
        (naming.kind != WHOAMI && !naming.verb.is_empty()).then(|| format!("{}.{}", naming.kind, naming.verb))
    }
    fn serve(&mut self, settings: &Settings, dice: &mut Dice, call: Call<'_>) -> Answer {
        self.dispatch(settings, dice, call).unwrap_or_else(Answer::from)
    }
    fn refuse(&self, refusal: &Refusal) -> Answer {
        Answer::from(match refusal {
            Refusal::Unauthorized => Refused::unauthorized(),
            Refusal::Forbidden(permission) => Refused::forbidden(permission),
            Refusal::Throttled => Refused::too_many_requests(),
            Refusal::Status(status) => Refused::of_status(*status),
        })
    }
    fn truth(&self, now: Timestamp) -> Vec<Truth> {
        self.store.all().iter().map(|thing| thing.truth(now)).collect()
    }
    fn plant(&mut self, kit: &mut Kit, now: Timestamp, plant: Plant) -> Result<String, ByHandError> {
        let kind = Kind::by_word(&plant.kind).ok_or_else(|| ByHandError(format!("no kind {:?}", plant.kind)))?;
        if kind.tagging() == Tagging::Never && !plant.tags.is_empty() {
            return Err(ByHandError(format!("{} have no tags", kind.plural())));
        }
        tags::check("tags", &plant.tags).map_err(ByHandError)?;
        let body = requests::body(kind, Fields::of_map(plant.fields)).map_err(ByHandError)?;
        let order = Order { body, tags: plant.tags };
        let (settings, dice) = kit.split();
        let account = plant.account.unwrap_or_else(|| settings.account.clone());
        self.check_needs(&account, &order, now).map_err(|refused| ByHandError(refused.message))?;
        let (account, name) = (account.into(), plant.created_by.into());
        let maker = Maker { account, name, planted: true, token: None, born: plant.born.unwrap_or(now) };
        let index = self.make(settings, dice, maker, order);
        Ok(self.store.at(index).id.clone())
    }
    fn delete_by_hand(&mut self, kit: &mut Kit, now: Timestamp, id: &str) -> Result<(), ByHandError> {
        let index = self.by_hand(id, now)?;
        let (settings, dice) = kit.split();
        self.end(settings, dice, index, None, now).map(|_| ()).map_err(|refused| ByHandError(refused.message))
    }
    fn retag_by_hand(
        &mut self,
        kit: &mut Kit,
        now: Timestamp,
        id: &str,
        set: Tags,
        remove: &[String],
    ) -> Result<(), ByHandError> {
        let index = self.by_hand(id, now)?;
        let change = tags::Change { set, remove: remove.to_vec() };
        let (settings, dice) = kit.split();
        self.retag(settings, dice, index, &change, now).map(|_| ()).map_err(ByHandError)
    }
    fn fail_next_build(&mut self, kind: &str, reason: &str, times: u32) -> Result<(), ByHandError> {
        let kind = Kind::by_word(kind).filter(|kind| kind.builds());
        let kind = kind.ok_or_else(|| ByHandError("only machines are built".to_owned()))?;
        for _ in 0..times {
            self.failures[kind.index()].push_back(reason.to_owned());
        }
        Ok(())
    }
}
