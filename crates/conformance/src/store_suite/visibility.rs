//! Scenarios for the visibility of writes to other handles.

use std::sync::Arc;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::store::{
    Append, AppendOutcome, ForkOutcome, LeaseChange, Page, SessionFilter, StateStore,
};
use helix_agents_test::{Gate, within};

use super::StoreHarness;
use super::support::{LONG, Writer, append, first, id, ids, log, root_session, run, running};

/// A handle that wrote to a session returns current data after another handle has appended to the
/// session or deleted it, even if the first handle caches heads.
pub async fn a_handle_that_wrote_sees_what_others_wrote_since(harness: &impl StoreHarness) {
    let (one, other) = (harness.open().await, harness.open().await);
    let mut writer = Writer::create(&one, "s").await;
    let start = Append { summary: Some(running("r1")), ..writer.next("one") };
    writer.take(start).await;
    let stale = writer.next("late");
    writer.store = Arc::clone(&other);
    let taken_over = Append {
        summary: Some(running("r2")),
        lease: LeaseChange::Take(LONG),
        ..writer.next("two")
    };
    writer.take(taken_over).await;

    let outcome = one.append(stale).await.unwrap();
    assert!(matches!(outcome, AppendOutcome::Conflict { .. }), "{outcome:?}");
    let head = one.head(&writer.session).await.unwrap().unwrap();
    assert_eq!((&head.position, head.summary.run), (&writer.position, Some(run("r2"))));
    let listed = one.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(listed[0].position, writer.position);
    assert_eq!(ids(&log(&one, &writer.session).await), ["first", "one", "two"]);
    let renewal = one.renew(&writer.session, &run("r1"), LONG).await.unwrap();
    assert_eq!((renewal.renewed, &renewal.head.position), (false, &writer.position));
    assert!(other.delete(&writer.session).await.unwrap());
    assert_eq!(one.head(&writer.session).await.unwrap(), None);
}

/// A session becomes visible together with its first append. Another handle that finds its head
/// also finds its log, and vice versa.
pub async fn a_session_that_can_be_seen_has_its_first_append(harness: &impl StoreHarness) {
    const SESSIONS: usize = 40;
    let (store, other) = (harness.open().await, harness.open().await);
    let started = Gate::opened();
    let looker = started.clone();
    let looking = tokio::spawn(async move {
        looker.pass().await;
        for number in 0..SESSIONS {
            assert_eq!(seen(&other, number).await, ["first"]);
        }
    });
    started.reached().await;
    for number in 0..SESSIONS {
        Writer::create(&store, &format!("s{number}")).await;
    }
    within(looking).await.unwrap();
}

/// A fork becomes visible together with its whole log. Another handle that finds its head or its
/// log finds all shared appends and the fork's own first append.
pub async fn a_fork_that_can_be_seen_has_its_whole_log(harness: &impl StoreHarness) {
    const FORKS: usize = 40;
    let (store, other) = (harness.open().await, harness.open().await);
    let mut original = Writer::create(&store, "original").await;
    original.add("shared").await;
    let started = Gate::opened();
    let looker = started.clone();
    let looking = tokio::spawn(async move {
        looker.pass().await;
        for number in 0..FORKS {
            assert_eq!(seen(&other, number).await, ["first", "shared", "own"]);
        }
    });
    started.reached().await;
    for number in 0..FORKS {
        let session = id(&format!("s{number}"));
        let own = append(&session, &original.position, "own");
        let own = Append { summary: first(&session, "own").summary, ..own };
        let forked = store.fork(&original.session, root_session(&session), own).await.unwrap();
        assert!(matches!(forked, ForkOutcome::Created { .. }), "{forked:?}");
    }
    within(looking).await.unwrap();
}

/// Waits for a session by its head or by its log, and returns the append ids of its log.
async fn seen(store: &Arc<dyn StateStore>, number: usize) -> Vec<String> {
    let session = id(&format!("s{number}"));
    loop {
        if number.is_multiple_of(2) {
            if let Some(head) = store.head(&session).await.unwrap() {
                let log = log(store, &session).await;
                assert_eq!(log.last().map(|append| append.position()), Some(head.position));
                return ids(&log);
            }
        } else {
            match store.read_log(&session, 0, u32::MAX).await {
                Ok(log) => {
                    assert!(store.head(&session).await.unwrap().is_some(), "the log has no head");
                    return ids(&log);
                }
                Err(error) => assert_eq!(error.code(), ErrorCode::SessionNotFound),
            }
        }
        tokio::task::yield_now().await;
    }
}
