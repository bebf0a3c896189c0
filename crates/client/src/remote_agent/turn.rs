//! One model call of a remote agent: sends what the server has yet to receive, then follows the run until it ends or
//! waits.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_core::error::{ErrorCode, ErrorKind, ErrorRecord};
use helix_agents_core::id::{CallId, RunId};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmRequest, LlmSink};
use helix_agents_core::message::UserMessage;
use helix_agents_core::step::ParsedToolCall;
use helix_agents_core::store::SessionStatus;
use helix_agents_core::stream::{Attempt, ChunkKind, StoredChunk};
use helix_agents_core::trace::TraceParent;
use helix_agents_core::usage::Usage;
use tokio::time::{Instant, sleep, sleep_until};

use super::conversation::Conversation;
use super::model::RemoteModel;
use super::questions::{self, Wait};
use crate::api::{ResumeRequest, RunSummary, StartRequest, Status, StopRequest};
use crate::client::Client;
use crate::error::{ClientError, Result};
use crate::follow::FollowOptions;

/// The maximum size of the text that a reply repeats, in bytes. Further text is left out.
const MAX_TEXT: usize = 1024 * 1024;

/// The shortest and longest pauses between attempts to reach the server.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

/// The outcome of a model call.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The remote run completed with this output.
    Completed(Json),
    /// The remote agent waits for answers.
    Asks(Vec<ParsedToolCall>),
    /// The local session is suspended for this reason and tries again later.
    Waits(String, Wait),
    /// The local run is asked to interrupt, and the next call continues this one.
    Paused,
    /// Output that was shown is no longer valid.
    Discarded,
    /// The remote run failed.
    Failed(ErrorRecord),
}

/// The output of the remote run that the call has shown.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) thinking: String,
    /// The token usage of the turn, once it has ended.
    pub(super) usage: Usage,
    /// The sequence number of the last chunk.
    last_seq: u64,
    /// The attempts whose chunks were shown.
    attempts: BTreeSet<Attempt>,
    /// The step of the last text.
    step: u32,
    /// Whether text was left out.
    is_full: bool,
}

