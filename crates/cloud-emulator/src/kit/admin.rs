//! The administration over HTTP, under `/admin`, in JSON. What a cloud's owner does, never a part of the cloud.
//!
//! | call | does |
//! |---|---|
//! | `GET /admin/faults` | the script, with how often each fault saw and struck a call |
//! | `POST /admin/faults` | adds a [`Fault`], or a list of them, at the end of the script |
//! | `DELETE /admin/faults` | takes all away |
//! | `GET /admin/settings` | the [`Settings`] |
//! | `PUT /admin/settings` | new settings; fields left out take their defaults |
//! | `PATCH /admin/settings` | a JSON merge patch on the settings |
//! | `GET /admin/calls?...` | `{count, latest, forgotten, calls}`; parameters are the fields of [`CallFilter`], and `limit` (the last calls to show, default 1000, 0 for the count alone) |
//! | `DELETE /admin/calls` | empties the log; sequence numbers go on |
//! | `GET /admin/things` | the truth, [`super::Truth`], of everything ever made; `?existing=true` leaves out what is gone |
//! | `POST /admin/things` | puts a stranger's thing there, a [`Plant`]; answers `{id}` |
//! | `PUT /admin/things/{id}/tags` | `{set, remove}`, as a person would in the console |
//! | `DELETE /admin/things/{id}` | deletes, as a person would in the console |
//! | `POST /admin/failures` | `{kind, reason, times}`: the next things of the kind fail to build |
//! | `GET /admin/clock` | `{now}` |
//! | `POST /admin/clock` | `{advance_ms}`: lets time pass; answers `{now}` |
//! | `GET /admin/denials` | all denials |
//! | `POST /admin/denials` | `{principal, permission}`: takes the permission away |
//! | `DELETE /admin/denials` | gives all back, or with `?principal=..&permission=..` that one |
//! | `GET /admin/principals` | names and accounts; never tokens |
//! | `POST /admin/principals` | `{principal, token, account}` (account optional): admits |
//! | `DELETE /admin/principals/{name}` | takes all tokens from that principal |
use super::clock::CloudClock;
use super::principals::Denial;
use super::{CallFilter, EmulatedCloud, Fault, Plant, Request, Response, Settings, Tags, strict};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::str::FromStr;
use std::time::Duration;

const CALLS_SHOWN: usize = 1000;

/// Why a call of the administration failed.
enum Wrong {
    NoSuchCall,
    NotFound(String),
    Invalid(String),
}
impl From<String> for Wrong {
    fn from(message: String) -> Self {
        Wrong::Invalid(message)
    }
}

