//! The state of a session from which a turn is shown: its page, and the folds of its sub-agents.

use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::session::{CallRef, Session, SessionPage};
use helix_agents_protocols::turn::Folds;

use crate::ownership::SessionIdentity;
use crate::service::Service;

/// The maximum number of sub-agents whose folds are read. Questions of further ones are not shown.
const MAX_CHILDREN: usize = 256;

/// The maximum time for which the stream may lag behind the log.
const MAX_LAG: Duration = Duration::from_secs(10);

/// A root session with its sub-agents, at one version of its stream.
#[derive(Debug)]
pub(crate) struct View {
    /// The page of the root session.
    pub(crate) page: SessionPage,
    children: Vec<Session>,
}

impl View {
    /// Reads the view of a session.
    pub(crate) async fn read(service: &Service, root: &SessionIdentity) -> Result<Self> {
        let page = service.executor.page(&root.session).await?;
        Self::of(service, root, page).await
    }

    /// Reads the view that shows the last run of the session's log. The stream lags behind the log, so the page that is
    /// read right after a run was started can be older than the run.
    pub(crate) async fn read_with_last_run(
        service: &Service,
        root: &SessionIdentity,
    ) -> Result<Self> {
        let last = service.executor.handle(&root.session).await?.run().clone();
        let page = page_with_run(service, &root.session, &last);
        let page = tokio::time::timeout(MAX_LAG, page).await.unwrap_or_else(|_| {
            let message = "the stream does not show the last run yet";
            Err(Error::new(ErrorCode::StoreUnavailable, message))
        })?;
        Self::of(service, root, page).await
    }

    async fn of(service: &Service, root: &SessionIdentity, page: SessionPage) -> Result<Self> {
        let children = read_children(service, &page.session).await?;
        // Another session may have been created with the id in the meantime.
        if !root.is_current(&*service.store).await? {
            return Err(Error::new(ErrorCode::SessionNotFound, "the session was deleted"));
        }
        Ok(Self { page, children })
    }

    /// Returns the folds from which translators show the turn.
    pub(crate) fn folds(&self) -> Folds<'_> {
        let root = Folds::new(&self.page.session);
        self.children.iter().fold(root, |folds, child| folds.with_child(child))
    }

    /// Returns `true` if the call belongs to a step that is done, so that no answer to it matters.
    pub(crate) fn is_done(&self, call: &CallRef) -> bool {
        self.session_of(call).is_some_and(|session| is_done(session, &call.call))
    }

    /// Returns the schema that the answer to a pending call must fit, if it has one.
    pub(crate) fn answer_schema(&self, call: &CallRef) -> Option<Json> {
        let mut pending = self.session_of(call)?.pending_calls();
        pending.find(|pending| pending.call == call.call)?.schema.clone()
    }

    fn session_of(&self, call: &CallRef) -> Option<&Session> {
        let root = &self.page.session;
        call.session.as_ref().map_or(Some(root), |id| {
            self.children.iter().chain([root]).find(|session| session.id() == id)
        })
    }
}

fn is_done(session: &Session, call: &CallId) -> bool {
    let is_open = session.open_step().is_some_and(|step| step.tool_call(call).is_some());
    !is_open && session.tool_call(call).is_some()
}

/// Returns the first page that contains the run. Each chunk of the stream can bring the page up to it.
async fn page_with_run(service: &Service, root: &SessionId, run: &RunId) -> Result<SessionPage> {
    loop {
        let page = service.executor.page(root).await?;
        if page.session.run(run).is_some() {
            return Ok(page);
        }
        let mut chunks = service.executor.follow(root, page.next_seq).await?;
        chunks.next().await.transpose()?;
    }
}

async fn read_children(service: &Service, root: &Session) -> Result<Vec<Session>> {
    let mut children: Vec<Session> = Vec::new();
    loop {
        let folds = children.iter().fold(Folds::new(root), Folds::with_child);
        let missing: Vec<_> = folds.missing().into_iter().cloned().collect();
        let mut found = 0;
        for id in missing.into_iter().take(MAX_CHILDREN.saturating_sub(children.len())) {
            match service.sessions.get(&id).await {
                Ok(child) => {
                    children.push(child);
                    found += 1;
                }
                // The log of a sub-agent is created after its start was recorded.
                Err(error) if error.code() == ErrorCode::SessionNotFound => {}
                Err(error) => return Err(error),
            }
        }
        if found == 0 {
            return Ok(children);
        }
    }
}
