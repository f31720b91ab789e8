//! The client on a real socket, against the emulator: two sides written from one page by different hands.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // that is how a test fails

use cloud_emulator::kit::clock::CloudClock;
use cloud_emulator::kit::faults::{Action, Fault as Broken, Match};
use cloud_emulator::kit::server::{Host, serve};
use cloud_emulator::kit::settings::Paging;
use cloud_emulator::kit::{EmulatedCloud, Settings};
use cloud_emulator::sample::SampleCloud;
use common::clock::{Boot, Clock, SharedClock, SystemClock};
use common::engine::estate::{Fault, Outcome};
use http_transport::Http;
use sample_controller::client::{Client, Limits};
use sample_controller::cloud::{Attributes, Cloud, Creation, Kind, State, Tags};
use sample_controller::credentials::Token;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

const TOKEN: &str = "secret-1";

struct World {
    host: Arc<Host>,
    client: Client,
    _stop: DropGuard,
}
fn client(address: &str, token: &str) -> Client {
    let call = Duration::from_secs(2);
    let http =
        Http::new(&http_transport::Settings { user_agent: "test", call, authority: None, anybody: false }).unwrap();
    let clock: SharedClock = Arc::new(SystemClock);
    let limits = Limits { pause: Duration::ZERO, page: 3, ..Limits::default() };
    Client::new(Arc::new(http), clock, &format!("http://{address}"), Token::new(token), limits)
}
async fn world() -> World {
    let settings = Settings { paging: Paging { max: 2, ragged: true }, ..Settings::default() };
    let mut cloud = SampleCloud::new(settings, 1);
    cloud.kit_mut().admit("alice", TOKEN);
    let host = Host::new(Box::new(cloud), CloudClock::REAL, None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, host.clone(), stop.clone()));
    World { host, client: client(&address, TOKEN), _stop: stop.drop_guard() }
}
impl World {
    fn strike(&self, kind: &str, verb: &str, action: Action) {
        self.host.with(|cloud, _| cloud.kit_mut().faults.add(Broken::once(Match::verb(kind, verb), action)));
    }
    fn made(&self) -> usize {
        self.host.with(|cloud, clock| cloud.truth(clock.now()).len())
    }
    async fn create(&self, attributes: &Attributes, tags: Option<&Tags>, token: Option<&str>) -> Outcome<String> {
        let (kind, fields) = (attributes.kind(), attributes.body());
        self.client.create(kind, Creation { fields: &fields, tags, token, not_after: later() }).await
    }
    async fn id(&self, attributes: &Attributes) -> String {
        let tags = Tags::from([("custody.dev/slot".to_owned(), "x".to_owned())]);
        let taggable = !matches!(attributes.kind(), Kind::Address | Kind::Route);
        match self.create(attributes, taggable.then_some(&tags), None).await {
            Outcome::Done(id) => id,
            other => panic!("{attributes:?}: {other:?}"),
        }
    }
}
fn later() -> Boot {
    SystemClock.boot() + Duration::from_hours(1)
}
fn network(name: &str) -> Attributes {
    Attributes::Network { name: name.into(), cidr: "10.0.0.0/16".into() }
}
/// One of each kind, the later standing on the earlier.
async fn one_of_each(world: &World) -> Vec<(Attributes, String)> {
    let network_id = world.id(&network("n")).await;
    let disk = Attributes::Disk { name: "d".into(), size_gb: 10 };
    let disk_id = world.id(&disk).await;
    let address = Attributes::Address { network_id: network_id.clone(), label: "api".into() };
    let (destination, next_hop) = ("0.0.0.0/0".into(), "10.0.0.1".into());
    let route = Attributes::Route { network_id: network_id.clone(), destination, next_hop };
    let flavor = "small".to_owned();
    let machine = Attributes::Machine {
        name: "m".into(),
        network_id: network_id.clone(),
        disk_id: Some(disk_id.clone()),
        flavor,
    };
    let mut all = vec![(network("n"), network_id), (disk, disk_id)];
    for attributes in [address, route, machine] {
        let id = world.id(&attributes).await;
        all.push((attributes, id));
    }
    all
}

#[tokio::test]
async fn what_is_created_is_read_back_as_it_was_asked_for() {
    let world = world().await;
    for (attributes, id) in one_of_each(&world).await {
        let kind = attributes.kind();
        let seen = world.client.get(kind, &id).await.unwrap().unwrap();
        assert_eq!(seen.attributes, attributes);
        assert_eq!(seen.created_by, "alice");
        assert_eq!(seen.tags.is_none(), kind == Kind::Route);
        let listed = world.client.list(kind).await.unwrap();
        assert_eq!(listed.items, [seen], "{kind:?}");
    }
}

