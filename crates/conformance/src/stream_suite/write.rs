//! Scenarios for writing chunks.

use futures_util::FutureExt as _;
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::state::Patch;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{Attempt, ChunkKind};
use helix_agents_test::{Gate, within};

use super::StreamHarness;
use super::support::{begin, chunk, id, model, numbers, replay, text, texts, write};
use crate::ids::batch_id;
use crate::similar_ids::look_alikes;

/// The chunks of a stream are numbered from 1 without gaps, with or without an attempt. A write returns the number of
/// its last chunk.
pub async fn chunks_are_numbered_from_one_without_gaps(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    assert_eq!(write(&streams, &session, None, &["a"]).await, 1);
    assert_eq!(write(&streams, &session, None, &["b", "c", "d"]).await, 4);
    let attempt = begin(&streams, &session, &model(1)).await;
    assert_eq!(write(&streams, &session, Some(attempt), &["e", "f"]).await, 6);
    let chunks = replay(&streams, &session, 1).await;
    assert_eq!(numbers(&chunks), [1, 2, 3, 4, 5, 6]);
    assert_eq!(texts(&chunks), ["a", "b", "c", "d", "e", "f"]);
}

/// Chunks of every kind, with any text, are read back as they were written.
pub async fn chunks_come_back_as_they_were_written(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("it's \"s\" 🦀");
    let error = ErrorRecord::new(ErrorCode::ToolFailed, "no\nsuch 'thing'");
    let kinds = vec![
        ChunkKind::RunStarted { turn: 1 },
        ChunkKind::RunResumed,
        ChunkKind::TextDelta { delta: "\u{0} \"quoted\" 日本 🦀\r\n".to_owned() },
        ChunkKind::Thinking { content: String::new(), complete: true },
        ChunkKind::ToolArgStart { index: 3, tool: "t".into() },
        ChunkKind::ToolArgDelta { index: 3, delta: "{\"a\":".to_owned() },
        ChunkKind::ToolStart {
            call: "1.0".into(),
            tool: "t".into(),
            arguments: "{}".to_owned(),
            client: true,
        },
        ChunkKind::ToolProgress {
            call: "1.0".into(),
            message: "half".to_owned(),
            fraction: Some(0.1 + 0.2),
        },
        ChunkKind::ToolEnd { call: "1.0".into(), tool: "t".into(), success: false, result: None },
        ChunkKind::ToolError { call: "1.0".into(), tool: "t".into(), error: error.clone() },
        ChunkKind::Custom { name: "n".to_owned(), data: "[1,2.5,null]".to_owned() },
        ChunkKind::StatePatch { patch: Patch::default() },
        ChunkKind::StepCommitted {
            attempts: vec![Attempt(1), Attempt(2)],
            version: u64::from(u32::MAX) + 7,
        },
        ChunkKind::StepDiscarded { attempts: Vec::new() },
        ChunkKind::Checkpoint { version: 5 },
        ChunkKind::Output { output: "{\"a\":1}".to_owned() },
        ChunkKind::Error { error },
        ChunkKind::RunInterrupted { reason: Some("x".to_owned()) },
        ChunkKind::RunEnded { status: "completed".to_owned(), usage: None },
    ];
    let written: Vec<_> = kinds.into_iter().map(|kind| chunk(&session, kind)).collect();
    streams.append_chunks(batch_id(), &session, None, written.clone()).await.unwrap();
    let read = replay(&streams, &session, 1).await;
    assert_eq!(
        read.iter().map(|stored| &*stored.chunk).collect::<Vec<_>>(),
        written.iter().collect::<Vec<_>>()
    );
}

/// A write without chunks returns the number of the last chunk and does not change the stream.
pub async fn writing_nothing_answers_the_last_number(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    assert_eq!(write(&streams, &session, None, &[]).await, 0);
    write(&streams, &session, None, &["a", "b"]).await;
    assert_eq!(write(&streams, &session, None, &[]).await, 2);
    assert_eq!(numbers(&replay(&streams, &session, 1).await), [1, 2]);
}

