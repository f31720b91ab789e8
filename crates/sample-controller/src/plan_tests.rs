use super::*;
use crate::api::{AddressSpec, DiskSpec, MachineSpec, NetworkSpec, RouteSpec};
use crate::cloud::State;
use crate::estate::KINDS;
use jiff::Timestamp;

fn network(name: &str) -> NetworkSpec {
    NetworkSpec { name: name.into(), cidr: Some("10.0.0.0/16".into()), ..NetworkSpec::default() }
}
fn disk(name: &str) -> DiskSpec {
    DiskSpec { name: name.into(), size_gb: Some(10), ..DiskSpec::default() }
}
fn address(name: &str, network: &str, label: &str) -> AddressSpec {
    AddressSpec { name: name.into(), network: network.into(), label: label.into(), adopt: None }
}
fn route(name: &str, network: &str, destination: &str) -> RouteSpec {
    let (destination, next_hop) = (destination.into(), "10.0.0.1".into());
    RouteSpec { name: name.into(), network: network.into(), destination, next_hop }
}
fn machine(name: &str, network: &str, disk: Option<&str>) -> MachineSpec {
    let disk = disk.map(str::to_owned);
    MachineSpec { name: name.into(), network: network.into(), disk, flavor: "small".into() }
}
/// One of everything.
fn full() -> SampleOwnerSpec {
    SampleOwnerSpec {
        control_plane_endpoint: None,
        networks: vec![network("main")],
        disks: vec![disk("data")],
        addresses: vec![address("vip", "main", "api")],
        routes: vec![route("out", "main", "0.0.0.0/0")],
        machines: vec![machine("web", "main", Some("data")), machine("bare", "main", None)],
    }
}
fn slot(text: &str) -> Slot {
    text.parse().unwrap()
}
fn draft(piece: &Piece) -> Option<&Draft> {
    match &piece.want {
        Want::Make { draft, .. } => draft.as_ref(),
        Want::Use { .. } => None,
    }
}
fn problems(spec: &SampleOwnerSpec) -> Vec<Problem> {
    Plan::of("ns", "o", spec).problems().cloned().collect()
}

#[test]
fn for_every_set_of_known_ids_a_draft_is_there_exactly_if_all_it_needs_is_known() {
    // given one of everything, and every subset of its ids
    let plan = Plan::of("ns", "o", &full());
    let slots: Vec<Slot> = plan.pieces(&Ids::new()).into_iter().map(|piece| piece.slot).collect();
    assert_eq!(slots.len(), 6);
    for known in 0..1_u32 << slots.len() {
        let chosen = slots.iter().enumerate().filter(|(n, _)| known & (1 << n) != 0);
        let ids: Ids = chosen.map(|(n, slot)| (slot.clone(), format!("id-{n}"))).collect();
        // when the pieces are asked for
        for piece in plan.pieces(&ids) {
            // then a draft waits for nothing but its needs, and carries their ids
            assert_eq!(
                draft(&piece).is_some(),
                piece.needs.iter().all(|need| ids.contains_key(need)),
                "{}",
                piece.slot
            );
            if let Some(draft) = draft(&piece) {
                assert!(piece.needs.iter().all(|need| draft.params.to_string().contains(&ids[need])), "{draft:?}");
            }
        }
    }
}

#[test]
fn every_piece_needs_only_lower_ranks() {
    let rank = |slot: &Slot| KINDS.iter().find(|kind| kind.name == slot.kind()).unwrap().rank;
    for piece in Plan::of("ns", "o", &full()).pieces(&Ids::new()) {
        assert!(piece.needs.iter().all(|need| rank(need) < rank(&piece.slot)), "{}", piece.slot);
    }
}

#[test]
fn a_draft_is_what_the_cloud_is_asked_for() {
    let ids = Ids::from([(slot("network-main"), "network-1".to_owned()), (slot("disk-data"), "disk-1".to_owned())]);
    let pieces = Plan::of("ns", "o", &full()).pieces(&ids);
    let shown: Vec<String> = pieces
        .iter()
        .map(|piece| format!("{} {} {}", piece.slot, draft(piece).unwrap().key, draft(piece).unwrap().params))
        .collect();
    assert_eq!(
        shown,
        [
            r#"address-vip network-1/label/api {"label":"api","network_id":"network-1"}"#,
            r#"disk-data name/ns.o.data {"name":"ns.o.data","size_gb":10}"#,
            r#"machine-bare name/ns.o.bare {"flavor":"small","name":"ns.o.bare","network_id":"network-1"}"#,
            r#"machine-web name/ns.o.web {"disk_id":"disk-1","flavor":"small","name":"ns.o.web","network_id":"network-1"}"#,
            r#"network-main name/ns.o.main {"cidr":"10.0.0.0/16","name":"ns.o.main"}"#,
            r#"route-out network-1/to/0.0.0.0/0 {"destination":"0.0.0.0/0","network_id":"network-1","next_hop":"10.0.0.1"}"#,
        ]
    );
}

