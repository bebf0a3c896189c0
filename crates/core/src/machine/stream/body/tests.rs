//! Encoding and decoding of chunks.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::id::{BatchId, SessionId};
use crate::stream::{
    Attempt, AttemptRef, Batch, Boundary, Chunk, ChunkKind, Effect, OpenAttempt, StreamOp,
    StreamState, Watermark, Writer,
};

use super::{Encoded, decode, decode_open, encode_open};

fn chunk(step: u32, at: i64, delta: &str) -> Chunk {
    Chunk {
        agent: "a".into(),
        session: "s".into(),
        run: "r".into(),
        step,
        at: Timestamp(at),
        kind: ChunkKind::TextDelta { delta: delta.to_owned() },
    }
}

fn saying(attempt: Option<AttemptRef>, chunks: &[Chunk]) -> StreamOp {
    StreamOp::Chunks { attempt, chunks: chunks.iter().cloned().map(Arc::new).collect() }
}

/// Returns the body that a new stream gets from a batch, and the chunks that it encodes.
fn body(batch: &[StreamOp]) -> (String, Vec<(Option<Attempt>, Chunk)>) {
    let writer = Writer::without_run(&"s".into());
    let change = StreamState::default().apply(&Batch::new(BatchId(1), writer, batch)).unwrap();
    let text = Encoded::new(batch).unwrap().body(&change.placed).unwrap();
    let mut chunks = Vec::new();
    change.for_each_chunk(batch, |attempt, chunk| {
        chunks.push((attempt, Arc::unwrap_or_clone(chunk)))
    });
    assert_eq!(decode(&text).unwrap(), chunks);
    assert_eq!(chunks.len() as u64, change.count);
    (String::from_utf8(text).unwrap(), chunks)
}

#[test]
fn chunks_of_one_origin_and_attempt_share_both() {
    let one = [chunk(1, 1, "x"), chunk(1, 2, "\"]}")];
    let more = [chunk(1, 3, "y"), chunk(2, 4, "z")];
    let started = Some(AttemptRef::Started(0));
    let (text, chunks) = body(&[
        StreamOp::Begin { effect: Effect::Model { step: 1 }, origin: chunk(1, 0, "").into() },
        saying(None, &one),
        saying(None, &more),
        saying(started, &one),
        saying(started, &[]),
    ]);
    let expected = concat!(
        r#"[{"agent":"a","session":"s","run":"r","step":1,"chunks":["#,
        r#"[1,{"type":"text_delta","delta":"x"}],[2,{"type":"text_delta","delta":"\"]}"}],"#,
        r#"[3,{"type":"text_delta","delta":"y"}]]},"#,
        r#"{"agent":"a","session":"s","run":"r","step":2,"chunks":["#,
        r#"[4,{"type":"text_delta","delta":"z"}]]},"#,
        r#"{"agent":"a","session":"s","run":"r","step":1,"attempt":1,"chunks":["#,
        r#"[1,{"type":"text_delta","delta":"x"}],[2,{"type":"text_delta","delta":"\"]}"}]]}]"#,
    );
    assert_eq!(text, expected);
    let boundaries = one.iter().chain(&more).map(|chunk| (None, chunk.clone()));
    let of_attempt = one.iter().map(|chunk| (Some(Attempt(1)), chunk.clone()));
    assert_eq!(chunks, boundaries.chain(of_attempt).collect::<Vec<_>>());
}

#[test]
fn announcements_and_boundaries_look_like_their_origins() {
    let (effect, origin) = (Effect::Model { step: 1 }, chunk(3, 7, ""));
    let boundary = |version, delta| Boundary { version, chunk: chunk(4, 9, delta).into() };
    let mark = Watermark {
        version: 2,
        settled: vec![Attempt(2)],
        discarded: Vec::new(),
        origin: chunk(5, 8, "").into(),
        boundaries: vec![boundary(0, "old"), boundary(2, "new")],
    };
    let begin = StreamOp::Begin { effect, origin: origin.clone().into() };
    let (_, chunks) = body(&[begin.clone(), begin, StreamOp::Watermark(Box::new(mark.clone()))]);
    let discarded = ChunkKind::StepDiscarded { attempts: vec![Attempt(1)] };
    let committed = ChunkKind::StepCommitted { attempts: vec![Attempt(2)], version: 2 };
    let expected = [
        Chunk { kind: discarded, ..origin },
        Chunk { kind: committed, ..Chunk::clone(&mark.origin) },
        chunk(4, 9, "new"),
    ];
    assert_eq!(chunks, expected.map(|chunk| (None, chunk)));
}

#[test]
fn a_batch_that_places_nothing_is_an_empty_body() {
    assert_eq!(body(&[]).0, "[]");
    assert_eq!(body(&[saying(None, &[])]).0, "[]");
}

#[test]
fn an_invalid_body_is_rejected() {
    for body in ["", "[", "{}", "[{}]", r#"[{"agent":"a","session":"s","run":"r","step":1}]"#] {
        assert!(decode(body.as_bytes()).is_none(), "{body}");
    }
}

#[test]
fn open_attempts_round_trip() {
    let stream = SessionId::from("s");
    let open = |attempt, session: &str, effect| OpenAttempt {
        attempt: Attempt(attempt),
        session: session.into(),
        effect,
        start_seq: 3,
        fencing_token: 7,
    };
    let open = [
        open(1, "s", Effect::Model { step: 2 }),
        open(4, "child", Effect::Tool { call: "2.0".into() }),
    ];
    let text = encode_open(&stream, &open).unwrap();
    let expected = concat!(
        r#"[{"a":1,"e":{"model":{"step":2}},"b":3,"f":7},"#,
        r#"{"a":4,"e":{"tool":{"call":"2.0"}},"s":"child","b":3,"f":7}]"#
    );
    assert_eq!(text, expected);
    assert_eq!(decode_open(&stream, &text).unwrap(), open);
    assert!(decode_open(&stream, "[{}]").is_none());
}