#[tokio::test]
async fn a_list_of_many_ragged_pages_is_whole() {
    let world = world().await;
    for n in 0..11 {
        world.id(&network(&format!("n{n}"))).await;
    }
    assert_eq!(world.client.list(Kind::Network).await.unwrap().items.len(), 11);
}

#[tokio::test]
async fn marks_flavors_and_ends_are_written_and_seen() {
    let world = world().await;
    let things = one_of_each(&world).await;
    // given tags on an address, which takes them only afterwards
    let set = Tags::from([("custody.dev/owner".to_owned(), "me".to_owned())]);
    let address = &things[2].1;
    assert_eq!(world.client.tag(Kind::Address, address, &set, &["custody.dev/adopted"]).await, Outcome::Done(()));
    assert_eq!(world.client.get(Kind::Address, address).await.unwrap().unwrap().tags, Some(set));
    // and another flavor
    let machine = &things[4].1;
    assert_eq!(world.client.resize(machine, "large").await, Outcome::Done(()));
    let seen = world.client.get(Kind::Machine, machine).await.unwrap().unwrap();
    assert!(matches!(&seen.attributes, Attributes::Machine { flavor, .. } if flavor == "large"));
    assert_eq!(seen.state, State::Building);
    // when the network goes first, then it is in use; in reverse order all go
    assert!(matches!(world.client.delete(Kind::Network, &things[0].1).await, Outcome::Refused(Fault::Transient(_))));
    for (attributes, id) in things.iter().rev() {
        assert_eq!(world.client.delete(attributes.kind(), id).await, Outcome::Done(()));
        assert_eq!(world.client.get(attributes.kind(), id).await, Ok(None));
        assert_eq!(world.client.delete(attributes.kind(), id).await, Outcome::Done(()), "gone is done");
    }
}

#[tokio::test]
async fn a_token_makes_one_thing_however_often_it_is_sent() {
    let world = world().await;
    world.strike("networks", "create", Action::Cut { effect: true });
    assert!(matches!(world.create(&network("n"), None, Some("tok-1")).await, Outcome::Unknown(_)));
    let again = world.create(&network("n"), None, Some("tok-1")).await;
    assert!(matches!(again, Outcome::Done(_)), "{again:?}");
    assert_eq!(world.made(), 1);
    let other = world.create(&network("other"), None, Some("tok-1")).await;
    assert!(matches!(other, Outcome::Refused(Fault::Terminal { .. })), "{other:?}");
}

/// The heart of the matter: `Refused` is said only when nothing happened.
#[tokio::test]
async fn refused_means_that_nothing_happened() {
    let status = |status, effect| Action::Status { status, effect, retry_after_s: None };
    let actions = [
        status(500, false),
        status(500, true),
        status(503, true),
        status(504, true),
        Action::Throttle { retry_after_s: 1 },
        Action::Cut { effect: false },
        Action::Cut { effect: true },
        Action::Hang { ms: 60_000, effect: true },
        Action::Malformed { effect: true },
        Action::Malformed { effect: false },
        Action::Truncated,
    ];
    for action in actions {
        let world = world().await;
        world.strike("networks", "create", action.clone());
        let outcome = world.create(&network("n"), None, Some("tok-1")).await;
        match outcome {
            Outcome::Refused(_) => assert_eq!(world.made(), 0, "{action:?}"),
            Outcome::Unknown(_) => {}
            Outcome::Done(_) => panic!("{action:?} went well"),
        }
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_was_not_sent_to() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let client = client(&closed, TOKEN);
    let fields = network("n").body();
    let creation = Creation { fields: &fields, tags: None, token: None, not_after: later() };
    assert!(matches!(client.create(Kind::Network, creation).await, Outcome::Refused(Fault::Transient(_))));
}

#[tokio::test]
async fn missing_permissions_are_named_and_asking_for_them_changes_nothing() {
    let world = world().await;
    for kind in Kind::ALL {
        let all = world.client.permissions(kind).await;
        assert!(all.iter().all(|(_, allowed)| allowed.is_ok()), "{all:?}");
    }
    world.host.with(|cloud, _| cloud.kit_mut().denials.deny("alice", "machines.update"));
    world.host.with(|cloud, _| cloud.kit_mut().denials.deny("alice", "machines.create"));
    let machines = world.client.permissions(Kind::Machine).await;
    let missing: Vec<_> =
        machines.iter().filter(|(_, allowed)| allowed.is_err()).map(|(name, _)| name.as_str()).collect();
    assert_eq!(missing, ["machines.create", "machines.update"]);
    assert_eq!(world.made(), 0);
    let who = world.client.whoami().await.unwrap();
    assert_eq!((who.account.as_str(), who.principal.as_str()), ("acct-1", "alice"));
}
