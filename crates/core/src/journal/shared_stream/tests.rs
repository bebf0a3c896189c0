//! A stream with several writers, on a server that loses answers and sometimes the last writes.

use std::collections::VecDeque;

use futures_util::FutureExt as _;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::id::BatchId;
use crate::stream::{Batch, BatchReceipt, CacheEntry, Chunk, ChunkKind, Effect, StreamOp, Writer};

use super::{BatchPosition, CachedStream, Change, SharedStream, StreamLookup, write_shared};

/// The fate of the next write.
enum Next {
    /// The request never arrives.
    Lost,
    /// The write succeeds, but the answer is lost.
    Unanswered,
    /// The write takes effect later, at the next lookup.
    Late,
    /// The write succeeds, the answer is lost, and the store resends the request.
    Repeated,
}

#[derive(Default)]
struct Server {
    known: CachedStream,
    /// The positions of the written batches.
    places: Vec<BatchPosition>,
    next: VecDeque<Next>,
    late: Vec<(u64, CachedStream, u64)>,
    looks: u32,
    writes: u32,
}

impl Server {
    fn take(&mut self, from: u64, after: &CachedStream, count: u64) -> bool {
        if self.known.revision != from {
            return false;
        }
        self.writes += 1;
        self.known = after.clone();
        if count > 0 {
            let last_seq = after.state.last_seq;
            self.places.push(BatchPosition { last_seq, revision: after.revision });
        }
        true
    }
}

impl SharedStream for &mut Server {
    type Failure = Error;

    async fn lookup(&mut self, places: &[BatchPosition]) -> Result<StreamLookup> {
        self.looks += 1;
        let found_places =
            places.iter().filter(|place| self.places.contains(place)).copied().collect();
        let known = self.known.clone();
        for (from, after, count) in std::mem::take(&mut self.late) {
            self.take(from, &after, count);
        }
        Ok(StreamLookup { known, found_places })
    }

    async fn save(&mut self, from: u64, after: &CachedStream, change: &Change) -> Result<bool> {
        let lost = || Error::new(ErrorCode::StoreUnavailable, "as arranged");
        match self.next.pop_front() {
            None => Ok(self.take(from, after, change.count)),
            Some(Next::Repeated) => {
                self.take(from, after, change.count);
                Ok(false)
            }
            Some(Next::Lost) => Err(lost()),
            Some(Next::Unanswered) => {
                self.take(from, after, change.count);
                Err(lost())
            }
            Some(Next::Late) => {
                self.late.push((from, after.clone(), change.count));
                Err(lost())
            }
        }
    }
}

fn chunk() -> Chunk {
    Chunk {
        agent: "a".into(),
        session: "s".into(),
        run: "r".into(),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::RunStarted { turn: 1 },
    }
}

fn batch(id: u128) -> Batch {
    Batch::new(
        BatchId(id),
        Writer::without_run(&"s".into()),
        [StreamOp::Chunks { attempt: None, chunks: vec![chunk().into()] }],
    )
}

/// Writes without waiting: no future of this test is ever pending.
fn write(server: &mut Server, memory: &mut CacheEntry, batch: &Batch) -> Result<BatchReceipt> {
    write_shared(server, memory, batch).now_or_never().unwrap()
}

fn last(server: &mut Server, memory: &mut CacheEntry, id: u128) -> u64 {
    write(server, memory, &batch(id)).unwrap().last_seq
}

#[test]
fn one_writer_looks_once() {
    let (mut server, mut memory) = (Server::default(), CacheEntry::default());
    for number in 1..=5 {
        assert_eq!(last(&mut server, &mut memory, number.into()), number);
    }
    assert_eq!((server.looks, server.writes), (1, 5));
}

#[test]
fn the_second_of_two_writers_looks_and_writes_after_the_first() {
    let (mut server, mut one, mut other) =
        (Server::default(), CacheEntry::default(), CacheEntry::default());
    last(&mut server, &mut one, 1);
    last(&mut server, &mut other, 2);
    let looks = server.looks;
    assert_eq!(last(&mut server, &mut one, 3), 3);
    assert_eq!((server.looks, server.writes), (looks + 1, 3));
}

