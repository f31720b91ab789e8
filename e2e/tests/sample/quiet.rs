//! How much is written for one owner, and how little happens when there is nothing to do.
use crate::cloud::{WRITES, of_verbs};
use crate::owners::one_of_each;
use crate::stage::{GRACE, Stage};
use crate::{seen, tell_alone};
use common::clock::{Clock, SystemClock};
use e2e::audit::Request;
use e2e::{AuditLog, Result, env};
use std::collections::BTreeMap;

const OWNERS: &str = "sampleowners.sample.custody.dev";
const LEASES: &str = "leases.coordination.k8s.io";
/// What the API server serves.
const DISCOVERY: &str = "/apis";
/// Kinds of the cloud, each with one list of its own.
const KINDS: u64 = 5;

fn sum(requests: &BTreeMap<Request, u64>, wanted: impl Fn(&Request) -> bool) -> u64 {
    requests.iter().filter(|(request, _)| wanted(request)).map(|(_, n)| n).sum()
}

fn shown(requests: &BTreeMap<Request, u64>) -> String {
    requests.iter().map(|(request, n)| format!("{n} x {request}")).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn write_counts_are_those_of_the_protocol_and_rest_costs_nothing() {
    tell_alone("write_counts_are_those_of_the_protocol_and_rest_costs_nothing", story()).await;
}

async fn story() -> Result<()> {
    // given a controller that leads, with nothing to do; it looks at every owner far more often than one in earnest would
    let stage = Stage::set("quiet").await?;
    let log = AuditLog::of(&stage.cluster)?;
    let mut controller = stage.launch("controller")?.arg("--resync=3s").start()?;
    controller.wait_ready(crate::stage::PATIENCE).await?;
    let user = stage.account.user();
    // when one owner of five pieces in three ranks is created
    let (before, mark) = (log.moment().await?, stage.cloud.mark().await?);
    stage.create("one", &one_of_each()).await?;
    stage.wait_for_rest().await?;
    // then the cloud is written to once for each piece, and once more for the one that cannot be marked at create
    let requests = log.requests(&user, before, log.moment().await?)?;
    let calls = stage.cloud.calls_since(mark).await?;
    assert_eq!(of_verbs(&calls, &["create"]), 5, "{calls:?}");
    assert_eq!(of_verbs(&calls, &["tag"]), 1, "{calls:?}");
    assert_eq!(of_verbs(&calls, &WRITES), 6, "{calls:?}");
    // and the ledger as the protocol wants it: at birth, before and after each of two waves, and once for the late mark
    let ledger = sum(&requests, |r| r.writes() && r.resource == OWNERS && r.subresource.is_empty());
    let status = sum(&requests, |r| r.writes() && r.resource == OWNERS && r.subresource == "status");
    assert_eq!(ledger, 6, "{}", shown(&requests));
    seen(&format!(
        "one owner of 5 pieces: 5 creates and 1 mark in the cloud, {ledger} ledger writes, {status} status writes"
    ));
    // given two more, all of them at rest
    for name in ["two", "three"] {
        stage.create(name, &one_of_each()).await?;
    }
    stage.wait_for_rest().await?;
    let lasting = env::seconds(env::QUIET, 15);
    let (before, mark) = (log.moment().await?, stage.cloud.mark().await?);
    // when nothing happens for a while
    SystemClock.sleep_until(SystemClock.boot() + lasting).await;
    // then the API server sees renewals of the Lease, watches, and one look a minute whether Cluster API has come
    let requests = log.requests(&user, before, log.moment().await?)?;
    let look = |r: &Request| r.verb == "get" && r.resource == DISCOVERY;
    let idle = |r: &Request| r.resource == LEASES || r.verb == "watch" || look(r);
    assert!(sum(&requests, look) <= lasting.as_secs() / 60 + 1, "{}", shown(&requests));
    assert_eq!(sum(&requests, |r| !idle(r)), 0, "{}", shown(&requests));
    assert!(sum(&requests, |r| r.resource == LEASES) > 0, "a leader renews: {}", shown(&requests));
    // and the cloud sees at most one list of each kind per interval, however many owners there are
    let calls = stage.cloud.calls_since(mark).await?;
    let lists = of_verbs(&calls, &["list"]);
    assert_eq!(calls.values().sum::<u64>(), lists, "{calls:?}");
    let most = KINDS * (lasting.as_secs() / 2 + 2);
    assert!(lists > 0 && lists <= most, "{lists} lists in {lasting:?}: {calls:?}");
    seen(&format!(
        "3 owners at rest for {lasting:?}: {}; {lists} shared lists in the cloud, 0 writes",
        shown(&requests)
    ));
    stage.delete_all().await?;
    assert!(controller.stop(GRACE).await?.success());
    stage.clear().await
}
