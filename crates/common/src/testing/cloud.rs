//! What the simulator needs of a cloud: an exchange, the truth, and hands that reach in from outside.
use super::calendar::Millis;
use super::server::Key;
use super::sim::{Sim, State};
use super::wire::{Call, Heard, Target};
use crate::identity::{Mark, MarkSeen};
use crate::ledger::Id;
use crate::transport::{Request, Response, Transport, TransportError};
use async_trait::async_trait;
use serde_json::Value;
use std::any::Any;

/// One thing as it really is, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Its id.
    pub id: Id,
    /// Its kind.
    pub kind: String,
    /// Its natural key, or its name where names are all there is.
    pub key: String,
    /// A controller made it.
    pub by_controller: bool,
    /// It is there and not on its way out.
    pub live: bool,
    /// Its mark, from when on; the last one is the present one.
    pub marks: Vec<(Millis, MarkSeen)>,
    /// When it was made.
    pub born: Millis,
    /// Its kind is marked in the create call.
    pub marked_at_create: bool,
    /// Its attributes, hashed as a sighting's are.
    pub params: Option<String>,
}
impl Truth {
    /// What its tags say now.
    pub fn mark(&self) -> Option<&Mark> {
        match self.marks.last() {
            Some((_, MarkSeen::Whole(mark))) => Some(mark),
            _ => None,
        }
    }
    /// The marks it carried at some time from `since` to now.
    pub fn marks_since(&self, since: Millis) -> impl Iterator<Item = &MarkSeen> {
        let first = self.marks.iter().rposition(|(from, _)| *from <= since).unwrap_or(0);
        self.marks.iter().skip(first).map(|(_, mark)| mark)
    }
    /// A whole mark it ever carried.
    pub fn marks_ever(&self) -> impl Iterator<Item = &Mark> {
        self.marks.iter().filter_map(|(_, mark)| if let MarkSeen::Whole(mark) = mark { Some(mark) } else { None })
    }
}

/// Something a controller did to the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A thing was made.
    Created(Id),
    /// A thing's end began.
    Deleted(Id),
    /// A thing's tags changed.
    Tagged(Id),
    /// An attribute changed.
    Changed(Id),
}

/// A stranger's thing on the natural key of a piece, or with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Twin {
    /// Its kind.
    pub kind: String,
    /// What its maker asked for.
    pub params: Value,
}

/// How far the cloud's answers are behind the truth, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lags {
    /// A new thing in lists.
    pub list: Millis,
    /// A tag in lists and reads.
    pub tag: Millis,
    /// A new thing in reads by id.
    pub get: Millis,
    /// A thing that is gone, in lists.
    pub ghost: Millis,
    /// How long deleting takes.
    pub delete: Millis,
    /// How long building takes.
    pub build: Millis,
    /// Always the most, instead of up to it.
    pub worst: bool,
}

/// A cloud in the simulator.
pub trait SimCloud: Any + Send {
    /// One exchange, at the moment the request takes effect.
    fn exchange(&mut self, now: Millis, request: Request) -> Response;
    /// What controllers did since this was last asked.
    fn deeds(&mut self) -> Vec<Deed>;
    /// Everything that ever was.
    fn truth(&self) -> Vec<Truth>;
    /// One thing.
    fn thing(&self, id: &str) -> Option<Truth>;
    /// A stranger makes something, with this mark forged or left on it.
    fn plant(&mut self, now: Millis, twin: &Twin, mark: Option<&Mark>) -> Option<Id>;
    /// Somebody deletes something by hand.
    fn remove(&mut self, now: Millis, id: &str);
    /// Somebody changes the mark by hand.
    fn retag(&mut self, now: Millis, id: &str, mark: Option<&Mark>);
    /// An administrator takes a permission from the controllers.
    fn deny(&mut self, permission: &str);
    /// All permissions are given back.
    fn allow_all(&mut self);
    /// How many calls were refused for lack of a permission.
    fn refusals(&self) -> u64;
    /// The credentials belong to this account from now on.
    fn account(&mut self, name: &str);
    /// Whose credentials a new process gets.
    fn current_account(&self) -> String;
    /// How far answers are behind from now on.
    fn lags(&mut self, lags: Lags);
    /// New machines fail to build.
    fn fail_builds(&mut self, fail: bool);
    /// No more than so many things of each kind; none if `None`.
    fn quota(&mut self, most: Option<usize>);
}

/// The network between a process and the cloud.
#[derive(Clone)]
pub struct SimTransport {
    sim: Sim,
    timeout: Millis,
}
impl SimTransport {
    /// A transport that gives up after `timeout`.
    pub fn new(sim: Sim, timeout: Millis) -> Self {
        SimTransport { sim, timeout }
    }
}

#[async_trait]
impl Transport for SimTransport {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        // signing in changes nothing
        let writes = request.method() != http::Method::GET && !request.uri().path().ends_with("/auth/tokens");
        let call = Call { target: Target::Cloud, writes, timeout: self.timeout };
        let label = format!("{} {}", request.method(), request.uri());
        let heard = self.sim.call(
            call,
            || label,
            move |s| {
                let now = s.now();
                let line = s.traced().then(|| request_line(&request));
                let response = s.cloud.exchange(now, request);
                if let Some(line) = line {
                    let body = String::from_utf8_lossy(response.body()).into_owned();
                    let body = if writes || response.status().as_u16() >= 400 {
                        body
                    } else {
                        format!("{} bytes", body.len())
                    };
                    s.say(|| format!("  cloud: {line} -> {} {body}", response.status().as_u16()));
                }
                s.judge_deeds();
                response
            },
        );
        answer(heard.await)
    }
}

fn request_line(request: &Request) -> String {
    format!("{} {} {}", request.method(), request.uri().path(), String::from_utf8_lossy(request.body()))
}

fn answer(heard: Heard<Response>) -> Result<Response, TransportError> {
    let bare = |code: u16, body: &str| {
        let mut response = Response::new(body.as_bytes().to_vec());
        *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
        if code == 429 {
            response.headers_mut().insert("retry-after", http::HeaderValue::from_static("1"));
        }
        response
    };
    match heard {
        Heard::Reply(response) => Ok(response),
        Heard::NotSent => Err(TransportError::NotSent("connection refused".into())),
        Heard::NoReply => Err(TransportError::NoReply("connection lost".into())),
        Heard::Status(code) => Ok(bare(code, "<html>gateway</html>")),
        Heard::Garbage => Ok(bare(200, "{\"items\": [{\"id\": ")),
    }
}

impl State {
    /// Looks at what a controller just did to the cloud.
    pub fn judge_deeds(&mut self) {
        for deed in self.cloud.deeds() {
            self.judge(deed);
        }
    }
    /// The owner the present call is made for.
    pub fn acting_for(&self) -> Option<(usize, Key)> {
        let actor = self.current.as_ref()?;
        Some((self.processes.get(actor.process)?.server, actor.key.clone()))
    }
}
