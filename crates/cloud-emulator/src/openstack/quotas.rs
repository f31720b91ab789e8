//! Quotas: how much of everything a project has, what it may have, and how each service tells it.
use super::OpenStackState;
use super::kinds::{Kind, Service, split};
use super::replies::Refused;
use super::store::Thing;
use crate::kit::{Answer, Call, Settings};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

fn most(settings: &Settings, word: &str) -> i64 {
    settings.quotas.get(word).map_or(-1, |it| i64::try_from(*it).unwrap_or(-1))
}
fn number(body: &Map<String, Value>, field: &str) -> i64 {
    body.get(field).and_then(Value::as_i64).unwrap_or_default()
}

impl OpenStackState {
    fn living(&self, project: &str, kind: Kind, now: Timestamp) -> impl Iterator<Item = &Thing> {
        let mine = move |it: &&Thing| it.project.as_deref() == Some(project) && !it.gone(now);
        self.store.of_kind(kind).filter(mine)
    }
    /// `vcpus` or `ram` of the flavor that a server was made of.
    fn of_flavor(&self, server: &Map<String, Value>, field: &str) -> i64 {
        let name = server.get("flavor").and_then(|it| it["original_name"].as_str()).unwrap_or_default();
        let flavor = self.store.of_kind(Kind::Flavor).find(|it| it.text("name") == name);
        flavor.map_or(0, |it| number(&it.body, field))
    }
    /// What is used of cores, RAM or gigabytes.
    fn used(&self, project: &str, word: &str, now: Timestamp) -> i64 {
        match word {
            "cores" => self.living(project, Kind::Server, now).map(|it| self.of_flavor(&it.body, "vcpus")).sum(),
            "ram" => self.living(project, Kind::Server, now).map(|it| self.of_flavor(&it.body, "ram")).sum(),
            _ => self.living(project, Kind::Volume, now).map(|it| number(&it.body, "size")).sum(),
        }
    }

    /// Nova's and Cinder's limits, Neutron's quotas.
    pub(super) fn limits(&self, settings: &Settings, call: Call<'_>) -> Answer {
        let project = &*call.principal.account;
        let count = |kind: Kind| self.store.count(project, kind, call.now);
        let used = |word: &str| self.used(project, word, call.now);
        let most = |word: &str| most(settings, word);
        let body = match split(call.request.uri().path()).map(|it| it.0) {
            Some(Service::Network) => {
                let of = |kind: Kind| json!({"used": count(kind), "limit": most(kind.plural()), "reserved": 0});
                json!({"quota": {"port": of(Kind::Port), "floatingip": of(Kind::FloatingIp), "trunk": of(Kind::Trunk)}})
            }
            Some(Service::Volume) => json!({"limits": {"rate": [], "absolute": {
                "totalVolumesUsed": count(Kind::Volume), "maxTotalVolumes": most("volumes"),
                "totalGigabytesUsed": used("gigabytes"), "maxTotalVolumeGigabytes": most("gigabytes")}}}),
            _ => json!({"limits": {"rate": [], "absolute": {
                "totalInstancesUsed": count(Kind::Server), "maxTotalInstances": most("servers"),
                "totalCoresUsed": used("cores"), "maxTotalCores": most("cores"),
                "totalRAMUsed": used("ram"), "maxTotalRAMSize": most("ram")}}}),
        };
        Answer::new(StatusCode::OK, body.to_string().into_bytes())
    }

    /// Why a thing of this body would be too much.
    pub(super) fn too_much(
        &self,
        settings: &Settings,
        kind: Kind,
        body: &Map<String, Value>,
        project: &str,
        now: Timestamp,
    ) -> Option<Refused> {
        if let Some(most) = settings.quotas.get(kind.plural()).filter(|it| self.store.count(project, kind, now) >= **it)
        {
            return Some(Refused::quota(kind, *most));
        }
        let over = |word: &str, more: i64| {
            let (most, used) = (most(settings, word), self.used(project, word, now));
            (most >= 0 && used + more > most).then_some((more, used, most))
        };
        match kind {
            Kind::Server => [("cores", "vcpus"), ("ram", "ram")].into_iter().find_map(|(word, field)| {
                let (more, used, most) = over(word, self.of_flavor(body, field))?;
                let message =
                    format!("Quota exceeded for {word}: Requested {more}, but already used {used} of {most} {word}");
                Some(Refused::new(Service::Compute, StatusCode::FORBIDDEN, "", message))
            }),
            Kind::Volume => over("gigabytes", number(body, "size")).map(|(more, used, most)| {
                Refused::cinder_quota(format!(
                    "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested {more}G, \
                     quota is {most}G and {used}G has been consumed."
                ))
            }),
            _ => None,
        }
    }
}
