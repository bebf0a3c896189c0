//! What is remembered, and for how long.

use std::sync::Arc;

use crate::id::{BatchId, SessionId};
use crate::stream::Written;

use super::{Answers, Memories};

#[test]
fn the_last_batches_are_known_again() {
    let mut answers = Answers::default();
    let written = |number: usize| Written { last_seq: number as u64, ..Written::default() };
    let id = |number: usize| BatchId(number as u128);
    for number in 0..=Answers::KEPT {
        answers.note(id(number), written(number));
    }
    assert_eq!(answers.find(id(0)), None);
    for number in 1..=Answers::KEPT {
        assert_eq!(answers.find(id(number)), Some(&written(number)));
    }
}

#[test]
fn streams_that_somebody_writes_are_not_forgotten() {
    let memories = Memories::<u8>::default();
    let held = memories.of(&"held".into());
    let id = |number: usize| SessionId::from(number.to_string());
    for number in 0..2 * Memories::<u8>::KEPT {
        memories.of(&id(number));
    }
    assert!(Arc::ptr_eq(&held, &memories.of(&"held".into())));
    assert!(memories.0.lock().unwrap().len() <= Memories::<u8>::KEPT);
}
