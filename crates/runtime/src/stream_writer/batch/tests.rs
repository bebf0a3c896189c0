//! The attempts that a batch settles and discards.

use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind, Effect, StreamOp};

use super::{Batch, WatermarkUpdate};

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

/// Returns the version, settled attempts and discarded attempts of each watermark.
fn watermarks(ops: Vec<StreamOp>) -> Vec<(u64, Vec<Attempt>, Vec<Attempt>)> {
    let watermark = |op| match op {
        StreamOp::Watermark(watermark) => {
            Some((watermark.version, watermark.settled, watermark.discarded))
        }
        StreamOp::Begin { .. } | StreamOp::Chunks { .. } => None,
    };
    ops.into_iter().filter_map(watermark).collect()
}

#[test]
fn an_attempt_in_a_pending_watermark_is_not_discarded() {
    let mut batch = Batch::default();
    let recorded = batch.begin(Effect::Model { step: 1 }, discarded(Vec::new()).into());
    let open = batch.begin(Effect::Model { step: 2 }, discarded(Vec::new()).into());
    let taken = batch.take();
    let (first, second) = (Attempt(1), Attempt(2));
    batch.set_numbers(taken.started, &[first, second]);
    let watermark =
        WatermarkUpdate { version: 7, settled: vec![recorded], ..WatermarkUpdate::default() };
    batch.watermark(watermark, chunk(ChunkKind::Checkpoint { version: 7 }).into());

    assert_eq!(batch.unsettled(), [open]);
    let unsettled = batch.unsettled();
    batch.discard(&unsettled, discarded(Vec::new()).into());

    assert_eq!(watermarks(batch.take().ops), [(7, vec![first], vec![]), (0, vec![], vec![second])]);
}

/// Otherwise the chunks of these attempts would be discarded although the log contains their
/// outcome.
#[test]
fn the_next_watermark_settles_the_attempts_of_a_lost_one() {
    let mut batch = Batch::default();
    let own = batch.begin(Effect::Model { step: 2 }, discarded(Vec::new()).into());
    let started = batch.take().started;
    batch.set_numbers(started, &[Attempt(2)]);
    let (settled_before, settled) = (vec![Attempt(1)], vec![own]);
    let watermark =
        WatermarkUpdate { version: 7, settled_before, settled, ..WatermarkUpdate::default() };
    batch.watermark(watermark, chunk(ChunkKind::Checkpoint { version: 7 }).into());
    let lost = batch.take().ops;
    batch.lost(&lost);
    for version in [8, 9] {
        let watermark = WatermarkUpdate { version, ..WatermarkUpdate::default() };
        batch.watermark(watermark, chunk(ChunkKind::Checkpoint { version }).into());
    }
    let settled = vec![Attempt(1), Attempt(2)];
    assert_eq!(watermarks(batch.take().ops), [(8, settled, vec![]), (9, vec![], vec![])]);
}

/// The stream would keep the attempt open otherwise, and a repair might show it.
#[test]
fn an_attempt_that_is_discarded_while_its_start_is_written_is_discarded_afterwards() {
    let mut batch = Batch::default();
    let written = batch.begin(Effect::Model { step: 1 }, discarded(Vec::new()).into());
    let started = batch.take().started;
    let pending = batch.begin(Effect::Model { step: 2 }, discarded(Vec::new()).into());
    batch.discard(&[written, pending], discarded(Vec::new()).into());
    assert!(batch.take().ops.is_empty(), "the number is not known yet");
    batch.set_numbers(started, &[Attempt(7)]);
    assert!(batch.has_discard());
    assert_eq!(watermarks(batch.take().ops), [(0, vec![], vec![Attempt(7)])]);
    assert!(!batch.has_discard());
}

#[test]
fn the_first_operation_of_a_batch_wakes_the_writer() {
    let mut batch = Batch::default();
    assert!(batch.note_news());
    assert!(!batch.note_news(), "the second operation joins the batch");
    batch.take();
    assert!(batch.note_news(), "a new batch has started");
    batch.clear_news();
    assert!(batch.note_news(), "the operations could not be written yet");
}
