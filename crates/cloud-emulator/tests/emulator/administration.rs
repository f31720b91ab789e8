//! The administration, call by call.
use crate::support::World;
use cloud_emulator::kit::admin::administer;
use cloud_emulator::kit::clock::CloudClock;
use serde_json::{Value, json};

struct Office {
    world: World,
    clock: CloudClock,
}
impl Office {
    fn new() -> Self {
        let world = World::calm();
        let clock = CloudClock::Virtual { now: world.now };
        Office { world, clock }
    }
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = (!body.is_null()).then_some(body);
        let request = crate::support::request(method, &format!("/admin/{path}"), &[], body);
        let response = administer(&mut self.world.cloud, &mut self.clock, &request);
        self.world.now = self.clock.now();
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
    }
    fn ok(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let (status, reply) = self.ask(method, path, body);
        assert_eq!(status, 200, "{method} {path}: {reply}");
        reply
    }
}

#[test]
fn faults_are_added_counted_and_cleared_and_misspelt_ones_refused() {
    let mut office = Office::new();
    let fault = json!({"match": {"kind": "disks", "verb": "list"}, "times": 1, "action": {"status": {"status": 503}}});
    office.ok("POST", "faults", &fault);
    assert_eq!(office.world.get("/v1/disks").status, 503);
    let script = office.ok("GET", "faults", &Value::Null);
    assert_eq!((&script[0]["struck"], &script[0]["action"]["status"]["status"]), (&json!(1), &json!(503)));
    office.ok("DELETE", "faults", &Value::Null);
    assert_eq!(office.ok("GET", "faults", &Value::Null), json!([]));
    for wrong in [
        json!({"action": "explode"}),
        json!({"match": {"kind": "disk"}, "action": "truncated"}),
        json!({"match": {"verb": "read"}, "action": "truncated"}),
        json!({"probability": 2, "action": "truncated"}),
        json!({"action": {"status": {"status": 200}}}),
        json!({"onse": true, "action": "truncated"}),
    ] {
        assert_eq!(office.ask("POST", "faults", &wrong).0, 400, "{wrong}");
    }
    for action in
        [json!({"cut": {"effect": true}}), json!({"hang": {"ms": 1, "effect": false}}), json!({"late": {"ms": 1}})]
    {
        office.ok("POST", "faults", &json!({"action": action}));
    }
}

#[test]
fn a_list_of_faults_is_added_whole_or_not_at_all() {
    let mut office = Office::new();
    let right = json!({"match": {"kind": "disks"}, "action": "truncated"});
    assert_eq!(
        office.ask("POST", "faults", &json!([right, {"match": {"kind": "disk"}, "action": "truncated"}])).0,
        400
    );
    assert_eq!(office.ok("GET", "faults", &Value::Null), json!([]));
    office.ok("POST", "faults", &json!([right, right]));
    assert_eq!(office.ok("GET", "faults", &Value::Null).as_array().map(Vec::len), Some(2));
}

#[test]
fn settings_are_put_whole_and_patched_in_part() {
    let mut office = Office::new();
    let put =
        json!({"lag": {"list": {"fixed_ms": 5000}, "ghosts": "alive"}, "quotas": {"disks": 3}, "paging": {"max": 2}});
    office.ok("PUT", "settings", &put);
    let patched =
        office.ok("PATCH", "settings", &json!({"quotas": {"disks": null, "networks": 1}, "region": "there-1"}));
    assert_eq!(patched["lag"]["list"], json!({"fixed_ms": 5000}));
    assert_eq!((&patched["quotas"], &patched["region"]), (&json!({"networks": 1}), &json!("there-1")));
    let reset = office.ok("PUT", "settings", &json!({}));
    assert_eq!((&reset["lag"]["list"], &reset["quotas"]), (&json!("none"), &json!({})));
    for wrong in [json!({"lags": {}}), json!({"quotas": {"disk": 1}}), json!({"paging": {"max": 0}})] {
        assert_eq!(office.ask("PUT", "settings", &wrong).0, 400, "{wrong}");
    }
    let wrong_limit = json!({"limits": [{"verb": "read", "burst": 1, "per_second": 1.0}]});
    assert_eq!(office.ask("PUT", "settings", &wrong_limit).0, 400);
}

