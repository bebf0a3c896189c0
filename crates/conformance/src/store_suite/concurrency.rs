//! Scenarios for concurrent operations through several handles.

use std::sync::Arc;

use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, Page, Position, SessionFilter,
    StateStore, StoredAppend, Summary,
};
use helix_agents_test::{Gate, within};

use super::StoreHarness;
use super::support::{
    LONG, Writer, append, assert_gapless, child, first, head, id, ids, log, root_session, run,
    running, taken,
};

const RACERS: usize = 16;

/// Runs `racer` once per number, all released at the same moment, on several handles.
async fn race<T, F, R>(harness: &impl StoreHarness, racer: F) -> Vec<T>
where
    T: Send + 'static,
    F: Fn(usize, Arc<dyn StateStore>) -> R,
    R: Future<Output = T> + Send + 'static,
{
    let handles = [harness.open().await, harness.open().await, harness.open().await];
    let gate = Gate::new();
    let mut tasks = Vec::new();
    for number in 0..RACERS {
        let racing = racer(number, Arc::clone(&handles[number % handles.len()]));
        let gate = gate.clone();
        tasks.push(tokio::spawn(async move {
            gate.pass().await;
            racing.await
        }));
    }
    gate.reached_by(RACERS).await;
    gate.open();
    let mut results = Vec::new();
    for task in tasks {
        results.push(within(task).await.unwrap());
    }
    results
}

/// If several callers create a session with the same id concurrently, exactly one succeeds. The
/// head and the log are those of the successful creation.
pub async fn racing_creators_have_exactly_one_winner(harness: &impl StoreHarness) {
    let store = harness.open().await;
    for round in 0..5 {
        let session = id(&format!("s{round}"));
        let outcomes = race(harness, |number, store| {
            let session = session.clone();
            async move {
                let mut new = root_session(&session);
                new.agent = format!("agent {number}").into();
                let first = first(&session, &format!("first {number}"));
                store.create_session(new, first).await.unwrap()
            }
        })
        .await;
        let created = |outcome: &CreateOutcome| matches!(outcome, CreateOutcome::Created { .. });
        let winner = outcomes.iter().position(created).unwrap();
        assert_eq!(outcomes.iter().filter(|outcome| created(outcome)).count(), 1);
        let head = head(&store, &session).await;
        assert_eq!(&*head.created.agent, format!("agent {winner}"));
        assert_eq!(ids(&log(&store, &session).await), [format!("first {winner}")]);
    }
}

/// If children are created with the guard `ParentExists` while the root is deleted, each child is
/// either deleted with the tree or not created.
pub async fn a_deletion_leaves_no_child_that_is_created_concurrently(harness: &impl StoreHarness) {
    let store = harness.open().await;
    for round in 0..5 {
        let root = id(&format!("root {round}"));
        let below = id(&format!("below {round}"));
        Writer::create(&store, root.as_str()).await;
        Writer::create_as(&store, child(&root, &root), first(&below, "first")).await;
        race(harness, |number, store| {
            let (root, below) = (root.clone(), below.clone());
            async move {
                if number == RACERS / 2 {
                    assert!(store.delete(&root).await.unwrap());
                    return;
                }
                let parent = if number % 2 == 0 { &root } else { &below };
                let session = id(&format!("child {round}.{number}"));
                let first = Append { guard: Guard::ParentExists, ..first(&session, "first") };
                let outcome = store.create_session(child(parent, &root), first).await.unwrap();
                assert_ne!(outcome, CreateOutcome::Exists);
            }
        })
        .await;
        let filter = SessionFilter::new().root(root.clone());
        let left = store.list(&filter, &Page::default()).await.unwrap();
        let left: Vec<_> = left.iter().map(|head| head.session.as_str()).collect();
        assert!(left.is_empty(), "round {round}: {left:?}");
    }
}

