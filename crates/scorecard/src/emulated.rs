//! An emulated cloud as the simulator needs it: exchanges, deeds, the truth with its history of marks. What differs from cloud to
//! cloud is its dialect.
use cloud_emulator::kit::{EmulatedCloud, Lag, Phase, Plant, Settings, Truth as Thing};
use common::identity::{Mark, MarkKeys, MarkSeen, Slot};
use common::ledger::Id;
use common::operator::Found;
use common::testing::sim::date_of;
use common::testing::{Deed, Lags, Millis, SimCloud, Truth, Twin};
use common::transport::{Request, Response};
use http::Method;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;

/// What a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// A kind of thing is named.
    pub kind: bool,
    /// A thing is named.
    pub thing: Option<Id>,
    /// Something of that thing is named.
    pub deeper: bool,
}
/// What a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that matters.
    Nothing,
    /// A thing was made.
    Made(Id),
    /// Its mark may have changed.
    Marked(Id),
    /// Something else of it changed.
    Changed(Id),
    /// Its end began, if it was alive before.
    Ended(Id),
    /// It was refused for lack of a permission.
    Refused,
}

/// How one cloud speaks.
pub trait Dialect: Sync {
    /// The keys of marks.
    fn keys(&self) -> &'static MarkKeys;
    /// Accounts and the secrets that lead to them.
    fn accounts(&self) -> [(&'static str, &'static str); 2];
    /// A fresh cloud.
    fn cloud(&self, seed: u64) -> Box<dyn EmulatedCloud>;
    /// Kinds that a quota counts.
    fn counted(&self) -> &'static [&'static str];
    /// What a path is about.
    fn about(&self, path: &str) -> About;
    /// What a request came to.
    fn effect(&self, method: &Method, path: &str, about: &About, response: &Response) -> Effect;
    /// Times of this cloud.
    fn times(&self, settings: &mut Settings, lags: Lags, lag: &dyn Fn(Millis) -> Lag);
    /// Where a thing stands, as the production client would say.
    fn key(&self, thing: &Thing) -> String;
    /// Its attributes, hashed as a sighting's are.
    fn params(&self, thing: &Thing) -> Option<String>;
    /// Is its kind marked in the create call?
    fn marked_at_create(&self, kind: &str) -> bool;
    /// What a stranger makes.
    fn plant(&self, twin: &Twin) -> Option<Plant>;
    /// Can it carry a mark?
    fn markable(&self, kind: &str) -> bool;
    /// What an audit finds.
    fn found(&self, thing: &Thing, mark: MarkSeen) -> Option<Found>;
    /// The next builds fail.
    fn fail(&self, cloud: &mut dyn EmulatedCloud);
    /// How controllers call a thing.
    fn id(&self, thing: &Thing) -> Id {
        thing.id.clone()
    }
    /// How the cloud calls it.
    fn own_id<'a>(&self, id: &'a str) -> &'a str {
        id
    }
    /// Scenery that is not judged.
    fn hides(&self, _thing: &Thing) -> bool {
        false
    }
}

/// The emulator, and what it does not remember.
pub struct Emulated {
    dialect: &'static dyn Dialect,
    /// The cloud itself.
    pub cloud: Box<dyn EmulatedCloud>,
    now: Millis,
    account: String,
    deeds: Vec<Deed>,
    marks: BTreeMap<Id, Vec<(Millis, MarkSeen)>>,
    refusals: u64,
    /// Kubernetes objects that are no owners: by API server and name.
    pub others: BTreeMap<(usize, String), Value>,
}

/// Is it there, and not on its way out?
pub fn alive(thing: &Thing) -> bool {
    !matches!(thing.phase, Phase::Deleting | Phase::Gone)
}
/// The emulator behind a simulated cloud.
pub fn emulated(cloud: &dyn SimCloud) -> Option<&Emulated> {
    let any: &dyn Any = cloud;
    any.downcast_ref()
}
/// The same, to change it.
pub fn emulated_mut(cloud: &mut dyn SimCloud) -> Option<&mut Emulated> {
    let any: &mut dyn Any = cloud;
    any.downcast_mut()
}

