//! Tests of export and import.

use std::sync::Arc;

use helix_agents_conformance::chaos::ChaosStore;
use helix_agents_conformance::faults::{Fault, FaultStore, PAGE};
use helix_agents_core::event::{Event, SCHEMA, encode};
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::session::{
    SessionExport, export_session, import_session, load, load_events,
};
use helix_agents_core::store::{
    Append, AppendOutcome, Guard, LeaseChange, NewSession, Page, Position, SessionFilter,
    StateStore,
};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::Gate;
use serde_json::{Value, json};

use crate::support::{World, calls, code, id, new_session, reply, result, text};

/// Creates a session of several appends, whose run is in progress.
async fn original() -> World {
    let world = World::new();
    let mut journal = world.answered(calls(&["search"])).await;
    for facts in [result("1.0", json!({})), reply(2, text("Done."))] {
        journal.stage(&[facts]).unwrap();
        journal.commit().await.unwrap();
    }
    world
}

async fn exported(world: &World) -> SessionExport {
    let export = export_session(&world.faults, &id()).await.unwrap();
    // The export is written and read again, as through a file.
    serde_json::from_str(&serde_json::to_string(&export).unwrap()).unwrap()
}

#[tokio::test]
async fn an_import_contains_the_same_events_at_the_same_times() {
    let world = original().await;
    let export = exported(&world).await;
    let store = MemoryStore::new();
    import_session(&store, &export).await.unwrap();
    assert_eq!(load_events(&store, &id(), 0).await.unwrap(), world.events().await);
    let (there, here) = (load(&store, &id()).await.unwrap(), world.session().await);
    assert_eq!((there.transcript(), there.summary()), (here.transcript(), here.summary()));
    // The session is as after a crash: any process may continue it immediately.
    let head = store.head(&id()).await.unwrap().unwrap();
    assert_eq!((head.summary, head.lease_until), (here.summary(), None));
}

#[tokio::test]
async fn a_repeated_import_changes_nothing() {
    let world = original().await;
    let export = exported(&world).await;
    let store = MemoryStore::new();
    import_session(&store, &export).await.unwrap();
    let position = load(&store, &id()).await.unwrap().position().clone();
    let request =
        Event::InterruptRequested { request: "q".into(), run: RunId::from("r1"), reason: None };
    let append = Append {
        session: id(),
        expected: position,
        id: AppendId::from("later"),
        run: None,
        schema: SCHEMA,
        count: 1,
        body: encode(&[request]).unwrap(),
        summary: None,
        usage: None,
        lease: LeaseChange::Keep,
        guard: Guard::None,
    };
    assert!(matches!(store.append(append).await.unwrap(), AppendOutcome::Appended { .. }));
    let before = load_events(&store, &id(), 0).await.unwrap();
    import_session(&store, &export).await.unwrap();
    assert_eq!(load_events(&store, &id(), 0).await.unwrap(), before);
}

/// Returns an export whose log takes several appends.
async fn long() -> SessionExport {
    let mut export = serde_json::to_value(exported(&original().await).await).unwrap();
    let events = export["sessions"][0]["events"].as_array_mut().unwrap();
    let last = events.last().unwrap().clone();
    for number in 0..600 {
        let mut event = last.clone();
        event["seq"] = (events.len() + 1).into();
        event["event"] = json!({ "usage_recorded": {
            "source_type": "t", "source_name": number.to_string(), "amount": 1.0, "success": true,
        } });
        events.push(event);
    }
    serde_json::from_value(export).unwrap()
}

/// Checks that the store contains exactly the exported sessions.
async fn check_contains(store: &dyn StateStore, export: &SessionExport) {
    for exported in export.sessions() {
        let events = load_events(store, &exported.session, 0).await.unwrap();
        assert_eq!(events, exported.events);
    }
    let all = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(all.len(), export.sessions().len(), "{all:?}");
    assert!(all.iter().all(|head| !head.is_leased()));
}

#[tokio::test]
async fn a_session_is_imported_as_a_whole_or_not_at_all() {
    let export = long().await;
    let store = FaultStore::new(Arc::new(MemoryStore::new()));
    for word in ["\"session_created\"", "\"300\"", "\"599\""] {
        for fault in [Fault::FailBefore, Fault::LoseReply] {
            let whole = word == "\"599\"" && matches!(fault, Fault::LoseReply);
            store.inject(word, fault);
            assert_eq!(code(import_session(&store, &export).await), "store_unavailable");
            assert_eq!(store.head(&id()).await.unwrap().is_some(), whole, "{word}");
            let listed = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
            let staging = listed.iter().find(|head| head.session != id());
            assert!(staging.is_none_or(|head| head.summary.run.is_none() && !head.is_leased()));
        }
    }
    import_session(&store, &export).await.unwrap();
    check_contains(&store, &export).await;
}

#[tokio::test]
async fn an_import_over_an_unreliable_network_completes_without_duplicates() {
    let export = long().await;
    for seed in 0..20 {
        let store = MemoryStore::new();
        let chaos = ChaosStore::new(Arc::new(store.clone()), seed);
        while let Err(error) = import_session(&chaos, &export).await {
            assert_eq!(error.code().as_str(), "store_unavailable");
            if let Some(head) = store.head(&id()).await.unwrap() {
                assert_eq!(head.position.version, export.sessions()[0].events.len() as u64);
            }
        }
        check_contains(&store, &export).await;
    }
}

