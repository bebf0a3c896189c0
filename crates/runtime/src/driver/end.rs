//! The end of a run in this process.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::AgentResult;

use super::Driver;
use crate::cancel_reason::CancelReason;
use crate::family;
use crate::lease_keeper::LeaseKeeper;

impl Driver {
    /// Ends the execution of the run by this process: writes the remaining chunks to the stream and, if `driven` is
    /// `Ok`, propagates the outcome to the parent and the children. If `driven` is an error other than
    /// [`ErrorCode::Superseded`], the run has stopped without ending, and its lease is released so that another process
    /// can take over immediately. Chunks that the stream does not accept in time are written by a task.
    ///
    /// # Errors
    /// Returns the error of `driven`, and [`ErrorCode::Superseded`] if the session no longer has this run.
    pub async fn end(
        mut self: Box<Self>,
        lease: &mut LeaseKeeper,
        driven: Result<()>,
    ) -> Result<AgentResult> {
        let failed = driven.as_ref().err().map(Error::code);
        if failed.is_none_or(|code| code == ErrorCode::Superseded) {
            // An aborted run answers calls whose tools are still running. A run that took over repairs the stream, but
            // it may not know the chunks that this run wrote late.
            self.discard();
        }
        if !self.stream_writer.close().await {
            let tasks = &self.context.tasks;
            drop(tasks.spawn(self.stream_writer.clone().write_rest(tasks.drain.clone())));
        }
        // This run has no more work in progress, so other processes need not wait for the lease to expire.
        if failed.is_some_and(|code| code != ErrorCode::Superseded) {
            lease.release().await;
        }
        driven?;
        let session = self.journal.session();
        Box::pin(family::propagate_end(&self.runtime, &self.agent, session, &self.inherited_hooks))
            .await;
        let Some(result) = self.journal.session().last_run().map(AgentResult::of) else {
            return Err(self.error(CancelReason::Superseded));
        };
        let Self { journal, context, .. } = *self;
        // Cache only sessions that are likely to be loaded again: children, suspended sessions and sessions with
        // earlier runs.
        if let Some(fold) = journal.into_session()
            && (fold.past_runs() > 0 || fold.parent().is_some() || result.status.is_suspended())
        {
            context.folds.keep(fold);
        }
        Ok(result)
    }
}
