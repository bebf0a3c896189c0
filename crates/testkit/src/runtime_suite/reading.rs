//! How much of a log is read.

use helix_agents_core::executor::Resumable;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::RunStatus;

use super::support::{S, run, teller};
use super::{RuntimeHarness, World};
use crate::faults::FaultStore;
use crate::scripted::{Reply, ScriptedLlm};

const TURNS: usize = 20;

/// What the process has seen it does not read again, or the cost of a turn would grow with the session.
pub async fn a_turn_reads_what_is_new(harness: &impl RuntimeHarness) {
    let store = FaultStore::new(harness.store());
    let replies = (0..TURNS).map(|_| Reply::text("done"));
    let world = World::new(ScriptedLlm::new(replies)).on(store.clone());
    let (executor, session) = (harness.boot(world).await, S.into());
    let agent = teller().build().unwrap();
    for _ in 1..TURNS {
        assert_eq!(run(&*executor, &agent, "go").await.status, RunStatus::Completed);
    }
    let before = store.appends_read();
    run(&*executor, &agent, "and once more").await;
    assert_eq!(executor.can_resume(&session).await.unwrap(), Resumable::Ended);
    assert_eq!(executor.pending_calls(&session).await.unwrap(), []);
    let fold = executor.handle(&session).await.unwrap().fold().await.unwrap();
    assert_eq!(fold.transcript().len(), 2 * TURNS);
    executor.send_message(&session, UserMessage::new("by the way")).await.unwrap();
    let read = store.appends_read() - before;
    let appends = harness.store().read_log(&session, 0, 1000).await.unwrap().len();
    assert!(read < appends / 2, "{read} of {appends} appends were read");
}
