use super::*;
use crate::api::ObjectRef;
use crate::testing::server::SimServer;

#[tokio::test]
async fn a_ledger_that_cannot_be_read_is_not_taken_for_none() {
    let server = SimServer::default();
    let ledgers = Ledgers::new(Objects(Arc::new(server.clone())), Arc::new(Random::seeded(1)));
    let key = Key::new("n", "p");
    let path = mapping().path_of("n", &ledger_name("p"));
    let of_tomorrow = json!({"metadata": {"name": ledger_name("p"), "namespace": "n"},
        "data": {crate::names::LEDGER_DATA: "{\"version\":2,\"policy\":\"p\",\"uid\":\"u\",\"id\":\"x\"}"}});
    let seen = server.lock().world.create(&path, of_tomorrow, "user").unwrap();
    // given a watch that has shown every ledger, one of them of another format
    assert_eq!(ledgers.saw(&seen), None);
    ledgers.complete();
    // then that one policy hears what is wrong, and everybody else has none
    let trouble = ledgers.get(&key).await.unwrap_err();
    assert!(trouble.message.contains(&ledger_name("p")), "{trouble}");
    assert_eq!(ledgers.get(&Key::new("n", "q")).await.unwrap(), None);
    // and nothing waits for it where nothing is pruned
    ledgers.close(&key).await.unwrap();
    ledgers.let_go(&key).await.unwrap();
    assert!(server.lock().world.objects.contains_key(&path));
    // when it is moved out of the way, then there is none
    ledgers.lost(&seen);
    assert_eq!(ledgers.get(&key).await.unwrap(), None);
}
/// A ledger that somebody deletes while our finalizer holds it, in a namespace that is there or on its way out.
async fn doomed(namespace_ends: bool) -> (SimServer, Ledgers, Key, Ledger) {
    let server = SimServer::default();
    let ledgers = Ledgers::new(Objects(Arc::new(server.clone())), Arc::new(Random::seeded(1)));
    let key = Key::new("n", "p");
    let mut metadata = json!({"name": "n", "finalizers": ["kubernetes"]});
    if namespace_ends {
        metadata["deletionTimestamp"] = "2026-11-16T08:00:00Z".into();
    }
    server.lock().world.create("/api/v1/namespaces/n", json!({ "metadata": metadata }), "user").unwrap();
    let mut ledger = ledgers.begin(&key, "uid-1");
    ledgers.save(&key, &mut ledger).await.unwrap();
    let path = mapping().path_of("n", &ledger_name("p"));
    server.lock().world.delete(&path, None).unwrap();
    let ledger = ledgers.fetch(&key).await.unwrap().unwrap();
    (server, ledgers, key, ledger)
}
#[tokio::test]
async fn a_doomed_ledger_is_made_anew_only_where_that_can_be_and_is_of_use() {
    let object = ObjectRef::new("test/v1", "Thing", "n", "a");
    for (namespace_ends, policy_ends, anew) in
        [(false, false, true), (false, true, false), (true, false, false), (true, true, false)]
    {
        let (server, ledgers, key, mut ledger) = doomed(namespace_ends).await;
        ledger.put(&object, true, "7");
        let saved = if policy_ends {
            ledgers.save_to_the_end(&key, &mut ledger).await
        } else {
            ledgers.save(&key, &mut ledger).await
        };
        saved.unwrap();
        let stored = server.lock().world.objects[&mapping().path_of("n", &ledger_name("p"))].clone();
        let case = format!("{namespace_ends} {policy_ends}");
        assert_eq!(stored["metadata"]["deletionTimestamp"].is_null(), anew, "{case}");
        assert!(Ledger::read(&stored).unwrap().find(&object).is_some(), "{case}");
    }
}
#[tokio::test]
async fn what_somebody_wrote_in_meanwhile_is_not_written_over() {
    let (objects, random) = (Objects(Arc::new(SimServer::default())), Arc::new(Random::seeded(1)));
    let (ledgers, key) = (Ledgers::new(objects, random), Key::new("n", "p"));
    let [own, handed] = ["a", "b"].map(|name| ObjectRef::new("test/v1", "Thing", "n", name));
    let mut first = ledgers.begin(&key, "uid-1");
    first.put(&own, true, "");
    ledgers.save(&key, &mut first).await.unwrap();
    // given a pass that holds a copy, while another one hands something over
    let mut copy = ledgers.get(&key).await.unwrap().unwrap();
    first.put(&handed, true, "7");
    ledgers.save(&key, &mut first).await.unwrap();
    // when the pass writes its copy, then it is told to decide anew, and nothing is lost
    copy.remove(&own);
    assert!(ledgers.save(&key, &mut copy).await.unwrap_err().is_conflict());
    let stored = ledgers.fetch(&key).await.unwrap().unwrap();
    assert!(stored.find(&own).is_some() && stored.find(&handed).is_some());
    // and the same pass, begun anew, may write twice
    let mut copy = ledgers.get(&key).await.unwrap().unwrap();
    for uid in ["8", "9"] {
        copy.put(&own, true, uid);
        ledgers.save(&key, &mut copy).await.unwrap();
    }
    assert_eq!(ledgers.fetch(&key).await.unwrap().unwrap().find(&own).unwrap().uid, "9");
}
#[tokio::test]
async fn a_doomed_ledger_is_let_go_of_also_after_a_write_that_failed() {
    let (server, ledgers, key, _) = doomed(true).await;
    let path = mapping().path_of("n", &ledger_name("p"));
    ledgers.complete();
    // given a finalizer that was put before ours, so that ours is not where it was
    server.lock().world.touch(&path, |map| map["metadata"]["finalizers"] = json!(["x/y", LEDGER_FINALIZER]));
    assert!(ledgers.release(&key).await.is_err());
    // when it is tried again, then it is looked at first, and only ours goes
    ledgers.release_ending(&key).await.unwrap();
    assert_eq!(server.lock().world.objects[&path]["metadata"]["finalizers"], json!(["x/y"]));
    // one that nobody wants gone is left alone
    let mut other = ledgers.begin(&Key::new("n", "q"), "uid-2");
    ledgers.save(&Key::new("n", "q"), &mut other).await.unwrap();
    ledgers.release_ending(&Key::new("n", "q")).await.unwrap();
    let path = mapping().path_of("n", &ledger_name("q"));
    assert_eq!(server.lock().world.objects[&path]["metadata"]["finalizers"], json!([LEDGER_FINALIZER]));
    // when the controller itself goes, then it holds nothing any more, and everything is still written there
    let_go_of_all(&Objects(Arc::new(server.clone())), "n").await.unwrap();
    let left = server.lock().world.objects[&path].clone();
    assert!(left["metadata"]["finalizers"] == json!([]) && Ledger::read(&left).is_some(), "{left}");
}
