//! The contents of the cache, and how long they are kept.

use std::sync::Arc;

use crate::error::{Error, ErrorCode};
use crate::id::{BatchId, SessionId};
use crate::stream::BatchReceipt;

use super::{Receipts, StreamCache};

#[test]
fn the_last_batches_are_remembered() {
    let mut receipts = Receipts::default();
    let written =
        |number: usize| BatchReceipt { last_seq: number as u64, ..BatchReceipt::default() };
    let id = |number: usize| BatchId(number as u128);
    for number in 0..=Receipts::KEPT {
        receipts.insert(id(number), written(number));
    }
    assert_eq!(receipts.find(id(0)), None);
    for number in 1..=Receipts::KEPT {
        assert_eq!(receipts.find(id(number)), Some(&written(number)));
    }
}

fn id(number: usize) -> SessionId {
    SessionId::from(number.to_string())
}

/// Writes this many batches, each into a separate stream.
fn write_others(cache: &StreamCache<u8>, count: usize) {
    for number in 0..count {
        let pending = cache.register(&id(number), BatchId(0));
        pending.complete(Ok(BatchReceipt::default())).unwrap();
    }
}

fn remembered(cache: &StreamCache<u8>) -> usize {
    cache.lock().entries.len()
}

#[test]
fn streams_that_are_being_written_are_not_forgotten() {
    let cache = StreamCache::<u8>::default();
    let held = cache.register(&"held".into(), BatchId(1)).cached();
    cache.register(&"held".into(), BatchId(1)).complete(Ok(BatchReceipt::default())).unwrap();
    write_others(&cache, 2 * StreamCache::<u8>::KEPT);
    assert!(Arc::ptr_eq(&held, &cache.register(&"held".into(), BatchId(1)).cached()));
    assert!(remembered(&cache) <= StreamCache::<u8>::KEPT * 9 / 8);
}

#[test]
fn streams_with_a_batch_that_was_not_answered_are_not_forgotten() {
    let cache = StreamCache::<u8>::default();
    let lost = || Err(Error::new(ErrorCode::StoreUnavailable, "as arranged"));
    let refused = || Err(Error::new(ErrorCode::InputInvalid, "as arranged"));
    let cached = |stream: &str| {
        let entries = &cache.lock().entries;
        entries.get(&SessionId::from(stream)).map(|entry| Arc::as_ptr(&entry.cached))
    };
    drop(cache.register(&"dropped".into(), BatchId(1)));
    cache.register(&"failed".into(), BatchId(1)).complete(lost()).unwrap_err();
    cache.register(&"answered".into(), BatchId(1)).complete(lost()).unwrap_err();
    cache.register(&"answered".into(), BatchId(1)).complete(Ok(BatchReceipt::default())).unwrap();
    cache.register(&"refused".into(), BatchId(1)).complete(refused()).unwrap_err();
    let before = (cached("dropped"), cached("failed"));
    write_others(&cache, 2 * StreamCache::<u8>::KEPT);
    assert_eq!((cached("dropped"), cached("failed")), before);
    assert_eq!((cached("answered"), cached("refused")), (None, None));
}

#[test]
fn the_streams_written_last_are_remembered() {
    let cache = StreamCache::<u8>::default();
    write_others(&cache, 2 * StreamCache::<u8>::KEPT);
    let entries = &cache.lock().entries;
    let last = StreamCache::<u8>::KEPT..2 * StreamCache::<u8>::KEPT;
    assert!(last.into_iter().all(|number| entries.contains_key(&id(number))));
}

#[test]
fn unanswered_batches_are_bounded_too() {
    let cache = StreamCache::<u8>::default();
    for number in 0..2 * StreamCache::<u8>::KEPT_OPEN {
        drop(cache.register(&id(number), BatchId(0)));
    }
    assert!(remembered(&cache) <= StreamCache::<u8>::KEPT_OPEN + StreamCache::<u8>::KEPT);
    for number in 0..100 {
        drop(cache.register(&"s".into(), BatchId(number)));
    }
    let entries = &cache.lock().entries;
    assert_eq!(entries.get(&SessionId::from("s")).unwrap().open.len(), Receipts::KEPT);
}
