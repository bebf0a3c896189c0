//! Dependencies shared by all runs of a runtime.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helix_agents_core::agent::{AgentRegistry, AnyAgent};
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::mutant;
use helix_agents_core::observer::Observers;
use helix_agents_core::session::{
    Durability, RequestContext, RunRecord, SessionCache, SessionReader, clear_stream,
    repair_ended_stream,
};
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::{StreamInfo, StreamManager};

use crate::hook_chain::HookChain;
use crate::live::LiveRuns;
use crate::run_ref::RunRef;
use crate::stream_wait::StreamWait;
use crate::tasks::Tasks;
use crate::wakeups::Wakeups;

/// Dependencies shared by all runs of a runtime.
#[derive(Debug)]
pub struct RuntimeContext {
    /// The store of session logs.
    pub store: Arc<dyn StateStore>,
    /// The store of session streams.
    pub streams: Arc<dyn StreamManager>,
    /// The LLM adapter that answers model calls.
    pub llm: Arc<dyn LlmAdapter>,
    /// The registered agents by name.
    pub registry: AgentRegistry,
    /// The clock of the process.
    pub clock: Arc<dyn Clock>,
    /// The source of new ids.
    pub ids: Arc<dyn IdSource>,
    /// The durability mode: whether replies and results are appended as they arrive, or once per step.
    pub durability: Durability,
    /// The lease duration: how long a run counts as owned after its last renewal or append.
    pub lease: Duration,
    /// The grace period: how long tool calls and waits for children may continue after an abort. Runtimes also pass it
    /// to [`Tasks::end`].
    pub grace: Duration,
    /// Whether a session is resumed automatically after an answer to a pending call was submitted.
    pub auto_resume: bool,
    /// The observers of the events that this process appends.
    pub observers: Observers,
    /// The background tasks of the runtime.
    pub tasks: Tasks,
    /// Runs that this process started and executes as work items.
    pub(crate) local_runs: Mutex<HashMap<RunId, LocalRunContext>>,
    /// The cache of recently read sessions.
    pub(crate) folds: SessionCache,
    /// The live runs of this process.
    pub(crate) runs: Arc<LiveRuns>,
    /// Notifies live runs of this process of requests that this process appended, so that the runs handle them
    /// immediately.
    pub(crate) wakeups: Wakeups,
    /// The limit on how long runs wait for streams.
    pub(crate) stream_wait: StreamWait,
}

/// The agent and hooks of a run that was started in this process. Other processes may not know them.
#[derive(Debug, Clone)]
pub(crate) struct LocalRunContext {
    pub(crate) agent: AnyAgent,
    pub(crate) hooks: HookChain,
}

impl RuntimeContext {
    /// Returns the store and id source for appending requests from outside a run.
    pub(crate) fn request_context(&self) -> RequestContext<'_> {
        RequestContext {
            folds: Some(&self.folds),
            observers: Some(&self.observers),
            ..RequestContext::new(&*self.store, &*self.ids)
        }
    }

    /// Returns a session reader that uses the session cache and reads only new events.
    #[must_use]
    pub fn logs(&self) -> SessionReader<'_> {
        SessionReader { store: &*self.store, folds: Some(&self.folds) }
    }

    /// Returns the record of a run from the log. For the session's last run, only the overview is read.
    ///
    /// # Errors
    /// Returns the errors of [`SessionReader::load`].
    pub async fn record_of(&self, run_ref: &RunRef) -> Result<Option<RunRecord>> {
        let overview = self.logs().overview(&run_ref.session).await?;
        if let Some(last) = overview.last_run().filter(|last| last.id == run_ref.run) {
            return Ok(Some(last.clone()));
        }
        Ok(self.logs().load(&run_ref.session).await?.run(&run_ref.run).cloned())
    }

    /// Repairs the stream of a session without a current run so that it matches the log.
    pub(crate) async fn repair_ended_stream(&self, session: &SessionId) -> Result<()> {
        repair_ended_stream(self.logs(), &*self.streams, &*self.clock, &*self.ids, session).await
    }

    /// Repairs the stream of a session without a current run, if the stream is available. A failure is logged and
    /// ignored: unavailable streams only affect what clients see.
    pub(crate) async fn show_end(&self, session: &SessionId) {
        if self.stream_info(session).await.is_none() {
            return;
        }
        if let Err(error) = self.repair_ended_stream(session).await {
            tracing::warn!(%session, %error, "the stream could not be repaired");
        }
    }

    /// Shows the end of a child whose owner may have crashed before it wrote it to the stream.
    pub(crate) async fn show_child_end(&self, child: &SessionId) {
        if !mutant!("child-end-not-shown") {
            self.show_end(child).await;
        }
    }

    /// Returns the state of a stream, or `None` if streams count as unavailable or this one cannot be read in time.
    pub(crate) async fn stream_info(&self, stream: &SessionId) -> Option<StreamInfo> {
        match self.stream_wait.wait_if_available(self.streams.info(stream)).await? {
            Ok(info) => {
                self.stream_wait.answered();
                Some(info)
            }
            Err(error) => {
                tracing::warn!(%stream, %error, "the stream could not be read");
                None
            }
        }
    }

    /// Removes the stream of an earlier session with this id. An unavailable stream never fails the run and delays
    /// it only briefly; clients may then see old chunks.
    pub(crate) async fn clear_stream(&self, session: &SessionId) {
        let clear = clear_stream(&*self.store, &*self.streams, session);
        match self.stream_wait.wait_if_available(clear).await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::warn!(%session, %error, "the stream of an earlier session may not have been removed");
            }
            None => {
                tracing::warn!(%session, "the stream of an earlier session may not have been removed")
            }
        }
    }

    pub(crate) fn local_runs(&self) -> MutexGuard<'_, HashMap<RunId, LocalRunContext>> {
        self.local_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the runtime still accepts runs.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Closed`] if the runtime was shut down.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.tasks.drain.is_cancelled() {
            return Err(Error::new(ErrorCode::Closed, "the runtime was shut down"));
        }
        Ok(())
    }
}
