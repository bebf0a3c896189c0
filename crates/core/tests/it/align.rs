//! Tests of stream repair while other runs continue the session.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use expect_test::expect;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use helix_agents_conformance::faults::{Fault, PAGE};
use helix_agents_conformance::ids::batch_id;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{ErrorCode, ErrorRecord, Result};
use helix_agents_core::event::{Event, ToolFinish, ToolOutcome};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{
    Journal, MessageOrigin, SessionReader, StartOutcome, StreamRepair, abort_events,
    delete_session, plan_stream_repair, queue_message, repair_ended_stream, rewind_events,
};
use helix_agents_core::store::StateStore as _;
use helix_agents_core::stream::{
    Attempt, Batch, BatchReceipt, Chunk, ChunkKind, ChunkStream, Effect, StreamInfo, StreamManager,
    StreamOp, Watermark, Writer,
};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::Gate;
use serde_json::json;

use crate::support::{World, agent, calls, first_events, id, reply, result, start_run, text};

/// A stream that runs a future right before it returns its information.
struct BeforeInfo {
    inner: MemoryStore,
    action: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl BeforeInfo {
    fn new(inner: &MemoryStore, action: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { inner: inner.clone(), action: Mutex::new(Some(Box::pin(action))) }
    }
}

impl fmt::Debug for BeforeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl StreamManager for BeforeInfo {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.inner.write(stream, batch).await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.inner.read(stream, from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        let action = self.action.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(action) = action {
            action.await;
        }
        self.inner.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.inner.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.inner.forget(stream, seen).await
    }
}

fn world() -> World {
    World { lease: Duration::ZERO, ..World::new() }
}

/// Begins an attempt of a call on behalf of that run.
async fn try_call(streams: &dyn StreamManager, run: &str, call: &str) -> Attempt {
    try_call_as(streams, Writer::without_run(&id()), run, call).await
}

async fn try_call_as(
    streams: &dyn StreamManager,
    writer: Writer,
    run: &str,
    call: &str,
) -> Attempt {
    let (effect, origin) = (Effect::Tool { call: call.into() }, origin(run));
    let operation = StreamOp::Begin { effect, origin: origin.into() };
    streams.write(&id(), Batch::new(batch_id(), writer, [operation])).await.unwrap().started[0]
}

/// Writes a watermark for everything that the journal's run has recorded.
async fn mark(streams: &dyn StreamManager, journal: &Journal, run: &str) {
    let (settled, discarded, boundaries) = (Vec::new(), Vec::new(), Vec::new());
    let (version, origin) = (journal.acknowledged(), origin(run));
    let watermark = Watermark { version, settled, discarded, origin: origin.into(), boundaries };
    let watermark = StreamOp::Watermark(Box::new(watermark));
    let batch = Batch::new(batch_id(), journal.session().stream_writer(), [watermark]);
    streams.write(&id(), batch).await.unwrap();
}

fn closed(step: u32) -> Event {
    Event::StepClosed { step }
}

fn origin(run: &str) -> Chunk {
    Chunk {
        agent: "tester".into(),
        session: id(),
        run: RunId::from(run),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::StepDiscarded { attempts: Vec::new() },
    }
}

/// Returns the name of the chunk's kind.
fn kind(chunk: &Chunk) -> String {
    let kind = serde_json::to_value(&chunk.kind).unwrap();
    kind.get("type").and_then(|name| name.as_str()).unwrap_or("no type").to_owned()
}

/// Returns the names of all chunks that the stream shows.
async fn shown(streams: &dyn StreamManager) -> String {
    let last = streams.info(&id()).await.unwrap().last_seq;
    let chunks = streams.read(&id(), 1).await.unwrap().take(usize::try_from(last).unwrap());
    let kinds: Vec<_> = chunks.map(|stored| kind(&stored.unwrap().chunk)).collect().await;
    kinds.join(", ")
}

/// Repairs the stream of the session, which has no current run.
async fn repair_ended(world: &World, streams: &dyn StreamManager) -> Result<()> {
    let reader = SessionReader::of(&world.faults);
    repair_ended_stream(reader, streams, &*world.clock, &*world.counter, &id()).await
}

async fn open(streams: &dyn StreamManager) -> Vec<Attempt> {
    let info = streams.info(&id()).await.unwrap();
    info.open.iter().map(|open| open.attempt).collect()
}

/// The session has no run when it is first read. Then a run starts and shows something.
#[tokio::test]
async fn attempts_of_a_run_that_started_meanwhile_are_not_discarded() {
    let world = world();
    let mut journal = world.answered(text("Done.")).await;
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    let (memory, other) = (MemoryStore::new(), world.clone());
    let inner = memory.clone();
    let streams = BeforeInfo::new(&memory, async move {
        let session = other.session().await;
        let events = first_events(&session, "r2");
        let mut journal = Journal::new(other.journal_config(), agent(), session, "r2".into());
        journal.start(events).await.unwrap();
        try_call(&inner, "r2", "2.0").await;
    });
    repair_ended(&world, &streams).await.unwrap();
    assert_eq!(open(&memory).await, [Attempt(1)]);
}

/// The run is replaced before it reads the stream.
#[tokio::test]
async fn a_replaced_run_discards_nothing_of_its_successor() {
    let world = world();
    world.answered(calls(&["search"])).await;
    let journal = world.taken_over("r2").await;
    let (memory, other) = (MemoryStore::new(), world.clone());
    try_call(&memory, "r1", "1.0").await;
    let before = journal.acknowledged() - 1;
    let repair = async |streams: &dyn StreamManager| {
        let session = journal.session();
        plan_stream_repair(&world.faults, streams, &*world.clock, session, before).await.unwrap()
    };
    let StreamRepair { discarded, .. } = repair(&memory).await;
    assert_eq!(discarded, [Attempt(1)], "the attempt of its predecessor is discarded");
    let inner = memory.clone();
    let streams = BeforeInfo::new(&memory, async move {
        let writer = other.taken_over("r3").await.session().stream_writer();
        try_call_as(&inner, writer, "r3", "1.0").await;
    });
    let StreamRepair { settled, discarded, .. } = repair(&streams).await;
    assert_eq!((settled, discarded), (Vec::new(), Vec::new()));
}

/// The new session's log has other events at the same versions.
#[tokio::test]
async fn the_repair_for_a_deleted_session_does_not_read_the_log_of_a_new_one() {
    let world = world();
    world.create().await;
    let journal = world.taken_over("r2").await;
    assert!(world.faults.delete(&id()).await.unwrap());
    world.create().await;
    let (session, version) = (journal.session(), journal.acknowledged());
    let memory = MemoryStore::new();
    let repair = plan_stream_repair(&world.faults, &memory, &*world.clock, session, version).await;
    assert_eq!(repair.unwrap_err().code(), ErrorCode::SessionNotFound);
}

/// A replaced run records a result late, and yet another run takes over before its predecessor shows the result.
#[tokio::test]
async fn a_late_result_before_another_takeover_is_shown_without_its_attempt() {
    let world = world();
    let mut late = world.answered(calls(&["search"])).await;
    let memory = MemoryStore::new();
    try_call_as(&memory, late.session().stream_writer(), "r1", "1.0").await;
    world.taken_over("r2").await;
    late.stage(&[result("1.0", json!({"found": 1}))]).unwrap();
    assert_eq!(late.commit().await.unwrap_err().code(), ErrorCode::Superseded);
    let journal = world.taken_over("r3").await;
    let before = journal.acknowledged() - 1;
    let session = journal.session();
    let found =
        plan_stream_repair(&world.faults, &memory, &*world.clock, session, before).await.unwrap();
    assert_eq!((found.settled, found.discarded), (Vec::new(), vec![Attempt(1)]));
    let shown: Vec<_> = found.boundaries.iter().map(|boundary| kind(&boundary.chunk)).collect();
    assert_eq!(shown, ["run_started", "run_resumed", "tool_start", "tool_end"]);
}

/// The last run executed the call, too, and crashed before it discarded its attempt.
#[tokio::test]
async fn an_attempt_of_the_last_run_is_discarded_if_an_earlier_run_recorded_the_result() {
    let world = world();
    let mut late = world.answered(calls(&["search"])).await;
    let mut journal = world.taken_over("r2").await;
    let memory = MemoryStore::new();
    try_call_as(&memory, journal.session().stream_writer(), "r2", "1.0").await;
    late.stage(&[result("1.0", json!({"found": 1}))]).unwrap();
    assert_eq!(late.commit().await.unwrap_err().code(), ErrorCode::Superseded);
    journal.catch_up().await.unwrap();
    journal.stage(&[closed(1)]).unwrap();
    journal.commit().await.unwrap();
    mark(&memory, &journal, "r2").await;
    let (session, version) = (journal.session(), journal.acknowledged());
    let found =
        plan_stream_repair(&world.faults, &memory, &*world.clock, session, version).await.unwrap();
    assert_eq!((found.settled, found.discarded), (Vec::new(), vec![Attempt(1)]));
}

/// The previous runs crashed before they showed anything.
#[tokio::test]
async fn an_empty_stream_shows_all_runs_of_the_open_turn() {
    let world = world();
    world.create().await;
    world.taken_over("r2").await;
    let journal = world.taken_over("r3").await;
    let before = journal.acknowledged() - 1;
    let memory = MemoryStore::new();
    let session = journal.session();
    let found =
        plan_stream_repair(&world.faults, &memory, &*world.clock, session, before).await.unwrap();
    let shown: Vec<_> = found.boundaries.into_iter().map(|boundary| boundary.chunk).collect();
    let shown: Vec<_> = shown.iter().map(|chunk| (chunk.run.as_str(), &chunk.kind)).collect();
    assert_eq!(shown, [("r1", &ChunkKind::RunStarted { turn: 1 }), ("r2", &ChunkKind::RunResumed)]);
}

/// The session is aborted after its owner crashed without showing anything. Only the root's stream
/// can show the abort.
#[tokio::test]
async fn an_empty_stream_shows_the_abort_of_a_session() {
    let world = world();
    world.answered(calls(&["search"])).await;
    let session = world.session().await;
    let events = abort_events(&session, &start_run("r2"), "q".into(), None).unwrap();
    let mut journal = Journal::new(world.journal_config(), agent(), session, "r2".into());
    journal.stage(&events).unwrap();
    journal.end_run().unwrap();
    assert_eq!(journal.start(Vec::new()).await.unwrap(), StartOutcome::Started);
    let (request, message) = ("q2".into(), UserMessage::from("by the way"));
    queue_message(world.request_context(), &id(), &request, &message, MessageOrigin::default())
        .await
        .unwrap();
    let memory = MemoryStore::new();
    repair_ended(&world, &memory).await.unwrap();
    expect!["run_started, run_resumed, tool_error, tool_end, checkpoint, run_ended"]
        .assert_eq(&shown(&memory).await);
}

/// A call is answered without running its tool. The run crashes before it shows the result, and the session is rewound.
#[tokio::test]
async fn a_result_is_shown_although_its_call_was_rewound() {
    let world = world();
    let mut journal = world.answered(calls(&["search"])).await;
    journal.stage(&[result("1.0", json!({"found": 1})), closed(1)]).unwrap();
    journal.commit().await.unwrap();
    let checkpoint = journal.acknowledged();
    let memory = MemoryStore::new();
    mark(&memory, &journal, "r1").await;
    // The tool is still running when its call is answered.
    let attempt = try_call_as(&memory, journal.session().stream_writer(), "r1", "2.0").await;
    let outcome = ToolOutcome::Error(ErrorRecord::new(ErrorCode::ToolDenied, "it was denied"));
    let denied = Event::from(ToolFinish::without_run("2.0".into(), outcome));
    journal.stage(&[reply(2, calls(&["search"])), denied, closed(2)]).unwrap();
    journal.commit().await.unwrap();
    let (session, start) = (world.session().await, start_run("r2"));
    let after = RunId::from("r1");
    let events = rewind_events(&session, &agent(), &start, Some(&after), checkpoint, None).unwrap();
    let mut journal = Journal::new(world.journal_config(), agent(), session, start.run);
    assert_eq!(journal.start(events).await.unwrap(), StartOutcome::Started);

    let (session, version) = (world.session().await, journal.acknowledged());
    let found =
        plan_stream_repair(&world.faults, &memory, &*world.clock, &session, version).await.unwrap();
    let shown: Vec<_> = found.boundaries.iter().map(|boundary| kind(&boundary.chunk)).collect();
    assert_eq!(shown, ["tool_error", "tool_end", "checkpoint", "run_resumed"]);
    assert_eq!((found.settled, found.discarded), (Vec::new(), vec![attempt]));
}

/// Runs that ended earlier are available from the log.
#[tokio::test]
async fn an_empty_stream_does_not_show_ended_turns() {
    let world = world();
    let mut journal = world.answered(text("Done.")).await;
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    let memory = MemoryStore::new();
    repair_ended(&world, &memory).await.unwrap();
    assert_eq!(shown(&memory).await, "");
}

/// The run that took over crashed before it could show a late result of the previous run.
#[tokio::test]
async fn a_late_result_is_shown_with_its_call() {
    let world = world();
    let mut stalled = world.answered(calls(&["search"])).await;
    let journal = world.taken_over("r2").await;
    let memory = MemoryStore::new();
    let marked = journal.acknowledged();
    mark(&memory, &journal, "r2").await;
    stalled.stage(&[result("1.0", json!({"found": 1}))]).unwrap();
    assert_eq!(stalled.commit().await.unwrap_err().code(), ErrorCode::Superseded);

    let session = world.session().await;
    let version = session.position().version;
    assert_eq!(version, marked + 1, "the late result is in the log");
    let found =
        plan_stream_repair(&world.faults, &memory, &*world.clock, &session, version).await.unwrap();
    let shown: Vec<_> = found.boundaries.iter().map(|boundary| kind(&boundary.chunk)).collect();
    assert_eq!(shown, ["tool_start", "tool_end"]);
    assert!(found.boundaries.iter().all(|boundary| boundary.chunk.run.as_str() == "r1"));
}

/// The later run executes the call as well, and cannot reach the stream when it reads the late result.
#[tokio::test]
async fn a_late_result_discards_the_attempt_of_the_later_run() {
    let world = world();
    let mut stalled = world.answered(calls(&["search"])).await;
    let mut journal = world.taken_over("r2").await;
    let memory = MemoryStore::new();
    mark(&memory, &journal, "r2").await;
    let attempt = try_call_as(&memory, journal.session().stream_writer(), "r2", "1.0").await;
    stalled.stage(&[result("1.0", json!({"found": 1}))]).unwrap();
    assert_eq!(stalled.commit().await.unwrap_err().code(), ErrorCode::Superseded);
    journal.stage(&[result("1.0", json!({"found": 2}))]).unwrap();
    let committed = journal.commit().await.unwrap();
    assert!(committed.events.is_empty(), "hooks receive the late result before the step is closed");
    journal.stage(&[]).unwrap();
    journal.commit().await.unwrap();

    let (session, version) = (world.session().await, journal.acknowledged());
    assert!(session.closed_step().is_some(), "the later run has appended since");
    let found =
        plan_stream_repair(&world.faults, &memory, &*world.clock, &session, version).await.unwrap();
    let shown: Vec<_> = found.boundaries.iter().map(|boundary| kind(&boundary.chunk)).collect();
    assert_eq!(shown, ["tool_start", "tool_end", "checkpoint"]);
    assert_eq!((found.settled, found.discarded), (Vec::new(), vec![attempt]));
}

/// The stream could not be reached while the later run called the model.
#[tokio::test]
async fn an_outcome_settles_only_attempts_of_the_run_that_recorded_it() {
    for recorded_by_first in [true, false] {
        let world = world();
        let mut first = world.create().await;
        let memory = MemoryStore::new();
        let (effect, origin) = (Effect::Model { step: 1 }, origin("r1"));
        let ops = [StreamOp::Begin { effect, origin: origin.into() }];
        let batch = Batch::new(batch_id(), first.session().stream_writer(), ops);
        memory.write(&id(), batch).await.unwrap();
        let answer = [reply(1, text("Done."))];
        if recorded_by_first {
            first.stage(&answer).unwrap();
            first.commit().await.unwrap();
        }
        let mut second = world.taken_over("r2").await;
        if !recorded_by_first {
            second.stage(&answer).unwrap();
            second.commit().await.unwrap();
        }
        let (session, version) = (world.session().await, second.acknowledged());
        let StreamRepair { settled, discarded, .. } =
            plan_stream_repair(&world.faults, &memory, &*world.clock, &session, version)
                .await
                .unwrap();
        let expected = [vec![Attempt(1)], Vec::new()];
        let found = if recorded_by_first { [settled, discarded] } else { [discarded, settled] };
        assert_eq!(found, expected, "recorded by the first run: {recorded_by_first}");
    }
}

/// A reader repairs the stream of a run whose process crashed, and the session is deleted after the reader has read its
/// log.
#[tokio::test]
async fn a_repair_leaves_no_stream_of_a_session_that_is_deleted_meanwhile() {
    let world = world();
    let mut journal = world.answered(text("Done.")).await;
    journal.end_run().unwrap();
    journal.commit().await.unwrap();
    let (memory, read) = (MemoryStore::new(), Gate::new());
    // The first three pages are read for the session, the next ones for its events.
    for _ in 0..3 {
        world.faults.inject(PAGE, Fault::HoldAfter(Gate::opened()));
    }
    world.faults.inject(PAGE, Fault::HoldAfter(read.clone()));
    let repaired = repair_ended(&world, &memory);
    let deleted = async {
        read.reached().await;
        assert!(delete_session(&world.faults, &memory, &id()).await.unwrap());
        read.open();
    };
    let (repaired, ()) = tokio::join!(repaired, deleted);
    repaired.unwrap();
    assert!(memory.info(&id()).await.unwrap().is_empty());
}
