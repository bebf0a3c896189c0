//! Scenarios for streams whose session was deleted, or whose chunks are missing.

use futures_util::StreamExt as _;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::RunHandle;
use helix_agents_core::session::StreamStatus;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{Chunk, ChunkKind, StoredChunk, StreamInfo, Watermark};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};

use super::support::{
    S, asks, check_stream, child, end, found, helper, report, run, scripts, start_run, teller,
};
use super::{RuntimeHarness, World};
use crate::ids::batch_id;

/// Returns all chunks of a run's stream, which must end.
async fn all(handle: &RunHandle) -> Vec<StoredChunk> {
    let chunks = within(handle.stream()).await.unwrap();
    within(chunks.map(Result::unwrap).collect()).await
}

/// Deleting a session through the executor deletes its stream. The next session with the same id has only its own
/// chunks.
pub async fn a_deleted_session_leaves_no_stream(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::text("one")]))).await;
    let first = start_run(&*executor, &agent, "first").await;
    end(&first).await;
    assert!(executor.delete(&S.into()).await.unwrap());
    assert!(!executor.delete(&S.into()).await.unwrap());
    assert!(harness.store().head(&S.into()).await.unwrap().is_none());
    let left = harness.streams().info(&S.into()).await.unwrap();
    assert_eq!(left, StreamInfo::default());
    let second = start_run(&*executor, &agent, "second").await;
    end(&second).await;
    check_stream(
        &second,
        &expect_test::expect![[r#"
        run_started
        text one
        checkpoint
        output "one"
        run_ended completed
    "#]],
    )
    .await;
    assert!(all(&second).await.iter().all(|stored| stored.chunk.run == *second.run()));
    assert_ne!(first.run(), second.run());
}

/// If a store keeps both sessions and streams, its own `delete` also deletes the stream of the session.
pub async fn deleting_in_the_store_forgets_the_stream_it_keeps(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::text("secret")]))).await;
    run(&*executor, &agent, "first").await;
    assert!(harness.store().delete(&S.into()).await.unwrap());
    let left = harness.streams().info(&S.into()).await.unwrap();
    assert_eq!(left, StreamInfo::default());
}

/// Chunks and a watermark that an earlier session with the same id left in the stream do not hide chunks of the new
/// session. The new stream starts at number 1.
pub async fn leftovers_of_an_earlier_session_hide_no_chunks_of_the_next(
    harness: &impl RuntimeHarness,
) {
    let agent = teller().build().unwrap();
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::text("new")]))).await;
    let origin = Chunk {
        agent: "earlier".into(),
        session: S.into(),
        run: "earlier".into(),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::RunStarted { turn: 1 },
    };
    let streams = harness.streams();
    streams.append_chunks(batch_id(), &S.into(), None, vec![origin.clone()]).await.unwrap();
    let (settled, discarded, boundaries) = (Vec::new(), Vec::new(), Vec::new());
    let mark = Watermark { version: 1000, settled, discarded, origin: origin.into(), boundaries };
    streams.mark(batch_id(), &S.into(), mark).await.unwrap();
    let handle = start_run(&*executor, &agent, "go").await;
    end(&handle).await;
    check_stream(
        &handle,
        &expect_test::expect![[r#"
        run_started
        text new
        checkpoint
        output "new"
        run_ended completed
    "#]],
    )
    .await;
    let mut from_the_start = streams.read(&S.into(), 1).await.unwrap();
    let first = within(from_the_start.next()).await.unwrap().unwrap();
    assert_eq!((first.seq, &first.chunk.run), (1, handle.run()));
}

/// The stream of an ended run ends even if its chunks were reset or deleted. It shows no chunks of the next run.
pub async fn the_stream_of_an_ended_run_ends_whatever_is_left_of_it(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("one"), Reply::text("two")]);
    let executor = harness.boot(World::new(llm)).await;
    let streams = harness.streams();
    let first = start_run(&*executor, &agent, "first").await;
    end(&first).await;
    let whole = all(&first).await;
    assert!(whole.last().unwrap().chunk.kind.ends_run());
    for is_forgotten in [false, true] {
        if is_forgotten {
            let info = streams.info(&S.into()).await.unwrap();
            assert!(streams.forget(&S.into(), &info).await.unwrap());
        } else {
            streams.reset(&S.into()).await.unwrap();
        }
        for handle in [&first, &found(&*executor, &S.into()).await] {
            let left = all(handle).await;
            assert!(
                left.iter().all(|stored| stored.chunk.kind == ChunkKind::StreamResync),
                "{left:?}"
            );
        }
    }
    // The next run has its own chunks, and the stream of the first one ends before them.
    let second = start_run(&*executor, &agent, "second").await;
    end(&second).await;
    let shown = all(&second).await;
    assert!(shown.iter().all(|stored| stored.chunk.run == *second.run()), "{shown:?}");
    assert!(shown.last().unwrap().chunk.kind.ends_run());
    let left = all(&first).await;
    assert!(!left.iter().any(|stored| stored.chunk.run == *second.run()), "{left:?}");
}

/// The stream of an ended child ends even if the stream of the root was reset, both while the root is running and after
/// its end.
pub async fn the_stream_of_an_ended_child_ends_whatever_is_left_of_it(
    harness: &impl RuntimeHarness,
) {
    let helper = helper("helper").build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let gate = Gate::new();
    let llm = scripts([asks(&["helper"]), Reply::text("done").at_gate(&gate)], [report()]);
    let executor = harness.boot(World::new(llm)).await;
    let root = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let below = found(&*executor, &child("1.0")).await;
    assert!(all(&below).await.last().unwrap().chunk.kind.ends_run());
    harness.streams().reset(&S.into()).await.unwrap();
    all(&below).await;
    gate.open();
    end(&root).await;
    all(&below).await;
    assert!(all(&root).await.last().unwrap().chunk.kind.ends_run());
}

/// A reader that has not read all chunks of an ended run ends after the stream was deleted.
pub async fn a_reader_of_a_run_ends_with_it_when_its_stream_is_forgotten(
    harness: &impl RuntimeHarness,
) {
    let agent = teller().build().unwrap();
    let gate = Gate::new();
    let llm = ScriptedLlm::new([Reply::text("one").at_gate(&gate)]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let mut chunks = handle.stream().await.unwrap();
    within(chunks.next()).await.unwrap().unwrap();
    gate.open();
    end(&handle).await;
    let (streams, session) = (harness.streams(), S.into());
    let info = streams.info(&session).await.unwrap();
    assert!(streams.forget(&session, &info).await.unwrap());
    let left: Vec<_> = within(chunks.map(Result::unwrap).collect()).await;
    assert!(left.len() <= 6, "{left:?}");
}

/// The status of a page is active while a run is active, and ended or failed after its end, so a client knows whether
/// to follow the stream.
pub async fn a_page_states_whether_more_chunks_follow(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let gate = Gate::new();
    let fails = Reply::fails(ErrorCode::ProviderUnauthorized);
    let llm = ScriptedLlm::new([Reply::text("one").at_gate(&gate), fails]);
    let executor = harness.boot(World::new(llm)).await;
    let status = async || executor.page(&S.into()).await.unwrap().status;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    assert_eq!(status().await, StreamStatus::Active);
    gate.open();
    end(&handle).await;
    assert_eq!(status().await, StreamStatus::Ended);
    run(&*executor, &agent, "again").await;
    assert_eq!(status().await, StreamStatus::Failed);
}