/// If several writers append at the same position concurrently, exactly one append is accepted. The
/// other writers get a conflict with the accepted append.
pub async fn racing_appends_have_exactly_one_winner(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    for round in 0..10 {
        let outcomes = race(harness, |number, store| {
            let append = writer.next(&format!("{round}/{number}"));
            async move { store.append(append).await.unwrap() }
        })
        .await;
        let appended = |outcome: &AppendOutcome| matches!(outcome, AppendOutcome::Appended { .. });
        let winner = outcomes.iter().position(appended).unwrap();
        let end = writer.head().await.position;
        assert_eq!(end.append.as_str(), format!("{round}/{winner}"));
        for (number, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                AppendOutcome::Appended { .. } => assert_eq!(number, winner),
                AppendOutcome::Conflict { missed } => {
                    assert_eq!(
                        missed.iter().map(StoredAppend::position).collect::<Vec<_>>(),
                        std::slice::from_ref(&end)
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        writer.position = end;
    }
    assert_eq!(writer.log().await.len(), 11);
}

/// If the same append is sent several times concurrently, all calls succeed with the same time, and
/// the append is written once.
pub async fn racing_repetitions_of_one_append_write_it_once(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    for round in 0..5 {
        let append = Append { count: 2, ..writer.next(&format!("a{round}")) };
        let outcomes = race(harness, |_, store| {
            let append = append.clone();
            async move { store.append(append).await.unwrap() }
        })
        .await;
        let at = taken(&outcomes[0]);
        assert!(outcomes.iter().all(|outcome| *outcome == AppendOutcome::Appended { at }));
        writer.position = writer.head().await.position;
        assert_eq!(writer.position.version, 1 + 2 * (round + 1));
    }
    assert_eq!(writer.ids().await, ["first", "a0", "a1", "a2", "a3", "a4"].map(str::to_owned));
}

/// Concurrent writers that retry from the missed appends of a conflict all succeed. No append is
/// lost or duplicated.
pub async fn writers_that_retry_after_conflicts_all_succeed(harness: &impl StoreHarness) {
    const EACH: usize = 5;
    let store = harness.open().await;
    let writer = Writer::create(&store, "s").await;
    race(harness, |number, store| {
        let (session, mut position) = (writer.session.clone(), writer.position.clone());
        async move {
            for turn in 0..EACH {
                let id = format!("{number}/{turn}");
                loop {
                    let outcome = store.append(append(&session, &position, &id)).await.unwrap();
                    match outcome {
                        AppendOutcome::Appended { .. } => break,
                        AppendOutcome::Conflict { missed } => {
                            assert_gapless(position.version, &missed);
                            position = missed.last().unwrap().position();
                        }
                        other => panic!("{other:?}"),
                    }
                }
                position = Position { version: position.version + 1, append: id.as_str().into() };
            }
        }
    })
    .await;
    let mut ids = writer.ids().await;
    assert_eq!(ids.len(), 1 + RACERS * EACH);
    let order: Vec<&String> = ids.iter().filter(|id| id.starts_with("3/")).collect();
    assert_eq!(order, ["3/0", "3/1", "3/2", "3/3", "3/4"]);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 1 + RACERS * EACH);
}

/// Reads during concurrent writes return a log without gaps. No read lacks an append that an
/// earlier read returned.
pub async fn a_reader_sees_only_complete_prefixes_during_writes(harness: &impl StoreHarness) {
    const APPENDS: usize = 60;
    let store = harness.open().await;
    let other = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let session = writer.session.clone();
    let reading = tokio::spawn(async move {
        let mut seen: Vec<StoredAppend> = Vec::new();
        while seen.len() <= APPENDS {
            let now = log(&other, &session).await;
            assert!(now.starts_with(&seen), "a later read missed something");
            seen = now;
            tokio::task::yield_now().await;
        }
        seen
    });
    for number in 0..APPENDS {
        let next = Append {
            count: 1 + u32::try_from(number % 4).unwrap(),
            ..writer.next(&format!("a{number}"))
        };
        writer.take(next).await;
    }
    assert_eq!(within(reading).await.unwrap(), writer.log().await);
}

/// A reader that sees a version sees the summary, the lease and the events of that version.
pub async fn summary_lease_and_events_become_visible_together(harness: &impl StoreHarness) {
    const APPENDS: u32 = 60;
    let store = harness.open().await;
    let other = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let session = writer.session.clone();
    let reading = tokio::spawn(async move {
        loop {
            let head = head(&other, &session).await;
            let version = head.position.version;
            assert_eq!(u64::from(head.summary.pending) + 1, version);
            assert_eq!(head.lease_until.is_some(), version % 2 == 0, "at version {version}");
            let log = log(&other, &session).await;
            assert!(log.iter().any(|append| append.position() == head.position));
            if version == u64::from(APPENDS) + 1 {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    for number in 1..=APPENDS {
        let lease = if number % 2 == 1 { LeaseChange::Take(LONG) } else { LeaseChange::Clear };
        let next = Append {
            summary: Some(Summary { pending: number, ..running("r") }),
            lease,
            ..writer.next(&format!("a{number}"))
        };
        writer.take(next).await;
    }
    within(reading).await.unwrap();
}

/// Renewals and appends of one session can run concurrently: no append is lost, and the lease is
/// extended. A renewal writes the head too, and must not write a stale one.
pub async fn concurrent_renewals_and_appends_lose_neither(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let other = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let start = Append {
        summary: Some(running("r")),
        lease: LeaseChange::Take(LONG),
        ..writer.next("start")
    };
    writer.take(start).await;
    let session = writer.session.clone();
    let renewing = tokio::spawn(async move {
        let mut version = 0;
        for _ in 0..60 {
            let renewal = other.renew(&session, &run("r"), 2 * LONG).await.unwrap();
            assert!(renewal.renewed);
            assert!(renewal.head.position.version >= version);
            version = renewal.head.position.version;
        }
    });
    for number in 0..60 {
        writer.add(&format!("a{number}")).await;
    }
    within(renewing).await.unwrap();
    let head = writer.head().await;
    assert_eq!((&head.position, head.summary.run), (&writer.position, Some(run("r"))));
    assert!(head.lease_until.unwrap() >= head.created_at.after(2 * LONG));
    assert_eq!(writer.log().await.len(), 62);
}

/// Concurrent writers of different sessions do not conflict. The log of each session has its
/// appends in order.
pub async fn sessions_do_not_disturb_each_other(harness: &impl StoreHarness) {
    const EACH: usize = 10;
    let store = harness.open().await;
    race(harness, |number, store| async move {
        let mut writer = Writer::create(&store, &format!("s{number}")).await;
        for turn in 0..EACH {
            writer.add(&format!("{number}/{turn}")).await;
        }
    })
    .await;
    for number in 0..RACERS {
        let ids = ids(&log(&store, &id(&format!("s{number}"))).await);
        let expected = (0..EACH).map(|turn| format!("{number}/{turn}"));
        assert_eq!(ids[1..], expected.collect::<Vec<_>>());
    }
}