/// If several writers write batches concurrently, chunk numbers have no gaps and the chunks of a batch are consecutive.
/// The batches of one writer keep their order.
pub async fn batches_of_racing_writers_stay_together(harness: &impl StreamHarness) {
    const WRITERS: usize = 6;
    const BATCHES: usize = 15;
    let gate = Gate::new();
    let session = id("s");
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let (streams, gate, session) = (harness.open().await, gate.clone(), session.clone());
        tasks.push(tokio::spawn(async move {
            gate.pass().await;
            for batch in 0..BATCHES {
                let chunks =
                    (0..3).map(|index| text(&session, &format!("{writer}/{batch}/{index}")));
                streams.append_chunks(batch_id(), &session, None, chunks.collect()).await.unwrap();
            }
        }));
    }
    gate.reached_by(WRITERS).await;
    gate.open();
    for task in tasks {
        within(task).await.unwrap();
    }
    let streams = harness.open().await;
    let chunks = replay(&streams, &session, 1).await;
    let count = u64::try_from(WRITERS * BATCHES * 3).unwrap();
    assert_eq!(numbers(&chunks), (1..=count).collect::<Vec<_>>());
    let texts = texts(&chunks);
    for batch in texts.chunks(3) {
        let name = batch[0].strip_suffix("/0").unwrap();
        assert_eq!(batch, [0, 1, 2].map(|index| format!("{name}/{index}")));
    }
    for writer in 0..WRITERS {
        let own: Vec<_> =
            texts.iter().filter(|text| text.starts_with(&format!("{writer}/"))).collect();
        let expected =
            (0..BATCHES * 3).map(|index| format!("{writer}/{}/{}", index / 3, index % 3));
        assert_eq!(own, expected.collect::<Vec<_>>().iter().collect::<Vec<_>>());
    }
}

/// Streams of different sessions have separate chunks and attempts. A reset of one stream does not change the other.
pub async fn streams_of_different_sessions_do_not_mix(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let (one, other) = (id("one"), id("other"));
    let first = begin(&streams, &one, &model(1)).await;
    begin(&streams, &other, &model(1)).await;
    write(&streams, &one, Some(first), &["a"]).await;
    write(&streams, &other, None, &["x"]).await;
    write(&streams, &one, Some(first), &["b"]).await;
    write(&streams, &other, None, &["y"]).await;
    assert_eq!(texts(&replay(&streams, &one, 1).await), ["a", "b"]);
    assert_eq!(texts(&replay(&streams, &other, 1).await), ["x", "y"]);
    streams.reset(&one).await.unwrap();
    assert_eq!(texts(&replay(&streams, &other, 1).await), ["x", "y"]);
}

/// Streams of sessions with similar ids have separate chunks and numbers.
pub async fn streams_whose_ids_look_alike_are_different(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let texts = look_alikes();
    for session in &texts {
        assert_eq!(write(&streams, &id(session), None, &[session]).await, 1, "{session:?}");
    }
    for session in &texts {
        let chunks = replay(&streams, &id(session), 1).await;
        assert_eq!(self::texts(&chunks), [session.as_str()]);
    }
}

/// A write that was started and is not polled any more does not block another write to the same stream.
pub async fn a_writer_that_is_not_polled_blocks_no_others(harness: &impl StreamHarness) {
    let streams = harness.open().await;
    let session = id("s");
    let mut stands_still = Box::pin(write(&streams, &session, None, &["a"]));
    let at_once = (&mut stands_still).now_or_never();
    within(write(&streams, &session, None, &["b"])).await;
    if at_once.is_none() {
        within(stands_still).await;
    }
    let chunks = replay(&streams, &session, 1).await;
    assert_eq!(numbers(&chunks), [1, 2]);
}
