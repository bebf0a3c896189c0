//! What a batch makes of a stream. That the rules hold on every store, `stream_suite!` shows.

use crate::clock::Timestamp;
use crate::error::ErrorCode;
use crate::id::SessionId;
use crate::stream::{
    Attempt, AttemptRef, Boundary, Chunk, ChunkKind, Effect, Mark, Marked, StreamOp,
};

use super::{Discarded, Ledger, Placed};

fn chunk(session: &str) -> Chunk {
    Chunk {
        agent: "a".into(),
        session: session.into(),
        run: "r".into(),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::RunStarted,
    }
}

fn begin(session: &str) -> StreamOp {
    StreamOp::Begin { effect: Effect::Model { step: 1 }, origin: chunk(session) }
}

fn say(attempt: Option<AttemptRef>, count: usize) -> StreamOp {
    StreamOp::Chunks { attempt, chunks: vec![chunk("s"); count] }
}

fn mark(session: &str, version: u64, boundaries: &[u64]) -> StreamOp {
    let boundary = |version: &u64| Boundary { version: *version, chunk: chunk(session) };
    let boundaries = boundaries.iter().map(boundary).collect();
    let (settled, discarded, origin) = (Vec::new(), Vec::new(), chunk(session));
    StreamOp::Mark(Box::new(Mark { version, settled, discarded, origin, boundaries }))
}

#[test]
fn a_batch_is_numbered_on_from_what_was_there() {
    let mut ledger = Ledger { last_seq: 10, last_attempt: 4, ..Ledger::default() };
    let batch = [say(None, 2), begin("s"), say(Some(AttemptRef::Begun(0)), 3), begin("s")];
    let change = ledger.apply(&batch).unwrap();
    assert_eq!((ledger.last_seq, ledger.last_attempt, change.count), (16, 6, 6));
    assert_eq!(change.written.begun, [Attempt(5), Attempt(6)]);
    let discarded = Discarded { attempt: Attempt(5), began: 12, ended: 15 };
    assert_eq!(change.discarded, [discarded]);
    let kind = ChunkKind::StepDiscarded { attempts: vec![Attempt(5)] };
    let expected = [
        Placed::Chunks { op: 0, attempt: None },
        Placed::Chunks { op: 2, attempt: Some(Attempt(5)) },
        Placed::Announcement { op: 3, kind },
    ];
    assert_eq!(change.placed, expected);
    assert_eq!(
        ledger.open.iter().map(|it| (it.attempt.0, it.began)).collect::<Vec<_>>(),
        [(6, 16)]
    );
}

#[test]
fn a_batch_with_a_mistake_changes_nothing() {
    let mut ledger = Ledger::default();
    let batch = [begin("s"), say(None, 1), say(Some(AttemptRef::Begun(1)), 1), begin("s")];
    assert_eq!(ledger.apply(&batch).unwrap_err().code(), ErrorCode::InputInvalid);
    assert_eq!(ledger, Ledger::default());
}

#[test]
fn what_comes_to_nothing_is_no_change() {
    let mut ledger = Ledger { last_seq: 3, ..Ledger::default() };
    ledger.marked.insert("s".into(), Marked { version: 5, seq: 2 });
    let before = ledger.clone();
    let batch = [say(None, 0), say(Some(AttemptRef::Known(Attempt(1))), 2), mark("s", 5, &[4, 5])];
    let change = ledger.apply(&batch).unwrap();
    assert!(!change.is_changed);
    assert_eq!((change.written.last_seq, change.written.refused), (3, vec![Attempt(1)]));
    assert_eq!(ledger, before);
}

#[test]
fn each_session_is_marked_by_itself() {
    let mut ledger = Ledger::default();
    ledger.marked.insert("s".into(), Marked { version: 5, seq: 0 });
    let batch = [mark("s", 7, &[5, 6, 7]), mark("child", 2, &[1, 2]), mark("child", 3, &[])];
    let change = ledger.apply(&batch).unwrap();
    let child = SessionId::from("child");
    assert_eq!(change.marked, ["s".into(), child.clone()]);
    assert_eq!(change.placed[0], Placed::Boundaries { op: 0, above: 5 });
    assert_eq!(ledger.marked[&SessionId::from("s")], Marked { version: 7, seq: 2 });
    assert_eq!(ledger.marked[&child], Marked { version: 3, seq: 4 });
    assert_eq!(change.chunks(&batch).count(), 4);
}