impl Emulated {
    /// A cloud with both accounts admitted.
    pub fn new(dialect: &'static dyn Dialect, seed: u64, lags: Lags) -> Self {
        let mut cloud = dialect.cloud(seed);
        for (account, secret) in dialect.accounts() {
            cloud.kit_mut().principals.admit(account, secret, account);
        }
        let mut this = Emulated {
            dialect,
            cloud,
            now: 0,
            account: dialect.accounts()[0].0.into(),
            deeds: Vec::new(),
            marks: BTreeMap::new(),
            refusals: 0,
            others: BTreeMap::new(),
        };
        this.lags(lags);
        this
    }
    fn things(&self) -> impl Iterator<Item = Thing> {
        let dialect = self.dialect;
        self.cloud.truth(date_of(self.now)).into_iter().filter(move |thing| !dialect.hides(thing))
    }
    fn real(&self, id: &str) -> Option<Thing> {
        self.things().find(|thing| self.dialect.id(thing) == id)
    }
    fn mark(&self, thing: &Thing) -> MarkSeen {
        let tags = thing.tags.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
        MarkSeen::from_tags(self.dialect.keys(), tags)
    }
    /// Notes the mark a thing carries now.
    fn note(&mut self, now: Millis, id: &str) {
        let Some(thing) = self.real(id) else { return };
        let mark = self.mark(&thing);
        let history = self.marks.entry(id.to_owned()).or_default();
        if history.last().map(|(_, known)| known) != Some(&mark) {
            history.push((now, mark));
        }
    }
    fn configure(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.cloud.kit().settings().clone();
        change(&mut settings);
        self.cloud.kit_mut().configure(settings);
    }
    /// Live things of controllers that this is true of: slot and id.
    pub fn slots(&self, wanted: impl Fn(&Thing) -> bool) -> BTreeMap<Slot, Id> {
        let things = self.things().filter(|thing| alive(thing) && wanted(thing));
        let slot = |thing: &Thing| thing.tags.as_ref()?.get(self.dialect.keys().slot)?.parse().ok();
        things.filter_map(|thing| Some((slot(&thing)?, self.dialect.id(&thing)))).collect()
    }
    fn tell(&self, thing: &Thing) -> Truth {
        let id = self.dialect.id(thing);
        Truth {
            kind: thing.kind.into(),
            key: self.dialect.key(thing),
            by_controller: !thing.planted,
            live: alive(thing),
            marks: self.marks.get(&id).cloned().unwrap_or_else(|| vec![(0, MarkSeen::Nothing)]),
            born: u64::try_from(thing.born.duration_since(date_of(0)).as_millis()).unwrap_or(0),
            marked_at_create: self.dialect.marked_at_create(thing.kind),
            params: self.dialect.params(thing),
            id,
        }
    }
    /// Everything alive, for an audit.
    pub fn found(&self) -> Vec<Found> {
        let found = |thing: Thing| {
            let mark = self.mark(&thing);
            self.dialect.found(&thing, mark)
        };
        self.things().filter(alive).filter_map(found).collect()
    }
    /// The time it is here.
    pub fn now(&self) -> Millis {
        self.now
    }
}

impl SimCloud for Emulated {
    fn exchange(&mut self, now: Millis, request: Request) -> Response {
        self.now = now;
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let about = self.dialect.about(&path);
        let ending = method == Method::DELETE && !about.deeper;
        let before = about.thing.as_ref().filter(|_| ending).and_then(|id| self.real(id)).is_some_and(|it| alive(&it));
        let response = self.cloud.handle(date_of(now), request).response;
        match self.dialect.effect(&method, &path, &about, &response) {
            Effect::Nothing => {}
            Effect::Made(id) => {
                self.note(now, &id);
                self.deeds.push(Deed::Created(id));
            }
            Effect::Marked(id) => {
                self.note(now, &id);
                self.deeds.push(Deed::Tagged(id));
            }
            Effect::Changed(id) => self.deeds.push(Deed::Changed(id)),
            Effect::Ended(id) => self.deeds.extend(before.then_some(Deed::Deleted(id))),
            Effect::Refused => self.refusals += 1,
        }
        response
    }
    fn deeds(&mut self) -> Vec<Deed> {
        std::mem::take(&mut self.deeds)
    }
    fn truth(&self) -> Vec<Truth> {
        self.things().map(|thing| self.tell(&thing)).collect()
    }
    fn thing(&self, id: &str) -> Option<Truth> {
        self.real(id).map(|thing| self.tell(&thing))
    }
    fn plant(&mut self, now: Millis, twin: &Twin, mark: Option<&Mark>) -> Option<Id> {
        self.now = now;
        let mut plant = self.dialect.plant(twin)?;
        if let Some(mark) = mark.filter(|_| self.dialect.markable(&twin.kind)) {
            plant.tags = mark.to_tags(self.dialect.keys());
        }
        let own = self.cloud.plant(date_of(now), plant).ok()?;
        let id = self.things().find(|thing| thing.id == own).map_or(own, |thing| self.dialect.id(&thing));
        self.note(now, &id);
        Some(id)
    }
    fn remove(&mut self, now: Millis, id: &str) {
        self.now = now;
        let _ = self.cloud.delete_by_hand(date_of(now), self.dialect.own_id(id));
    }
    fn retag(&mut self, now: Millis, id: &str, mark: Option<&Mark>) {
        self.now = now;
        let keys = self.dialect.keys();
        let set = mark.map(|mark| mark.to_tags(keys)).unwrap_or_default();
        let remove: Vec<String> =
            keys.all().iter().filter(|key| !set.contains_key(**key)).map(|key| (*key).to_owned()).collect();
        let _ = self.cloud.retag_by_hand(date_of(now), self.dialect.own_id(id), set, &remove);
        self.note(now, id);
    }
    fn deny(&mut self, permission: &str) {
        for (account, _) in self.dialect.accounts() {
            self.cloud.kit_mut().denials.deny(account, permission);
        }
    }
    fn allow_all(&mut self) {
        self.cloud.kit_mut().denials.clear();
    }
    fn refusals(&self) -> u64 {
        self.refusals
    }
    fn account(&mut self, name: &str) {
        name.clone_into(&mut self.account);
    }
    fn current_account(&self) -> String {
        self.account.clone()
    }
    fn lags(&mut self, lags: Lags) {
        let lag = |most: Millis| if lags.worst { Lag::FixedMs(most) } else { Lag::UpToMs(most) };
        let dialect = self.dialect;
        self.configure(|settings| {
            settings.lag.list = lag(lags.list);
            settings.lag.get = lag(lags.get);
            settings.lag.ghost = lag(lags.ghost);
            dialect.times(settings, lags, &lag);
        });
    }
    fn fail_builds(&mut self, fail: bool) {
        if fail {
            self.dialect.fail(&mut *self.cloud);
        }
    }
    fn quota(&mut self, most: Option<usize>) {
        let most = most.and_then(|n| u64::try_from(n).ok());
        let counted = self.dialect.counted();
        let quotas = most.map(|n| counted.iter().map(|kind| ((*kind).to_owned(), n)).collect());
        self.configure(|settings| settings.quotas = quotas.unwrap_or_default());
    }
}
