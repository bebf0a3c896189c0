//! The contents of the cache, and how long they are kept.

use std::sync::Arc;

use crate::error::{Error, ErrorCode};
use crate::id::{BatchId, SessionId};
use crate::stream::BatchReceipt;

use super::{Answers, StreamCache};

#[test]
fn the_last_batches_are_remembered() {
    let mut answers = Answers::default();
    let written =
        |number: usize| BatchReceipt { last_seq: number as u64, ..BatchReceipt::default() };
    let id = |number: usize| BatchId(number as u128);
    for number in 0..=Answers::KEPT {
        answers.note(id(number), written(number));
    }
    assert_eq!(answers.find(id(0)), None);
    for number in 1..=Answers::KEPT {
        assert_eq!(answers.find(id(number)), Some(&written(number)));
    }
}

fn id(number: usize) -> SessionId {
    SessionId::from(number.to_string())
}

/// Writes this many batches, each into a separate stream.
fn write_others(memories: &StreamCache<u8>, count: usize) {
    for number in 0..count {
        let asked = memories.ask(&id(number), BatchId(0));
        asked.answer(Ok(BatchReceipt::default())).unwrap();
    }
}

fn remembered(memories: &StreamCache<u8>) -> usize {
    memories.lock().entries.len()
}

#[test]
fn streams_that_are_being_written_are_not_forgotten() {
    let memories = StreamCache::<u8>::default();
    let held = memories.ask(&"held".into(), BatchId(1)).memory();
    memories.ask(&"held".into(), BatchId(1)).answer(Ok(BatchReceipt::default())).unwrap();
    write_others(&memories, 2 * StreamCache::<u8>::KEPT);
    assert!(Arc::ptr_eq(&held, &memories.ask(&"held".into(), BatchId(1)).memory()));
    assert!(remembered(&memories) <= StreamCache::<u8>::KEPT * 9 / 8);
}

#[test]
fn streams_with_a_batch_that_was_not_answered_are_not_forgotten() {
    let memories = StreamCache::<u8>::default();
    let lost = || Err(Error::new(ErrorCode::StoreUnavailable, "as arranged"));
    let refused = || Err(Error::new(ErrorCode::InputInvalid, "as arranged"));
    let memory = |stream: &str| {
        let entries = &memories.lock().entries;
        entries.get(&SessionId::from(stream)).map(|entry| Arc::as_ptr(&entry.memory))
    };
    drop(memories.ask(&"dropped".into(), BatchId(1)));
    memories.ask(&"failed".into(), BatchId(1)).answer(lost()).unwrap_err();
    memories.ask(&"answered".into(), BatchId(1)).answer(lost()).unwrap_err();
    memories.ask(&"answered".into(), BatchId(1)).answer(Ok(BatchReceipt::default())).unwrap();
    memories.ask(&"refused".into(), BatchId(1)).answer(refused()).unwrap_err();
    let before = (memory("dropped"), memory("failed"));
    write_others(&memories, 2 * StreamCache::<u8>::KEPT);
    assert_eq!((memory("dropped"), memory("failed")), before);
    assert_eq!((memory("answered"), memory("refused")), (None, None));
}

#[test]
fn the_streams_written_last_are_remembered() {
    let memories = StreamCache::<u8>::default();
    write_others(&memories, 2 * StreamCache::<u8>::KEPT);
    let entries = &memories.lock().entries;
    let last = StreamCache::<u8>::KEPT..2 * StreamCache::<u8>::KEPT;
    assert!(last.into_iter().all(|number| entries.contains_key(&id(number))));
}

#[test]
fn unanswered_batches_are_bounded_too() {
    let memories = StreamCache::<u8>::default();
    for number in 0..2 * StreamCache::<u8>::KEPT_OPEN {
        drop(memories.ask(&id(number), BatchId(0)));
    }
    assert!(remembered(&memories) <= StreamCache::<u8>::KEPT_OPEN + StreamCache::<u8>::KEPT);
    for number in 0..100 {
        drop(memories.ask(&"s".into(), BatchId(number)));
    }
    let entries = &memories.lock().entries;
    assert_eq!(entries.get(&SessionId::from("s")).unwrap().open.len(), Answers::KEPT);
}
