//! The way of one request through an emulated cloud: named, identified, struck by a fault or not, limited, permitted, served,
//! logged. The order is the same for every cloud; the words are the cloud's own.
use super::faults::Action;
use super::{
    ByHandError, CallRecord, Delivery, EmulatedCloud, Handled, Kit, Plant, Principal, Principals, Request, Response,
    Settings, Spared, Tags, Truth, Vocabulary,
};
use http::header::{CONTENT_TYPE, DATE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use std::sync::Arc;
use std::time::Duration;

/// What a request is about, read from its method and path alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Naming<'r> {
    /// The kind, empty if none.
    pub kind: &'static str,
    /// What is to be done, empty if the request names nothing.
    pub verb: &'static str,
    /// The id in the path.
    pub thing: Option<&'r str>,
    /// A call of this verb can change something.
    pub mutating: bool,
}
/// One permitted call of a known principal.
#[derive(Clone, Copy, Debug)]
pub struct Call<'r> {
    /// When.
    pub now: Timestamp,
    /// Who.
    pub principal: &'r Arc<Principal>,
    /// What.
    pub naming: Naming<'r>,
    /// All of it.
    pub request: &'r Request,
}
/// What a cloud answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Body.
    pub body: Vec<u8>,
    /// Something changed.
    pub effect: bool,
    /// The thing concerned, if the path does not name it.
    pub thing: Option<String>,
    /// A header of this answer alone.
    pub header: Option<(HeaderName, HeaderValue)>,
}
impl Answer {
    /// An answer to a call that changed nothing.
    pub fn new(status: StatusCode, body: Vec<u8>) -> Self {
        Answer { status, body, effect: false, thing: None, header: None }
    }
}
/// What the kit itself has to say; the cloud finds the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token is missing or unknown.
    Unauthorized,
    /// This permission was taken from the principal.
    Forbidden(String),
    /// Too fast.
    Throttled,
    /// A fault says so.
    Status(StatusCode),
}

/// One cloud's own part.
pub trait Cloud: Send {
    /// Kinds and verbs in use.
    fn vocabulary(&self) -> Vocabulary;
    /// The header that carries the request id.
    fn request_id_header(&self) -> HeaderName;
    /// Names a request.
    fn name<'r>(&self, request: &'r Request) -> Naming<'r>;
    /// Who sent it.
    fn identify(&self, request: &Request, principals: &Principals) -> Option<Arc<Principal>>;
    /// The permission that a call needs.
    fn permission(&self, naming: &Naming<'_>) -> Option<String>;
    /// Carries a call out.
    fn serve(&mut self, settings: &Settings, dice: &mut super::dice::Dice, call: Call<'_>) -> Answer;
    /// Says no in the cloud's words.
    fn refuse(&self, refusal: &Refusal) -> Answer;
    /// See [`EmulatedCloud::truth`].
    fn truth(&self, now: Timestamp) -> Vec<Truth>;
    /// See [`EmulatedCloud::plant`].
    fn plant(&mut self, kit: &mut Kit, now: Timestamp, plant: Plant) -> Result<String, ByHandError>;
    /// See [`EmulatedCloud::delete_by_hand`].
    fn delete_by_hand(&mut self, kit: &mut Kit, now: Timestamp, id: &str) -> Result<(), ByHandError>;
    /// See [`EmulatedCloud::retag_by_hand`].
    fn retag_by_hand(
        &mut self,
        kit: &mut Kit,
        now: Timestamp,
        id: &str,
        set: Tags,
        remove: &[String],
    ) -> Result<(), ByHandError>;
    /// See [`EmulatedCloud::fail_next_build`].
    fn fail_next_build(&mut self, kind: &str, reason: &str, times: u32) -> Result<(), ByHandError>;
}

/// A cloud on its kit.
#[derive(Debug)]
pub struct Emulator<C> {
    cloud: C,
    kit: Kit,
}
impl<C: Cloud> Emulator<C> {
    /// A cloud on a new kit.
    pub fn on_kit(cloud: C, settings: Settings, seed: u64) -> Self {
        Emulator { cloud, kit: Kit::new(settings, seed) }
    }

    /// Limits, permissions, and then the cloud itself; `retry` is set where the client should wait.
    fn serve(&mut self, now: Timestamp, naming: Naming<'_>, who: Option<&Arc<Principal>>, request: &Request) -> Served {
        let Some(principal) = who else { return Served::from(self.cloud.refuse(&Refusal::Unauthorized)) };
        if let Err(wait) = self.kit.spend(now, &principal.name, &naming) {
            return Served { answer: self.cloud.refuse(&Refusal::Throttled), retry: Some(whole_seconds(wait)) };
        }
        let needed = self.cloud.permission(&naming);
        if let Some(denied) = needed.filter(|permission| self.kit.denials.denied(&principal.name, permission)) {
            return Served::from(self.cloud.refuse(&Refusal::Forbidden(denied)));
        }
        let (settings, dice) = self.kit.split();
        Served::from(self.cloud.serve(settings, dice, Call { now, principal, naming, request }))
    }

    /// Serves the request as the fault that strikes it allows.
    fn struck(&mut self, action: &Action, serve: impl FnOnce(&mut Self) -> Served) -> (Served, Delivery) {
        let ms = Duration::from_millis;
        let nothing = || Served::from(Answer::new(StatusCode::SERVICE_UNAVAILABLE, Vec::new()));
        match *action {
            Action::Status { status, effect, retry_after_s } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let mut answer = self.cloud.refuse(&Refusal::Status(status));
                if effect {
                    let served = serve(self).answer;
                    (answer.effect, answer.thing) = (served.effect, served.thing);
                }
                (Served { answer, retry: retry_after_s }, Delivery::Deliver)
            }
            Action::Throttle { retry_after_s } => {
                let answer = self.cloud.refuse(&Refusal::Throttled);
                (Served { answer, retry: Some(retry_after_s) }, Delivery::Deliver)
            }
            Action::Cut { effect: true } => (serve(self), Delivery::DropReply),
            Action::Cut { effect: false } => (nothing(), Delivery::CutBefore),
            Action::Hang { ms: time, effect } => {
                (if effect { serve(self) } else { nothing() }, Delivery::Silence(ms(time)))
            }
            Action::Malformed { effect } => {
                let mut served =
                    if effect { serve(self) } else { Served::from(Answer::new(StatusCode::OK, Vec::new())) };
                served.answer.body = b"<html><body>upstream said: {\"id\": ".to_vec();
                (served, Delivery::Deliver)
            }
            Action::Truncated => (serve(self), Delivery::CutMidBody),
            Action::Delay { ms: time } => (serve(self), Delivery::Delay(ms(time))),
            Action::Slow { ms: time } => (serve(self), Delivery::Slow(ms(time))),
            Action::Late { ms: time } => (nothing(), Delivery::Postpone(ms(time))),
        }
    }
}

