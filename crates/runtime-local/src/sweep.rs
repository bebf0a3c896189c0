//! Sessions that nobody works on and somebody should: runs whose process died, deadlines that
//! passed, answers that came.

use helix_agents_core::agent::FactoryContext;
use helix_agents_core::error::{ErrorCode, ErrorKind, Result};
use helix_agents_core::executor::{AgentExecutor as _, ResumeOptions, RunHandle};
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Head, Page, SessionFilter};

use helix_agents_core::session::load;

use crate::family;
use crate::parts::RUNTIME;
use crate::runtime::LocalRuntime;
use crate::start;

impl LocalRuntime {
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
        self.check_open()?;
        let filter = SessionFilter { runtime: Some(RUNTIME.into()), ..filter };
        let mut page = Page::default();
        let mut handles = Vec::new();
        loop {
            let heads = self.parts().store.list(&filter, &page).await?;
            let Some(last) = heads.last() else { return Ok(handles) };
            page.after = Some(last.session.clone());
            for head in heads {
                handles.extend(self.take(&head).await?);
            }
        }
    }

    async fn take(&self, head: &Head) -> Result<Option<RunHandle>> {
        if let Some(parent) = &head.created.parent {
            let above = self.head(parent).await?;
            let waits = !load(&*self.parts().store, &head.session).await?.stays();
            if above.summary.run.is_some() && waits {
                // Whoever goes on with the parent goes on with it.
                return Ok(None);
            }
        }
        let (agent, above) = match family::agent_of(self.parts(), head).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(session = %head.session, %error, "the session is left alone");
                return Ok(None);
            }
        };
        let mut options = ResumeOptions::default();
        options.after.clone_from(&head.summary.run);
        match start::resume(self, agent, &head.session, options, &above).await {
            Ok(handle) => Ok(Some(handle)),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                tracing::debug!(session = %head.session, %error, "somebody else was first");
                Ok(None)
            }
            Err(error) if error.is_retryable() => Err(error),
            Err(error) => {
                tracing::warn!(session = %head.session, %error, "the session is left alone");
                Ok(None)
            }
        }
    }

    /// Goes on with a session after an answer, for `auto_resume`. Whoever is first does; a run that
    /// is under way meets the answer by itself.
    pub(crate) async fn go_on(&self, session: &SessionId) -> Result<()> {
        let head = self.head(session).await?;
        let cx = FactoryContext { session: session.clone() };
        let agent = self.parts().registry.resolve(&head.created.agent, &cx)?;
        match self.resume(agent, session, ResumeOptions::default()).await {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(
                    error.code(),
                    ErrorCode::AlreadyRunning
                        | ErrorCode::AlreadyResumed
                        | ErrorCode::Suspended
                        | ErrorCode::NothingToResume
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
