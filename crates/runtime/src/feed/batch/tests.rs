//! What a batch settles and what it takes back.

use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind, Effect, StreamOp};

use super::{Batch, FeedMark};

fn chunk(kind: ChunkKind) -> Chunk {
    Chunk {
        agent: Arc::from("teller"),
        session: SessionId::from("s"),
        run: RunId::from("r"),
        step: 1,
        at: Timestamp(0),
        kind,
    }
}

fn discarded(attempts: Vec<Attempt>) -> Chunk {
    chunk(ChunkKind::StepDiscarded { attempts })
}

#[test]
fn an_attempt_whose_outcome_waits_in_a_mark_is_not_taken_back() {
    let mut batch = Batch::default();
    let recorded = batch.begin(Effect::Model { step: 1 }, discarded(Vec::new()));
    let open = batch.begin(Effect::Model { step: 2 }, discarded(Vec::new()));
    let taken = batch.take();
    let (first, second) = (Attempt(1), Attempt(2));
    batch.learn(taken.begun, &[first, second]);
    let mark = FeedMark { version: 7, settled: vec![recorded], ..FeedMark::default() };
    batch.mark(mark, chunk(ChunkKind::Checkpoint { version: 7 }));

    assert_eq!(batch.unsettled(), [open]);
    let unsettled = batch.unsettled();
    batch.abandon(&unsettled, discarded(Vec::new()));

    let marks: Vec<_> = batch
        .take()
        .ops
        .into_iter()
        .filter_map(|op| match op {
            StreamOp::Mark(mark) => Some((mark.version, mark.settled, mark.discarded)),
            StreamOp::Begin { .. } | StreamOp::Chunks { .. } => None,
        })
        .collect();
    assert_eq!(marks, [(7, vec![first], vec![]), (0, vec![], vec![second])]);
}
