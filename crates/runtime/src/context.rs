//! What every run of a runtime shares.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helix_agents_core::agent::{AgentRegistry, AnyAgent};
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::hooks::HookChain;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::{
    Durability, Outside, RunRecord, SessionCache, SessionReader, clear_stream, repair_ended_stream,
};
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::{StreamInfo, StreamManager};

use crate::live::LiveRuns;
use crate::run_ref::RunRef;
use crate::stream_wait::StreamWait;
use crate::tasks::Tasks;
use crate::wakeups::Wakeups;

/// What every run of a runtime shares.
#[derive(Debug)]
pub struct RuntimeContext {
    /// Where logs are kept.
    pub store: Arc<dyn StateStore>,
    /// Where streams are kept.
    pub streams: Arc<dyn StreamManager>,
    /// What answers.
    pub llm: Arc<dyn LlmAdapter>,
    /// Agents by name.
    pub registry: AgentRegistry,
    /// The process's time.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub ids: Arc<dyn IdSource>,
    /// When facts are appended.
    pub durability: Durability,
    /// How long a run counts as alive after its last sign of life.
    pub lease: Duration,
    /// How long cancelled tools may take to stop before they are dropped.
    pub grace: Duration,
    /// Whether a session goes on by itself once an answer was submitted.
    pub auto_resume: bool,
    /// What this process has under way.
    pub tasks: Tasks,
    /// Runs that this process has begun and carries out in parts.
    pub(crate) local_runs: Mutex<HashMap<RunId, LocalRunContext>>,
    /// The sessions that this process looked at last.
    pub(crate) folds: SessionCache,
    /// The runs of this process.
    pub(crate) runs: Arc<LiveRuns>,
    /// Told of requests that this process has appended, so that its own runs meet them at once.
    pub(crate) wakeups: Wakeups,
    /// How long its runs wait for streams.
    pub(crate) stream_wait: StreamWait,
}

/// What a run is carried out with that began here; it may be known nowhere else.
#[derive(Debug, Clone)]
pub(crate) struct LocalRunContext {
    pub(crate) agent: AnyAgent,
    pub(crate) hooks: HookChain,
}

impl RuntimeContext {
    /// What requests from outside are appended with.
    pub(crate) fn outside(&self) -> Outside<'_> {
        Outside { store: &*self.store, ids: &*self.ids, folds: Some(&self.folds) }
    }

    /// The logs, of which only what is new is read.
    #[must_use]
    pub fn logs(&self) -> SessionReader<'_> {
        SessionReader { store: &*self.store, folds: Some(&self.folds) }
    }

    /// What the log says of a run: without the history, if it is the session's last one.
    ///
    /// # Errors
    /// As [`SessionReader::load`].
    pub async fn record_of(&self, of: &RunRef) -> Result<Option<RunRecord>> {
        let overview = self.logs().overview(&of.session).await?;
        if let Some(last) = overview.last_run().filter(|last| last.id == of.run) {
            return Ok(Some(last.clone()));
        }
        Ok(self.logs().load(&of.session).await?.run(&of.run).cloned())
    }

    /// Brings the stream of a session without a current run into line with its log.
    pub(crate) async fn repair_ended_stream(&self, session: &SessionId) -> Result<()> {
        repair_ended_stream(self.logs(), &*self.streams, &*self.clock, &*self.ids, session).await
    }

    /// Brings the stream of a session without a current run into line with its log, if that can be done
    /// now: streams that are away cost what people see, and nothing else.
    pub(crate) async fn show_end(&self, session: &SessionId) {
        if self.stream_info(session).await.is_none() {
            return;
        }
        if let Err(error) = self.repair_ended_stream(session).await {
            tracing::warn!(%session, %error, "the stream is out of line");
        }
    }

    /// How far a stream is, if it can be found out in a moment.
    pub(crate) async fn stream_info(&self, stream: &SessionId) -> Option<StreamInfo> {
        match self.stream_wait.briefly(self.streams.info(stream)).await? {
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

    /// Forgets what an earlier session of this id left in the streams. Streams that are away cost what
    /// people see, never the run, and never more than a moment.
    pub(crate) async fn clear_stream(&self, session: &SessionId) {
        let clear = clear_stream(&*self.store, &*self.streams, session);
        match self.stream_wait.briefly(clear).await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::warn!(%session, %error, "the stream of an earlier session may be left");
            }
            None => tracing::warn!(%session, "the stream of an earlier session may be left"),
        }
    }

    pub(crate) fn local_runs(&self) -> MutexGuard<'_, HashMap<RunId, LocalRunContext>> {
        self.local_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That runs are still taken.
    ///
    /// # Errors
    /// [`ErrorCode::Closed`] if the runtime was shut down.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.tasks.drain.is_cancelled() {
            return Err(Error::new(ErrorCode::Closed, "the runtime was shut down"));
        }
        Ok(())
    }
}