#[test]
fn what_is_used_is_asked_for_by_id_and_what_is_adopted_by_its_name() {
    // given a network that is used and a disk to adopt
    let used = NetworkSpec { name: "main".into(), use_id: Some("network-9".into()), ..NetworkSpec::default() };
    let adopted = DiskSpec { adopt: Some(Adopt::Release), cloud_name: Some("theirs".into()), ..disk("data") };
    let spec = SampleOwnerSpec { networks: vec![used], disks: vec![adopted], ..SampleOwnerSpec::default() };
    // when
    let pieces = Plan::of("ns", "o", &spec).pieces(&Ids::new());
    // then
    let find = |text: &str| pieces.iter().find(|piece| piece.slot == slot(text)).unwrap();
    assert_eq!(find("network-main").want, Want::Use { id: "network-9".into() });
    let disk = find("disk-data");
    assert_eq!(draft(disk).unwrap().key, "name/theirs");
    assert!(matches!(disk.want, Want::Make { adopt: Some(Then::Release), .. }));
}

#[test]
fn each_thing_that_cannot_be_served_is_named() {
    let spec = |change: fn(&mut SampleOwnerSpec)| {
        let mut spec = full();
        change(&mut spec);
        spec
    };
    let cases: [(SampleOwnerSpec, &str); 8] = [
        (spec(|s| s.networks.push(network("main"))), "two items are called network-main"),
        (
            spec(|s| s.addresses.push(address("a", "other", "x"))),
            "address-a names network \"other\", which is not in the spec",
        ),
        (
            spec(|s| s.machines.push(machine("m", "main", Some("no")))),
            "machine-m names disk \"no\", which is not in the spec",
        ),
        (
            spec(|s| s.addresses.push(address("b", "main", "api"))),
            "address-vip and address-b would be the same thing: label api in network-main",
        ),
        (
            spec(|s| s.routes.push(route("b", "main", "0.0.0.0/0"))),
            "route-out and route-b would be the same thing: destination 0.0.0.0/0 in network-main",
        ),
        (
            spec(|s| s.networks[0].use_id = Some("network-1".into())),
            "network-main must say either what to make or what to use",
        ),
        (spec(|s| s.disks[0].size_gb = None), "disk-data must say either what to make or what to use"),
        (spec(|s| s.networks.push(network("UPPER"))), "network \"UPPER\": a slot is"),
    ];
    for (spec, said) in cases {
        let plan = Plan::of("ns", "o", &spec);
        let problem = plan.problem().unwrap_or_default();
        assert!(problem.contains(said), "{problem:?} does not say {said:?}");
    }
    assert_eq!(problems(&full()), []);
}

#[test]
fn two_names_for_one_cloud_name_are_one_thing() {
    let shared = |name: &str| NetworkSpec { cloud_name: Some("shared".into()), ..network(name) };
    let spec = SampleOwnerSpec { networks: vec![shared("a"), shared("b")], ..SampleOwnerSpec::default() };
    assert!(matches!(&problems(&spec)[..], [Problem::SameThing { .. }]));
}

#[test]
fn a_thing_may_be_meant_only_where_a_piece_would_stand() {
    let plan = Plan::of("ns", "o", &full());
    let item = |id: &str, attributes: Attributes| Item {
        id: id.into(),
        attributes,
        tags: None,
        created_at: Timestamp::UNIX_EPOCH,
        created_by: String::new(),
        state: State::Ready,
        state_reason: None,
    };
    let address = |network_id: &str, label: &str| {
        item("address-1", Attributes::Address { network_id: network_id.into(), label: label.into() })
    };
    let ours = "network-1".to_owned();
    let networks = BTreeSet::from([&ours]);
    assert!(plan.may_mean(&address("network-1", "api"), &networks));
    assert!(!plan.may_mean(&address("network-2", "api"), &networks), "another network");
    assert!(!plan.may_mean(&address("network-1", "web"), &networks), "another label");
    let disk = |name: &str| item("disk-1", Attributes::Disk { name: name.into(), size_gb: 10 });
    assert!(plan.may_mean(&disk("ns.o.data"), &networks) && !plan.may_mean(&disk("data"), &networks));
    let named_alike = item("machine-1", Attributes::Network { name: "ns.o.web".into(), cidr: String::new() });
    assert!(!plan.may_mean(&named_alike, &networks), "a network is no machine");
}

#[test]
fn the_flavor_of_a_machine_is_known_by_its_slot() {
    let plan = Plan::of("ns", "o", &full());
    assert_eq!(plan.flavor(&slot("machine-web")), Some("small"));
    assert_eq!(plan.flavor(&slot("disk-data")), None);
}
