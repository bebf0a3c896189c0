//! The change that a batch makes to a stream. `stream_suite!` shows that the rules hold on every
//! store.

use crate::clock::Timestamp;
use crate::error::ErrorCode;
use crate::id::{BatchId, SessionId};
use crate::stream::{
    Attempt, AttemptRef, Batch, Boundary, Chunk, ChunkKind, Effect, OpenAttempt, SessionWatermark,
    StreamOp, Watermark, Writer,
};

use super::{Change, ChunkPlacement, Discarded, StreamState};

fn chunk(session: &str) -> Chunk {
    Chunk {
        agent: "a".into(),
        session: session.into(),
        run: "r".into(),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::RunStarted { turn: 1 },
    }
}

fn begin(session: &str) -> StreamOp {
    StreamOp::Begin { effect: Effect::Model { step: 1 }, origin: chunk(session).into() }
}

fn say(attempt: Option<AttemptRef>, count: usize) -> StreamOp {
    StreamOp::Chunks { attempt, chunks: vec![chunk("s").into(); count] }
}

fn mark(session: &str, version: u64, boundaries: &[u64]) -> StreamOp {
    let boundary = |version: &u64| Boundary { version: *version, chunk: chunk(session).into() };
    let boundaries = boundaries.iter().map(boundary).collect();
    let (settled, discarded, origin) = (Vec::new(), Vec::new(), chunk(session));
    StreamOp::Watermark(Box::new(Watermark {
        version,
        settled,
        discarded,
        origin: origin.into(),
        boundaries,
    }))
}

fn run(session: &str, created_at: Timestamp, fencing_token: u64) -> Writer {
    Writer { session: session.into(), created_at, fencing_token }
}

/// A batch of the run of session `s` that has this token.
fn of_run(fencing_token: u64, ops: &[StreamOp]) -> Batch {
    of(run("s", Timestamp(0), fencing_token), ops)
}

fn of(writer: Writer, ops: &[StreamOp]) -> Batch {
    Batch::new(BatchId(1), writer, ops)
}

#[test]
fn chunk_numbers_continue_after_the_existing_ones() {
    let mut state = StreamState { last_seq: 10, last_attempt: 4, ..StreamState::default() };
    let batch = [say(None, 2), begin("s"), say(Some(AttemptRef::Started(0)), 3), begin("s")];
    let change = state.apply(&of_run(0, &batch)).unwrap();
    assert_eq!((state.last_seq, state.last_attempt, change.count), (16, 6, 6));
    assert_eq!(change.written.started, [Attempt(5), Attempt(6)]);
    let discarded = Discarded { attempt: Attempt(5), start_seq: 12, ended: 15 };
    assert_eq!(change.discarded, [discarded]);
    let kind = ChunkKind::StepDiscarded { attempts: vec![Attempt(5)] };
    let expected = [
        ChunkPlacement::Chunks { op: 0, attempt: None },
        ChunkPlacement::Chunks { op: 2, attempt: Some(Attempt(5)) },
        ChunkPlacement::Announcement { op: 3, kind },
    ];
    assert_eq!(change.placed, expected);
    assert_eq!(
        state.open.iter().map(|open| (open.attempt.0, open.start_seq)).collect::<Vec<_>>(),
        [(6, 16)]
    );
}

#[test]
fn an_invalid_batch_changes_nothing() {
    let mut state = StreamState::default();
    let batch = [begin("s"), say(None, 1), say(Some(AttemptRef::Started(1)), 1), begin("s")];
    assert_eq!(state.apply(&of_run(0, &batch)).unwrap_err().code(), ErrorCode::InputInvalid);
    assert_eq!(state, StreamState::default());
}

