//! The attempts of a stream: how they start, and how readers learn that they were settled or
//! discarded.

use super::apply_batch::Applying;
use super::state::{ChunkPlacement, Discarded};
use crate::contracts::stream::{Attempt, Chunk, ChunkKind, Effect, OpenAttempt, Writer};

impl Applying<'_> {
    /// Starts an attempt at an effect. Discards an earlier attempt of the same session at the same
    /// effect that is still open.
    pub(super) fn start_attempt(&mut self, op: usize, effect: &Effect, origin: &Chunk) {
        let same = |open: &&OpenAttempt| open.effect == *effect && open.session == origin.session;
        if let Some(earlier) = self.state.open.iter().find(same).map(|open| open.attempt) {
            self.discard_and_announce(op, &[earlier]);
        }
        self.state.last_attempt += 1;
        let attempt = Attempt(self.state.last_attempt);
        let Writer { session, fencing_token, .. } = self.writer.clone();
        let (effect, start_seq) = (effect.clone(), self.state.last_seq);
        self.state.open.push(OpenAttempt { attempt, session, effect, start_seq, fencing_token });
        self.change.written.started.push(attempt);
        self.change.is_changed = true;
    }

    /// Removes the attempts that are still open from the list while the iterator is advanced, and returns them.
    fn extract(&mut self, attempts: &[Attempt]) -> impl Iterator<Item = OpenAttempt> {
        self.state.open.extract_if(.., |open| attempts.contains(&open.attempt))
    }

    /// Settles the attempts that are still open, and announces this to readers with a
    /// `step_committed` chunk. `version` is the log version that contains the outcomes of the
    /// attempts.
    pub(super) fn settle_and_announce(&mut self, op: usize, attempts: &[Attempt], version: u64) {
        let attempts: Vec<_> = self.extract(attempts).map(|open| open.attempt).collect();
        if !attempts.is_empty() {
            let kind = ChunkKind::StepCommitted { attempts, version };
            self.place(ChunkPlacement::Announcement { op, kind }, 1);
        }
    }

    /// Discards the attempts that are still open, and announces this to readers with a
    /// `step_discarded` chunk.
    pub(super) fn discard_and_announce(&mut self, op: usize, attempts: &[Attempt]) {
        let closed: Vec<_> = self.extract(attempts).collect();
        if closed.is_empty() {
            return;
        }
        let ended = self.state.last_seq;
        let attempts = closed.iter().map(|open| open.attempt).collect();
        let discarded = closed
            .into_iter()
            .map(|OpenAttempt { attempt, start_seq, .. }| Discarded { attempt, start_seq, ended });
        self.change.discarded.extend(discarded);
        self.place(
            ChunkPlacement::Announcement { op, kind: ChunkKind::StepDiscarded { attempts } },
            1,
        );
    }
}
