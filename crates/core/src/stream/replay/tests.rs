//! What a reader is told of chunks that it cannot have.

use std::collections::HashSet;

use crate::clock::Timestamp;
use crate::id::SessionId;
use crate::stream::ChunkKind;

use super::Replay;

/// The number of the resync that a reader gets; none if it gets none.
fn told(replay: Replay) -> Option<u64> {
    let chunks = replay.finish(&SessionId::from("s"), Timestamp(0));
    assert!(chunks.iter().all(|it| it.chunk.kind == ChunkKind::StreamResync));
    chunks.front().map(|it| it.seq)
}

#[test]
fn zero_is_the_beginning_like_one() {
    for from in [0, 1] {
        let replay = Replay::new(from, 3, 0, HashSet::new());
        assert_eq!((replay.from(), told(replay)), (1, None));
        let replay = Replay::new(from, 3, 2, HashSet::new());
        assert_eq!((replay.from(), told(replay)), (3, Some(2)));
    }
}

#[test]
fn a_cursor_beyond_the_next_chunk_is_of_another_life() {
    assert_eq!(told(Replay::new(4, 3, 0, HashSet::new())), None);
    assert_eq!(told(Replay::new(5, 3, 0, HashSet::new())), Some(3));
    assert_eq!(told(Replay::new(2, 0, 0, HashSet::new())), Some(0));
}

#[test]
fn a_reader_of_an_earlier_stream_gets_the_next_one_from_its_beginning() {
    for trimmed in [0, 2] {
        let replay = Replay::anew(trimmed, HashSet::new());
        assert_eq!((replay.from(), told(replay)), (trimmed + 1, Some(trimmed)));
    }
}