/// Answers one call of the administration.
pub fn administer(cloud: &mut dyn EmulatedCloud, clock: &mut CloudClock, request: &Request) -> Response {
    let (status, body) = match answer(cloud, clock, request) {
        Ok(body) => (StatusCode::OK, body),
        Err(Wrong::NoSuchCall) => (StatusCode::NOT_FOUND, json!({"message": "no such call"})),
        Err(Wrong::NotFound(message)) => (StatusCode::NOT_FOUND, json!({"message": message})),
        Err(Wrong::Invalid(message)) => (StatusCode::BAD_REQUEST, json!({"message": message})),
    };
    let mut response = Response::new(body.to_string().into_bytes());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn answer(cloud: &mut dyn EmulatedCloud, clock: &mut CloudClock, request: &Request) -> Result<Value, Wrong> {
    let path = request.uri().path().strip_prefix("/admin/").ok_or(Wrong::NoSuchCall)?;
    let parts: Vec<&str> = path.split('/').collect();
    match (request.method().as_str(), parts.as_slice()) {
        (method, ["faults"]) => faults(cloud, method, request),
        (method, ["settings"]) => settings(cloud, method, request),
        (method, ["calls"]) => calls(cloud, method, request),
        (method, ["denials"]) => denials(cloud, method, request),
        (method, ["principals"]) => principals(cloud, method, request),
        ("DELETE", ["principals", name]) if cloud.kit_mut().principals.revoke(name) => Ok(json!({})),
        ("DELETE", ["principals", name]) => Err(Wrong::NotFound(format!("no principal {name:?}"))),
        ("POST", ["failures"]) => failures(cloud, request),
        (method, ["things", rest @ ..]) => things(cloud, clock, method, rest, request),
        ("GET", ["clock"]) => Ok(json!({"now": clock.now()})),
        ("POST", ["clock"]) => {
            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            struct Advance {
                advance_ms: u64,
            }
            let Advance { advance_ms } = body(request)?;
            clock.advance(Duration::from_millis(advance_ms));
            Ok(json!({"now": clock.now()}))
        }
        _ => Err(Wrong::NoSuchCall),
    }
}

fn faults(cloud: &mut dyn EmulatedCloud, method: &str, request: &Request) -> Result<Value, Wrong> {
    match method {
        "GET" => Ok(json!(cloud.kit().faults.all())),
        "POST" => {
            let script: Vec<Fault> = match body(request)? {
                list @ Value::Array(_) => read(list)?,
                one => vec![read(one)?],
            };
            // All or none: half a script is another script.
            script.iter().try_for_each(|fault| fault.check(cloud.vocabulary()))?;
            for fault in script {
                cloud.kit_mut().faults.add(fault);
            }
            Ok(json!({}))
        }
        "DELETE" => {
            cloud.kit_mut().faults.clear();
            Ok(json!({}))
        }
        _ => Err(Wrong::NoSuchCall),
    }
}

fn settings(cloud: &mut dyn EmulatedCloud, method: &str, request: &Request) -> Result<Value, Wrong> {
    let wanted: Settings = match method {
        "GET" => return Ok(json!(cloud.kit().settings())),
        "PUT" => body(request)?,
        "PATCH" => {
            let mut merged = json!(cloud.kit().settings());
            merge(&mut merged, body(request)?);
            read(merged)?
        }
        _ => return Err(Wrong::NoSuchCall),
    };
    wanted.check(cloud.vocabulary())?;
    cloud.kit_mut().configure(wanted);
    Ok(json!(cloud.kit().settings()))
}
/// RFC 7386.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.remove(&key);
            } else {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
    }
}

fn calls(cloud: &mut dyn EmulatedCloud, method: &str, request: &Request) -> Result<Value, Wrong> {
    match method {
        "GET" => {
            let (filter, limit) = call_filter(request)?;
            let log = &cloud.kit().calls;
            let found: Vec<_> = log.matching(&filter).collect();
            let shown = &found[found.len().saturating_sub(limit)..];
            Ok(json!({"count": found.len(), "latest": log.latest(), "forgotten": log.forgotten(), "calls": shown}))
        }
        "DELETE" => {
            cloud.kit_mut().calls.clear();
            Ok(json!({}))
        }
        _ => Err(Wrong::NoSuchCall),
    }
}
fn call_filter(request: &Request) -> Result<(CallFilter, usize), String> {
    fn read<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
        value.parse().map_err(|_| format!("{name}={value} is not understood"))
    }
    let mut filter = CallFilter::default();
    let mut limit = CALLS_SHOWN;
    for (name, value) in strict::query(request)? {
        match name.as_str() {
            "principal" => filter.principal = Some(value),
            "method" => filter.method = Some(value),
            "path" => filter.path = Some(value),
            "kind" => filter.kind = Some(value),
            "verb" => filter.verb = Some(value),
            "thing" => filter.thing = Some(value),
            "status" => filter.status = Some(read(&name, &value)?),
            "effect" => filter.effect = Some(read(&name, &value)?),
            "mutating" => filter.mutating = Some(read(&name, &value)?),
            "after" => filter.after = Some(read(&name, &value)?),
            "limit" => limit = read(&name, &value)?,
            _ => return Err(format!("unknown query parameter {name}")),
        }
    }
    Ok((filter, limit))
}

