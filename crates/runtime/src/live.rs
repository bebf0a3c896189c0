//! The live runs of this process, shared by handles and drivers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::AgentResult;
use helix_agents_core::id::{RunId, SessionId};
use tokio::sync::SetOnce;

use crate::context::RuntimeContext;

/// The shared state of one run of this process.
#[derive(Debug)]
pub struct LiveRun {
    /// The session of the run.
    pub session: SessionId,
    /// The id of the run.
    pub run: RunId,
    end: SetOnce<End>,
}

/// The outcome of a driver. Errors are stored in a form that can be returned to several waiters.
#[derive(Debug, Clone)]
enum End {
    Result(AgentResult),
    Error(ErrorCode, String),
}

impl LiveRun {
    pub(crate) fn new(session: SessionId, run: RunId) -> Arc<Self> {
        Arc::new(Self { session, run, end: SetOnce::new() })
    }

    /// Publishes the outcome to all waiters. Only the first outcome counts.
    pub fn finish(&self, result: Result<AgentResult>) {
        let end = match result {
            Ok(result) => End::Result(result),
            Err(error) => End::Error(error.code(), error.message().to_owned()),
        };
        drop(self.end.set(end));
    }

    /// Waits for the outcome of the run.
    pub(crate) async fn result(&self) -> Result<AgentResult> {
        match self.end.wait().await.clone() {
            End::Result(result) => Ok(result),
            End::Error(code, message) => Err(Error::new(code, message)
                .with_context("session", &self.session)
                .with_context("run", &self.run)),
        }
    }
}

/// The live runs of this process by session.
#[derive(Debug, Default)]
pub(crate) struct LiveRuns(Mutex<HashMap<SessionId, Arc<LiveRun>>>);

impl LiveRuns {
    pub(crate) fn insert(&self, live: &Arc<LiveRun>) {
        self.lock().insert(live.session.clone(), Arc::clone(live));
    }

    pub(crate) fn get(&self, session: &SessionId) -> Option<Arc<LiveRun>> {
        self.lock().get(session).cloned()
    }

    /// Removes a run, unless another run of the session has replaced it.
    pub(crate) fn remove(&self, live: &LiveRun) {
        let mut runs = self.lock();
        if runs.get(&live.session).is_some_and(|other| other.run == live.run) {
            runs.remove(&live.session);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Arc<LiveRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registration of a run that this process executes. Dropping it removes the run from the list. If no outcome
/// was published, all waits for it end with [`ErrorCode::Closed`].
#[derive(Debug)]
pub struct RunRegistration {
    runs: Arc<LiveRuns>,
    live: Arc<LiveRun>,
}

impl RunRegistration {
    /// Registers a run with its process.
    #[must_use]
    pub fn new(context: &RuntimeContext, live: &Arc<LiveRun>) -> Self {
        context.runs.insert(live);
        Self { runs: Arc::clone(&context.runs), live: Arc::clone(live) }
    }

    /// Returns the registered run.
    #[must_use]
    pub fn run(&self) -> &LiveRun {
        &self.live
    }
}

impl Drop for RunRegistration {
    fn drop(&mut self) {
        self.runs.remove(&self.live);
        // Has no effect if an outcome was published.
        let message = "the task that executed the run ended without a result; resume the session to continue it";
        self.live.finish(Err(Error::new(ErrorCode::Closed, message)));
    }
}
