//! Lists in pages.
use super::catalog::Service;
use super::connection::ReadError;
use super::reply::{self, Complaint};
use super::{Client, encode, transient};
use crate::cloud::Query;
use common::engine::estate::Fault;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// All pages of a list.
pub(super) struct Listed {
    pub(super) date: Timestamp,
    pub(super) values: Vec<Value>,
}

impl Client {
    /// Follows pages by their marker, never by the host of the link: proxies write their own.
    pub(super) async fn pages(&self, service: Service, path: &str, many: &str, query: &Query) -> Result<Listed, Fault> {
        let mut asked: Vec<String> = query.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
        let paged = matches!(service, Service::Compute | Service::BlockStorage | Service::Image);
        if paged {
            asked.push(format!("limit={}", self.connection.limits.page));
        }
        let (mut date, mut values, mut seen) = (None, Vec::new(), HashSet::new());
        let mut marker: Option<(&str, String)> = None;
        for _ in 0..self.connection.limits.pages {
            let mut query = asked.clone();
            query.extend(marker.as_ref().map(|(key, value)| format!("{key}={}", encode(value))));
            let mark = if query.is_empty() { "" } else { "?" };
            let read = self.read(service, format!("{path}{mark}{}", query.join("&"))).await;
            let response = read.map_err(|error| match error {
                // What stood at the end of the last page is gone: the list is asked for anew by whoever needs it.
                ReadError::Complaint(Complaint::Invalid(why) | Complaint::NotFound(why)) if marker.is_some() => {
                    Fault::Transient(format!("{many} changed while they were listed: {why}"))
                }
                other => other.fault(),
            })?;
            if date.is_none() {
                date = Some(reply::date(&response).map_err(transient)?);
            }
            let body: Map<String, Value> = reply::decode(&response).map_err(transient)?;
            let Some(page) = body.get(many).and_then(Value::as_array) else {
                return Err(Fault::Transient(format!("{}: no {many} in the reply", reply::about(&response))));
            };
            let id = |value: &Value| value.get("id").and_then(Value::as_str).map(str::to_owned);
            let before = values.len();
            // Things that came or went between two pages can push one onto both.
            values.extend(page.iter().filter(|it| id(it).is_none_or(|id| seen.insert(id))).cloned());
            let next = next_link(&body, many);
            let Some((next, date)) = next.zip(date) else {
                return date
                    .map(|date| Listed { date, values })
                    .ok_or_else(|| Fault::Transient("no page was read".into()));
            };
            let following =
                marker_in(&next).map(|it| ("marker", it)).or_else(|| Some(("marker", page.last().and_then(id)?)));
            if following.is_none() || (values.len() == before && following == marker) {
                return Ok(Listed { date, values });
            }
            marker = following;
        }
        Err(Fault::Transient(format!("the list of {many} does not end after {} pages", self.connection.limits.pages)))
    }
}

/// The address of the next page, if there is one.
fn next_link(body: &Map<String, Value>, many: &str) -> Option<String> {
    let links = body.get(&format!("{many}_links")).and_then(Value::as_array);
    let next = links.into_iter().flatten().find(|link| link.get("rel").and_then(Value::as_str) == Some("next"));
    let href = next.and_then(|link| link.get("href")).or_else(|| body.get("next"));
    href.and_then(Value::as_str).map(str::to_owned)
}
fn marker_in(link: &str) -> Option<String> {
    let query = link.split_once('?')?.1;
    let value = query.split('&').find_map(|pair| pair.strip_prefix("marker="))?;
    percent_decode_str(value).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}
