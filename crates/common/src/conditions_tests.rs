use super::*;
use crate::engine::owner::OwnerView;
use crate::identity::OwnerId;
use proptest::prelude::*;
use std::time::Duration;

const CONTROLLER: &str = "sample";

fn at(second: i64) -> Timestamp {
    Timestamp::new(second, 700_000_000).unwrap()
}
fn report(progress: Progress) -> Report {
    let view = Some(OwnerView { uid: "u".into(), ..OwnerView::default() });
    Report {
        progress,
        view,
        standing: vec![],
        notes: vec![],
        kept: vec![],
        mirror: None,
        ids: crate::engine::estate::Ids::new(),
    }
}
fn waiting() -> Progress {
    Progress::Waiting { reason: reason::PROGRESSING, message: "port-0 builds".into(), again: Duration::from_secs(10) }
}
fn every_progress() -> Vec<Progress> {
    vec![
        Progress::Done,
        waiting(),
        Progress::Blocked { reason: reason::TAKEOVER_REQUIRED, message: "moved here".into() },
        Progress::Failed(Fault::Transient("502".into())),
        Progress::Failed(Fault::Throttled(Duration::from_secs(3))),
        Progress::Failed(Fault::Denied("networks.list".into())),
        Progress::Failed(Fault::Terminal { reason: reason::INVALID_REQUEST, message: "no such flavor".into() }),
        Progress::Stale("old view".into()),
        Progress::Gone,
    ]
}
fn status_of<'a>(list: &'a [Condition], type_: &str) -> Option<(&'a str, &'a str)> {
    find(list, type_).map(|c| (c.status.as_str(), c.reason.as_str()))
}
fn composed(progress: Progress, old: &[Condition], generation: i64) -> Vec<Condition> {
    compose(&report(progress), old, &Scene::new(CONTROLLER, generation, at(100)))
}

#[test]
fn a_done_pass_is_ready_and_neither_reconciling_nor_stalled() {
    let stuck = composed(Progress::Blocked { reason: reason::EXISTS_UNOWNED, message: "x".into() }, &[], 1);
    let now = composed(Progress::Done, &stuck, 1);
    assert_eq!(status_of(&now, READY), Some(("True", reason::RECONCILED)));
    assert_eq!((status_of(&now, RECONCILING), status_of(&now, STALLED)), (None, None));
    assert_eq!(status_of(&now, PAUSED), Some(("False", "NotPaused")));
}

#[test]
fn waiting_lowers_ready_only_for_a_new_generation() {
    let ready = composed(Progress::Done, &[], 1);
    let same = composed(waiting(), &ready, 1);
    let edited = composed(waiting(), &ready, 2);
    assert_eq!(status_of(&same, READY), Some(("True", reason::RECONCILED)));
    assert_eq!(status_of(&same, RECONCILING), Some(("True", reason::PROGRESSING)));
    assert_eq!(status_of(&edited, READY), Some(("False", reason::PROGRESSING)));
}

#[test]
fn a_fault_that_passes_says_nothing_about_ready() {
    let fault = || Progress::Failed(Fault::Transient("502".into()));
    let ready = composed(Progress::Done, &[], 1);
    let after = composed(fault(), &ready, 2);
    assert_eq!(find(&after, READY), find(&ready, READY), "status, reason, time and generation stay");
    assert_eq!(status_of(&after, RECONCILING), Some(("True", reason::UNAVAILABLE)));
    assert_eq!(status_of(&composed(fault(), &[], 1), READY), Some(("Unknown", reason::UNAVAILABLE)));
}

#[test]
fn what_needs_a_person_is_stalled_with_its_reason() {
    for (progress, why) in [
        (Progress::Blocked { reason: reason::OWNERSHIP_CONFLICT, message: "x".into() }, reason::OWNERSHIP_CONFLICT),
        (Progress::Failed(Fault::Denied("x".into())), reason::PERMISSION_DENIED),
        (Progress::Failed(Fault::Terminal { reason: "Quota", message: "x".into() }), "Quota"),
    ] {
        let now = composed(progress, &composed(Progress::Done, &[], 1), 1);
        assert_eq!(status_of(&now, READY), Some(("False", why)));
        assert_eq!(status_of(&now, STALLED), Some(("True", why)));
        assert_eq!(status_of(&now, RECONCILING), None);
    }
}

