//! Finds sessions that need work, and resumes or aborts them: runs of crashed processes, expired deadlines, newly
//! answered calls and ended children.

use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::executor::{ResumeOptions, Resumption, RunHandle};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{Lineage, SessionOverview, has_waiter, lineage};
use helix_agents_core::store::{Head, SessionFilter, SessionStatus, list_all};

use crate::family;
use crate::hook_chain::HookChain;
use crate::run_ref::RunRef;
use crate::runtime::Runtime;
use crate::start::{self, StartedBy};

impl Runtime {
    /// Implements [`recover`](helix_agents_core::executor::AgentExecutor::recover).
    pub(crate) async fn recover_all(&self) -> Result<Vec<RunHandle>> {
        self.resume_matching(SessionFilter::new().lease_expired()).await
    }

    /// Implements [`sweep`](helix_agents_core::executor::AgentExecutor::sweep).
    pub(crate) async fn sweep_all(&self) -> Result<Vec<RunHandle>> {
        let mut handles = self.recover_all().await?;
        let due = SessionFilter::new().wake_due();
        handles.extend(self.resume_matching(due).await?);
        Ok(handles)
    }

    async fn resume_matching(&self, filter: SessionFilter) -> Result<Vec<RunHandle>> {
        self.context().check_open()?;
        let filter = filter.runtime(self.engine().kind());
        let store = &*self.context().store;
        let mut handles = Vec::new();
        for head in list_all(store, &filter).await? {
            match self.handle_session(&head).await {
                Ok(resumed) => handles.extend(resumed),
                Err(error) if error.code() == ErrorCode::Closed => return Err(error),
                // One failing session must not prevent others from being resumed. The next sweep retries it.
                Err(error) => {
                    let (session, code) = (&head.session, error.code().as_str());
                    tracing::warn!(%session, code, %error, "the session could not be resumed");
                    if error.is_retryable() {
                        // If the store is unavailable, this fails as well and ends the sweep.
                        store.head(session).await?;
                    }
                }
            }
        }
        Ok(handles)
    }

    async fn handle_session(&self, head: &Head) -> Result<Option<RunHandle>> {
        if let Some(parent) = &head.created.parent {
            // During an import the parent may not exist yet.
            let Some(above) = self.context().store.head(parent).await? else { return Ok(None) };
            let fold = self.context().logs().overview(&head.session).await?;
            // A parent that waits for the child resumes it itself.
            if has_waiter(&above, &fold) {
                return Ok(None);
            }
            if above.summary.status == SessionStatus::Aborted
                && let Some(reason) = self.aborted_with_parent(&above, &fold).await?
            {
                self.stop(head, reason).await?;
                return Ok(None);
            }
        }
        if self.engine_recovers(head).await? {
            return Ok(None);
        }
        let mut options = ResumeOptions::default();
        options.after.clone_from(&head.summary.run);
        self.resume_registered(head, options).await
    }

    /// Returns the abort reason if a child has to be aborted with its parent. The process that aborted the parent may
    /// have crashed before it stopped the child, or may be about to stop it.
    async fn aborted_with_parent(
        &self,
        above: &Head,
        child: &SessionOverview,
    ) -> Result<Option<Option<String>>> {
        let parent = self.context().logs().overview(&above.session).await?;
        let Some((children, reason)) = parent.children_to_abort() else { return Ok(None) };
        // The abort does not apply to a run that started after it.
        let ended = parent.last_run().and_then(|run| run.ended);
        let before = child.last_run().is_some_and(|run| run.started <= ended);
        let stops = before && children.iter().any(|start| start.session == *child.id());
        Ok(stops.then_some(reason))
    }

    async fn stop(&self, head: &Head, reason: Option<String>) -> Result<()> {
        let context = self.context();
        let Lineage { agent, above } = lineage(&*context.store, &context.registry, head).await?;
        let above = HookChain::of_lineage(&above);
        family::stop(self, agent, &head.session, reason, false, &above).await
    }

    /// Returns `true` if the engine itself recovers the run of a session, which has no valid lease.
    pub(crate) async fn engine_recovers(&self, head: &Head) -> Result<bool> {
        let Some(run) = &head.summary.run else { return Ok(false) };
        let fold = self.context().logs().overview(&head.session).await?;
        if fold.current_run().is_none_or(|current| current.id != *run) {
            return Ok(false);
        }
        let Some(run_ref) = RunRef::last(&fold) else { return Ok(false) };
        self.engine().recovers(&run_ref).await
    }

    /// Resumes a session after an answer to a pending call, for `auto_resume`. A live run picks up the answer by
    /// itself. The answer is recorded already, so an error is returned as part of the [`Resumption`].
    pub(crate) async fn resume_answered(&self, session: &SessionId) -> Resumption {
        let error = match self.try_resume_answered(session).await {
            Ok(handle) => return Resumption::Started(handle),
            Err(error) => error,
        };
        match error.code() {
            ErrorCode::AlreadyRunning | ErrorCode::AlreadyResumed | ErrorCode::Superseded => {
                Resumption::Running
            }
            ErrorCode::Suspended => Resumption::Waiting,
            ErrorCode::NothingToResume => Resumption::Ended,
            code => {
                let code = code.as_str();
                tracing::warn!(%session, code, %error, "the session was not resumed after an answer");
                Resumption::Failed(error)
            }
        }
    }

    async fn try_resume_answered(&self, session: &SessionId) -> Result<RunHandle> {
        let context = self.context();
        context.check_open()?;
        let head = self.head(session).await?;
        let Lineage { agent, above } = lineage(&*context.store, &context.registry, &head).await?;
        let above = HookChain::of_lineage(&above);
        let options = ResumeOptions::default();
        start::resume(self, agent, session, options, &above, &StartedBy::Answer).await
    }

    /// Resumes a session whose agent is found in the registry, unless another process resumed it first.
    async fn resume_registered(
        &self,
        head: &Head,
        options: ResumeOptions,
    ) -> Result<Option<RunHandle>> {
        let context = self.context();
        let Lineage { agent, above } = lineage(&*context.store, &context.registry, head).await?;
        let above = HookChain::of_lineage(&above);
        let by = StartedBy::Sweep;
        start::resume_if_first(self, agent, &head.session, options, &above, &by).await
    }
}
