//! Shows recorded events in the stream: boundaries, watermarks, discarded attempts and repairs.

use helix_agents_core::error::Result;
use helix_agents_core::event::Event;
use helix_agents_core::mutant;
use helix_agents_core::session::{
    Committed, StreamRepair, event_chunks, is_outcome, late_end, plan_stream_repair,
};
use helix_agents_core::stream::{Boundary, ChunkKind, Effect};

use super::Driver;
use crate::lease_keeper::LeaseKeeper;
use crate::stream_writer::{AttemptHandle, WatermarkUpdate};

impl Driver {
    /// Shows late results: those that an earlier run has recorded after it was taken over. For a commit without events
    /// of this run; otherwise `apply_commit` shows them.
    pub(super) fn show_late(&mut self, step: u32, committed: &Committed) {
        if !committed.late.is_empty() {
            self.discard_late(step, committed);
            let (version, boundaries) = (committed.version, self.shown(step, committed));
            self.stream_writer.watermark(
                step,
                WatermarkUpdate { version, boundaries, ..WatermarkUpdate::default() },
            );
        }
    }

    /// Returns the chunks for the events of a commit, in log order.
    pub(super) fn shown(&self, step: u32, committed: &Committed) -> Vec<Boundary> {
        let session = self.journal.session();
        let mut shown = event_chunks(session, committed.displayed_events());
        if !committed.late.is_empty() {
            let late = committed.late.iter();
            let late = late.flat_map(|(version, finish)| {
                late_end(session, finish).into_iter().map(move |kind| (*version, kind))
            });
            shown.extend::<Vec<(u64, ChunkKind)>>(late.collect());
            shown.sort_by_key(|(version, _)| *version);
        }
        let mut boundaries: Vec<Boundary> = self.stream_writer.boundaries(step, shown).collect();
        // Boundaries are smaller than the chunks whose allocation they reuse.
        boundaries.shrink_to_fit();
        boundaries
    }

    /// Discards the attempts of calls for which an earlier run recorded the result.
    pub(super) fn discard_late(&mut self, step: u32, committed: &Committed) {
        if committed.late.is_empty() && self.late_calls.is_empty() {
            return;
        }
        self.late_calls.extend(committed.late.iter().map(|(_, finish)| finish.call.clone()));
        let (late_calls, writer) = (&self.late_calls, &self.stream_writer);
        let is_late = |attempt: &mut AttemptHandle| {
            let is_late = late_calls.iter().any(|call| writer.is_call(*attempt, call));
            is_late && !mutant!("late-result-repeated")
        };
        let lost: Vec<_> = self.unsettled.extract_if(.., is_late).collect();
        self.stream_writer.discard(step, &lost);
    }

    /// Writes the watermark of an append. It settles the attempts made for the append, except those whose outcome
    /// another process recorded first.
    pub(super) fn watermark(
        &mut self,
        step: u32,
        version: u64,
        events: &[Event],
        boundaries: Vec<Boundary>,
    ) {
        let mut settled = std::mem::take(&mut self.unsettled);
        let (session, in_work_items) = (self.journal.session(), self.in_work_items);
        // Without work items, only this process records outcomes, but an append may have answered a call that was
        // already running, for example because the budget had been used up.
        let is_recorded = |effect: &Effect| match in_work_items {
            true => events.iter().any(|event| is_outcome(event, effect)),
            false => session.has_outcome(effect),
        };
        let is_lost = |attempt: &mut AttemptHandle| {
            self.stream_writer.effect(*attempt).is_some_and(|effect| !is_recorded(&effect))
        };
        let lost: Vec<_> = settled.extract_if(.., is_lost).collect();
        self.stream_writer.discard(step, &lost);
        self.stream_writer.watermark(
            step,
            WatermarkUpdate { version, settled, boundaries, ..WatermarkUpdate::default() },
        );
    }

    /// Discards all attempts whose outcome is not in the log or was recorded by another process.
    pub(crate) fn discard(&mut self) {
        self.unsettled.clear();
        self.stream_writer.discard_all(self.session().last_step());
    }

    /// Repairs the stream for the recorded events of this run, in case a process crashed before it wrote them.
    /// Attempts that are in progress in other processes are not touched.
    pub(crate) async fn repair_stream(&mut self, lease: &mut LeaseKeeper) -> Result<()> {
        let version = self.version();
        let StreamRepair { settled, boundaries, .. } = self.plan_repair(lease, version).await?;
        let watermark = WatermarkUpdate {
            version,
            settled_before: settled,
            boundaries,
            ..WatermarkUpdate::default()
        };
        self.stream_writer.watermark(self.journal.session().last_step(), watermark);
        Ok(())
    }

    /// Returns what is missing in the stream compared to the log up to a version.
    pub(super) async fn plan_repair(
        &self,
        lease: &mut LeaseKeeper,
        version: u64,
    ) -> Result<StreamRepair> {
        let (context, session) = (&self.context, self.journal.session());
        if context.stream_info(session.root()).await.is_none() {
            return Ok(StreamRepair::default());
        }
        let mut found = Box::pin(plan_stream_repair(
            &*context.store,
            &*context.streams,
            &*context.clock,
            session,
            version,
        ));
        // An unreadable stream only affects what clients see, never the run.
        Ok(self.under_lease(lease, found.as_mut()).await?.unwrap_or_else(|error| {
            tracing::warn!(session = %session.id(), %error, "the stream could not be repaired");
            StreamRepair::default()
        }))
    }
}