#[test]
fn a_paused_owner_keeps_its_ready_and_is_not_stuck() {
    let ready = composed(Progress::Done, &[], 1);
    let progress = Progress::Blocked { reason: reason::PAUSED, message: "by annotation".into() };
    let now = composed(progress, &ready, 2);
    assert_eq!(status_of(&now, PAUSED), Some(("True", reason::PAUSED)));
    assert_eq!(find(&now, READY), find(&ready, READY));
    assert_eq!((status_of(&now, STALLED), status_of(&now, RECONCILING)), (None, None));
}

#[test]
fn a_pause_does_not_hide_that_an_owner_is_not_served_here() {
    let ready = composed(Progress::Done, &[], 1);
    for why in [reason::MOVE_UNFINISHED, reason::TAKEOVER_REQUIRED, reason::PEER_CONTROLLER] {
        let report = report(Progress::Blocked { reason: why, message: "not here".into() });
        let scene = Scene { paused: Some("the Cluster is paused"), ..Scene::new(CONTROLLER, 1, at(100)) };
        let now = compose(&report, &ready, &scene);
        assert_eq!(status_of(&now, PAUSED), Some(("True", reason::PAUSED)));
        assert_eq!(status_of(&now, STALLED), Some(("True", why)));
        assert_eq!(status_of(&now, READY), Some(("False", why)));
    }
}

#[test]
fn the_same_trouble_under_another_request_id_is_no_news() {
    let quota = |request: &str| {
        Progress::Failed(Fault::Terminal {
            reason: "QuotaExceeded",
            message: format!("no more disks (HTTP 403, request {request})"),
        })
    };
    let first = composed(quota("a1"), &[], 1);
    let again = composed(quota("b2"), &first, 1);
    assert!(!differ(&first, &again), "{again:?}");
    let other = Fault::Terminal { reason: "QuotaExceeded", message: "no more disks (HTTP 400, request a1)".into() };
    assert!(differ(&first, &composed(Progress::Failed(other), &first, 1)));
}

#[test]
fn deleting_names_what_is_left() {
    let mut report = report(waiting());
    report.view.as_mut().unwrap().deleting = true;
    let piece = |i: usize| Standing {
        slot: format!("port-{i}").parse().unwrap(),
        id: Some(format!("p{i}")),
        state: "deleting",
        message: String::new(),
    };
    report.standing = (0..10).map(piece).collect();
    let now = compose(&report, &composed(Progress::Done, &[], 1), &Scene::new(CONTROLLER, 1, at(100)));
    assert_eq!(status_of(&now, READY), Some(("False", reason::DELETING)));
    assert_eq!(status_of(&now, RECONCILING), Some(("True", reason::DELETING)));
    let message = &find(&now, READY).unwrap().message;
    assert!(message.starts_with("10 left: port-0 (p0, deleting), "), "{message}");
    assert!(message.contains("2 more"), "{message}");
}

#[test]
fn a_stale_pass_changes_nothing() {
    let old = composed(waiting(), &[], 1);
    assert_eq!(composed(Progress::Stale("x".into()), &old, 2), old);
}

#[test]
fn the_time_moves_only_with_the_status_and_has_whole_seconds() {
    let first = composed(Progress::Done, &[], 1);
    let later = compose(&report(Progress::Done), &first, &Scene::new(CONTROLLER, 1, at(200)));
    assert!(!differ(&first, &later));
    let lowered = Progress::Failed(Fault::Denied("x".into()));
    let later = compose(&report(lowered), &first, &Scene::new(CONTROLLER, 1, at(300)));
    assert_eq!(find(&later, READY).unwrap().last_transition_time.0, Timestamp::new(300, 0).unwrap());
}

#[test]
fn foreign_entries_survive_every_outcome_and_the_list_is_sorted() {
    let foreign = dated(
        Statement::new("example.org/Other", Tri::True, "Theirs", "hands off"),
        None,
        &Scene::new(CONTROLLER, 9, at(7)),
    );
    for progress in every_progress() {
        let now = composed(progress, std::slice::from_ref(&foreign), 1);
        assert_eq!(find(&now, "example.org/Other"), Some(&foreign));
        assert!(now.is_sorted_by(|a, b| a.type_ <= b.type_));
    }
}

