//! Sessions that nobody works on and somebody should: runs whose process died, deadlines that
//! passed, answers that came.

use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::executor::{ResumeOptions, Resumption, RunHandle};
use helix_agents_core::hooks::HookChain;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{Lineage, SessionOverview, has_waiter, lineage};
use helix_agents_core::store::{Head, SessionFilter, SessionStatus, list_all};

use crate::family;
use crate::run_ref::RunRef;
use crate::runtime::Runtime;
use crate::start::{self, StartedBy};

impl Runtime {
    /// For [`recover`](helix_agents_core::executor::AgentExecutor::recover).
    pub(crate) async fn recover_all(&self) -> Result<Vec<RunHandle>> {
        self.take_all(SessionFilter { lease_expired: true, ..SessionFilter::default() }).await
    }

    /// For [`sweep`](helix_agents_core::executor::AgentExecutor::sweep).
    pub(crate) async fn sweep_all(&self) -> Result<Vec<RunHandle>> {
        let mut handles = self.recover_all().await?;
        let due = SessionFilter { wake_due: true, ..SessionFilter::default() };
        handles.extend(self.take_all(due).await?);
        Ok(handles)
    }

    async fn take_all(&self, filter: SessionFilter) -> Result<Vec<RunHandle>> {
        self.context().check_open()?;
        let filter = SessionFilter { runtime: Some(self.engine().kind().into()), ..filter };
        let store = &*self.context().store;
        let mut handles = Vec::new();
        for head in list_all(store, &filter).await? {
            match self.take(&head).await {
                Ok(taken) => handles.extend(taken),
                Err(error) if error.code() == ErrorCode::Closed => return Err(error),
                // One session must not keep the others from being resumed. The next sweep finds it again.
                Err(error) => {
                    let (session, code) = (&head.session, error.code().as_str());
                    tracing::warn!(%session, code, %error, "the session could not be resumed");
                    if error.is_retryable() {
                        // Without the store there is nothing to go through.
                        store.head(session).await?;
                    }
                }
            }
        }
        Ok(handles)
    }

    async fn take(&self, head: &Head) -> Result<Option<RunHandle>> {
        if let Some(parent) = &head.created.parent {
            // Its parent's log decides what becomes of it. While an import is under way there is none.
            let Some(above) = self.context().store.head(parent).await? else { return Ok(None) };
            let fold = self.context().logs().overview(&head.session).await?;
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
        if self.goes_on(head).await? {
            return Ok(None);
        }
        let mut options = ResumeOptions::default();
        options.after.clone_from(&head.summary.run);
        self.resume_registered(head, options).await
    }

    /// The reason for which a child is to be aborted with its parent, if it is: the process that ended the
    /// parent may have died before it could stop the child, or is about to.
    async fn aborted_with_parent(
        &self,
        above: &Head,
        child: &SessionOverview,
    ) -> Result<Option<Option<String>>> {
        let parent = self.context().logs().overview(&above.session).await?;
        let Some((children, reason)) = parent.aborted_children() else { return Ok(None) };
        // A run that was started since is not what was aborted.
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

    /// Whether the engine goes on by itself with the run of a session that has no lease.
    pub(crate) async fn goes_on(&self, head: &Head) -> Result<bool> {
        let Some(run) = &head.summary.run else { return Ok(false) };
        let fold = self.context().logs().overview(&head.session).await?;
        if fold.current_run().is_none_or(|current| current.id != *run) {
            return Ok(false);
        }
        let Some(of) = RunRef::last(&fold) else { return Ok(false) };
        self.engine().goes_on(&of).await
    }

    /// Resumes a session after an answer, for `auto_resume`. A run that is under way takes the answer by itself.
    /// The answer is recorded already, so an error is a part of what is told of that.
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

    /// Goes on with a session whose agent is found by its name, unless somebody else was first.
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
