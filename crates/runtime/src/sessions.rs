//! A handle with which programs read, answer and manage sessions without running them.

use std::sync::Arc;

use helix_agents_core::clock::IdSourceExt as _;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::{Error, Result};
use helix_agents_core::event::RecordedEvent;
use helix_agents_core::executor::ForkOptions;
use helix_agents_core::id::{RequestId, SessionId};
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{
    CallRef, MessageOrigin, PendingCallView, RequestContext, Session, SessionExport, SessionPage,
    SessionReader, StopKind, Submission, UsageQuery, UsageReport, all_pending_calls, clear_stream,
    delete_session, export_session, fork, import_session, load_events, pending_calls,
    queue_message, repair_ended_stream, request, session_page, submit, usage_of_sessions,
};
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::{ChunkStream, StreamManager};

use crate::clock::{SystemIds, TokioClock};

/// A handle on the sessions of a store, for programs that do not run agents: web handlers, dashboards, approval tools.
///
/// It reads sessions, answers their pending calls, sends messages and stop requests to them, and forks, exports and
/// deletes them. It never executes a run. Answers, messages and requests are only recorded; the owner of the session's
/// run handles them, or, if there is no run, the runtime that resumes the session next. A program with a runtime uses
/// the methods of [`AgentExecutor`](helix_agents_core::executor::AgentExecutor) instead: with `auto_resume`, an answer
/// then also resumes the session.
///
/// Cheap to clone. Clones share the connections of the store.
///
/// # Errors
/// Besides the errors that a method names, each method returns the errors of the store and the streams.
///
/// # Durability
/// When a method that changes a session returns `Ok`, the change is in the log. Operations on an unavailable store are
/// not retried; a [`RetryingStore`](helix_agents_core::store::RetryingStore) does that.
///
/// # Cancel safety
/// A method whose future is dropped may or may not have changed the session. A repeated answer is recorded only once:
/// with the same [`request`](Submission::request) id the repetition succeeds, otherwise it fails. To be able to repeat
/// a message, use [`message_once`](Self::message_once); to be able to repeat a fork, choose the id of the new session.
///
/// # Examples
/// ```
/// use helix_agents_runtime::Sessions;
/// use helix_agents_store_memory::MemoryStore;
///
/// # async fn example() -> helix_agents_core::error::Result<()> {
/// let sessions = Sessions::new(MemoryStore::new());
/// let order = "order-17".into();
/// for waiting in sessions.pending(&order).await? {
///     println!("{} waits for an answer", waiting.pending.tool);
///     sessions.approve(&order, waiting.reference()).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Sessions {
    store: Arc<dyn StateStore>,
    streams: Arc<dyn StreamManager>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl Sessions {
    /// Creates a handle on a store that keeps both sessions and streams.
    #[must_use]
    pub fn new(store: impl StateStore + StreamManager) -> Self {
        let store = Arc::new(store);
        Self::with_streams(Arc::clone(&store) as Arc<dyn StateStore>, store)
    }

    /// Creates a handle on a store whose streams are kept elsewhere.
    #[must_use]
    pub fn with_streams(store: Arc<dyn StateStore>, streams: Arc<dyn StreamManager>) -> Self {
        Self { store, streams, clock: Arc::new(TokioClock::new()), ids: Arc::new(SystemIds) }
    }

    /// Sets the clock and the source of ids, for tests.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        (self.clock, self.ids) = (clock, ids);
        self
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn StateStore> {
        &self.store
    }

    /// Returns a session with its transcript, state and usage.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound).
    pub async fn get(&self, session: &SessionId) -> Result<Session> {
        self.reader().load(session).await
    }

    /// Returns the events of a session's log after this version, in order. 0 returns the whole log.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound).
    pub async fn history(&self, session: &SessionId, after: u64) -> Result<Vec<RecordedEvent>> {
        load_events(&*self.store, session, after).await
    }

    /// Returns the transcript of a root session and the position in its stream from which
    /// [`follow`](Self::follow) continues.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound).
    pub async fn page(&self, session: &SessionId) -> Result<SessionPage> {
        session_page(self.reader(), &*self.streams, &*self.clock, &*self.ids, session).await
    }

    /// Returns the chunks of a root session's stream with this sequence number or a greater one, and then new chunks
    /// as they are written. The returned stream does not end by itself.
    ///
    /// # Errors
    /// Returns the errors of the streams.
    pub async fn follow(&self, session: &SessionId, from: u64) -> Result<ChunkStream> {
        self.streams.read(session, from).await
    }

    /// Returns the calls of a root session and its descendants that wait for an answer.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound).
    pub async fn pending(&self, session: &SessionId) -> Result<Vec<PendingCallView>> {
        pending_calls(self.reader(), session).await
    }

    /// Returns at most `most` pending calls of all sessions, those of the newest root sessions first.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub async fn pending_anywhere(&self, most: usize) -> Result<Vec<PendingCallView>> {
        all_pending_calls(self.reader(), most).await
    }

    /// Approves a pending call of a root session or one of its descendants. Exactly one of several answers to a call is
    /// accepted. Returns the session that the call belongs to.
    ///
    /// # Errors
    /// Returns the errors of [`answer`](Self::answer).
    pub async fn approve(
        &self,
        session: &SessionId,
        call: impl Into<CallRef> + Send,
    ) -> Result<SessionId> {
        self.answer(session, &Submission::approve(call)).await
    }

    /// Denies a pending call. The model receives the reason. Otherwise this works like [`approve`](Self::approve).
    ///
    /// # Errors
    /// Returns the errors of [`answer`](Self::answer).
    pub async fn deny(
        &self,
        session: &SessionId,
        call: impl Into<CallRef> + Send,
        reason: impl Into<Option<String>> + Send,
    ) -> Result<SessionId> {
        self.answer(session, &Submission::deny(call, reason)).await
    }

    /// Records any answer to a pending call: the result of a client tool, an approval with edited arguments, an answer
    /// with the name of the user or a digest of the arguments. Returns the session that the call belongs to.
    ///
    /// # Errors
    /// Returns the errors of [`submit`](helix_agents_core::session::submit), which say why the answer was not accepted.
    pub async fn answer(&self, session: &SessionId, submission: &Submission) -> Result<SessionId> {
        submit(self.request_context(), session, submission).await
    }

    /// Queues a message for a session. It enters the transcript between two steps, or with the next turn.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound).
    pub async fn message(&self, session: &SessionId, message: UserMessage) -> Result<()> {
        self.message_once(session, &self.ids.request(), message).await
    }

    /// Queues a message for a session, unless a message with this request id was queued before.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound).
    pub async fn message_once(
        &self,
        session: &SessionId,
        request: &RequestId,
        message: UserMessage,
    ) -> Result<()> {
        let origin = MessageOrigin::default();
        queue_message(self.request_context(), session, request, &message, origin).await
    }

    /// Requests that the session's run stop at its next step boundary. The owner of the run reads the request with its
    /// next append or renewal, after at most a third of the lease. The session then waits until `resume` or `execute`
    /// is called; sweeps skip it.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound), and
    /// [`NothingToStop`](helix_agents_core::error::ErrorCode::NothingToStop) if no run is in progress.
    pub async fn interrupt(&self, session: &SessionId, reason: Option<String>) -> Result<()> {
        request(self.request_context(), session, None, StopKind::Interrupt, reason).await.map(drop)
    }

    /// Requests that the session's run stop and end as aborted. The owner of the run reads the request with its next
    /// append or renewal, after at most a third of the lease, and stops immediately. A suspended session has no run in
    /// progress; [`AgentExecutor::abort`](helix_agents_core::executor::AgentExecutor::abort) ends it.
    ///
    /// # Errors
    /// Returns [`SessionNotFound`](helix_agents_core::error::ErrorCode::SessionNotFound), and
    /// [`NothingToStop`](helix_agents_core::error::ErrorCode::NothingToStop) if no run is in progress.
    pub async fn abort(&self, session: &SessionId, reason: Option<String>) -> Result<()> {
        request(self.request_context(), session, None, StopKind::Abort, reason).await.map(drop)
    }

    /// Creates a session from another session's log up to a checkpoint. Returns its id.
    ///
    /// # Errors
    /// Returns the errors of [`fork`](helix_agents_core::session::fork).
    pub async fn fork(&self, session: &SessionId, options: &ForkOptions) -> Result<SessionId> {
        // An unreadable stream only affects what clients see. The first run of the fork repairs it.
        let warn = |error: Error| tracing::warn!(%error, "the stream of a fork was not prepared");
        if let Some(chosen) = &options.session {
            clear_stream(&*self.store, &*self.streams, chosen).await.unwrap_or_else(warn);
        }
        let new = fork(self.request_context(), session, options).await?;
        let (reader, streams) = (self.reader(), &*self.streams);
        let repaired = repair_ended_stream(reader, streams, &*self.clock, &*self.ids, &new).await;
        repaired.unwrap_or_else(warn);
        Ok(new)
    }

    /// Returns the usage of all sessions that the query selects.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub async fn usage(&self, query: &UsageQuery) -> Result<UsageReport> {
        usage_of_sessions(self.reader(), query).await
    }

    /// Returns a root session and its descendants in a form that another store can [import](Self::import).
    ///
    /// # Errors
    /// Returns the errors of [`export_session`](helix_agents_core::session::export_session).
    pub async fn export(&self, session: &SessionId) -> Result<SessionExport> {
        export_session(&*self.store, session).await
    }

    /// Creates the sessions of an export. An import that was cut off can be repeated.
    ///
    /// # Errors
    /// Returns the errors of [`import_session`](helix_agents_core::session::import_session).
    pub async fn import(&self, export: &SessionExport) -> Result<()> {
        import_session(&*self.store, export).await
    }

    /// Deletes a session and its descendants, and for a root session also its stream. Returns `true` if the session
    /// existed. A run in progress fails at its next append. If its hooks have to be called, [abort](Self::abort) it
    /// first, and wait until it has ended.
    ///
    /// # Errors
    /// Returns the errors of the store and the streams.
    pub async fn delete(&self, session: &SessionId) -> Result<bool> {
        delete_session(&*self.store, &*self.streams, session).await
    }

    fn reader(&self) -> SessionReader<'_> {
        SessionReader::of(&*self.store)
    }

    fn request_context(&self) -> RequestContext<'_> {
        RequestContext::new(&*self.store, &*self.ids)
    }
}