#[test]
fn composing_twice_changes_nothing_more() {
    for progress in every_progress() {
        let once = composed(progress.clone(), &[], 3);
        assert!(!differ(&once, &composed(progress, &once, 3)));
    }
}

#[test]
fn a_sticky_condition_is_never_lowered() {
    let own = |status| [Statement::new("Provisioned", status, "Because", "")];
    let (up, down) = (own(Tri::True), own(Tri::False));
    let scene = |own| Scene { own, sticky: &["Provisioned"], ..Scene::new(CONTROLLER, 1, at(1)) };
    let first = compose(&report(waiting()), &[], &scene(&down));
    assert_eq!(status_of(&first, "Provisioned"), Some(("False", "Because")));
    let raised = compose(&report(Progress::Done), &first, &scene(&up));
    let after = compose(&report(waiting()), &raised, &scene(&down));
    assert_eq!(status_of(&after, "Provisioned"), Some(("True", "Because")));
}

#[test]
fn the_mirror_is_never_taken_off_and_never_goes_back() {
    let (ours, forged) = (OwnerId::from_bits([7; 16]), OwnerId::from_bits([8; 16]));
    let of = |owner, seq| {
        let mut r = report(Progress::Done);
        r.mirror = Some(Mirror { owner, seq, scope: "acct-1/here".into(), records: "vpc created v-1".into() });
        r
    };
    let scene = Scene::new(CONTROLLER, 1, at(1));
    let at_five = compose(&of(ours, 5), &[], &scene);
    let then = |report: &Report| {
        let mirror = mirror_in(&compose(report, &at_five, &scene), CONTROLLER).unwrap();
        (mirror.owner, mirror.seq)
    };
    assert_eq!(then(&report(waiting())), (ours, 5));
    assert_eq!(then(&of(ours, 4)), (ours, 5));
    assert_eq!(then(&of(ours, 6)), (ours, 6));
    // an owner id that somebody wrote over ours has the ledger of ours
    assert_eq!(then(&of(forged, 5)), (ours, 5));
    assert_eq!(then(&of(forged, 4)), (ours, 5));
    assert_eq!(then(&of(forged, 6)), (forged, 6));
}

proptest! {
    #[test]
    fn a_mirror_comes_back_as_written(bits: [u8; 16], seq: u64, records in "[ -~]{0,200}") {
        let mirror = Mirror { owner: OwnerId::from_bits(bits), seq, scope: "acct/region".into(), records };
        prop_assert_eq!(parse_mirror(&format_mirror(&mirror)), Some(mirror));
    }
    #[test]
    fn no_text_makes_the_parser_fail_otherwise_than_by_none(text in "\\PC{0,120}") {
        let _ = parse_mirror(&text);
        let _ = parse_mirror(&format!("owner {text}"));
    }
    #[test]
    fn a_cut_text_is_short_and_whole(text in "\\PC{0,80}", most in 3_usize..60) {
        prop_assert!(cut(&text, most).len() <= most.max(3));
    }
}

#[test]
fn a_long_mirror_is_bounded_and_still_read() {
    let mirror =
        Mirror { owner: OwnerId::from_bits([1; 16]), seq: 3, scope: String::new(), records: "ü".repeat(9000) };
    let message = format_mirror(&mirror);
    assert!(message.len() <= MOST_MESSAGE);
    assert_eq!(parse_mirror(&message).unwrap().seq, 3);
}

#[test]
fn hostile_mirrors_are_refused() {
    let id = "00".repeat(16);
    for bad in [
        String::new(),
        "owner".into(),
        format!("owner {id} seq : x"),
        format!("owner {id} seq +3: x"),
        format!("owner {id} seq 99999999999999999999: x"),
        format!("owner {} seq 1: x", "G".repeat(32)),
        format!(" owner {id} seq 1: x"),
        format!("owner {id} seq 1: {}", "x".repeat(3 * MOST_MESSAGE)),
    ] {
        assert_eq!(parse_mirror(&bad), None, "{}", cut(&bad, 60));
    }
}