#[tokio::test]
async fn the_slower_of_two_concurrent_imports_completes_too() {
    let export = long().await;
    // In the middle of the staging session's appends, and at the append that creates the real
    // session.
    for word in ["\"300\"", "\"599\""] {
        for hold in [Fault::HoldBefore as fn(Gate) -> Fault, Fault::HoldAfter] {
            let (store, gate) = (FaultStore::new(Arc::new(MemoryStore::new())), Gate::new());
            store.inject(word, hold(gate.clone()));
            let slow = {
                let (store, export) = (store.clone(), export.clone());
                tokio::spawn(async move { import_session(&store, &export).await })
            };
            gate.reached().await;
            import_session(&store, &export).await.unwrap();
            gate.open();
            slow.await.unwrap().unwrap();
            check_contains(&store, &export).await;
        }
    }
}

/// The older session is not extended, because it may have continued differently.
#[tokio::test]
async fn an_import_over_an_older_copy_is_refused() {
    let export = long().await;
    let mut older = serde_json::to_value(&export).unwrap();
    older["sessions"][0]["events"].as_array_mut().unwrap().truncate(512);
    let older: SessionExport = serde_json::from_value(older).unwrap();
    let store = MemoryStore::new();
    import_session(&store, &older).await.unwrap();
    assert_eq!(code(import_session(&store, &export).await), "session_exists");
    check_contains(&store, &older).await;
}

#[tokio::test]
async fn an_import_over_another_session_with_the_same_id_is_refused() {
    let export = exported(&original().await).await;
    let other = World::new();
    let _journal = other.create().await;
    assert_eq!(code(import_session(&other.faults, &export).await), "session_exists");
    assert_eq!(other.appends().await.len(), 1);
}

#[tokio::test]
async fn an_inconsistent_export_is_refused_before_anything_is_written() {
    let export = serde_json::to_value(exported(&original().await).await).unwrap();
    let changed = |pointer: &str, value: Value| {
        let mut export = export.clone();
        *export.pointer_mut(pointer).unwrap() = value;
        export
    };
    let twice = json!([export["sessions"][0], export["sessions"][0]]);
    for (case, expected) in [
        (changed("/format", json!("other")), "input_invalid"),
        (changed("/format_version", json!(2)), "input_invalid"),
        (changed("/sessions", json!([])), "input_invalid"),
        (changed("/sessions", twice), "input_invalid"),
        (changed("/sessions/0/session", json!("s-sub-1.0")), "id_invalid"),
        (changed("/sessions/0/created/root", json!("other")), "input_invalid"),
        (changed("/sessions/0/created/parent", json!("other")), "input_invalid"),
        (changed("/sessions/0/created/agent", json!("other")), "input_invalid"),
        (changed("/sessions/0/created/tags", json!({ "owner": "other" })), "input_invalid"),
        (changed("/sessions/0/created/tags", json!({ "": "other" })), "tag_invalid"),
        (changed("/sessions/0/events", json!([])), "input_invalid"),
        (changed("/sessions/0/events/2/seq", json!(7)), "log_invalid"),
        (
            changed("/sessions/0/events/0/event", json!({ "step_closed": { "step": 1 } })),
            "log_invalid",
        ),
    ] {
        let store = MemoryStore::new();
        let export: SessionExport = serde_json::from_value(case.clone()).unwrap();
        assert_eq!(code(import_session(&store, &export).await), expected, "{case}");
        let all = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
        assert_eq!(all.len(), 0);
    }
}

/// The store's clock was set back while the sessions were listed. The list then contains a session, but not its parent.
#[tokio::test]
async fn a_session_without_its_parent_is_not_exported() {
    let world = original().await;
    let before = exported(&world).await;
    let child = SessionId::from("s-sub-9-sub-1");
    let grandchild = SessionId::from("s-sub-9-sub-1-sub-1");
    let summary = world.session().await.summary();
    for (session, parent) in [(grandchild, child.clone()), (child, "s-sub-9".into())] {
        let new = NewSession { parent: Some(parent), ..new_session() };
        let first = Append {
            session,
            expected: Position::start(),
            id: AppendId::from("first"),
            run: None,
            schema: SCHEMA,
            count: 1,
            body: encode(&[Event::StepClosed { step: 1 }]).unwrap(),
            summary: Some(summary.clone()),
            usage: None,
            lease: LeaseChange::Keep,
            guard: Guard::None,
        };
        world.faults.create_session(new, first).await.unwrap();
    }
    let export = exported(&world).await;
    assert_eq!(export, before);
    import_session(&MemoryStore::new(), &export).await.unwrap();
}

/// The session is deleted and imported again, with a longer log, after each read of its export.
#[tokio::test]
async fn an_export_contains_one_log() {
    let longer = World::new();
    let mut journal = longer.answered(calls(&["search"])).await;
    let (one, two) = (result("1.0", json!({})), result("2.0", json!({})));
    for event in [one, reply(2, calls(&["search"])), two, reply(3, text("Done."))] {
        journal.stage(&[event]).unwrap();
        journal.commit().await.unwrap();
    }
    let longer = exported(&longer).await;
    for earlier_reads in 0..3 {
        let world = original().await;
        for _ in 0..earlier_reads {
            world.faults.inject(PAGE, Fault::HoldAfter(Gate::opened()));
        }
        let gate = Gate::new();
        world.faults.inject(PAGE, Fault::HoldAfter(gate.clone()));
        let store = world.faults.clone();
        let export = tokio::spawn(async move { export_session(&store, &id()).await });
        gate.reached().await;
        world.faults.delete(&id()).await.unwrap();
        import_session(&world.faults, &longer).await.unwrap();
        gate.open();
        let export = export.await.unwrap().unwrap();
        let (found, expected) = (&export.sessions()[0].events, &longer.sessions()[0].events);
        assert_eq!(found, expected, "after {earlier_reads} reads");
    }
}

#[tokio::test]
async fn a_missing_session_cannot_be_exported() {
    let store = MemoryStore::new();
    let missing = export_session(&store, &SessionId::from("none")).await;
    assert_eq!(code(missing), "session_not_found");
}