#[test]
fn calls_are_filtered_counted_and_cleared() {
    let mut office = Office::new();
    office.world.disk();
    office.world.get("/v1/disks");
    let all = office.ok("GET", "calls", &Value::Null);
    assert_eq!((&all["count"], &all["latest"], &all["forgotten"]), (&json!(2), &json!(2), &json!(0)));
    assert_eq!(all["calls"][0]["principal"], "alice");
    let filter = "calls?kind=disks&verb=create&effect=true&mutating=true&status=201&path=%2Fv1%2F*&after=0&limit=0";
    let counted = office.ok("GET", filter, &Value::Null);
    assert_eq!((&counted["count"], &counted["calls"]), (&json!(1), &json!([])));
    assert_eq!(office.ask("GET", "calls?who=alice", &Value::Null).0, 400);
    assert_eq!(office.ask("GET", "calls?status=many", &Value::Null).0, 400);
    office.ok("DELETE", "calls", &Value::Null);
    assert_eq!(office.ok("GET", "calls", &Value::Null)["count"], 0);
}

#[test]
fn things_are_seen_planted_retagged_and_deleted() {
    let mut office = Office::new();
    let plant = json!({"kind": "disk", "fields": {"name": "d", "size_gb": 1}, "tags": {"a": "1"}, "created_by": "eve"});
    let id = office.ok("POST", "things", &plant)["id"].as_str().unwrap().to_owned();
    office.ok("PUT", &format!("things/{id}/tags"), &json!({"set": {"b": "2"}, "remove": ["a"]}));
    let truth = office.ok("GET", "things", &Value::Null);
    assert_eq!((&truth[0]["id"], &truth[0]["created_by"]), (&json!(id), &json!("eve")));
    assert_eq!((&truth[0]["tags"], &truth[0]["phase"]), (&json!({"b": "2"}), &json!("ready")));
    office.ok("DELETE", &format!("things/{id}"), &Value::Null);
    assert_eq!(office.ok("GET", "things?existing=true", &Value::Null), json!([]));
    assert_eq!(office.ok("GET", "things", &Value::Null)[0]["phase"], "gone");
    assert_eq!(office.ask("DELETE", &format!("things/{id}"), &Value::Null).0, 400);
}

#[test]
fn machines_can_be_made_to_fail_and_time_made_to_pass() {
    let mut office = Office::new();
    office.ok("POST", "failures", &json!({"kind": "machines", "reason": "no capacity"}));
    let network = office.world.network();
    let id = office.world.post("/v1/machines", &json!({"name": "m", "network_id": network, "flavor": "f"})).id();
    let before = office.ok("GET", "clock", &Value::Null);
    let after = office.ok("POST", "clock", &json!({"advance_ms": 60_000}));
    assert_eq!((&before["now"], &after["now"]), (&json!("2026-01-01T00:00:00Z"), &json!("2026-01-01T00:01:00Z")));
    assert_eq!(office.world.get(&format!("/v1/machines/{id}")).body["state_reason"], "no capacity");
}

#[test]
fn permissions_are_taken_and_given_back() {
    let mut office = Office::new();
    office.ok("POST", "denials", &json!({"principal": "alice", "permission": "disks.list"}));
    assert_eq!(office.world.get("/v1/disks").status, 403);
    assert_eq!(office.ok("GET", "denials", &Value::Null)[0]["permission"], "disks.list");
    office.ok("DELETE", "denials?principal=alice&permission=disks.list", &Value::Null);
    assert_eq!(office.world.get("/v1/disks").status, 200);
    office.ok("DELETE", "denials", &Value::Null);
    let wrong = json!({"principal": "alice", "permission": "disk.list"});
    assert_eq!(office.ask("POST", "denials", &wrong).0, 400);
}

#[test]
fn principals_come_and_go_and_their_tokens_are_never_shown() {
    let mut office = Office::new();
    office.ok("POST", "principals", &json!({"principal": "bob", "token": "hidden", "account": "acct-2"}));
    let all = office.ok("GET", "principals", &Value::Null);
    assert_eq!(all[1], json!({"principal": "bob", "account": "acct-2"}));
    assert!(!all.to_string().contains("hidden"));
    office.ok("DELETE", "principals/alice", &Value::Null);
    assert_eq!(office.world.get("/v1/disks").code(), (401, "Unauthorized"));
    assert_eq!(office.ask("DELETE", "principals/alice", &Value::Null).0, 404);
    assert_eq!(office.ask("GET", "nothing", &Value::Null).0, 404);
}
