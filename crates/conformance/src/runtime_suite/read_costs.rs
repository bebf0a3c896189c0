//! Scenarios for the number of appends that are read.

use helix_agents_core::event::{Event, SCHEMA, encode};
use helix_agents_core::executor::Resumable;
use helix_agents_core::id::RequestId;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{RunStatus, SNAPSHOT_EVENTS, Session, SessionOverview, load};
use helix_agents_core::store::{Append, AppendOutcome, Guard, LeaseChange, StateStore};
use helix_agents_test::{Reply, ScriptedLlm};

use super::support::{S, end, fold, run, teller, until};
use super::{RuntimeHarness, World};
use crate::faults::FaultStore;

const TURNS: usize = 20;

/// A process does not read an append again that it has read before. Otherwise the cost of a turn would grow with the
/// session.
pub async fn a_turn_reads_only_new_events(harness: &impl RuntimeHarness) {
    let store = FaultStore::new(harness.store());
    let replies = (0..TURNS).map(|_| Reply::text("done"));
    let world = World::new(ScriptedLlm::new(replies)).with_store(store.clone());
    let (executor, session) = (harness.boot(world).await, S.into());
    let agent = teller().build().unwrap();
    for _ in 1..TURNS {
        assert_eq!(run(&*executor, &agent, "go").await.status, RunStatus::Completed);
    }
    let before = store.appends_read();
    run(&*executor, &agent, "and once more").await;
    assert_eq!(executor.can_resume(&session).await.unwrap(), Resumable::Ended);
    assert_eq!(executor.pending_calls(&session).await.unwrap(), []);
    let fold = executor.handle(&session).await.unwrap().load_session().await.unwrap();
    assert_eq!(fold.transcript().len(), 2 * TURNS);
    executor.send_message(&session, UserMessage::new("by the way")).await.unwrap();
    let read = store.appends_read() - before;
    let appends = harness.store().read_log(&session, 0, 1000).await.unwrap().len();
    assert!(read < appends / 2, "{read} of {appends} appends were read");
}

/// Number of appends that make the log long.
const APPENDS: u64 = 50;

/// Queues so many messages with each append that the log is long enough for a snapshot.
async fn lengthen(store: &dyn StateStore, fold: &mut Session) {
    for number in 0..APPENDS {
        let message = |index: u64| Event::MessageQueued {
            request: RequestId::from(format!("{number}.{index}")),
            message: UserMessage::new("and then"),
            from: None,
            trace: None,
        };
        let events: Vec<_> = (0..SNAPSHOT_EVENTS / APPENDS).map(message).collect();
        let expected = fold.position().clone();
        events.iter().for_each(|event| fold.apply(event, None).unwrap());
        let append = Append {
            session: S.into(),
            expected,
            id: format!("more {number}").into(),
            run: None,
            schema: SCHEMA,
            count: u32::try_from(events.len()).unwrap(),
            body: encode(&events).unwrap(),
            summary: Some(fold.summary()),
            usage: None,
            lease: LeaseChange::Keep,
            guard: Guard::None,
        };
        let id = append.id.clone();
        match store.append(append).await.unwrap() {
            AppendOutcome::Appended { at } => fold.acknowledge(id, at),
            other => panic!("{other:?}"),
        }
    }
}

/// A run saves a snapshot of a session with a long log. Another process starts from the snapshot and reads only the end
/// of the log.
pub async fn a_process_that_has_not_looked_before_reads_the_end_of_a_long_log(
    harness: &impl RuntimeHarness,
) {
    let (session, store) = (S.into(), harness.store());
    let replies = ["one", "two"].map(Reply::text);
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let agent = teller().build().unwrap();
    assert_eq!(run(&*executor, &agent, "go").await.status, RunStatus::Completed);
    assert_eq!(store.snapshot(&session).await.unwrap(), None, "the log is short");
    lengthen(&*store, &mut fold(harness).await).await;
    assert_eq!(run(&*executor, &agent, "and on").await.status, RunStatus::Completed);
    until(async || store.snapshot(&session).await.unwrap().is_some()).await;
    let snapshot = store.snapshot(&session).await.unwrap().unwrap();
    assert!(snapshot.position.version > SNAPSHOT_EVENTS, "{:?}", snapshot.position);
    assert!(SessionOverview::from_snapshot(&session, &snapshot).is_some());

    let seen = FaultStore::new(harness.store());
    let other = harness.boot(World::new(ScriptedLlm::new([])).with_store(seen.clone())).await;
    let handle = other.handle(&session).await.unwrap();
    assert_eq!(end(&handle).await.status, RunStatus::Completed);
    assert_eq!(handle.usage().await.unwrap().steps, 2);
    assert_eq!(other.pending_calls(&session).await.unwrap(), []);
    other.send_message(&session, UserMessage::new("by the way")).await.unwrap();
    let read = u64::try_from(seen.appends_read()).unwrap();
    assert!(read < APPENDS / 2, "{read} appends of a log of more than {APPENDS} were read");
    let whole = load(&*store, &session).await.unwrap();
    assert_eq!(whole.queued_messages().len(), 1);
}