/// A model call in progress.
pub(super) struct Turn<'a> {
    model: &'a RemoteModel,
    request: &'a LlmRequest<'a>,
    sink: &'a dyn LlmSink,
    conversation: Conversation,
    shown: Shown,
    /// Whether the server has the messages and answers of the conversation.
    is_sent: bool,
    /// Whether the remote run was asked to interrupt.
    has_interrupted: bool,
    /// The earliest time to ask for it.
    next_interrupt: Instant,
    /// The last run of the remote session, if it had failed before this call.
    failed_before: Option<RunId>,
    /// The time since which requests fail.
    failing_since: Option<Instant>,
    /// The pause before the next attempt.
    pause: Duration,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        model: &'a RemoteModel,
        request: &'a LlmRequest<'a>,
        sink: &'a dyn LlmSink,
        conversation: Conversation,
    ) -> Self {
        let shown = Shown { last_seq: conversation.shown, ..Shown::default() };
        Self {
            model,
            request,
            sink,
            conversation,
            shown,
            is_sent: false,
            has_interrupted: false,
            next_interrupt: Instant::now(),
            failed_before: None,
            failing_since: None,
            pause: PAUSES.0,
        }
    }

    pub(super) fn into_shown(self) -> Shown {
        self.shown
    }

    /// Repeats the call while the server cannot be reached, within the patience.
    pub(super) async fn run(&mut self) -> Outcome {
        loop {
            let error = match self.advance().await {
                Ok(outcome) => return outcome,
                Err(error) if is_final(&error) => return Outcome::Failed(self.refused(&error)),
                Err(error) => error,
            };
            let since = *self.failing_since.get_or_insert_with(Instant::now);
            let wait = error.retry_after().unwrap_or(self.pause).max(self.pause);
            if !error.is_retryable() || since.elapsed() + wait > self.model.patience {
                return self.waits(&error.to_string());
            }
            tracing::debug!(%error, session = %self.request.session, "cannot reach the server of a remote agent");
            tokio::select! {
                () = sleep(wait) => {}
                () = self.request.interrupt.cancelled() => return self.waits(&error.to_string()),
            }
            self.pause = (self.pause * 2).min(PAUSES.1);
        }
    }

    /// Notes that a request other than that of the status has succeeded.
    fn note_progress(&mut self) {
        (self.failing_since, self.pause) = (None, PAUSES.0);
    }

    async fn advance(&mut self) -> Result<Outcome> {
        if !self.is_sent {
            if let Some(outcome) = self.send().await? {
                return Ok(outcome);
            }
            self.is_sent = true;
            self.note_progress();
        }
        loop {
            let status = self.client().status(&self.conversation.session).await?;
            let Some(run) = &status.last_run else {
                return Ok(Outcome::Failed(failed("was not started")));
            };
            if self.continues_earlier_run(&status, run) {
                self.resume().await?;
                self.conversation.was_interrupted = false;
                self.failed_before = None;
                self.note_progress();
                continue;
            }
            let is_live = is_live(&status);
            let from = match self.shown.last_seq {
                0 => run.stream_from,
                shown => shown,
            };
            if is_live || status.last_seq > from {
                if !self.follow(from).await? {
                    return Ok(Outcome::Discarded);
                }
                self.note_progress();
                if is_live {
                    // A run without an owner shows nothing until a process takes it over.
                    if self.shown.last_seq <= from {
                        sleep(PAUSES.0).await;
                    }
                    continue;
                }
                // The session may have continued while its stream was read.
                let now = self.client().status(&self.conversation.session).await?;
                if now.summary.version != status.summary.version {
                    continue;
                }
            }
            if let Some(outcome) = self.outcome(status).await? {
                return Ok(outcome);
            }
        }
    }

    /// Sends the answers and messages of the conversation. The server recognises those that it has. Returns an outcome
    /// if the conversation cannot continue.
    async fn send(&mut self) -> Result<Option<Outcome>> {
        let session = &self.conversation.session;
        match self.client().status(session).await {
            Ok(status) if status.summary.status == SessionStatus::Failed => {
                self.failed_before = status.last_run.map(|run| run.run);
            }
            Err(error) if error.is(ErrorCode::SessionNotFound) => {
                if self.conversation.has_history {
                    return Ok(Some(Outcome::Failed(self.refused(&error))));
                }
            }
            status => drop(status?),
        }
        for answer in &self.conversation.answers {
            match self.client().submit(session, answer).await {
                Err(error) if is_final_rejection(&error) => {
                    tracing::warn!(%error, %session, "the server rejected an answer");
                }
                answered => drop(answered?),
            }
        }
        for (run, message) in &self.conversation.messages {
            if !self.start(run, message).await? {
                let request = run.as_str().into();
                self.client().send_message_once(session, message.clone(), request).await?;
            }
        }
        Ok(None)
    }

    /// Returns the trace to send with requests, if propagation is on.
    fn trace(&self) -> Option<TraceParent> {
        self.request.trace.filter(|_| self.model.propagates_trace)
    }

    /// Starts the run of a message. Returns `false` if another run of the session is not done yet.
    async fn start(&self, run: &RunId, message: &UserMessage) -> Result<bool> {
        let mut request = StartRequest::new(self.model.agent.as_str(), message.clone())
            .session(self.conversation.session.clone());
        request.run = Some(run.clone());
        request.budget = Some(self.request.budget).filter(|budget| !budget.is_unlimited());
        request.trace = self.trace();
        match self.client().start(request).await {
            Ok(_) => Ok(true),
            Err(error) if is_unfinished(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns `true` if the remote session has to be resumed before anything is shown: an earlier call has shown the
    /// run that was interrupted, or reported the run that failed.
    fn continues_earlier_run(&self, status: &Status, run: &RunSummary) -> bool {
        match status.summary.status {
            SessionStatus::Interrupted => {
                self.conversation.was_interrupted && !self.request.interrupt.is_cancelled()
            }
            SessionStatus::Failed => self.failed_before.as_ref() == Some(&run.run),
            SessionStatus::Active => status.summary.state == "stopped" && status.can_resume,
            _ => false,
        }
    }

    /// Shows the chunks of the run until it stops. Returns `false` if chunks that were shown are discarded.
    async fn follow(&mut self, from: u64) -> Result<bool> {
        let options = FollowOptions::default().from(from + 1).without_children();
        let mut chunks = self.client().follow_with(&self.conversation.session, options);
        loop {
            let next = tokio::select! {
                next = chunks.next() => next,
                () = self.until_interrupt(), if !self.has_interrupted => {
                    self.interrupt().await;
                    continue;
                }
            };
            match next {
                None => return Ok(true),
                Some(stored) => {
                    if !self.show(&stored?) {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Waits until the remote run has to be asked to interrupt.
    async fn until_interrupt(&self) {
        self.request.interrupt.cancelled().await;
        sleep_until(self.next_interrupt).await;
    }

    async fn interrupt(&mut self) {
        match self.interrupt_current_run().await {
            Ok(true) => self.has_interrupted = true,
            // The run has ended, or another process takes it over.
            Ok(false) => self.next_interrupt = Instant::now() + PAUSES.0,
            Err(error) => {
                tracing::warn!(%error, session = %self.conversation.session, "could not interrupt the remote run; trying again");
                self.next_interrupt = Instant::now() + PAUSES.1;
            }
        }
    }

    async fn interrupt_current_run(&self) -> Result<bool> {
        let session = &self.conversation.session;
        let Some(run) = self.client().status(session).await?.last_run else { return Ok(false) };
        self.client().interrupt(StopRequest::new(session.clone()).run(run.run)).await
    }

    /// Maps the status of an idle remote session to an outcome. Returns `None` if the session was resumed.
    async fn outcome(&mut self, status: Status) -> Result<Option<Outcome>> {
        let Some(run) = status.last_run else {
            return Ok(Some(Outcome::Failed(failed("was not started"))));
        };
        let outcome = match status.summary.status {
            SessionStatus::Completed => match run.output {
                Some(output) => Outcome::Completed(output),
                None => Outcome::Failed(failed("completed without an output")),
            },
            SessionStatus::Interrupted if self.request.interrupt.is_cancelled() => Outcome::Paused,
            SessionStatus::Interrupted => {
                self.waits("an operator interrupted the remote run; resume it at the server")
            }
            SessionStatus::Active if status.can_resume => {
                self.resume().await?;
                return Ok(None);
            }
            SessionStatus::Active => {
                let open = status.pending_calls.iter().filter(|call| !call.expired);
                let after = self.shown.last_seq;
                let questions: Vec<_> =
                    open.filter_map(|call| questions::ask(call, after)).collect();
                if questions.is_empty() {
                    self.waits("the remote agent waits for something that the server has to answer")
                } else {
                    Outcome::Asks(questions)
                }
            }
            status => Outcome::Failed(failed(&ended(&run, status))),
        };
        Ok(Some(outcome))
    }

    /// Resumes the remote session, unless the server has done it.
    async fn resume(&self) -> Result<()> {
        let mut request = ResumeRequest::new(self.conversation.session.clone());
        request.trace = self.trace();
        match self.client().resume(request).await {
            Err(error) if is_unfinished(&error) || is_resumed(&error) => {
                sleep(PAUSES.0).await;
                Ok(())
            }
            resumed => resumed.map(drop),
        }
    }

    /// Shows a chunk of the remote run. Returns `false` if it discards chunks that were shown.
    fn show(&mut self, stored: &StoredChunk) -> bool {
        let Shown { text, thinking, usage, attempts, step, is_full, .. } = &mut self.shown;
        match &stored.chunk.kind {
            // Text beyond the limit is left out, from the first piece that does not fit.
            ChunkKind::TextDelta { .. } if *is_full => {}
            ChunkKind::TextDelta { delta } if text.len() + delta.len() > MAX_TEXT => {
                *is_full = true
            }
            ChunkKind::TextDelta { delta } => {
                // The texts of different steps are different replies.
                if *step != stored.chunk.step && !text.is_empty() {
                    text.push_str("\n\n");
                    self.sink.text_delta("\n\n");
                }
                *step = stored.chunk.step;
                text.push_str(delta);
                self.sink.text_delta(delta);
            }
            ChunkKind::Thinking { content, complete } if content.len() <= MAX_TEXT => {
                if *complete {
                    content.clone_into(thinking);
                } else if thinking.len() + content.len() <= MAX_TEXT {
                    thinking.push_str(content);
                }
                self.sink.thinking(content, *complete);
            }
            ChunkKind::StepDiscarded { attempts: discarded } => {
                if discarded.iter().any(|attempt| attempts.contains(attempt)) {
                    return false;
                }
            }
            ChunkKind::RunEnded { usage: of_turn, .. } => {
                // The local log may have a part of it, from a run of the turn that failed.
                *usage = of_turn.unwrap_or_default().since(&self.request.turn_usage);
                // A later call of the same turn reads the usage again.
                return true;
            }
            kind => {
                if let Some(kind) = tool_chunk(kind) {
                    self.sink.chunk(kind);
                }
            }
        }
        attempts.extend(stored.attempt);
        self.shown.last_seq = stored.seq;
        true
    }

    /// Returns the error of a request that the server refuses for good.
    fn refused(&self, error: &ClientError) -> ErrorRecord {
        let session = &self.conversation.session;
        let message = if error.is(ErrorCode::SessionNotFound) {
            format!(
                "the remote session {session} was not found: it was deleted or belongs to another owner, or the local \
                 session is a fork"
            )
        } else {
            format!("the server refused a request for the remote session {session}: {error}")
        };
        ErrorRecord::new(ErrorCode::SubAgentFailed, message)
    }

    fn waits(&self, reason: &str) -> Outcome {
        let wait = Wait {
            after: self.shown.last_seq,
            sent: self.is_sent,
            resumes: self.conversation.was_interrupted,
        };
        Outcome::Waits(reason.to_owned(), wait)
    }

    fn client(&self) -> &'a Client {
        &self.model.client
    }
}

/// Returns the chunk that shows a tool call of the remote agent. The ids of its calls differ from those of local calls.
fn tool_chunk(kind: &ChunkKind) -> Option<ChunkKind> {
    let mut kind = kind.clone();
    match &mut kind {
        ChunkKind::ToolStart { call, .. }
        | ChunkKind::ToolProgress { call, .. }
        | ChunkKind::ToolError { call, .. }
        | ChunkKind::ToolEnd { call, .. } => *call = CallId::from(format!("remote:{call}")),
        ChunkKind::Custom { .. } => {}
        _ => return None,
    }
    Some(kind)
}

fn is_live(status: &Status) -> bool {
    status.summary.status == SessionStatus::Active
        && matches!(status.summary.state.as_str(), "running" | "stopped")
}

/// Returns `true` if the server refuses a request for good. All other errors can be those of a proxy, of an outage or
/// of credentials that are about to be replaced.
fn is_final(error: &ClientError) -> bool {
    let is_of_the_request = matches!(
        error.kind(),
        ErrorKind::InvalidInput
            | ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::Unsupported
    );
    (is_of_the_request || error.is(ErrorCode::TooLarge))
        && error.status().is_none_or(|status| status < 500)
        && !error.is(ErrorCode::ServerProtocol)
        && !error.is(ErrorCode::RouteNotFound)
        && !error.is(ErrorCode::MethodNotAllowed)
}

/// Returns `true` if the session has a turn in progress.
fn is_unfinished(error: &ClientError) -> bool {
    [ErrorCode::AlreadyRunning, ErrorCode::RunUnfinished, ErrorCode::Suspended]
        .iter()
        .any(|code| error.is(*code))
}

fn is_resumed(error: &ClientError) -> bool {
    error.is(ErrorCode::AlreadyResumed) || error.is(ErrorCode::NothingToResume)
}

/// Returns `true` if the server refuses the answer for good. Its status shows how the session continues.
fn is_final_rejection(error: &ClientError) -> bool {
    [
        ErrorCode::CallNotFound,
        ErrorCode::AlreadyAnswered,
        ErrorCode::AnswerExpired,
        ErrorCode::AnswerToAborted,
        ErrorCode::AnswerInvalid,
        ErrorCode::AnswerWrongKind,
        ErrorCode::ArgumentsChanged,
    ]
    .iter()
    .any(|code| error.is(*code))
}

fn ended(run: &RunSummary, status: SessionStatus) -> String {
    match (&run.error, &run.reason) {
        (Some(error), _) => format!("failed: {}: {}", error.code, error.message),
        (None, Some(reason)) => format!("is {status}: {reason}"),
        (None, None) => format!("is {status}"),
    }
}

fn failed(what: &str) -> ErrorRecord {
    ErrorRecord::new(ErrorCode::SubAgentFailed, format!("the remote run {what}"))
}