#[test]
fn a_batch_without_effect_is_no_change() {
    let mut state = StreamState { last_seq: 3, ..StreamState::default() };
    state.marked.insert("s".into(), SessionWatermark { version: 5, seq: 2, fencing_token: 0 });
    let before = state.clone();
    let batch =
        [say(None, 0), say(Some(AttemptRef::Existing(Attempt(1))), 2), mark("s", 5, &[4, 5])];
    let change = state.apply(&of_run(0, &batch)).unwrap();
    assert!(!change.is_changed);
    assert_eq!((change.written.last_seq, change.written.refused), (3, vec![Attempt(1)]));
    assert_eq!(state, before);
}

fn count(change: &Change, batch: &[StreamOp]) -> u64 {
    let mut count = 0;
    change.for_each_chunk(batch, |_, _| count += 1);
    count
}

#[test]
fn each_session_has_its_own_watermark() {
    let mut state = StreamState::default();
    state.marked.insert("s".into(), SessionWatermark { version: 5, seq: 0, fencing_token: 0 });
    let own = [mark("s", 7, &[5, 6, 7])];
    let change = state.apply(&of_run(4, &own)).unwrap();
    assert_eq!(change.marked, Some("s".into()));
    assert_eq!(change.placed[0], ChunkPlacement::Boundaries { op: 0, above: 5 });
    assert_eq!(count(&change, &own), 2);
    let child = run("child", Timestamp(0), 2);
    let below = [mark("child", 2, &[1, 2]), mark("child", 3, &[])];
    let change = state.apply(&of(child.clone(), &below)).unwrap();
    assert_eq!(change.marked, Some(child.session.clone()));
    assert_eq!(count(&change, &below), 2);
    let marked = |version, seq, fencing_token| SessionWatermark { version, seq, fencing_token };
    assert_eq!(state.marked[&SessionId::from("s")], marked(7, 2, 4));
    assert_eq!(state.marked[&child.session], marked(3, 4, 2));
}

#[test]
fn a_batch_for_another_session_than_its_writers_changes_nothing() {
    let mut state = StreamState::default();
    for op in [begin("child"), mark("child", 3, &[1])] {
        let error = state.apply(&of_run(1, &[say(None, 1), op])).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InputInvalid);
        assert_eq!(state, StreamState::default());
    }
}

fn open(state: &StreamState) -> Vec<u64> {
    state.open.iter().map(|open| open.attempt.0).collect()
}

#[test]
fn a_watermark_of_a_later_run_supersedes_earlier_runs_and_discards_their_attempts() {
    let mut state = StreamState::default();
    let child = OpenAttempt {
        attempt: Attempt(9),
        session: "child".into(),
        effect: Effect::Model { step: 1 },
        start_seq: 0,
        fencing_token: 1,
    };
    state.open.push(child);
    let late = [begin("s"), say(Some(AttemptRef::Started(0)), 1)];
    state.apply(&of_run(3, &late)).unwrap();
    assert_eq!(open(&state), [9, 1]);
    // The log has no new events for it.
    let change = state.apply(&of_run(8, &[mark("s", 0, &[])])).unwrap();
    assert_eq!(
        change.discarded.iter().map(|discarded| discarded.attempt.0).collect::<Vec<_>>(),
        [1]
    );
    assert_eq!((open(&state), change.marked), (vec![9], Some("s".into())));
    assert_eq!(state.marked[&SessionId::from("s")].fencing_token, 8);
    let before = state.clone();
    let late = [begin("s"), say(Some(AttemptRef::Started(0)), 1), say(None, 1), mark("s", 9, &[9])];
    let change = state.apply(&of_run(7, &late)).unwrap();
    assert!(change.written.is_superseded && !change.is_changed);
    assert_eq!((change.written.last_seq, change.written.started), (2, Vec::new()));
    assert_eq!(state, before);
    assert!(!state.apply(&of_run(8, &late)).unwrap().written.is_superseded);
}

#[test]
fn an_attempt_of_a_later_run_supersedes_earlier_runs() {
    let mut state = StreamState::default();
    state.apply(&of_run(8, &[begin("s")])).unwrap();
    let before = state.clone();
    assert!(state.apply(&of_run(3, &[begin("s")])).unwrap().written.is_superseded);
    assert_eq!(state, before);
}