fn things(
    cloud: &mut dyn EmulatedCloud,
    clock: &CloudClock,
    method: &str,
    rest: &[&str],
    request: &Request,
) -> Result<Value, Wrong> {
    #[derive(Deserialize)]
    #[serde(default, deny_unknown_fields)]
    #[derive(Default)]
    struct Change {
        set: Tags,
        remove: Vec<String>,
    }
    let now = clock.now();
    let done = match (method, rest) {
        ("GET", []) => {
            let mut truth = cloud.truth(now);
            match strict::query(request)?.as_slice() {
                [] => {}
                [(name, value)] if name == "existing" && value == "true" => truth.retain(super::Truth::exists),
                _ => return Err(Wrong::Invalid("the one query parameter is existing=true".to_owned())),
            }
            return Ok(json!(truth));
        }
        ("POST", []) => {
            let plant: Plant = body(request)?;
            return cloud.plant(now, plant).map(|id| json!({"id": id})).map_err(|error| Wrong::Invalid(error.0));
        }
        ("DELETE", [id]) => cloud.delete_by_hand(now, id),
        ("PUT", [id, "tags"]) => {
            let Change { set, remove } = body(request)?;
            cloud.retag_by_hand(now, id, set, &remove)
        }
        _ => return Err(Wrong::NoSuchCall),
    };
    done.map(|()| json!({})).map_err(|error| Wrong::Invalid(error.0))
}

fn failures(cloud: &mut dyn EmulatedCloud, request: &Request) -> Result<Value, Wrong> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Failure {
        kind: String,
        reason: String,
        #[serde(default = "once")]
        times: u32,
    }
    fn once() -> u32 {
        1
    }
    let Failure { kind, reason, times } = body(request)?;
    cloud.fail_next_build(&kind, &reason, times).map(|()| json!({})).map_err(|error| Wrong::Invalid(error.0))
}

fn denials(cloud: &mut dyn EmulatedCloud, method: &str, request: &Request) -> Result<Value, Wrong> {
    match method {
        "GET" => Ok(json!(cloud.kit().denials.all().collect::<Vec<_>>())),
        "POST" => {
            let Denial { principal, permission } = body(request)?;
            let words = cloud.vocabulary();
            let known = permission
                .split_once('.')
                .is_some_and(|(kind, verb)| words.kinds.contains(&kind) && words.verbs.contains(&verb));
            if !known {
                return Err(Wrong::Invalid(format!("no permission {permission:?}")));
            }
            cloud.kit_mut().denials.deny(&principal, &permission);
            Ok(json!({}))
        }
        "DELETE" => match strict::query(request)?.as_slice() {
            [] => {
                cloud.kit_mut().denials.clear();
                Ok(json!({}))
            }
            [(a, principal), (b, permission)] if a == "principal" && b == "permission" => {
                let taken = cloud.kit_mut().denials.allow(principal, permission);
                taken.then(|| json!({})).ok_or_else(|| Wrong::NotFound(format!("no denial of {permission}")))
            }
            _ => Err(Wrong::Invalid("query parameters are principal and permission, or none".to_owned())),
        },
        _ => Err(Wrong::NoSuchCall),
    }
}

fn principals(cloud: &mut dyn EmulatedCloud, method: &str, request: &Request) -> Result<Value, Wrong> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Admission {
        principal: String,
        token: String,
        account: Option<String>,
    }
    match method {
        "GET" => {
            let all = cloud.kit().principals.all();
            let shown = all.iter().map(|one| json!({"principal": &*one.name, "account": &*one.account}));
            Ok(shown.collect())
        }
        "POST" => {
            let Admission { principal, token, account } = body(request)?;
            let account = account.unwrap_or_else(|| cloud.kit().settings().account.clone());
            cloud.kit_mut().principals.admit(&principal, &token, &account);
            Ok(json!({}))
        }
        _ => Err(Wrong::NoSuchCall),
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}
fn body<T: DeserializeOwned>(request: &Request) -> Result<T, String> {
    serde_json::from_slice(request.body()).map_err(|error| error.to_string())
}
