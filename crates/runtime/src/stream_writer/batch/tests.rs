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

/// Version, settled and discarded attempts of each mark.
fn marks(ops: Vec<StreamOp>) -> Vec<(u64, Vec<Attempt>, Vec<Attempt>)> {
    let mark = |op| match op {
        StreamOp::Watermark(mark) => Some((mark.version, mark.settled, mark.discarded)),
        StreamOp::Begin { .. } | StreamOp::Chunks { .. } => None,
    };
    ops.into_iter().filter_map(mark).collect()
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

    assert_eq!(marks(batch.take().ops), [(7, vec![first], vec![]), (0, vec![], vec![second])]);
}

/// The attempts of an earlier run among them would be discarded by it.
#[test]
fn what_a_lost_mark_settled_is_settled_by_the_next() {
    let mut batch = Batch::default();
    let own = batch.begin(Effect::Model { step: 2 }, discarded(Vec::new()));
    let begun = batch.take().begun;
    batch.learn(begun, &[Attempt(2)]);
    let (settled_before, settled) = (vec![Attempt(1)], vec![own]);
    let mark = FeedMark { version: 7, settled_before, settled, ..FeedMark::default() };
    batch.mark(mark, chunk(ChunkKind::Checkpoint { version: 7 }));
    let lost = batch.take().ops;
    batch.lost(&lost);
    for version in [8, 9] {
        let mark = FeedMark { version, ..FeedMark::default() };
        batch.mark(mark, chunk(ChunkKind::Checkpoint { version }));
    }
    let settled = vec![Attempt(1), Attempt(2)];
    assert_eq!(marks(batch.take().ops), [(8, settled, vec![]), (9, vec![], vec![])]);
}