#[test]
fn a_batch_whose_answer_was_lost_is_written_once() {
    for fate in [Next::Lost, Next::Unanswered, Next::Late] {
        let (mut server, mut memory) = (Server::default(), CacheEntry::default());
        last(&mut server, &mut memory, 1);
        server.next.push_back(fate);
        write(&mut server, &mut memory, &batch(2)).unwrap_err();
        assert_eq!(last(&mut server, &mut memory, 2), 2);
        assert_eq!(last(&mut server, &mut memory, 2), 2);
        assert_eq!(last(&mut server, &mut memory, 3), 3);
        assert_eq!(server.writes, 3);
    }
}

#[test]
fn a_batch_that_a_store_resent_is_written_once() {
    let (mut server, mut memory) = (Server::default(), CacheEntry::default());
    server.next.push_back(Next::Repeated);
    assert_eq!(last(&mut server, &mut memory, 1), 1);
    assert_eq!(last(&mut server, &mut memory, 2), 2);
    assert_eq!(server.writes, 2);
}

#[test]
fn later_batches_do_not_hide_whether_a_batch_was_written() {
    for (fate, is_first) in [(Next::Lost, false), (Next::Unanswered, true)] {
        let (mut server, mut one, mut other) =
            (Server::default(), CacheEntry::default(), CacheEntry::default());
        last(&mut server, &mut one, 1);
        server.next.push_back(fate);
        write(&mut server, &mut one, &batch(2)).unwrap_err();
        for id in 3..6 {
            last(&mut server, &mut other, id);
        }
        assert_eq!(last(&mut server, &mut one, 2), if is_first { 2 } else { 5 });
        assert_eq!((server.writes, server.known.state.last_seq), (5, 5));
    }
}

#[test]
fn another_batch_of_the_same_handle_resolves_the_doubt() {
    for fate in [Next::Lost, Next::Unanswered, Next::Late] {
        let (mut server, mut memory) = (Server::default(), CacheEntry::default());
        last(&mut server, &mut memory, 1);
        server.next.push_back(fate);
        write(&mut server, &mut memory, &batch(2)).unwrap_err();
        let third = last(&mut server, &mut memory, 3);
        let second = last(&mut server, &mut memory, 2);
        assert_eq!(second + third, 5, "each batch has its own position");
        assert_eq!((server.writes, server.known.state.last_seq), (3, 3));
    }
}

#[test]
fn after_a_server_lost_the_latest_writes_writing_continues_from_its_state() {
    let (mut server, mut one, mut other) =
        (Server::default(), CacheEntry::default(), CacheEntry::default());
    last(&mut server, &mut one, 1);
    let kept = server.known.clone();
    // The batch is in doubt, written, and then lost.
    server.next.push_back(Next::Unanswered);
    write(&mut server, &mut one, &batch(2)).unwrap_err();
    server.known = kept.clone();
    server.places.truncate(1);
    assert_eq!(last(&mut server, &mut one, 2), 2);
    // The batch is acknowledged and lost, and another batch has come in its place.
    server.known = kept;
    server.places.truncate(1);
    assert_eq!(last(&mut server, &mut other, 3), 2);
    assert_eq!(last(&mut server, &mut one, 4), 3);
}

/// A batch without chunks has no position to look up. Starting twice starts another attempt.
#[test]
fn an_attempt_whose_answer_was_lost_is_open_only_once() {
    let (mut server, mut one, mut other) =
        (Server::default(), CacheEntry::default(), CacheEntry::default());
    let begin = StreamOp::Begin { effect: Effect::Model { step: 1 }, origin: chunk().into() };
    let begin = Batch::new(BatchId(7), Writer::without_run(&"s".into()), [begin]);
    server.next.push_back(Next::Unanswered);
    write(&mut server, &mut one, &begin).unwrap_err();
    last(&mut server, &mut other, 1);
    let started = write(&mut server, &mut one, &begin).unwrap().started;
    let open: Vec<_> = server.known.state.open.iter().map(|open| open.attempt).collect();
    assert_eq!(open, started);
}

#[test]
fn doubts_about_a_failing_server_are_bounded() {
    let (mut server, mut memory) = (Server::default(), CacheEntry::default());
    for id in 0..100 {
        server.next.push_back(Next::Lost);
        write(&mut server, &mut memory, &batch(id)).unwrap_err();
    }
    assert!(memory.doubts.len() <= 16);
    assert_eq!(last(&mut server, &mut memory, 100), 1);
    assert!(memory.doubts.is_empty());
}