/// An answer and when to come again.
struct Served {
    answer: Answer,
    retry: Option<u64>,
}
impl From<Answer> for Served {
    fn from(answer: Answer) -> Self {
        Served { answer, retry: None }
    }
}

impl<C: Cloud> EmulatedCloud for Emulator<C> {
    fn handle(&mut self, now: Timestamp, request: Request) -> Handled {
        let naming = self.cloud.name(&request);
        let who = self.cloud.identify(&request, &self.kit.principals);
        let (method, path) = (request.method().as_str(), request.uri().path());
        let spared = request.extensions().get::<Spared>().is_some();
        let action = if spared {
            None
        } else {
            let name = who.as_ref().map(|principal| &*principal.name);
            self.kit.faults.strike(&mut self.kit.dice, method, path, name, &naming)
        };
        let serve = |emulator: &mut Self| emulator.serve(now, naming, who.as_ref(), &request);
        let (served, delivery) = match &action {
            None => (serve(self), Delivery::Deliver),
            Some(action) => self.struck(action, serve),
        };
        let seq = self.kit.calls.number();
        let request_id = format!("req-{seq:08x}");
        let Served { answer, retry } = served;
        let replied = !matches!(
            delivery,
            Delivery::DropReply | Delivery::CutBefore | Delivery::Silence(_) | Delivery::Postpone(_)
        );
        let mut headers = dress(now, self.cloud.request_id_header(), &request_id, retry);
        headers.extend(answer.header);
        self.kit.calls.push(CallRecord {
            seq,
            at: now,
            principal: who.as_ref().map(|principal| Arc::clone(&principal.name)),
            method: method.to_owned(),
            path: path.to_owned(),
            kind: naming.kind,
            verb: naming.verb,
            mutating: naming.mutating,
            status: replied.then_some(answer.status.as_u16()),
            effect: answer.effect,
            thing: answer.thing.or_else(|| naming.thing.map(str::to_owned)),
            request_id,
            fault: action.as_ref().map(Action::name),
        });
        let mut response = Response::new(answer.body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = headers;
        Handled { response, delivery }
    }
    fn kit(&self) -> &Kit {
        &self.kit
    }
    fn kit_mut(&mut self) -> &mut Kit {
        &mut self.kit
    }
    fn vocabulary(&self) -> Vocabulary {
        self.cloud.vocabulary()
    }
    fn truth(&self, now: Timestamp) -> Vec<Truth> {
        self.cloud.truth(now)
    }
    fn plant(&mut self, now: Timestamp, plant: Plant) -> Result<String, ByHandError> {
        self.cloud.plant(&mut self.kit, now, plant)
    }
    fn delete_by_hand(&mut self, now: Timestamp, id: &str) -> Result<(), ByHandError> {
        self.cloud.delete_by_hand(&mut self.kit, now, id)
    }
    fn retag_by_hand(&mut self, now: Timestamp, id: &str, set: Tags, remove: &[String]) -> Result<(), ByHandError> {
        self.cloud.retag_by_hand(&mut self.kit, now, id, set, remove)
    }
    fn fail_next_build(&mut self, kind: &str, reason: &str, times: u32) -> Result<(), ByHandError> {
        self.cloud.fail_next_build(kind, reason, times)
    }
}

/// The headers that every reply carries, and `Retry-After` where the client should wait.
fn dress(now: Timestamp, id_header: HeaderName, request_id: &str, retry: Option<u64>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Text that is no header value, or a year that HTTP cannot write, leaves the header out; neither occurs.
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok();
    if let Some(date) = date.and_then(|text| HeaderValue::from_str(&text).ok()) {
        headers.insert(DATE, date);
    }
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(id_header, id);
    }
    if let Some(seconds) = retry {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    headers
}
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
