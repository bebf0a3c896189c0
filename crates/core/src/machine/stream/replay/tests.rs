//! The resync chunk for a reader whose chunks are not kept.

use std::collections::HashSet;

use crate::clock::Timestamp;
use crate::id::SessionId;
use crate::stream::ChunkKind;

use super::Replay;

/// Returns the number of the resync that a reader gets, or `None`.
fn resync_seq(replay: Replay) -> Option<u64> {
    let chunks = replay.finish(&SessionId::from("s"), Timestamp(0));
    assert!(chunks.iter().all(|stored| stored.chunk.kind == ChunkKind::StreamResync));
    chunks.front().map(|stored| stored.seq)
}

#[test]
fn zero_and_one_both_mean_the_first_chunk() {
    for from in [0, 1] {
        let replay = Replay::new(from, 3, 0, HashSet::new());
        assert_eq!((replay.from(), resync_seq(replay)), (1, None));
        let replay = Replay::new(from, 3, 2, HashSet::new());
        assert_eq!((replay.from(), resync_seq(replay)), (3, Some(2)));
    }
}

#[test]
fn a_cursor_beyond_the_next_chunk_belongs_to_an_earlier_incarnation() {
    assert_eq!(resync_seq(Replay::new(4, 3, 0, HashSet::new())), None);
    assert_eq!(resync_seq(Replay::new(5, 3, 0, HashSet::new())), Some(3));
    assert_eq!(resync_seq(Replay::new(2, 0, 0, HashSet::new())), Some(0));
}

#[test]
fn a_reader_of_an_earlier_stream_gets_the_next_one_from_its_first_chunk() {
    for trimmed in [0, 2] {
        let replay = Replay::from_start(trimmed, HashSet::new());
        assert_eq!((replay.from(), resync_seq(replay)), (trimmed + 1, Some(trimmed)));
    }
}
